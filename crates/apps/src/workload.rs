//! The interface of a workload, and its demands.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::viewed::Viewed;
use core::convert::Infallible;
use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rng};

/// The transport of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A byte stream, in segments of fixed payload.
    Stream {
        /// Payload of a full segment, bytes.
        segment: u32,
    },
    /// Datagrams.
    Datagrams {
        /// Headers of each, bytes.
        header: u32,
        /// They are rate-controlled, and the sender knows the rate.
        yields: bool,
    },
}

/// A demand of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// A new connection for a transfer, with this many bytes available at once.
    Open {
        /// Number of the transfer, from 0.
        transfer: u64,
        /// Bytes; more may be written later.
        bytes: u64,
    },
    /// Write this many more bytes to its connection.
    Write(u64),
    /// Send a datagram of this many bytes, including headers.
    Datagram(u32),
    /// A frame was produced. No action is needed, since its data is demanded next; recorders log it.
    Frame(Frame),
}

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
    /// A segment of a byte stream, of at least one byte, that is next in order and completes nothing beyond itself: both of
    /// the above at once, as for most arrivals.
    Next {
        /// First byte.
        from: u64,
        /// End (exclusive).
        to: u64,
    },
    /// A datagram.
    Datagram(Datagram),
}

/// The state of an application when everything it has written is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A transfer is complete and its connection closed; more will follow.
    Next,
    /// A transfer is complete, and it was the last one.
    Last,
    /// It has finished; a transfer in progress was aborted, or had no known length.
    Over,
}

/// How to stop an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Take back unsent data; it has finished when the rest is acknowledged.
    TakeBack,
    /// Send all written data; it has finished when that is acknowledged.
    Drain,
    /// It has finished now.
    Over,
}

/// Named random streams of one sender, one for each purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    owner: Box<str>,
}

impl Streams {
    /// The streams of `owner`, such as `flows.bulk[0]`, in a run with this seed.
    #[must_use]
    pub fn of(seed: u64, owner: impl Into<Box<str>>) -> Self {
        Self { seed, owner: owner.into() }
    }
    /// The stream for one purpose, from its beginning.
    #[must_use]
    pub fn named(&self, purpose: &str) -> Rng {
        Rng::stream(self.seed, &format!("{}.{purpose}", self.owner))
    }
}

/// Inputs of a workload at its start.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The time.
    pub now: Instant,
    /// Its transport.
    pub over: Transport,
    /// Its random streams.
    pub streams: &'a Streams,
}

/// Why a configuration is refused.
pub trait Refusal: core::error::Error {
    /// The key within the application's table that is wrong; empty for the table itself.
    fn key(&self) -> String;
    /// The file named by the key, and its invalid line, from 1; 0 means the whole file.
    fn file(&self) -> Option<(&str, usize)> {
        None
    }
}

impl Refusal for Infallible {
    fn key(&self) -> String {
        String::new()
    }
}

/// The configuration of a workload.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Kind: Clone + Debug + PartialEq {
    /// The running workload.
    type Workload: Workload;
    /// Why a configuration is invalid.
    type Invalid: Refusal;
    /// It can send datagrams; the others need a byte stream.
    const DATAGRAMS: bool = false;
    /// Transfers have separate, possibly simultaneous connections.
    const MANY: bool = false;
    /// It must be informed of arrivals ([`Workload::arrived`]), and of the transport's state
    /// ([`Workload::feedback`]) if it [listens](Workload::listens) to that.
    const WATCHES: bool = false;

    /// Size of a datagram with its headers, bytes, if the file gives it.
    fn packet(&self) -> Option<u64> {
        None
    }
    /// Whether each of its units ends with a short segment that waits for nothing, so that delaying it delays the
    /// unit.
    fn ends_short(&self) -> bool {
        false
    }
    /// The configuration with defaults filled in.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn resolve(&self, over: Transport) -> Result<Self, Self::Invalid>;
    /// The workload, from a configuration that [`Self::resolve`] returned.
    fn build(&self, start: &Start<'_>) -> Self::Workload;
    /// Long-run data rate, bit/s; `None` means as fast as the network allows.
    fn offered(&self) -> Option<f64>;
    /// Connections opened per second, each for a separate transfer; `None` if it uses one connection.
    fn opens(&self) -> Option<f64> {
        None
    }
    /// Most connections that are open at a time; `None` if it uses one.
    fn connections(&self) -> Option<u32> {
        None
    }
    /// A short description for reports, which choose the format of each `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// A running workload.
pub trait Workload: Clone + Debug {
    /// When [`Self::poll`] must be called.
    fn next(&self) -> Instant;
    /// Its next demand by now.
    fn poll(&mut self, now: Instant) -> Option<Demand>;
    /// Everything written is acknowledged, over one of its connections if it has several.
    fn acknowledged(&mut self, _now: Instant) -> Outcome {
        Outcome::Over
    }
    /// Stops it.
    fn stop(&mut self) -> Stop;
    /// Whether its data may come to an end.
    fn is_finite(&self) -> bool;
    /// Number of transfers that have arrived at random, complete or not.
    fn transfers(&self) -> u64 {
        0
    }
    /// Whether its demands depend on the transport's state.
    fn listens(&self) -> bool {
        false
    }
    /// Reports the transport's state, if possible before [`Self::poll`].
    fn feedback(&mut self, _now: Instant, _told: &Feedback) {}
    /// Reports an arrival at the other end. Drivers that cannot see segments do not report them.
    fn arrived(&mut self, _now: Instant, _arrival: &Arrival) {}
    /// The transport gave up: nothing more will arrive.
    fn died(&mut self, _now: Instant) {}
    /// The results of its viewer until `end`, if there is one.
    fn viewed(&mut self, _end: Instant) -> Option<Viewed> {
        None
    }
    /// Video in the viewer's buffer, s.
    fn buffered(&mut self, _now: Instant) -> Option<f64> {
        None
    }
    /// How long a viewer's film has stood still so far, s.
    fn stood(&mut self, _now: Instant) -> Option<f64> {
        None
    }
}

/// Workloads with more than a few bytes of state are boxed: most flows send without end, and there may be many.
impl<W: Workload> Workload for Box<W> {
    #[inline]
    fn next(&self) -> Instant {
        (**self).next()
    }
    #[inline]
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        (**self).poll(now)
    }
    fn acknowledged(&mut self, now: Instant) -> Outcome {
        (**self).acknowledged(now)
    }
    fn stop(&mut self) -> Stop {
        (**self).stop()
    }
    #[inline]
    fn is_finite(&self) -> bool {
        (**self).is_finite()
    }
    fn transfers(&self) -> u64 {
        (**self).transfers()
    }
    #[inline]
    fn listens(&self) -> bool {
        (**self).listens()
    }
    fn feedback(&mut self, now: Instant, told: &Feedback) {
        (**self).feedback(now, told);
    }
    #[inline]
    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        (**self).arrived(now, arrival);
    }
    fn died(&mut self, now: Instant) {
        (**self).died(now);
    }
    fn viewed(&mut self, end: Instant) -> Option<Viewed> {
        (**self).viewed(end)
    }
    fn buffered(&mut self, now: Instant) -> Option<f64> {
        (**self).buffered(now)
    }
    fn stood(&mut self, now: Instant) -> Option<f64> {
        (**self).stood(now)
    }
}
