//! A transparent gateway: it terminates TCP connections on the terrestrial side of a satellite link and carries their data over
//! the link with Skyhaul's transport (a split-connection PEP, RFC 3135).
//!
//! ```text
//! client ══ kernel socket ─▶ relay ─▶ our host, on a TUN interface ══ satellite ══▶ the server, or another gateway
//!           (TPROXY)
//! client ◀═ satellite ══ our host ◀─ relay ◀─ kernel socket (bound to the client's address) ══ server
//! ```
//! "Our host" is the gateway's TCP endpoint in user space. One program serves both directions: connections opened on the terrestrial side
//! leave over the satellite, and vice versa. The kernel forwards everything else unchanged.
//!
//! ```text
//! config          the configuration file
//! profile         kinds of links, and the settings that suit them
//! run             a gateway from its setup to its shutdown
//! gateway         all connections: an application on our host
//! flow            one connection: its two legs and the relay between them
//! near            kernel sockets on the terrestrial side: accepted ones, and those opened with a client's address
//! far             connections of our host, as ends of relays
//! policy          with which transport settings a connection goes over the link
//! peer            other gateways: the congestion windows of earlier connections to them, and their cookies for data in SYNs
//! route           the MTU that the kernel has for a route
//! members         the threads of a gateway, each with a part of its connections
//! worker          a thread beside those of the connections
//! poll            readiness events of the kernel sockets
//! rules           the nftables table and routing rules that follow from the configuration
//! system          installs and removes them; the keeper removes them if the gateway is killed
//! slot            marks, tables and addresses that each gateway of a machine has for itself
//! saved_settings  the settings of the system before the gateway changed them, in a file
//! leftover        removal of what a killed gateway has left behind
//! watch           notices when others change or remove the table, so that it is restored
//! proof           whether connections of hosts reach the gateway: otherwise nothing is intercepted
//! nft             the program `nft`
//! chains          chains of other programs that drop packets
//! classes         classes of connections, and rates of subscribers
//! network         networks in prefix notation
//! forward         ports of this machine whose connections go over the link, without routes
//! descriptors     the limit of open descriptors
//! place           where locks and sockets of gateways are, and which gateways run
//! control         commands to a running gateway
//! status          its state and counters
//! prefixes        its totals by network behind the link
//! metrics         a page for Prometheus
//! log             lines of JSON about connections and events, to files and collectors
//! record, cause   the line of a connection, and why the connection ended
//! capture, qlog   packets and events of chosen connections, streamed to the program that asks for them
//! probe           a connection that shows whether the path works
//! evidence        observes connections: does splitting help?
//! priority        tests whether the path treats low priority as such
//! repair          repairs datagrams that cannot be split, together with another gateway
//! doctor          checks for anything that would keep a gateway from working
//! stamp           the kernel's stamps of arriving packets
//! absent          values that JSON may lack
//! fuzz            entry points for fuzzing
//! ```
#![cfg(target_os = "linux")]
#![warn(clippy::indexing_slicing)]

mod absent;
pub mod capture;
mod cause;
mod chains;
pub mod classes;
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
pub mod repair;
mod route;
pub mod rules;
mod run;
mod saved_settings;
pub mod slot;
mod stamp;
pub mod status;
pub mod system;
pub mod watch;
mod worker;

pub use config::Config;
pub use error::GatewayError;
pub use gateway::Gateway;
pub use place::FOLDER;
pub use run::{Environment, RunObserver, run};
