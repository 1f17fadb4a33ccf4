//! Arrivals in order of which nothing but their time is known yet. Working out many at once saves most of the work per
//! packet.

use skyhaul_base::Instant;

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
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }
    /// Each with its time and the bytes in order since then.
    #[inline(always)]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Instant, u64)> {
        let (times, bytes) = self.before(self.count);
        times.iter().copied().zip(bytes.iter().copied())
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
    /// When the notes before `place` were made, and the bytes in order since each.
    pub(super) fn before(&self, place: usize) -> (&[Instant], &[u64]) {
        let place = place.min(ROOM);
        (&self.times[..place], &self.bytes[..place])
    }
    /// When the note at `place` was made, and the bytes in order since then.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> (Instant, u64) {
        (self.times[place % ROOM], self.bytes[place % ROOM])
    }
    /// Those before `place` have been worked out.
    pub(super) fn remove(&mut self, place: usize) {
        let rest = place.min(ROOM)..self.count.min(ROOM);
        self.count = rest.len();
        self.times.copy_within(rest.clone(), 0);
        self.bytes.copy_within(rest, 0);
    }
}

/// The first of the notes with so many bytes in order, which must be noted.
#[inline(always)]
pub(super) fn beyond(notes: &mut impl Iterator<Item = (Instant, u64)>, bytes: u64) -> (Instant, u64) {
    let mut note = (Instant::ZERO, 0);
    // Usually it is the next one.
    while note.1 < bytes {
        let Some(next) = notes.next() else { break };
        note = next;
    }
    note
}
