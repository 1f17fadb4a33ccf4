//! Senders of datagrams that keep to a rate, and their receivers: TFRC (RFC 5348) and SSVP.
//!
//! ```text
//! offer, greedy ──▶ Sender ── poll(now) ──▶ Data ──▶ Receiver
//!                     ▲                                 │
//!                     └─────────── Report ◀── poll(now) ┘
//! ```
//! Neither end reads a clock, opens a socket or knows a link. Whoever runs them, the simulator or a host on a real
//! network, calls [`Sender::poll`] and [`Receiver::poll`] after everything that it tells them, and calls them again at
//! `next_timeout`. What paces, waits and numbers is the same for both protocols ([`Sender`]); what rate is right is a
//! `Control` in a folder of its own.
//!
//! Sizes are those of whole packets, headers included, and rates count whole packets too. So does the segment size of the
//! equation: RFC 5348 counts payload, which for packets of one size is the same up to a factor in the units.
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
pub use packet::{DATA_HEADER, Data, REPORT_BYTES, Report, Says};
pub use receiver::{Heard, Receiver};
pub use sender::{Counters, Sender, State};
