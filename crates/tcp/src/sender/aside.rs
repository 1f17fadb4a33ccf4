//! What is looked at now and then, apart from what every segment touches.

use super::Engine;
use super::bursts::Watch;
use crate::store::Store;
use skyhaul_cc::PathState;

/// It appears with the first thing that is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    /// How many segments left at once, once that was more than one.
    pub(super) bursts: Watch,
    /// What an earlier connection on the path left, until the algorithm is told.
    pub(super) cached: Option<PathState>,
}

impl<S: Store> Engine<S> {
    /// Made if there is none.
    pub(super) fn aside(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }
}
