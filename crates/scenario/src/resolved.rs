//! The resolved scenario: what simulator and emulator are built from. No defaults, no references, no units
//! left; every value is typed.

use skyhaul_base::Duration;
use skyhaul_path as path;
use std::sync::Arc;

pub use crate::chain::{AckMode, ChainKind, Open, Overload};
pub use crate::orbit::Orbit;
pub use crate::series::Series;
pub use crate::transport::Transport;
pub use skyhaul_apps::Config as App;
pub use skyhaul_base::dist::{Sizes, Times};
pub use skyhaul_path::{Change, Delay, Limit};
pub use skyhaul_relay::Transport as LegTransport;

/// A scenario in which nothing is open any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// One line for figures and reports; may be empty.
    pub title: String,
    /// How long the run lasts. Zero is a run without events.
    pub duration: Duration,
    /// Seed of all random streams.
    pub seed: u64,
    /// Links, sorted by name: the order in the file does not matter.
    pub links: Vec<Link>,
    /// Groups of flows, sorted by name. Never empty. Each leg of a chain is one.
    pub flows: Vec<FlowGroup>,
    /// Gateways, sorted by name.
    pub gateways: Vec<Gateway>,
    /// What to record.
    pub record: Record,
    /// What changes during the run, in the order in which it happens.
    pub events: Vec<Event>,
    /// What happens to gateways, in the order in which it happens.
    pub mishaps: Vec<Mishap>,
}

/// A gateway at which connections can be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Name in the file.
    pub name: String,
    /// Index of the link behind which it stands.
    pub behind: usize,
    /// What it holds for a connection in each direction, bytes, if the file says so; see [`Chain::buffers`].
    pub buffer: Option<u64>,
    /// How long it takes to pass data on.
    pub delay: Duration,
    /// Connections of senders that it takes at a time.
    pub connections: Option<u64>,
    /// What it does with more of them.
    pub overload: Overload,
}

/// Something that happens to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// When, from the beginning of the run.
    pub at: Duration,
    /// Index into [`Resolved::gateways`].
    pub gateway: usize,
    /// What happens.
    pub what: Misfortune,
}

/// What happens to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfortune {
    /// It crashes, and is there again at once: it knows none of its connections.
    Crash,
    /// Packets of its connections take a way past it, and past all other gateways.
    Reroute,
}

/// What a group has to do with a chain of connections.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// It is the first leg, and has what is to be sent.
    Head(Chain),
    /// It is another leg.
    Leg {
        /// What the gateway at which it begins takes to pass data on.
        delay: Duration,
        /// What carries its data.
        transport: LegTransport,
    },
}

/// A chain of connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// What stands between the ends.
    pub kind: ChainKind,
    /// The links of all legs, in order.
    pub path: Vec<usize>,
    /// The gateways at which it is cut, in order.
    pub gateways: Vec<usize>,
    /// The groups of the legs that begin there.
    pub legs: Vec<usize>,
    /// What each gateway holds for a connection in each direction, bytes.
    pub buffers: Vec<u64>,
    /// When a gateway opens the next leg.
    pub open: Open,
    /// When a gateway acknowledges.
    pub ack_mode: AckMode,
    /// Probability that an acknowledgement passes by a gateway that answers in the receiver's name.
    pub asym: f64,
    /// No gateway can read it.
    pub encrypted: bool,
}

/// A duplex link: two directions that share nothing but their name.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name in the file; random streams are called after it.
    pub name: String,
    /// From senders to receivers: data.
    pub forward: Direction,
    /// From receivers to senders: acknowledgements.
    pub reverse: Direction,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Rate of the transmitter.
    pub rate: path::rate::Config,
    /// Propagation delay; of a link over satellites that at the start.
    pub delay: Delay,
    /// Satellites that move; the same of both directions.
    pub orbit: Option<Arc<Orbit>>,
    /// Packets may overtake each other in flight.
    pub allow_reorder: bool,
    /// The queue in front of the transmitter.
    pub queue: path::QueueConfig,
    /// Losses of the channel.
    pub error: path::error::Config,
    /// The channel's losses apply to pure acknowledgements too (default). If false those never get lost by
    /// `error`, nor are they counted by it.
    pub ack_errors: bool,
    /// It is up from the start.
    pub up: bool,
    /// What is in flight is lost when it goes down.
    pub drop_in_flight: bool,
    /// What rain or shadowing does to it.
    pub fade: Option<Box<path::fade::Config>>,
    /// Forward error correction.
    pub fec: Option<path::fec::Config>,
    /// Repeats on request.
    pub arq: Option<path::arq::Config>,
    /// Bytes that a pure acknowledgement of TCP takes where headers are compressed; `None`: its own size.
    pub ack_size: Option<u32>,
    /// Acknowledgements are made anew at the far side, one for so many bytes; `None`: they are not.
    pub reconstruct_acks: Option<u32>,
}

/// A change of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, from the beginning of the run.
    pub at: Duration,
    /// Index into [`Resolved::links`].
    pub link: usize,
    /// The direction from senders to receivers.
    pub forward: bool,
    /// What it becomes.
    pub change: Change,
}

/// A group of like flows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name in the file; random streams are called after it.
    pub name: String,
    /// How many flows, at least 1.
    pub count: u32,
    /// Links that data crosses, as indices into [`Resolved::links`], in this order in the forward direction;
    /// acknowledgements cross them backwards in the reverse direction. Never empty, no link twice.
    pub path: Vec<usize>,
    /// Delay of the access on top of the links, in each direction.
    pub extra_delay: Duration,
    /// What carries the data.
    pub transport: Transport,
    /// Congestion control; of meaning over TCP only.
    pub cc: skyhaul_cc::Config,
    /// Endpoint, the same at both ends. `receive_buffer` holds `rwnd`. Of datagrams only the sizes have a meaning.
    pub endpoint: skyhaul_tcp::Config,
    /// What the sender has to send.
    pub app: App,
    /// When each flow starts.
    pub start: Start,
    /// When the source stops to produce data; `None`: at the end of the run.
    pub stop: Option<Duration>,
    /// Connections open with a handshake; otherwise both ends are established at the start.
    pub handshake: bool,
    /// What a sender without handshake takes as its first RTT sample; `None` exactly if `handshake`.
    pub known_rtt: Option<Duration>,
    /// What it has to do with a chain of connections; nothing, if the file does not say.
    pub part: Option<Box<Part>>,
}

/// When flows start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All at this time.
    At(Duration),
    /// Each at its own time, uniform on [`from`, `to`).
    Uniform {
        /// Earliest.
        from: Duration,
        /// Latest, not before `from`.
        to: Duration,
    },
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Interval between samples of the series, never zero; `None`: no series.
    pub sample: Option<Duration>,
    /// Sorted, without repetitions.
    pub series: Vec<Series>,
}

impl FlowGroup {
    /// The chain that it heads.
    #[must_use]
    pub fn chain(&self) -> Option<&Chain> {
        match self.part.as_deref() {
            Some(Part::Head(chain)) => Some(chain),
            _ => None,
        }
    }
    /// What carries its data, if it is a leg with a transport of its own kind.
    #[must_use]
    pub fn rate_leg(&self) -> Option<&skyhaul_relay::xtp::Config> {
        match self.part.as_deref() {
            Some(Part::Leg { transport: LegTransport::XtpLike(config), .. }) => Some(config),
            _ => None,
        }
    }
    /// It is a leg of another group's chain, and has nothing to send of its own.
    #[must_use]
    pub fn is_leg(&self) -> bool {
        matches!(self.part.as_deref(), Some(Part::Leg { .. }))
    }
    /// What it is called in results: the congestion control, or `udp`, `tfrc`, `ssvp-reconstructed`.
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
    /// RTT of a flow group without queueing: propagation both ways and access, without serialisation.
    #[must_use]
    pub fn propagation_rtt(&self, flow: &FlowGroup) -> Duration {
        let links = flow.path.iter().map(|&i| &self.links[i]);
        links.fold(flow.extra_delay + flow.extra_delay, |sum, l| {
            sum + l.forward.delay.base() + l.reverse.delay.base()
        })
    }
}

impl Direction {
    /// A link as a part of a chain, with what concerns acknowledgements.
    #[must_use]
    pub fn hop<P: path::PacketView>(&self, link: path::Link<P>) -> path::Hop<P> {
        let hop = path::Hop::new(link, !self.ack_errors);
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
    /// The same as the link model takes it. What concerns acknowledgements is not part of it: see [`Self::hop`].
    #[must_use]
    pub fn link_config(&self) -> path::LinkConfig {
        path::LinkConfig {
            rate: self.rate.clone(),
            queue: self.queue,
            delay: self.delay.clone(),
            allow_reorder: self.allow_reorder,
            error: self.error.clone(),
            drop_inflight: self.drop_in_flight,
            two_ways: self.orbit.as_ref().is_some_and(|o| o.both_carry()),
            fec: self.fec.clone(),
            arq: self.arq,
        }
    }
}
