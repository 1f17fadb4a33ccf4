//! Frames of a film that are known in advance. They are divided into packets when that matters.

use super::waiting::Waiting;
use crate::frame::FrameType as Type;
use crate::video::clock::Clock;
use crate::video::packet::{Cut, Cutter};
use crate::video::pattern::BLOCK;
use skyhaul_base::Instant;
use std::collections::VecDeque;

/// A frame that will be sent. A film may have many that wait, so that they are kept small.
#[derive(Clone, Copy, Debug)]
pub(in crate::video) struct Coded {
    /// Its bytes, at least 1.
    pub(in crate::video) bytes: u32,
    /// Its type.
    pub(in crate::video) kind: Type,
}

/// These frames.
#[derive(Clone, Debug)]
pub(super) struct Upcoming {
    frames: VecDeque<Coded>,
    /// When frames are produced, and the number of the first of these.
    clock: Clock,
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
        let clock = Clock::new(Instant::ZERO, 1.0);
        Self { frames: VecDeque::new(), clock, first: 0, warm, cutter: Cutter::new(cut) }
    }
    /// All frames of the film will be among them, and are produced at these times.
    pub(super) fn all(&mut self, clock: Clock) {
        self.clock = clock;
    }
    /// The next ones.
    pub(super) fn add(&mut self, frames: &[Coded]) {
        self.frames.extend(frames);
    }
    /// Frames produced before this time do not count.
    pub(super) fn warm(&self) -> Instant {
        self.warm
    }

    /// Divides the next ones, and moves them to the end of `list`. False if there are none.
    #[inline(never)]
    pub(super) fn divide(&mut self, list: &mut Vec<Waiting>) -> bool {
        let Self { frames, clock, first, warm, cutter } = self;
        let next = frames.as_slices().0;
        let next = next.get(..BLOCK).unwrap_or(next);
        let count = next.len();
        let end = *first + count as u64;
        let known = next.iter().map(|frame| (frame.bytes, frame.kind));
        let mut at = clock.at(*first);
        match clock.regular(end) {
            Some(interval) if at >= *warm => {
                let put = |kind, reach| {
                    let now = at;
                    at = Instant::from_nanos(now.as_nanos().wrapping_add(interval.as_nanos()));
                    Waiting::new(now, reach, kind, true, true)
                };
                cutter.frames(known, put, list);
            }
            _ => {
                let mut ticks = *first..end;
                let put = |kind, reach| {
                    let at = ticks.next().map_or(at, |tick| clock.at(tick));
                    Waiting::new(at, reach, kind, true, at >= *warm)
                };
                cutter.frames(known, put, list);
            }
        }
        frames.drain(..count);
        *first = end;
        count > 0
    }

    /// How many of the first ones are produced at times for which `is_old` is true: the first ones.
    pub(super) fn old(&self, is_old: impl Fn(Instant) -> bool) -> usize {
        let (mut low, mut high) = (0, self.frames.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_old(self.clock.at(self.first + middle as u64)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    /// What is made up to each of these places, ascending and within them, where `made` was made before them.
    pub(super) fn made<'a>(&self, places: impl Iterator<Item = (usize, &'a mut Made)>, mut made: Made) {
        let uncounted = self.old(|at| at < self.warm);
        let (mut cutter, mut place) = (self.cutter, 0);
        for (upto, into) in places {
            // Usually all count.
            for end in [uncounted.clamp(place, upto), upto] {
                let one = u64::from(place >= uncounted);
                let mut frames = [0; Type::COUNT];
                let known = self.frames.range(place..end).map(|frame| (frame.bytes, frame.kind));
                cutter.frames(known, |kind, _| frames[kind as usize] += one, &mut ());
                made.frames.iter_mut().zip(frames).for_each(|(made, frames)| *made += frames);
                place = end;
            }
            made.packets = cutter.packets();
            *into = made;
        }
    }
}
