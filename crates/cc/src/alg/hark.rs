//! Hark: a congestion control driven by the delay of the path and by low-priority probes.
//!
//! *Idea*: over a satellite a loss does not show that the path is full; the delay does, and so do probes that a router
//! serves last and discards first (TCP-Peach's dummy segments). The *quiet* window keeps a few own segments in the queue:
//! it grows while probes return, yields when the delay rises, and answers losses only from a full queue. The *firm* window
//! is that of a sender which the losses alone govern, and counts only beside a competitor that keeps a queue standing.
//! Probes that return while the delay indicates a queue show that there is none: the delay is jitter, or a longer path.
//!
//! ```text
//!            probes unanswered, or own queue above target       queue stands for 5 rounds
//!   Starting ---------------------------------------------> Quiet ----------------------> beside a rival
//!   (a probe answered: +1)                        window by delay <---------------------- (quiet or firm, the greater)
//!                                                       own queue below target, or a loss
//! ```
//!
//! | part | what it knows |
//! |---|---|
//! | `start` | the start: probes open the window; a short transfer is sent at once |
//! | `window` | the quiet window, and how fast it grows |
//! | `rival` | whether there is a competitor, and the firm window |
//! | `probing`, `train` | when to send probes; one train of them and what its answers mean |
//! | `delay`, `samples` | the RTTs of a round, and the queue that they show |
//! | `losses` | which losses are the path's own |
//!
//! Each part has its constants with their reasons and its invariants. This file joins them: once per round, in `end_round`.
//!
//! *Sources*: the probes are those of Akyildiz, Morabito, Palazzo 2001 (TCP-Peach); a target of a few own segments
//! in the queue is that of TCP Vegas (Brakmo, Peterson 1994) and FAST TCP (Wei, Jin, Low, Hegde 2006); that a queue
//! which lasts five rounds is due to a competitor is from Copa (Arun, Balakrishnan 2018). The rest is this
//! project's own: `docs/algorithms/hark.md` describes its strengths and weaknesses.

use crate::action::{Policy, Priority, RecoveryMode, Window};
use crate::control::CongestionControl;
use crate::event::{
    Ack, AckKind, Blocked, Cx, Path, Phase, ProbeEvent, Signal, Start as StartEvent, Transmit,
};
use crate::rules::SharedRules;
pub use config::{Config, Invalid};
use delay::{Delay, Round, target};
use losses::Losses;
use probing::Probing;
use rival::Rival;
use skyhaul_base::{Duration, Instant, Rate};
use start::{FIRST, FIRST_PROBES, PAGE, PAGE_PACE, Page, Start};
use train::{FEWEST_PROBES, Purpose};
use window::{LATE_MOST, LEAST, Quiet};

mod config;
mod delay;
mod losses;
mod probing;
mod rival;
mod samples;
mod start;
mod train;
mod window;

/// Pacing rate in windows per minimum RTT: slightly more than one, so that the pacer is not the limit. Never based on the
/// current RTT: a queue would then slow down its own repair.
const PACE: f64 = 1.03;
/// The same during the start, in which the window grows within the RTT.
const PACE_STARTING: f64 = 1.3;
/// Slow start ends when a tenth of the segments meets a queue of this multiple of the target: it is not due to this
/// connection alone.
const SLOW_START_QUEUE: f64 = 3.0;
/// Below this window, segments, the first duplicate ACK indicates a loss: waiting for another one holds back 1 to 3 % of
/// the window.
const EARLY: f64 = 64.0;
/// A timeout after this many RTTs without an acknowledgement is silence, not a delayed recovery: the path itself may be
/// down.
const SILENCE: f64 = 1.5;

/// Hark.
#[derive(Clone, Debug)]
pub struct Hark {
    config: Config,
    smss: f64,
    /// Congestion window, segments, and pacing rate, bit/s, which `apply` derives from the parts.
    cwnd: f64,
    pacing: Option<f64>,

    /// `None` once the start is over.
    start: Option<Start>,
    /// The short transfer that this connection began with.
    page: Option<Page>,
    quiet: Quiet,
    rival: Rival,
    probing: Probing,
    delay: Delay,
    losses: Losses,

    /// The path's round in progress.
    round: u64,
    last_ack: Instant,
    /// The retransmission timer expired, and nothing has been heard since.
    silent: bool,
    /// The path reorders packets: a receiver has reported a duplicate.
    reordered: bool,
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
            start: Some(Start::NEW),
            page: None,
            quiet: Quiet::NEW,
            rival: Rival::new(config.compete),
            probing: Probing::new(config.probes),
            delay: Delay::new(config.delay),
            losses: Losses::NONE,
            round: u64::MAX,
            last_ack: Instant::ZERO,
            silent: false,
            reordered: false,
        }
    }

    /// Sets window and pacing rate.
    fn apply(&mut self, path: &Path) {
        // One segment asks whether the path is still there (RFC 5681 §3.1).
        let most = if self.silent { 1.0 } else { path.rwnd.max(1.0) };
        self.cwnd = self.quiet.window.max(self.rival.window()).max(LEAST).min(most);
        self.pace();
    }

    fn pace(&mut self) {
        let gain = if self.start.is_some() { PACE_STARTING } else { PACE };
        self.pacing = Some(gain * self.cwnd * self.smss * 8.0 / self.delay.minimum().max(1e-3));
    }

    fn leave_start(&mut self) {
        self.start = None;
        self.probing.forget();
        self.rival.end_start(self.quiet.window, self.losses.carried);
    }

    /// A round is complete: each part draws its conclusions.
    fn end_round(&mut self, cx: &mut Cx<'_>) {
        let Some(round) = self.measure(cx.path) else { return };
        self.judge_start();
        let found = match self.start {
            Some(_) => probing::Verdict::Nothing,
            None => self.probing.judge(cx.now, &round, self.quiet.window, &mut self.delay),
        };
        if found == probing::Verdict::NoQueue {
            self.rival.refute();
            self.delay.longest = 0.0;
            self.quiet.raise_to(self.rival.firm);
        }
        if self.start.is_none() {
            self.rival.limit(self.losses.most);
        }
        if self.rival.end_round(&round, self.cwnd) {
            self.quiet.raise_to(self.rival.firm);
        }
        self.adjust(cx.path, &round);
        // Answers count for the train in progress and for the one just judged. In the start they have opened the window.
        let counts = self.probing.train.is_some() || found != probing::Verdict::Nothing;
        if self.start.is_some() || !counts {
            self.probing.answers = 0.0;
        }
        self.probe(cx, &round);
        self.quiet.stalled = false;
        self.apply(cx.path);
    }

    /// Evaluates delay and losses of the completed round.
    fn measure(&mut self, path: &Path) -> Option<Round> {
        let delays = self.delay.end_round(self.probing.leaves_delay_undisturbed())?;
        let lost = self.losses.end_round(path, self.smss, &delays);
        let (rtt, queue) = (delays.rtt, self.delay.queue);
        self.probing.end_round(&delays, queue, lost);
        let own = self.quiet.window * queue / rtt;
        let room = own < 0.5 * target(self.quiet.window);
        if room {
            self.losses.learn(lost);
        }
        Some(Round { rtt, queue, worst: delays.worst, own, room, lost })
    }

    fn judge_start(&mut self) {
        let Some(start) = &mut self.start else { return };
        match start.judge(self.probing.answers, self.quiet.window) {
            start::Verdict::GoesOn => {}
            start::Verdict::FoundFull => (self.probing.starved, self.quiet.late) = (true, LATE_MOST),
            start::Verdict::Ends => self.leave_start(),
        }
    }

    /// Computes the quiet window of the next round.
    fn adjust(&mut self, path: &Path, round: &Round) {
        let window = self.quiet.window;
        let target = target(window);
        let starting = self.start.is_some();
        if starting && round.own > target {
            self.leave_start();
        }
        let mut add = match self.start {
            Some(Start::Probing { .. }) if !self.probing.is_useless(path) => 0.0,
            Some(_) if window * round.worst / round.rtt > SLOW_START_QUEUE * target => {
                self.leave_start();
                0.0
            }
            Some(_) => window.min(path.rwnd - window).max(0.0),
            None if round.own < target => {
                let spare = self.probing.spare(path);
                self.quiet.grow(round, target - round.own, spare, &mut self.probing.answers)
            }
            None => {
                self.quiet.met_queue(round);
                if !starting {
                    self.quiet.settle();
                }
                target - round.own
            }
        };
        // In the start, before there was a queue, a full one must be longer than a burst of its own.
        let full =
            self.delay.is_full(round.worst) && (!starting || window * round.worst > target * round.rtt);
        if let Some(cut) = self.losses.cut(round.lost, full) {
            self.quiet.met_loss();
            add = add.min(-cut * window);
            if self.start.is_some() {
                self.leave_start();
            }
        }
        let limit = match (self.start, self.quiet.stalled) {
            // The receive window grows with what arrives: the start may get ahead of it.
            (Some(_), _) => f64::INFINITY,
            (None, true) => window,
            (None, false) => path.rwnd.max(window),
        };
        self.quiet.end_round(add, limit);
    }

    /// Sends the probes of the next round.
    fn probe(&mut self, cx: &mut Cx<'_>, round: &Round) {
        if let Some(start) = &mut self.start {
            start.next_round(self.cwnd);
        }
        if self.probing.is_useless(cx.path) || cx.path.phase == Phase::Loss {
            return;
        }
        match self.start {
            None => self.probing.next_round(cx, round, &self.quiet, self.cwnd, &self.delay),
            Some(Start::Probing { .. }) => self.probe_start(cx, (2.0 * self.quiet.window).max(FEWEST_PROBES)),
            Some(Start::Latecomer { .. }) => {}
        }
    }

    fn probe_start(&mut self, cx: &mut Cx<'_>, count: f64) {
        let sent = self.probing.send(cx, count, Purpose::Room, &self.delay);
        if let Some(start) = &mut self.start {
            start.set_sent(sent);
        }
    }

    /// Handles a lost retransmission that RACK cannot detect because no later segment was sent: within a recovery, the
    /// head is retransmitted once more before the retransmission timer, which waits for four RTTVAR, expires.
    fn watch_head(&mut self, cx: &mut Cx<'_>) {
        let page_awaited = self.page.is_some_and(|p| p.deadline.is_some());
        let watched = cx.path.phase == Phase::Recovery && !page_awaited;
        let Some(head) = cx.path.head.filter(|h| h.retransmissions == 1 && watched) else {
            return;
        };
        let srtt = cx.path.srtt.map_or(0.0, Duration::as_secs_f64);
        let rtt = srtt.max(self.delay.peak());
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
            probes: self.probing.possible,
            // Only a page has low priority, and without probes none is sent as such.
            low_priority_data: self.config.probes,
            judges_priority: self.config.probes,
            ..Policy::default()
        }
    }

    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        let low = !retransmission && self.page.is_some_and(|p| p.is_low(offset, self.smss));
        if low { Priority::Low } else { Priority::Normal }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &StartEvent) {
        let path = cx.path;
        self.smss = f64::from(path.smss);
        let StartEvent::Established { rtt, syn_lost, .. } = *start else {
            // After idleness the window is kept: it leaves paced, and its effect on the delay shows within a round.
            self.apply(path);
            return;
        };
        if let Some(rtt) = rtt.or(path.srtt) {
            self.delay.handshake = rtt.as_secs_f64();
        }
        if syn_lost {
            // One segment, without probes or a page beside it (RFC 5681 §3.1, RFC 6928 §2), and then slow start.
            self.start = Some(Start::Latecomer { round_cwnd: LEAST });
            self.quiet.window = LEAST;
            self.apply(path);
            return;
        }
        self.cwnd = FIRST.min(path.rwnd).max(1.0);
        let more = FIRST_PROBES.min(path.queued() - FIRST);
        if more < 1.0 {
            return;
        }
        if path.queued() <= PAGE && self.config.probes {
            self.quiet.window = (FIRST + more).min(path.rwnd);
            self.cwnd = self.quiet.window;
            let handshake = self.delay.handshake;
            self.pacing = Some(PAGE_PACE * self.cwnd * self.smss * 8.0 / handshake);
            let page = Page::new((self.cwnd * self.smss) as u64, cx.now, handshake);
            (self.page, cx.act.wake_at) = (Some(page), page.deadline);
        } else if !self.probing.is_useless(path) {
            self.probe_start(cx, more);
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
            self.delay.add(rtt);
        }
        if let Some(rate) = ack.rate {
            self.delay.bound(rate.interval.as_secs_f64());
        }
        self.reordered |= matches!(ack.kind, AckKind::Duplicate { dsack: true, .. });
        if path.phase != Phase::Recovery {
            self.rival.acknowledged(ack.acked, self.quiet.window);
        }
        if path.round != self.round {
            self.round = path.round;
            self.end_round(cx);
        }
        if self.delay.base.is_finite() {
            self.pace();
        }
        // A small window yields few duplicate ACKs, and most satellite paths do not reorder.
        let early = matches!(ack.kind, AckKind::Duplicate { count: 1..=2, .. }) && path.phase == Phase::Open;
        cx.act.retransmit_head |= early && self.quiet.window < EARLY && !self.reordered;
        self.watch_head(cx);
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { count, .. } = event else {
            self.probing.give_up();
            return;
        };
        // In the start one train follows another, and every answer counts.
        let soonest = if self.start.is_some() { 0.0 } else { self.delay.base };
        if !self.probing.answered(cx.now, count, soonest) {
            return;
        }
        if let Some(start) = &self.start {
            self.quiet.raise_to(start.window_with(self.probing.answers));
            self.apply(cx.path);
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.rival.reduce();
        if self.rival.doubt() {
            self.quiet.raise_to(self.rival.firm);
        }
        if signal == Signal::Ecn {
            // A mark means that the queue is too long, and nothing but a queue causes marks (RFC 3168 §5). What the receiver does
            // not allow is no part of the window that is halved.
            self.quiet.window = self.quiet.window.min(cx.path.rwnd);
            self.quiet.halve();
        }
        self.apply(cx.path);
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, _backoff: u32) {
        self.rival.reduce();
        if (cx.now - self.last_ack).as_secs_f64() > SILENCE * self.delay.rtt() {
            self.quiet.halve();
            self.silent = true;
        }
        self.apply(cx.path);
    }

    fn on_transmit(&mut self, _cx: &mut Cx<'_>, transmit: &Transmit) {
        self.quiet.stalled |= transmit.blocked == Blocked::Rwnd;
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let in_flight = cx.path.in_flight_bytes > 0;
        // A page is no longer awaited after its deadline, even if all of it has been acknowledged before.
        if let Some(page) = &mut self.page
            && page.deadline.take_if(|by| cx.now >= *by).is_some()
        {
            let got = cx.path.delivered as f64;
            if in_flight && page.is_lost(got) {
                // The path is busy: begins again at normal priority.
                self.page = None;
                self.quiet.window = (2.0 * got / self.smss).max(2.0 * FIRST);
                self.leave_start();
                cx.act.rewind = true;
                self.apply(cx.path);
                return;
            }
        }
        if in_flight {
            self.watch_head(cx);
        }
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("quiet", self.quiet.window);
        out("firm", self.rival.firm);
        out("base-ms", 1e3 * self.delay.base);
        out("queue-ms", 1e3 * self.delay.queue);
        out("shift-ms", 1e3 * self.delay.shift);
        out("loss", self.losses.recent);
        out("innocent", self.losses.innocent);
        out("rival", f64::from(u8::from(self.rival.is_present())));
    }
}

#[cfg(test)]
mod tests;
