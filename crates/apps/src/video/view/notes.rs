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
    /// The first note from `place` on with so many bytes in order, which must be noted: `place` becomes its place.
    #[inline(always)]
    pub(super) fn reach(&self, place: &mut usize, bytes: u64) -> Instant {
        // Usually it is the same or the next one.
        let next = (*place + usize::from(self.bytes[*place % ROOM] < bytes)) % ROOM;
        *place = if self.bytes[next] < bytes { self.beyond(next, bytes) } else { next };
        self.times[*place % ROOM]
    }
    /// The same, further on.
    #[cold]
    #[inline(never)]
    fn beyond(&self, mut place: usize, bytes: u64) -> usize {
        while self.bytes[place % ROOM] < bytes {
            place += 1;
        }
        place % ROOM
    }
    /// Those before `place` have been worked out.
    pub(super) fn remove(&mut self, place: usize) {
        let rest = place.min(ROOM)..self.count.min(ROOM);
        self.count = rest.len();
        self.times.copy_within(rest.clone(), 0);
        self.bytes.copy_within(rest, 0);
    }
}
