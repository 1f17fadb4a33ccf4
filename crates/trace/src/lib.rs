//! One vocabulary of events for simulated and real runs, and recorders for them.
//!
//! The driver of end points and links (the simulator in virtual time, the host on the wire) observes them and writes
//! [`Event`]s into a [`Recorder`]. The recorder is a type parameter of the driver: [`Null`] compiles to nothing,
//! [`Digest`] condenses a run to one number, [`Memory`] keeps everything. [`Series`] holds regular samples, in
//! columns. With the feature `qlog`, [`qlog::Log`] writes events to a file.
#![no_std]

extern crate alloc;

#[cfg(feature = "qlog")]
extern crate std;

pub mod calendar;
mod event;
#[cfg(feature = "qlog")]
pub mod qlog;
mod recorder;
mod series;

pub use event::{Class, Event, Frame, LinkChange, LossCause, Packet};
pub use recorder::{Digest, Memory, Null, Recorder};
pub use series::Series;
