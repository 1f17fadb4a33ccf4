//! The options of TCP-Peach: one for each point where the paper is silent or contradicts itself.

use super::Peach;
use crate::action::{ProbeSource, RecoveryEnd, RecoveryMode};
use crate::control::{ControlOptions, Reading};
use crate::parts::probed_window::{self, WdsnOnRestart};
use crate::rules::{HalvingBase, MOST_SEGMENTS, SharedRules};
use alloc::boxed::Box;

/// How the window opens at the start, after a timeout, and after an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Opening {
    /// Sudden Start \[Peach §III-B\].
    Sudden,
    /// Reno's slow start.
    Slow,
}

/// Effect of a new loss on the answers that the guard still ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WdsnOnLoss {
    /// `wdsn := cwnd` (\[Peach\] Fig. 4, literally).
    Overwrite,
    /// The new guard is added to the rest of the old one.
    Accumulate,
}

/// Effect of dummy acknowledgements that arrive during Rapid Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DummyAcksInRecovery {
    /// They decrease `wdsn` and, once it is zero, inflate the window (\[Peach\] Fig. 4, literally).
    Count,
    /// None.
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

/// When Rapid Recovery sends dummies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Dummies {
    /// Two per acknowledgement, until none is left.
    EveryAck,
    /// Two per acknowledgement that releases no data (\[Peach\] Fig. 4, literally).
    WhenBlocked,
}

/// What happens to dummies not yet sent when Rapid Recovery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LeftoverAdsn {
    /// They are discarded: `adsn := 0` (\[Peach §III-C\], text).
    Drop,
    /// They are still sent, two per acknowledgement (\[Peach\] Fig. 4 omits the reset).
    Keep,
}

/// Order of deflation and sending on the acknowledgement that ends Rapid Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FinalAck {
    /// The window is deflated before data is sent: at t₁ "there are only cwnd₀/2 outstanding data segments" (\[Peach
    /// §IV-A\]).
    DeflateFirst,
    /// Data is sent into the inflated window before it is deflated: the order of lines in \[Peach\] Fig. 4.
    SendFirst,
}

/// The TCP whose congestion avoidance or Fast Retransmit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TcpVariant {
    /// TCP Reno.
    Reno,
    /// TCP Vegas.
    Vegas,
}

#[cfg(feature = "serde")]
impl TcpVariant {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde wants")]
    fn is_reno(&self) -> bool {
        *self == Self::Reno
    }
}

skyhaul_base::options! {
    /// Options of TCP-Peach. The paper contradicts itself on several points, so no set of options follows all of it. The
    /// defaults are the reading `both-papers`. Options that follow the listings of its Figs. 2 and 4 say so.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Loss recovery: `reno` (Fig. 4), `newreno`, or `sack` (default: §V uses SACK for both contenders).
        recovery: RecoveryMode = RecoveryMode::Sack,
        /// End of Rapid Recovery: when the triggering segment is acknowledged (default), so that each lost segment halves
        /// the window ("halving the cwnd multiple times", \[Peach+ §II\]), or all data outstanding at its start. With
        /// `recovery = "reno"` always the former. R14.
        recovery_end: RecoveryEnd = RecoveryEnd::TriggeringSegment,
        /// Congestion avoidance: `reno` (default) or `vegas`, which estimates the queued segments once per round trip, adds
        /// one segment to the window below 1 and subtracts one above 3. R28.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "TcpVariant::is_reno"))]
        avoidance: TcpVariant = TcpVariant::Reno,
        /// Fast Retransmit: `reno` (default), after the endpoint's number of duplicate acknowledgements, or `vegas`, for
        /// which a single one suffices if the oldest segment is older than a fine-grained timeout. R28.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "TcpVariant::is_reno"))]
        fast_retransmit: TcpVariant = TcpVariant::Reno,
        /// How a connection starts: `sudden` (default) or `slow`, for an ablation without Sudden Start.
        start: Opening = Opening::Sudden,
        /// How the window opens after a timeout: `slow` (default; Fig. 4) or `sudden` (the text, twice). R10.
        on_rto: Opening = Opening::Slow,
        /// How the window opens after an idle period longer than the RTO.
        on_idle: Opening = Opening::Sudden,
        /// Send dummies after a loss (default). `false` is for an ablation without Rapid Recovery: `recovery` then ends as it
        /// does without TCP-Peach, whatever `recovery-end` is, and `dummies` has no effect.
        rapid_recovery: bool = true,
        /// Round the halved window down to whole segments (default). R11.
        integer_halving: bool = true,
        /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize. R19.
        halving_base: HalvingBase = HalvingBase::Window,
        /// Segments added at the start of a `reno` or `newreno` recovery; 0 by the paper's Figs. 7 and 9. R8.
        inflate_ndup: f64 = 0.0,
        /// Effect of a new loss on the guard. R13.
        wdsn_on_loss: WdsnOnLoss = WdsnOnLoss::Overwrite,
        /// Effect of dummy acknowledgements during Rapid Recovery. R16.
        dummy_acks_in_recovery: DummyAcksInRecovery = DummyAcksInRecovery::Count,
        /// The value of `nackseg`; by default `pipe` with recovery `sack`, otherwise `flight-size`. R9.
        nackseg: Option<Nackseg> = None,
        /// When dummies are sent: `when-blocked` (default; the `else` of Fig. 4) or `every-ack`. R9.
        dummies: Dummies = Dummies::WhenBlocked,
        /// What happens to dummies not sent by the end of Rapid Recovery. R12.
        leftover_adsn: LeftoverAdsn = LeftoverAdsn::Drop,
        /// Order on the final acknowledgement: `deflate-first` (default) or `send-first` (Fig. 4), which requires window
        /// inflation. R17.
        final_ack: FinalAck = FinalAck::DeflateFirst,
        /// The guard after a timeout and after an idle period: `zero` (default) or `keep` (Fig. 2). R23.
        wdsn_on_restart: WdsnOnRestart = WdsnOnRestart::Zero,
        /// Rapid Recovery sends dummies even if no data is waiting, as in the listing. Off by default. R24.
        dummies_without_data: bool = false,
        /// Ignore answers to dummies of an earlier episode, if probes are numbered (default). R13.
        strict_epoch: bool = true,
        /// Sudden Start sends no more dummies than there are data segments to follow them. R6.
        limit_to_app: bool = false,
        /// Maximum number of segments of a Sudden Start, including the data segment; unlimited by default.
        probe_cap: Option<u32> = None,
    }
}

/// Why options are refused.
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
        "final-ack = \"send-first\" needs an inflated window, and with nackseg = \"pipe\", the default of recovery = \
         \"sack\", none is inflated: write nackseg = \"flight-size\", or recovery = \"reno\" or \"newreno\""
    )]
    FinalAck,
    #[error(
        "inflate-ndup needs an inflated window, and with nackseg = \"pipe\", the default of recovery = \"sack\", none \
         is inflated: write nackseg = \"flight-size\", or recovery = \"reno\" or \"newreno\""
    )]
    InflatesPipe,
    #[error("{0} has no effect with rapid-recovery = false, which sends no dummies: leave one of them out")]
    NoDummies(&'static str),
    #[error("inflate-ndup must be a number of segments, from 0 to 1e9")]
    InflateNdup,
    #[error("probe-cap counts the data segment too: 1 or more, or leave it out")]
    ProbeCap,
}

impl Config {
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

impl ControlOptions for Config {
    type Control = Box<Peach>;
    type Invalid = Invalid;
    const READINGS: &'static [Reading<Self>] = READINGS;

    fn validate(&self) -> Result<(), Invalid> {
        if !matches!(self.recovery, RecoveryMode::Reno | RecoveryMode::NewReno | RecoveryMode::Sack) {
            return Err(Invalid::Recovery);
        }
        if self.nackseg == Some(Nackseg::Pipe) && !self.recovery.uses_pipe() {
            return Err(Invalid::Nackseg);
        }
        if !(0.0..=MOST_SEGMENTS).contains(&self.inflate_ndup) {
            return Err(Invalid::InflateNdup);
        }
        if self.final_ack == FinalAck::SendFirst && self.by_pipe() {
            return Err(Invalid::FinalAck);
        }
        if self.inflate_ndup > 0.0 && self.by_pipe() {
            return Err(Invalid::InflatesPipe);
        }
        if !self.rapid_recovery {
            // These would silently have no effect.
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
    fn build(&self, rules: SharedRules) -> Box<Peach> {
        Box::new(Peach::new(self, rules))
    }
}

const READINGS: &[Reading<Config>] = &[
    Reading {
        name: "listing",
        about: "the listings of [Peach] Figs. 2 and 4, line by line: Reno's recovery, slow start after a timeout, no reset \
                of adsn, data before the deflation, no reset of wdsn, dummies without data",
        options: || Config {
            recovery: RecoveryMode::Reno,
            leftover_adsn: LeftoverAdsn::Keep,
            final_ack: FinalAck::SendFirst,
            wdsn_on_restart: WdsnOnRestart::Keep,
            strict_epoch: false,
            dummies_without_data: true,
            ..both_papers()
        },
    },
    Reading {
        name: "both-papers",
        about: "the default: SACK as in [Peach §V], dummies where no data may be sent (the `else` of Fig. 4), slow start \
                after a timeout (Fig. 4), and a halving for each lost segment (\"halving the cwnd multiple times\", \
                [Peach+ §II])",
        options: both_papers,
    },
    Reading {
        name: "improved",
        about: "SACK, two dummies on every acknowledgement of a recovery, one halving for all losses of a window, and \
                Sudden Start after a timeout: an improvement that the papers do not describe",
        options: || Config {
            dummies: Dummies::EveryAck,
            recovery_end: RecoveryEnd::AllOutstanding,
            on_rto: Opening::Sudden,
            ..both_papers()
        },
    },
];

/// Names every option in which another reading differs, so that the readings do not depend on the defaults.
fn both_papers() -> Config {
    Config {
        recovery: RecoveryMode::Sack,
        recovery_end: RecoveryEnd::TriggeringSegment,
        on_rto: Opening::Slow,
        dummies: Dummies::WhenBlocked,
        leftover_adsn: LeftoverAdsn::Drop,
        final_ack: FinalAck::DeflateFirst,
        wdsn_on_restart: WdsnOnRestart::Zero,
        dummies_without_data: false,
        strict_epoch: true,
        ..Config::default()
    }
}
