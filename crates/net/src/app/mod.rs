//! Applications on a host: the workloads of `skyhaul_apps`, sinks, a small HTTP server, an iperf3 server, and the
//! orderly end of all of these.

mod account;
mod arrival_log;
mod bulk;
mod drain;
mod http;
mod inbox;
mod iperf;
mod meter;
mod rated;
mod serve;
mod session;
mod standstill;
mod tally;
mod transport;

pub use account::Account;
pub use arrival_log::ArrivalLog;
pub use bulk::{Bulk, Limit};
pub use drain::Drain;
pub use http::Http;
pub use inbox::Inbox;
pub use iperf::{Datagrams, Iperf, Tested, TestedConnection};
pub use meter::{Interval, Meter};
pub use rated::{Rated, Reporters};
pub use serve::{ConnectionHandler, NextStep, Serve, ServedConnection, Sink};
pub use session::{Carrier, Session};
pub use tally::Tally;
pub use transport::{HostCarrier, HostTransport};

pub use crate::host::{App, AppStatus};
