//! The options of TCP-Peach+: one for each point where the letter is silent or contradicts itself.

use crate::action::{Pipe, ProbeSource};
use crate::parts::probed_window;
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

/// Options of TCP-Peach+. Except for `pipe`, the defaults are the literal text of the letter.
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
    /// Answers that do not count: `none` (default, literal) or `peach`. Q5.
    pub guard: Guard,
    /// An answer to a NIL segment also lowers `adsn` (default, literal). Q2.
    pub nil_ack_decrements: bool,
    /// Most data segments per acknowledgement (default 4); 0 is unlimited.
    pub max_burst: u32,
    /// Cut the halved window to whole segments (default).
    pub integer_halving: bool,
    /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize.
    pub halving_base: HalvingBase,
    /// Ignore answers to NIL segments of an earlier episode where probes carry ids. Off by default: the letter
    /// counts every one.
    pub strict_epoch: bool,
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
            guard: Guard::None,
            nil_ack_decrements: true,
            max_burst: 4,
            integer_halving: true,
            halving_base: HalvingBase::Window,
            strict_epoch: false,
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
        Ok(())
    }

    pub(super) fn pipe(&self) -> Pipe {
        match self.pipe {
            PipeRule::Rfc6675 => Pipe::Scoreboard,
            PipeRule::Counter => Pipe::Counter { partial_extra: true },
            PipeRule::CounterLiteral => Pipe::Counter { partial_extra: false },
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
            halving_base: self.halving_base,
            integer_halving: self.integer_halving,
        }
    }
}
