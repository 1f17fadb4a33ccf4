//! Options of Hark: each switches one mechanism off.

use super::Hark;
use crate::control::ControlOptions;
use crate::rules::SharedRules;
use alloc::boxed::Box;

skyhaul_base::options! {
    /// Options of Hark.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "schema", schemars(rename = "HarkConfig"))]
    pub struct Config {
        /// Send low-priority probes (true); without them the window grows until the delay rises, and finds free capacity more
        /// slowly.
        probes: bool = true,
        /// Follow the delay (true); without it every queue counts as empty: the window grows up to the receive window, and only an
        /// ECN mark, a recent loss rate above 25 %, and a timeout after 1.5 RTTs without an acknowledgement reduce it.
        delay: bool = true,
        /// Beside a competitor that keeps a queue standing, hold a window that losses alone govern (true); without it Hark
        /// yields to the competitor.
        compete: bool = true,
        /// Have the sender detect losses by time, RACK (true).
        rack: bool = true,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("probes = false and delay = false together leave no sign of a full path: leave one of them out")]
    NoSignal,
}

impl ControlOptions for Config {
    type Control = Box<Hark>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if self.probes || self.delay { Ok(()) } else { Err(Invalid::NoSignal) }
    }
    fn build(&self, rules: SharedRules) -> Box<Hark> {
        Box::new(Hark::new(self, rules))
    }
}
