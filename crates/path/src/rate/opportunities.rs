//! Delivery opportunities, as recorded and replayed by Mahimahi.
//!
//! \[Mahimahi\] Netravali and others, "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; the rules
//! are those of its program `mm-link`. At each opportunity [`OPPORTUNITY_BYTES`] bytes may leave. Several waiting
//! packets share an opportunity, and a packet that does not fit continues in the next one; it has left when its
//! last byte has. Unused room in an opportunity is lost: later packets get no credit for it. An opportunity at the
//! arrival time of a packet is over when the packet arrives.

use super::model::{Model, Sending};
use crate::trace::{Broken, End, MAX_LINES, TraceError, broken, shown};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use skyhaul_base::{Duration, Instant, Rate};

/// Bytes per opportunity: a packet of 1500 bytes and the header of 4 bytes of Mahimahi's TUN device.
pub const OPPORTUNITY_BYTES: u32 = 1504;

const NANOS_PER_MS: u64 = 1_000_000;

/// A repeating schedule of opportunities: the time of the last one is the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Milliseconds from the beginning of a period; never descending, the last one positive.
    times: Vec<u32>,
}

impl Opportunities {
    /// Opportunities at these milliseconds; several may be at the same.
    ///
    /// # Errors
    /// If there is none, the times descend, or the last one is 0.
    pub fn new(times: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(i) = times.windows(2).position(|w| w[1] < w[0]) {
            return Err(TraceError::NotAscending(i + 1));
        }
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod),
            Some(_) => Ok(Self { times }),
        }
    }

    /// The milliseconds of one period.
    #[must_use]
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// After this time the schedule repeats.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    fn period_nanos(&self) -> u64 {
        self.times.last().map_or(1, |&ms| u64::from(ms) * NANOS_PER_MS)
    }

    /// Bytes of a period over its length; at least 1 bit/s.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let bits = self.times.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.period_nanos());
        Rate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
    }

    /// How many opportunities there are until `t`, those at `t` included.
    #[must_use]
    pub fn count_until(&self, t: Instant) -> u64 {
        let period = self.period_nanos();
        let (cycle, local) = (t.as_nanos() / period, t.as_nanos() % period);
        let within = self.times.partition_point(|&ms| u64::from(ms) * NANOS_PER_MS <= local);
        cycle.saturating_mul(self.times.len() as u64).saturating_add(within as u64)
    }
}

/// A running schedule.
#[derive(Clone, Debug)]
pub struct Run {
    schedule: Arc<Opportunities>,
    /// Number of the current period, and of the next opportunity within it.
    cycle: u64,
    next: usize,
    /// Time of the opportunity used last, and its remaining bytes.
    at: Instant,
    left: u32,
}

impl Model for Opportunities {
    type Run = Run;

    const FILE: &'static str =
        "A Mahimahi trace, for rates: each line is a millisecond at which 1504 bytes may leave.";
    const NO_END: Option<&'static str> = Some("a Mahimahi trace always repeats");

    fn mean(&self) -> Rate {
        Self::mean(self)
    }
    fn bits_until(&self, t: Instant) -> f64 {
        self.count_until(t) as f64 * 8.0 * f64::from(OPPORTUNITY_BYTES)
    }
    fn last(&self) -> Duration {
        self.period()
    }
    fn read(text: &str, _: End) -> Result<Self, Broken> {
        let mut times: Vec<u32> = Vec::new();
        for (line, word) in (1..).zip(text.lines()) {
            let word = word.trim();
            let accepted = "write a whole number of milliseconds, from 0 to 4294967295, in each line";
            let Some(ms) = word.parse::<u32>().ok().filter(|_| word.bytes().all(|b| b.is_ascii_digit()))
            else {
                return broken(line, format!("{} is not a time: {accepted}", shown(word)));
            };
            if let Some(before) = times.last().filter(|before| ms < **before) {
                return broken(line, format!("{ms} follows {before}: times must not descend"));
            }
            times.push(ms);
            if times.len() > MAX_LINES {
                return broken(line, format!("more than {MAX_LINES} lines"));
            }
        }
        let last = times.len();
        Self::new(times).or_else(|e| match e {
            TraceError::Empty => broken(0, "empty: it needs at least one line"),
            TraceError::NoPeriod => {
                broken(last, "the last time is 0, which is not a period: end with a later time")
            }
            other => broken(last, other.to_string()),
        })
    }
    fn write(&self) -> (String, Option<End>) {
        let mut text = String::new();
        for ms in &self.times {
            let _ = writeln!(text, "{ms}");
        }
        (text, None)
    }
    fn run(self: &Arc<Self>) -> Run {
        Run { schedule: Arc::clone(self), cycle: 0, next: 0, at: Instant::ZERO, left: 0 }
    }
}

impl Sending for Run {
    type Model = Opportunities;

    fn model(&self) -> &Arc<Opportunities> {
        &self.schedule
    }

    /// A packet that has waited may also use an opportunity at `start`, and what its predecessor has left of it.
    fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        if !(waited && start == self.at) {
            self.left = 0;
            self.skip(start, waited);
        }
        let mut end = start;
        let mut need = size;
        while need > 0 {
            if self.left == 0 {
                self.at = self.time();
                self.left = OPPORTUNITY_BYTES;
                self.next += 1;
                if self.next == self.schedule.times.len() {
                    self.next = 0;
                    self.cycle += 1;
                }
            }
            let part = need.min(self.left);
            self.left -= part;
            need -= part;
            end = self.at;
        }
        end
    }
}

impl Run {
    /// Time of the next opportunity.
    fn time(&self) -> Instant {
        let local = u64::from(self.schedule.times[self.next]) * NANOS_PER_MS;
        Instant::from_nanos(self.cycle.saturating_mul(self.schedule.period_nanos()).saturating_add(local))
    }

    /// Skips the opportunities before `start`, and those at `start` unless the packet has waited.
    fn skip(&mut self, start: Instant, waited: bool) {
        let past = |t: Instant| if waited { t < start } else { t <= start };
        if !past(self.time()) {
            return;
        }
        let period = self.schedule.period_nanos();
        // The last opportunity of a period is at the beginning of the next one.
        let cycle = (start.as_nanos() / period).saturating_sub(1);
        if cycle > self.cycle {
            (self.cycle, self.next) = (cycle, 0);
        }
        while past(self.time()) {
            let begin = self.cycle.saturating_mul(period);
            let over =
                |&ms: &u32| past(Instant::from_nanos(begin.saturating_add(u64::from(ms) * NANOS_PER_MS)));
            self.next = self.schedule.times.partition_point(over);
            if self.next == self.schedule.times.len() {
                (self.cycle, self.next) = (self.cycle + 1, 0);
            }
            if start == Instant::MAX {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ms(t: u64) -> Instant {
        Instant::from_nanos(t * NANOS_PER_MS)
    }
    fn run(times: &[u32]) -> Run {
        Arc::new(Opportunities::new(times.to_vec()).unwrap()).run()
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut r = run(&[5, 10, 10, 20]);
        // 1000 of 1504 bytes; the second has 504 left of it and goes on at 10 ms.
        assert_eq!(r.send(ms(0), 1000, false), ms(5));
        assert_eq!(r.send(ms(5), 1000, true), ms(10));
        // 1008 bytes are left of the first opportunity at 10 ms.
        assert_eq!(r.send(ms(10), 1008, true), ms(10));
        // The second at 10 ms, 20 ms, 25 ms: 4000 bytes.
        assert_eq!(r.send(ms(10), 4000, true), ms(25));
    }

    #[test]
    fn what_an_opportunity_has_left_is_no_credit() {
        let mut r = run(&[5, 10]);
        assert_eq!(r.send(ms(0), 40, false), ms(5));
        // A packet that arrives at the time of an opportunity cannot use it.
        assert_eq!(r.send(ms(5), 40, false), ms(10));
        assert_eq!(r.send(ms(12), 40, false), ms(15));
        // A packet that has waited, as while a link is down, can.
        assert_eq!(r.send(ms(20), 40, true), ms(20));
        assert_eq!(r.send(ms(1_000_000_007), 40, false), ms(1_000_000_010));
        assert_eq!(r.send(ms(2_000_000_005), 40, true), ms(2_000_000_005));
    }

    #[test]
    fn the_last_opportunity_of_a_period_begins_the_next() {
        let mut r = run(&[0, 0, 10]);
        assert_eq!(r.send(Instant::ZERO, 1504, true), ms(0));
        assert_eq!(r.send(Instant::ZERO, 1504, true), ms(0));
        let ends: Vec<Instant> = (0..6).map(|_| r.send(r.at, 1504, true)).collect();
        assert_eq!(ends, [ms(10), ms(10), ms(10), ms(20), ms(20), ms(20)]);
        let o = Opportunities::new(vec![0, 0, 10]).unwrap();
        let counts: Vec<u64> = [0, 9, 10, 19, 20].iter().map(|&t| o.count_until(ms(t))).collect();
        assert_eq!(counts, [2, 2, 5, 5, 8]);
        assert_eq!(o.mean().bits_per_sec(), 3 * 1504 * 8 * 100);
    }

    /// The program's own loop: at each millisecond opportunities are used one by one.
    #[test]
    fn the_same_as_replaying_every_opportunity() {
        let schedule = Opportunities::new(vec![3, 3, 4, 9, 9, 9, 17, 30]).unwrap();
        let mut rng = skyhaul_base::Rng::stream(1, "mahimahi");
        let mut below = |n: u64| rng.next_u64() % n;
        let mut fast = Arc::new(schedule.clone()).run();
        let (mut queue, mut free, mut got, mut want) = (Vec::new(), Instant::ZERO, Vec::new(), Vec::new());
        let mut arrivals: Vec<(u64, u32)> =
            (0..500).map(|_| (below(3_000), 40 + below(2_000) as u32)).collect();
        arrivals.sort_unstable();
        for &(t, size) in &arrivals {
            // A packet waits if the one before it has not left.
            let waited = free > ms(t);
            free = fast.send(free.max(ms(t)), size, waited);
            got.push(free);
        }
        let (mut coming, mut cursor) = (arrivals.into_iter().peekable(), 0usize);
        let mut base = 0u64;
        while want.len() < 500 {
            let at = base + u64::from(schedule.times[cursor]);
            while let Some((_, size)) = coming.next_if(|(t, _)| *t < at) {
                queue.push(size);
            }
            let mut left = OPPORTUNITY_BYTES;
            while let (true, Some(head)) = (left > 0, queue.first_mut()) {
                let part = left.min(*head);
                *head -= part;
                left -= part;
                if *head == 0 {
                    queue.remove(0);
                    want.push(ms(at));
                }
            }
            cursor += 1;
            if cursor == schedule.times.len() {
                (cursor, base) = (0, base + 30);
            }
        }
        assert_eq!(got, want);
    }

    #[test]
    fn schedules_without_sense_are_refused() {
        assert_eq!(Opportunities::new(vec![]), Err(TraceError::Empty));
        assert_eq!(Opportunities::new(vec![0, 0]), Err(TraceError::NoPeriod));
        assert_eq!(Opportunities::new(vec![1, 5, 4]), Err(TraceError::NotAscending(2)));
    }
}
