//! Frames of a film that are known in advance. They are divided into packets when that matters.

use super::waiting::Waiting;
use crate::frame::FrameType as Type;
use crate::video::clock::Clock;
use crate::video::coded::Coded;
use crate::video::packet::{Cut, Cutter};
use skyhaul_base::Instant;
use std::collections::{VecDeque, vec_deque};

/// These frames.
#[derive(Clone, Debug)]
pub(super) struct Upcoming {
    /// Those that were told at once, and their number.
    frames: VecDeque<Coded>,
    count: usize,
    /// When frames are produced, and the number of the first of these. `None` if none is known in advance.
    clock: Option<Clock>,
    first: u64,
    /// Those produced before this time do not count.
    warm: Instant,
    /// After the frames before them.
    cutter: Cutter,
}

/// Frames that count, by type, and the packets of the film up to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    pub(super) frames: [u64; Type::COUNT],
    pub(super) packets: u64,
}

impl Upcoming {
    /// There are none.
    pub(super) fn new(cut: Cut, warm: Instant) -> Self {
        Self { frames: VecDeque::new(), count: 0, clock: None, first: 0, warm, cutter: Cutter::new(cut) }
    }
    /// All frames of the film will be among them, and are produced at these times.
    pub(super) fn all(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }
    /// The next ones.
    pub(super) fn add(&mut self, frames: &Coded) {
        self.frames.push_back(*frames);
        self.count += frames.count;
    }
    /// Frames produced before this time do not count.
    pub(super) fn warm(&self) -> Instant {
        self.warm
    }

    /// Divides the next ones, and moves them to the end of `list`. False if there are none.
    #[inline(never)]
    pub(super) fn divide(&mut self, list: &mut Vec<Waiting>) -> bool {
        let Self { frames, count, clock, first, warm, cutter } = self;
        let (Some(next), Some(clock)) = (frames.pop_front(), clock) else { return false };
        let end = *first + next.count as u64;
        let mut at = clock.at(*first);
        match clock.regular(end) {
            Some(interval) if at >= *warm => {
                let put = |kind, reach| {
                    let now = at;
                    at = Instant::from_nanos(now.as_nanos().wrapping_add(interval.as_nanos()));
                    Waiting::new(now, reach, kind, true, true)
                };
                cutter.frames(next.frames(), put, list);
            }
            _ => {
                let mut ticks = *first..end;
                let put = |kind, reach| {
                    let at = ticks.next().map_or(at, |tick| clock.at(tick));
                    Waiting::new(at, reach, kind, true, at >= *warm)
                };
                cutter.frames(next.frames(), put, list);
            }
        }
        *count -= next.count;
        *first = end;
        true
    }

    /// How many of the first ones are produced at times for which `is_old` is true: the first ones.
    pub(super) fn old(&self, is_old: impl Fn(Instant) -> bool) -> usize {
        let Some(clock) = &self.clock else { return 0 };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if is_old(clock.at(self.first + middle as u64)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    /// Counts them, from the first one on.
    pub(super) fn counting(&self) -> Counting<'_> {
        let uncounted = self.old(|at| at < self.warm);
        Counting {
            next: &Coded::NONE,
            done: 0,
            later: self.frames.iter(),
            cutter: self.cutter,
            place: 0,
            uncounted,
        }
    }
}

/// Counts frames that are known in advance.
pub(super) struct Counting<'a> {
    /// The next ones: some that were told at once, of which so many are counted, and those after them.
    next: &'a Coded,
    done: usize,
    later: vec_deque::Iter<'a, Coded>,
    /// After the frames before them.
    cutter: Cutter,
    /// How many are before them, and how many of all do not count.
    place: usize,
    uncounted: usize,
}

impl Counting<'_> {
    /// Adds those before this place to what is made without them.
    pub(super) fn upto(&mut self, place: usize, made: &mut Made) {
        while self.place < place {
            if self.done >= self.next.count {
                let Some(next) = self.later.next() else { break };
                (self.next, self.done) = (next, 0);
            }
            // Usually all count.
            let counts = self.place >= self.uncounted;
            let end = if counts { place } else { place.min(self.uncounted) };
            let some = self.done..self.next.count.min(self.done + (end - self.place));
            self.cutter.add(self.next.bytes().get(some.clone()).unwrap_or(&[]));
            if counts {
                let of = self.next.of_each_type(some.clone());
                made.frames.iter_mut().zip(of).for_each(|(made, more)| *made += more);
            }
            self.place += some.len();
            self.done = some.end;
        }
        made.packets = self.cutter.packets();
    }
}
