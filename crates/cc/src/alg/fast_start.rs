//! TCP Fast Start.
//!
//! *Idea*: a transfer that follows another one on the same path need not learn the window again. It starts with the
//! cached window, paced over an RTT, but every segment after the first has low priority, so that routers drop it
//! first if the cached value is stale: other flows are not harmed. If a fine-grained *reset timer* or a partial
//! acknowledgement shows that the attempt failed, the sender falls back to the initial window and to the first
//! unacknowledged segment, without timer backoff. *Source*: Padmanabhan, Katz, "TCP Fast Start: a technique for
//! speeding up web transfers", GLOBECOM 1998; ns-2's `tcp-fs`, from which the arithmetic of the cached window
//! comes. Low-priority segments are data, unlike the probes of TCP-Peach: dropped ones must be retransmitted.
//!
//! Readings: pacing releases single segments at one window per RTT (ns-2 releases `maxburst` at a time); a transfer
//! shorter than the window of the attempt leaves Fast Start with its last acknowledgement. After an idle period the cache is
//! this connection's own. At the start it is the state that the driver remembers of an earlier connection on the
//! path ([`PathState`]), with cwnd, ssthresh, SRTT and RTTVAR, as the paper caches them; without one the connection
//! uses slow start. The options `cached-*` replace cwnd and ssthresh of that state, not those after an idle period.

use crate::action::{PathCache, Policy, Priority, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, AckKind, Cx, PathState, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::rules::{MOST_SEGMENTS, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, Rate};

skyhaul_base::options! {
    /// Options of TCP Fast Start.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Window of an earlier transfer on the path, in segments. By default, the window of an earlier connection on the
        /// path; if there is none, the first transfer uses slow start.
        cached_window: Option<f64> = None,
        /// Slow start threshold of that transfer, in segments; by default equal to the window, as in congestion avoidance.
        cached_ssthresh: Option<f64> = None,
        /// Send the segments of the attempt with low priority (default). `false` is for ablation studies.
        low_priority: bool = true,
        /// Spread the attempt over an RTT (default). `false` sends it at once.
        pacing: bool = true,
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
    #[error("cached-window must be from 1 to 1e9 segments")]
    CachedWindow,
    #[error("cached-ssthresh must be from 1 to 1e9 segments")]
    CachedSsthresh,
    #[error("cached-ssthresh needs cached-window: write both, in segments")]
    CachedSsthreshAlone,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    type Control = Box<FastStart>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |n: Option<f64>| n.is_some_and(|n| !(1.0..=MOST_SEGMENTS).contains(&n));
        if wrong(self.cached_window) {
            return Err(Invalid::CachedWindow);
        }
        if wrong(self.cached_ssthresh) {
            return Err(Invalid::CachedSsthresh);
        }
        if self.cached_ssthresh.is_some() && self.cached_window.is_none() {
            return Err(Invalid::CachedSsthreshAlone);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<FastStart> {
        Box::new(FastStart::new(self, rules))
    }
}

/// An attempt in progress, in bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Attempt {
    /// Where it began; the first segment has normal priority.
    from: u64,
    /// Start and end of the low-priority data.
    low: u64,
    end: u64,
    pace: Option<Rate>,
}

/// TCP Fast Start.
#[derive(Clone, Debug)]
pub struct FastStart {
    frame: Frame,
    config: Config,
    /// Bytes acknowledged: `SND.UNA` as an offset.
    una: u64,
    attempt: Option<Attempt>,
}

impl FastStart {
    /// A TCP Fast Start control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self { frame: Frame::new(rules, config.recovery), config: config.clone(), una: 0, attempt: None }
    }

    /// The initial state of the first transfer: from the options, or from an earlier connection.
    fn cached(&self, learnt: Option<PathState>) -> Option<Window> {
        let own = |cwnd| Window { cwnd, ssthresh: self.config.cached_ssthresh.unwrap_or(cwnd) };
        let learnt = learnt.map(|s| Window { cwnd: s.cwnd, ssthresh: s.ssthresh });
        self.config.cached_window.map(own).or(learnt).filter(|w| w.cwnd > 1.0)
    }

    /// The time at which the attempt has failed unless an acknowledgement arrives before: the reset timer.
    fn timer(cx: &Cx<'_>, rtt: Option<Duration>) -> Option<Instant> {
        rtt.map(|r| cx.now + r + cx.path.rttvar * 4)
    }

    /// Begins an attempt with the window derived from the cached one.
    fn enter(&mut self, cx: &mut Cx<'_>, window: Window, rtt: Option<Duration>) {
        let cwnd = if window.cwnd < window.ssthresh { window.cwnd / 2.0 } else { window.cwnd - 1.0 };
        let cwnd = cwnd.max(1.0);
        self.frame.reset(cwnd);
        self.frame.ssthresh = window.ssthresh;
        let smss = u64::from(cx.path.smss);
        let pace = rtt.filter(|_| self.config.pacing);
        let pace = pace.and_then(|r| Rate::from_bytes_over(cwnd * smss as f64, r));
        self.attempt = Some(Attempt {
            from: self.una,
            low: self.una + smss,
            end: self.una + (cwnd * smss as f64) as u64,
            pace: pace.filter(|r| r.bits_per_sec() > 0),
        });
        cx.act.wake_at = Self::timer(cx, rtt);
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        if self.attempt.take().is_some() {
            cx.act.wake_at = Some(Instant::MAX);
        }
    }

    /// The attempt has failed: restarts with the initial window, unless not even the first segment arrived; that is
    /// left to the retransmission timer.
    fn give_up(&mut self, cx: &mut Cx<'_>) {
        let Some(attempt) = self.attempt else { return };
        self.leave(cx);
        if self.una > attempt.from {
            // The initial window, unless a loss has left a smaller one.
            let iw = self.frame.rules.initial_window.segments(cx.path.smss).max(1.0);
            self.frame.reset(iw.min(self.frame.deflated()));
            cx.act.rewind = true;
        }
    }
}

impl CongestionControl for FastStart {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.attempt.and_then(|a| a.pace)
    }
    fn policy(&self) -> Policy {
        Policy {
            low_priority_data: self.config.low_priority,
            rtt_samples: false,
            path_cache: PathCache::WindowAndRtt,
            ..self.frame.policy()
        }
    }
    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        match self.attempt {
            Some(a) if self.config.low_priority && !retransmission && offset >= a.low && offset < a.end => {
                Priority::Low
            }
            _ => Priority::Normal,
        }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let before = self.frame.window();
        self.frame.start(cx, start);
        match *start {
            Start::Established { rtt, syn_lost, cached } => {
                // A lost SYN may mean congestion: the initial window is then one segment (RFC 5681 §3.1), and the cached one is not used.
                if let Some(window) = self.cached(cached).filter(|_| !syn_lost) {
                    self.enter(cx, window, cx.path.srtt.or(rtt));
                }
            }
            // ns-2 begins an attempt after an idle period longer than the reset timer. This one is longer than the RTO, and so than
            // the reset timer, too.
            Start::Idle if before.cwnd > 1.0 => self.enter(cx, before, cx.path.srtt),
            Start::Idle => {}
        }
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.una += (ack.acked * f64::from(cx.path.smss) + 0.5) as u64;
        if self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, ack);
        }
        if let Some(attempt) = self.attempt {
            let over = cx.path.in_flight() <= 0.0 && cx.path.queued() <= 0.0;
            if self.una >= attempt.end || over {
                self.leave(cx);
            } else if ack.kind == AckKind::Partial {
                self.give_up(cx);
            } else if ack.acked > 0.0 {
                cx.act.wake_at = Self::timer(cx, cx.path.srtt);
            }
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let half = self.frame.half(cx);
        self.frame.reduce(signal, half, half);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        self.leave(cx);
        let half = self.frame.half(cx);
        self.frame.timeout(backoff, half);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        if cx.path.in_flight() > 0.0 {
            self.give_up(cx);
        } else {
            self.leave(cx);
        }
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("fast_start", f64::from(u8::from(self.attempt.is_some())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InitialSsthresh;
    use crate::rules::Rules;
    use crate::testing::Stage;

    const RTT: Duration = Duration::from_millis(500);

    fn new(config: Config) -> Stage<FastStart> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(16.0), ..Rules::NS2_2001 };
        Stage::new(FastStart::new(&config, &rules), 64.0)
    }
    /// A transfer of 15 segments is over with a window of 16; another one begins after a pause.
    fn second(config: Config) -> (Stage<FastStart>, crate::Actions) {
        let mut s = new(config);
        s.start(Some(RTT));
        s.path.srtt = Some(RTT);
        s.path.rttvar = Duration::from_millis(25);
        s.new_acks(15);
        assert_eq!((s.cwnd(), s.ssthresh()), (16.0, 16.0));
        s.now += Duration::from_secs(10);
        let act = s.idle();
        s.path.set_in_flight(15.0);
        (s, act)
    }
    fn active(s: &Stage<FastStart>) -> bool {
        s.variable("fast_start") > 0.0
    }

    #[test]
    fn the_first_transfer_knows_nothing() {
        let mut s = new(Config::default());
        s.start(Some(RTT));
        assert_eq!((s.cwnd(), active(&s), s.cc.pacing()), (1.0, false, None));
        assert_eq!(s.cc.priority(5000, false), Priority::Normal);
    }

    #[test]
    fn the_second_one_begins_where_the_first_ended() {
        let (mut s, act) = second(Config::default());
        // One less in congestion avoidance; 15 segments of 1000 bytes in 0.5 s; timer 0.5 + 4 * 0.025 s.
        assert_eq!(s.cwnd(), 15.0);
        assert_eq!(s.cc.pacing().map(Rate::bits_per_sec), Some(240_000));
        assert_eq!(act.wake_at, Some(s.now + Duration::from_millis(600)));
        // Bytes 15000 to 30000, the first segment with normal priority, retransmissions too.
        let low = |offset, again| s.cc.priority(offset, again) == Priority::Low;
        assert_eq!(
            [14_000, 15_000, 16_000, 29_000, 30_000].map(|o| low(o, false)),
            [false, false, true, true, false]
        );
        assert!(!low(16_000, true));
        // Over with the acknowledgement of the last one.
        s.new_acks(14);
        assert!(active(&s));
        assert_eq!(s.ack(AckKind::New, 1.0).wake_at, Some(Instant::MAX));
        assert_eq!((active(&s), s.cc.pacing()), (false, None));
    }

    #[test]
    fn half_of_a_window_of_slow_start() {
        let mut s = new(Config::default());
        s.start(Some(RTT));
        s.new_acks(9);
        s.idle();
        assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 16.0));
    }

    #[test]
    fn a_window_from_the_connection_before() {
        let left =
            PathState { cwnd: 12.0, ssthresh: 16.0, srtt: Some(RTT), rttvar: Duration::from_millis(25) };
        let begin = |s: &mut Stage<FastStart>, syn_lost, cached| {
            let start = Start::Established { rtt: Some(RTT), syn_lost, cached };
            s.call(|cc, cx| cc.on_start(cx, &start));
            (s.cwnd(), s.ssthresh(), active(s))
        };
        // Half of a window of slow start; one less of congestion avoidance.
        assert_eq!(begin(&mut new(Config::default()), false, Some(left)), (6.0, 16.0, true));
        let avoided = PathState { cwnd: 17.5, ..left };
        assert_eq!(begin(&mut new(Config::default()), false, Some(avoided)), (16.5, 16.0, true));
        assert_eq!(begin(&mut new(Config::default()), true, Some(left)), (1.0, 16.0, false), "lost SYN");
        assert_eq!(begin(&mut new(Config::default()), false, None), (1.0, 16.0, false), "nothing is known");
        let one = PathState { cwnd: 1.0, ..left };
        assert_eq!(begin(&mut new(Config::default()), false, Some(one)), (1.0, 16.0, false));
        // The option comes first.
        let own = Config { cached_window: Some(30.0), ..Config::default() };
        assert_eq!(begin(&mut new(own), false, Some(left)), (29.0, 30.0, true));
        let mut s = new(Config { cached_window: Some(30.0), ..Config::default() });
        s.start(Some(RTT));
        assert_eq!((s.cwnd(), s.ssthresh(), active(&s)), (29.0, 30.0, true));
        assert_eq!(s.cc.priority(0, false), Priority::Normal);
        assert_eq!(s.cc.priority(1000, false), Priority::Low);
    }

    #[test]
    fn the_reset_timer_goes_back_without_backing_off() {
        let (mut s, _) = second(Config::default());
        s.new_acks(3);
        let act = s.wake();
        assert!(act.rewind);
        assert_eq!((s.cwnd(), s.ssthresh(), active(&s)), (1.0, 16.0, false));
        // Not even the first segment arrived: the retransmission timer's business.
        let (mut s, _) = second(Config::default());
        assert!(!s.wake().rewind);
        assert_eq!((s.cwnd(), active(&s)), (15.0, false));
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 7.0));
    }

    #[test]
    fn each_acknowledgement_restarts_the_reset_timer() {
        let (mut s, _) = second(Config::default());
        s.now += Duration::from_millis(500);
        assert_eq!(s.ack(AckKind::New, 1.0).wake_at, Some(s.now + Duration::from_millis(600)));
        assert_eq!(s.duplicate(1).wake_at, None);
    }

    #[test]
    fn a_partial_acknowledgement_ends_the_attempt() {
        let (mut s, _) = second(Config::default());
        s.new_acks(2);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 8.0);
        assert!(s.ack(AckKind::Partial, 3.0).rewind);
        assert_eq!((s.cwnd(), active(&s)), (1.0, false));
        s.recovered();
        assert_eq!(s.cwnd(), 1.0);
    }

    #[test]
    fn options() {
        let (s, _) = second(Config { low_priority: false, pacing: false, ..Config::default() });
        assert_eq!((s.cc.priority(16_000, false), s.cc.pacing()), (Priority::Normal, None));
        let (mut s, _) = second(Config::default());
        s.path.set_in_flight(0.0);
        s.path.set_queued(0.0);
        s.new_acks(1);
        assert!(!active(&s), "a shorter transfer is over with its last acknowledgement");
        for n in [0.0, 1e300, f64::NAN, f64::INFINITY] {
            assert!(Config { cached_window: Some(n), ..Config::default() }.validate().is_err());
        }
        assert!(Config { cached_ssthresh: Some(4.0), ..Config::default() }.validate().is_err());
    }
}
