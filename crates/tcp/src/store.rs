//! Payload storage: none (simulation) or in memory (real network).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt::Debug;

/// Payload of one direction of a stream, addressed relative to its first retained byte.
pub trait Store: Default + Debug {
    /// Whether bytes are stored.
    const KEEPS: bool;

    /// Appends `n` bytes; `data` contains them, or is empty if only lengths are kept.
    fn append(&mut self, data: &[u8], n: u64);
    /// Writes `data` at `at`, possibly beyond a gap (reassembly). Stored bytes stay, with one exception: `data` that continues
    /// the bytes in order replaces the bytes beyond the gap that it covers.
    fn write_at(&mut self, at: u64, data: &[u8]);
    /// Copies the bytes in order from `at` into `out`; what `out` has beyond their end stays untouched.
    fn read_at(&self, at: u64, out: &mut [u8]);
    /// Releases the first `n` bytes.
    fn release(&mut self, n: u64);
    /// Keeps only the first `n` bytes, and nothing beyond a gap.
    fn truncate(&mut self, n: u64);
    /// Memory use, bytes, including reserved space.
    fn held(&self) -> usize {
        0
    }
    /// The part of [`Self::held`] that lies beyond a gap, bytes.
    fn beyond(&self) -> usize {
        0
    }
    /// Releases unused memory.
    fn trim(&mut self) {}
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

/// The bytes themselves: a ring of data in order, and separate pieces of data beyond a gap, so that a byte at the
/// far edge of a window uses a few bytes and not the whole window.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    ring: VecDeque<u8>,
    /// Bytes released so far. Positions in `out_of_order` count from the first byte of the stream.
    released: u64,
    out_of_order: Option<Box<OutOfOrderData>>,
}

/// Data beyond a gap, by the position of its first byte; pieces do not overlap.
#[derive(Clone, Debug, Default)]
struct OutOfOrderData {
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Memory use of the pieces, bytes.
    held: usize,
}

/// Maximum size of a piece that grows: a longer one would be copied too often.
const LONGEST_PIECE: usize = 1 << 16;
/// Approximate overhead of a piece: its tree entry and the allocator.
const PIECE: usize = 64;

impl OutOfOrderData {
    /// Adds the new parts of `data` at `from`. Existing bytes stay.
    fn add(&mut self, from: u64, data: &[u8]) {
        let end = from + data.len() as u64;
        let mut at = from;
        while at < end {
            // Up to the start of the next piece.
            let free = self.pieces.range(at + 1..).next().map_or(end, |(start, _)| (*start).min(end));
            let before = self.pieces.range_mut(..=at).next_back();
            match before.map(|(start, piece)| (*start + piece.len() as u64, piece)) {
                Some((reaches, _)) if reaches > at => at = reaches,
                Some((reaches, piece)) if reaches == at && piece.len() < LONGEST_PIECE => {
                    let n = ((free - at) as usize).min(LONGEST_PIECE - piece.len());
                    let old = piece.capacity();
                    piece.extend_from_slice(&data[(at - from) as usize..][..n]);
                    self.held += piece.capacity() - old;
                    at += n as u64;
                }
                _ => {
                    let piece = data[(at - from) as usize..(free - from) as usize].to_vec();
                    self.held += piece.capacity() + PIECE;
                    self.pieces.insert(at, piece);
                    at = free;
                }
            }
        }
    }
    /// Takes the first piece, if it begins at or before `at`.
    fn take_first(&mut self, at: u64) -> Option<(u64, Vec<u8>)> {
        let first = self.pieces.first_entry().filter(|p| *p.key() <= at)?;
        let (start, piece) = first.remove_entry();
        self.held -= piece.capacity() + PIECE;
        Some((start, piece))
    }
}

impl Bytes {
    /// Moves data that follows the ring without a gap into the ring.
    #[cold]
    fn join(&mut self) {
        while let Some(out_of_order) = &mut self.out_of_order {
            let end = self.released + self.ring.len() as u64;
            match out_of_order.take_first(end) {
                Some((start, piece)) => {
                    self.ring.extend(piece.get((end - start) as usize..).unwrap_or_default());
                }
                None => {
                    if out_of_order.pieces.is_empty() {
                        self.out_of_order = None;
                    }
                    return;
                }
            }
        }
    }
}

impl Store for Bytes {
    const KEEPS: bool = true;

    fn append(&mut self, data: &[u8], n: u64) {
        debug_assert_eq!(data.len() as u64, n);
        self.ring.extend(data);
    }
    fn write_at(&mut self, at: u64, data: &[u8]) {
        let len = self.ring.len() as u64;
        if at > len {
            self.out_of_order.get_or_insert_default().add(self.released + at, data);
            return;
        }
        // Most data arrives in order and is appended.
        self.ring.extend(data.get((len - at) as usize..).unwrap_or_default());
        if self.out_of_order.is_some() {
            self.join();
        }
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
        let n = n.min(self.ring.len() as u64);
        self.ring.drain(..n as usize);
        self.released += n;
    }
    fn truncate(&mut self, n: u64) {
        self.ring.truncate(usize::try_from(n).unwrap_or(usize::MAX));
        self.out_of_order = None;
    }
    fn held(&self) -> usize {
        self.ring.capacity() + self.beyond()
    }
    fn beyond(&self) -> usize {
        self.out_of_order.as_ref().map_or(0, |o| o.held)
    }
    fn trim(&mut self) {
        self.ring.shrink_to_fit();
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

    /// Random pieces in any order, with releases and truncations, against a stream that is known.
    #[test]
    fn pieces_in_any_order_make_the_stream() {
        let byte = |at: u64| (at ^ (at >> 8)) as u8;
        let (mut store, mut state) = (Bytes::default(), 1u64);
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        // Which bytes of the stream have arrived, from the first that was not released.
        let (mut base, mut come) = (0u64, VecDeque::new());
        for round in 0..6000 {
            // Now and then the first gap is filled.
            let first = come.iter().take_while(|c| **c).count() as u64;
            let at = if round % 3 == 0 { first.saturating_sub(draw(50)) } else { draw(9000) };
            let n = draw(1500);
            let data: Vec<u8> = (0..n).map(|i| byte(base + at + i)).collect();
            store.write_at(at, &data);
            while come.len() < (at + n) as usize {
                come.push_back(false);
            }
            (at..at + n).for_each(|i| come[i as usize] = true);
            let in_order = come.iter().take_while(|c| **c).count() as u64;
            let mut out = alloc::vec![0; in_order as usize];
            store.read_at(0, &mut out);
            assert!(out.iter().zip(base..).all(|(b, at)| *b == byte(at)), "round {round}");
            assert_eq!(store.ring.len() as u64, in_order);
            if round % 500 == 499 {
                store.truncate(in_order);
                come.truncate(in_order as usize);
                assert_eq!((store.beyond(), store.held()), (0, store.ring.capacity()));
            }
            let gone = draw(3000).min(in_order);
            store.release(gone);
            come.drain(..gone as usize);
            base += gone;
        }
        assert!(base > 1_000_000, "{base} bytes went through");
    }

    #[test]
    fn a_byte_at_the_far_edge_costs_bytes() {
        let mut s = Bytes::default();
        s.write_at(6 << 20, &[1]);
        assert!(s.held() < 100, "{} bytes", s.held());
        // Neighbours become one piece: about twice what they hold, at most.
        (0..10_000).for_each(|i| s.write_at(1000 + i, &[2]));
        assert!(s.held() < 25_000, "{} bytes", s.held());
        let (whole, kept) = (alloc::vec![3; 1000], alloc::vec![2; 10_000]);
        s.write_at(0, &whole);
        let mut out = alloc::vec![0; 11_000];
        s.read_at(0, &mut out);
        assert_eq!((&out[..1000], &out[1000..]), (&whole[..], &kept[..]));
        s.release(11_000);
        s.trim();
        assert!(s.held() < 100, "{} bytes", s.held());
    }

    #[test]
    fn what_arrives_twice_stays_unless_data_in_order_covers_it() {
        let mut s = Bytes::default();
        s.write_at(0, &[1; 4]);
        s.write_at(6, &[2; 4]);
        // In order, beyond the gap, and across the gap.
        s.write_at(0, &[3; 4]);
        s.write_at(5, &[4; 3]);
        s.write_at(2, &[5; 5]);
        let mut out = [9; 10];
        s.read_at(0, &mut out);
        assert_eq!(out, [1, 1, 1, 1, 5, 5, 5, 2, 2, 2]);
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
