//! Hark: a congestion control driven by the delay of the path and by low-priority probes.
//!
//! *Idea*: over a satellite, a loss does not show that the path is full. The delay does, and so does a router that
//! serves low-priority probes last and discards them first (TCP-Peach's dummy segments). The control keeps two
//! windows:
//!
//! - the *quiet* window, from delay and probes. Its target is a few own segments in the queue (`Hark::target`).
//!   While the queue is empty it sends probes, and half of the answered ones are added to the window: a large path
//!   fills in a few round trips. Losses with a full queue, beyond the rate that the path has with an empty one,
//!   reduce it.
//! - the *firm* window, that of a sender which the losses alone govern: it grows as NewReno's does, and a loss takes
//!   as much of it as CUBIC's. It applies only while a competitor keeps a standing queue that does not shrink when
//!   Hark yields.
//!
//! Probes have two more uses. They show whether the router has priorities: one that has lets probes starve before
//! data; in one that has none, probes return although the delay grows with the window, and probing stops. And they
//! *calibrate* the delay: if probes return while the delay indicates a queue, the delay is jitter or a longer path,
//! and becomes the new base.
//!
//! *Sources*: the probes are those of Akyildiz, Morabito, Palazzo 2001 (TCP-Peach); a target of a few own segments
//! in the queue is that of TCP Vegas (Brakmo, Peterson 1994) and FAST TCP (Wei, Jin, Low, Hegde 2006); that a queue
//! which lasts five rounds is due to a competitor is from Copa (Arun, Balakrishnan 2018). The rest is this
//! project's own: `docs/algorithms/hark.md` describes its strengths and weaknesses.
//!
//! ```text
//!            probes unanswered, or own queue above target       queue stands for 5 rounds
//!   Starting ---------------------------------------------> Quiet ----------------------> beside a rival
//!   (a probe answered: +1)                        window by delay <---------------------- (quiet or firm, the greater)
//!                                                       own queue below target, or a loss
//! ```

use crate::CongestionControl;
use crate::action::{Policy, Priority, RecoveryMode, Window};
use crate::event::{
    Ack, AckKind, Blocked, Cx, Path, Phase, ProbeEvent, ProbeSupport, Signal, Start, Transmit,
};
use crate::rules::SharedRules;
pub use config::{Config, Invalid};
use probing::DOUBT;
use samples::{Rtts, Samples};
use skyhaul_base::{Duration, Instant, Rate, math};
use train::Asked;

mod config;
mod probing;
mod samples;
mod train;

/// Minimum window: a crowd of flows with less than a segment each can only yield through the retransmission timer.
const LEAST: f64 = 1.0;
/// Target for own segments in the queue: this multiple of the square root of the window, so that of two flows in one
/// queue the larger one is above its target first, and yields. Twenty flows of 36 segments hold 29 of a buffer of 50. At
/// least this number, since a delayed acknowledgement looks like that to twenty segments over GEO; and at least this
/// share of the window, which is more than the jitter of acknowledgements.
const OWN_ROOT: f64 = 0.24;
const OWN: f64 = 1.4;
const OWN_SHARE: f64 = 0.01;
/// Share of the distance to the target that a round adds to the window: the effect shows two rounds later. An
/// overshoot is removed within one round. Where probes tell nothing, the share doubles once.
const OPENING: f64 = 0.25;
const OPENING_MOST: f64 = 0.5;
/// Share of the answers added to the window: the probes of one RTT find the same spare capacity twice, before and
/// after their first answers have been used for data.
const GAIN: f64 = 0.5;
/// A latecomer, whose first probes found no room at all, adds this multiple of the distance to the target, up to half of
/// its window at first, which is the pace of slow start. What is left of that share after a round above the target: the
/// others yield two round trips later.
const LATE: f64 = 6.0;
const LATE_MOST: f64 = 0.5;
const LATE_LEFT: f64 = 0.85;
/// Without probes, the step of the window doubles every round while the queue is empty, up to this share of the
/// window: even a short queue holds the 3 % that one RTT can add before the delay shows it.
const BLIND_MOST: f64 = 0.03;
/// The same while no queue has begun yet, and below the window at which one began last time, of which others may have
/// taken a part. A round with a queue leaves at least this share of that window: the delay after an overflow is that of a
/// larger one.
const FAR_MOST: f64 = 0.1;
const KNEE_LEFT: f64 = 0.9;
/// A queue of at least this share of the longest one seen is full; the longest one decays slowly, since buffers
/// change.
const FULL: f64 = 0.8;
const FORGET: f64 = 0.995;
/// Reduction after losses with a full queue, in multiples of their share of the round. One multiple would leave the
/// queue full.
const CUT: f64 = 1.5;
/// Weight of a round in the loss rate of the path with an empty queue, and in the recent loss rate.
const LEARN: f64 = 0.125;
const RECENT: f64 = 0.25;
/// A recent loss rate that reduces the window whatever the delay: above the fades of a satellite link that still
/// carries TCP.
const COLLAPSE: f64 = 0.25;
/// A queue of this multiple of Hark's own target, for this many rounds in which it does not shrink by a tenth, is
/// due to a competitor: two Harks cannot cause it, and a NewReno that halves its window drains it in two or three
/// (five is Copa's choice).
const CROWDED: f64 = 2.5;
const PATIENCE: u32 = 5;
const SHRUNK: f64 = 0.9;
/// Rounds counted already when the firm window is reduced and Hark yields again: two more that show the queue, and
/// the competitor is still there.
const RESUME: u32 = 3;
/// What a loss leaves of the firm window: as much as CUBIC keeps (RFC 9438 §4.6). Half of it, as in NewReno, leaves
/// less than a tenth of the link beside CUBIC. It grows as NewReno's does: CUBIC's growth would harm a NewReno more.
const KEPT: f64 = 0.7;
/// Pacing rate in windows per minimum RTT: slightly more than one, so that the pacer is not the limit, and more in
/// the start, which has to get ahead. Never based on the current RTT: a queue would then slow down its own repair.
const PACE: f64 = 1.03;
const PACE_STARTING: f64 = 1.3;
/// Initial window (RFC 6928), and the probes sent with it: the 64 segments of the papers, since nothing else is
/// known of the path.
const FIRST: f64 = 10.0;
const FIRST_PROBES: f64 = 64.0;
/// Transfers up to this size are pages: twice the data carried in their first RTT. They are sent at once, with low
/// priority beyond the initial window, and arrive in one RTT if the path is free.
const PAGE: f64 = 128.0;
/// Below this window the first duplicate ACK indicates a loss: waiting for another one holds back 1 to 3 % of the
/// window.
const EARLY: f64 = 64.0;
/// RTT assumed if not even the handshake gave one: that of a geostationary satellite, s.
const NOMINAL_RTT: f64 = 0.55;

/// Hark.
#[derive(Clone, Debug)]
pub struct Hark {
    config: Config,
    smss: f64,
    cwnd: f64,
    /// bit/s.
    pacing: Option<f64>,
    /// Window from delay and probes, segments.
    quiet: f64,
    /// Window of a sender that the losses alone govern, segments.
    firm: f64,
    /// The start is in progress.
    starting: bool,
    /// No probe of the start was answered: it continues without them, as slow start.
    unheard: bool,
    /// A competitor keeps the queue standing.
    rival: bool,

    samples: Samples,
    /// RTTs of the last round that had any.
    rtt: Option<Rtts>,
    /// Minimum RTT of data, s; until there is one, that of the handshake.
    base: f64,
    handshake: f64,
    /// Added to the base by probes that returned: the delay of the path itself beyond it, s.
    shift: f64,
    /// Distance between the minimum and the lower quartile of the RTTs of the last round without a train, s.
    noise: f64,
    /// Queueing delay of the last round and of the one before, and the longest one seen, s.
    queue: f64,
    last_queue: f64,
    longest: f64,
    /// Rounds with more queue than our own, while it did not shrink.
    above: u32,

    train: Option<Asked>,
    /// Size of the next train relative to the quiet window.
    reach: f64,
    /// Rounds until the next test, and from one to the next.
    until_test: u32,
    doubt: u32,
    /// Answers not yet added to the window.
    answers: f64,
    /// Share of the window that a latecomer may add in a round; 0 if it is none, or no longer.
    late: f64,
    /// In the start: the window at the beginning of this round, and the probes sent in the last round and in this.
    begun: f64,
    sent: [f64; 2],
    /// Most probes of the last train were lost.
    starved: bool,
    /// The router has priorities: probes starved and data did not.
    priorities: bool,
    /// Trains that returned although the delay grew with the window; after two, the router is taken to have no
    /// priorities.
    displaced: u32,
    /// Window (segments) and RTT (s) at the last train that returned.
    passed: Option<(f64, f64)>,
    /// The peer answers no probes.
    unanswered: bool,
    /// Growth per round without probes, segments, and the current share of the distance to the target.
    step: f64,
    opening: f64,
    /// Window at which a queue began last time, and the window of the last round, segments.
    knee: f64,
    last_window: f64,
    /// The receive window limited the sender in this round.
    stalled: bool,
    /// The path reorders packets: a receiver has reported a duplicate.
    reordered: bool,

    round: u64,
    delivered: u64,
    lost: u64,
    /// Recent loss rate, and that of rounds with an empty queue.
    loss: f64,
    innocent: f64,
    /// Segments carried by the path in the last round, without the queue, and the recent maximum.
    carried: f64,
    most: f64,
    last_ack: Instant,
    /// The retransmission timer expired, and nothing has been heard since.
    silent: bool,
    /// New data below this offset is sent with low priority.
    low_until: u64,
    /// Deadline for the acknowledgement of the low-priority opening.
    open_by: Option<Instant>,
}

/// Results of a round.
#[derive(Clone, Copy)]
struct Heard {
    /// RTT of its segments, s.
    rtt: f64,
    /// Own segments in the queue.
    own: f64,
    /// Longest queueing delay of its segments, s.
    worst: f64,
    /// Own segments in the queue are less than half of the target.
    free: bool,
    /// Share of its segments that were lost.
    lost: f64,
}

impl Hark {
    /// A Hark control. It has its own window, so the endpoint's window rules do not apply.
    #[must_use]
    pub fn new(config: &Config, _rules: impl Into<SharedRules>) -> Self {
        Self {
            config: config.clone(),
            smss: 1.0,
            cwnd: FIRST,
            pacing: None,
            quiet: FIRST,
            firm: FIRST,
            starting: true,
            unheard: false,
            rival: false,
            samples: Samples::NONE,
            rtt: None,
            base: f64::INFINITY,
            handshake: NOMINAL_RTT,
            shift: 0.0,
            noise: 0.0,
            queue: 0.0,
            last_queue: 0.0,
            longest: 0.0,
            above: 0,
            train: None,
            reach: 0.25,
            until_test: DOUBT,
            doubt: DOUBT,
            answers: 0.0,
            late: 0.0,
            begun: FIRST,
            sent: [0.0; 2],
            starved: false,
            priorities: false,
            displaced: 0,
            passed: None,
            unanswered: false,
            step: 0.0,
            opening: OPENING / 2.0,
            knee: 0.0,
            last_window: FIRST,
            stalled: false,
            reordered: false,
            round: u64::MAX,
            delivered: 0,
            lost: 0,
            loss: 0.0,
            innocent: 0.0,
            carried: FIRST,
            most: FIRST,
            last_ack: Instant::ZERO,
            silent: false,
            low_until: 0,
            open_by: None,
        }
    }

    /// Target for own segments in the queue at this window.
    fn target(window: f64) -> f64 {
        (OWN_ROOT * math::sqrt(window)).max(OWN).max(OWN_SHARE * window)
    }
    fn rtt(&self) -> f64 {
        self.rtt.map_or(self.handshake, |r| r.median)
    }
    /// Whether probes are unavailable or useless.
    fn deaf(&self, path: &Path) -> bool {
        !self.config.probes || self.unanswered || path.probes == ProbeSupport::No || self.displaced >= 2
    }
    /// Sets window and pacing rate.
    fn apply(&mut self, path: &Path) {
        let firm = if self.rival { self.firm } else { 0.0 };
        // One segment asks whether the path is still there (RFC 5681 §3.1).
        let most = if self.silent { 1.0 } else { path.rwnd.max(1.0) };
        self.cwnd = self.quiet.max(firm).max(LEAST).min(most);
        self.pace();
    }
    fn pace(&mut self) {
        let gain = if self.starting { PACE_STARTING } else { PACE };
        let base = if self.base.is_finite() { self.base } else { self.rtt() };
        self.pacing = Some(gain * self.cwnd * self.smss * 8.0 / base.max(1e-3));
    }
    fn leave_start(&mut self) {
        self.starting = false;
        self.above = 0;
        // What is still to come answers the probes of the start, which asked for all that the path has.
        (self.answers, self.train) = (0.0, None);
        // Slow start would have ended with what the path carries.
        self.firm = self.firm.max(self.quiet).min(self.carried).max(FIRST);
    }

    fn end_round(&mut self, cx: &mut Cx<'_>) {
        let Some(heard) = self.listen(cx.path) else { return };
        if self.starting {
            self.judge_start();
        }
        let found_free = !self.starting && self.judge_train(cx, &heard);
        self.look_for_a_rival(&heard);
        self.steer(cx.path, &heard);
        if self.starting || (self.train.is_none() && !found_free) {
            self.answers = 0.0;
        }
        self.ask_again(cx, &heard);
        self.stalled = false;
        self.apply(cx.path);
    }

    /// Evaluates delay and losses of the completed round.
    fn listen(&mut self, path: &Path) -> Option<Heard> {
        let sampled = self.samples.take();
        self.rtt = sampled.or(self.rtt);
        let seen = self.rtt.filter(|_| self.base.is_finite())?;
        let rtt = seen.lower;
        if let Some(many) = sampled.filter(|r| r.many) {
            self.shift = self.shift.min((rtt - self.base).max(0.0));
            // The ten probes of a test make no queue.
            if self.train.is_none_or(|t| t.test) {
                self.noise = many.lower - many.least;
            }
        }
        let empty = if self.config.delay { self.base + self.shift } else { rtt };
        self.queue = (rtt - empty).max(0.0);
        // In a recovery the only RTTs are upper bounds: they do not show how long the queue can be.
        let measured = self.config.delay && sampled.is_some_and(|r| r.measured);
        let worst = if measured { seen.peak - empty } else { self.queue };
        if self.queue > 2.0 * self.longest {
            // Unlike anything before: what failed tests said no longer holds.
            (self.doubt, self.until_test) = (DOUBT, self.until_test.min(DOUBT));
        }
        self.longest = (FORGET * self.longest).max(if measured { worst } else { 0.0 });
        let got = path.delivered.saturating_sub(self.delivered) as f64;
        let gone = path.lost.saturating_sub(self.lost) as f64;
        (self.delivered, self.lost) = (path.delivered, path.lost);
        let lost = gone / (got + gone).max(1.0);
        self.loss += RECENT * (lost - self.loss);
        if let Some(train) = &mut self.train {
            train.saw(self.queue, sampled, lost);
        }
        self.carried = got / self.smss * empty / rtt;
        // A tenth of a per cent per round: it halves in seven hundred rounds.
        self.most = self.carried.max(0.999 * self.most);
        let own = self.quiet * self.queue / rtt;
        let free = own < 0.5 * Self::target(self.quiet);
        if free {
            self.innocent += LEARN * (lost - self.innocent);
        }
        Some(Heard { rtt, own, worst, free, lost })
    }

    /// A queue that stays although Hark yields is due to a competitor.
    fn look_for_a_rival(&mut self, heard: &Heard) {
        if !self.rival && self.above == 0 && !self.starting {
            // Without a competitor it must not grow into the queue.
            self.firm = self.firm.min(self.most).max(2.0);
        }
        let window = self.cwnd.max(self.firm);
        let (ours, target) = (window * self.queue / heard.rtt, Self::target(window));
        let shrinks = self.queue < SHRUNK * self.last_queue;
        self.last_queue = self.queue;
        self.above = if ours > CROWDED * target { self.above + u32::from(!shrinks) } else { 0 };
        if self.above >= PATIENCE && self.config.compete {
            self.rival = true;
        } else if self.rival && ours < target {
            self.rival = false;
            self.quiet = self.quiet.max(self.firm);
        }
    }

    /// Computes the quiet window of the next round.
    fn steer(&mut self, path: &Path, heard: &Heard) {
        let target = Self::target(self.quiet);
        let mut add = target - heard.own;
        let (deaf, starting) = (self.deaf(path), self.starting);
        if self.starting && heard.own > target {
            self.leave_start();
        }
        if self.starting && (deaf || self.unheard) {
            // Slow start. It ends when even a tenth of the segments meets a queue that cannot be only ours.
            if self.quiet * heard.worst / heard.rtt > 3.0 * target {
                self.leave_start();
                add = add.min(0.0);
            } else {
                add = self.quiet.min(path.rwnd - self.quiet).max(0.0);
            }
        } else if self.starting {
            add = 0.0;
        } else if add > 0.0 {
            self.opening =
                if deaf || self.starved { (2.0 * self.opening).min(OPENING_MOST) } else { OPENING };
            add = if self.late > 0.0 && self.starved && !deaf {
                (LATE * add).min(self.late * self.quiet)
            } else {
                (self.opening * add).max(self.grow_blindly(deaf && heard.free))
            };
            // Capacity left unused because of the receive window cannot be filled by a larger cwnd. Answers that arrive
            // while the queue is not empty wait for the verdict on their train.
            if heard.free {
                let answers = core::mem::take(&mut self.answers);
                add = if self.stalled { add } else { add.max(GAIN * answers) };
            }
        } else {
            (self.step, self.opening) = (0.0, OPENING / 2.0);
            self.knee = (self.last_window * (1.0 - self.queue / heard.rtt)).max(KNEE_LEFT * self.knee);
            if !starting {
                self.late *= LATE_LEFT;
                self.late = if self.late > BLIND_MOST { self.late } else { 0.0 };
            }
        }
        // A queue that the delay can show at all, as long as any: losses beyond those of the path are from it. In the start,
        // before there was one, it must be longer than a burst of its own.
        let full = heard.worst > FULL * self.longest
            && heard.worst > OWN_SHARE * self.base
            && (!starting || self.quiet * heard.worst > target * heard.rtt);
        let excess = if full { CUT * (heard.lost - self.innocent).max(0.0) } else { 0.0 };
        let cut = if self.loss > COLLAPSE { excess.max(heard.lost) } else { excess };
        if heard.lost > 0.0 && (full || self.loss > COLLAPSE) {
            self.step = 0.0;
            add = add.min(-cut * self.quiet);
            if self.starting {
                self.leave_start();
            }
        }
        let limit = match (self.starting, self.stalled) {
            // The receive window grows with what arrives: the start may get ahead of it.
            (true, _) => f64::INFINITY,
            (false, true) => self.quiet,
            (false, false) => path.rwnd.max(self.quiet),
        };
        self.last_window = self.quiet;
        self.quiet = (self.quiet + add).min(limit).max(LEAST);
    }

    /// Growth without probes, segments. Nothing shows how much room the path has but the window at which there was a
    /// queue last time: the step doubles until it gets there, and from there begins anew.
    fn grow_blindly(&mut self, free: bool) -> f64 {
        let (least, gap) = (OPENING * Self::target(self.quiet), self.knee - self.quiet);
        let most = if gap > 0.0 || self.knee == 0.0 { FAR_MOST } else { BLIND_MOST };
        let step = least.max((2.0 * self.step).min(most * self.quiet));
        if free && 0.0 < gap && gap <= step {
            self.step = 0.0;
            return gap;
        }
        self.step = if free { step } else { 0.0 };
        self.step
    }

    /// Handles a lost retransmission that RACK cannot detect because no later segment was sent: within a recovery,
    /// the head of the window is sent again once before the retransmission timer, which waits for four RTTVAR.
    fn watch_head(&mut self, cx: &mut Cx<'_>) {
        let watched = cx.path.phase == Phase::Recovery && self.open_by.is_none();
        let Some(head) = cx.path.head.filter(|h| h.retransmissions == 1 && watched) else {
            return;
        };
        let srtt = cx.path.srtt.map_or(0.0, Duration::as_secs_f64);
        let rtt = srtt.max(self.rtt.map_or(self.handshake, |r| r.peak));
        // Not before the RTT is over by 1 %; usually by 8 %, unless the variation is small.
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
            judges_priority: self.config.probes,
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
            // The window leaves paced, and its effect shows within a round.
            self.apply(path);
            return;
        };
        if let Some(rtt) = rtt.or(path.srtt) {
            self.handshake = rtt.as_secs_f64();
        }
        self.cwnd = FIRST.min(path.rwnd).max(1.0);
        let more = FIRST_PROBES.min(path.queued() - FIRST);
        if more < 1.0 {
            return;
        }
        if path.queued() <= PAGE && self.config.probes {
            self.quiet = (FIRST + more).min(path.rwnd);
            self.low_until = (self.quiet * self.smss) as u64;
            self.cwnd = self.quiet;
            // A quarter faster than a window per RTT: the page waits for its last segments.
            self.pacing = Some(1.25 * self.cwnd * self.smss * 8.0 / self.handshake);
            // It was sent within one RTT, and the acknowledgement takes another.
            let by = cx.now + Duration::from_secs_f64(2.0 * self.handshake + 0.05);
            (self.open_by, cx.act.wake_at) = (Some(by), Some(by));
        } else if !self.deaf(path) {
            self.ask(cx, more, false);
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let path = cx.path;
        self.last_ack = cx.now;
        if core::mem::take(&mut self.silent) {
            self.apply(path);
        }
        // More than two segments were held up by a recovery: the time that this took is not an RTT.
        if let (Some(rtt), AckKind::New, Phase::Open) = (ack.rtt, ack.kind, path.phase)
            && ack.acked <= 2.5
        {
            self.base = self.base.min(rtt.as_secs_f64());
            self.samples.add(rtt);
        }
        if let Some(interval) = ack.rate.map(|r| r.interval.as_secs_f64())
            && self.base <= 1.001 * interval
        {
            self.samples.bound(interval);
        }
        self.reordered |= matches!(ack.kind, AckKind::Duplicate { dsack: true, .. });
        if path.phase != Phase::Recovery && (self.rival || self.firm < self.quiet) {
            self.firm += ack.acked.min(2.0) / self.firm;
        }
        if path.round != self.round {
            self.round = path.round;
            self.end_round(cx);
        }
        if self.base.is_finite() {
            self.pace();
        }
        // A satellite path does not reorder, and a small window yields few duplicate ACKs.
        let early = matches!(ack.kind, AckKind::Duplicate { count: 1..=2, .. }) && path.phase == Phase::Open;
        cx.act.retransmit_head |= early && self.quiet < EARLY && !self.reordered;
        self.watch_head(cx);
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { count, .. } = event else {
            (self.unanswered, self.train) = (true, None);
            return;
        };
        let Some(train) = &mut self.train else { return };
        // In the start a train follows the other, and every answer counts.
        let soonest = if self.starting { 0.0 } else { self.base };
        if !train.answer(cx.now, count, soonest) || train.test {
            return;
        }
        self.answers += f64::from(count);
        if self.starting {
            self.quiet = self.quiet.max(self.begun + self.answers);
            self.apply(cx.path);
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.firm = (KEPT * self.firm).max(2.0);
        if self.rival {
            // An occasion to ask again whether the competitor is there: it drains the queue now, too.
            (self.rival, self.above) = (false, RESUME);
            self.quiet = self.quiet.max(self.firm);
        }
        if signal == Signal::Ecn {
            // A mark means that the queue is too long, and nothing but a queue causes marks (RFC 3168 §5). What the receiver does
            // not allow is no part of the window that is halved.
            self.quiet = (self.quiet.min(cx.path.rwnd) / 2.0).max(LEAST);
        }
        self.apply(cx.path);
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, _backoff: u32) {
        self.firm = (KEPT * self.firm).max(2.0);
        // Silence, not a delayed recovery: the path itself may be down.
        if (cx.now - self.last_ack).as_secs_f64() > 1.5 * self.rtt() {
            self.quiet = (self.quiet / 2.0).max(LEAST);
            self.silent = true;
        }
        self.apply(cx.path);
    }

    fn on_transmit(&mut self, _cx: &mut Cx<'_>, transmit: &Transmit) {
        self.stalled |= transmit.blocked == Blocked::Rwnd;
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        if cx.path.in_flight_bytes == 0 {
            return;
        }
        if self.open_by.is_some_and(|by| cx.now >= by) {
            self.open_by = None;
            let got = cx.path.delivered as f64;
            if got < 0.75 * self.low_until as f64 {
                // The low-priority data is lost: the path is busy. Restarts at normal priority.
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
        out("firm", self.firm);
        out("queue-ms", 1e3 * self.queue);
        out("shift-ms", 1e3 * self.shift);
        out("loss", self.loss);
        out("innocent", self.innocent);
        out("rival", f64::from(u8::from(self.rival)));
    }
}

#[cfg(test)]
mod tests;
