//! What a link counts.

use crate::packet::{DropReason, PacketView};

/// Counts of one priority class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
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
}

impl ClassCounters {
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
}

/// Counts of a link since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that are not of low priority.
    pub high: ClassCounters,
    /// Packets of low priority.
    pub low: ClassCounters,
    /// Most packets that ever waited at the same time; the one being transmitted does not wait.
    pub max_queue: u32,
    /// Most bytes that ever waited at the same time.
    pub max_queue_bytes: u64,
}

impl Counters {
    /// Both classes together.
    #[must_use]
    pub fn total(&self) -> ClassCounters {
        let (a, b) = (&self.high, &self.low);
        ClassCounters {
            offered: a.offered + b.offered,
            offered_bytes: a.offered_bytes + b.offered_bytes,
            delivered: a.delivered + b.delivered,
            delivered_bytes: a.delivered_bytes + b.delivered_bytes,
            drops: core::array::from_fn(|i| a.drops[i] + b.drops[i]),
        }
    }
    /// The counts of one class.
    #[must_use]
    pub fn class(&self, low_priority: bool) -> &ClassCounters {
        if low_priority { &self.low } else { &self.high }
    }

    fn class_mut(&mut self, low_priority: bool) -> &mut ClassCounters {
        if low_priority { &mut self.low } else { &mut self.high }
    }
    pub(crate) fn offer(&mut self, p: &impl PacketView) {
        let c = self.class_mut(p.low_priority());
        c.offered += 1;
        c.offered_bytes += u64::from(p.size());
    }
    pub(crate) fn deliver(&mut self, p: &impl PacketView) {
        let c = self.class_mut(p.low_priority());
        c.delivered += 1;
        c.delivered_bytes += u64::from(p.size());
    }
    pub(crate) fn drop(&mut self, p: &impl PacketView, why: DropReason) {
        self.class_mut(p.low_priority()).drops[why as usize] += 1;
    }
}
