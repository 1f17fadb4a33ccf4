//! Blocks at both ends: those being filled, parity due, and what the receiver has of each.

use crate::fec::Shape;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use skyhaul_base::slab::Slab;

/// The fate of a packet, as known by the receiver after an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The packet has arrived itself.
    Arrived(u32),
    /// Enough of its block has arrived.
    Repaired(u32),
    /// Its block is complete, and not enough of it has arrived.
    Lost(u32),
}

/// A block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Packets in it.
    k: u32,
    /// Size of the largest.
    largest: u32,
    /// No more packets are added.
    closed: bool,
    /// Transmissions that have not arrived, including parity that is yet to be sent.
    pending: u32,
    /// Transmissions that have arrived.
    arrived: u32,
    /// Lost packets, in the order of transmission.
    missing: Vec<u32>,
}

/// All blocks of a link.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    shape: Shape,
    /// Blocks of which something may still arrive.
    all: Slab<Block>,
    /// Blocks being filled in turn.
    open: Vec<u32>,
    /// Number of packets in the open blocks.
    filled: u32,
    /// Number of the group of open blocks: how many groups were closed before.
    group: u64,
    /// Parity that is yet to be sent: block and size.
    parity_due: VecDeque<(u32, u32)>,
}

impl Blocks {
    pub(super) fn new(shape: &Shape) -> Self {
        let (all, open, parity_due) = (Slab::default(), Vec::new(), VecDeque::new());
        Self { shape: *shape, all, open, filled: 0, group: 0, parity_due }
    }

    /// A packet is sent; returns its block, and, if it is the first of a group of blocks, the number of the group.
    pub(super) fn add(&mut self, size: u32) -> (u32, Option<u64>) {
        let Shape { k, depth, .. } = self.shape;
        let turn = (self.filled % depth) as usize;
        if turn == self.open.len() {
            self.open.push(self.all.insert(Block::default()));
        }
        let key = self.open[turn];
        let block = self.all.get_mut(key);
        block.k += 1;
        block.pending += 1;
        block.largest = block.largest.max(size);
        self.filled += 1;
        let group = self.group;
        if u64::from(self.filled) == u64::from(k) * u64::from(depth) {
            self.close(group);
        }
        (key, (self.filled == 1).then_some(group))
    }

    /// Closes the group of blocks `group`, unless it is closed already, and queues its parity.
    pub(super) fn close(&mut self, group: u64) {
        if group != self.group {
            return;
        }
        self.group += 1;
        self.filled = 0;
        for &key in &self.open {
            let block = self.all.get_mut(key);
            block.closed = true;
            block.pending += self.shape.parity;
        }
        for _ in 0..self.shape.parity {
            self.parity_due.extend(self.open.iter().map(|&key| (key, self.all.get(key).largest)));
        }
        self.open.clear();
    }

    /// Whether parity is yet to be sent.
    pub(super) fn has_parity(&self) -> bool {
        !self.parity_due.is_empty()
    }

    /// Removes the next parity to be sent: its block and its size.
    pub(super) fn next_parity(&mut self) -> Option<(u32, u32)> {
        self.parity_due.pop_front()
    }

    /// A transmission of a block was due at the receiver, and `survived` or was lost: a packet, or parity (`None`).
    pub(super) fn arrive(
        &mut self,
        key: u32,
        packet: Option<u32>,
        survived: bool,
        settled: &mut Vec<Settled>,
    ) {
        let block = self.all.get_mut(key);
        block.pending -= 1;
        block.arrived += u32::from(survived);
        match packet {
            Some(p) if survived => settled.push(Settled::Arrived(p)),
            Some(p) => block.missing.push(p),
            None => {}
        }
        if block.closed && block.arrived >= block.k {
            settled.extend(block.missing.drain(..).map(Settled::Repaired));
        }
        if block.closed && block.pending == 0 {
            settled.extend(block.missing.drain(..).map(Settled::Lost));
            self.all.free(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use skyhaul_base::Duration;

    fn blocks(k: u32, parity: u32, depth: u32) -> Blocks {
        Blocks::new(&Shape { k, parity, depth, fill_time: Duration::from_millis(50), in_order: true })
    }
    fn arrive(b: &mut Blocks, key: u32, packet: Option<u32>, survived: bool) -> Vec<Settled> {
        let mut settled = Vec::new();
        b.arrive(key, packet, survived, &mut settled);
        settled
    }

    #[test]
    fn a_lost_packet_is_repaired_by_the_k_th_transmission_of_its_block() {
        let mut b = blocks(3, 2, 1);
        let keys: Vec<_> = [100, 300, 200].into_iter().map(|size| b.add(size)).collect();
        assert_eq!(keys.iter().map(|k| k.1).collect::<Vec<_>>(), [Some(0), None, None]);
        let key = keys[0].0;
        assert_eq!(
            [b.next_parity(), b.next_parity(), b.next_parity()],
            [Some((key, 300)), Some((key, 300)), None]
        );
        assert_eq!(arrive(&mut b, key, Some(7), true), [Settled::Arrived(7)]);
        assert_eq!(arrive(&mut b, key, Some(8), false), []);
        assert_eq!(arrive(&mut b, key, Some(9), true), [Settled::Arrived(9)]);
        assert_eq!(arrive(&mut b, key, None, true), [Settled::Repaired(8)]);
        assert_eq!(arrive(&mut b, key, None, false), []);
        assert!(b.all.is_empty());
    }

    #[test]
    fn packets_that_cannot_be_repaired_are_lost_at_the_end_of_the_block() {
        let mut b = blocks(2, 1, 1);
        let (key, _) = b.add(1);
        b.add(1);
        assert_eq!(arrive(&mut b, key, Some(1), false), []);
        assert_eq!(arrive(&mut b, key, Some(2), false), []);
        assert_eq!(arrive(&mut b, key, None, true), vec![Settled::Lost(1), Settled::Lost(2)]);
        assert!(b.all.is_empty());
    }

    #[test]
    fn a_block_that_is_closed_early_needs_as_many_as_it_has() {
        let mut b = blocks(10, 2, 1);
        let (key, _) = b.add(1);
        assert_eq!(arrive(&mut b, key, Some(1), false), []);
        assert!(!b.has_parity());
        b.close(0);
        assert_eq!(
            [b.next_parity(), b.next_parity(), b.next_parity()],
            [Some((key, 1)), Some((key, 1)), None]
        );
        // A late closing of blocks that are closed changes nothing.
        b.close(0);
        assert_eq!(b.add(1).1, Some(1));
        assert_eq!(arrive(&mut b, key, None, true), [Settled::Repaired(1)]);
    }

    #[test]
    fn blocks_are_filled_in_turn_and_their_parity_follows_in_turn() {
        let mut b = blocks(2, 2, 3);
        let keys: Vec<_> = (1..=6).map(|size| b.add(size).0).collect();
        assert_eq!(keys[..3], keys[3..]);
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
        let parity_due: Vec<_> = core::iter::from_fn(|| b.next_parity()).collect();
        let turn = [(keys[0], 4), (keys[1], 5), (keys[2], 6)];
        assert_eq!(parity_due, [turn, turn].concat());
    }
}
