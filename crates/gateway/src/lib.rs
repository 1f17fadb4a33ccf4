//! A transparent gateway: it terminates TCP connections on the terrestrial side of a satellite link and carries their data over
//! the link with Skyhaul's transport (a split-connection PEP, RFC 3135).
//!
//! ```text
//! client ══ kernel socket ─▶ relay ─▶ our host, on a TUN interface ══ satellite ══▶ the server, or another gateway
//!           (TPROXY)
//! client ◀═ satellite ══ our host ◀─ relay ◀─ kernel socket (bound to the client's address) ══ server
//! ```
//! One program serves both directions: connections opened on the terrestrial side leave over the satellite, and vice versa.
//! The kernel forwards everything else unchanged.
//!
//! ```text
//! config    the configuration file
//! profile   kinds of links, and the settings that suit them
//! rules     the nftables table and routing rules that follow from it
//! system    installs and removes them; the keeper removes them if the gateway is killed
//! forward   ports of this machine whose connections go over the link, without routes
//! near      kernel sockets on the terrestrial side: accepted ones, and those opened with a client's address
//! flow      one connection: its two legs and the relay between them
//! cause     why a connection ended
//! log       lines of JSON about connections and events
//! capture   packets and events of chosen connections, streamed to whoever asks
//! probe     a connection that shows whether the path works
//! proof     whether connections of hosts reach it: otherwise nothing is intercepted
//! watch     notices when others change or remove the table, so that it is restored
//! descriptors  the limit of open descriptors
//! nft       the program of this name
//! before    what was there before the system was changed, in a file
//! place     where locks and sockets of gateways are, and which gateways run
//! leftover  removal of what a killed gateway has left behind
//! peer      other gateways: the congestion windows of earlier connections to them, and their cookies for data in SYNs
//! route     what the kernel knows of a route
//! terms     with which transport settings a connection goes over the link
//! worker    a thread beside the gateway's own
//! members   the threads of a gateway, each with a part of its connections
//! gateway   all connections: an application on a host
//! evidence  observes connections: does splitting help?
//! priority  tests whether the path treats low priority as such
//! doctor    checks for anything that would keep it from working
//! ```
#![cfg(target_os = "linux")]
#![warn(clippy::indexing_slicing)]

mod absent;
pub mod capture;
mod cause;
mod chains;
pub mod config;
pub mod control;
mod descriptors;
pub mod doctor;
mod error;
pub mod evidence;
mod far;
mod flow;
pub mod forward;
pub mod fuzz;
mod gateway;
pub mod leftover;
pub mod log;
mod members;
pub mod metrics;
mod near;
mod network;
mod nft;
mod peer;
pub mod place;
mod policy;
mod poll;
pub mod prefixes;
pub mod priority;
pub mod probe;
pub mod profile;
pub mod proof;
mod qlog;
mod record;
mod route;
pub mod rules;
mod run;
mod saved_settings;
mod stamp;
pub mod status;
pub mod system;
pub mod watch;
mod worker;

pub use config::Config;
pub use error::GatewayError;
pub use gateway::{AdmissionOrder, Gateway};
pub use place::FOLDER;
pub use run::{Environment, RunObserver, run};
