//! The interface of a workload, and its demands.

use crate::frame::Frame;
use crate::watch::Watch;
use core::convert::Infallible;
use core::fmt::Debug;
use skyhaul_base::{Instant, Rng};

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
    /// It needs the events of its data: see [`Watch`].
    const WATCHES: bool = false;
    /// The times of its pages, or of its transfers, are measured.
    const PAGES: bool = false;

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
    /// Segments of a page, and the mean pause after it, s; `None` if it does not load one page after the other.
    fn page(&self) -> Option<(u64, f64)> {
        None
    }
    /// Mean size of its transfers, bytes; `None` if it does not consist of transfers at random times.
    fn transfer_size(&self) -> Option<f64> {
        None
    }
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
    /// Number of transfers that have begun at random times, complete or not; 0 for workloads without such transfers.
    fn transfers(&self) -> u64 {
        0
    }
    /// Whether a page is in progress, or was when the workload was stopped.
    fn is_loading(&self) -> bool {
        false
    }
    /// The application as an observer of its data, if its [`Kind::WATCHES`].
    fn watch(&self) -> Option<&dyn Watch> {
        None
    }
    /// The same, to report events to it.
    fn watch_mut(&mut self) -> Option<&mut dyn Watch> {
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
    fn is_loading(&self) -> bool {
        (**self).is_loading()
    }
    fn watch(&self) -> Option<&dyn Watch> {
        (**self).watch()
    }
    fn watch_mut(&mut self) -> Option<&mut dyn Watch> {
        (**self).watch_mut()
    }
}
