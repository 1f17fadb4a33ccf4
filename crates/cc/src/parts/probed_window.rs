//! The window opened by probes: Sudden Start and Rapid Recovery of \[Peach\], Jump Start and Quick Recovery of
//! \[Peach+\].
//!
//! Both algorithms start with a train of low-priority probes over the first RTT, halve the window at a loss, and
//! then send probes whose answers open it again. Their differences (which answers count, when a probe may be sent,
//! inflation) are in their own files.

use crate::action::{ProbeSource, Train, Window};
use crate::event::{Ack, AckKind, Clock, Cx, Path, Phase, ProbeSupport, Start, Transmit};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::rules::{HalvingBase, SharedRules};
use skyhaul_base::{Duration, math};

/// RTT assumed if neither the handshake nor data has given one (R5).
const RTT_INIT: Duration = Duration::from_secs(1);

/// How the window opens at the start, after a timeout, and after an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A train of probes over the first RTT.
    Train,
    /// Reno's slow start.
    Slow,
}

/// The guard after a timeout or an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WdsnOnRestart {
    /// `wdsn := 0`, as "in the beginning of a new connection" (\[Peach §III-A\]).
    Zero,
    /// It keeps its value: \[Peach\] Fig. 2 never sets it.
    Keep,
}

/// Options common to both algorithms.
#[derive(Clone, Debug)]
pub struct Options {
    /// Payload of the probes.
    pub source: ProbeSource,
    /// Opening of a connection.
    pub start: Opening,
    /// Opening after a timeout.
    pub on_rto: Opening,
    /// Opening after an idle period longer than the RTO.
    pub on_idle: Opening,
    /// Maximum segments of a train, including the data segment.
    pub probe_cap: Option<u32>,
    /// A train has at most as many probes as there is data to follow them (R6).
    pub limit_to_app: bool,
    /// An acknowledgement clocks out probes even if no data is waiting (R24, Q8).
    pub without_data: bool,
    /// The guard after a timeout and idling (R23).
    pub wdsn_on_restart: WdsnOnRestart,
    /// What is halved.
    pub halving_base: HalvingBase,
    /// The halved window is rounded down to whole segments.
    pub integer_halving: bool,
}

/// The window and the two probe counters.
#[derive(Clone, Debug)]
pub struct ProbedWindow {
    /// Congestion window, with inflation.
    pub cwnd: f64,
    /// Slow start threshold.
    pub ssthresh: f64,
    /// The part of the window that is inflation.
    pub infl: Inflation,
    /// Number of coming answers to probes that will not open the window: the guard \[Peach §III-A\].
    pub wdsn: u32,
    /// Number of probes that the recovery may still send \[Peach §III-C\].
    pub adsn: u32,
    /// The current acknowledgement revealed the loss: it clocks out no probe.
    pub just_entered: bool,
    /// `ssthresh` was set by a loss, not by the last train.
    ssthresh_by_loss: bool,
    options: Options,
    /// The preset; growth and halving always follow the papers.
    rules: SharedRules,
    /// Window and `ssthresh_by_loss` before the last reduction, for undo.
    before: (Window, bool),
}

impl ProbedWindow {
    /// A window that has not started.
    #[must_use]
    pub fn new(options: Options, rules: SharedRules) -> Self {
        let start = Window { cwnd: 1.0, ssthresh: 1.0 };
        Self {
            cwnd: start.cwnd,
            ssthresh: start.ssthresh,
            infl: Inflation::default(),
            wdsn: 0,
            adsn: 0,
            just_entered: false,
            ssthresh_by_loss: false,
            options,
            rules,
            before: (start, false),
        }
    }

    /// The endpoint's window rules, for a control that takes over.
    #[must_use]
    pub fn rules(&self) -> &SharedRules {
        &self.rules
    }

    /// For `CongestionControl::window`.
    #[inline]
    #[must_use]
    pub fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// The window for Reno to take over. A threshold that only prevents slow start during a train is dropped.
    #[must_use]
    pub fn for_reno(&self, path: &Path) -> Window {
        let ssthresh = if self.ssthresh_by_loss { self.ssthresh } else { growth::peers_window(path) };
        Window { cwnd: self.cwnd, ssthresh }
    }

    /// `on_start`.
    pub fn start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let iw = self.rules.initial_window.segments(cx.path.smss).max(1.0);
        match *start {
            Start::Established { rtt, syn_lost, .. } => match self.options.start {
                Opening::Train => self.open_by_train(cx, rtt),
                Opening::Slow => {
                    let ssthresh = growth::initial_ssthresh(&self.rules, cx.path);
                    self.open_slowly(cx, if syn_lost { 1.0 } else { iw }, ssthresh);
                }
            },
            Start::Idle => match self.options.on_idle {
                Opening::Train => self.open_by_train(cx, None),
                Opening::Slow => {
                    self.cwnd = self.cwnd.min(iw);
                    self.restart_guard();
                }
            },
        }
    }

    /// \[Peach §III-B\], \[Peach+ §I-B\]: one data segment, then `rwnd - 1` probes.
    fn open_by_train(&mut self, cx: &mut Cx<'_>, handshake_rtt: Option<Duration>) {
        // With ssthresh at 1, congestion avoidance applies from the start (R4).
        self.opened(1.0, 1.0);
        self.ssthresh_by_loss = false;
        self.train(cx, handshake_rtt);
    }

    fn open_slowly(&mut self, cx: &mut Cx<'_>, cwnd: f64, ssthresh: f64) {
        cx.act.stop_probes = true;
        self.opened(cwnd, ssthresh);
    }

    fn opened(&mut self, cwnd: f64, ssthresh: f64) {
        self.cwnd = cwnd;
        self.ssthresh = ssthresh;
        self.infl.clear();
        self.restart_guard();
        self.adsn = 0;
        self.just_entered = false;
    }

    fn restart_guard(&mut self) {
        if self.options.wdsn_on_restart == WdsnOnRestart::Zero {
            self.wdsn = 0;
        }
    }

    /// Requests `rwnd - 1` probes after the first data segment, one every `tau = RTT / rwnd`, or stops a train if
    /// there is nothing to probe for.
    fn train(&self, cx: &mut Cx<'_>, handshake_rtt: Option<Duration>) {
        let rtt = cx.path.srtt.or(handshake_rtt).unwrap_or(RTT_INIT);
        let rwnd = cx.path.rwnd;
        let mut total = rwnd;
        if let Some(cap) = self.options.probe_cap {
            total = total.min(f64::from(cap));
        }
        if self.options.limit_to_app {
            total = total.min(math::ceil(cx.path.queued() + cx.path.in_flight()));
        }
        if rwnd < 2.0 || total < 2.0 || cx.path.probes == ProbeSupport::No {
            cx.act.stop_probes = true;
            return;
        }
        let tau = rtt.mul_f64(1.0 / rwnd);
        let source = self.options.source;
        cx.act.train = Some(Train { source, count: total as u32 - 1, first: tau, spacing: tau });
        if cx.path.probes == ProbeSupport::Unknown {
            // Slow start if nothing answers within 2 RTT + 4 RTTVAR of the last probe, which leaves after one RTT (R3).
            cx.act.wake_at = Some(cx.now + rtt * 3 + cx.path.rttvar * 4);
        }
    }

    /// `on_ack`, outside of recovery: growth by each acknowledgement, never beyond rwnd, "cwnd := min(cwnd + 1,
    /// rwnd)" (R15). Returns [`Self::advances`].
    #[inline(always)]
    pub fn grow(&mut self, cx: &Cx<'_>, ack: &Ack) -> bool {
        let advances = Self::advances(cx, ack);
        if advances && ack.cwnd_limited {
            self.grow_to(cx.path, growth::per_ack(self.cwnd, self.ssthresh));
        }
        advances
    }

    /// Whether the acknowledgement advances outside of recovery, so that the window may grow.
    #[inline(always)]
    #[must_use]
    pub fn advances(cx: &Cx<'_>, ack: &Ack) -> bool {
        matches!(ack.kind, AckKind::New | AckKind::Full) && cx.path.phase != Phase::Recovery
    }

    /// The window grows, never beyond rwnd (R15).
    #[inline(always)]
    pub fn grow_to(&mut self, path: &Path, grown: f64) {
        self.cwnd = growth::within_rwnd(path, grown, self.cwnd);
    }

    /// `count` probes were answered: how many of them show spare capacity, after the guard.
    pub fn free_slots(&mut self, count: u32) -> f64 {
        let guarded = count.min(self.wdsn);
        self.wdsn -= guarded;
        f64::from(count - guarded)
    }

    /// Opens the window by this many segments, up to the receive window.
    pub fn open(&mut self, path: &Path, segments: f64) {
        self.cwnd = (self.cwnd + segments).min(path.rwnd.max(self.cwnd));
    }

    /// Half of the window without inflation.
    fn half(&self, cx: &Cx<'_>) -> f64 {
        let cwnd = self.infl.without(self.cwnd);
        growth::fraction(self.options.halving_base, self.options.integer_halving, cx.path, cwnd, 0.5)
    }

    /// `on_congestion`: the window is halved, and probes not yet sent are dropped. Returns the whole segments of the
    /// halved window.
    pub fn halve(&mut self, cx: &mut Cx<'_>) -> u32 {
        self.remember();
        cx.act.stop_probes = true;
        self.ssthresh_by_loss = true;
        let half = self.half(cx);
        self.cwnd = half;
        self.ssthresh = half;
        self.infl.clear();
        self.adsn = 0;
        math::floor(half) as u32
    }

    /// From the next acknowledgement on, `count` probes may be sent, if the peer answers probes.
    pub fn allow(&mut self, path: &Path, count: u32) {
        if path.probes == ProbeSupport::Yes {
            self.adsn = count;
            self.just_entered = true;
        }
    }

    /// `on_transmit`: if `allowed`, an acknowledgement clocks out at most `most` probes.
    pub fn clock_out(&mut self, cx: &mut Cx<'_>, transmit: &Transmit, allowed: bool, most: u32) {
        if self.adsn == 0 || core::mem::take(&mut self.just_entered) {
            return;
        }
        let clocked = matches!(transmit.clock, Clock::Ack | Clock::Probe);
        // No probing without data to send (R24, Q8).
        if clocked && allowed && (self.options.without_data || cx.path.queued() > 0.0) {
            let count = self.adsn.min(most);
            cx.act.probe_now = Some((self.options.source, count));
            self.adsn -= count;
        }
    }

    /// `on_timeout`.
    pub fn timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if backoff <= 1 {
            self.remember();
        }
        match self.options.on_rto {
            Opening::Train => self.open_by_train(cx, None),
            Opening::Slow => {
                let ssthresh = if backoff <= 1 { self.half(cx) } else { self.ssthresh };
                self.open_slowly(cx, 1.0, ssthresh);
                self.ssthresh_by_loss = true;
            }
        }
    }

    /// Saves the state, without inflation, that [`Self::undo`] restores.
    fn remember(&mut self) {
        let before = Window { cwnd: self.infl.without(self.cwnd), ssthresh: self.ssthresh };
        self.before = (before, self.ssthresh_by_loss);
    }

    /// `on_undo`: reverts the last reduction and stops its probes.
    pub fn undo(&mut self, cx: &mut Cx<'_>) {
        let (before, ssthresh_by_loss) = self.before;
        cx.act.stop_probes = true;
        self.adsn = 0;
        self.wdsn = 0;
        self.infl.end(&mut self.cwnd);
        self.cwnd = growth::within_rwnd(cx.path, self.cwnd.max(before.cwnd), self.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.ssthresh_by_loss = ssthresh_by_loss;
    }

    /// `on_wake`: slow start, if neither a capable nor a legacy receiver has answered the train (R3).
    pub fn silence(&mut self, path: &Path) {
        if !self.ssthresh_by_loss && path.probes == ProbeSupport::Unknown {
            self.ssthresh = growth::peers_window(path);
        }
    }
}
