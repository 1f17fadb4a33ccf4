//! The sans-IO TCP endpoint: the same code runs in the simulator and on the wire.
//!
//! An endpoint owns no socket and reads no clock. The driver of a [`Connection`] calls five functions: `handle` with an
//! arriving [`Segment`], `poll_transmit` until it returns nothing, `next_timeout` and `handle_timeout`, and `poll_event`.
//! [`Source`] and [`Sink`] are the two ends of a simulated flow without a handshake.
//! The payload store is a type parameter: [`Counted`] keeps only lengths (simulation), [`Bytes`] keeps the bytes
//! (real network).
#![no_std]

extern crate alloc;

mod accecn;
mod ack_ratio;
mod autotune;
pub mod config;
mod connection;
mod delivery_rate;
mod error;
mod loss;
mod one_way;
mod pacer;
mod probing;
mod ration;
mod receiver;
mod recovery;
mod rtt;
mod segment;
mod sender;
mod store;
mod timer;
mod timestamps;
mod wave;

pub use accecn::Feedback;
pub use config::Config;
pub use connection::{
    Connection, Early, Established, Event, FoundMtu, HeldBytes, State, TimeWaitState, scale_for,
};
pub use error::Rejected;
pub use loss::classifier::Verdict;
pub use loss::rack::{Rack, RackReport};
pub use loss::scoreboard::{NextSeg, Scoreboard};
pub use one_way::{HandshakeResult, Sink, Source, one_way};
pub use receiver::{Blocks, Data, ProbeAnswer, Receiver};
pub use rtt::Estimator as RttEstimator;
pub use segment::{
    Codepoint, EcnBytes, Extras, Flags, Head, Mark, SackBlocks, Segment, Seq, SynOptions, Waves,
};
pub use sender::{
    Arrival, Bursts, CongestionReport, CongestionSignal, Counters, OutgoingSegment, Peer, Sender, Snapshot,
};
pub use store::{Bytes, Counted, Store};
