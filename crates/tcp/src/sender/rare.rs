//! Rarely used state, kept apart from what every segment touches.

use super::bursts::Watch;
use crate::config::LossClassifier;
use crate::loss::classifier::Classifier;
use crate::recovery::mtu_search::Search;
use alloc::boxed::Box;
use skyhaul_cc::PathState;

/// State that few connections need. It is allocated when first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct RareState {
    /// Burst sizes, once more than one segment left at a time.
    pub(super) bursts: Watch,
    /// The loss classifier, if configured.
    pub(super) classifier: Option<Classifier>,
    /// The path MTU search, if configured.
    pub(super) mtu_search: Option<Search>,
    /// The path state of an earlier connection, until the algorithm has received it.
    pub(super) cached: Option<PathState>,
}

impl RareState {
    /// State that exists from the start.
    pub(super) fn at_start(config: LossClassifier) -> Option<Box<Self>> {
        let classifier = Some(Classifier::of(config)?);
        Some(Box::new(Self { classifier, ..Self::default() }))
    }
}
