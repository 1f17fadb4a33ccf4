//! What a link becomes while it is in use.

use crate::delay::Delay;
use crate::error;
use crate::link::Link;
use crate::packet::{DropReason, PacketView};
use crate::queue::Limit;
use crate::rate;
use skyhaul_base::{Duration, Instant};

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
    /// What rain or shadowing loses besides, of transmissions that begin from then on: the share of packets of
    /// [`crate::link::FADE_BYTES`] bytes.
    Fade(f64),
    /// Its satellite is in sight or not: the link is up while it is both up and in sight.
    Visible(bool),
    /// One of two ways at a time, 0 or 1, has another delay, or with `None` cannot be used.
    Way(u8, Option<Delay>),
    /// It goes on over another satellite. This changes nothing by itself: delay and sight change beside it.
    Handover(Handover),
}

/// From one satellite to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The satellite until then; `None` if none was in sight.
    pub from: Option<u32>,
    /// The satellite from then on; `None` if none is in sight.
    pub to: Option<u32>,
    /// The propagation delay until then; zero without a satellite.
    pub before: Duration,
    /// The propagation delay from then on; zero without a satellite.
    pub after: Duration,
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
            Self::Fade(loss) => link.set_fade(*loss),
            Self::Visible(visible) => link.set_visible(now, *visible, lost),
            Self::Way(way, delay) => link.set_way(now, *way, delay.clone(), lost),
            Self::Handover(_) => {}
        }
    }
}
