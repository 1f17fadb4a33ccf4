//! The order of packets at the receiver.

use alloc::collections::VecDeque;

/// The receiver's knowledge of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The packet may still arrive.
    Open,
    /// The packet has arrived, with this key.
    Arrived(u32),
    /// The packet will not arrive.
    Skipped,
}

/// Packets in the order of first transmissions, from the first one that may still arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Position of the first.
    first: u64,
    slots: VecDeque<Slot>,
}

impl Order {
    /// Adds a packet; returns its position.
    pub(super) fn enter(&mut self) -> u64 {
        self.slots.push_back(Slot::Open);
        self.first + self.slots.len() as u64 - 1
    }
    /// The fate of the packet at `position` is known.
    pub(super) fn resolve(&mut self, position: u64, slot: Slot) {
        if let Some(s) = position.checked_sub(self.first).and_then(|i| self.slots.get_mut(i as usize)) {
            *s = slot;
        }
    }
    /// The next packet that need not wait.
    pub(super) fn next(&mut self) -> Option<u32> {
        loop {
            match self.slots.front()? {
                Slot::Open => return None,
                Slot::Arrived(key) => {
                    let key = *key;
                    self.advance();
                    return Some(key);
                }
                Slot::Skipped => self.advance(),
            }
        }
    }
    fn advance(&mut self) {
        self.slots.pop_front();
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrived_packets_wait_for_those_that_may_still_arrive() {
        let mut order = Order::default();
        let positions = [0; 4].map(|_| order.enter());
        assert_eq!(positions, [0, 1, 2, 3]);
        order.resolve(1, Slot::Arrived(11));
        order.resolve(3, Slot::Arrived(13));
        assert_eq!(order.next(), None);
        order.resolve(0, Slot::Arrived(10));
        assert_eq!([order.next(), order.next(), order.next()], [Some(10), Some(11), None]);
        order.resolve(2, Slot::Skipped);
        assert_eq!([order.next(), order.next()], [Some(13), None]);
        assert_eq!(order.enter(), 4);
    }
}
