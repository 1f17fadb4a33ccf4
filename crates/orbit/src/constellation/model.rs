//! What a constellation provides; each has a file of its own.

use crate::epoch::Epoch;
use crate::invalid::Invalid;
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Duration;

/// The configuration of a constellation, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + PartialEq {
    /// The constellation in motion.
    type Motion: Motion;
    /// The constellation, for a run that starts at `start`, where one is needed.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn build(&self, start: Option<Epoch>) -> Result<Self::Motion, Invalid>;
    /// The least elevation at which a station uses a satellite, in degrees.
    fn least_elevation(&self) -> f64;
    /// The same in the one form that equal configurations have: what a file was called does not matter.
    #[must_use]
    fn canonical(self) -> Self {
        self
    }
}

/// Satellites in motion, counted from 0.
pub trait Motion: Debug {
    /// How many there are, at least 1.
    fn count(&self) -> u32;
    /// Where one is in the frame of the turning Earth; `None` if it no longer flies, or there is none of this number.
    fn place(&self, satellite: u32, moment: &Moment) -> Option<Vector>;
    /// Calls `see` for each, in order.
    fn each(&self, moment: &Moment, see: &mut dyn FnMut(u32, Vector)) {
        for satellite in 0..self.count() {
            if let Some(place) = self.place(satellite, moment) {
                see(satellite, place);
            }
        }
    }
    /// What one is called.
    fn name(&self, satellite: u32) -> String;
    /// The shape of its links between satellites, if it has an order.
    fn grid(&self) -> Option<Grid> {
        None
    }
    /// How often the delay is computed by default.
    fn step(&self) -> Duration;
    /// True if nothing moves as seen from the ground.
    fn stands_still(&self) -> bool {
        false
    }
}

/// Planes of equally many satellites, numbered plane by plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many planes.
    pub planes: u32,
    /// Satellites of a plane.
    pub each: u32,
    /// Slots by which the last plane is ahead of the first, where these two are neighbours; `None` where they fly
    /// against each other, at the seam of a star.
    pub closes: Option<u32>,
}

impl Grid {
    /// The neighbours of a satellite: before and behind it in its plane, and the same slot of both planes beside it.
    pub fn neighbours(self, satellite: u32) -> impl Iterator<Item = u32> {
        let Self { planes, each, closes } = self;
        let (plane, slot) = (satellite / each, satellite % each);
        let at = |plane: u32, slot: u32| plane * each + slot % each;
        let ahead =
            if plane + 1 < planes { Some(at(plane + 1, slot)) } else { closes.map(|by| at(0, slot + by)) };
        let behind = match plane.checked_sub(1) {
            Some(before) => Some(at(before, slot)),
            None => closes.map(|by| at(planes - 1, slot + each - by % each)),
        };
        let own = [Some(at(plane, slot + 1)), Some(at(plane, slot + each - 1)), ahead, behind];
        own.into_iter().flatten().filter(move |n| *n != satellite)
    }
}

/// How often a delay is computed for orbits of this period in seconds: 0.1 s below 2000 km of altitude, 60 s at a day, 1 s
/// between (*our choice*). The straight lines between then err by about a nanosecond.
pub(super) fn step(period: f64) -> Duration {
    match period {
        p if p < 7_700.0 => Duration::from_millis(100),
        p if p < 80_000.0 => Duration::from_secs(1),
        _ => Duration::from_secs(60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn neighbours_are_mutual_also_across_the_edge() {
        for grid in [
            Grid { planes: 6, each: 11, closes: None },
            Grid { planes: 72, each: 22, closes: Some(1) },
            Grid { planes: 5, each: 8, closes: Some(4) },
            Grid { planes: 1, each: 20, closes: None },
        ] {
            for s in 0..grid.planes * grid.each {
                let near: Vec<u32> = grid.neighbours(s).collect();
                let edge = grid.closes.is_none() && (s / grid.each == 0 || s / grid.each + 1 == grid.planes);
                let want = if grid.planes == 1 { 2 } else { 4 - usize::from(edge) };
                assert_eq!(near.len(), want, "{grid:?} {s}");
                assert!(near.iter().all(|n| grid.neighbours(*n).any(|back| back == s)), "{grid:?} {s}");
            }
        }
    }
}
