//! Load and capacity of a queue.

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// At most this many bytes: an arrival is refused only if it does not fit, so a later smaller one may still be
    /// accepted.
    Bytes(u64),
    /// At most this many packets. [Peach §V-A] uses 50.
    Packets(u32),
    /// No limit.
    #[default]
    Unlimited,
}

/// Packets and bytes: the load or the capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

impl Load {
    pub(super) const EMPTY: Self = Self { packets: 0, bytes: 0 };

    /// The capacity of a queue with this limit, reduced by `less` packets or bytes, whichever the limit counts.
    pub(super) fn most(limit: Limit, less: u8) -> Self {
        match limit {
            Limit::Bytes(n) => Self { packets: u32::MAX, bytes: n.saturating_sub(less.into()) },
            Limit::Packets(n) => Self { packets: n.saturating_sub(less.into()), bytes: u64::MAX },
            Limit::Unlimited => Self { packets: u32::MAX, bytes: u64::MAX },
        }
    }

    /// The limit that this capacity expresses. A number a little below the maximum means no limit, too: the packet in
    /// service may have been subtracted from it.
    pub(super) fn as_limit(self) -> Limit {
        if self.packets < u32::MAX - 1 {
            Limit::Packets(self.packets)
        } else if self.bytes < u64::MAX / 2 {
            Limit::Bytes(self.bytes)
        } else {
            Limit::Unlimited
        }
    }

    pub(super) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
    pub(super) fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
    /// Whether one more packet of `size` bytes stays within `limit`.
    pub(super) fn admits(self, size: u32, limit: Self) -> bool {
        self.packets < limit.packets && self.bytes + u64::from(size) <= limit.bytes
    }
}
