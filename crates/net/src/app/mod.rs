//! What runs on a host: senders, sinks, a small HTTP server, and the other end of iperf3.

mod account;
mod bulk;
mod http;
mod iperf;
mod meter;
mod serve;

pub use account::Account;
pub use bulk::{Bulk, Limit};
pub use http::Http;
pub use iperf::{Iperf, Tested};
pub use meter::{Interval, Meter};
pub use serve::{Ended, Serve, Sink, Talk, Talker};

pub use crate::host::{App, Turn};
