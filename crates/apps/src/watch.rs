//! Applications with a viewer at the other end: the driver reports to the application what happens to its data.

use crate::datagram::Datagram;
use crate::viewed::Viewed;
use skyhaul_base::{Duration, Instant};

/// The state of a transport, reported to an application that watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Bytes written and not acknowledged.
    pub unacknowledged: u64,
    /// The rate that the transport currently allows, bit/s, if known: a window per RTT, or a rate.
    pub allowed: Option<f64>,
    /// The smoothed RTT, if known.
    pub round_trip: Option<Duration>,
}

/// An arrival of an application's data at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A byte stream is complete up to this many bytes.
    InOrder {
        /// How many.
        bytes: u64,
    },
    /// A segment of a byte stream, in order or not, by the offsets of its first byte and of its end; the stream
    /// begins at 0. In-order data that it completes is reported afterwards.
    Segment {
        /// First byte.
        from: u64,
        /// End (exclusive).
        to: u64,
    },
    /// A datagram.
    Datagram(Datagram),
}

/// Events reported to an application with a viewer, and the results of the viewer.
pub trait Watch {
    /// Whether its demands depend on the transport's state.
    fn listens(&self) -> bool;
    /// Reports the transport's state to an application that uses it, before it is asked for its demands.
    fn feedback(&mut self, feedback: &Feedback);
    /// Reports an arrival at the other end. A driver that cannot see segments leaves out [`Arrival::Segment`].
    fn arrived(&mut self, now: Instant, arrival: &Arrival);
    /// The transport gave up: nothing more will arrive.
    fn died(&mut self, now: Instant);
    /// The results of the viewer until `end`.
    fn viewed(&self, end: Instant) -> Viewed;
    /// Video in the viewer's buffer, s; `None` before the first frame.
    fn buffered(&self, now: Instant) -> Option<f64>;
    /// Total stall time of the viewer so far, s; `None` before the first frame.
    fn stalled(&self, now: Instant) -> Option<f64>;
    /// Memory of the frames and packets that the viewer waits for or remembers, bytes, by estimated sizes: the same on every
    /// machine.
    fn held(&self) -> u64;
}
