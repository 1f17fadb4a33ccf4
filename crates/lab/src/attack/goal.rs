//! What "worst" means.
//!
//! All goals compare runs of the same path with the same seed, so that both sides meet the same losses.

use crate::attack::measured::Measured;
use crate::attack::point::Point;
use crate::error::AttackError;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What is sought.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Most harm: the goodput that the candidate takes from its neighbours beyond what one more flow of their kind takes,
    /// as a share of the goodput that the neighbours have alone (harm: Ware, Mukerjee, Seshan, Sherry 2019).
    Harm,
    /// Least share: the goodput of the candidate beside its neighbours, relative to that of one of their kind in its
    /// place.
    Starve,
    /// Least use: the goodput of the candidate alone, relative to what the path can carry.
    Collapse,
    /// Longest queue: the mean queueing delay of the candidate alone, in RTTs of the empty path. Milliseconds would
    /// only find the longest path, and the share of the buffer in use only the smallest buffer.
    Queue,
}

/// Who uses the path in a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// The candidate, beside neighbours if the goal has any.
    Candidate,
    /// One of the neighbours' kind in its place.
    Reference,
    /// The neighbours only.
    Solo,
}

impl Role {
    /// The name of its scenario file.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Candidate => "worst.toml",
            Self::Reference => "worst-reference.toml",
            Self::Solo => "worst-solo.toml",
        }
    }
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 4] = [Self::Harm, Self::Starve, Self::Collapse, Self::Queue];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Harm => "harm",
            Self::Starve => "starve",
            Self::Collapse => "collapse",
            Self::Queue => "queue",
        }
    }

    /// What its value is, for tables.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Harm => "share of the neighbours' solo goodput lost beyond what one of their kind takes",
            Self::Starve => "goodput relative to one of the neighbours' kind in its place",
            Self::Collapse => "goodput alone relative to what the path can carry",
            Self::Queue => "mean queueing delay alone in RTTs of the empty path",
        }
    }

    /// Whether a larger value is worse.
    pub(super) const fn is_largest(self) -> bool {
        matches!(self, Self::Harm | Self::Queue)
    }

    /// Whether the candidate has neighbours.
    pub(super) const fn has_neighbours(self) -> bool {
        matches!(self, Self::Harm | Self::Starve)
    }

    /// The value as a cost to minimise.
    pub(super) fn cost(self, value: f64) -> f64 {
        if self.is_largest() { -value } else { value }
    }

    /// The runs of a case.
    pub(super) const fn roles(self) -> &'static [Role] {
        match self {
            Self::Harm => &[Role::Candidate, Role::Reference, Role::Solo],
            Self::Starve => &[Role::Candidate, Role::Reference],
            Self::Collapse | Self::Queue => &[Role::Candidate],
        }
    }

    /// The value of the runs of a case, in the order of [`Self::roles`]; `None` if even the comparison delivers
    /// nothing.
    pub(super) fn value(self, point: &Point, runs: &[Measured]) -> Option<f64> {
        let relative = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        match (self, runs) {
            (Self::Harm, [with, reference, solo]) => {
                // Neighbours that had bad luck alone would make the share larger than 1.
                let most = solo.neighbours_bit_s.max(reference.neighbours_bit_s);
                relative(reference.neighbours_bit_s - with.neighbours_bit_s, most)
            }
            (Self::Starve, [with, reference]) => relative(with.candidate_bit_s, reference.candidate_bit_s),
            (Self::Collapse, [alone]) => {
                relative(alone.candidate_bit_s, point.rate as f64 * (1.0 - point.loss) * alone.payload)
            }
            (Self::Queue, [alone]) => relative(alone.queue_s, point.rtt_s()),
            _ => None,
        }
    }
}

impl FromStr for Goal {
    type Err = AttackError;

    fn from_str(word: &str) -> Result<Self, AttackError> {
        Self::ALL.into_iter().find(|g| g.name() == word).ok_or_else(|| AttackError::Goal {
            word: word.to_owned(),
            accepted: Self::ALL.map(Self::name).join(", "),
        })
    }
}
