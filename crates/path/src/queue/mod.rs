//! Queues in front of a transmitter.
//!
//! A [`Queue`] holds packets that wait; the one being transmitted has left it. All built-in disciplines live
//! in one enum, so that a link calls them without indirection.

mod drop_tail;
mod pushout;
mod threshold;

#[cfg(test)]
mod tests;

use crate::packet::{DropReason, PacketView};
use drop_tail::DropTail;
use pushout::{FifoPushout, StrictPushout};
use threshold::Threshold;

/// How much a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// At most so many bytes: an arrival is refused only if it does not fit, so a smaller one that comes
    /// later may still be accepted.
    Bytes(u64),
    /// At most so many packets. [Peach §V-A] uses 50.
    Packets(u32),
    /// No limit.
    #[default]
    Unlimited,
}

/// Which queued packet of low priority makes room for an arrival of high priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    /// The one nearest the head.
    Oldest,
    /// The one nearest the tail.
    #[default]
    Youngest,
}

/// Who is admitted and who is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// One FIFO that ignores classes and refuses what does not fit. As a router without support for
    /// priorities (`plain`) it is the honest worst case for probes: they displace data.
    #[default]
    DropTail,
    /// Admission as in `StrictPushout`, but service in the order of arrival: discard priority only. The
    /// literal minimum of "discards the probes first" [Peach §III].
    FifoPushout {
        /// Who is pushed out.
        victim: Victim,
    },
    /// A high-priority arrival to a full queue evicts low-priority packets until it fits, but none in vain;
    /// all queued high-priority packets leave before any of low priority. Transmissions are not interrupted.
    StrictPushout {
        /// Who is pushed out.
        victim: Victim,
    },
    /// One FIFO that refuses low priority unless fewer than `low_below` packets are queued; nobody is evicted.
    /// A packet that finds the transmitter idle does not queue and is never refused.
    Threshold {
        /// Low priority is admitted while fewer than so many packets are queued.
        low_below: u32,
    },
}

impl Discipline {
    /// Classes ignored: [`Self::DropTail`] under the name that priority experiments use.
    pub const PLAIN: Self = Self::DropTail;
    /// Strict push-out with the default victim.
    pub const STRICT_PUSHOUT: Self = Self::StrictPushout { victim: Victim::Youngest };
    /// FIFO push-out with the default victim.
    pub const FIFO_PUSHOUT: Self = Self::FifoPushout { victim: Victim::Youngest };
    /// The router of the GTNetS simulator: a dummy is refused when more than one packet is queued.
    pub const GTNETS: Self = Self::Threshold { low_below: 2 };
}

/// Everything that describes a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// Admission and service.
    pub discipline: Discipline,
    /// Capacity.
    pub limit: Limit,
    /// True if the packet being transmitted occupies room too (default: false, *our choice*). With it a limit
    /// is that of the whole system, queue and transmitter together.
    pub count_in_service: bool,
    /// True for a capacity of limit − 1, which is how the drop-tail test of ns-2 behaves.
    pub ns2_limit: bool,
}

impl QueueConfig {
    /// A drop-tail queue of `packets` packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self {
            discipline: Discipline::DropTail,
            limit: Limit::Packets(packets),
            count_in_service: false,
            ns2_limit: false,
        }
    }
    /// The same queue with another discipline.
    #[must_use]
    pub const fn with(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }
}

/// Packets and bytes together: what a queue holds, or may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    packets: u32,
    bytes: u64,
}

impl Load {
    const EMPTY: Self = Self { packets: 0, bytes: 0 };

    /// What a queue with this limit, or `less` than it, may hold.
    fn most(limit: Limit, less: u8) -> Self {
        match limit {
            Limit::Bytes(n) => Self { packets: u32::MAX, bytes: n.saturating_sub(less.into()) },
            Limit::Packets(n) => Self { packets: n.saturating_sub(less.into()), bytes: u64::MAX },
            Limit::Unlimited => Self { packets: u32::MAX, bytes: u64::MAX },
        }
    }

    fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
    fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
    /// True if one more packet of `size` bytes stays within `limit`.
    fn admits(self, size: u32, limit: Self) -> bool {
        self.packets < limit.packets && self.bytes + u64::from(size) <= limit.bytes
    }
}

/// Packets that wait for a transmitter.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    held: Load,
    limit: Load,
    /// How much less than the configured limit it holds.
    less: u8,
    count_in_service: bool,
    order: Order<P>,
}

/// The disciplines. Each keeps its packets and says who goes; the load is accounted by the caller's `Load`.
#[derive(Clone, Debug)]
enum Order<P> {
    DropTail(DropTail<P>),
    FifoPushout(FifoPushout<P>),
    StrictPushout(StrictPushout<P>),
    Threshold(Threshold<P>),
}

impl<P: PacketView> Queue<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: &QueueConfig) -> Self {
        let less = u8::from(config.ns2_limit);
        let order = match config.discipline {
            Discipline::DropTail => Order::DropTail(DropTail::new()),
            Discipline::FifoPushout { victim } => Order::FifoPushout(FifoPushout::new(victim)),
            Discipline::StrictPushout { victim } => Order::StrictPushout(StrictPushout::new(victim)),
            Discipline::Threshold { low_below } => Order::Threshold(Threshold::new(low_below)),
        };
        let limit = Load::most(config.limit, less);
        Self { held: Load::EMPTY, limit, less, count_in_service: config.count_in_service, order }
    }

    /// Changes the capacity. What waits beyond a smaller one is kept, and nothing is admitted until there is room.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = Load::most(limit, self.less);
    }

    /// Admits a packet, or refuses it, or admits it in the place of others. `in_service` is the size of the
    /// packet being transmitted, if any. Returns true if `p` was admitted; every packet lost goes to `lost`.
    #[inline]
    pub fn enqueue(&mut self, p: P, in_service: Option<u32>, lost: &mut impl FnMut(P, DropReason)) -> bool {
        let (mut limit, mut busy) = (self.limit, 0);
        if let (true, Some(size)) = (self.count_in_service, in_service) {
            limit.packets = limit.packets.saturating_sub(1);
            limit.bytes = limit.bytes.saturating_sub(size.into());
            busy = 1;
        }
        match &mut self.order {
            Order::DropTail(q) => q.enqueue(p, &mut self.held, limit, lost),
            Order::FifoPushout(q) => q.enqueue(p, &mut self.held, limit, lost),
            Order::StrictPushout(q) => q.enqueue(p, &mut self.held, limit, lost),
            Order::Threshold(q) => q.enqueue(p, &mut self.held, limit, busy, lost),
        }
    }

    /// Takes the packet that is served next.
    #[inline]
    pub fn dequeue(&mut self) -> Option<P> {
        let p = match &mut self.order {
            Order::DropTail(q) => q.dequeue(),
            Order::FifoPushout(q) => q.dequeue(),
            Order::StrictPushout(q) => q.dequeue(),
            Order::Threshold(q) => q.dequeue(),
        }?;
        self.held.remove(p.size());
        Some(p)
    }

    /// True if a packet of `size` bytes may go straight to an idle transmitter past an empty queue: always,
    /// unless the packet in service counts and exceeds the limit all by itself.
    #[inline]
    #[must_use]
    pub fn lets_through(&self, size: u32) -> bool {
        !self.count_in_service || Load::EMPTY.admits(size, self.limit)
    }
}

impl<P> Queue<P> {
    /// How many packets wait.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.held.packets
    }
    /// How many bytes wait.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.bytes
    }
    /// True if no packet waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.packets == 0
    }
}
