//! What is looked at now and then, apart from what every segment touches.

use super::Engine;
use super::bursts::Watch;
use crate::config::LossClassifier;
use crate::loss::classifier::Classifier;
use crate::recovery::mtu_search::Search;
use crate::store::Store;
use alloc::boxed::Box;
use skyhaul_cc::PathState;

/// It appears with the first thing that is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    /// How many segments left at once, once that was more than one.
    pub(super) bursts: Watch,
    /// What a loss was, where that is asked.
    pub(super) classifier: Option<Classifier>,
    /// The search for the longest segment that the path takes, where one is configured.
    pub(super) mtu_search: Option<Search>,
    /// What an earlier connection on the path left, until the algorithm is told.
    pub(super) cached: Option<PathState>,
}

impl Aside {
    /// What is there from the start.
    pub(super) fn at_start(config: LossClassifier) -> Option<Box<Self>> {
        let classifier = Some(Classifier::of(config)?);
        Some(Box::new(Self { classifier, ..Self::default() }))
    }
}

impl<S: Store> Engine<S> {
    /// The loss classifier, if there is one.
    #[inline]
    pub(super) fn classifier(&self) -> Option<&Classifier> {
        self.aside.as_ref()?.classifier.as_ref()
    }
    /// The same, to be told something.
    pub(super) fn classifier_mut(&mut self) -> Option<&mut Classifier> {
        self.aside.as_mut()?.classifier.as_mut()
    }
    /// Made if there is none.
    pub(super) fn aside(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }
}
