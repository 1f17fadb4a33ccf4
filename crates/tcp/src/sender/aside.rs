//! Rarely used state, kept apart from what every segment touches.

use super::Engine;
use super::bursts::Watch;
use crate::config::LossClassifier;
use crate::loss::classifier::Classifier;
use crate::recovery::mtu_search::Search;
use crate::store::Store;
use alloc::boxed::Box;
use skyhaul_cc::PathState;

/// Created when first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    /// Burst sizes, once more than one segment left at a time.
    pub(super) bursts: Watch,
    /// The loss classifier, if configured.
    pub(super) classifier: Option<Classifier>,
    /// The path MTU search, if configured.
    pub(super) mtu_search: Option<Search>,
    /// The path state of an earlier connection, until the algorithm has got it.
    pub(super) cached: Option<PathState>,
}

impl Aside {
    /// State that exists from the start.
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
    /// The same, for reporting to it.
    pub(super) fn classifier_mut(&mut self) -> Option<&mut Classifier> {
        self.aside.as_mut()?.classifier.as_mut()
    }
    /// The state, created if necessary.
    pub(super) fn aside(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }
}
