//! Adversarial search: the case, within declared bounds, in which a congestion control does worst.
//!
//! ```text
//! bounds ──▶ Space ──place──▶ Point ──goal──▶ scenarios ──run──▶ value ──▶ search (particle swarm)
//!                                                                  └──▶ journal, report, scenario files
//! ```
//! The search minimises or maximises a [`Goal`]. Its best case is run again with fresh seeds, so that the reported
//! number is not the search's luck.

mod budget;
mod pool;
mod goal;
mod hunt;
mod journal;
mod measured;
mod point;
mod report;
mod search;
mod space;
mod setup;
mod observer;

pub use budget::Budget;
pub use goal::Goal;
pub use hunt::{Request, hunt};
pub use report::SearchResult;
pub use space::Bounds;
pub use observer::{NoObserver, SearchObserver};
