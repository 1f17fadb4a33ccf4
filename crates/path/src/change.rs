//! Changes of a link in use.

use crate::delay::Delay;
use crate::error;
use crate::link::Link;
use crate::packet::{DropReason, PacketView};
use crate::queue::Limit;
use crate::rate;
use skyhaul_base::{Duration, Instant};

/// A change of a directed link.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// New delay, for later transmissions.
    Delay(Delay),
    /// New losses, for later transmissions.
    Error(error::Config),
    /// New capacity of the queue; waiting packets are kept.
    Limit(Limit),
    /// New rate, for later transmissions.
    Rate(rate::Config),
    /// Up or down.
    Up(bool),
    /// Additional losses by rain or shadowing for later transmissions: the loss probability of packets of
    /// [`crate::link::FADE_BYTES`] bytes.
    Fade(f64),
    /// Whether its satellite is visible: the link is up while it is both up and visible.
    Visible(bool),
    /// One of two simultaneous paths, 0 or 1, has a new delay, or with `None` cannot be used.
    Path(u8, Option<Delay>),
    /// A handover to another satellite. It changes nothing by itself: delay and visibility have their own changes.
    Handover(Handover),
}

/// A handover from one satellite to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The previous satellite; `None` if none was visible.
    pub from: Option<u32>,
    /// The new satellite; `None` if none is visible.
    pub to: Option<u32>,
    /// The previous propagation delay; zero without a satellite.
    pub before: Duration,
    /// The new propagation delay; zero without a satellite.
    pub after: Duration,
}

impl Change {
    /// Applies the change. Packets that the link loses by going down go to `lost`.
    ///
    /// # Panics
    /// If the rate is zero, [`error::Config::validate`] refuses the losses, or the link is
    /// [unchanging](Link::unchanging).
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
            Self::Fade(loss) => link.set_fade(*loss),
            Self::Visible(visible) => link.set_visible(now, *visible, lost),
            Self::Path(path, delay) => link.set_path(now, *path, delay.clone(), lost),
            Self::Handover(_) => {}
        }
    }
}
