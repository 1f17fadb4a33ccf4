//! Why a connection ended.

use serde::Serialize;
use skyhaul_net::host::Failure;

/// Why a connection through the gateway ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// Both directions were closed in order.
    Finished,
    /// The host on the terrestrial side reset it, or no longer answers.
    HostsAborted,
    /// The server on the terrestrial side refused it, or did not answer.
    HostsRefused,
    /// The leg over the link could not be opened: no local port was free.
    NotOpened,
    /// The end behind the link refused it.
    LinkRefused,
    /// The end behind the link reset it.
    LinkReset,
    /// The end behind the link no longer answers.
    LinkTimedOut,
    /// A router reported the end behind the link as unreachable.
    LinkUnreachable,
    /// The client behind the link gave it up during the handshake.
    Withdrawn,
    /// Data waited and nothing moved for `limits.stuck`.
    Stuck,
    /// Nothing moved for `limits.idle`.
    Idle,
    /// A defect of the gateway ended it.
    Defect,
    /// The gateway stopped before it was over.
    Stopped,
}

impl Cause {
    /// Whether both directions ended in order.
    #[must_use]
    pub(crate) fn in_order(self) -> bool {
        self == Self::Finished
    }
    /// Whether an operator should know: something did not answer, or the gateway ended it.
    #[must_use]
    pub(crate) fn is_fault(self) -> bool {
        !matches!(self, Self::Finished | Self::HostsAborted | Self::LinkReset | Self::Withdrawn)
    }
    /// The cause of an aborted connection. `failure` is that of the leg over the link; without one, the terrestrial leg failed. `opened`: the
    /// leg over the link was established. `from_link`: the client is behind the link.
    pub(crate) fn of(failure: Option<Failure>, opened: bool, from_link: bool) -> Self {
        match failure {
            Some(Failure::Refused) => Self::LinkRefused,
            Some(Failure::Reset) => Self::LinkReset,
            Some(Failure::TimedOut) => Self::LinkTimedOut,
            Some(Failure::Unreachable) => Self::LinkUnreachable,
            Some(Failure::Defect) => Self::Defect,
            None if from_link && !opened => Self::HostsRefused,
            None => Self::HostsAborted,
        }
    }
}

/// The failure of a leg over the link, in one word.
pub(crate) fn failure(why: Failure) -> &'static str {
    match why {
        Failure::Refused => "refused",
        Failure::Reset => "reset",
        Failure::TimedOut => "timed-out",
        Failure::Unreachable => "unreachable",
        Failure::Defect => "defect",
    }
}
