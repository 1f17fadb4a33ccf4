//! Handover policies: which of the visible satellites serves.
//!
//! Each policy has its own file with its [`Model`], whose fields are its form in scenario files. A new policy needs
//! only that file and one line in the list below.

pub mod longest;
pub mod max_elevation;
mod model;
pub mod nearest_path;

use crate::invalid::Invalid;

pub use model::{Candidate, Model};

skyhaul_base::kinds! {
    each;
    /// Which of the visible satellites serves. Short form: the name of a policy.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HandoverSpec"))]
    #[expect(missing_docs, reason = "each policy documents itself")]
    pub enum Policy {
        "longest" Longest(longest::Config),
        "max-elevation" MaxElevation(max_elevation::Config),
        "nearest-path" NearestPath(nearest_path::Config),
    }
}

impl Policy {
    /// The policy of this name with default parameters.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        each!(named name, Policy)
    }
    /// Its name in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        each!(self, Policy => name)
    }
    /// Refuses parameters outside their domain.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(self, Policy(p) => p.validate())
    }
    /// The next serving satellite: `serving`, which is still visible, or another candidate; the first of
    /// equals. `remaining` returns for how many more seconds a satellite is visible.
    pub fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        remaining: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32> {
        each!(self, Policy(p) => p.choose(serving, candidates, remaining))
    }
    /// Whether it compares the delays of whole paths, so that both ends of a path over inter-satellite
    /// links are chosen together.
    #[must_use]
    pub fn shortens(&self) -> bool {
        each!(self, Policy(p) => p.shortens())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::MaxElevation(max_elevation::Config::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> [Candidate; 3] {
        [(7, 40.0, 0.010), (8, 60.0, 0.008), (9, 60.0, 0.007)]
            .map(|(satellite, elevation, delay)| Candidate { satellite, elevation, delay })
    }
    fn choose(name: &str, serving: Option<&Candidate>, from: &[Candidate]) -> Option<u32> {
        // Number 7 stays in sight longest.
        let mut remaining = |s| if s == 7 { 300.0 } else { 100.0 };
        Policy::find(name).unwrap().choose(serving, from, &mut remaining)
    }

    #[test]
    fn each_policy_takes_its_best_and_the_first_of_equals() {
        let best: alloc::vec::Vec<_> = NAMES.iter().map(|n| choose(n, None, &candidates())).collect();
        assert_eq!(best, [Some(7), Some(8), Some(9)]);
        assert!(
            NAMES.iter().all(|n| Policy::find(n).is_some_and(|p| p.name() == *n && p.validate().is_ok()))
        );
        assert_eq!(Policy::find("lowest"), None);
        assert_eq!(choose("max-elevation", None, &[]), None);
    }

    #[test]
    fn nobody_takes_over_for_less_than_the_hysteresis() {
        let [low, high, _] = candidates();
        let barely = Candidate { elevation: low.elevation + 5.0, delay: low.delay - 0.001, ..high };
        for (name, to_high, to_barely) in [("max-elevation", 8, 7), ("nearest-path", 8, 7), ("longest", 7, 7)]
        {
            assert_eq!(choose(name, Some(&low), &[low, high]), Some(to_high), "{name}");
            assert_eq!(choose(name, Some(&low), &[low, barely]), Some(to_barely), "{name}");
        }
    }
}
