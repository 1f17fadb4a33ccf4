//! Short transfers at random times: a Poisson process.

use crate::short;
use crate::workload::{Demand, Kind, Outcome, Refusal, Start, Stop, Transport, Workload};
use core::num::NonZeroU32;
use skyhaul_base::amount::{Frequency, plain};
use skyhaul_base::dist::{InvalidDistribution, Sizes};
use skyhaul_base::{Duration, Instant, Rng};

/// Short transfers at random times (a Poisson process), each over a new connection.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Mean arrival rate.
    #[serde(with = "plain::frequency")]
    #[schemars(with = "Frequency")]
    pub rate: f64,
    /// Size of a transfer.
    #[serde(deserialize_with = "short::deserialize")]
    #[schemars(with = "short::OrText<Sizes>")]
    pub size: Sizes,
    /// Largest number of connections that a source has open at a time, by default 65535: one per port of its address. Transfers
    /// that arrive while all are open wait, in their order; the time of a transfer begins with its arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<NonZeroU32>,
}

/// Ports of an address.
const PORTS: u32 = 65_535;

/// Why the configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Invalid(#[from] InvalidDistribution);

impl Refusal for Invalid {
    fn key(&self) -> String {
        short::within("size", &self.0)
    }
}

/// A Poisson process of transfers.
#[derive(Clone, Debug)]
pub struct Arrivals {
    next: Instant,
    /// Mean time from one arrival to the next, in seconds.
    gap: f64,
    gaps: Rng,
    sizes: (Sizes, Rng),
    count: u64,
    /// How many more connections may be opened now.
    free: u32,
}

impl Kind for Config {
    type Workload = Box<Arrivals>;
    type Invalid = Invalid;
    const MANY: bool = true;
    const PAGES: bool = true;

    fn resolve(&self, _: Transport) -> Result<Self, Invalid> {
        self.size.validate()?;
        Ok(self.clone())
    }
    fn build(&self, start: &Start<'_>) -> Box<Arrivals> {
        let mut arrivals = Arrivals {
            next: start.now,
            gap: 1.0 / self.rate,
            gaps: start.streams.named("arrivals"),
            sizes: (self.size.clone(), start.streams.named("sizes")),
            count: 0,
            free: self.most(),
        };
        arrivals.draw_next();
        Box::new(arrivals)
    }
    fn offered(&self) -> Option<f64> {
        Some(self.rate * self.size.mean() * 8.0)
    }
    fn transfer_size(&self) -> Option<f64> {
        Some(self.size.mean())
    }
    fn opens(&self) -> Option<f64> {
        Some(self.rate)
    }
    fn connections(&self) -> Option<u32> {
        Some(self.most())
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let (often, size) = (number(self.rate), number(self.size.mean() / 1e3));
        format!("{often} transfers per second at random times, {size} kB on average")
    }
}

impl Config {
    fn most(&self) -> u32 {
        self.connections.map_or(PORTS, NonZeroU32::get)
    }
}

impl Arrivals {
    fn draw_next(&mut self) {
        self.next += Duration::from_secs_f64(self.gaps.exponential(self.gap));
    }
}

impl Workload for Arrivals {
    #[inline]
    fn next(&self) -> Instant {
        // A transfer that has arrived waits until a connection is free.
        if self.free == 0 { Instant::MAX } else { self.next }
    }
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.next() > now {
            return None;
        }
        self.free -= 1;
        let (sizes, rng) = &mut self.sizes;
        let demand = Demand::Open { transfer: self.count, bytes: sizes.draw(rng) };
        self.count += 1;
        self.draw_next();
        Some(demand)
    }
    fn acknowledged(&mut self, _: Instant) -> Outcome {
        self.free += 1;
        Outcome::Next
    }
    fn stop(&mut self) -> Stop {
        // Transfers in progress continue; those that wait are given up.
        self.next = Instant::MAX;
        Stop::Over
    }
    fn is_finite(&self) -> bool {
        false
    }
    fn transfers(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Streams;

    #[test]
    fn arrivals_come_as_often_as_stated() {
        let (over, streams) = (Transport::Stream { segment: 1000 }, Streams::of(1, "flows.web[0]"));
        let config = Config { rate: 50.0, size: Sizes::Constant(7), connections: None };
        let mut arrivals = config.build(&Start { now: Instant::ZERO, over, streams: &streams });
        let end = Instant::ZERO + Duration::from_secs(100);
        while arrivals.next() < end {
            let number = arrivals.transfers();
            assert_eq!(arrivals.poll(arrivals.next()), Some(Demand::Open { transfer: number, bytes: 7 }));
        }
        // 5000 are expected, with a standard deviation of √5000 = 71.
        assert!((4700..5300).contains(&arrivals.transfers()), "{}", arrivals.transfers());
        assert_eq!((arrivals.stop(), arrivals.poll(end)), (Stop::Over, None));
    }

    #[test]
    fn transfers_without_a_connection_wait_in_their_order() {
        let (over, streams) = (Transport::Stream { segment: 1000 }, Streams::of(1, "flows.web[0]"));
        let start = Start { now: Instant::ZERO, over, streams: &streams };
        let config = |connections| Config { rate: 50.0, size: Sizes::Constant(7), connections };
        let (mut free, mut two) = (config(None).build(&start), config(NonZeroU32::new(2)).build(&start));
        let arrived: Vec<Instant> = (0..5)
            .map(|_| {
                let at = free.next();
                free.poll(at);
                at
            })
            .collect();
        let now = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(two.next(), arrived[0]);
        assert!(two.poll(now).is_some());
        assert!(two.poll(now).is_some());
        assert_eq!((two.poll(now), two.next(), two.transfers()), (None, Instant::MAX, 2));
        // The others begin late, but have arrived at the same times as without a limit.
        for (n, at) in (2..).zip(&arrived[2..]) {
            assert_eq!(two.acknowledged(now), Outcome::Next);
            assert_eq!(two.next(), *at);
            assert_eq!(two.poll(now), Some(Demand::Open { transfer: n, bytes: 7 }));
            assert_eq!(two.next(), Instant::MAX);
        }
    }
}
