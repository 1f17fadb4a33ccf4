//! The two endpoints of a pair.

/// One of the two endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The one that opens actively.
    #[default]
    Client,
    /// The other one.
    Server,
}

impl Side {
    /// Both, the client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The peer.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
    pub(super) fn index(self) -> usize {
        self as usize
    }
}
