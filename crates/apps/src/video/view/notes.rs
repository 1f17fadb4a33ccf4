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
    /// The delays since `begin` of as many packets as there is room for, which follow each other from byte `from` on, are
    /// of `payload` bytes and end at `to`, which must be noted. `place` is the first note beyond `from`; returns the place
    /// of the first one that reaches `to`. None of them was made before `begin`.
    #[inline(always)]
    pub(super) fn delays(
        &self,
        mut place: usize,
        (from, to): (u64, u64),
        payload: u64,
        begin: Instant,
        delays: &mut [Duration],
    ) -> usize {
        let since = |now: Instant| Duration::from_nanos(now.as_nanos().wrapping_sub(begin.as_nanos()));
        // Usually each packet is a segment, and has a note of its own.
        let own = place..place + delays.len();
        if let (Some(times), Some(ends)) = (self.times.get(own.clone()), self.bytes.get(own.clone())) {
            let (mut end, mut others) = (from, 0);
            for ((delay, time), noted) in delays.iter_mut().zip(times).zip(ends) {
                end = (end + payload).min(to);
                others |= noted ^ end;
                *delay = since(*time);
            }
            if others == 0 {
                return own.end - 1;
            }
        }
        let mut end = from;
        for delay in delays {
            end = (end + payload).min(to);
            *delay = since(self.reach(&mut place, end));
        }
        place
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
