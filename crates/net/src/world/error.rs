//! Why a scenario cannot run in real time.

use crate::error::NetError;
use crate::host::HostError;
use thiserror::Error;

/// Why a scenario cannot run in real time.
#[derive(Debug, Error)]
pub enum WorldError {
    /// An error of the operating system.
    #[error(transparent)]
    Net(#[from] NetError),
    /// An error of the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A flow group asks for something that this world does not have.
    #[error("flows.{flow}: {why}")]
    Unsupported {
        /// The flow group.
        flow: String,
        /// What it is, and what to do.
        why: Unsupported,
    },
    /// The kernel lacks the congestion control.
    #[error("this kernel has no congestion control {name:?}; it has: {known}")]
    NoSuchControl {
        /// Its name.
        name: String,
        /// The available ones.
        known: String,
    },
    /// A connection failed.
    #[error("flows.{flow}: a connection failed: {why}")]
    Failed {
        /// The flow group.
        flow: String,
        /// The reason, as reported by its end.
        why: String,
    },
}

/// What a flow group asks for and a world does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// The packets are shorter or longer than any MTU of a device.
    #[error("a real packet has 68 to 65535 bytes, headers included, and these have {bytes} bytes")]
    Packet {
        /// Its size with headers, bytes.
        bytes: u32,
    },
    /// The datagram is too short for the header by which its receiver measures.
    #[error(
        "a real datagram carries its sequence number and a timestamp in 16 bytes of payload: write packet = \"{least} B\" \
         or more"
    )]
    ShortDatagram {
        /// Minimum size with headers, bytes.
        least: u32,
    },
    /// The transport exists only in our own hosts.
    #[error("transport = \"{name}\" needs Skyhaul at both ends: it runs in the worlds sim and wire")]
    OursOnly {
        /// Its name in files.
        name: &'static str,
    },
    /// The control is provided only by the program that runs the scenario.
    #[error("the control {name:?} is user-defined, and on a wire hosts have only the built-in controls")]
    UsersControl {
        /// Its name.
        name: String,
    },
    /// The causes of losses cannot be distinguished on a real network.
    #[error(
        "loss-classifier = \"oracle\" knows why each packet was lost, which only the simulator does: write \"inter-arrival\", \
         \"spike\" or \"none\""
    )]
    Oracle,
    /// Gateways that split connections.
    #[error(
        "a chain of connections needs gateways, which only the simulator has: leave out `chain` for this world"
    )]
    Chain,
    /// Gateways that repair a segment.
    #[error("gateways that repair datagrams are simulated only: leave out the table [repair] for this world")]
    Repair,
    /// Data that crosses links against the path.
    #[error("direction = \"reverse\" is simulated only: leave it out for this world")]
    Reverse,
    /// A DSCP, which neither datagrams nor the kernel's packets have here.
    #[error("dscp is set in the world sim, and over TCP in the world wire: leave out `dscp` for this world")]
    Dscp,
    /// The same as [`Self::Oracle`], for a rate-controlled flow.
    #[error(
        "ignore-corruption knows why each packet was lost, which only the simulator does: write transport = \"tfrc\" for this world"
    )]
    RateOracle,
    /// There are more groups than ports.
    #[error("on a wire each flow group needs its own port, and there are {most}: merge similar groups")]
    TooManyGroups {
        /// The maximum.
        most: usize,
    },
}
