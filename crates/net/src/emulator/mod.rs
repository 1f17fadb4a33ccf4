//! Emulation: a scenario's links in real time, for real programs and kernels.
//!
//! ```text
//! namespace A ── TUN ──▶ link ─▶ link ──▶ TUN ── namespace B        one thread for each direction
//!             ◀── TUN ◀── link ◀─ link ◀── TUN
//! ```
//! The links are those of the simulator ([`skyhaul_path::Link`]), with the same random streams. A thread reads a
//! packet, timestamps it, and advances the links in virtual time to the present. A late thread processes each event
//! at its due time, so lateness shows in single packets and never in rates. The lateness of every packet is
//! measured, and the report says whether the run is trustworthy ([`Report::doubts`]).

mod accuracy;
mod ack;
#[cfg(test)]
mod agreement;
mod capture;
mod crossing;
mod direction;
mod lane;
mod packet;
mod report;

pub use accuracy::{LATE, MAX_LATE_SHARE, MAX_P99, MAX_RATE_ERROR};
pub use crossing::Crossing;
pub use packet::Class;
pub use report::{LaneReport, LinkCount, Report, packets};

use crate::device::Clock;
use crate::device::tun::{self, Tun};
use crate::device::wait::{Wait, Waker};
use crate::error::NetError;
use crate::{Namespace, tun::TunConfig};
use capture::DirectionCapture;
use direction::PathDirection;
use lane::{Lane, Shared};
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_wire::Plan;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Options of an emulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of the links' random streams.
    pub seed: u64,
    /// Encoding of low priority in packets.
    pub plan: Plan,
    /// How long before the release of a packet its thread waits busily instead of sleeping.
    pub spin: Duration,
    /// Request real-time priority; without it the emulation runs, but may be late on a busy machine.
    pub realtime: bool,
    /// Stop with an error as soon as a packet leaves later than this.
    pub strict: Option<Duration>,
    /// Write `forward.pcapng` and `reverse.pcapng` to this folder.
    pub capture: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            plan: Plan::LowerEffort,
            spin: Duration::from_micros(50),
            realtime: true,
            strict: None,
            capture: None,
        }
    }
}

/// One end of an emulated path: a TUN device in a namespace.
#[derive(Clone, Debug)]
pub struct End {
    /// Namespace of the device.
    pub namespace: Namespace,
    /// The device.
    pub device: Arc<Tun>,
}

impl End {
    /// Creates a device in a namespace.
    ///
    /// # Errors
    /// As [`Tun::open`].
    pub fn open(namespace: &Namespace, config: &TunConfig) -> Result<Self, NetError> {
        let device = Arc::new(namespace.within(|| Tun::open(config))??);
        Ok(Self { namespace: namespace.clone(), device })
    }
    /// Packets that the kernel dropped before they could be read from the device; 0 if the kernel does not say.
    fn dropped(&self) -> u64 {
        let name = self.device.name();
        self.namespace.within(|| tun::dropped(name)).ok().flatten().unwrap_or(0)
    }
}

/// Default addresses of one end of a path, with the lengths of their prefixes: those of the client, which is the first end,
/// or of the server. 83 is "S" and 0x5348 is "SH" in ASCII.
#[must_use]
pub fn addresses(client: bool) -> Vec<(IpAddr, u8)> {
    let n = if client { 1 } else { 2 };
    vec![
        (IpAddr::from([10, 83, 0, n]), 24),
        (IpAddr::from([0xfd00, 0x5348, 0, 0, 0, 0, 0, u16::from(n)]), 64),
    ]
}

/// A running emulation.
pub struct Emulation {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<LaneReport, NetError>>>,
    wakers: [Waker; 2],
    ends: [End; 2],
}

impl std::fmt::Debug for Emulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulation").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Emulation {
    /// Connects two ends by the links of one or several flow groups ([`Crossing`]); data flows from the first end
    /// to the second. The scenario's time starts now.
    ///
    /// # Errors
    /// If a capture cannot be written, the system refuses threads or descriptors, or the flow groups take too many different
    /// routes.
    #[expect(clippy::indexing_slicing, reason = "two ends and two directions")]
    pub fn start<'a>(
        scenario: &Resolved,
        crossing: impl Into<Crossing<'a>>,
        ends: [End; 2],
        options: &Options,
    ) -> Result<Self, NetError> {
        let crossing = crossing.into();
        let start = Clock::now();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            news: [Mutex::new(None), Mutex::new(None)],
            start,
        });
        let waits = [Wait::on(&[&*ends[0].device])?, Wait::on(&[&*ends[1].device])?];
        let wakers = [waits[0].waker(), waits[1].waker()];
        if let Some(dir) = &options.capture {
            std::fs::create_dir_all(dir)
                .map_err(|e| NetError::of_file(format!("make {}", dir.display()), e))?;
        }
        let mut lanes = Vec::new();
        for (index, wait) in waits.into_iter().enumerate() {
            let forward = index == 0;
            let name = if forward { "forward" } else { "reverse" };
            let capture = match &options.capture {
                Some(dir) => Some(DirectionCapture::new(&dir.join(format!("{name}.pcapng")), start)?),
                None => None,
            };
            lanes.push(Lane {
                name,
                index,
                from: ends[index].device.clone(),
                to: ends[1 - index].device.clone(),
                direction: PathDirection::new(scenario, crossing, forward, options.seed)?,
                plan: options.plan,
                spin: options.spin,
                realtime: options.realtime,
                strict: options.strict,
                capture,
                wait,
                shared: shared.clone(),
                other: wakers[1 - index].clone(),
            });
        }
        // If the second thread cannot be started, the first stops when the emulation is dropped.
        let mut emulation = Self { shared, threads: Vec::new(), wakers, ends };
        for lane in lanes {
            let thread = std::thread::Builder::new().name(format!("emulate-{}", lane.name));
            let thread = thread.spawn(move || lane.run()).map_err(|e| NetError::os("start a thread", e))?;
            emulation.threads.push(thread);
        }
        Ok(emulation)
    }

    /// Recent state of both directions; `None` before each of them has reported.
    #[must_use]
    pub fn news(&self) -> Option<Report> {
        let latest = |lane: &Mutex<Option<LaneReport>>| lane.lock().ok().and_then(|n| n.clone());
        let [forward, reverse] = &self.shared.news;
        let lanes = [latest(forward)?, latest(reverse)?];
        Some(Report { duration: Clock::now() - self.shared.start, lanes })
    }
    /// Whether a direction has stopped by itself: [`Self::finish`] then returns its error.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
    /// The ends.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }

    /// Stops the emulation and returns its report. Packets in flight are lost.
    ///
    /// # Errors
    /// If a device disappeared, a capture could not be written, or a packet was too late in a strict run.
    pub fn finish(mut self) -> Result<Report, NetError> {
        let duration = Clock::now() - self.shared.start;
        self.stop();
        let mut lanes = Vec::new();
        for t in self.threads.drain(..) {
            let failed = |_| NetError::os("run the emulator", std::io::Error::other("a thread panicked"));
            lanes.push(t.join().map_err(failed)?);
        }
        let mut lanes = lanes.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (lane, end) in lanes.iter_mut().zip(&self.ends) {
            lane.tun_drops = end.dropped();
        }
        let lanes = lanes
            .try_into()
            .map_err(|_| NetError::os("run the emulator", std::io::Error::other("not two directions")))?;
        Ok(Report { duration, lanes })
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Scenario time zero, on the clock.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.shared.start
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop();
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }
}
