//! Options of Hark: each switches one of its senses off.

use super::Hark;
use crate::control::ControlOptions;
use crate::rules::SharedRules;
use alloc::boxed::Box;

skyhaul_base::options! {
    /// Options of Hark.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "schema", schemars(rename = "HarkConfig"))]
    pub struct Config {
        /// Ask the path with low-priority probes (true); without them the window finds free capacity by itself, more slowly.
        probes: bool = true,
        /// Listen to the delay (true); without it probes alone open the window, and nothing but silence closes it.
        delay: bool = true,
        /// Beside a competitor that keeps a queue standing, hold a window that losses alone govern (true); without it such a
        /// competitor takes all.
        compete: bool = true,
        /// Ask the sender to judge losses by time, RACK (true).
        rack: bool = true,
    }
}

/// Why the options make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error(
        "probes and delay are both false, so that nothing would tell that the path is full: leave one of them out"
    )]
    Senseless,
}

impl ControlOptions for Config {
    type Control = Box<Hark>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if self.probes || self.delay { Ok(()) } else { Err(Invalid::Senseless) }
    }
    fn build(&self, rules: SharedRules) -> Box<Hark> {
        Box::new(Hark::new(self, rules))
    }
}
