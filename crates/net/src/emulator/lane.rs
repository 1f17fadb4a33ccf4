//! One direction in real time: reads one device and writes the other.

use super::accuracy::Accuracy;
use super::capture::DirectionCapture;
use super::direction::{PacketOutcome, PathDirection};
use super::packet::{Buf, Class};
use super::report::{LaneReport, LinkCount};
use crate::device::Clock;
use crate::device::tun::Tun;
use crate::device::wait::{Wait, Waker};
use crate::error::NetError;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_wire::Plan;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum packets read before due packets are released.
const BATCH: usize = 32;
/// How often the published counters are updated.
const PUBLISH: Duration = Duration::from_millis(200);

/// State shared by both directions and their observers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) news: [Mutex<Option<LaneReport>>; 2],
    /// Clock time at which the scenario's time began.
    pub(super) start: Instant,
}

/// One direction.
pub(super) struct Lane {
    pub(super) name: &'static str,
    pub(super) index: usize,
    pub(super) from: Arc<Tun>,
    pub(super) to: Arc<Tun>,
    pub(super) direction: PathDirection,
    pub(super) plan: Plan,
    pub(super) spin: Duration,
    pub(super) realtime: bool,
    /// Stop with an error when a release is later than this.
    pub(super) strict: Option<Duration>,
    pub(super) capture: Option<DirectionCapture>,
    pub(super) wait: Wait,
    pub(super) shared: Arc<Shared>,
    /// Wakes the other direction, so that it ends too.
    pub(super) other: Waker,
}

impl Lane {
    fn time(&self, clock: Instant) -> Instant {
        Instant::ZERO + (clock - self.shared.start)
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self) -> Result<LaneReport, NetError> {
        let realtime = self.realtime && realtime();
        let began = Clock::thread_cpu();
        let mut exit = Exit {
            to: self.to.clone(),
            capture: self.capture.take(),
            start: self.shared.start,
            strict: self.strict,
            bottleneck: self.direction.bottleneck(),
            accuracy: Accuracy::new(),
            pool: Vec::new(),
            longest: self.from.longest(),
            refused: 0,
            failure: None,
        };
        let mut not_carried = 0;
        let longest = exit.longest;
        let mut publish_at = Instant::ZERO;
        let report = |lane: &Self, exit: &Exit, not_carried| {
            let count = |(name, counters, queue): (&str, skyhaul_path::Counters, u32)| LinkCount {
                name: name.to_owned(),
                counters,
                queue,
            };
            let mut r = LaneReport {
                name: lane.name,
                links: lane.direction.counters().map(count).collect(),
                rate: lane.direction.bottleneck(),
                releases: 0,
                p50: Duration::ZERO,
                p99: Duration::ZERO,
                max: Duration::ZERO,
                late: 0,
                rate_error: None,
                not_carried,
                refused: exit.refused,
                tun_drops: 0,
                cpu: Clock::thread_cpu() - began,
                realtime,
            };
            r.measure(&exit.accuracy);
            r
        };
        while !self.shared.stop.load(Ordering::Relaxed) && exit.failure.is_none() {
            let mut read = 0;
            loop {
                // Due packets are released first; then waiting packets are read.
                let time = self.time(Clock::now());
                self.direction.advance(time, &mut |p, outcome| exit.take(p, outcome));
                if read == BATCH {
                    break;
                }
                let mut bytes = exit.pool.pop().unwrap_or_else(|| vec![0; longest]);
                let n = match self.from.read(&mut bytes) {
                    Ok(n) => n,
                    Err(e) => {
                        exit.failure.get_or_insert(e);
                        None
                    }
                };
                let Some(n) = n else {
                    exit.pool.push(bytes);
                    break;
                };
                read += 1;
                let class = bytes.get(..n).and_then(Class::of);
                let Some(class) = class.filter(|c| !c.link_scope) else {
                    not_carried += 1;
                    exit.pool.push(bytes);
                    continue;
                };
                let mut p = Buf::new(bytes, n, class, self.plan);
                if let Some(t) = &mut exit.capture {
                    t.enters(time, &mut p);
                }
                self.direction.enter(time, p, &mut |p, outcome| exit.take(p, outcome));
            }
            if exit.failure.is_some() {
                break;
            }
            let now = Clock::now();
            if now >= publish_at {
                publish_at = now + PUBLISH;
                exit.bottleneck = self.direction.bottleneck();
                let r = report(&self, &exit, not_carried);
                if let Some(Ok(mut slot)) = self.shared.news.get(self.index).map(Mutex::lock) {
                    *slot = Some(r);
                }
            }
            if read < BATCH {
                let next = self.direction.next();
                let at = if next == Instant::MAX { next } else { self.shared.start + (next - Instant::ZERO) };
                // The last part of the wait, `spin`, is busy, since a sleeping thread wakes some microseconds late.
                let early =
                    if at == Instant::MAX || self.spin.is_zero() { at } else { before(at, self.spin) };
                let woken = match self.wait.until(early.min(publish_at.max(now))) {
                    Ok(w) => w,
                    Err(e) => {
                        exit.failure = Some(e);
                        break;
                    }
                };
                if woken.readable == 0 && !woken.called && early < at && Clock::now() >= early {
                    while Clock::now() < at {
                        std::hint::spin_loop();
                    }
                }
            }
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        self.other.wake();
        let r = report(&self, &exit, not_carried);
        // An earlier failure matters more than one of the capture.
        let finished = exit.capture.take().map_or(Ok(()), DirectionCapture::finish);
        match exit.failure {
            Some(e) => Err(e),
            None => finished.map(|()| r),
        }
    }
}

/// The exit of the direction, with its records.
struct Exit {
    to: Arc<Tun>,
    capture: Option<DirectionCapture>,
    start: Instant,
    strict: Option<Duration>,
    /// Rate of the slowest link.
    bottleneck: Option<Rate>,
    accuracy: Accuracy,
    /// Buffers for future packets.
    pool: Vec<Vec<u8>>,
    /// Length of these buffers.
    longest: usize,
    refused: u64,
    failure: Option<NetError>,
}

impl Exit {
    fn take(&mut self, p: Buf, outcome: PacketOutcome<'_>) {
        match outcome {
            PacketOutcome::Through(due) => {
                let at = Instant::ZERO + (Clock::now() - self.start);
                self.accuracy.released(due, at, p.data().len() as u32, self.bottleneck);
                if let Some(limit) = self.strict.filter(|limit| at - due > *limit) {
                    self.failure.get_or_insert(NetError::TooLate { by: at - due, limit });
                }
                if let Some(t) = &mut self.capture {
                    t.through(at, &p);
                }
                match self.to.write(p.data()) {
                    Ok(taken) => self.refused += u64::from(!taken),
                    Err(e) => {
                        self.failure.get_or_insert(e);
                    }
                }
            }
            PacketOutcome::Lost(link, why) => {
                if let Some(t) = &mut self.capture {
                    t.lost(&p, link, why);
                }
            }
        }
        // An acknowledgement generated on the path has a buffer of its own length.
        if p.bytes.len() == self.longest {
            self.pool.push(p.bytes);
        }
    }
}

fn before(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(by.as_nanos()))
}

/// Gives the calling thread real-time priority, if allowed.
fn realtime() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };
    let Ok(lowest) = ThreadPriorityValue::try_from(1u8) else { return false };
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(lowest),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}
