//! Why a scenario cannot run in another world.

use crate::error::NetError;
use crate::host::HostError;
use thiserror::Error;

/// Why a scenario cannot run in another world.
#[derive(Debug, Error)]
pub enum WorldError {
    /// The system refuses.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The host refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What the scenario asks for exists in the simulator only.
    #[error("flows.{flow}: {why}")]
    Unsupported {
        /// The flow group.
        flow: String,
        /// What, and what to do.
        why: Unsupported,
    },
    /// The kernel lacks the congestion control.
    #[error("this kernel has no congestion control {name:?}; it has: {known}")]
    NoSuchControl {
        /// The name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// A connection failed.
    #[error("flows.{flow}: a connection failed: {why}")]
    Failed {
        /// The flow group.
        flow: String,
        /// What its end says.
        why: String,
    },
}

/// What of a group of flows exists in the simulator only.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// A packet that no device takes.
    #[error("a real packet has 68 to 65535 bytes, headers included, and these have {bytes} bytes")]
    Packet {
        /// Bytes with headers.
        bytes: u32,
    },
    /// A datagram without room for what its receiver measures by.
    #[error(
        "a real datagram carries its sequence number and a timestamp in 16 bytes of payload: write packet = \"{least} B\" \
         or more"
    )]
    ShortDatagram {
        /// Bytes of the shortest with headers.
        least: u32,
    },
    /// A transport that only our own hosts have.
    #[error("transport = \"{name}\" needs Skyhaul at both ends: it runs in the worlds sim and wire")]
    OursOnly {
        /// Its name in files.
        name: &'static str,
    },
    /// A control that only the program has which runs the scenario.
    #[error("the control {name:?} is user-defined, and on a wire hosts have only the built-in controls")]
    UsersControl {
        /// Its name.
        name: String,
    },
    /// Losses that nobody on a wire can tell apart.
    #[error(
        "loss-classifier = \"oracle\" knows why each packet was lost, which only the simulator does: write \"inter-arrival\", \
         \"spike\" or \"none\""
    )]
    Oracle,
    /// Gateways that cut connections.
    #[error(
        "a chain of connections needs gateways, which only the simulator has: leave out `chain` for this world"
    )]
    Chain,
    /// The same as [`Self::Oracle`], of a rate.
    #[error(
        "ignore-corruption knows why each packet was lost, which only the simulator does: write transport = \"tfrc\" for this world"
    )]
    RateOracle,
    /// More groups than there are ports.
    #[error("on a wire each flow group needs its own port, and there are {most}: merge similar groups")]
    TooManyGroups {
        /// How many.
        most: usize,
    },
}
