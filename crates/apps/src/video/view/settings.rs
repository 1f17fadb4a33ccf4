//! Settings of a viewer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::Duration;
use skyhaul_base::amount::{Time, plain};

/// A viewer: deadlines and playout buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// A packet counts as delayed if it arrives later than this after the previous one: "100 ms" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub threshold: Duration,
    /// Deadline of a frame after its production: "1 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub deadline: Duration,
    /// Playout buffer required to start: "1 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub start: Duration,
    /// Playout buffer required to resume after a stall: "0.5 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub resume: Duration,
    /// Frames produced before this time of the run, and their packets, are not counted: "0 s" by default. Playout
    /// covers the whole film.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub warm: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: Duration::from_millis(100),
            deadline: Duration::from_secs(1),
            start: Duration::from_secs(1),
            resume: Duration::from_millis(500),
            warm: Duration::ZERO,
        }
    }
}

/// Why a time of a viewer is invalid; each variant holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidViewer {
    /// Zero.
    #[error("zero: write a time above zero, such as \"100 ms\"")]
    Zero(&'static str),
    /// Excessive.
    #[error("longer than a day: write a time such as \"1 s\"")]
    Long(&'static str),
}

impl InvalidViewer {
    /// The key within the viewer.
    pub(in crate::video) fn key(self) -> &'static str {
        match self {
            Self::Zero(key) | Self::Long(key) => key,
        }
    }
}

impl Settings {
    /// Refuses times that are zero, except `warm`, and times longer than a day.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), InvalidViewer> {
        let Self { threshold, deadline, start, resume, warm } = *self;
        let times = [("threshold", threshold), ("deadline", deadline), ("start", start), ("resume", resume)];
        if let Some((key, _)) = times.iter().find(|(_, t)| t.is_zero()) {
            return Err(InvalidViewer::Zero(key));
        }
        let all = times.into_iter().chain([("warm", warm)]);
        let long = all.into_iter().find(|(_, t)| *t > Duration::from_secs(86_400));
        long.map_or(Ok(()), |(key, _)| Err(InvalidViewer::Long(key)))
    }
}
