//! What an application provides, and what it asks for.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::viewed::Viewed;
use core::convert::Infallible;
use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rng};

/// What carries the data of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A byte stream, in segments of so many bytes of payload.
    Stream {
        /// Payload of a full segment, bytes.
        segment: u32,
    },
    /// Datagrams.
    Datagrams {
        /// Headers of each, bytes.
        header: u32,
        /// They keep to a rate that yields, and the sender knows it.
        yields: bool,
    },
}

/// What an application asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// A new connection for a transfer, with so many bytes that are there at once.
    Open {
        /// Number of the transfer, from 0.
        transfer: u64,
        /// Bytes; more may be written later.
        bytes: u64,
    },
    /// So many more bytes on its connection.
    Write(u64),
    /// A datagram of so many bytes, headers included.
    Datagram(u32),
    /// A frame was produced. Nothing has to be done: what it needs is demanded next. A record of the run takes note.
    Frame(Frame),
}

/// What a transport tells an application that follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Bytes that were written and are not acknowledged.
    pub unacknowledged: u64,
    /// The rate that the transport allows at present, in bit/s, if it knows: a window per round trip, or a rate.
    pub allowed: Option<f64>,
    /// The smoothed round trip, if it knows.
    pub round_trip: Option<Duration>,
}

/// What of an application's data has come to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Of a byte stream so many bytes in all, in order.
    InOrder {
        /// How many.
        bytes: u64,
    },
    /// Of a byte stream a segment, in order or not, by the offsets of its first byte and behind its last; the stream begins
    /// at 0. What it completes in order is said after it.
    Segment {
        /// First byte.
        from: u64,
        /// Behind the last byte.
        to: u64,
    },
    /// Of a byte stream a segment that is the next one in order and completes nothing beyond itself: both of the above at
    /// once, as most segments arrive.
    Next {
        /// First byte.
        from: u64,
        /// Behind the last byte.
        to: u64,
    },
    /// A datagram.
    Datagram(Datagram),
}

/// What becomes of an application when everything that it has written is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A transfer is complete, and its connection is over; there will be more.
    Next,
    /// A transfer is complete, and it was the last one.
    Last,
    /// It is over; what was under way was cut short, or was no transfer of a known length.
    Over,
}

/// What is to be done about an application that was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What was written and not yet sent is taken back; it is over when the rest is acknowledged.
    TakeBack,
    /// What was written is sent; it is over when that is acknowledged.
    Drain,
    /// It is over now.
    Over,
}

/// Named random streams of one sender, one for each purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    owner: Box<str>,
}

impl Streams {
    /// Those of `owner`, such as `flows.bulk[0]`, in a run of this seed.
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

/// What a workload starts with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// When.
    pub now: Instant,
    /// What carries it.
    pub over: Transport,
    /// Its random streams.
    pub streams: &'a Streams,
}

/// Why a configuration is refused.
pub trait Refusal: core::error::Error {
    /// The key within the application's table that is wrong; empty for the table itself.
    fn key(&self) -> String;
    /// The file that the key names and the line of it that is wrong, from 1; 0 for the whole of it.
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
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Kind: Clone + Debug + PartialEq {
    /// The workload at work.
    type Workload: Workload;
    /// Why a configuration makes no sense.
    type Invalid: Refusal;
    /// It sends datagrams where it is told to; the others need a byte stream.
    const DATAGRAMS: bool = false;
    /// Each transfer has a connection of its own, side by side with others.
    const MANY: bool = false;
    /// It wants to hear what arrives ([`Workload::arrived`]), and how the transport does ([`Workload::feedback`]).
    const WATCHES: bool = false;

    /// Bytes of a datagram with its headers, if the file says so.
    fn packet(&self) -> Option<u64> {
        None
    }
    /// Each of its units ends with a short segment that waits for nothing, so that whoever holds that back delays the unit.
    fn ends_short(&self) -> bool {
        false
    }
    /// The same without defaults.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn resolve(&self, over: Transport) -> Result<Self, Self::Invalid>;
    /// The workload, from a configuration that [`Self::resolve`] returned.
    fn build(&self, start: &Start<'_>) -> Self::Workload;
    /// The rate at which there is data in the long run, in bit/s; `None` if as fast as the network takes it.
    fn offered(&self) -> Option<f64>;
    /// How many connections it opens per second, each for a transfer of its own; `None` if it needs one for all.
    fn opens(&self) -> Option<f64> {
        None
    }
    /// What it does in a few words, for reports, which say how they write a `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// A workload at work.
pub trait Workload: Clone + Debug {
    /// When [`Self::poll`] has something.
    fn next(&self) -> Instant;
    /// What it wants by now.
    fn poll(&mut self, now: Instant) -> Option<Demand>;
    /// Everything written is acknowledged.
    fn acknowledged(&mut self, _now: Instant) -> Outcome {
        Outcome::Over
    }
    /// It is to end.
    fn stop(&mut self) -> Stop;
    /// What it has written comes to an end.
    fn is_finite(&self) -> bool;
    /// How many transfers have arrived at random, complete or not.
    fn transfers(&self) -> u64 {
        0
    }
    /// How the transport does; told before [`Self::poll`] where it can be.
    fn feedback(&mut self, _now: Instant, _told: &Feedback) {}
    /// Something has come to the other end. Of a segment everybody who cannot see them is silent.
    fn arrived(&mut self, _now: Instant, _arrival: &Arrival) {}
    /// The transport gave up: nothing more arrives.
    fn died(&mut self, _now: Instant) {}
    /// What a viewer got until `end`, if there is one.
    fn viewed(&self, _end: Instant) -> Option<Viewed> {
        None
    }
    /// Film that a viewer has and has not seen, s.
    fn buffered(&self, _now: Instant) -> Option<f64> {
        None
    }
    /// How long a viewer's film has stood still so far, s.
    fn stood(&self, _now: Instant) -> Option<f64> {
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
    fn is_finite(&self) -> bool {
        (**self).is_finite()
    }
    fn transfers(&self) -> u64 {
        (**self).transfers()
    }
    fn feedback(&mut self, now: Instant, told: &Feedback) {
        (**self).feedback(now, told);
    }
    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        (**self).arrived(now, arrival);
    }
    fn died(&mut self, now: Instant) {
        (**self).died(now);
    }
    fn viewed(&self, end: Instant) -> Option<Viewed> {
        (**self).viewed(end)
    }
    fn buffered(&self, now: Instant) -> Option<f64> {
        (**self).buffered(now)
    }
    fn stood(&self, now: Instant) -> Option<f64> {
        (**self).stood(now)
    }
}
