//! Loss events and the intervals between them (RFC 5348 §5).

use skyhaul_base::{Duration, Instant};

/// Number of closed intervals that count.
const N: usize = 8;
/// Their weights: w_i = 1 for the newer half, then decreasing (§5.4).
const WEIGHTS: [f64; N] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Minimum discount factor of the history (§5.5).
const THRESHOLD: f64 = 0.25;

/// A completed interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Closed {
    /// Packets from the first loss of an event up to that of the next.
    length: f64,
    /// Its remaining weight after discounting.
    factor: f64,
}

/// The event that started the open interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Start {
    number: u64,
    time: Instant,
    /// The event may be withdrawn: it has no other lost packet, and no mark.
    alone: bool,
}

/// The intervals of a receiver.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    discounting: bool,
    start: Option<Start>,
    /// Newest first.
    closed: [Closed; N],
    count: usize,
    /// State before the latest event, in case its only loss arrives late.
    before: Option<Box<Self>>,
    events: u64,
}

impl Intervals {
    /// None so far.
    #[must_use]
    pub fn new(discounting: bool) -> Self {
        Self { discounting, ..Self::default() }
    }

    /// Packet `number` was lost or marked; `time` is its (nominal) arrival. Returns whether this is a new event:
    /// more than an RTT after the start of the previous one. `first` is the length of the interval before the very
    /// first event.
    pub fn lost(&mut self, number: u64, time: Instant, rtt: Duration, first: impl FnOnce() -> f64) -> bool {
        let length = match &mut self.start {
            Some(start) if time <= start.time + rtt => {
                self.confirm();
                return false;
            }
            Some(start) => number.saturating_sub(start.number).max(1) as f64,
            None => first(),
        };
        let before = Self { before: None, ..self.clone() };
        let discount = self.discount(length);
        self.closed.iter_mut().for_each(|c| c.factor *= discount);
        self.closed.rotate_right(1);
        self.closed[0] = Closed { length, factor: 1.0 };
        self.count = (self.count + 1).min(N);
        self.start = Some(Start { number, time, alone: true });
        self.events += 1;
        self.before = Some(Box::new(before));
        true
    }

    /// Packet `number`, declared lost, arrives after all. If it was the only loss of the latest event, the event is
    /// withdrawn; returns whether it was.
    pub fn take_back(&mut self, number: u64) -> bool {
        if self.start.is_none_or(|s| s.number != number || !s.alone) {
            return false;
        }
        let Some(before) = self.before.take() else { return false };
        *self = *before;
        true
    }

    /// The latest event is certain, whatever arrives late.
    pub(crate) fn confirm(&mut self) {
        if let Some(start) = &mut self.start {
            start.alone = false;
        }
        self.before = None;
    }

    /// Number of loss events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }
    /// The earliest time of another event after the latest one, with this RTT.
    pub(crate) fn blind_until(&self, rtt: Duration) -> Option<Instant> {
        self.start.map(|s| s.time + rtt)
    }

    /// The loss event rate when `highest` is the highest packet number received; 0 before the first loss.
    #[must_use]
    pub fn loss_event_rate(&self, highest: u64) -> f64 {
        let Some(start) = self.start else { return 0.0 };
        let open = (highest.saturating_sub(start.number) + 1) as f64;
        let discount = self.discount(open);
        let k = self.count;
        // With the open interval, each closed one gets the weight of the next older; without it, its own.
        let (mut with, mut with_weight) = (open * WEIGHTS[0], WEIGHTS[0]);
        for (closed, weight) in self.closed[..k - 1].iter().zip(&WEIGHTS[1..]) {
            with += closed.length * weight * closed.factor * discount;
            with_weight += weight * closed.factor * discount;
        }
        let (without, without_weight) = self.sums();
        (with_weight / with).min(without_weight / without).min(1.0)
    }

    /// Over the closed intervals: weighted length, and total weight.
    fn sums(&self) -> (f64, f64) {
        let (mut length, mut total) = (0.0, 0.0);
        for (closed, weight) in self.closed[..self.count].iter().zip(&WEIGHTS) {
            length += closed.length * weight * closed.factor;
            total += weight * closed.factor;
        }
        (length, total)
    }

    /// Discount factor of the history for an open interval of this length: below 1 if it exceeds twice the mean
    /// (§5.5).
    fn discount(&self, open: f64) -> f64 {
        let (length, weight) = self.sums();
        let mean = length / weight;
        if self.discounting && self.count > 0 && open > 2.0 * mean {
            (2.0 * mean / open).max(THRESHOLD)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Events at these numbers, a packet every 10 ms, the first interval of 100 packets.
    fn events(discounting: bool, numbers: &[u64]) -> Intervals {
        let mut i = Intervals::new(discounting);
        for n in numbers {
            assert!(i.lost(*n, Instant::from_nanos(n * 10_000_000), RTT, || 100.0));
        }
        i
    }
    fn hundreds(discounting: bool) -> Intervals {
        events(discounting, &[100, 200, 300, 400, 500, 600, 700, 800])
    }

    #[test]
    fn the_mean_takes_the_open_interval_only_if_that_makes_it_longer() {
        let near = |x: f64, y: f64| assert!((x - y).abs() < 1e-9, "{x} {y}");
        // I_0 = 50, I_1..8 = 100.
        near(hundreds(false).loss_event_rate(849), 0.01);
        // I_0 = 400: (400 + 5 · 100) / 6 = 150.
        near(hundreds(false).loss_event_rate(1199), 1.0 / 150.0);
        near(events(false, &[]).loss_event_rate(5), 0.0);
        // Few intervals: I_0 = 300, I_1 = 200, I_2 = 100 (the first): (300 + 200) / 2 against (200 + 100) / 2.
        near(events(false, &[100, 300]).loss_event_rate(599), 1.0 / 250.0);
    }

    #[test]
    fn history_is_discounted_when_the_open_interval_is_long() {
        let near = |x: f64, y: f64| assert!((x - y).abs() < 1e-9, "{x} {y}");
        // I_0 = 400 > 2 · 100: DF = 2 · 100 / 400 = 0.5; (1 + 0.5 · 5) / (400 + 0.5 · 500).
        near(hundreds(true).loss_event_rate(1199), 3.5 / 650.0);
        // I_0 = 200 is not more than twice the mean.
        near(hundreds(true).loss_event_rate(999), 6.0 / 700.0);
        // I_0 = 4000: never below a quarter.
        near(hundreds(true).loss_event_rate(4799), (1.0 + 0.25 * 5.0) / (4000.0 + 0.25 * 500.0));
        // What was discounted stays so: the event after 400 packets halves the factors of all before it.
        let mut i = hundreds(true);
        i.lost(1200, Instant::from_nanos(12_000_000_000), RTT, || 0.0);
        // I_1 = 400 (1), I_2..8 = 100 (0.5): weights 1, then 1+1+1+.8+.6+.4+.2 = 5.
        near(i.loss_event_rate(1200), (1.0 + 2.5) / (400.0 + 250.0));
    }

    #[test]
    fn losses_of_one_round_trip_time_are_one_event() {
        let mut i = events(false, &[100]);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert!(!i.lost(105, at(1050), RTT, || 0.0));
        assert!(!i.lost(110, at(1100), RTT, || 0.0), "at the very end of it");
        assert!(i.lost(111, at(1110), RTT, || 0.0));
        assert_eq!((i.events(), i.blind_until(RTT)), (2, Some(at(1210))));
        // From the start of one to that of the next: 11 packets.
        assert_eq!(i.closed[0].length, 11.0);
    }

    #[test]
    fn a_late_packet_takes_its_event_back_if_it_was_alone() {
        let (mut i, before) = (events(true, &[100, 200]), events(true, &[100]));
        assert!(!i.take_back(100), "not the latest");
        assert!(i.take_back(200));
        assert_eq!(i.loss_event_rate(250), before.loss_event_rate(250));
        assert!(!i.take_back(100), "history is kept for one event");
        let mut i = events(true, &[100, 200]);
        i.lost(203, Instant::from_nanos(2_030_000_000), RTT, || 0.0);
        assert!(!i.take_back(200), "another was lost with it");
        let mut i = events(true, &[100]);
        assert!(i.take_back(100));
        assert_eq!(i.loss_event_rate(250), 0.0);
    }
}
