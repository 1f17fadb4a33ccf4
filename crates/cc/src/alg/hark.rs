//! Hark: a window that listens to the path, by its delay and by low-priority probes.
//!
//! *Idea*: over a satellite a loss does not tell whether the path is full; its delay does, and so does a router that serves
//! low-priority probes last and discards them first (TCP-Peach's dummy segments). So losses are repaired and otherwise not
//! answered, and two windows are kept:
//!
//! - the *quiet* window, by delay and probes. It aims at a few segments of its own in the queue (`Hark::target`). Where the queue
//!   is empty it sends probes, and half of those that are answered become window: a large path fills in a few round trips.
//! - the *reno* window, what NewReno would have under the same losses. It counts only while a competitor keeps a queue standing
//!   that does not shrink as Hark yields.
//!
//! Probes do two more things. They tell whether the router has priorities at all: if they come back through a queue that
//! delayed data, they displaced data, and no more are sent. And they *calibrate* the delay: if ten of ten come back while the delay
//! says "queue", then it is jitter or a longer path, and the delay is measured from there.
//!
//! *Sources*: the probes are those of Akyildiz, Morabito, Palazzo 2001 (TCP-Peach); a target of few own segments in the queue is that
//! of TCP Vegas (Brakmo, Peterson 1994) and FAST TCP (Wei, Jin, Low, Hegde 2006); that a queue which outlasts five rounds is a
//! competitor's is from Copa (Arun, Balakrishnan 2018). The rest is this project's own: `docs/algorithms/hark.md` has what it
//! does well and what it does not.
//!
//! ```text
//!            probes unanswered, or own queue above target       queue outlasts 5 rounds
//!   Starting ---------------------------------------------> Quiet ----------------------> beside a rival
//!   (a probe answered: +1)                        window by delay <---------------------- (quiet or reno, the greater)
//!                                                               own queue below target
//! ```

use crate::CongestionControl;
use crate::action::{Policy, Priority, ProbeSource, RecoveryMode, Train, Window};
use crate::event::{
    Ack, AckKind, Blocked, Cx, Path, Phase, ProbeEvent, ProbeSupport, Signal, Start, Transmit,
};
use crate::rules::SharedRules;
pub use config::{Config, Invalid};
use samples::{Quantiles, Samples};
use skyhaul_base::{Duration, Instant, Rate};
use train::Asked;

mod config;
mod samples;
mod train;

/// Least window: keeps a receiver that acknowledges every other segment going, and three duplicates possible.
const LEAST: f64 = 4.0;
/// Own segments that shall stand in the queue: so many, and this share of the window. Twenty flows of 36 segments hold 31 of a
/// buffer of 50, and a single flow holds 1 % of a round trip, above what acknowledgements wobble by.
const OWN: f64 = 1.2;
const OWN_SHARE: f64 = 0.01;
/// Share of the distance to the target by which a round opens the window: the loop hears of it two rounds later. An overshoot is
/// given back within one round.
const OPENING: f64 = 0.25;
/// Share of the answers that becomes window: probes of one round trip see the same room twice, before and after the first of
/// their answers have become data.
const GAIN: f64 = 0.5;
/// Without probes the window opens by twice as much every round while the queue is empty, up to this share of itself: what
/// one round trip of it can put into the queue before the delay shows, 3 %, a short queue holds.
const BLIND_MOST: f64 = 0.03;
/// What a loss with a full queue leaves: the flows that share it give up more than the buffer holds, in one round.
const KEPT: f64 = 0.85;
/// A queue this close to the longest one that was seen is full; the longest one is forgotten slowly, as buffers do change.
const FULL: f64 = 0.8;
const FORGET: f64 = 0.995;
/// A queue of so many times what Hark itself wants there, for so many rounds, is a competitor's: two Harks cannot make it, and a NewReno
/// that halves lets it go in two or three (five is Copa's choice).
const CROWDED: f64 = 2.5;
const PATIENCE: u32 = 5;
/// Rounds that the queue may stand before probes test whether it is one.
const DOUBT: u32 = 8;
/// Departure rate in windows per least round trip: a little more than one, so that the pacer is not what limits; and more in
/// the start, which has to get ahead. Never by the present round trip: a queue would then slow down its own repair.
const PACE: f64 = 1.03;
const PACE_STARTING: f64 = 1.3;
/// First window (RFC 6928), and the probes beside it: with them the 64 segments of the papers, all that is known of the path.
const FIRST: f64 = 10.0;
const FIRST_PROBES: f64 = 64.0;
/// What is to be sent is a page up to here: twice what its first round trip carries. It leaves at once, all beyond the first window with
/// low priority, and is there in one round trip if the path is free.
const PAGE: f64 = 128.0;
/// Below this window a loss shows at the first duplicate: each duplicate waited for holds back 1 to 3 % of a window.
const EARLY: f64 = 64.0;
/// RTT assumed where not even the handshake gave one: that of the satellites this is for, s.
const NOMINAL_RTT: f64 = 0.55;

/// Hark.
#[derive(Clone, Debug)]
pub struct Hark {
    config: Config,
    smss: f64,
    cwnd: f64,
    /// bit/s.
    pacing: Option<f64>,
    /// Window by delay and probes, segments.
    quiet: f64,
    /// Window that NewReno would have, segments.
    reno: f64,
    /// The start is under way.
    starting: bool,
    /// Its probes vanished though the queue seems empty: it goes on without them, as slow start.
    unheard: bool,
    /// A competitor keeps the queue standing.
    rival: bool,

    samples: Samples,
    /// Shortest interval of a rate sample of this round, s: a round trip that recoveries yield, too.
    interval: f64,
    /// Round trips of the last round that had any.
    rtt: Option<Quantiles>,
    /// Least round trip of data, s; until then that of the handshake stands in for it.
    base: f64,
    handshake: f64,
    /// What a test added to the base: the median that the path itself takes beyond it, s, and how far the upper quantiles lie
    /// beyond that.
    shift: f64,
    jitter: Quantiles,
    /// Queue of the last round, and the longest one seen, s.
    queue: f64,
    longest: f64,
    /// Rounds with more queue than ours, and rounds since the queue was empty.
    above: u32,
    standing: u32,

    train: Option<Asked>,
    /// Size of the next train over the quiet window.
    reach: f64,
    /// Answers of this round that have not become window.
    answers: f64,
    /// Trains that came back through a queue that delayed data; two, and the router has no priorities.
    displaced: u32,
    /// The peer answers none.
    unanswered: bool,
    /// Growth per round without probes.
    blind: f64,
    /// The receiver's window stopped the sender in this round, and in the one before.
    stalled: [bool; 2],

    round: u64,
    delivered: u64,
    lost: u64,
    /// Segments that the path carried in the last round, the queue taken out, and the most that it carried of late.
    carried: f64,
    most: f64,
    last_ack: Instant,
    /// Data below this offset that is sent for the first time leaves with low priority.
    low_until: u64,
    /// When the opening with low priority must have been answered.
    open_by: Option<Instant>,
}

/// What a round said.
#[derive(Clone, Copy)]
struct Heard {
    /// The round trip of half of its segments, s.
    rtt: f64,
    /// Own segments in the queue.
    own: f64,
    /// The queue that the worst of them met, s.
    worst: f64,
    /// The queue was empty for most of the round.
    free: bool,
    /// Segments were lost.
    lost: bool,
}

impl Hark {
    /// A Hark control. It has a window of its own, so the endpoint's window rules do not matter to it.
    #[must_use]
    pub fn new(config: &Config, _rules: impl Into<SharedRules>) -> Self {
        Self {
            config: config.clone(),
            smss: 1.0,
            cwnd: FIRST,
            pacing: None,
            quiet: FIRST,
            reno: FIRST,
            starting: true,
            unheard: false,
            rival: false,
            samples: Samples::NONE,
            interval: f64::INFINITY,
            rtt: None,
            base: f64::INFINITY,
            handshake: NOMINAL_RTT,
            shift: 0.0,
            jitter: Quantiles::default(),
            queue: 0.0,
            longest: 0.0,
            above: 0,
            standing: 0,
            train: None,
            reach: 0.25,
            answers: 0.0,
            displaced: 0,
            unanswered: false,
            blind: 0.0,
            stalled: [false; 2],
            round: u64::MAX,
            delivered: 0,
            lost: 0,
            carried: FIRST,
            most: FIRST,
            last_ack: Instant::ZERO,
            low_until: 0,
            open_by: None,
        }
    }

    /// Segments of its own that a window wants in the queue.
    fn target(window: f64) -> f64 {
        OWN + OWN_SHARE * window
    }
    fn rtt(&self) -> f64 {
        self.rtt.map_or(self.handshake, |q| q.median)
    }
    /// Probes cannot be had, or say nothing.
    fn deaf(&self, path: &Path) -> bool {
        !self.config.probes || self.unanswered || path.probes == ProbeSupport::No || self.displaced >= 2
    }
    /// Sets window and departure rate.
    fn apply(&mut self, path: &Path) {
        let reno = if self.rival { self.reno } else { 0.0 };
        self.cwnd = self.quiet.max(reno).max(LEAST).min(path.rwnd.max(1.0));
        self.pace();
    }
    fn pace(&mut self) {
        let gain = if self.starting { PACE_STARTING } else { PACE };
        let base = if self.base.is_finite() { self.base } else { self.rtt() };
        self.pacing = Some(gain * self.cwnd * self.smss * 8.0 / base.max(1e-3));
    }
    fn open(&mut self, path: &Path, to: f64) {
        self.quiet = to.min(path.rwnd).max(LEAST);
    }
    /// Sends probes over one round trip.
    fn ask(&mut self, cx: &mut Cx<'_>, count: f64, test: bool) {
        let (count, rtt) = (count as u32, self.rtt());
        let spacing = Duration::from_secs_f64(rtt / f64::from(count + 1));
        cx.act.train = Some(Train { source: ProbeSource::LastSegment, count, first: spacing, spacing });
        self.train = Some(Asked::new(cx.now, count, rtt, self.queue, test));
    }
    fn leave_start(&mut self) {
        self.starting = false;
        self.above = 0;
        // NewReno would have come out of its slow start with what the path carries.
        self.reno = self.reno.max(self.quiet).min(self.carried).max(FIRST);
    }

    fn end_round(&mut self, cx: &mut Cx<'_>) {
        let Some(heard) = self.listen(cx.path) else { return };
        self.judge_train(cx, &heard);
        self.look_for_a_rival(&heard);
        self.steer(cx.path, &heard);
        self.ask_again(cx, &heard);
        self.apply(cx.path);
    }

    /// What the delay of the round that is over says.
    fn listen(&mut self, path: &Path) -> Option<Heard> {
        let sampled = self.samples.take();
        let interval = core::mem::replace(&mut self.interval, f64::INFINITY);
        let inferred = interval.is_finite().then_some(Quantiles::of_one(interval));
        self.rtt = sampled.or(inferred).or(self.rtt);
        let mut seen = self.rtt.filter(|_| self.base.is_finite())?;
        let rtt = seen.median;
        self.shift = self.shift.min((rtt - self.base).max(0.0));
        let mut empty = self.base + self.shift;
        if !self.config.delay {
            (seen, empty) = (Quantiles::of_one(rtt), rtt);
        }
        self.queue = (rtt - empty).max(0.0);
        let worst = seen.peak - empty - self.jitter.peak;
        self.longest = worst.max(FORGET * self.longest);
        if let Some(train) = &mut self.train {
            train.saw(self.queue, sampled);
        }
        let got = (path.delivered - self.delivered) as f64 / self.smss;
        self.delivered = path.delivered;
        self.carried = got * empty / rtt;
        // A tenth of a percent a round: it halves in seven hundred.
        self.most = self.carried.max(0.999 * self.most);
        let lost = path.lost > self.lost;
        self.lost = path.lost;
        let own = self.quiet * self.queue / rtt;
        // A quarter of the segments may meet a queue: others' bursts come and go.
        let upper = self.quiet * (seen.upper - empty - self.jitter.upper) / rtt;
        let free = upper < 0.5 * Self::target(self.quiet);
        Some(Heard { rtt, own, worst, free, lost })
    }

    /// What the probes said, once all answers must have come.
    fn judge_train(&mut self, cx: &Cx<'_>, heard: &Heard) {
        let Some(train) = self.train.filter(|t| t.is_over(cx.now)) else { return };
        self.train = None;
        let target = Self::target(self.quiet);
        let through = train.came_through();
        if train.test {
            if let Some(path) = train.path_itself() {
                self.shift = path.median - self.base;
                self.jitter = path.beyond_median();
                // What delayed data was the path, and the probes before displaced nothing.
                self.displaced = 0;
                (self.above, self.rival, self.longest) = (0, false, 0.0);
                self.quiet = self.quiet.max(self.reno);
            }
            return;
        }
        // Data waited, and most of the probes, which a queue serves last, did not.
        if !train.too_short() && train.queue_grew() * self.quiet / heard.rtt > target {
            let most = train.share() > 0.5;
            self.displaced = if most { self.displaced + 1 } else { self.displaced.saturating_sub(1) };
        }
        if !self.starting {
            // A path that had room for all is asked for more.
            self.reach = if through { (2.0 * self.reach).min(1.0) } else { (self.reach / 2.0).max(0.1) };
        } else if !through && !train.too_short() {
            if heard.own < target / 2.0 {
                self.unheard = true;
            } else {
                self.leave_start();
            }
        }
    }

    /// A queue that stays although Hark yields is a competitor's.
    fn look_for_a_rival(&mut self, heard: &Heard) {
        if !self.rival && self.above == 0 && !self.starting {
            // Alone it must not grow into the queue.
            self.reno = self.reno.min(self.most).max(2.0);
        }
        let window = self.cwnd.max(self.reno);
        let (ours, target) = (window * self.queue / heard.rtt, Self::target(window));
        self.above = if ours > CROWDED * target { self.above + 1 } else { 0 };
        if self.above >= PATIENCE && self.config.compete {
            self.rival = true;
        } else if self.rival && ours < target {
            self.rival = false;
            self.quiet = self.quiet.max(self.reno);
        }
    }

    /// The quiet window of the next round.
    fn steer(&mut self, path: &Path, heard: &Heard) {
        let target = Self::target(self.quiet);
        let mut add = target - heard.own;
        if self.starting && heard.own > target {
            self.leave_start();
        }
        let deaf = self.deaf(path);
        if self.starting && (deaf || self.unheard) {
            // Slow start. It ends when even a tenth of the segments meets a queue that is not only ours by then.
            if self.quiet * heard.worst / heard.rtt > 3.0 * target {
                self.leave_start();
                add = add.min(0.0);
            } else {
                add = self.quiet;
            }
        } else if !self.starting && add > 0.0 {
            add *= OPENING;
        }
        // The only answer to a loss.
        if heard.lost && heard.worst > FULL * self.longest && heard.own > target {
            add = add.min(-(1.0 - KEPT) * self.quiet);
        }
        let [stalled, before] = self.stalled;
        let answers = core::mem::take(&mut self.answers);
        if !self.starting && heard.free {
            // What the receiver's window holds back leaves room that more window would not fill.
            if !stalled {
                add = add.max(GAIN * answers);
            }
            if deaf && !before {
                self.blind = (OPENING * target).max(2.0 * self.blind).min(BLIND_MOST * self.quiet);
                add = add.max(self.blind);
            }
            add = add.max(self.reno - self.quiet);
        } else {
            self.blind = 0.0;
        }
        self.stalled = [false, stalled];
        self.open(path, self.quiet + add);
    }

    /// Probes for the next round.
    fn ask_again(&mut self, cx: &mut Cx<'_>, heard: &Heard) {
        self.standing = if heard.free { 0 } else { self.standing + 1 };
        if self.deaf(cx.path) {
            return;
        }
        let may = cx.path.phase != Phase::Loss;
        if heard.free {
            let share = if self.starting { 2.0 } else { self.reach };
            let count = (share * self.quiet).min(cx.path.rwnd - self.quiet);
            if may && count >= 1.0 && (self.starting || self.train.is_none()) {
                self.ask(cx, count, false);
            }
        } else if may && self.train.is_none() && (self.above >= 3 || self.standing >= DOUBT) {
            self.standing = 0;
            self.ask(cx, 10.0, true);
        } else if !self.train.is_some_and(|t| t.test) {
            cx.act.stop_probes = true;
        }
    }

    /// A retransmission that is lost as well, where no later segment tells RACK: before the timer, which waits for four
    /// variations, the head of the window is sent again.
    fn watch_head(&mut self, cx: &mut Cx<'_>) {
        let Some(head) = cx.path.head.filter(|h| h.retransmissions > 0 && self.open_by.is_none()) else {
            return;
        };
        let srtt = cx.path.srtt.map_or(0.0, Duration::as_secs_f64);
        let rtt = srtt.max(self.rtt.map_or(self.handshake, |q| q.peak));
        // Not before the round trip is over with 1 % to spare; usually with 8 %, unless variations are small.
        let usual = (1.08 * rtt + 0.005).min(srtt + 2.5 * cx.path.rttvar.as_secs_f64());
        let limit = Duration::from_secs_f64((1.01 * rtt + 0.002).max(usual));
        cx.act.retransmit_head |= head.age > limit;
        let left = if head.age > limit { limit } else { limit.saturating_sub(head.age) };
        cx.act.wake_at = Some(cx.now + left + Duration::from_micros(500));
    }
}

impl CongestionControl for Hark {
    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd.max(1.0), ssthresh: f64::INFINITY }
    }

    #[inline]
    fn pacing(&self) -> Option<Rate> {
        self.pacing.map(|bits| Rate::from_bits_per_sec(bits as u64))
    }

    fn policy(&self) -> Policy {
        Policy {
            recovery: RecoveryMode::Sack,
            rack: self.config.rack,
            rate_samples: true,
            watch_head: true,
            transmit_events: true,
            probes: self.config.probes && !self.unanswered,
            low_priority_data: true,
            ..Policy::default()
        }
    }

    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        let beyond_first = offset >= (FIRST * self.smss) as u64;
        if beyond_first && offset < self.low_until && !retransmission {
            Priority::Low
        } else {
            Priority::Normal
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let path = cx.path;
        self.smss = f64::from(path.smss);
        let Start::Established { rtt, .. } = *start else {
            // The window leaves paced, and what it meets is heard within a round.
            self.apply(path);
            return;
        };
        if let Some(rtt) = rtt.or(path.srtt) {
            self.handshake = rtt.as_secs_f64();
        }
        self.cwnd = FIRST.min(path.rwnd).max(1.0);
        let more = (path.rwnd - FIRST).min(FIRST_PROBES).min(path.queued() - FIRST);
        if more < 1.0 {
            return;
        }
        if path.queued() <= PAGE && self.config.probes {
            self.quiet = FIRST + more;
            self.low_until = (self.quiet * self.smss) as u64;
            self.cwnd = self.quiet;
            // Faster than a window per round trip by a quarter: its last segments are what the page waits for.
            self.pacing = Some(1.25 * self.cwnd * self.smss * 8.0 / self.handshake);
            // It left within one round trip, and the answer takes another.
            let by = cx.now + Duration::from_secs_f64(2.0 * self.handshake + 0.05);
            (self.open_by, cx.act.wake_at) = (Some(by), Some(by));
        } else if !self.deaf(path) {
            self.ask(cx, more, false);
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let path = cx.path;
        self.last_ack = cx.now;
        // More than two segments are what a repair had held up: the time that this took is no round trip.
        if let (Some(rtt), AckKind::New, Phase::Open) = (ack.rtt, ack.kind, path.phase)
            && ack.acked <= 2.5
        {
            self.base = self.base.min(rtt.as_secs_f64());
            self.samples.add(rtt);
        }
        if let Some(interval) = ack.rate.map(|r| r.interval.as_secs_f64())
            && self.base <= 1.001 * interval
        {
            self.interval = self.interval.min(interval);
        }
        if path.phase != Phase::Recovery && (self.rival || self.reno < self.quiet) {
            self.reno += ack.acked.min(2.0) / self.reno;
        }
        if path.round != self.round {
            self.round = path.round;
            self.end_round(cx);
        }
        if self.base.is_finite() {
            self.pace();
        }
        // A satellite path does not reorder, and of a small window the first duplicates are much of what there is to wait for.
        let early = matches!(ack.kind, AckKind::Duplicate { count: 1..=2, .. }) && path.phase == Phase::Open;
        cx.act.retransmit_head |= early && self.quiet < EARLY;
        self.watch_head(cx);
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { count, .. } = event else {
            (self.unanswered, self.train) = (true, None);
            return;
        };
        let Some(train) = &mut self.train else { return };
        train.answered += count;
        if train.test {
            return;
        }
        if self.starting {
            self.open(cx.path, self.quiet + f64::from(count));
            self.apply(cx.path);
        } else {
            self.answers += f64::from(count);
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.reno = (self.reno / 2.0).max(2.0);
        if signal == Signal::Ecn {
            // A router that marks says that the queue is too long, and nothing but a queue marks (RFC 3168 §5).
            self.quiet = (self.quiet / 2.0).max(LEAST);
        }
        self.apply(cx.path);
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, _backoff: u32) {
        self.reno = (self.reno / 2.0).max(2.0);
        // Silence, not a repair that waits: the path itself may have gone.
        if (cx.now - self.last_ack).as_secs_f64() > 1.5 * self.rtt() {
            self.quiet = (self.quiet / 2.0).max(LEAST);
        }
        self.apply(cx.path);
    }

    fn on_transmit(&mut self, _cx: &mut Cx<'_>, transmit: &Transmit) {
        self.stalled[0] |= transmit.blocked == Blocked::Rwnd;
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        if cx.path.in_flight_bytes == 0 {
            return;
        }
        if self.open_by.is_some_and(|by| cx.now >= by) {
            self.open_by = None;
            let got = cx.path.delivered as f64;
            if got < 0.75 * self.low_until as f64 {
                // What left with low priority is lost: the path is busy. Again from the beginning, as others do.
                self.low_until = 0;
                self.quiet = (2.0 * got / self.smss).max(2.0 * FIRST);
                self.leave_start();
                cx.act.rewind = true;
                self.apply(cx.path);
                return;
            }
        }
        self.watch_head(cx);
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("quiet", self.quiet);
        out("reno", self.reno);
        out("queue-ms", 1e3 * self.queue);
        out("shift-ms", 1e3 * self.shift);
        out("rival", f64::from(u8::from(self.rival)));
    }
}

#[cfg(test)]
mod tests;
