//! Where payload lives: nowhere (simulation) or in memory (wire).

use alloc::collections::VecDeque;
use core::fmt::Debug;

/// Payload of one direction of a stream, addressed relative to its first retained byte.
pub trait Store: Default + Debug {
    /// True if there are bytes to be kept.
    const KEEPS: bool;

    /// Appends `n` bytes; `data` holds them, or is empty where only lengths are kept.
    fn append(&mut self, data: &[u8], n: u64);
    /// Writes `data` at `at`, growing the store as needed (reassembly).
    fn write_at(&mut self, at: u64, data: &[u8]);
    /// Copies the bytes from `at` into `out`.
    fn read_at(&self, at: u64, out: &mut [u8]);
    /// Forgets the first `n` bytes.
    fn release(&mut self, n: u64);
    /// Keeps only the first `n` bytes.
    fn truncate(&mut self, n: u64);
}

/// Lengths only: nothing is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

impl Store for Counted {
    const KEEPS: bool = false;

    fn append(&mut self, _data: &[u8], _n: u64) {}
    fn write_at(&mut self, _at: u64, _data: &[u8]) {}
    fn read_at(&self, _at: u64, _out: &mut [u8]) {}
    fn release(&mut self, _n: u64) {}
    fn truncate(&mut self, _n: u64) {}
}

/// What stands for bytes that have not come.
static GAP: [u8; 1 << 12] = [0; 1 << 12];

/// The bytes themselves.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    ring: VecDeque<u8>,
}

impl Store for Bytes {
    const KEEPS: bool = true;

    fn append(&mut self, data: &[u8], n: u64) {
        debug_assert_eq!(data.len() as u64, n);
        self.ring.extend(data);
    }
    fn write_at(&mut self, at: u64, data: &[u8]) {
        let at = at as usize;
        // Most data arrives in order: it goes behind what is there, written once.
        if at == self.ring.len() {
            self.ring.extend(data);
            return;
        }
        while self.ring.len() < at {
            let gap = &GAP[..GAP.len().min(at - self.ring.len())];
            self.ring.extend(gap);
        }
        let (over, beyond) = data.split_at(data.len().min(self.ring.len() - at));
        let (head, tail) = self.ring.as_mut_slices();
        let in_head = over.len().min(head.len().saturating_sub(at));
        head.get_mut(at..at + in_head).unwrap_or_default().copy_from_slice(&over[..in_head]);
        let at = (at + in_head).saturating_sub(head.len());
        let rest = &over[in_head..];
        tail.get_mut(at..at + rest.len()).unwrap_or_default().copy_from_slice(rest);
        self.ring.extend(beyond);
    }
    fn read_at(&self, at: u64, out: &mut [u8]) {
        let at = at as usize;
        let (head, tail) = self.ring.as_slices();
        let in_head = out.len().min(head.len().saturating_sub(at));
        if in_head > 0 {
            out[..in_head].copy_from_slice(&head[at..at + in_head]);
        }
        let at = (at + in_head).saturating_sub(head.len());
        let rest = &mut out[in_head..];
        let have = rest.len().min(tail.len().saturating_sub(at));
        if have > 0 {
            rest[..have].copy_from_slice(&tail[at..at + have]);
        }
    }
    fn release(&mut self, n: u64) {
        self.ring.drain(..(n as usize).min(self.ring.len()));
    }
    fn truncate(&mut self, n: u64) {
        self.ring.truncate(usize::try_from(n).unwrap_or(usize::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn out_of_order_writes_read_back_across_the_wrap_of_the_ring() {
        let mut s = Bytes::default();
        s.append(&[0; 100], 100);
        s.release(90);
        s.write_at(14, &[5, 6, 7]);
        s.write_at(10, &[1, 2, 3, 4]);
        let mut out = [9; 7];
        s.read_at(10, &mut out);
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7]);
        s.release(12);
        let mut out = [9; 2];
        s.read_at(0, &mut out);
        assert_eq!(out, [3, 4]);
    }

    #[test]
    fn writes_in_any_order_are_those_to_plain_memory() {
        let (mut ring, mut plain, mut state) = (Bytes::default(), Vec::new(), 1u64);
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for round in 0..3000u32 {
            let at = draw(9000) as usize;
            let data: Vec<u8> = (0..draw(1500) as u32).map(|i| (i ^ round) as u8).collect();
            ring.write_at(at as u64, &data);
            if plain.len() < at + data.len() {
                plain.resize(at + data.len(), 0);
            }
            plain[at..at + data.len()].copy_from_slice(&data);
            let gone = (draw(2000) as usize).min(plain.len());
            ring.release(gone as u64);
            plain.drain(..gone);
            let mut out = alloc::vec![0; plain.len()];
            ring.read_at(0, &mut out);
            assert_eq!(out, plain);
        }
    }

    #[test]
    fn reading_beyond_the_end_leaves_the_rest_untouched() {
        let mut s = Bytes::default();
        s.append(&[1, 2], 2);
        let mut out = [9; 4];
        s.read_at(0, &mut out);
        assert_eq!(out, [1, 2, 9, 9]);
    }
}
