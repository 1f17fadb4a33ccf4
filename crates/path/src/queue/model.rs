//! What a queue discipline provides; each has a file of its own.

use super::limit::{Limit, Load};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use crate::param::Refusal;
use alloc::boxed::Box;
use core::fmt::Debug;
use skyhaul_base::{Duration, Rate};

/// The configuration of a discipline, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Copy + Debug + PartialEq {
    /// What files may say of it besides the capacity: one key for each field.
    const KEYS: &'static [Key];
    /// All packets are alike to it, whatever their priority.
    const BLIND: bool = false;
    /// All packets of high priority leave before any of low priority and in the order of their arrival, and none of them
    /// makes room for another: nothing that comes later changes when they leave.
    const HIGH_FIRST: bool = false;
    /// It sees packets that find the transmitter idle, too, though they do not wait (`Order::pass`).
    const SEES_ALL: bool = false;
    /// The packets that wait, and who goes next.
    type Order<P>;
    /// Why a configuration makes no sense.
    type Invalid: Refusal;

    /// Refuses parameters that contradict each other or the capacity.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self, limit: Limit) -> Result<(), Self::Invalid>;
    /// No packets yet.
    fn build<P>(&self) -> Self::Order<P>;
    /// What it does in a few words, for reports.
    fn words(&self) -> &'static str;
    /// Configured like this, it treats all packets alike, whatever their priority.
    fn ignores_priority(&self) -> bool {
        Self::BLIND
    }
    /// The longest round-trip time that it reckons with, and the key that says it; `None` if it reckons with none.
    fn round_trip(&self) -> Option<(&'static str, Duration)> {
        None
    }
    /// The smallest share of the pure acknowledgements of a flow that it passes on if they do not all fit.
    fn share_of_acks(&self) -> f64 {
        1.0
    }
    /// Acknowledgements that it removes are made anew at the far side of the link, which it tells of them.
    fn compacts_acks(&self) -> bool {
        false
    }
}

/// A key that some disciplines have in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Why the other disciplines refuse it.
    pub elsewhere: &'static str,
    /// What is said where it is missing; `None` if it has a default.
    pub missing: Option<&'static str>,
}

/// The packets that wait, and who goes next. Whoever calls keeps the account of the packet that [`Self::dequeue`] returns.
pub(super) trait Order<P: PacketView> {
    /// Admits a packet, or refuses it, or admits it in the place of others, and keeps `held`, which counts all that
    /// wait, up to date. Returns true if `p` was admitted; every packet lost goes to `lost`. `busy` is 1 if the packet
    /// in service counts as queued.
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        busy: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool;
    /// Makes room for a packet of `size` bytes that is kept elsewhere, where all of high priority are. True if it fits
    /// then.
    fn make_room(
        &mut self,
        _size: u32,
        _held: &mut Load,
        _limit: Load,
        _lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        false
    }
    /// Takes the packet that is served next. What is lost instead of being served leaves `held` and goes to `lost`.
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P>;
    /// A packet goes past the empty queue to an idle transmitter, unless it is lost here. Only [`Model::SEES_ALL`] makes
    /// sure that each such packet comes by.
    fn pass(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        _limit: Load,
        _lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        Some(p)
    }
    /// The transmitter sends at this rate from now on, on average; `None` if it is infinitely fast.
    fn set_rate(&mut self, _: Option<Rate>) {}
}

/// What few links have lies elsewhere, so that the others are no larger for it.
impl<P: PacketView, T: Order<P>> Order<P> for Box<T> {
    #[inline(never)]
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        busy: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        (**self).enqueue(at, p, held, limit, busy, lost)
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
}

/// A discipline without options: what it is, in the schema and in reports, its order, and whether that is blind.
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
