//! Interface of a queue discipline; each has its own file.

use super::limit::{Limit, Load};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use crate::param::Refusal;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rate};

/// The configuration of a discipline, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Copy + Debug + PartialEq {
    /// Its keys in files besides the capacity, one for each field.
    const KEYS: &'static [Key];
    /// Whether it is one FIFO with tail drop that ignores priorities: a link that never changes then computes departures
    /// by itself and does not call `Order::enqueue`. Others that ignore priorities say so in [`Self::ignores_priority`].
    const BLIND: bool = false;
    /// Whether all high-priority packets leave before low-priority ones and in order of arrival, without making
    /// room for each other: later arrivals then never change when they leave.
    const HIGH_FIRST: bool = false;
    /// Whether it also sees packets that find the transmitter idle and do not wait (`Order::pass`).
    const SEES_ALL: bool = false;
    /// The waiting packets, and their order.
    type Order<P>;
    /// Why a configuration is invalid.
    type Invalid: Refusal;

    /// Refuses parameters that contradict each other or the capacity.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self, limit: Limit) -> Result<(), Self::Invalid>;
    /// An empty queue.
    fn build<P>(&self) -> Self::Order<P>;
    /// A short description for reports.
    fn words(&self) -> &'static str;
    /// Whether it ignores priorities with this configuration.
    fn ignores_priority(&self) -> bool {
        Self::BLIND
    }
    /// The maximum RTT that it is tuned for, and the key for it; `None` if there is none.
    fn round_trip(&self) -> Option<(&'static str, Duration)> {
        None
    }
    /// Whether it marks ECN-capable packets with this configuration.
    fn marks(&self) -> bool {
        false
    }
    /// Whether it holds packets back with a shaper of its own (`Order::not_before`).
    fn shapes(&self) -> bool {
        false
    }
    /// The key of its target, the target, and the longest RTT that it is meant for; `None` if no document says so.
    fn tuned_for(&self) -> Option<(&'static str, Duration, Duration)> {
        None
    }
    /// The configuration for a path with this base RTT: options that are not `written` in a file and whose value should follow
    /// from the RTT get it.
    #[must_use]
    fn for_path(self, _rtt: Duration, _written: &dyn Fn(&str) -> bool) -> Self {
        self
    }
    /// Options that are left out and follow from the capacity, each with its value in packets.
    fn derived(&self, _: Limit) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// The minimum fraction of a flow's pure acknowledgements that it forwards if they do not all fit.
    fn share_of_acks(&self) -> f64 {
        1.0
    }
    /// Whether the far side of the link recreates acknowledgements that it removes.
    fn compacts_acks(&self) -> bool {
        false
    }
}

/// A key of some disciplines in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Why other disciplines refuse it.
    pub elsewhere: &'static str,
    /// The message if it is missing; `None` if it has a default.
    pub missing: Option<&'static str>,
}

/// The waiting packets, and their order. The caller accounts for the packet returned by [`Self::dequeue`].
pub(super) trait Order<P: PacketView> {
    /// Admits a packet, possibly in place of others, or refuses it, and updates `held`, the total load. Returns
    /// true if `p` was admitted; lost packets go to `lost`. `counted` is the size of the packet in service if it counts as
    /// queued, otherwise 0; `limit` is what it leaves.
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        counted: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool;
    /// Makes room for a packet of `size` bytes that is stored elsewhere, like all of high priority. True if it then
    /// fits.
    fn make_room(
        &mut self,
        _size: u32,
        _held: &mut Load,
        _limit: Load,
        _lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        false
    }
    /// Takes the next packet to serve. Packets lost here are subtracted from `held` and go to `lost`.
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P>;
    /// A packet bypasses the empty queue to an idle transmitter, unless it is lost here. Only with
    /// [`Model::SEES_ALL`] is this called for every such packet.
    fn pass(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        _limit: Load,
        _lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        Some(p)
    }
    /// Sets the mean rate of the transmitter; `None` means infinitely fast.
    fn set_rate(&mut self, _: Option<Rate>) {}
    /// The earliest time at which [`Self::dequeue`] and [`Self::pass`] may be called again.
    fn not_before(&self) -> Instant {
        Instant::ZERO
    }
}

/// Rare state is boxed, so that other links do not grow.
impl<P: PacketView, T: Order<P>> Order<P> for Box<T> {
    #[inline(never)]
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        counted: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        (**self).enqueue(at, p, held, limit, counted, lost)
    }
    fn make_room(
        &mut self,
        size: u32,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        (**self).make_room(size, held, limit, lost)
    }
    #[inline(never)]
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        (**self).dequeue(at, held, lost)
    }
    fn pass(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        (**self).pass(at, p, limit, lost)
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        (**self).set_rate(rate);
    }
    fn not_before(&self) -> Instant {
        (**self).not_before()
    }
}

/// A discipline without options: its description in the schema and in reports, its order, and whether it is
/// [blind](Model::BLIND).
macro_rules! without_options {
    ($(#[doc = $doc:literal])* $order:ident, $words:literal, blind: $blind:literal, $build:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(deny_unknown_fields, rename_all = "kebab-case")
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Config {}

        impl $crate::queue::model::Model for Config {
            const KEYS: &'static [$crate::queue::model::Key] = &[];
            const BLIND: bool = $blind;
            type Order<P> = $order<P>;
            type Invalid = core::convert::Infallible;

            fn validate(&self, _: $crate::queue::Limit) -> Result<(), Self::Invalid> {
                Ok(())
            }
            fn build<P>(&self) -> $order<P> {
                $build
            }
            fn words(&self) -> &'static str {
                $words
            }
        }
    };
}
pub(super) use without_options;
