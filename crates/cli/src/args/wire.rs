//! Arguments of `skyhaul wire`.

use super::error::ArgumentError;
use clap::{Args, Subcommand, ValueEnum};
use skyhaul_scenario::amount::{AmountError, Size, Time};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum WireCommand {
    /// Accept connections from any TCP: discard the data, answer HTTP, or act as an iperf3 server.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Send to any TCP as fast as the congestion control allows.
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArgs),
}

const SERVE_EXAMPLES: &str = "Examples:
  sudo skyhaul wire serve --mode iperf3 --cc peach        then: iperf3 -c 10.84.0.2 -R
  sudo skyhaul wire serve --mode http --port 80           then: curl -o /dev/null http://10.84.0.2/100000000";

const SEND_EXAMPLES: &str = "Examples:
  nc -l 5201 > /dev/null &  sudo skyhaul wire send 10.84.0.1 --time 10s
  sudo skyhaul wire send 192.0.2.7:9000 --bytes 100MB --cc peach --pcap trace.pcapng";

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Port to listen on.
    #[arg(long, default_value_t = 5201, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// What to do with a connection.
    #[arg(long, value_enum, default_value_t = Mode::Sink)]
    pub(crate) mode: Mode,
    /// Exit after one connection (iperf3: after one test).
    #[arg(long)]
    pub(crate) once: bool,
    /// End a connection on which no data moves for this long, such as 600s; 0s: never. Keepalives probe a silent peer in
    /// that time; --set endpoint.keepalive-idle sets another time for them.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = quantity::<Time>)]
    pub(crate) idle: Time,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
}

/// What the server does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Discard the data, and close when the peer does.
    Sink,
    /// HTTP/1.1: GET /N returns N bytes; the bodies of PUT and POST are counted.
    Http,
    /// An iperf3 server: both directions, parallel streams.
    Iperf3,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("limit").required(true).args(["time", "bytes"]))]
pub(crate) struct SendArgs {
    /// Destination: an address or a name; the port defaults to 5201. IPv6 with a port: [fd00::1]:5201.
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) to: String,
    /// Send for this long, such as 10s.
    #[arg(long, value_name = "TIME", value_parser = quantity::<Time>)]
    pub(crate) time: Option<Time>,
    /// Send this much over all connections together, such as 100MB.
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Size>)]
    pub(crate) bytes: Option<Size>,
    /// Parallel connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) streams: u32,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
}

/// Options of the stack and of its output.
#[derive(Args, Debug)]
pub(crate) struct StackArgs {
    /// Name of the TUN interface; by default the kernel picks one.
    #[arg(long, value_name = "NAME")]
    pub(crate) tun: Option<String>,
    /// Address of the kernel's side, with its prefix length; once for IPv4, once for IPv6.
    #[arg(long, value_name = "ADDRESS/LENGTH", default_value = "10.84.0.1/24", value_parser = network)]
    pub(crate) kernel_address: Vec<(IpAddr, u8)>,
    /// Address of the stack's side, in the same network; once for IPv4, once for IPv6.
    #[arg(long, value_name = "ADDRESS", default_value = "10.84.0.2")]
    pub(crate) address: Vec<IpAddr>,
    /// Largest packet (MTU), bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..))]
    pub(crate) mtu: u16,
    /// Exchange segments with the kernel as super-packets of up to 64 KiB (virtio-net header), which saves processor time.
    /// Do not use it over links that shape or drop packets: they see a super-packet as one packet.
    #[arg(long)]
    pub(crate) gso: bool,
    /// Congestion control, with its default options.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) cc: String,
    /// Set an option of the congestion control or the endpoint, as in scenario files: cc.KEY=VALUE, endpoint.KEY=VALUE,
    /// rwnd=SIZE, sndbuf=SIZE; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Memory limit for all connections together, such as 256MB. At the limit, applications write less and incoming data is
    /// dropped.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantity::<Size>)]
    pub(crate) memory: Size,
    /// How low-priority probes (dummy segments) are negotiated and marked.
    #[arg(long, value_enum, default_value_t = Marking::Option)]
    pub(crate) profile: Marking,
    /// How packets signal low priority.
    #[arg(long, value_enum, default_value_t = Priority::LowerEffort)]
    pub(crate) priority: Priority,
    /// Reporting interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::<Time>)]
    pub(crate) interval: Time,
    /// Print JSON in the layout of iperf3, at the end.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9100; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Capture all packets in a pcapng file for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Overwrite the file of --pcap even if this program did not write it.
    #[arg(long, requires = "pcap")]
    pub(crate) force: bool,
}

/// How low-priority probes (dummy segments) are negotiated and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Marking {
    /// Negotiated in the SYN, marked with an option.
    Option,
    /// Negotiated in the SYN, marked with reserved bits.
    Compact,
    /// Marked with reserved bits without negotiation, as in the papers: for closed test beds only.
    Paper,
    /// No probes.
    Off,
}

/// How packets signal low priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Priority {
    /// DSCP 1 (RFC 8622).
    LowerEffort,
    /// DSCP 8, CS1 (RFC 3662).
    Scavenger,
    /// IP precedence 0; all other packets have precedence 1.
    Precedence,
}

pub(super) fn quantity<T: std::str::FromStr<Err = AmountError>>(text: &str) -> Result<T, AmountError> {
    text.parse()
}

/// An address with its prefix length.
fn network(text: &str) -> Result<(IpAddr, u8), ArgumentError> {
    let parsed = text.split_once('/').and_then(|(ip, n)| Some((ip.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((ip @ IpAddr::V4(_), n @ 1..=30)) => Ok((ip, n)),
        Some((ip @ IpAddr::V6(_), n @ 1..=126)) => Ok((ip, n)),
        Some(_) => Err(ArgumentError::RoomForTwo),
        None => Err(ArgumentError::Network),
    }
}
