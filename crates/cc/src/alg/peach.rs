//! TCP-Peach.
//!
//! *Idea*: on a path with a long RTT, ask the network instead of waiting. A connection starts by spreading
//! `rwnd - 1` low-priority *dummy* segments over the first RTT (Sudden Start); each that comes back is proof of
//! a free slot and opens the window by one. After a loss the window is halved as always, but as many dummies as
//! the old window held go out during recovery (Rapid Recovery). Had the network been congested, about half of
//! them are dropped, and the first `wdsn` answers count for nothing: the flow stays halved like Reno. Had the
//! loss been a link error, all return and the window is restored within two RTTs.
//! *Source*: Akyildiz, Morabito, Palazzo, "TCP-Peach: a new congestion control scheme for satellite IP
//! networks", IEEE/ACM Trans. Networking 9(3), 2001 — cited as \[Peach\]. The sender knows no Peach: dummies are
//! its general low-priority probes. Where the paper is silent or contradicts itself, the choice is a numbered
//! resolution `R n` (see the book's page on this algorithm) and a named option of [`Config`].

use crate::CongestionControl;
use crate::action::{Policy, ProbeSource, RecoveryEnd, RecoveryMode, Window};
use crate::alg::reno::{self, Reno};
use crate::event::{Ack, AckKind, Clock, Cx, Phase, ProbeEvent, ProbeSupport, Signal, Start, Transmit};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::parts::train;
use crate::rules::{HalvingBase, SharedRules};
use skyhaul_base::{Duration, math};

/// How the window opens at the start, after a timeout, after idling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Opening {
    /// Sudden Start \[Peach §III-B\].
    Sudden,
    /// Reno's slow start.
    Slow,
}

/// What a new loss does to the dummies still owed to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WdsnOnLoss {
    /// `wdsn := cwnd` (\[Peach\] Fig. 4, literally).
    Overwrite,
    /// The new guard is added to what is left of the old one.
    Accumulate,
}

/// Dummy acknowledgements that arrive inside Rapid Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DummyAcksInRecovery {
    /// They lower `wdsn`, and inflate the window once it is zero (\[Peach\] Fig. 4, literally).
    Count,
    /// They do nothing.
    Ignore,
}

/// What `nackseg` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Nackseg {
    /// `SND.NXT - SND.UNA`; the window is inflated by each acknowledgement.
    FlightSize,
    /// The scoreboard's pipe; the window stays at half.
    Pipe,
}

/// When Rapid Recovery sends its dummies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Dummies {
    /// Two on every acknowledgement until they are spent.
    EveryAck,
    /// Two on each acknowledgement that lets no data go (\[Peach\] Fig. 4, literally).
    WhenBlocked,
}

/// Dummies not yet sent when Rapid Recovery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LeftoverAdsn {
    /// `adsn := 0` (\[Peach §III-C\], text).
    Drop,
    /// They still go out, two per acknowledgement (\[Peach\] Fig. 4 omits the reset).
    Keep,
}

/// Options of TCP-Peach. The defaults are the literal text of the paper.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "kebab-case", deny_unknown_fields)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// How losses are repaired: `reno` (Fig. 4), `newreno`, or `sack` (default; §V gives both contenders SACK).
    pub recovery: RecoveryMode,
    /// End of Rapid Recovery: all data outstanding at entry acknowledged (default), or the triggering segment,
    /// which halves once per lost segment. R14.
    pub recovery_end: RecoveryEnd,
    /// Opening of a connection. `slow` is the ablation without Sudden Start.
    pub start: Opening,
    /// Opening after a timeout: `sudden` (text, twice) or `slow` (Fig. 4). R10.
    pub on_rto: Opening,
    /// Opening after an idle period longer than the RTO.
    pub on_idle: Opening,
    /// Send dummies after a loss. `false` is the ablation without Rapid Recovery.
    pub rapid_recovery: bool,
    /// Cut the halved window to whole segments (default). R11.
    pub integer_halving: bool,
    /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize. R19.
    pub halving_base: HalvingBase,
    /// Segments added at the start of a `reno` or `newreno` recovery; 0 by the paper's Figs. 7 and 9. R8.
    pub inflate_ndup: f64,
    /// What a new loss does to the guard. R13.
    pub wdsn_on_loss: WdsnOnLoss,
    /// Dummy acknowledgements inside Rapid Recovery. R16.
    pub dummy_acks_in_recovery: DummyAcksInRecovery,
    /// `nackseg`; by default `pipe` with recovery `sack`, else `flight-size`. R9.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub nackseg: Option<Nackseg>,
    /// When dummies go; by default `every-ack` with `nackseg = pipe`, else `when-blocked`. R9.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub dummies: Option<Dummies>,
    /// Dummies left over at the end. R12.
    pub leftover_adsn: LeftoverAdsn,
    /// Dummy answers that belong to an earlier episode are ignored where probes carry ids. R13.
    pub strict_epoch: bool,
    /// Sudden Start sends no more dummies than there is data to follow them. R6.
    pub limit_to_app: bool,
    /// Most segments of a Sudden Start, the data segment included; none by default.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub probe_cap: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            recovery: RecoveryMode::Sack,
            recovery_end: RecoveryEnd::AllOutstanding,
            start: Opening::Sudden,
            on_rto: Opening::Sudden,
            on_idle: Opening::Sudden,
            rapid_recovery: true,
            integer_halving: true,
            halving_base: HalvingBase::Window,
            inflate_ndup: 0.0,
            wdsn_on_loss: WdsnOnLoss::Overwrite,
            dummy_acks_in_recovery: DummyAcksInRecovery::Count,
            nackseg: None,
            dummies: None,
            leftover_adsn: LeftoverAdsn::Drop,
            strict_epoch: true,
            limit_to_app: false,
            probe_cap: None,
        }
    }
}

impl Config {
    /// The combination that makes no sense, if there is one, as a sentence for the user.
    ///
    /// # Errors
    /// Names the offending option and what to write instead.
    pub fn validate(&self) -> Result<(), &'static str> {
        if !matches!(self.recovery, RecoveryMode::Reno | RecoveryMode::NewReno | RecoveryMode::Sack) {
            return Err("recovery: TCP-Peach is defined with \"reno\", \"newreno\" or \"sack\"");
        }
        if self.nackseg == Some(Nackseg::Pipe) && !self.recovery.uses_pipe() {
            return Err("nackseg = \"pipe\" needs the scoreboard of recovery = \"sack\"");
        }
        if !(self.inflate_ndup.is_finite() && self.inflate_ndup >= 0.0) {
            return Err("inflate-ndup must be a number of segments, 0 or more");
        }
        if self.probe_cap == Some(0) {
            return Err("probe-cap counts the data segment too: 1 or more, or leave it out");
        }
        Ok(())
    }
}

/// TCP-Peach.
#[derive(Clone, Debug)]
pub struct Peach {
    cwnd: f64,
    ssthresh: f64,
    infl: Inflation,
    /// Dummy answers that do not count \[Peach §III-A\].
    wdsn: u32,
    /// Dummies that Rapid Recovery may still send \[Peach §III-C\]; even.
    adsn: u32,
    /// The acknowledgement being processed is the one that started the recovery: its dummies wait.
    just_entered: bool,
    /// `ssthresh` stems from a loss, not from the last Sudden Start.
    lost_before: bool,
    /// The peer does not answer: everything is delegated to the configured Reno \[Peach §III-A\].
    legacy: bool,
    pipe: bool,
    every_ack: bool,
    config: Config,
    /// The preset; growth and halving follow the paper whatever it says.
    rules: SharedRules,
    /// Window before the last reduction, and whether `ssthresh` stemmed from a loss, for undo.
    before: (Window, bool),
    reno: Reno,
}

impl Peach {
    /// A TCP-Peach control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let rules = rules.into();
        let pipe = match config.nackseg {
            Some(n) => n == Nackseg::Pipe,
            None => config.recovery.uses_pipe(),
        };
        Self {
            cwnd: 1.0,
            ssthresh: 1.0,
            infl: Inflation::default(),
            wdsn: 0,
            adsn: 0,
            just_entered: false,
            lost_before: false,
            legacy: false,
            pipe,
            every_ack: match config.dummies {
                Some(d) => d == Dummies::EveryAck,
                None => pipe,
            },
            config: config.clone(),
            before: (Window { cwnd: 1.0, ssthresh: 1.0 }, false),
            reno: Reno::new(&reno::Config::default(), &rules, config.recovery),
            rules,
        }
    }

    /// \[Peach §III-B\]: one data segment, then `rwnd - 1` dummies, one every `tau = RTT / rwnd`.
    fn sudden_start(&mut self, cx: &mut Cx<'_>, handshake_rtt: Option<Duration>) {
        self.cwnd = 1.0;
        // With ssthresh at 1 congestion avoidance holds from the start (R4).
        self.ssthresh = 1.0;
        self.lost_before = false;
        self.wdsn = 0;
        self.adsn = 0;
        self.infl.clear();
        train::open(
            cx,
            ProbeSource::LastSegment,
            handshake_rtt,
            self.config.probe_cap,
            self.config.limit_to_app,
        );
    }

    fn slow_start(&mut self, cx: &mut Cx<'_>, cwnd: f64, ssthresh: f64) {
        cx.act.stop_probes = true;
        self.cwnd = cwnd;
        self.ssthresh = ssthresh;
        self.wdsn = 0;
        self.adsn = 0;
        self.infl.clear();
    }

    fn opening(&self, cx: &Cx<'_>) -> f64 {
        self.rules.initial_window.segments(cx.path.smss).max(1.0)
    }

    fn inflates(&self) -> bool {
        !self.pipe
    }

    /// "cwnd := min(cwnd + 1, rwnd)": the window never passes rwnd (R15).
    #[inline]
    fn grown(&self, cx: &Cx<'_>) -> f64 {
        growth::within_rwnd(cx.path, growth::per_ack(self.cwnd, self.ssthresh), self.cwnd)
    }

    fn half(&self, cx: &Cx<'_>) -> f64 {
        growth::part(self.config.halving_base, self.config.integer_halving, cx.path, self.cwnd, 0.5)
    }

    /// What an undo of the reduction that follows restores.
    fn remember(&mut self) {
        let mut before = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        { self.infl }.end(&mut before.cwnd);
        self.before = (before, self.lost_before);
    }
}

impl CongestionControl for Peach {
    #[inline]
    fn window(&self) -> Window {
        if self.legacy { self.reno.window() } else { Window { cwnd: self.cwnd, ssthresh: self.ssthresh } }
    }

    fn policy(&self) -> Policy {
        if self.legacy {
            return self.reno.policy();
        }
        Policy {
            recovery: self.config.recovery,
            recovery_end: self.config.recovery_end,
            gate_on_flight: self.config.recovery.uses_pipe() && !self.pipe,
            probes: true,
            transmit_events: true,
            rtt_samples: false,
            ..Policy::default()
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        if cx.path.probes == ProbeSupport::No {
            self.legacy = true;
        }
        if self.legacy {
            return self.reno.on_start(cx, start);
        }
        match *start {
            Start::Established { rtt, .. } if self.config.start == Opening::Sudden => {
                self.sudden_start(cx, rtt)
            }
            Start::Established { .. } => {
                let (iw, ssthresh) = (self.opening(cx), growth::initial_ssthresh(&self.rules, cx.path));
                self.slow_start(cx, iw, ssthresh);
            }
            Start::Idle if self.config.on_idle == Opening::Sudden => self.sudden_start(cx, None),
            Start::Idle => self.cwnd = self.cwnd.min(self.opening(cx)),
        }
    }

    #[inline]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.legacy {
            return self.reno.on_ack(cx, ack);
        }
        match (ack.kind, cx.path.phase) {
            (AckKind::New | AckKind::Full, Phase::Open | Phase::Loss) if ack.cwnd_limited => {
                self.cwnd = self.grown(cx);
            }
            // Each acknowledgement inflates, the final one included (R17): the figures peak at 42.
            (AckKind::Duplicate { .. } | AckKind::Full, Phase::Recovery) if self.inflates() => {
                self.infl.add(&mut self.cwnd, 1.0);
            }
            (AckKind::Partial, Phase::Recovery) if self.inflates() => {
                self.infl.partial(&mut self.cwnd, ack.acked)
            }
            _ => {}
        }
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        if self.legacy {
            return;
        }
        match event {
            ProbeEvent::Acked { stale: true, .. } if self.config.strict_epoch => {}
            ProbeEvent::Acked { count, .. } => {
                let in_recovery = cx.path.phase == Phase::Recovery;
                if in_recovery && self.config.dummy_acks_in_recovery == DummyAcksInRecovery::Ignore {
                    return;
                }
                let guarded = count.min(self.wdsn);
                self.wdsn -= guarded;
                let free = f64::from(count - guarded);
                if !in_recovery {
                    self.cwnd = (self.cwnd + free).min(cx.path.rwnd.max(self.cwnd));
                } else if self.inflates() {
                    self.infl.add(&mut self.cwnd, free);
                }
            }
            ProbeEvent::Unsupported => {
                // [Peach §III-B]: the sender stops sending dummies and uses TCP-Reno.
                self.legacy = true;
                cx.act.stop_probes = true;
                cx.act.wake_at = Some(skyhaul_base::Instant::MAX);
                let ssthresh = if self.lost_before { self.ssthresh } else { growth::peers_window(cx.path) };
                self.reno.take_over(Window { cwnd: self.cwnd, ssthresh }, self.infl);
            }
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.legacy {
            return self.reno.on_congestion(cx, signal);
        }
        self.remember();
        cx.act.stop_probes = true;
        self.lost_before = true;
        let half = self.half(cx);
        self.cwnd = half;
        self.ssthresh = half;
        self.infl.clear();
        self.adsn = 0;
        if signal == Signal::Ecn {
            return; // R21: an ECN echo halves without dummies.
        }
        if self.inflates() && self.config.inflate_ndup > 0.0 {
            self.infl.add(&mut self.cwnd, self.config.inflate_ndup);
        }
        let whole = math::floor(half) as u32;
        self.wdsn = match self.config.wdsn_on_loss {
            WdsnOnLoss::Overwrite => whole,
            WdsnOnLoss::Accumulate => self.wdsn.saturating_add(whole),
        };
        if self.config.rapid_recovery && cx.path.probes == ProbeSupport::Yes {
            self.adsn = 2 * whole;
            self.just_entered = true;
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        if self.legacy {
            return self.reno.on_recovered(cx);
        }
        self.infl.end(&mut self.cwnd);
        if self.config.leftover_adsn == LeftoverAdsn::Drop {
            self.adsn = 0;
        }
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if self.legacy {
            return self.reno.on_timeout(cx, backoff);
        }
        if backoff <= 1 {
            self.remember();
        }
        match self.config.on_rto {
            Opening::Sudden => self.sudden_start(cx, None),
            Opening::Slow => {
                let ssthresh = if backoff <= 1 { self.half(cx) } else { self.ssthresh };
                self.slow_start(cx, 1.0, ssthresh);
                self.lost_before = true;
            }
        }
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        if self.legacy {
            return self.reno.on_undo(cx);
        }
        let (before, lost_before) = self.before;
        cx.act.stop_probes = true;
        self.adsn = 0;
        self.wdsn = 0;
        self.infl.end(&mut self.cwnd);
        self.cwnd = growth::within_rwnd(cx.path, self.cwnd.max(before.cwnd), self.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.lost_before = lost_before;
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.legacy && self.adsn > 0
    }

    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        if self.legacy || self.adsn == 0 {
            return;
        }
        if core::mem::take(&mut self.just_entered) {
            return;
        }
        let clocked = matches!(transmit.clock, Clock::Ack | Clock::Probe);
        let may = self.every_ack || transmit.sent == 0;
        // No probing for data that is not there (R6).
        if clocked && may && cx.path.queued > 0.0 {
            cx.act.probe_now = Some((ProbeSource::LastSegment, self.adsn.min(2)));
            self.adsn -= self.adsn.min(2);
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        // Nothing answered, neither as a capable nor as a legacy receiver (R3).
        if !self.legacy && !self.lost_before && cx.path.probes == ProbeSupport::Unknown {
            self.ssthresh = growth::peers_window(cx.path);
        }
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("wdsn", f64::from(self.wdsn));
        out("adsn", f64::from(self.adsn));
    }
}

#[cfg(test)]
mod tests;
