//! Rate-controlled datagram senders and their receivers: TFRC (RFC 5348) and SSVP.
//!
//! ```text
//! offer, greedy ──▶ Sender ── poll(now) ──▶ Data ──▶ Receiver
//!                     ▲                                 │
//!                     └─────────── Report ◀── poll(now) ┘
//! ```
//! Neither end reads a clock, opens a socket or knows a link. The driver, the simulator or a host on a real
//! network, calls [`Sender::poll`] and [`Receiver::poll`] after every input, and again at `next_timeout`. Pacing,
//! queueing and numbering are common to both protocols ([`Sender`]); each has its own `Control`, which computes the
//! rate.
//!
//! Sizes are those of whole packets including headers, and rates count whole packets, too. So does the segment size
//! in the equation: RFC 5348 counts payload, which for packets of one size differs only by a factor in the units.
#![forbid(unsafe_code)]

mod backlog;
mod config;
mod control;
mod highest;
mod loss;
mod meter;
mod offered;
mod option;
mod pacer;
mod packet;
mod receiver;
mod sender;
pub mod ssvp;
pub mod tfrc;

pub use config::{Config, USUAL_PACKET};
pub use offered::Offered;
pub use option::{Feedback, Invalid};
pub use packet::{DATA_HEADER, Data, REPORT_BYTES, Report, ReportBody};
pub use receiver::{Receiver, ReceiverStatistics};
pub use sender::{Counters, Sender, State};
