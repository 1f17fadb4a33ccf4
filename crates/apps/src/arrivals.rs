//! Short transfers at random times: a Poisson process.

use crate::short;
use crate::workload::{Demand, Kind, Refusal, Start, Stop, Transport, Workload};
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
}

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
    /// Mean time between two, in seconds.
    gap: f64,
    gaps: Rng,
    sizes: (Sizes, Rng),
    count: u64,
}

impl Kind for Config {
    type Workload = Box<Arrivals>;
    type Invalid = Invalid;
    const MANY: bool = true;

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
        };
        arrivals.draw_next();
        Box::new(arrivals)
    }
    fn offered(&self) -> Option<f64> {
        Some(self.rate * self.size.mean() * 8.0)
    }
    fn opens(&self) -> Option<f64> {
        Some(self.rate)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let (often, size) = (number(self.rate), number(self.size.mean() / 1e3));
        format!("{often} transfers per second at random times, {size} kB on average")
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
        self.next
    }
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.next > now {
            return None;
        }
        let (sizes, rng) = &mut self.sizes;
        let demand = Demand::Open { transfer: self.count, bytes: sizes.draw(rng) };
        self.count += 1;
        self.draw_next();
        Some(demand)
    }
    fn stop(&mut self) -> Stop {
        // Transfers in progress continue.
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
        let config = Config { rate: 50.0, size: Sizes::Constant(7) };
        let mut arrivals = config.build(&Start { now: Instant::ZERO, over, streams: &streams });
        let end = Instant::ZERO + Duration::from_secs(100);
        while arrivals.next() < end {
            let number = arrivals.transfers();
            assert_eq!(arrivals.poll(arrivals.next()), Some(Demand::Open { transfer: number, bytes: 7 }));
        }
        // 5000 expected, deviation 71.
        assert!((4700..5300).contains(&arrivals.transfers()), "{}", arrivals.transfers());
        assert_eq!((arrivals.stop(), arrivals.poll(end)), (Stop::Over, None));
    }
}
