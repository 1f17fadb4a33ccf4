//! Sources: when an application has data.

use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_scenario::resolved::{App, FlowGroup, Sizes, Times};

/// What makes data available over time. Applications that always have some need none.
#[derive(Debug)]
pub(crate) enum Source {
    /// At a rate.
    Stream(Stream),
    /// Transfers at random times.
    Arrivals(Arrivals),
}

impl Source {
    /// That of a flow of `group` that starts now.
    pub(crate) fn of(group: &FlowGroup, index: u32, seed: u64, now: Instant) -> Option<Self> {
        let stream = |purpose: &str| Rng::stream(seed, &format!("flows.{}[{index}].{purpose}", group.name));
        match &group.app {
            App::Bulk | App::Pages { .. } => None,
            App::Stream { rate, packet, pauses } => {
                Some(Self::Stream(Stream::new(now, *rate, *packet, *pauses, stream("pauses"))))
            }
            App::Arrivals { per_second, size } => {
                let (gaps, sizes) = (stream("arrivals"), stream("sizes"));
                Some(Self::Arrivals(Arrivals::new(now, *per_second, size.clone(), gaps, sizes)))
            }
        }
    }

    /// When there is more.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match self {
            Self::Stream(s) => s.next,
            Self::Arrivals(a) => a.next,
        }
    }
}

/// Packets at a constant rate, with or without pauses.
///
/// The clock of the source runs while it is on: what is left of the time to the next packet when a pause begins is
/// left when it ends, so that the rate holds whatever the length of phases. The first packet is due at once.
#[derive(Debug)]
pub(crate) struct Stream {
    /// When the next packet is due.
    next: Instant,
    pub(crate) packet: u32,
    /// Counts the time that the source was on, without rounding errors.
    clock: Serializer,
    on: Instant,
    /// On that clock, when the next pause begins.
    pause: Instant,
    /// How much later than its own clock it is, through pauses.
    behind: Duration,
    pauses: Option<(Times, Times)>,
    rng: Rng,
}

impl Stream {
    fn new(now: Instant, rate: Rate, packet: u32, pauses: Option<(Times, Times)>, mut rng: Rng) -> Self {
        let pause = pauses.map_or(Instant::MAX, |(on, _)| now + on.draw(&mut rng));
        let (behind, clock) = (Duration::ZERO, Serializer::new(rate));
        let mut stream = Self { next: now, packet, clock, on: now, pause, behind, pauses, rng };
        stream.skip_pauses();
        stream
    }

    /// The packet that was due has been produced.
    pub(crate) fn advance(&mut self) {
        self.on = self.clock.send(self.on, self.packet);
        self.skip_pauses();
    }

    fn skip_pauses(&mut self) {
        while let (Some((on, off)), true) = (&self.pauses, self.on >= self.pause) {
            self.behind = self.behind + off.draw(&mut self.rng);
            self.pause += on.draw(&mut self.rng);
        }
        self.next = self.on + self.behind;
    }
}

/// A Poisson process of transfers.
#[derive(Debug)]
pub(crate) struct Arrivals {
    next: Instant,
    /// Mean time between two, in seconds.
    gap: f64,
    gaps: Rng,
    sizes: (Sizes, Rng),
    /// How many there were.
    pub(crate) count: u64,
}

impl Arrivals {
    fn new(now: Instant, per_second: f64, size: Sizes, gaps: Rng, sizes: Rng) -> Self {
        let mut arrivals = Self { next: now, gap: 1.0 / per_second, gaps, sizes: (size, sizes), count: 0 };
        arrivals.draw_next();
        arrivals
    }

    fn draw_next(&mut self) {
        self.next += Duration::from_secs_f64(self.gaps.exponential(self.gap));
    }

    /// The transfer that was due: its number from 0 and its size in bytes.
    pub(crate) fn take(&mut self) -> (u64, u64) {
        let (sizes, rng) = &mut self.sizes;
        let transfer = (self.count, sizes.draw(rng));
        self.count += 1;
        self.draw_next();
        transfer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn times(mut stream: Stream, n: usize) -> Vec<Instant> {
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(stream.next);
            stream.advance();
        }
        all
    }

    #[test]
    fn a_constant_rate_is_exact() {
        // 1000 bytes at 8 Mbit/s: one a millisecond.
        let rate = Rate::from_bits_per_sec(8_000_000);
        let stream = Stream::new(at(5), rate, 1000, None, Rng::stream(1, "a"));
        assert_eq!(times(stream, 4), [at(5), at(6), at(7), at(8)]);
        // A third of a nanosecond does not add up.
        let rate = Rate::from_bits_per_sec(3_000_000_000);
        let stream = Stream::new(at(0), rate, 1, None, Rng::stream(1, "a"));
        assert_eq!(times(stream, 3001)[3000], Instant::from_nanos(8000));
    }

    #[test]
    fn pauses_keep_what_was_left_of_an_interval() {
        // On 2.5 ms, off 10 ms, a packet per millisecond on: 0, 1, 2 | 3 − 2.5 = 0.5 after 12.5, …
        let on = Times::Constant(Duration::from_micros(2500));
        let off = Times::Constant(Duration::from_millis(10));
        let rate = Rate::from_bits_per_sec(8_000_000);
        let stream = Stream::new(at(0), rate, 1000, Some((on, off)), Rng::stream(1, "a"));
        assert_eq!(times(stream, 7), [at(0), at(1), at(2), at(13), at(14), at(25), at(26)]);
    }

    #[test]
    fn arrivals_come_as_often_as_stated() {
        let (gaps, sizes) = (Rng::stream(1, "gaps"), Rng::stream(1, "sizes"));
        let mut arrivals = Arrivals::new(at(0), 50.0, Sizes::Constant(7), gaps, sizes);
        while arrivals.next < at(100_000) {
            assert_eq!(arrivals.take().1, 7);
        }
        // 5000 expected, deviation 71.
        assert!((4700..5300).contains(&arrivals.count), "{}", arrivals.count);
    }
}
