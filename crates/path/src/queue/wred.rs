//! RED with separate thresholds for each class, as routers use it for the drop precedences of assured forwarding
//! [RFC 2597].
//!
//! Both classes count in one average; low priority is marked or dropped at shorter averages. Service is in order of
//! arrival. See [`super::red`] for the algorithm. Each arrival draws once.

use super::limit::Limit;
use super::model::{Key, Model};
use super::options::{self, Invalid};
use super::red::{self, Average, Class, Curve, Red, Thresholds};
use super::waiting::Waiting;
use crate::param::probability;
use alloc::boxed::Box;
use alloc::vec::Vec;

skyhaul_base::options! {
    /// As "red", but marks or drops low priority at shorter queues.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Lower threshold of the average queue; a sixth of the limit by default, 5 packets without one.
        min_threshold: Option<u64> as Count = None,
        /// Upper threshold of the average queue; half the limit by default, 15 packets without one.
        max_threshold: Option<u64> as Count = None,
        /// Probability at the upper threshold; 0.1 by default.
        max_probability: f64 as Probability = 0.1,
        /// Lower threshold of low priority; a twelfth of the limit by default, 2.5 packets without one.
        low_min_threshold: Option<u64> as Count = None,
        /// Upper threshold of low priority; a quarter of the limit by default, 7.5 packets without one.
        low_max_threshold: Option<u64> as Count = None,
        /// Probability for low priority at its upper threshold; 0.1 by default.
        low_max_probability: f64 as Probability = 0.1,
        /// Weight of the current queue length in the average; 0.002 by default.
        weight: f64 as Probability = 0.002,
        /// "Gentle": above the upper threshold the probability rises linearly to 1 at twice the threshold, instead of at
        /// once; true by default.
        gentle: bool = true,
        /// Typical packet size; 1000 B by default.
        packet_size: u64 as Size = 1000,
        /// Mark ECN-capable packets instead of dropping them; true by default.
        ecn: bool = true,
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::MIN_THRESHOLD,
        options::MAX_THRESHOLD,
        options::MAX_PROBABILITY,
        options::LOW_MIN_THRESHOLD,
        options::LOW_MAX_THRESHOLD,
        options::LOW_MAX_PROBABILITY,
        options::WEIGHT,
        options::GENTLE,
        options::PACKET_SIZE,
        options::ECN,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<Red<P>>;
    type Invalid = Invalid;

    fn validate(&self, limit: Limit) -> Result<(), Invalid> {
        let keys = (options::MIN_THRESHOLD, options::MAX_THRESHOLD);
        self.high().validate(keys, limit, self.packet_size)?;
        let keys = (options::LOW_MIN_THRESHOLD, options::LOW_MAX_THRESHOLD);
        self.low().validate(keys, limit, self.packet_size)?;
        probability(options::LOW_MAX_PROBABILITY.name, self.low_max_probability)?;
        red::validate(self.max_probability, self.weight, self.packet_size)
    }
    fn build<P>(&self) -> Box<Red<P>> {
        let class = |thresholds, p| Class::new(thresholds, Curve::new(p, self.gentle));
        Box::new(Red {
            waiting: Waiting::new(false),
            average: Average::new(self.weight, self.packet_size),
            class: class(self.high(), self.max_probability),
            low: Some(class(self.low(), self.low_max_probability)),
            ecn: self.ecn,
        })
    }
    fn marks(&self) -> bool {
        self.ecn
    }
    fn words(&self) -> &'static str {
        "random early detection, probes dropped before data"
    }
    fn derived(&self, limit: Limit) -> Vec<(&'static str, f64)> {
        let keys = (options::MIN_THRESHOLD, options::MAX_THRESHOLD);
        let low = (options::LOW_MIN_THRESHOLD, options::LOW_MAX_THRESHOLD);
        let high = self.high().derived(keys, limit, self.packet_size);
        high.chain(self.low().derived(low, limit, self.packet_size)).collect()
    }
}

impl Config {
    fn high(&self) -> Thresholds {
        Thresholds { min: self.min_threshold, max: self.max_threshold, part: 1.0 }
    }
    fn low(&self) -> Thresholds {
        Thresholds { min: self.low_min_threshold, max: self.low_max_threshold, part: 0.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limit::Load;
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;

    /// How many of 10000 arrivals that find 8 packets are lost: thresholds 5 and 15, of low priority 2 and 10.
    fn lost(packet: fn(u32) -> Pkt) -> f64 {
        let mut q = Bench::of(Config {
            min_threshold: Some(5),
            max_threshold: Some(15),
            low_min_threshold: Some(2),
            low_max_threshold: Some(10),
            weight: 1.0,
            ..Config::default()
        });
        let mut id = 0;
        while q.len() < 8 {
            q.arrive(ms(0), packet(id));
            id += 1;
        }
        q.lost.clear();
        for k in 0..10_000 {
            if q.arrive(ms(1), packet(id + k)) {
                q.leave(ms(1));
            }
        }
        q.lost.len() as f64
    }

    #[test]
    fn each_class_meets_its_own_thresholds() {
        // As in RED the rate is 1/(mean gap): with 1/p = N it is 2/N. Data: 0.1 · 3/10 = 0.03, N = 33.3; the gap is uniform on
        // 1 to 32 and then 33 with what is left: mean 16.67. Probes: 0.1 · 6/8 = 0.075, N = 13.3, mean 6.69.
        let mean = |p: f64| {
            // Directly: the sum over n of the probability that the first n packets pass.
            let (mut left, mut sum, mut count) = (1.0, 0.0, 0.0);
            while left > 1e-12 {
                sum += left;
                count += 1.0;
                let rest = 1.0 - count * p;
                left *= if rest > 0.0 { (1.0 - p / rest).max(0.0) } else { 0.0 };
            }
            sum
        };
        let (data, probes) = (lost(data), lost(probe));
        // The deviation of the gap is below its mean, so that of the number is below sqrt(number).
        let near = |n: f64, p: f64| (n - 10_000.0 / mean(p)) / skyhaul_base::math::sqrt(n);
        assert!(near(data, 0.03).abs() < 5.0, "{data}");
        assert!(near(probes, 0.075).abs() < 5.0, "{probes}");
    }

    #[test]
    fn low_priority_has_half_the_usual_thresholds() {
        let config = Config::default();
        let load = Load::most(Limit::Packets(60), 0);
        assert_eq!(config.high().of(load, 1000), (10.0, 30.0));
        assert_eq!(config.low().of(load, 1000), (5.0, 15.0));
        assert!(config.validate(Limit::Packets(60)).is_ok());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        use crate::param::Refusal as _;
        let key = |config: Config| config.validate(Limit::Packets(60)).unwrap_err().key();
        let usual = Config::default();
        assert_eq!(key(Config { low_min_threshold: Some(15), ..usual }), "low-min-threshold");
        assert_eq!(key(Config { min_threshold: Some(30), ..usual }), "min-threshold");
        assert_eq!(key(Config { low_max_probability: 2.0, ..usual }), "low-max-probability");
    }
}
