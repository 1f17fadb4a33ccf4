//! Models of everything a packet meets between two transport endpoints: queues, serialisation, propagation, errors,
//! and their repair.
//!
//! A directed [`Link`] is the pipeline `queue -> serialise -> propagate -> error draw -> deliver`. It is sans-IO:
//! it owns no clock and no thread. Its driver (the simulator in virtual time, the emulator in real time) calls
//! [`Link::offer`] with packets, [`Link::serve`] at [`Link::next_service`] and [`Link::deliver`] at
//! [`Link::next_delivery`], so the same code serves both.
//!
//! Randomness: each link has one stream per purpose ([`Streams`]), and each model draws the same number of times
//! per packet whatever the outcome. Switching one model off therefore does not change another, and two protocols
//! compared with one seed meet the same losses.
//!
//! Sources are cited by key: `[Peach]` Akyildiz, Morabito, Palazzo, "TCP-Peach", IEEE/ACM ToN 9(3), 2001;
//! RFCs by number. Choices that no source fixes are marked *our choice*.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agenda;
pub mod arq;
pub mod chain;
pub mod change;
pub mod course;
pub mod delay;
pub mod error;
pub mod fade;
pub mod fec;
pub mod lane;
pub mod link;
pub mod packet;
pub mod param;
pub mod queue;
pub mod rate;
pub mod stats;
mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;

pub use agenda::Agenda;
pub use chain::{Chain, Hop, Observer, Routed, Routes};
pub use change::{Change, Handover};
pub use course::Course;
pub use delay::Delay;
pub use error::ErrorModel;
pub use link::{Link, LinkConfig, Offered, Streams};
pub use packet::{Acknowledgement, DropReason, KINDS, PacketView};
pub use param::{ParamError, Refusal};
pub use queue::{Discipline, Limit, Queue, QueueConfig, Victim};
pub use stats::{Counters, KindCounters};
pub use trace::{Broken, TraceError};
