//! The resolved scenario, from which simulator and emulator are built. It has no defaults, references or units left;
//! every value is typed.

use crate::model::direction_keys;
use skyhaul_base::{Duration, Rate, Rng};
use skyhaul_path::{self as path, QueueConfig, arq, error, fade, fec, rate};
use std::sync::Arc;

pub use crate::chain::{AckMode, ChainKind, Open, Overload};
pub use crate::direction::FlowDirection;
pub use crate::orbit::Orbit;
pub use crate::series::Series;
pub use crate::transport::Transport;
pub use skyhaul_apps::Config as App;
pub use skyhaul_base::dist::{Sizes, Times};
pub use skyhaul_path::{Change, Delay, Limit};
pub use skyhaul_relay::Transport as LegTransport;
pub use skyhaul_relay::headers::Compression;

/// A fully resolved scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// One line for figures and reports; may be empty.
    pub title: String,
    /// How long the run lasts. Zero is a run without events.
    pub duration: Duration,
    /// Seed of all random streams.
    pub seed: u64,
    /// Memory that the run may use, bytes. One that would need more is refused, and one that reaches it ends there.
    pub memory: u64,
    /// Links, sorted by name: the order in the file does not matter.
    pub links: Vec<Link>,
    /// Flow groups, sorted by name; never empty. Each leg of a chain is a group.
    pub flows: Vec<FlowGroup>,
    /// Gateways, sorted by name.
    pub gateways: Vec<Gateway>,
    /// Segments that two gateways repair, sorted by name.
    pub repair: Vec<Repair>,
    /// What to record.
    pub record: Record,
    /// Changes during the run, in order of time.
    pub events: Vec<Event>,
    /// Events of gateways, in order of time.
    pub gateway_events: Vec<GatewayEvent>,
}

/// A gateway at which connections can be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Name in the file.
    pub name: String,
    /// Index of the link that precedes it.
    pub behind: usize,
    /// Its buffer per connection and direction, bytes, if given; see [`Chain::buffers`].
    pub buffer: Option<u64>,
    /// Its forwarding delay.
    pub delay: Duration,
    /// Largest number of connections that it splits at a time.
    pub connections: Option<u64>,
    /// What it does with further connections.
    pub overload: Overload,
}

/// A segment that two gateways repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// Name in the file.
    pub name: String,
    /// The links between the gateways, in the order of the paths that cross them.
    pub links: Vec<usize>,
    /// Names of groups that are not repaired, sorted.
    pub pass: Vec<String>,
    /// The gateway that sends into the forward direction of the links.
    pub forward: skyhaul_repair::Config,
    /// The gateway that sends into their reverse direction.
    pub reverse: skyhaul_repair::Config,
}

impl Repair {
    /// Whether the packets of a group are repaired: they are those of its ends, since a gateway does not repair its own
    /// connections.
    #[must_use]
    pub fn repairs(&self, group: &FlowGroup) -> bool {
        let split = group.chain().is_some_and(|c| c.kind != ChainKind::E2e && !c.encrypted);
        !split && !group.is_leg() && self.pass.binary_search(&group.name).is_err()
    }
}

/// An event of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayEvent {
    /// Time since the start of the run.
    pub at: Duration,
    /// Index into [`Resolved::gateways`].
    pub gateway: usize,
    /// The kind of event.
    pub kind: GatewayEventKind,
}

/// What happens at a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEventKind {
    /// It crashes and restarts immediately, without knowledge of its connections.
    Crash,
    /// Packets of its connections bypass it and all other gateways.
    Reroute,
    /// It hands its split connections over.
    Handover(GatewayHandover),
}

/// The handover of a gateway's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayHandover {
    /// Index of the gateway that takes them over.
    pub to: usize,
    /// The links of the leg that starts there; `None` if they stay the same.
    pub path: Option<Vec<usize>>,
    /// Time that the signalling takes.
    pub signalling: Duration,
    /// Rate between the two gateways.
    pub backhaul: Rate,
}

/// The part of a group in a chain of connections.
#[derive(Clone, Debug, PartialEq)]
pub enum ChainRole {
    /// The first leg, which has the application.
    Head(Chain),
    /// Another leg.
    Leg {
        /// Forwarding delay of the gateway at which it begins.
        delay: Duration,
        /// Its transport.
        transport: LegTransport,
        /// Its compressed headers.
        headers: Option<Compression>,
    },
}

/// A chain of connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// What lies between the ends.
    pub kind: ChainKind,
    /// The links of all legs, in order.
    pub path: Vec<usize>,
    /// The gateways at which it is split, in order.
    pub gateways: Vec<usize>,
    /// The groups of the legs that begin there.
    pub legs: Vec<usize>,
    /// Buffer of each gateway per connection and direction, bytes.
    pub buffers: Vec<u64>,
    /// When a gateway opens the next leg.
    pub open: Open,
    /// When a gateway acknowledges.
    pub ack_mode: AckMode,
    /// Probability that an acknowledgement bypasses a spoofing gateway.
    pub asym: f64,
    /// Packets are encrypted: gateways can only forward them.
    pub encrypted: bool,
}

/// A duplex link: two directions that share only their name.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name in the file; random streams are named after it.
    pub name: String,
    /// Along the paths: data of all groups but those that send in reverse.
    pub forward: Direction,
    /// Against the paths: acknowledgements.
    pub reverse: Direction,
}

macro_rules! direction {
    (
        { $($(#[$doc_a:meta])+ $a:ident: $from_a:ty => $type_a:ty,)+ }
        { $($(#[$doc_b:meta])+ $b:ident: $from_b:ty => $type_b:ty = $default:expr,)+ }
    ) => {
        /// One direction of a link.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Direction {
            $($(#[$doc_a])+ pub $a: $type_a,)+
            /// The satellites, the same in both directions; with them `delay` is that at the start.
            pub orbit: Option<Arc<Orbit>>,
            $($(#[$doc_b])+ pub $b: $type_b,)+
        }

        impl Direction {
            /// A direction with this rate and delay, and the default of every other key; its queue has no limit.
            #[must_use]
            pub fn new($($a: $type_a),+) -> Self {
                Self { $($a,)+ orbit: None, $($b: $default),+ }
            }
        }
    };
}
direction_keys!(direction);

/// A change of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time since the start of the run.
    pub at: Duration,
    /// Index into [`Resolved::links`].
    pub link: usize,
    /// The direction from senders to receivers.
    pub forward: bool,
    /// The new value.
    pub change: Change,
}

/// A group of identical flows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name in the file; random streams are named after it.
    pub name: String,
    /// Number of flows, at least 1.
    pub count: u32,
    /// The path, as indices into [`Resolved::links`] in forward order. It is never empty and has no link twice.
    pub path: Vec<usize>,
    /// The direction in which its data crosses the links of the path; acknowledgements cross the other.
    pub direction: FlowDirection,
    /// Access delay in each direction, in addition to the links.
    pub extra_delay: Duration,
    /// DSCP of its packets, but for those of low priority.
    pub dscp: u8,
    /// The transport.
    pub transport: Transport,
    /// Congestion control; used over TCP only.
    pub cc: skyhaul_cc::Config,
    /// Endpoint, the same at both ends. `receive_buffer` holds `rwnd`. For datagrams only the sizes matter.
    pub endpoint: skyhaul_tcp::Config,
    /// The application of the sender.
    pub app: App,
    /// When each flow starts.
    pub start: Start,
    /// When the application stops; `None` for the end of the run.
    pub stop: Option<Duration>,
    /// Connections open with a handshake; otherwise both ends are established at the start.
    pub handshake: bool,
    /// Connections close with a FIN in each direction; otherwise they are over once all data is acknowledged.
    pub close: bool,
    /// First RTT sample of a sender without handshake; `None` exactly if `handshake`.
    pub known_rtt: Option<Duration>,
    /// Its part in a chain of connections, if any.
    pub role: Option<Box<ChainRole>>,
}

/// When flows start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All at this time.
    At(Duration),
    /// Each at its own time, uniform on [`from`, `to`).
    Uniform {
        /// Earliest time.
        from: Duration,
        /// Latest time, not before `from`.
        to: Duration,
    },
}

/// What to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Interval between samples of the series, never zero; `None`: no series.
    pub sample: Option<Duration>,
    /// The series, sorted, without duplicates.
    pub series: Vec<Series>,
    /// The delay of every data packet is measured.
    pub packet_delay: bool,
}

impl FlowGroup {
    /// Whether its data crosses the forward direction of links.
    #[must_use]
    pub fn sends_forward(&self) -> bool {
        self.direction == FlowDirection::Forward
    }
    /// The direction of a link that its data crosses.
    #[must_use]
    pub fn data_direction<'a>(&self, link: &'a Link) -> &'a Direction {
        if self.sends_forward() { &link.forward } else { &link.reverse }
    }
    /// The direction of a link that its acknowledgements cross.
    #[must_use]
    pub fn ack_direction<'a>(&self, link: &'a Link) -> &'a Direction {
        if self.sends_forward() { &link.reverse } else { &link.forward }
    }
    /// The chain of which it is the first leg.
    #[must_use]
    pub fn chain(&self) -> Option<&Chain> {
        match self.role.as_deref() {
            Some(ChainRole::Head(chain)) => Some(chain),
            _ => None,
        }
    }
    /// Its transport, if it is a leg without TCP.
    #[must_use]
    pub fn rate_leg(&self) -> Option<&skyhaul_relay::xtp::Config> {
        match self.role.as_deref() {
            Some(ChainRole::Leg { transport: LegTransport::XtpLike(config), .. }) => Some(config),
            _ => None,
        }
    }
    /// Its compressed headers, if it is a leg that has them.
    #[must_use]
    pub fn header_compression(&self) -> Option<&Compression> {
        match self.role.as_deref() {
            Some(ChainRole::Leg { headers, .. }) => headers.as_ref(),
            _ => None,
        }
    }
    /// Whether it is a leg of another group's chain, without an application of its own.
    #[must_use]
    pub fn is_leg(&self) -> bool {
        matches!(self.role.as_deref(), Some(ChainRole::Leg { .. }))
    }
    /// Its label in results: the congestion control, or `udp`, `tfrc`, `ssvp-reconstructed`.
    #[must_use]
    pub fn label(&self) -> std::borrow::Cow<'static, str> {
        match self.transport {
            Transport::Tcp if self.rate_leg().is_some() => "xtp-like".into(),
            Transport::Tcp => self.cc.label(),
            Transport::Udp => "udp".into(),
            Transport::Tfrc(_) | Transport::Ssvp(_) => self.transport.rate().map_or("", |r| r.label()).into(),
        }
    }
}

impl Resolved {
    /// RTT of a flow group without queueing and serialisation: propagation and access delay in both directions.
    #[must_use]
    pub fn propagation_rtt(&self, flow: &FlowGroup) -> Duration {
        let links = flow.path.iter().map(|&i| &self.links[i]);
        links.fold(flow.extra_delay + flow.extra_delay, |sum, l| {
            sum + l.forward.delay.base() + l.reverse.delay.base()
        })
    }
}

impl Direction {
    /// A link as a hop of a path, with its handling of acknowledgements and its copies. `name` is that of the direction, such
    /// as `sat.forward`, and with `seed` names the random stream `links.NAME.duplicate`.
    #[must_use]
    pub fn hop<P: path::PacketView>(&self, link: path::Link<P>, seed: u64, name: &str) -> path::Hop<P> {
        let hop = path::Hop::new(link);
        let hop = if self.duplicate > 0.0 {
            hop.duplicating(self.duplicate, Rng::stream(seed, &format!("links.{name}.duplicate")))
        } else {
            hop
        };
        let hop = match self.ack_size {
            Some(size) => hop.compressing(size),
            None => hop,
        };
        match self.reconstruct_acks {
            Some(bytes) => hop.reconstructing(bytes),
            None if self.queue.discipline.compacts_acks() => hop.expanding(),
            None => hop,
        }
    }
    /// The configuration of the link model. The handling of acknowledgements is not part of it: see [`Self::hop`].
    #[must_use]
    pub fn link_config(&self) -> path::LinkConfig {
        path::LinkConfig {
            rate: self.rate.clone(),
            queue: self.queue,
            delay: self.delay.clone(),
            allow_reorder: self.allow_reorder,
            error: self.error.clone(),
            spares_acks: !self.ack_errors,
            drop_inflight: self.drop_in_flight,
            two_paths: self.orbit.as_ref().is_some_and(|o| o.both_carry()),
            fec: self.fec.clone(),
            arq: self.arq,
        }
    }
}
