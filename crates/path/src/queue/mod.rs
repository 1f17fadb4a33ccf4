//! Queues before a transmitter.
//!
//! A [`Queue`] holds waiting packets, without the one in transmission. All built-in disciplines are in one enum, so
//! that a link calls them without indirection.
//!
//! Each discipline has its own file with its [`Model`], whose configuration is its form in scenario files. A new
//! discipline needs only that file, its `mod` line and one line in the list below.

pub mod ack_compaction;
pub mod ack_decimation;
pub mod ack_filter;
mod acks;
pub mod acks_first;
pub mod cake;
mod cobalt;
pub mod codel;
pub mod drop_tail;
pub mod dual_pi2;
pub mod fq_codel;
pub mod gtnets;
mod limit;
mod model;
mod moment;
mod options;
pub mod pie;
pub mod plain;
pub mod pushout;
pub mod red;
pub mod threshold;
pub mod two_band;
mod waiting;
pub mod wred;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use crate::packet::{DropReason, PacketView};
use crate::param::Refusal;
use alloc::vec::Vec;
use limit::Load;
use model::Order as _;
use skyhaul_base::{Duration, Instant, Rate};

pub use limit::Limit;
pub use model::{Key, Model};
pub use moment::Moment;
pub use options::Invalid as InvalidOption;
pub use pushout::Victim;

skyhaul_base::kinds! {
    each;
    /// Which packets a queue admits, and which it serves next.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[expect(missing_docs, reason = "the configuration of each discipline documents itself")]
    pub enum Discipline {
        "ack-compaction" AckCompaction(ack_compaction::Config),
        "ack-decimation" AckDecimation(ack_decimation::Config),
        "ack-filter" AckFilter(ack_filter::Config),
        "acks-first" AcksFirst(acks_first::Config),
        "cake" Cake(cake::Config),
        "codel" Codel(codel::Config),
        "drop-tail" DropTail(drop_tail::Config),
        "dual-pi2" DualPi2(dual_pi2::Config),
        "fifo-pushout" FifoPushout(pushout::Fifo),
        "fq-codel" FqCodel(fq_codel::Config),
        "gtnets" Gtnets(gtnets::Config),
        "pie" Pie(pie::Config),
        "plain" Plain(plain::Config),
        "red" Red(red::Config),
        "strict-pushout" StrictPushout(pushout::Strict),
        "threshold" Threshold(threshold::Config),
        "two-band" TwoBand(two_band::Config),
        "wred" Wred(wred::Config),
    }
    /// A discipline without its options.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Deserialize))]
    #[expect(missing_docs, reason = "the configuration of each discipline documents itself")]
    pub kind Kind;
    /// Why a discipline is invalid.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[expect(missing_docs, reason = "the error of each discipline documents itself")]
    pub error InvalidDiscipline = Model::Invalid;
    /// The disciplines with their packets. They decide on admission and order; the caller's `Load` keeps the
    /// account.
    #[derive(Clone, Debug)]
    enum Order<P> = Model::Order;
}

impl Kind {
    /// Its keys in files, besides the capacity.
    #[must_use]
    pub const fn keys(self) -> &'static [Key] {
        each!(self, Kind as C => C::KEYS)
    }
    /// Reads the discipline's own keys.
    ///
    /// # Errors
    /// The deserializer's errors: a missing or unknown key, or an invalid value.
    #[cfg(feature = "serde")]
    pub fn read<'de, D: serde::Deserializer<'de>>(self, own: D) -> Result<Discipline, D::Error> {
        each!(self, Kind as C => <C as serde::Deserialize>::deserialize(own).map(Discipline::from))
    }
    /// Whether it is one FIFO with tail drop that ignores priorities: see [`Model::BLIND`].
    #[must_use]
    pub const fn is_blind(self) -> bool {
        each!(self, Kind as C => C::BLIND)
    }
    /// Whether high-priority packets leave first and in order of arrival, whatever arrives later.
    #[must_use]
    pub const fn serves_high_first(self) -> bool {
        each!(self, Kind as C => C::HIGH_FIRST)
    }
    /// Whether it also sees packets that find the transmitter idle.
    const fn sees_all(self) -> bool {
        each!(self, Kind as C => C::SEES_ALL)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Kind {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "KindOfQueue".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut one_of = |kind: &Self| {
            let schema = each!(kind, Kind as C => <C as schemars::JsonSchema>::json_schema(generator));
            schemars::json_schema!({
                "const": kind.name(),
                "description": schema.get("description"),
                "type": "string",
            })
        };
        schemars::json_schema!({
            "description": "The discipline: which packets a queue admits, and which it serves next.",
            "oneOf": Self::ALL.iter().map(&mut one_of).collect::<alloc::vec::Vec<_>>(),
        })
    }
}

impl Discipline {
    /// A short description for reports.
    #[must_use]
    pub fn words(&self) -> &'static str {
        each!(self, Discipline(c) => c.words())
    }
    /// Whether it ignores priorities with this configuration.
    #[must_use]
    pub fn ignores_priority(&self) -> bool {
        each!(self, Discipline(c) => c.ignores_priority())
    }
    /// The maximum RTT that it is tuned for, and the key for it; `None` if there is none.
    #[must_use]
    pub fn round_trip(&self) -> Option<(&'static str, Duration)> {
        each!(self, Discipline(c) => c.round_trip())
    }
    /// Whether it marks ECN-capable packets with this configuration.
    #[must_use]
    pub fn marks(&self) -> bool {
        each!(self, Discipline(c) => c.marks())
    }
    /// Whether it holds packets back with a shaper of its own, below the rate of the link.
    #[must_use]
    pub fn shapes(&self) -> bool {
        each!(self, Discipline(c) => c.shapes())
    }
    /// The key of its target, the target, and the longest RTT that it is meant for; `None` if no document says so.
    #[must_use]
    pub fn tuned_for(&self) -> Option<(&'static str, Duration, Duration)> {
        each!(self, Discipline(c) => c.tuned_for())
    }
    /// The discipline for a path with this base RTT: options that are not `written` in a file and whose value should
    /// follow from the RTT get it.
    #[must_use]
    pub fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        each!(self, Discipline(c) => c.for_path(rtt, written).into())
    }
    /// Options that are left out and follow from the capacity, each with its value in packets.
    #[must_use]
    pub fn derived(&self, limit: Limit) -> Vec<(&'static str, f64)> {
        each!(self, Discipline(c) => c.derived(limit))
    }
    /// The minimum fraction of a flow's pure acknowledgements that it forwards if they do not all fit: less
    /// than 1 if it thins them.
    #[must_use]
    pub fn share_of_acks(&self) -> f64 {
        each!(self, Discipline(c) => c.share_of_acks())
    }
    /// Whether the far side of the link recreates acknowledgements that it removes: see
    /// [`Hop::expanding`](crate::Hop::expanding).
    #[must_use]
    pub fn compacts_acks(&self) -> bool {
        each!(self, Discipline(c) => c.compacts_acks())
    }
    fn validate(&self, limit: Limit) -> Result<(), InvalidDiscipline> {
        each!(self, Discipline(c), InvalidDiscipline(refuse) => c.validate(limit).map_err(refuse))
    }
    fn build<P>(&self) -> Order<P> {
        each!(self, Discipline(c), Order(order) => order(c.build()))
    }
}

impl Refusal for InvalidDiscipline {
    fn key(&self) -> &'static str {
        each!(self, InvalidDiscipline(e) => e.key())
    }
}

impl Discipline {
    /// One FIFO that ignores classes and refuses packets that do not fit.
    pub const DROP_TAIL: Self = Self::DropTail(drop_tail::Config {});
}

impl Default for Discipline {
    fn default() -> Self {
        Self::DROP_TAIL
    }
}

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// Admission and service.
    pub discipline: Discipline,
    /// Capacity.
    pub limit: Limit,
    /// The packet in transmission occupies room, too (default: false, *our choice*). The limit is then that of the
    /// whole system, queue and transmitter together.
    pub count_in_service: bool,
    /// True for a capacity of limit − 1, which is how the drop-tail test of ns-2 behaves.
    pub ns2_limit: bool,
}

impl QueueConfig {
    /// A drop-tail queue of `packets` packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self {
            discipline: Discipline::DROP_TAIL,
            limit: Limit::Packets(packets),
            count_in_service: false,
            ns2_limit: false,
        }
    }
    /// The same queue with another discipline.
    #[must_use]
    pub fn with(self, discipline: impl Into<Discipline>) -> Self {
        Self { discipline: discipline.into(), ..self }
    }
    /// The options of the discipline that follow from the capacity in force, which `ns2_limit` reduces; see
    /// [`Discipline::derived`].
    #[must_use]
    pub fn derived(&self) -> Vec<(&'static str, f64)> {
        self.discipline.derived(Load::most(self.limit, self.ns2_limit.into()).as_limit())
    }
    /// Refuses a discipline that is invalid with this capacity, and with `count_in_service` a capacity below one packet of
    /// `packet` bytes.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self, packet: u32) -> Result<(), Invalid> {
        self.discipline.validate(self.limit).map_err(Invalid::Discipline)?;
        let less = u64::from(self.ns2_limit);
        let passes = match self.limit {
            Limit::Packets(n) => u64::from(n) > less,
            Limit::Bytes(n) => n >= less + u64::from(packet),
            Limit::Unlimited => true,
        };
        if self.count_in_service && !passes { Err(Invalid::NothingPasses) } else { Ok(()) }
    }
}

/// Why a queue is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The discipline is invalid.
    #[error(transparent)]
    Discipline(InvalidDiscipline),
    /// The packet in service alone exceeds the capacity.
    #[error("with count-in-service, not even the packet in service fits: raise `limit`")]
    NothingPasses,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Discipline(e) => e.key(),
            Self::NothingPasses => "limit",
        }
    }
}

/// Packets waiting for a transmitter.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    held: Load,
    limit: Load,
    /// Difference between the configured and the effective limit.
    less: u8,
    count_in_service: bool,
    /// A packet may bypass it to an idle transmitter.
    open: bool,
    order: Order<P>,
}

impl<P: PacketView> Queue<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: &QueueConfig) -> Self {
        let less = u8::from(config.ns2_limit);
        let order = config.discipline.build();
        let limit = Load::most(config.limit, less);
        let count_in_service = config.count_in_service;
        let open = !count_in_service && !config.discipline.kind().sees_all();
        Self { held: Load::EMPTY, limit, less, count_in_service, open, order }
    }

    /// Sets the mean rate of the transmitter; `None` means infinitely fast, the initial assumption.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        each!(&mut self.order, Order(q) => q.set_rate(rate));
    }

    /// Changes the capacity. Waiting packets beyond a smaller one are kept, and nothing is admitted until there is
    /// room.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = Load::most(limit, self.less);
    }

    /// Admits a packet, possibly in place of others, or refuses it. `in_service` is the size of the packet in
    /// transmission, if any. Returns true if `p` was admitted; lost packets go to `lost`.
    #[inline]
    pub fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        in_service: Option<u32>,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let (mut limit, mut counted) = (self.limit, 0);
        if let (true, Some(size)) = (self.count_in_service, in_service) {
            limit.packets = limit.packets.saturating_sub(1);
            limit.bytes = limit.bytes.saturating_sub(size.into());
            counted = size;
        }
        each!(&mut self.order, Order(q) => q.enqueue(at, p, &mut self.held, limit, counted, lost))
    }

    /// Admits a packet of `size` bytes that is stored elsewhere, like all packets or all of high priority; packets
    /// that it pushes out go to `lost`.
    #[inline]
    pub(crate) fn admit(&mut self, size: u32, lost: &mut impl FnMut(P, DropReason)) -> bool {
        let fits = self.held.admits(size, self.limit) || self.make_room(size, lost);
        if fits {
            self.held.add(size);
        }
        fits
    }
    #[inline(never)]
    fn make_room(&mut self, size: u32, lost: &mut impl FnMut(P, DropReason)) -> bool {
        each!(&mut self.order, Order(q) => q.make_room(size, &mut self.held, self.limit, lost))
    }
    /// A packet stored elsewhere has left.
    #[inline]
    pub(crate) fn leave(&mut self, size: u32) {
        self.held.remove(size);
    }

    /// Takes the next packet to serve; `None` if nothing waits, or all waiting packets were lost. Lost packets go
    /// to `lost`.
    #[inline]
    pub fn dequeue(&mut self, at: &mut Moment<'_>, lost: &mut impl FnMut(P, DropReason)) -> Option<P> {
        let p = each!(&mut self.order, Order(q) => q.dequeue(at, &mut self.held, lost))?;
        self.held.remove(p.size());
        Some(p)
    }

    /// Whether a packet may go straight to an idle transmitter, bypassing the empty queue. Other packets go through
    /// [`Self::pass`].
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The earliest time at which the next packet may leave: a queue with a shaper makes the transmitter wait.
    #[inline]
    #[must_use]
    pub fn not_before(&self) -> Instant {
        each!(&self.order, Order(q) => q.not_before())
    }

    /// Passes a packet to an idle transmitter through the empty queue. It may be lost here, for example if the
    /// packet in service counts and exceeds the limit by itself.
    #[inline(never)]
    pub fn pass(&mut self, at: &mut Moment<'_>, p: P, lost: &mut impl FnMut(P, DropReason)) -> Option<P> {
        if self.count_in_service && !Load::EMPTY.admits(p.size(), self.limit) {
            lost(p, DropReason::Full);
            return None;
        }
        each!(&mut self.order, Order(q) => q.pass(at, p, self.limit, lost))
    }
}

impl<P> Queue<P> {
    /// Number of waiting packets.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.held.packets
    }
    /// Number of waiting bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.bytes
    }
    /// Whether no packet waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.packets == 0
    }
}
