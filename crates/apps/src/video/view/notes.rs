//! Arrivals in order of which nothing but their time is known yet. Working out many at once saves most of the work per
//! packet.

use skyhaul_base::{Duration, Instant};

/// How many are noted.
const ROOM: usize = 64;

/// When data arrived, and how many bytes were in order since then.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    times: [Instant; ROOM],
    bytes: [u64; ROOM],
    count: usize,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self { times: [Instant::ZERO; ROOM], bytes: [0; ROOM], count: 0 }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One more. False, and nothing has changed, if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Instant, bytes: u64) -> bool {
        let at = self.count;
        let there = at < ROOM;
        if there {
            (self.times[at], self.bytes[at]) = (now, bytes);
            self.count = at + 1;
        }
        there
    }
    /// The note at `place`, if there are so many.
    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> Option<(Instant, u64)> {
        (place < self.count.min(ROOM)).then(|| (self.times[place], self.bytes[place]))
    }
    /// When the note at `place` was made, and the bytes in order since then.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> (Instant, u64) {
        (self.times[place % ROOM], self.bytes[place % ROOM])
    }
    /// Packets of `payload` bytes that follow each other from byte `from` on and end at `to`, which must be noted: writes
    /// how long after `begin` each of them was there to `delays`, from `first` on. `note` is a note that does not reach
    /// beyond the first packet; returns the first one that reaches `to`.
    #[inline(always)]
    pub(super) fn delays<const N: usize>(
        &self,
        note: usize,
        (from, to): (u64, u64),
        payload: u64,
        begin: Instant,
        (delays, first): (&mut [Duration; N], usize),
    ) -> usize {
        let (mut note, mut packet, mut end) = (note % ROOM, first, from);
        loop {
            end = (end + payload).min(to);
            while self.bytes[note] < end {
                note = (note + 1) % ROOM;
            }
            delays[packet % N] = self.times[note] - begin;
            if end >= to {
                return note;
            }
            packet += 1;
        }
    }
    /// The first note from `place` on with so many bytes in order, which must be noted: `place` becomes its place.
    #[inline(always)]
    pub(super) fn reach(&self, place: &mut usize, bytes: u64) -> Instant {
        while self.bytes[*place % ROOM] < bytes {
            *place += 1;
        }
        self.times[*place % ROOM]
    }
    /// Those before `place` have been worked out.
    pub(super) fn remove(&mut self, place: usize) {
        let rest = place.min(ROOM)..self.count.min(ROOM);
        self.count = rest.len();
        self.times.copy_within(rest.clone(), 0);
        self.bytes.copy_within(rest, 0);
    }
}
