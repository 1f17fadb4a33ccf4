//! Interface of a handover policy; each has its own file.

use crate::invalid::Invalid;
use core::fmt::Debug;

/// A satellite that may serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Number of the satellite.
    pub satellite: u32,
    /// Its elevation in degrees, at the station where it is lower.
    pub elevation: f64,
    /// One-way delay over it in seconds.
    pub delay: f64,
}

/// Selects the serving satellite.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Clone + Debug + PartialEq {
    /// Refuses parameters outside their domain.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// The next serving satellite: `serving`, which is still visible, or another candidate; the first of equals.
    /// `remaining` returns for how many more seconds a satellite is visible.
    fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        remaining: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32>;
    /// Whether it compares the delays of whole paths, so that both ends of a path over inter-satellite links are
    /// chosen together.
    fn shortens(&self) -> bool {
        false
    }
}

/// `best`, unless the serving satellite keeps serving; `yields` says whether it gives way.
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
