//! The options of TCP-Peach: one for each point where the paper is silent or contradicts itself.

use crate::action::{ProbeSource, RecoveryEnd, RecoveryMode};
use crate::parts::probed_window::{self, WdsnOnRestart};
use crate::rules::HalvingBase;

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

/// What comes first on the acknowledgement that ends Rapid Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FinalAck {
    /// The inflation is taken back, then data is sent: at t₁ "there are only cwnd₀/2 outstanding data segments"
    /// (\[Peach §IV-A\]).
    DeflateFirst,
    /// Data is sent into the inflated window, then the inflation is taken back: the order of lines in \[Peach\] Fig. 4.
    SendFirst,
}

/// Whose congestion avoidance or Fast Retransmit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Whose {
    /// That of TCP-Reno.
    Reno,
    /// That of TCP Vegas.
    Vegas,
}

#[cfg(feature = "serde")]
impl Whose {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde wants")]
    fn is_reno(&self) -> bool {
        *self == Self::Reno
    }
}

/// Options of TCP-Peach. The paper says several things in two ways, so that no set of options is all of its letter; the
/// listings of its Figs. 2 and 4 are, option by option, what each calls so.
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
    /// Congestion avoidance: `reno` (default), or `vegas`, which once per round trip counts the segments that wait in
    /// queues, and grows by one below 1, shrinks by one above 3. R28.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Whose::is_reno"))]
    pub avoidance: Whose,
    /// Fast Retransmit: `reno` (default), on the duplicates that the endpoint counts, or `vegas`, which also takes a single
    /// one for a loss if the oldest segment is older than a fine-grained timeout. R28.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Whose::is_reno"))]
    pub fast_retransmit: Whose,
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
    /// Order on the final acknowledgement: `deflate-first` (default) or `send-first` (Fig. 4), which needs a window that
    /// is inflated. R17.
    pub final_ack: FinalAck,
    /// The guard after a timeout and after idling: `zero` (default) or `keep` (Fig. 2). R23.
    pub wdsn_on_restart: WdsnOnRestart,
    /// Rapid Recovery sends dummies although no data waits to be sent. The listing does not ask; off by default. R24.
    pub dummies_without_data: bool,
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
            avoidance: Whose::Reno,
            fast_retransmit: Whose::Reno,
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
            final_ack: FinalAck::DeflateFirst,
            wdsn_on_restart: WdsnOnRestart::Zero,
            dummies_without_data: false,
            strict_epoch: true,
            limit_to_app: false,
            probe_cap: None,
        }
    }
}

/// Why the options make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("recovery: TCP-Peach is defined with \"reno\", \"newreno\" or \"sack\"")]
    Recovery,
    #[error("nackseg = \"pipe\" needs the scoreboard of recovery = \"sack\"")]
    Nackseg,
    #[error(
        "final-ack = \"send-first\" sends into the window before its inflation is taken back, and with nackseg = \
         \"pipe\" no window is inflated: write nackseg = \"flight-size\", or recovery = \"reno\" or \"newreno\""
    )]
    FinalAck,
    #[error(
        "inflate-ndup adds to a window that is inflated, and with nackseg = \"pipe\" none is: write nackseg = \
         \"flight-size\", or recovery = \"reno\" or \"newreno\""
    )]
    InflatesPipe,
    #[error("{0} says how dummies go, and rapid-recovery = false sends none: leave one of them out")]
    NoDummies(&'static str),
    #[error("inflate-ndup must be a number of segments, 0 or more")]
    InflateNdup,
    #[error("probe-cap counts the data segment too: 1 or more, or leave it out")]
    ProbeCap,
}

impl Config {
    /// The combination that makes no sense, if there is one, as a sentence for the user.
    ///
    /// # Errors
    /// Names the offending option and what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        if !matches!(self.recovery, RecoveryMode::Reno | RecoveryMode::NewReno | RecoveryMode::Sack) {
            return Err(Invalid::Recovery);
        }
        if self.nackseg == Some(Nackseg::Pipe) && !self.recovery.uses_pipe() {
            return Err(Invalid::Nackseg);
        }
        if !(self.inflate_ndup.is_finite() && self.inflate_ndup >= 0.0) {
            return Err(Invalid::InflateNdup);
        }
        if self.final_ack == FinalAck::SendFirst && self.by_pipe() {
            return Err(Invalid::FinalAck);
        }
        if self.inflate_ndup > 0.0 && self.by_pipe() {
            return Err(Invalid::InflatesPipe);
        }
        if !self.rapid_recovery {
            // Each would silently mean nothing.
            if self.dummies.is_some() {
                return Err(Invalid::NoDummies("dummies"));
            }
            if self.leftover_adsn == LeftoverAdsn::Keep {
                return Err(Invalid::NoDummies("leftover-adsn = \"keep\""));
            }
            if self.dummies_without_data {
                return Err(Invalid::NoDummies("dummies-without-data = true"));
            }
        }
        if self.probe_cap == Some(0) {
            return Err(Invalid::ProbeCap);
        }
        Ok(())
    }

    /// Dummies go on every acknowledgement, not only where no data could.
    pub(super) fn on_every_ack(&self) -> bool {
        match self.dummies {
            Some(dummies) => dummies == Dummies::EveryAck,
            None => self.by_pipe(),
        }
    }

    /// `nackseg` is the scoreboard's pipe.
    pub(super) fn by_pipe(&self) -> bool {
        match self.nackseg {
            Some(nackseg) => nackseg == Nackseg::Pipe,
            None => self.recovery.uses_pipe(),
        }
    }

    pub(super) fn window(&self) -> probed_window::Options {
        let opening = |o| match o {
            Opening::Sudden => probed_window::Opening::Train,
            Opening::Slow => probed_window::Opening::Slow,
        };
        probed_window::Options {
            source: ProbeSource::LastSegment,
            start: opening(self.start),
            on_rto: opening(self.on_rto),
            on_idle: opening(self.on_idle),
            probe_cap: self.probe_cap,
            limit_to_app: self.limit_to_app,
            without_data: self.dummies_without_data,
            wdsn_on_restart: self.wdsn_on_restart,
            halving_base: self.halving_base,
            integer_halving: self.integer_halving,
        }
    }
}
