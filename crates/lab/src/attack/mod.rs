//! Adversarial search: the case, within declared bounds, in which a congestion control does worst.
//!
//! ```text
//! bounds ──▶ Space ──place──▶ Point ──goal──▶ scenarios ──run──▶ value ──▶ search (particle swarm)
//!                                                                  └──▶ journal, report, scenario files
//! ```
//! The search minimises or maximises a [`Goal`]. Its best case is run again with fresh seeds, so that the reported
//! number is not the search's luck.

mod budget;
mod goal;
mod hunt;
mod journal;
mod measured;
mod observer;
mod point;
mod pool;
mod report;
mod search;
mod setup;
mod space;

pub use budget::Budget;
pub use goal::Goal;
pub use hunt::{Request, hunt};
pub use observer::{NoObserver, SearchObserver};
pub use report::SearchResult;
pub use space::BoundsSource;
