//! The state of a fade, for observers of a run: the link itself is not read.

use super::Sky;
use super::channel::Channel;
use core::fmt::Debug;
use skyhaul_base::Instant;

/// The state of a fading link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Attenuation in dB.
    pub attenuation: f64,
    /// State of the carrier, if the link has one.
    pub carrier: Option<CarrierReading>,
}

/// The state of a fading carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarrierReading {
    /// Es/N0 in dB.
    pub es_n0: f64,
    /// Spectral efficiency of the ModCod in use, in bits per symbol.
    pub efficiency: f64,
}

/// Computes the fade of a link once more, from the same random stream, for observers.
pub trait Gauge: Debug + Send {
    /// The state at a time, which must not decrease.
    fn at(&mut self, now: Instant) -> Reading;
}

impl<S: Sky> Gauge for Channel<S> {
    fn at(&mut self, now: Instant) -> Reading {
        while self.next() <= now && self.next() < Instant::MAX {
            self.step();
        }
        let carrier = self.signal().map(|(es_n0, efficiency)| CarrierReading { es_n0, efficiency });
        Reading { attenuation: self.attenuation(), carrier }
    }
}

#[cfg(test)]
mod tests {
    use crate::change::Change;
    use crate::fade::{Config, carrier, rain};
    use crate::rate;
    use skyhaul_base::{Duration, Instant, Rng};

    #[test]
    fn a_gauge_shows_the_rate_that_the_link_has() {
        let symbol_rate = 5e6;
        let carrier = carrier::Config {
            es_n0: 13.0,
            symbol_rate: Some(symbol_rate),
            reaction: Some(Duration::from_millis(550)),
            ..carrier::Config::default()
        };
        let fade = Config::Rain(rain::Config::temperate(carrier.clone()));
        let mut changed = 0;
        for seed in 0..40 {
            let stream = || Rng::stream(seed, "links.sat.fade");
            let (mut course, mut gauge) = (fade.course(stream()), fade.gauge(stream()));
            let mut link = 0.0;
            for second in 0..1800 {
                let now = Instant::ZERO + Duration::from_millis(1000 * second + 700);
                while course.next() <= now {
                    if let Change::Rate(rate::Config::Constant(rate)) = course.take() {
                        link = rate.bits_per_sec() as f64;
                        changed += 1;
                    }
                }
                let reading = gauge.at(now);
                let shown = reading.carrier.unwrap();
                assert!((shown.efficiency * symbol_rate - link).abs() < 1.0, "seed {seed}, second {second}");
                assert!((shown.es_n0 - carrier.es_n0_at(reading.attenuation)).abs() < 1e-12);
            }
        }
        // 40 first rates, one per seed, and the changes by rain.
        assert!(changed > 100, "{changed}");
    }
}
