//! The options of TCP-Peach+: one for each point where the letter is silent or contradicts itself.

use super::PeachPlus;
use crate::action::{Pipe, ProbeSource, TimerRestart};
use crate::control::{ControlOptions, Reading};
use crate::parts::probed_window::{self, WdsnOnRestart};
use crate::rules::{HalvingBase, SharedRules};
use alloc::boxed::Box;

/// How the window opens at the start, after a timeout, and after an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Opening {
    /// Jump Start \[Peach+ §I-B\].
    Jump,
    /// Reno's slow start.
    Slow,
}

/// Which answers to NIL segments do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Guard {
    /// All count: each opens the window by one (\[Peach+\], literally).
    None,
    /// As in TCP-Peach: NIL segments number twice the halved window, and the first half of their answers does not
    /// count.
    Peach,
}

/// How data in the network is estimated during Quick Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipeRule {
    /// From the scoreboard (RFC 6675).
    Rfc6675,
    /// The counter of \[Peach+\] Fig. 3, from which a partial acknowledgement also subtracts the lost original.
    Counter,
    /// The counter of \[Peach+\] Fig. 3 as printed.
    CounterLiteral,
}

/// With which value the counter of Quick Recovery begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipeStart {
    /// What is outstanding and not SACKed: by the text, the counter "represents the estimated number of segments outstanding in
    /// the network" \[Peach+ §I-C\].
    Outstanding,
    /// `2 * cwnd - ndupacks + 1`, with the halved window and three duplicates \[Peach+ Fig. 3\]: the same if the old window was
    /// even and fully used.
    Window,
}

/// Which acknowledgements restart the retransmission timer during Quick Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RetransmitTimer {
    /// Those that advance the left edge of the window, as in other senders (RFC 6298 §5).
    Advance,
    /// Also those that report a segment for the first time; a stream of duplicates does not postpone the timer.
    NewSack,
    /// All that carry SACK blocks: "whenever a SACK arrives" (\[Peach+ §I-C\]).
    EverySack,
}

/// Which unacknowledged segment a NIL segment copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NilPick {
    /// The one with number *i* mod *Q* in the queue of *Q* segments, for the NIL segment with number *i*: \[Peach+\] Fig. 1,
    /// literally. When segments leave the queue, the next pick jumps.
    Modulo,
    /// The successor of the one copied before, whatever has left the queue meanwhile.
    RoundRobin,
}

skyhaul_base::options! {
    /// Options of TCP-Peach+. The defaults are the reading `both-papers`: the letter, and slow start after a timeout.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// How a connection starts: `jump` (default) or `slow`, for an ablation without Jump Start.
        start: Opening = Opening::Jump,
        /// How the window opens after a timeout. The letter is silent: `slow` (default) as in TCP-Peach's Fig. 4, or `jump`
        /// by analogy with the text of TCP-Peach.
        on_rto: Opening = Opening::Slow,
        /// How the window opens after an idle period longer than the RTO.
        on_idle: Opening = Opening::Jump,
        /// Send NIL segments after a loss (default). `false` is for an ablation without Quick Recovery: losses are then
        /// repaired as with SACK alone, whatever `pipe`, `pipe-start` and `retransmit-timer` are.
        quick_recovery: bool = true,
        /// The pipe of Quick Recovery: `counter-literal` (default, as in the letter), `counter`, `rfc6675`. Q3.
        pipe: PipeRule = PipeRule::CounterLiteral,
        /// The first value of the counter: `outstanding` (default) or `window`, as in the letter's figure. With `pipe =
        /// "rfc6675"` there is no counter, and this has no effect. Q3.
        pipe_start: PipeStart = PipeStart::Outstanding,
        /// What restarts the retransmission timer in Quick Recovery: `every-sack` (default, as in the letter), `new-sack`,
        /// `advance`. Q10.
        retransmit_timer: RetransmitTimer = RetransmitTimer::EverySack,
        /// Which answers do not count: `none` (default, as in the letter) or `peach`. Q5.
        guard: Guard = Guard::None,
        /// TCP-Peach's guard after a timeout and after an idle period: `zero` (default) or `keep`. Only with `guard =
        /// "peach"`. R23.
        wdsn_on_restart: WdsnOnRestart = WdsnOnRestart::Zero,
        /// An answer to a NIL segment also decreases `adsn` (default, as in the letter). Q2.
        nil_ack_decrements: bool = true,
        /// Maximum number of data segments sent per acknowledgement (default 4); 0 is unlimited.
        max_burst: u16 = 4,
        /// Round the halved window down to whole segments (default).
        integer_halving: bool = true,
        /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize.
        halving_base: HalvingBase = HalvingBase::Window,
        /// Ignore answers to NIL segments of an earlier episode, if probes are numbered. Off by default: the letter counts
        /// every answer.
        strict_epoch: bool = false,
        /// Which unacknowledged segment a NIL segment copies: `modulo` (default, as in the letter) or `round-robin`. Q12.
        nil_pick: NilPick = NilPick::Modulo,
        /// Quick Recovery sends NIL segments even if no data is waiting (default, as in the letter). Q8.
        nil_without_data: bool = true,
        /// Jump Start sends no more NIL segments than there are data segments to follow them.
        limit_to_app: bool = false,
        /// Maximum number of segments of a Jump Start, including the data segment; unlimited by default.
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
    #[error("probe-cap counts the data segment too: 1 or more, or leave it out")]
    ProbeCap,
    #[error("wdsn-on-restart = \"keep\" keeps TCP-Peach's guard, which only guard = \"peach\" has")]
    NoGuard,
}

impl Config {
    pub(super) fn pipe(&self) -> Pipe {
        match self.pipe {
            PipeRule::Rfc6675 => Pipe::Scoreboard,
            _ if !self.quick_recovery => Pipe::Scoreboard,
            rule => Pipe::Counter {
                partial_extra: rule == PipeRule::Counter,
                from_window: self.pipe_start == PipeStart::Window,
            },
        }
    }

    pub(super) fn timer(&self) -> TimerRestart {
        match self.retransmit_timer {
            RetransmitTimer::NewSack if self.quick_recovery => TimerRestart::NewSack,
            RetransmitTimer::EverySack if self.quick_recovery => TimerRestart::EverySack,
            _ => TimerRestart::Advance,
        }
    }

    pub(super) fn window(&self) -> probed_window::Options {
        let opening = |o| match o {
            Opening::Jump => probed_window::Opening::Train,
            Opening::Slow => probed_window::Opening::Slow,
        };
        probed_window::Options {
            source: match self.nil_pick {
                NilPick::Modulo => ProbeSource::UnackedModulo,
                NilPick::RoundRobin => ProbeSource::UnackedRoundRobin,
            },
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

impl ControlOptions for Config {
    type Control = Box<PeachPlus>;
    type Invalid = Invalid;
    const READINGS: &'static [Reading<Self>] = READINGS;

    fn validate(&self) -> Result<(), Invalid> {
        if self.probe_cap == Some(0) {
            return Err(Invalid::ProbeCap);
        }
        if self.wdsn_on_restart == WdsnOnRestart::Keep && self.guard == Guard::None {
            return Err(Invalid::NoGuard);
        }
        Ok(())
    }
    fn build(&self, rules: SharedRules) -> Box<PeachPlus> {
        Box::new(PeachPlus::new(self, rules))
    }
}

const READINGS: &[Reading<Config>] = &[
    Reading {
        name: "printed",
        about: "[Peach+] line by line: the counter of Fig. 3 from its first value on, the timer that every SACK restarts (§I-C), \
                NIL segments in the order of Fig. 1 and without data; Jump Start after a timeout",
        options: || Config { pipe_start: PipeStart::Window, on_rto: Opening::Jump, ..both_papers() },
    },
    Reading {
        name: "both-papers",
        about: "the default: [Peach+] line by line, but for a counter that begins with what is outstanding, as the text defines \
                it, and slow start after a timeout, as in [Peach] Fig. 4",
        options: both_papers,
    },
    Reading {
        name: "improved",
        about: "the pipe of RFC 6675 in place of the counter of Fig. 3, the timer of RFC 6298, NIL segments only where data \
                waits, Jump Start after a timeout: an improvement that the papers do not describe",
        options: || Config {
            pipe: PipeRule::Rfc6675,
            retransmit_timer: RetransmitTimer::Advance,
            nil_without_data: false,
            nil_pick: NilPick::RoundRobin,
            on_rto: Opening::Jump,
            ..both_papers()
        },
    },
];

/// Names every option in which another reading differs, so that the readings do not depend on the defaults.
fn both_papers() -> Config {
    Config {
        pipe: PipeRule::CounterLiteral,
        pipe_start: PipeStart::Outstanding,
        retransmit_timer: RetransmitTimer::EverySack,
        nil_without_data: true,
        nil_pick: NilPick::Modulo,
        on_rto: Opening::Slow,
        ..Config::default()
    }
}
