//! What a policy of handover provides; each has a file of its own.

use crate::invalid::Invalid;
use core::fmt::Debug;

/// A satellite that may serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number.
    pub satellite: u32,
    /// Its elevation in degrees, at the station from which it is lower.
    pub elevation: f64,
    /// One-way delay over it in seconds.
    pub delay: f64,
}

/// Which satellite serves.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + PartialEq {
    /// Refuses parameters outside their domain.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// Who serves from now on: `serving`, which can still be seen, or another of the candidates; the first of equals.
    /// `remaining` says for how many seconds more one can be seen.
    fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        remaining: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32>;
    /// True if it compares the delays of whole ways, so that over inter-satellite links both ends are chosen together.
    fn shortens(&self) -> bool {
        false
    }
}

/// `best`, unless who serves now serves on; it `yields` to some.
pub(super) fn unless_kept(
    serving: Option<&Candidate>,
    best: Option<&Candidate>,
    yields: impl FnOnce(&Candidate, &Candidate) -> bool,
) -> Option<u32> {
    match (serving, best) {
        (Some(serving), Some(best)) if !yields(serving, best) => Some(serving.satellite),
        (_, best) => best.map(|b| b.satellite),
    }
}

/// The candidate with the greatest merit, the first of equals.
pub(super) fn greatest(
    candidates: &[Candidate],
    mut merit: impl FnMut(&Candidate) -> f64,
) -> Option<&Candidate> {
    let mut best: Option<(&Candidate, f64)> = None;
    for candidate in candidates {
        let merit = merit(candidate);
        if best.is_none_or(|b| merit > b.1) {
            best = Some((candidate, merit));
        }
    }
    best.map(|b| b.0)
}
