//! Frames of a byte stream of which data is missing, and those that will be produced next.

use super::upcoming::{Made, Upcoming};
use super::waiting::Waiting;
use crate::video::packet::{Cut, Reach};
use skyhaul_base::Instant;

/// Frames of a film, in order, and what the film has before them.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// Those from `head` on, and frames that are gone.
    list: Vec<Waiting>,
    head: usize,
    /// The frames after them, which are known in advance.
    pub(super) upcoming: Upcoming,
    /// How far the film reaches before the first of them.
    pub(super) before: Reach,
    /// Number of frames before them.
    pub(super) gone: u64,
    /// Number of frames produced. The others are known in advance.
    pub(super) produced: u64,
    /// Packets of the frames that do not count, as far as those are divided.
    uncounted: u64,
    /// How far the film reaches with those that are divided, bytes.
    reach: u64,
}

impl Frames {
    /// There are none.
    pub(super) fn new(cut: Cut, warm: Instant) -> Self {
        Self {
            list: Vec::new(),
            head: 0,
            upcoming: Upcoming::new(cut, warm),
            before: Reach::default(),
            gone: 0,
            produced: 0,
            uncounted: 0,
            reach: 0,
        }
    }
    /// Those that are divided into packets.
    #[inline(always)]
    pub(super) fn list(&self) -> &[Waiting] {
        self.list.get(self.head..).unwrap_or(&[])
    }
    /// One more is produced. None is known in advance.
    pub(super) fn push(&mut self, frame: Waiting) {
        self.compact();
        self.count(&frame);
        self.reach = frame.reach().bytes();
        self.list.push(frame);
        self.produced += 1;
    }
    /// Divides frames that are known in advance, until the film reaches so many bytes with them, or all are divided.
    #[inline(always)]
    pub(super) fn divide(&mut self, bytes: u64) {
        while self.reach < bytes && self.divide_some() {}
    }
    #[inline(never)]
    fn divide_some(&mut self) -> bool {
        self.compact();
        let before = self.list.len();
        let any = self.upcoming.divide(&mut self.list);
        // The first frames of a film are those that do not count.
        let last = self.list[before..].iter().take_while(|frame| !frame.counts).last().copied();
        last.iter().for_each(|frame| self.count(frame));
        self.reach = self.list.last().map_or(self.reach, |frame| frame.reach().bytes());
        any
    }
    fn count(&mut self, frame: &Waiting) {
        if !frame.counts {
            self.uncounted = frame.packets;
        }
    }
    /// Frees the room of frames that are gone, if that is half of all.
    fn compact(&mut self) {
        if 2 * self.head > self.list.len() {
            self.list.drain(..self.head);
            self.head = 0;
        }
    }
    /// The first one is complete.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if let Some(frame) = self.list().first() {
            let before = frame.reach();
            self.remove(1, before);
        }
    }
    /// The first ones are complete; the film reaches so far before the others.
    #[inline(always)]
    pub(super) fn remove(&mut self, frames: usize, before: Reach) {
        self.head += frames;
        self.gone += frames as u64;
        self.before = before;
    }

    /// How many of them are produced.
    #[inline(always)]
    pub(super) fn there(&self) -> usize {
        (self.produced - self.gone) as usize
    }
    /// How many are produced at times for which `is_old` is true: the first ones.
    pub(super) fn old(&self, is_old: impl Fn(Instant) -> bool) -> usize {
        let list = self.list();
        let old = list.partition_point(|frame| is_old(frame.at));
        if old < list.len() { old } else { old + self.upcoming.old(is_old) }
    }
    /// What is made up to each of these places.
    pub(super) fn made<const N: usize>(&self, places: [usize; N]) -> [Made; N] {
        let mut order: [usize; N] = core::array::from_fn(|i| i);
        order.sort_unstable_by_key(|i| places[*i]);
        let (list, mut upcoming) = (self.list(), self.upcoming.counting());
        let (mut made, mut next) = (Made { packets: self.before.packets, ..Made::default() }, 0);
        let mut all = [made; N];
        for i in order {
            let place = places[i];
            let end = place.min(list.len());
            for frame in list.get(next..end).unwrap_or(&[]) {
                made.frames[frame.kind as usize] += u64::from(frame.counts);
                made.packets = frame.packets;
            }
            next = end;
            if place > end {
                upcoming.upto(place - end, &mut made);
            }
            all[i] = made;
        }
        all
    }
    /// Packets of the frames that do not count, known in advance included.
    pub(super) fn uncounted(&self) -> u64 {
        let warm = self.upcoming.warm();
        match self.old(|at| at < warm) {
            0 => self.uncounted,
            some => self.made([some])[0].packets,
        }
    }

    /// How far the film reaches before the frame at `place`.
    #[inline]
    pub(super) fn before(&self, place: usize) -> Reach {
        let before = place.checked_sub(1).and_then(|p| self.list().get(p));
        before.map_or(self.before, Waiting::reach)
    }

    /// The place of the frame with the first packet that ends after byte `from`, and the number of this packet.
    pub(super) fn packet_after(&self, from: u64, payload: u64) -> Option<(usize, u64)> {
        let place = self.list().partition_point(|f| f.packed <= from);
        let (before, to) = (self.before(place), self.list().get(place)?.reach());
        let number = before.packets + from.saturating_sub(before.packed) / payload;
        Some((place, number.min(to.packets.saturating_sub(1))))
    }
}
