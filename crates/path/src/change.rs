//! What a link becomes while it is in use.

use crate::delay::Delay;
use crate::error;
use crate::link::Link;
use crate::packet::{DropReason, PacketView};
use crate::queue::Limit;
use crate::rate;
use skyhaul_base::Instant;

/// What a directed link becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another delay, for transmissions that begin from then on.
    Delay(Delay),
    /// Other losses, for transmissions that begin from then on.
    Error(error::Config),
    /// Another capacity of the queue; what waits is kept.
    Limit(Limit),
    /// Another rate, for transmissions that begin from then on.
    Rate(rate::Config),
    /// Up or down.
    Up(bool),
}

impl Change {
    /// Makes the change. What the link loses by going down goes to `lost`.
    ///
    /// # Panics
    /// If the rate is zero, or [`error::Config::validate`] refuses the losses.
    pub fn apply<P: PacketView>(
        &self,
        now: Instant,
        link: &mut Link<P>,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        match self {
            Self::Delay(delay) => link.set_delay(delay.clone()),
            Self::Error(error) => link.set_error(error.build()),
            Self::Limit(limit) => link.set_limit(*limit),
            Self::Rate(rate) => link.set_rate(rate),
            Self::Up(up) => link.set_up(now, *up, lost),
        }
    }
}
