//! The receiving half of an end: decoding, order, reports.

use crate::code::Code;
use crate::config::Config;
use crate::count::Counters;
use crate::frame::{Delivery, Installed, Ranges, Report};
use crate::loss::Meter;
use core::ops::Range;
use skyhaul_base::Instant;
use std::collections::VecDeque;

/// Largest jump of datagram numbers over which the receiver waits for repair. Beyond it the order starts anew.
const LEAP: u64 = 1 << 16;
/// Blocks whose symbols are kept.
const BLOCKS: usize = 64;
/// Seconds for which a skipped datagram may still arrive. They become a number of datagrams, with 1000 bytes for each, within
/// these bounds.
const HISTORY: f64 = 2.0;
const HISTORY_BOUNDS: (u64, u64) = (1024, 1 << 16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    /// Arrived, and waits for earlier ones.
    Held,
    Delivered,
}

/// In how many reports a datagram is that has installed references.
const TOLD: u8 = 3;
/// The largest number of such datagrams that wait for reports.
const UNTOLD: usize = 512;

/// What is known of a datagram.
#[derive(Clone, Debug)]
struct Slot<R> {
    state: State,
    /// Kept while a block may need it, or until it is delivered.
    datagram: Option<R>,
    /// When it arrived.
    at: Instant,
    /// The frame that carried it was marked as congested.
    marked: bool,
}

/// A block of which repair symbols have arrived.
#[derive(Debug)]
struct Block<Y> {
    first: u64,
    k: u16,
    parity: u8,
    /// How many of its datagrams are here.
    present: u16,
    /// Its repair symbols that are here, each with its index.
    symbols: Vec<(u8, Y)>,
}

/// The receiving half of an end.
#[derive(Debug)]
pub(crate) struct Receiver<C: Code> {
    config: Config,
    /// Datagrams below `base` that keep their slots.
    history: u64,
    meter: Meter,
    /// When the frame with the largest number arrived.
    largest_at: Instant,
    /// Number of the datagram of the first slot.
    start: u64,
    slots: VecDeque<Slot<C::Received>>,
    /// Number after that of the newest datagram that a source frame carried.
    sources_end: u64,
    /// All datagrams below it are delivered or were skipped.
    base: u64,
    /// No datagram below it is kept for blocks.
    kept: u64,
    /// The sender sends nothing more about datagrams below it.
    floor: u64,
    /// All datagrams below it have arrived or are given up.
    settled: u64,
    /// Arrival time and number of the datagrams that are held, in the order of arrival.
    held: VecDeque<(Instant, u64)>,
    blocks: Vec<Block<C::Symbol>>,
    /// Datagrams that have installed references, and in how many reports they were.
    installed: VecDeque<(u64, u8)>,
    out: VecDeque<Delivery<C::Received>>,
    /// Numbers of datagrams that can no longer be delivered.
    lost: VecDeque<Range<u64>>,
    /// When the next report is due; [`Instant::MAX`] while there is no news.
    report_at: Instant,
    reported_at: Option<Instant>,
}

impl<C: Code> Receiver<C> {
    pub(crate) fn new(config: &Config) -> Self {
        let packets = (HISTORY * config.rate.bytes_per_sec() / 1000.0) as u64;
        Self {
            config: *config,
            history: packets.clamp(HISTORY_BOUNDS.0, HISTORY_BOUNDS.1),
            meter: Meter::default(),
            largest_at: Instant::ZERO,
            start: 0,
            slots: VecDeque::new(),
            sources_end: 0,
            base: 0,
            kept: 0,
            floor: 0,
            settled: 0,
            held: VecDeque::new(),
            blocks: Vec::new(),
            installed: VecDeque::new(),
            out: VecDeque::new(),
            lost: VecDeque::new(),
            report_at: Instant::MAX,
            reported_at: None,
        }
    }

    /// Number after that of the last slot.
    fn end(&self) -> u64 {
        self.start + self.slots.len() as u64
    }
    pub(crate) fn next_number(&self) -> u64 {
        self.meter.largest().map_or(0, |n| n + 1)
    }
    pub(crate) fn next_seq(&self) -> u64 {
        self.end()
    }
    pub(crate) fn report_at(&self) -> Instant {
        self.report_at
    }

    fn slot(&mut self, seq: u64) -> Option<&mut Slot<C::Received>> {
        self.slots.get_mut(usize::try_from(seq.checked_sub(self.start)?).ok()?)
    }

    /// A frame has arrived. False if it has arrived before.
    pub(crate) fn arrived(&mut self, now: Instant, number: u64) -> bool {
        let before = self.meter.largest();
        let new = self.meter.arrived(number);
        if self.meter.largest() != before {
            self.largest_at = now;
        }
        new
    }

    /// A frame with news for a report has arrived.
    fn ask_for_report(&mut self, now: Instant) {
        if self.report_at == Instant::MAX {
            let least = self.reported_at.map_or(now, |at| at + self.config.report);
            // The report waits a little for the frames that follow.
            self.report_at = least.max(now + self.config.report.mul_f64(0.2));
        }
    }

    /// A datagram has installed references.
    pub(crate) fn installed(&mut self, now: Instant, seq: u64) {
        // The sender tries again if it is not told.
        if self.installed.len() < UNTOLD {
            self.installed.push_back((seq, 0));
        }
        self.ask_for_report(now);
    }

    /// Makes slots for all datagrams below `end`.
    fn extend(&mut self, now: Instant, end: u64, counters: &mut Counters) {
        if end.saturating_sub(self.end()) > LEAP {
            // After an outage, or where this end began later than the other one, nothing before `end` can be repaired.
            self.skip_to(now, self.end(), counters);
            while let Some(slot) = self.slots.pop_front() {
                self.retire(&slot, counters);
            }
            self.blocks.clear();
            counters.lost += end - 1 - self.start;
            self.lost.push_back(self.start..end - 1);
            self.start = end - 1;
            (self.base, self.kept, self.settled) = (self.start, self.start, self.start);
        }
        while self.end() < end {
            self.slots.push_back(Slot { state: State::Missing, datagram: None, at: now, marked: false });
        }
    }

    /// The first slot has left the window.
    fn retire(&mut self, slot: &Slot<C::Received>, counters: &mut Counters) {
        if slot.state == State::Missing {
            counters.lost += 1;
            self.lost.push_back(self.start..self.start + 1);
        }
        self.start += 1;
    }

    /// A datagram has arrived.
    pub(crate) fn source(
        &mut self,
        now: Instant,
        (seq, floor): (u64, Option<u64>),
        datagram: C::Received,
        marked: bool,
        code: &mut C,
        counters: &mut Counters,
    ) {
        self.ask_for_report(now);
        if seq < self.start {
            counters.refused += 1;
            return;
        }
        self.extend(now, seq + 1, counters);
        self.sources_end = self.sources_end.max(seq + 1);
        if self.slot(seq).is_some_and(|s| s.state == State::Missing) {
            self.fill(now, seq, datagram, marked, counters);
            let covering = self.blocks.iter().position(|b| b.first <= seq && seq - b.first < u64::from(b.k));
            if let Some(i) = covering {
                self.blocks[i].present += 1;
                self.decode(now, i, code, counters);
            }
        } else {
            counters.refused += 1;
        }
        if let Some(floor) = floor.filter(|floor| *floor <= seq) {
            self.floor = self.floor.max(floor);
        }
        self.finish(now, counters);
    }

    /// A repair symbol has arrived.
    pub(crate) fn symbol(
        &mut self,
        now: Instant,
        (first, k): (u64, u16),
        (parity, index): (u8, u8),
        symbol: C::Symbol,
        code: &mut C,
        counters: &mut Counters,
    ) {
        self.ask_for_report(now);
        let contradictory = k == 0 || k > Config::MAX_BLOCK || index >= parity;
        // Of an old block not all datagrams are kept.
        if contradictory || first < self.kept.max(self.start) {
            counters.refused += u64::from(contradictory);
            return;
        }
        let end = first + u64::from(k);
        // Symbols alone move no slot out of the window: they may announce only so many datagrams.
        if end.saturating_sub(self.sources_end) > LEAP {
            counters.refused += 1;
            return;
        }
        self.extend(now, end, counters);
        let i = match self.blocks.iter().position(|b| b.first < end && first < b.first + u64::from(b.k)) {
            Some(i) => i,
            None => {
                let (from, to) = ((first - self.start) as usize, (end - self.start) as usize);
                let present = self.slots.range(from..to).filter(|s| s.datagram.is_some()).count();
                if present == usize::from(k) {
                    self.finish(now, counters);
                    return;
                }
                if self.blocks.len() == BLOCKS {
                    self.blocks.remove(0);
                }
                let present = present as u16;
                self.blocks.push(Block { first, k, parity, present, symbols: Vec::new() });
                self.blocks.len() - 1
            }
        };
        let block = &mut self.blocks[i];
        let fits = (block.first, block.k, block.parity) == (first, k, parity)
            && block.symbols.iter().all(|(known, s)| *known != index && C::size(s) == C::size(&symbol));
        if fits {
            block.symbols.push((index, symbol));
            self.decode(now, i, code, counters);
        } else {
            counters.refused += 1;
        }
        self.finish(now, counters);
    }

    /// Recovers what is missing of a block, if enough has arrived.
    fn decode(&mut self, now: Instant, i: usize, code: &mut C, counters: &mut Counters) {
        let block = &self.blocks[i];
        let k = usize::from(block.k);
        if usize::from(block.present) + block.symbols.len() < k {
            return;
        }
        let block = self.blocks.remove(i);
        if usize::from(block.present) == k {
            return;
        }
        let Some(from) = block.first.checked_sub(self.start) else { return };
        let range = from as usize..from as usize + k;
        let source: Vec<_> = self.slots.range(range).map(|s| s.datagram.clone()).collect();
        let Some(recovered) = code.decode(&source, block.parity, &block.symbols) else {
            counters.refused += block.symbols.len() as u64;
            return;
        };
        for (offset, datagram) in recovered {
            let seq = block.first + u64::from(offset);
            if self.slot(seq).is_some_and(|s| s.state == State::Missing) {
                counters.recovered += 1;
                self.fill(now, seq, datagram, false, counters);
            }
        }
    }

    /// A missing datagram has arrived or was recovered.
    fn fill(&mut self, now: Instant, seq: u64, datagram: C::Received, marked: bool, counters: &mut Counters) {
        let base = self.base;
        let at_once = self.config.resequence.is_zero();
        let Some(slot) = self.slot(seq) else { return };
        (slot.datagram, slot.at, slot.marked, slot.state) = (Some(datagram), now, marked, State::Held);
        if seq < base {
            self.deliver(now, seq, true, counters);
        } else if seq == base || at_once {
            self.skip_to(now, seq + 1, counters);
        } else {
            self.held.push_back((now, seq));
        }
    }

    /// Hands out a datagram that is held.
    fn deliver(&mut self, now: Instant, seq: u64, late: bool, counters: &mut Counters) {
        let needed = self.config.fec && seq >= self.kept;
        let Some(slot) = self.slot(seq) else { return };
        slot.state = State::Delivered;
        let datagram = if needed { slot.datagram.clone() } else { slot.datagram.take() };
        let (held, marked) = (now - slot.at, slot.marked);
        let Some(datagram) = datagram else { return };
        counters.delivered += 1;
        counters.late += u64::from(late);
        counters.held = counters.held + held;
        counters.longest_held = counters.longest_held.max(held);
        self.out.push_back(Delivery { seq, datagram, marked, late });
    }

    /// Delivers everything below `end` that is held, and what follows it without a gap.
    fn skip_to(&mut self, now: Instant, end: u64, counters: &mut Counters) {
        loop {
            let base = self.base;
            match self.slot(base).map(|s| s.state) {
                Some(State::Held) => self.deliver(now, base, false, counters),
                Some(State::Missing) if base < end => {}
                Some(State::Delivered) => {}
                Some(State::Missing) | None => break,
            }
            self.base += 1;
        }
    }

    /// Skips what will never come, and forgets what is no longer needed.
    fn finish(&mut self, now: Instant, counters: &mut Counters) {
        let final_below = self.floor.min(self.end());
        if self.base < final_below {
            self.skip_to(now, final_below, counters);
        }
        while self.held.front().is_some_and(|(_, seq)| *seq < self.base) {
            self.held.pop_front();
        }
        // The symbols of a block follow its last datagram: after four more blocks none is expected any more.
        let horizon = self.base.saturating_sub(4 * u64::from(self.config.block));
        while self.kept < horizon {
            let kept = self.kept;
            if let Some(slot) = self.slot(kept) {
                slot.datagram = None;
            }
            self.kept += 1;
        }
        let kept = self.kept;
        self.blocks.retain(|b| b.first >= kept);
        while self.start + self.history < self.base {
            let Some(slot) = self.slots.pop_front() else { break };
            self.retire(&slot, counters);
        }
        self.settled = self.settled.max(self.start);
        loop {
            let seq = self.settled;
            // Without an order to keep, a missing datagram is wanted as long as the sender may repeat it.
            let given_up = seq < self.floor || seq < self.base && !self.config.resequence.is_zero();
            match self.slot(seq).map(|s| s.state) {
                Some(State::Missing) if !given_up => break,
                None => break,
                Some(_) => self.settled += 1,
            }
        }
    }

    /// When the first of the datagrams that are held has waited long enough.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.held.front().map_or(Instant::MAX, |(at, _)| *at + self.config.resequence)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) {
        while self.next_timeout() <= now {
            let Some((_, seq)) = self.held.pop_front() else { break };
            if seq >= self.base {
                self.skip_to(now, seq + 1, counters);
            }
        }
        self.finish(now, counters);
    }

    /// The report, if it is due.
    pub(crate) fn take_report(&mut self, now: Instant) -> Option<Report> {
        if self.report_at > now {
            return None;
        }
        (self.report_at, self.reported_at) = (Instant::MAX, Some(now));
        let largest = self.meter.largest()?;
        let (mut missing, mut next) = (Ranges::default(), self.end());
        let mut run: Option<(u64, u32)> = None;
        let from = (self.settled - self.start) as usize;
        for (seq, slot) in (self.settled..).zip(self.slots.range(from..)) {
            if slot.state == State::Missing {
                run = Some(run.map_or((seq, 1), |(first, len)| (first, len + 1)));
            } else if let Some((first, len)) = run.take() {
                if !missing.push(first, len) {
                    next = first;
                    break;
                }
            }
        }
        if let Some((first, len)) = run {
            if !missing.push(first, len) {
                next = first;
            }
        }
        let mut installed = Installed::default();
        for _ in 0..self.installed.len().min(Installed::MOST) {
            let Some((seq, told)) = self.installed.pop_front() else { break };
            installed.push(seq);
            if told + 1 < TOLD {
                self.installed.push_back((seq, told + 1));
            }
        }
        Some(Report {
            largest,
            delay: now - self.largest_at,
            base: self.settled,
            next,
            missing,
            received: self.meter.received,
            lost: self.meter.lost,
            bursts: self.meter.bursts,
            installed,
        })
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Delivery<C::Received>> {
        self.out.pop_front()
    }
    pub(crate) fn poll_lost(&mut self) -> Option<Range<u64>> {
        self.lost.pop_front()
    }
}
