//! TCP Prague, a scalable control.
//!
//! *Idea*: The peer reports each ECN mark (RFC 9768), and once per round trip the window falls by half of the smoothed share of
//! marked packets, as in DCTCP (RFC 8257). Between marks it grows by one segment per round trip. Packets carry ECT(1), by which a
//! dual queue (RFC 9332) knows that short queues with frequent marks suit them. *Source*: the Prague requirements (RFC 9331 §4.3);
//! draft-briscoe-iccrg-prague-congestion-control; its reference implementation for Linux, version 0.7. *Verified* against that
//! source: the smoothing with gain 1/16, at most once per round trip and per `rtt-target`; the halving at the first mark, and α = 0
//! until then; growth by unmarked packets only, also right after a reduction; below `rtt-target` growth by (RTT / target)² segments
//! per round trip, from the fourth round trip after slow start on; half the window after a loss. Losses are detected by time (RACK), as
//! RFC 9331 §4.3 demands.
//!
//! *Not implemented*: the rate-based mode of windows below four segments with smaller segments, the ± 3 % variation of the
//! pacing rate there, and the detection of classic queues that mark ECT(1) (RFC 9331 §4.3, a passive test that Linux leaves off).
//!
//! Without accurate ECN the control is Reno with pacing: losses and classic echoes halve the window, and packets carry no ECT(1).

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Path, Phase, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::rules::SharedRules;
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, Rate};

skyhaul_base::options! {
    /// Options of TCP Prague.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Weight of the newest round trip in the smoothed share of marks (default 1/16).
        gain: f64 = 0.0625,
        /// The RTT below which the control behaves as if its RTT were this (default 25 ms); "0 s" for none.
        rtt_target: Duration as Time = Duration::from_millis(25),
        /// Round trips after slow start before `rtt-target` takes effect (default 4).
        rtt_transition: u32 = 4,
        /// The smoothed share after the first mark (default 0, as in Linux; the first mark itself halves the window).
        initial_alpha: f64 = 0.0,
        /// Loss recovery (default `sack`).
        recovery: RecoveryMode = RecoveryMode::Sack,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("gain: a weight lies above 0 and at most at 1, such as 0.0625")]
    Gain,
    #[error("initial-alpha: a share lies between 0 and 1")]
    InitialAlpha,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Prague>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(Invalid::Gain);
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            return Err(Invalid::InitialAlpha);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Prague> {
        Box::new(Prague::new(self, rules))
    }
}

/// Smallest window after a mark, segments.
const LEAST: f64 = 2.0;

/// The counters of the path at the end of a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct RoundEnd {
    /// Bytes delivered.
    delivered: u64,
    /// Packets reported as marked.
    marked: u64,
    /// Number of the round trip.
    round: u64,
}

/// TCP Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    frame: Frame,
    config: Config,
    /// α: the smoothed share of marked packets.
    alpha: f64,
    /// A mark has arrived, so that a queue on the path marks.
    saw_ce: bool,
    /// The counters at the end of the last round trip, and when α was last computed.
    last: RoundEnd,
    updated: Instant,
    /// Marks reported until the last acknowledgement.
    seen: u64,
    /// When the window last fell for a mark.
    reduced: Option<Instant>,
    /// Round trips since slow start; once `rtt-target` applies, none counts that is shorter.
    rounds: u32,
    pace: Option<Rate>,
}

impl Prague {
    /// A TCP Prague control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            alpha: config.initial_alpha,
            saw_ce: false,
            last: RoundEnd::default(),
            updated: Instant::ZERO,
            seen: 0,
            reduced: None,
            rounds: 0,
            pace: None,
        }
    }

    /// Whether a control with a shorter RTT behaves by now as if its RTT were `rtt-target`.
    fn is_independent(&self) -> bool {
        !self.frame.slow_start() && self.rounds >= self.config.rtt_transition
    }
    /// Whether less than `rtt-target` has passed since `then`: reductions and updates within that time count as one round trip.
    fn is_within_target(&self, now: Instant, then: Instant) -> bool {
        self.is_independent() && now - then < self.config.rtt_target
    }

    /// Computes α at the end of a round trip.
    fn update_alpha(&mut self, now: Instant, path: &Path, marked: u64) {
        if path.round == self.last.round || self.is_within_target(now, self.updated) {
            return;
        }
        let end = RoundEnd { delivered: path.delivered, marked, round: path.round };
        if self.saw_ce {
            let packets = (end.delivered - self.last.delivered) as f64 / f64::from(path.smss);
            let share = ((end.marked - self.last.marked) as f64 / packets.max(1.0)).min(1.0);
            self.alpha += self.config.gain * (share - self.alpha);
            self.updated = now;
        }
        self.last = end;
        if !self.frame.slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    /// Segments per round trip by which an unmarked window grows.
    fn increase(&self, path: &Path) -> f64 {
        let target = self.config.rtt_target;
        match path.srtt {
            Some(rtt) if self.is_independent() && rtt < target => {
                let ratio = rtt.as_secs_f64() / target.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }

    /// Grows by packets that arrived without a mark.
    fn grow(&mut self, cx: &Cx<'_>, unmarked: f64) {
        let (cwnd, ssthresh) = (self.frame.cwnd, self.frame.ssthresh);
        let to = if cwnd < ssthresh {
            (cwnd + unmarked).min(ssthresh)
        } else {
            cwnd + unmarked * self.increase(cx.path) / cwnd
        };
        self.frame.grow_to(cx, to);
    }

    fn set_pace(&mut self, path: &Path) {
        let Some(rtt) = path.srtt.filter(|rtt| !rtt.is_zero()) else { return };
        // As in Linux: twice the rate while the window doubles.
        let factor = if self.frame.cwnd < self.frame.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let window = self.frame.cwnd.max(path.in_flight());
        let bits = factor * window * f64::from(path.smss) * 8.0 / rtt.as_secs_f64();
        self.pace = Some(Rate::from_bits_per_sec((bits as u64).max(1)));
    }

    /// Sets window and threshold to the fraction `keep` of the window.
    fn fall(&mut self, signal: Signal, keep: f64) {
        let to = (self.frame.deflated() * keep).max(LEAST);
        self.frame.reduce(signal, to, to);
    }
}

impl CongestionControl for Prague {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.pace
    }
    fn policy(&self) -> Policy {
        Policy { rack: true, scalable: true, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        if let Start::Established { .. } = start {
            self.last.round = cx.path.round;
            self.updated = cx.now;
        }
        self.set_pace(cx.path);
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let may_grow = self.frame.acked(cx, ack);
        let Some(marked) = cx.path.marked else {
            if may_grow {
                self.frame.grow_like_reno(cx, ack);
            }
            return self.set_pace(cx.path);
        };
        let news = marked.saturating_sub(self.seen);
        self.seen = marked;
        if news > 0 && !self.saw_ce {
            // The first mark: whatever the share will be, slow start has gone too far.
            self.saw_ce = true;
            self.fall(Signal::Ecn, 0.5);
            self.reduced = Some(cx.now);
        }
        if may_grow && cx.path.phase == Phase::Open {
            self.grow(cx, (ack.acked - news as f64).max(0.0));
        } else if may_grow {
            self.frame.grow_like_reno(cx, ack);
        }
        self.update_alpha(cx.now, cx.path, marked);
        self.set_pace(cx.path);
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Ecn if cx.path.marked.is_some() => {
                let soon = |then| cx.now == then || self.is_within_target(cx.now, then);
                if !self.reduced.is_some_and(soon) {
                    self.fall(signal, 1.0 - self.alpha / 2.0);
                    self.reduced = Some(cx.now);
                }
            }
            Signal::Loss | Signal::Ecn | Signal::Corruption => {
                let to = self.frame.half(cx);
                self.frame.reduce(signal, to, to);
            }
        }
        self.set_pace(cx.path);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let ssthresh = self.frame.half(cx);
        self.frame.timeout(backoff, ssthresh);
        self.set_pace(cx.path);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::Stage;
    use crate::{AckKind, InitialSsthresh};

    fn stage(config: &Config, ssthresh: f64, rtt: u64) -> Stage<Prague> {
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(ssthresh), ..Rules::MODERN };
        let mut s = Stage::new(Prague::new(config, &rules), 1e9);
        s.path.marked = Some(0);
        s.path.srtt = Some(Duration::from_millis(rtt));
        s.start(None);
        s
    }
    /// A round trip of `packets` acknowledgements of one segment, the last `marked` of them with a mark, and the sender's reaction
    /// to the first mark.
    fn round(s: &mut Stage<Prague>, rtt: u64, packets: u64, marked: u64) {
        s.now += Duration::from_millis(rtt);
        s.path.round += 1;
        for n in 0..packets {
            s.path.delivered += 1000;
            let mark = n >= packets - marked;
            s.path.marked = s.path.marked.map(|m| m + u64::from(mark));
            s.ack(AckKind::New, 1.0);
            if mark && n == packets - marked {
                s.congestion(Signal::Ecn);
            }
        }
    }

    #[test]
    fn the_first_mark_ends_slow_start_with_half_the_window() {
        let mut s = stage(&Config::default(), 1e9, 50);
        round(&mut s, 50, 10, 0);
        assert_eq!(s.cwnd(), 20.0);
        round(&mut s, 50, 4, 1);
        // 23 segments before the acknowledgement with the mark, which adds nothing: 20 and three unmarked ones.
        assert_eq!((s.cwnd(), s.ssthresh()), (11.5, 11.5));
    }

    #[test]
    fn alpha_is_the_smoothed_share_of_marks() {
        // α += (F - α) / 16 once per round, of the packets of the round that has ended.
        let mut s = stage(&Config::default(), 4.0, 50);
        round(&mut s, 50, 10, 5);
        assert_eq!(s.variable("alpha"), 0.0);
        let mut alpha = 0.0;
        for n in 0..200 {
            round(&mut s, 50, 100, 20);
            // The round that ends consists of the packets after its first acknowledgement and the first of this one.
            let share = if n == 0 { 5.0 / 10.0 } else { 20.0 / 100.0 };
            alpha += (share - alpha) / 16.0;
            assert!((s.variable("alpha") - alpha).abs() < 0.01, "{n}: {} {alpha}", s.variable("alpha"));
        }
        assert!((s.variable("alpha") - 0.2).abs() < 1e-3);
    }

    #[test]
    fn a_round_with_marks_costs_half_of_alpha() {
        let mut s = stage(&Config { initial_alpha: 0.4, ..Config::default() }, 4.0, 50);
        round(&mut s, 50, 10, 1);
        let before = s.cwnd();
        s.now += Duration::from_millis(50);
        s.congestion(Signal::Ecn);
        assert!((s.cwnd() - before * 0.8).abs() < 1e-9, "{} {before}", s.cwnd());
        // At the same instant nothing more: the first mark has halved the window already.
        let after = s.cwnd();
        s.congestion(Signal::Ecn);
        assert_eq!(s.cwnd(), after);
    }

    #[test]
    fn the_window_settles_where_growth_and_reduction_are_equal() {
        // A round adds 1 - p and takes W p / 2: W = 2 (1 - p) / p, the inverse of p and not of its root.
        for p in [0.1, 0.05, 0.02] {
            let mut s = stage(&Config::default(), 10.0, 50);
            let (mut carry, mut sum) = (0.0, 0.0);
            for n in 0..2500 {
                let packets = s.cwnd() as u64;
                carry += p * packets as f64;
                let marks = carry as u64;
                carry -= marks as f64;
                round(&mut s, 50, packets, marks);
                if n >= 2000 {
                    sum += s.cwnd() / 500.0;
                }
            }
            let expected = 2.0 * (1.0 - p) / p;
            assert!((sum / expected - 1.0).abs() < 0.1, "{p}: {sum}, not {expected}");
        }
    }

    #[test]
    fn only_unmarked_packets_grow_the_window() {
        let mut s = stage(&Config::default(), 10.0, 50);
        s.cc.saw_ce = true;
        s.cc.frame.cwnd = 100.0;
        let before = s.cwnd();
        s.path.round += 1;
        s.path.marked = Some(1);
        s.ack(AckKind::New, 1.0);
        assert_eq!(s.cwnd(), before);
        s.ack(AckKind::New, 1.0);
        assert_eq!(s.cwnd(), before + 1.0 / 100.0);
    }

    #[test]
    fn below_the_target_growth_is_that_of_the_target() {
        // After the transition a window of an RTT of 5 ms grows by (5 / 25)² segments per round trip.
        for (rtt, per_round) in [(5, 0.04), (12, 0.2304), (25, 1.0), (550, 1.0)] {
            let mut s = stage(&Config::default(), 10.0, rtt);
            s.cc.saw_ce = true;
            (s.cc.rounds, s.cc.frame.cwnd) = (4, 100.0);
            s.ack(AckKind::New, 1.0);
            assert!((s.cwnd() - 100.0 - per_round / 100.0).abs() < 1e-9, "{rtt}: {}", s.cwnd());
            (s.cc.rounds, s.cc.frame.cwnd) = (3, 100.0);
            s.ack(AckKind::New, 1.0);
            assert!((s.cwnd() - 100.01).abs() < 1e-9, "{rtt} before the transition");
        }
        // And reductions are at least 25 ms apart.
        let mut s = stage(&Config { initial_alpha: 1.0, ..Config::default() }, 10.0, 5);
        (s.cc.saw_ce, s.cc.rounds, s.cc.frame.cwnd) = (true, 4, 100.0);
        let mut windows = [0.0; 4];
        for w in &mut windows {
            s.congestion(Signal::Ecn);
            s.now += Duration::from_millis(10);
            *w = s.cwnd();
        }
        assert_eq!(windows, [50.0, 50.0, 50.0, 25.0]);
    }

    #[test]
    fn without_accurate_feedback_it_is_reno() {
        let mut s = stage(&Config::default(), 10.0, 50);
        s.path.marked = None;
        s.cc.frame.cwnd = 40.0;
        s.path.set_in_flight(40.0);
        s.path.set_pipe(40.0);
        s.ack(AckKind::New, 1.0);
        assert!((s.cwnd() - 40.025).abs() < 1e-9);
        s.congestion(Signal::Ecn);
        assert!((s.cwnd() - 20.0).abs() < 0.1, "{}", s.cwnd());
    }

    #[test]
    fn a_loss_halves_the_window_whatever_alpha_is() {
        let mut s = stage(&Config::default(), 10.0, 50);
        s.cc.frame.cwnd = 64.0;
        s.path.set_in_flight(64.0);
        s.path.set_pipe(64.0);
        s.congestion(Signal::Loss);
        assert_eq!((s.cwnd(), s.ssthresh()), (32.0, 32.0));
    }

    #[test]
    fn the_pacing_rate_is_a_window_per_round_trip() {
        let mut s = stage(&Config::default(), 10.0, 100);
        s.cc.frame.cwnd = 50.0;
        s.ack(AckKind::New, 0.0);
        assert_eq!(s.cc.pacing(), Some(Rate::from_bits_per_sec(4_000_000)));
    }

    #[test]
    fn options_outside_their_domain_are_refused() {
        let usual = Config::default();
        assert_eq!(Config { gain: 0.0, ..usual.clone() }.validate(), Err(Invalid::Gain));
        assert_eq!(Config { gain: 1.5, ..usual.clone() }.validate(), Err(Invalid::Gain));
        assert_eq!(Config { initial_alpha: -0.1, ..usual.clone() }.validate(), Err(Invalid::InitialAlpha));
        let tahoe = Config { recovery: RecoveryMode::Tahoe, ..usual };
        assert!(matches!(tahoe.validate(), Err(Invalid::Recovery(_))));
    }
}
