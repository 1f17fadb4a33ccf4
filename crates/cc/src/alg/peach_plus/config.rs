//! The options of TCP-Peach+: one for each point where the letter is silent or contradicts itself.

use crate::action::{Pipe, ProbeSource, TimerRestart};
use crate::parts::probed_window::{self, WdsnOnRestart};
use crate::rules::HalvingBase;

/// How the window opens at the start, after a timeout, after idling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Opening {
    /// Jump Start \[Peach+ §I-B\].
    Jump,
    /// Reno's slow start.
    Slow,
}

/// Answers to NIL segments that do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Guard {
    /// None: each opens the window by one (\[Peach+\], literally).
    None,
    /// As in TCP-Peach: twice the halved window of NIL segments, of whose answers the first half does not count.
    Peach,
}

/// The estimate of what is in the network during Quick Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipeRule {
    /// From the scoreboard (RFC 6675).
    Rfc6675,
    /// The counter of \[Peach+\] Fig. 3; partial acknowledgements also take the lost original out of it.
    Counter,
    /// The counter of \[Peach+\] Fig. 3 as printed.
    CounterLiteral,
}

/// Which acknowledgements restart the retransmission timer during Quick Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RetransmitTimer {
    /// Those that advance the left edge, as with every sender (RFC 6298 §5).
    Advance,
    /// Those, too, that report a segment for the first time: a stream of duplicates postpones nothing.
    NewSack,
    /// All that carry a selective acknowledgement: "whenever a SACK arrives" (\[Peach+ §I-C\]).
    EverySack,
}

/// Options of TCP-Peach+. The defaults follow the letter but for `pipe` and `retransmit-timer`, where it counts otherwise,
/// and for NIL segments without data to follow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "kebab-case", deny_unknown_fields)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Opening of a connection. `slow` is the ablation without Jump Start.
    pub start: Opening,
    /// Opening after a timeout. The letter is silent; `jump` (default) by analogy with TCP-Peach.
    pub on_rto: Opening,
    /// Opening after an idle period longer than the RTO.
    pub on_idle: Opening,
    /// Send NIL segments after a loss. `false` is the ablation without Quick Recovery's probing.
    pub quick_recovery: bool,
    /// The pipe of Quick Recovery: `rfc6675` (default), `counter`, `counter-literal`. Q3.
    pub pipe: PipeRule,
    /// What restarts the retransmission timer in Quick Recovery: `advance` (default), `new-sack`, `every-sack`. Q10.
    pub retransmit_timer: RetransmitTimer,
    /// Answers that do not count: `none` (default, as in the letter) or `peach`. Q5.
    pub guard: Guard,
    /// What TCP-Peach's guard still takes after a timeout and after idling: nothing (`zero`, default) or as much as
    /// before (`keep`). Only with `guard = "peach"`. R23.
    pub wdsn_on_restart: WdsnOnRestart,
    /// An answer to a NIL segment also lowers `adsn` (default, as in the letter). Q2.
    pub nil_ack_decrements: bool,
    /// Most data segments per acknowledgement (default 4); 0 is unlimited.
    pub max_burst: u16,
    /// Cut the halved window to whole segments (default).
    pub integer_halving: bool,
    /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize.
    pub halving_base: HalvingBase,
    /// Ignore answers to NIL segments of an earlier episode where probes carry ids. Off by default: the letter
    /// counts every one.
    pub strict_epoch: bool,
    /// Quick Recovery sends NIL segments although no data waits to be sent. The figure does not ask; off by default. Q8.
    pub nil_without_data: bool,
    /// Jump Start sends no more NIL segments than there is data to follow them.
    pub limit_to_app: bool,
    /// Most segments of a Jump Start, the data segment included; none by default.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub probe_cap: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            start: Opening::Jump,
            on_rto: Opening::Jump,
            on_idle: Opening::Jump,
            quick_recovery: true,
            pipe: PipeRule::Rfc6675,
            retransmit_timer: RetransmitTimer::Advance,
            guard: Guard::None,
            wdsn_on_restart: WdsnOnRestart::Zero,
            nil_ack_decrements: true,
            max_burst: 4,
            integer_halving: true,
            halving_base: HalvingBase::Window,
            strict_epoch: false,
            nil_without_data: false,
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
    #[error("probe-cap counts the data segment too: 1 or more, or leave it out")]
    ProbeCap,
    #[error("wdsn-on-restart = \"keep\" keeps TCP-Peach's guard, which only guard = \"peach\" has")]
    NoGuard,
    #[error(
        "nil-without-data = true says how Quick Recovery sends NIL segments, and quick-recovery = false sends none: \
         leave one of them out"
    )]
    NoNils,
}

impl Config {
    /// Refuses options outside their domain.
    ///
    /// # Errors
    /// Names the option and what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.probe_cap == Some(0) {
            return Err(Invalid::ProbeCap);
        }
        if self.wdsn_on_restart == WdsnOnRestart::Keep && self.guard == Guard::None {
            return Err(Invalid::NoGuard);
        }
        if self.nil_without_data && !self.quick_recovery {
            return Err(Invalid::NoNils);
        }
        Ok(())
    }

    pub(super) fn pipe(&self) -> Pipe {
        match self.pipe {
            PipeRule::Rfc6675 => Pipe::Scoreboard,
            PipeRule::Counter => Pipe::Counter { partial_extra: true },
            PipeRule::CounterLiteral => Pipe::Counter { partial_extra: false },
        }
    }

    pub(super) fn timer(&self) -> TimerRestart {
        match self.retransmit_timer {
            RetransmitTimer::Advance => TimerRestart::Advance,
            RetransmitTimer::NewSack => TimerRestart::NewSack,
            RetransmitTimer::EverySack => TimerRestart::EverySack,
        }
    }

    pub(super) fn window(&self) -> probed_window::Options {
        let opening = |o| match o {
            Opening::Jump => probed_window::Opening::Train,
            Opening::Slow => probed_window::Opening::Slow,
        };
        probed_window::Options {
            source: ProbeSource::UnackedRoundRobin,
            start: opening(self.start),
            on_rto: opening(self.on_rto),
            on_idle: opening(self.on_idle),
            probe_cap: self.probe_cap,
            limit_to_app: self.limit_to_app,
            without_data: self.nil_without_data,
            wdsn_on_restart: self.wdsn_on_restart,
            halving_base: self.halving_base,
            integer_halving: self.integer_halving,
        }
    }
}
