//! Window arithmetic shared by several algorithms.

pub mod aggregation;
pub mod backlog;
pub mod credit;
pub mod estimate;
pub mod fallback;
pub mod fine_timeout;
pub mod frame;
pub mod growth;
pub mod held_back;
pub mod hystart;
pub mod inflation;
pub mod probed_window;
pub mod windowed;
