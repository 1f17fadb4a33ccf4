//! Counters of a link.

use crate::packet::{DropReason, KINDS, PacketView};
use crate::queue::Queue;

/// Counters of one kind of packets, or sums over several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounters {
    /// Packets offered to the link.
    pub offered: u64,
    /// Bytes offered to the link.
    pub offered_bytes: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Packets lost, indexed by `DropReason as usize`.
    pub drops: [u64; DropReason::COUNT],
    /// Packets that the queue ECN-marked instead of dropping them.
    pub marked: u64,
    /// Copies delivered in addition: see [`Hop::duplicating`](crate::Hop::duplicating).
    pub duplicated: u64,
}

impl KindCounters {
    /// Packets lost for one reason.
    #[must_use]
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.drops[why as usize]
    }
    /// Packets lost for any reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.drops.iter().sum()
    }

    fn plus(self, more: &Self) -> Self {
        Self {
            offered: self.offered + more.offered,
            offered_bytes: self.offered_bytes + more.offered_bytes,
            delivered: self.delivered + more.delivered,
            delivered_bytes: self.delivered_bytes + more.delivered_bytes,
            drops: core::array::from_fn(|i| self.drops[i] + more.drops[i]),
            marked: self.marked + more.marked,
            duplicated: self.duplicated + more.duplicated,
        }
    }
}

/// Counters of a link since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By [`PacketView::kind`].
    pub kinds: [KindCounters; KINDS],
    /// Maximum number of packets in the queue, without the one in transmission.
    pub max_queue: u32,
    /// Maximum number of bytes in the queue.
    pub max_queue_bytes: u64,
    /// Counters of the link's code and ARQ; all 0 on a link without them.
    pub repair: RepairCounters,
}

/// Counters of a link's code and ARQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairCounters {
    /// All transmissions: packets, retransmissions and parity.
    pub transmissions: u64,
    /// Parity and copies.
    pub parity: u64,
    /// Packets retransmitted by ARQ.
    pub retransmissions: u64,
    /// Packets lost by the channel and repaired by the code.
    pub repairs: u64,
    /// Copies over the second path that arrived after the packet and were dropped.
    pub duplicates: u64,
    /// Packets given up after the last retransmission.
    pub give_ups: u64,
}

impl Counters {
    /// All packets.
    #[must_use]
    pub fn total(&self) -> KindCounters {
        self.kinds.iter().fold(KindCounters::default(), KindCounters::plus)
    }
    /// Packets without low priority.
    #[must_use]
    pub fn high(&self) -> KindCounters {
        self.kinds.iter().step_by(2).fold(KindCounters::default(), KindCounters::plus)
    }
    /// Packets of low priority.
    #[must_use]
    pub fn low(&self) -> KindCounters {
        self.kinds.iter().skip(1).step_by(2).fold(KindCounters::default(), KindCounters::plus)
    }

    #[inline]
    fn of(&mut self, p: &impl PacketView) -> &mut KindCounters {
        debug_assert_eq!(p.kind() & 1 == 1, p.low_priority(), "odd kinds are of low priority");
        &mut self.kinds[usize::from(p.kind()) % KINDS]
    }
    #[inline]
    pub(crate) fn offer(&mut self, p: &impl PacketView) {
        let c = self.of(p);
        c.offered += 1;
        c.offered_bytes += u64::from(p.size());
    }
    /// Takes back the count of a packet that was counted as delivered when it departed and is still in flight.
    pub(crate) fn undeliver(&mut self, p: &impl PacketView) {
        let c = self.of(p);
        c.delivered -= 1;
        c.delivered_bytes -= u64::from(p.size());
    }
    #[inline]
    pub(crate) fn deliver(&mut self, p: &impl PacketView) {
        let c = self.of(p);
        c.delivered += 1;
        c.delivered_bytes += u64::from(p.size());
    }
    /// A packet has joined the queue.
    #[inline]
    pub(crate) fn queued<P>(&mut self, queue: &Queue<P>) {
        self.max_queue = self.max_queue.max(queue.len());
        self.max_queue_bytes = self.max_queue_bytes.max(queue.bytes());
    }
    /// Counts a marked packet of this [`PacketView::kind`], if there is one.
    #[inline]
    pub(crate) fn mark(&mut self, kind: Option<u8>) {
        if let Some(kind) = kind {
            self.kinds[usize::from(kind) % KINDS].marked += 1;
        }
    }
    #[inline]
    pub(crate) fn drop(&mut self, p: &impl PacketView, why: DropReason) {
        self.of(p).drops[why as usize] += 1;
    }
}
