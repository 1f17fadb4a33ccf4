//! Two ends of a segment over links with losses, reordering and duplicates.

mod agree;
mod closed_forms;
mod order;
mod world;
