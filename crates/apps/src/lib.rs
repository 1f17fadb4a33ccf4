//! What senders have to send: workloads over a byte stream or over datagrams.
//!
//! ```text
//! Config ── resolve ──▶ Config ── build ──▶ App ── poll(now) ──▶ Demand: open, write, datagram
//! (a file's)  (no default left)             ▲
//!                                           └── acknowledged(now), stop()
//! ```
//! A workload reads no clock and opens no connection, and but for [`video`], which keeps track of what is on its way, it
//! allocates nothing per packet: whoever runs it, the simulator or a
//! host on a real network, calls it at [`App::next`] and does what it demands. Random quantities come from named
//! streams ([`Streams`]), so that a workload is the same wherever it runs.
//!
//! Each workload has a file with its configuration, which is its form in scenario files, and with its [`Workload`]; the
//! list below is the only line outside of that file that a new one needs.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod bulk;
pub mod cbr;
mod datagram;
mod frame;
pub mod on_off;
pub mod pages;
mod short;
mod spans;
mod stream;
pub mod video;
mod viewed;
mod workload;

pub use arrivals::Arrivals;
pub use bulk::Bulk;
pub use datagram::{Datagram, Delays, HEADER, Measured, Numbered};
pub use frame::{Fate, Frame, FrameType};
pub use pages::Pages;
pub use stream::{Stream, USUAL_PACKET};
pub use viewed::{FIXED, FRAME_SHARES, Played, Share, Viewed};
pub use workload::{
    Arrival, Demand, Feedback, Kind, Outcome, Refusal, Start, Stop, Streams, Transport, Workload,
};

use core::fmt;
use skyhaul_base::Instant;

/// Expands the list below into the enum of configurations, the enum of workloads at work, the names, and the dispatch
/// from one to the other.
macro_rules! applications {
    ($($name:literal $variant:ident($config:ty)),* $(,)?) => {
        /// The application of a sender. Short form: "bulk".
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        #[schemars(rename = "AppSpec")]
        #[expect(missing_docs, reason = "the configuration of each workload documents itself")]
        pub enum Config {
            $(#[serde(rename = $name)] $variant($config),)*
        }

        /// A workload at work.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each workload documents itself")]
        pub enum App {
            $($variant(<$config as Kind>::Workload),)*
        }

        /// Why a configuration makes no sense.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the error of each workload documents itself")]
        pub enum Invalid {
            $($variant(<$config as Kind>::Invalid),)*
        }

        /// The names of all workloads in files.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Config {
            /// The workload's name in files.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
            /// It sends datagrams where it is told to; the others need a byte stream.
            #[must_use]
            pub fn sends_datagrams(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Kind>::DATAGRAMS,)* }
            }
            /// It has a viewer at the other end, who wants to hear what arrives.
            #[must_use]
            pub fn is_watched(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Kind>::WATCHES,)* }
            }
            /// Bytes of a datagram with its headers, if the file says so.
            #[must_use]
            pub fn packet(&self) -> Option<u64> {
                match self { $(Self::$variant(c) => c.packet(),)* }
            }
            /// Each of its units, such as a frame, ends with a short segment: whoever holds that back delays the unit.
            #[must_use]
            pub fn ends_short(&self) -> bool {
                match self { $(Self::$variant(c) => c.ends_short(),)* }
            }
            /// The same workload without defaults: everything that follows from what carries it is filled in.
            ///
            /// # Errors
            /// The key, and a sentence that says what to write instead.
            pub fn resolve(&self, over: Transport) -> Result<Self, Invalid> {
                Ok(match self {
                    $(Self::$variant(c) => Self::$variant(c.resolve(over).map_err(Invalid::$variant)?),)*
                })
            }
            /// The workload, which starts now.
            ///
            /// # Panics
            /// If the configuration is none that [`Self::resolve`] returns.
            #[must_use]
            pub fn build(&self, start: &Start<'_>) -> App {
                match self { $(Self::$variant(c) => App::$variant(c.build(start)),)* }
            }
            /// The rate at which there is data in the long run, in bit/s; `None` if as fast as the network takes it.
            #[must_use]
            pub fn offered(&self) -> Option<f64> {
                match self { $(Self::$variant(c) => c.offered(),)* }
            }
            /// How many connections it opens per second, each for a transfer of its own; `None` if it needs one for all.
            #[must_use]
            pub fn opens(&self) -> Option<f64> {
                match self { $(Self::$variant(c) => c.opens(),)* }
            }
            /// What it does in a few words, for reports, which say how they write a `number`.
            #[must_use]
            pub fn words(&self, number: &dyn Fn(f64) -> String) -> String {
                match self { $(Self::$variant(c) => c.words(number),)* }
            }
        }

        $(impl From<$config> for Config {
            fn from(c: $config) -> Self {
                Self::$variant(c)
            }
        })*

        impl App {
            /// When [`Self::poll`] has something; [`Instant::MAX`] for not before something else happens.
            #[inline]
            #[must_use]
            pub fn next(&self) -> Instant {
                match self { $(Self::$variant(w) => w.next(),)* }
            }
            /// What it wants by now; to be called until there is nothing.
            #[inline]
            pub fn poll(&mut self, now: Instant) -> Option<Demand> {
                match self { $(Self::$variant(w) => w.poll(now),)* }
            }
            /// Everything written to its connection is acknowledged. Only of interest while [`Self::is_finite`].
            pub fn acknowledged(&mut self, now: Instant) -> Outcome {
                match self { $(Self::$variant(w) => w.acknowledged(now),)* }
            }
            /// It is to end: it demands nothing more.
            pub fn stop(&mut self) -> Stop {
                match self { $(Self::$variant(w) => w.stop(),)* }
            }
            /// What it has written comes to an end: somebody has to look whether all of it is acknowledged.
            #[inline]
            #[must_use]
            pub fn is_finite(&self) -> bool {
                match self { $(Self::$variant(w) => w.is_finite(),)* }
            }
            /// How many transfers have arrived at random, complete or not.
            #[must_use]
            pub fn transfers(&self) -> u64 {
                match self { $(Self::$variant(w) => w.transfers(),)* }
            }
            /// It wants to hear what arrives ([`Self::arrived`]), and how the transport does ([`Self::feedback`]).
            #[must_use]
            pub fn watches(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Kind>::WATCHES,)* }
            }
            /// How the transport does, for who watches: to be told before [`Self::poll`].
            pub fn feedback(&mut self, now: Instant, told: &Feedback) {
                match self { $(Self::$variant(w) => w.feedback(now, told),)* }
            }
            /// Something has come to the other end, for who watches.
            pub fn arrived(&mut self, now: Instant, arrival: &Arrival) {
                match self { $(Self::$variant(w) => w.arrived(now, arrival),)* }
            }
            /// The transport gave up: nothing more arrives.
            pub fn died(&mut self, now: Instant) {
                match self { $(Self::$variant(w) => w.died(now),)* }
            }
            /// What a viewer got until `end`, if there is one.
            #[must_use]
            pub fn viewed(&self, end: Instant) -> Option<Viewed> {
                match self { $(Self::$variant(w) => w.viewed(end),)* }
            }
            /// Film that a viewer has and has not seen, s.
            #[must_use]
            pub fn buffered(&self, now: Instant) -> Option<f64> {
                match self { $(Self::$variant(w) => w.buffered(now),)* }
            }
            /// How long a viewer's film has stood still so far, s.
            #[must_use]
            pub fn stood(&self, now: Instant) -> Option<f64> {
                match self { $(Self::$variant(w) => w.stood(now),)* }
            }
            /// Each transfer has a connection of its own, side by side with others; no acknowledgement concerns it.
            #[must_use]
            pub fn opens_many(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Kind>::MANY,)* }
            }
        }

        impl fmt::Display for Invalid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(e) => e.fmt(f),)* }
            }
        }

        impl core::error::Error for Invalid {}

        impl Refusal for Invalid {
            fn key(&self) -> String {
                match self { $(Self::$variant(e) => e.key(),)* }
            }
            fn file(&self) -> Option<(&str, usize)> {
                match self { $(Self::$variant(e) => e.file(),)* }
            }
        }
    };
}

applications! {
    "arrivals" Arrivals(arrivals::Config),
    "bulk" Bulk(bulk::Config),
    "cbr" Cbr(cbr::Config),
    "on-off" OnOff(on_off::Config),
    "pages" Pages(pages::Config),
    "video" Video(video::Config),
}

impl Config {
    /// Unlimited data.
    pub const BULK: Self = Self::Bulk(bulk::Config {});
}

impl Default for Config {
    fn default() -> Self {
        Self::BULK
    }
}
