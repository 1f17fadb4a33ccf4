//! Applications on a host: the workloads of `skyhaul_apps`, sinks, a small HTTP server, an iperf3 server, and the
//! orderly end of all of these.

mod account;
mod bulk;
mod farewell;
mod http;
mod inbox;
mod iperf;
mod lines;
mod meter;
mod rated;
mod serve;
mod session;
mod standstill;
mod tally;
mod watched;

pub use account::Account;
pub use bulk::{Bulk, Limit};
pub use farewell::Farewell;
pub use http::Http;
pub use inbox::Inbox;
pub use iperf::{Datagrams, Iperf, Tested, TestedConnection};
pub use lines::{Lines, OnHost};
pub use meter::{Interval, Meter};
pub use rated::{Rated, Reporters};
pub use serve::{NextStep, Serve, ServedConnection, Sink, Talker};
pub use session::{Carrier, Session};
pub use tally::Tally;
pub use watched::Watched;

pub use crate::host::{App, Turn};
