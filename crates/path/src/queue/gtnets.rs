//! The router of the GTNetS simulator: refuses a dummy segment when more than one packet is queued.

use super::model::without_options;
use super::threshold::Threshold;

without_options! {
    /// Refuses low priority when more than one packet is queued.
    Threshold, "probes admitted only to an almost empty queue", blind: false, Threshold::new(2)
}
