//! Errors of a gateway. Each message is one line and states the remedy.

use skyhaul_net::NetError;
use std::io;

/// How to raise the limit of file descriptors.
pub(crate) const MORE_DESCRIPTORS: &str =
    "raise the hard limit (ulimit -Hn; systemd: LimitNOFILE=; a container: --ulimit nofile=)";

/// An error of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Invalid configuration file.
    #[error("{file}: {key}{message}")]
    Config {
        /// The file.
        file: String,
        /// The key, followed by ": ", or empty.
        key: String,
        /// What is wrong, and what to write.
        message: String,
    },
    /// The program `nft` is not installed.
    #[error("there is no program nft: install it (Debian and Ubuntu: apt-get install nftables)")]
    NoNft,
    /// `nft` rejected the rules.
    #[error("nft refuses the rules: {0}")]
    Nft(String),
    /// The kernel lacks a module for one of the rules.
    #[error(
        "the kernel lacks what a rule of nftables needs: modprobe nft_tproxy nft_socket nft_fib_inet nft_nat; `skyhaul gateway doctor FILE` says which is missing"
    )]
    NoModule,
    /// The keeper, the process that cleans up after a gateway that was killed, has ended before it was ready.
    #[error(
        "the keeper did not start: {0} ended at once; without it nobody would clean up after a gateway that is killed"
    )]
    NoKeeper(String),
    /// The process may open too few descriptors.
    #[error(
        "this process may open {limit} descriptors, and limits.flows needs {needs}: {}, or lower limits.flows",
        MORE_DESCRIPTORS
    )]
    FewDescriptors {
        /// How many descriptors the process may open.
        limit: u64,
        /// How many descriptors it needs.
        needs: u64,
    },
    /// A gateway of this name runs already.
    #[error(
        "a gateway called {name:?} runs already (process {pid}): stop it with `skyhaul gateway stop {name}`, or choose another name"
    )]
    Running {
        /// Its name.
        name: String,
        /// Its process ID.
        pid: String,
    },
    /// A gateway with another folder runs in this network namespace, or another program uses its routing table.
    #[error(
        "routing table {0} is in use: by a gateway of this network namespace with another --runtime, which has to be the same, or by another \
         program"
    )]
    Another(u32),
    /// Too many gateways.
    #[error(
        "no more gateways can run in this network namespace: give the next ones a namespace of their own"
    )]
    NoSlot,
    /// Another gateway has the interface.
    #[error(
        "{key} {interface} is {what} of the gateway {other:?}: write another interface, or stop that gateway (skyhaul gateway stop {other})"
    )]
    InterfaceTaken {
        /// The key of the file.
        key: &'static str,
        /// The interface.
        interface: String,
        /// What the interface is to the other gateway.
        what: &'static str,
        /// The name of the other gateway.
        other: String,
    },
    /// Another gateway repairs datagrams.
    #[error(
        "the gateway {0:?} repairs datagrams already, which one gateway of a network namespace can do: leave [repair] out, or give this one a \
         namespace of its own"
    )]
    OtherRepairs(String),
    /// No gateway of that name runs.
    #[error("no gateway called {0:?} runs: `skyhaul gateway run FILE` starts one")]
    NotRunning(String),
    /// A running gateway refuses a request; the text is its answer.
    #[error("{0}")]
    Refuses(String),
    /// The stream of a capture ended before its end was announced.
    #[error("the gateway {0:?} has ended or gave up during the capture: the files hold what had come")]
    CaptureCut(String),
    /// A forwarded port leads back to this machine.
    #[error("forward: {0} is an address of this machine: write that of a server behind the link")]
    Loop(std::net::SocketAddrV4),
    /// An interface of the file is down.
    #[error("{0} is down: ip link set {0} up")]
    InterfaceDown(String),
    /// An interface belongs to a VRF, whose routes the kernel's sockets of the gateway do not use.
    #[error(
        "{interface} belongs to the VRF {vrf}, in which connections cannot be split: take it out (ip link set {interface} nomaster), and \
         choose routes by rules (ip rule) instead"
    )]
    InVrf {
        /// The interface.
        interface: String,
        /// The VRF.
        vrf: String,
    },
    /// IP forwarding is disabled in the kernel.
    #[error("{family} forwarding is off: sysctl -w {key}=1")]
    NoForwarding {
        /// "IPv4" or "IPv6".
        family: &'static str,
        /// The sysctl key.
        key: &'static str,
    },
    /// The process may not open a packet socket.
    #[error(
        "[evidence] needs a packet socket: run it as root or with CAP_NET_RAW; a unit of systemd needs CAP_NET_RAW in \
         CapabilityBoundingSet and AmbientCapabilities, and AF_PACKET in RestrictAddressFamilies"
    )]
    NoPacketSocket,
    /// An error of a network device.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Any other error of the operating system.
    #[error("cannot {what}: {source}")]
    Os {
        /// The operation that failed.
        what: String,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl GatewayError {
    /// Makes an error of the operating system, where `what` is the operation that failed.
    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Os { what, source }
    }
    /// An error of opening the UDP port of a section of the file. Ports below 1024 need another capability than the rest of the gateway.
    pub(crate) fn udp_port(section: &str, port: u16) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let what = format!("open UDP port {port} for [{section}]");
            match source.kind() {
                io::ErrorKind::PermissionDenied if port < 1024 => {
                    Self::os(what + ", which needs CAP_NET_BIND_SERVICE")(source)
                }
                io::ErrorKind::PermissionDenied => NetError::Privileges { what }.into(),
                _ => Self::os(what)(source),
            }
        }
    }
    /// The error when a thread has panicked: the whole gateway ends, so that its supervisor starts another one.
    pub(crate) fn panicked() -> Self {
        Self::os("run")(io::Error::other("a thread of the gateway has panicked: standard error says where"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_refused_names_the_capability() {
        let says = |port: u16, errno: i32| {
            GatewayError::udp_port("repair", port)(io::Error::from_raw_os_error(errno)).to_string()
        };
        let (denied, taken) = (nix::Error::EACCES as i32, nix::Error::EADDRINUSE as i32);
        assert!(
            says(500, denied)
                .starts_with("cannot open UDP port 500 for [repair], which needs CAP_NET_BIND_SERVICE: ")
        );
        assert!(
            says(21_321, denied)
                .starts_with("cannot open UDP port 21321 for [repair] without CAP_NET_ADMIN: ")
        );
        assert!(says(500, taken).starts_with("cannot open UDP port 500 for [repair]: "));
    }
}
