//! A transparent gateway: it ends TCP connections on the terrestrial side of a satellite link and carries them over the link
//! with our transport (RFC 3135: a split-connection PEP).
//!
//! ```text
//! client ══ kernel socket ─▶ relay ─▶ our host, on a TUN interface ══ satellite ══▶ the server, or another gateway
//!           (TPROXY)
//! client ◀═ satellite ══ our host ◀─ relay ◀─ kernel socket (bound to the client's address) ══ server
//! ```
//! Both ways are one program: connections that come from the terrestrial side leave over the satellite, and the other
//! way round. The kernel forwards everything else, as if nobody were there.
//!
//! ```text
//! config    what the file says
//! rules     the table of nftables, rules and routes that follow from it
//! system    puts them in, and takes them away again; the keeper does so when we were killed
//! forward   ports of this machine whose connections go over the link, without routes
//! near      kernel sockets: who connects, and to whom we connect in somebody else's name
//! flow      one connection: its two legs and the relay between them
//! peer      other gateways, and what connections have learnt of the way to them
//! gateway   all of them: an application on a host
//! doctor    what would keep it from working
//! ```
#![cfg(target_os = "linux")]

pub mod config;
pub mod control;
pub mod doctor;
mod error;
mod far;
mod flow;
pub mod forward;
pub mod fuzz;
mod gateway;
mod near;
mod peer;
mod poll;
pub mod rules;
mod run;
pub mod status;
pub mod system;

pub use config::Config;
pub use error::GatewayError;
pub use gateway::{Gateway, Orders};
pub use run::{FOLDER, Surroundings, Watcher, run};
