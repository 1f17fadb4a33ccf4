//! Workloads of senders, over a byte stream or over datagrams.
//!
//! ```text
//! Config ── resolve ──▶ Config ── build ──▶ App ── poll(now) ──▶ Demand: open, write, datagram, frame
//! (in a file)           (complete)          ▲
//!                                           └── acknowledged(now), stop()
//! ```
//! A workload reads no clock, opens no connection and, except [`video`], which tracks data in flight, does not
//! allocate per packet. Its driver, the simulator or a host on a real network, calls it at [`App::next`] and
//! carries out its demands. Random quantities come from named streams ([`Streams`]), so a workload is the same
//! wherever it runs.
//!
//! Each workload has its own file with its configuration, which is its form in scenario files, and its
//! [`Workload`]. A new workload needs only that file, its `mod` line and one line in the list below.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod bulk;
pub mod cbr;
mod datagram;
pub mod film;
mod frame;
pub mod on_off;
pub mod pages;
mod short;
mod spans;
mod stream;
pub mod video;
mod viewed;
mod watch;
mod workload;

pub use arrivals::Arrivals;
pub use bulk::Bulk;
pub use datagram::{Datagram, Delays, HEADER, Measured, Numbered};
pub use frame::{Frame, FrameStatus, FrameType};
pub use pages::Pages;
pub use spans::Spans;
pub use stream::{Stream, USUAL_PACKET};
pub use viewed::{FRAME_SHARES, PLAYOUT_DELAYS, Played, Share, Viewed};
pub use watch::{Arrival, Feedback, Watch};
pub use workload::{Demand, Kind, Outcome, Refusal, Start, Stop, Streams, Transport, Workload};

use skyhaul_base::Instant;

skyhaul_base::kinds! {
    each;
    always serde;
    /// The application of a sender. Short form: "bulk".
    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(tag = "kind")]
    #[schemars(rename = "AppSpec")]
    #[expect(missing_docs, reason = "the configuration of each workload documents itself")]
    pub enum Config {
        "arrivals" Arrivals(arrivals::Config),
        "bulk" Bulk(bulk::Config),
        "cbr" Cbr(cbr::Config),
        "on-off" OnOff(on_off::Config),
        "pages" Pages(pages::Config),
        "video" Video(video::Config),
    }
    /// A running workload.
    #[derive(Clone, Debug)]
    #[expect(missing_docs, reason = "each workload documents itself")]
    pub enum App = Kind::Workload;
    /// Why a configuration is invalid.
    #[derive(Clone, Debug, PartialEq)]
    #[expect(missing_docs, reason = "the error of each workload documents itself")]
    pub error Invalid = Kind::Invalid;
}

impl Config {
    /// The workload's name in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        each!(self, Config => name)
    }
    /// Whether the workload can send datagrams; other workloads need a byte stream.
    #[must_use]
    pub fn sends_datagrams(&self) -> bool {
        each!(self, Config as C => <C as Kind>::DATAGRAMS)
    }
    /// Whether the workload has a viewer at the other end, and the driver must report arrivals to that viewer.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        each!(self, Config as C => <C as Kind>::WATCHES)
    }
    /// Whether the times of its pages, or of its transfers, are measured.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        each!(self, Config as C => <C as Kind>::PAGES)
    }
    /// Segments of a page, and the mean pause after it, s; `None` if it does not load one page after the other.
    #[must_use]
    pub fn page(&self) -> Option<(u64, f64)> {
        each!(self, Config(c) => c.page())
    }
    /// Mean size of its transfers, bytes; `None` if it does not consist of transfers at random times.
    #[must_use]
    pub fn transfer_size(&self) -> Option<f64> {
        each!(self, Config(c) => c.transfer_size())
    }
    /// Size of a datagram with its headers, bytes, if the file gives it.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        each!(self, Config(c) => c.packet())
    }
    /// Whether each of its units, such as a frame, ends with a short segment: delaying that segment delays
    /// the unit.
    #[must_use]
    pub fn ends_short(&self) -> bool {
        each!(self, Config(c) => c.ends_short())
    }
    /// The workload with defaults filled in: everything that follows from its transport is set.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn resolve(&self, over: Transport) -> Result<Self, Invalid> {
        each!(self, Config(c), Invalid(refuse) => c.resolve(over).map(Self::from).map_err(refuse))
    }
    /// The running workload, which starts now.
    ///
    /// # Panics
    /// If the configuration was not returned by [`Self::resolve`].
    #[must_use]
    pub fn build(&self, start: &Start<'_>) -> App {
        each!(self, Config(c), App(app) => app(c.build(start)))
    }
    /// Long-run data rate, bit/s; `None` means as fast as the network allows.
    #[must_use]
    pub fn offered(&self) -> Option<f64> {
        each!(self, Config(c) => c.offered())
    }
    /// Connections opened per second, each for a separate transfer; `None` if it uses one connection.
    #[must_use]
    pub fn opens(&self) -> Option<f64> {
        each!(self, Config(c) => c.opens())
    }
    /// Most connections that are open at a time; `None` if it uses one.
    #[must_use]
    pub fn connections(&self) -> Option<u32> {
        each!(self, Config(c) => c.connections())
    }
    /// A short description for reports, which choose the format of each `number`.
    #[must_use]
    pub fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        each!(self, Config(c) => c.words(number))
    }
}

impl App {
    /// When [`Self::poll`] must be called; [`Instant::MAX`] means not before another event.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        each!(self, App(w) => w.next())
    }
    /// The next demand that is due by `now`; to be called until there is none.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Demand> {
        each!(self, App(w) => w.poll(now))
    }
    /// Everything written to a connection is acknowledged. Needed only while [`Self::is_finite`], and where it
    /// [opens many](Self::opens_many).
    pub fn acknowledged(&mut self, now: Instant) -> Outcome {
        each!(self, App(w) => w.acknowledged(now))
    }
    /// Stops it: it demands nothing more.
    pub fn stop(&mut self) -> Stop {
        each!(self, App(w) => w.stop())
    }
    /// Whether its data may come to an end, so that the driver must check whether everything is
    /// acknowledged.
    #[inline]
    #[must_use]
    pub fn is_finite(&self) -> bool {
        each!(self, App(w) => w.is_finite())
    }
    /// Number of transfers that have begun at random times, complete or not; 0 for workloads without such transfers.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        each!(self, App(w) => w.transfers())
    }
    /// Whether a page is in progress, or was when the workload was stopped.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        each!(self, App(w) => w.is_loading())
    }
    /// The application as an observer of its data, if it is one.
    #[must_use]
    pub fn watch(&self) -> Option<&dyn Watch> {
        each!(self, App(w) => w.watch())
    }
    /// As [`Self::watch`], to report events to the observer.
    #[must_use]
    pub fn watch_mut(&mut self) -> Option<&mut dyn Watch> {
        each!(self, App(w) => w.watch_mut())
    }
    /// Whether transfers have separate, possibly simultaneous connections.
    #[must_use]
    pub fn opens_many(&self) -> bool {
        each!(self, App as C => <C as Kind>::MANY)
    }
}

impl Refusal for Invalid {
    fn key(&self) -> String {
        each!(self, Invalid(e) => e.key())
    }
    fn file(&self) -> Option<(&str, usize)> {
        each!(self, Invalid(e) => e.file())
    }
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
