//! Interface of a constellation; each kind has its own file.

use crate::epoch::Epoch;
use crate::invalid::Invalid;
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Duration;

/// The configuration of a constellation, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Clone + Debug + PartialEq {
    /// The moving constellation.
    type Motion: Motion;
    /// The moving constellation, for a run that starts `offset` after `start`, if it needs a start time. Its times
    /// count from `start`.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    fn build(&self, start: Option<Epoch>, offset: Duration) -> Result<Self::Motion, Invalid>;
    /// Minimum elevation at which a station uses a satellite, degrees.
    fn least_elevation(&self) -> f64;
    /// The canonical form, shared by all equivalent configurations: file names do not matter.
    #[must_use]
    fn canonical(self) -> Self {
        self
    }
}

/// Moving satellites, numbered from 0.
pub trait Motion: Debug {
    /// How many there are, at least 1.
    fn count(&self) -> u32;
    /// Position in the Earth-fixed frame; `None` if the satellite no longer flies, or the number is too high.
    fn place(&self, satellite: u32, moment: &Moment) -> Option<Vector>;
    /// Calls `see` for each, in order.
    fn each(&self, moment: &Moment, see: &mut dyn FnMut(u32, Vector)) {
        for satellite in 0..self.count() {
            if let Some(place) = self.place(satellite, moment) {
                see(satellite, place);
            }
        }
    }
    /// Name of a satellite.
    fn name(&self, satellite: u32) -> String;
    /// The grid of inter-satellite links, if the constellation has one.
    fn grid(&self) -> Option<Grid> {
        None
    }
    /// Default sampling interval of the delay.
    fn step(&self) -> Duration;
    /// Whether all satellites are stationary as seen from the ground.
    fn stands_still(&self) -> bool {
        false
    }
}

/// Planes with equal numbers of satellites, numbered plane by plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of planes.
    pub planes: u32,
    /// Satellites per plane.
    pub per_plane: u32,
    /// Slots by which the last plane is ahead of the first, if these two are neighbours; `None` at the seam of a
    /// star, where they are counter-rotating.
    pub closes: Option<u32>,
}

impl Grid {
    /// The neighbours of a satellite: ahead and behind in its plane, and the same slot of both adjacent planes.
    pub fn neighbours(self, satellite: u32) -> impl Iterator<Item = u32> {
        let Self { planes, per_plane, closes } = self;
        let (plane, slot) = (satellite / per_plane, satellite % per_plane);
        let at = |plane: u32, slot: u32| plane * per_plane + slot % per_plane;
        let ahead =
            if plane + 1 < planes { Some(at(plane + 1, slot)) } else { closes.map(|by| at(0, slot + by)) };
        let behind = match plane.checked_sub(1) {
            Some(before) => Some(at(before, slot)),
            None => closes.map(|by| at(planes - 1, slot + per_plane - by % per_plane)),
        };
        let own = [Some(at(plane, slot + 1)), Some(at(plane, slot + per_plane - 1)), ahead, behind];
        own.into_iter().flatten().filter(move |n| *n != satellite)
    }
}

/// Most satellites of a constellation.
pub(super) const MAX_SATELLITES: u64 = 50_000;

/// Sampling interval of the delay for an orbital period in seconds: 0.1 s below 2000 km of altitude, 60 s for periods of about a day,
/// 1 s between (*our choice*). The error of linear interpolation is then about a nanosecond for low orbits, and below a microsecond
/// for all.
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
            Grid { planes: 6, per_plane: 11, closes: None },
            Grid { planes: 72, per_plane: 22, closes: Some(1) },
            Grid { planes: 5, per_plane: 8, closes: Some(4) },
            Grid { planes: 1, per_plane: 20, closes: None },
        ] {
            for s in 0..grid.planes * grid.per_plane {
                let near: Vec<u32> = grid.neighbours(s).collect();
                let plane = s / grid.per_plane;
                let edge = grid.closes.is_none() && (plane == 0 || plane + 1 == grid.planes);
                let want = if grid.planes == 1 { 2 } else { 4 - usize::from(edge) };
                assert_eq!(near.len(), want, "{grid:?} {s}");
                assert!(near.iter().all(|n| grid.neighbours(*n).any(|back| back == s)), "{grid:?} {s}");
            }
        }
    }
}
