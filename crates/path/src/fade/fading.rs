//! A fade in progress on a link: rate changes and losses.

use super::Sky;
use super::channel::Channel;
use crate::change::Change;
use crate::course::Course;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt::Debug;
use skyhaul_base::Instant;

/// Maximum samples without a change that are computed ahead. Then the current loss is reported once more, so that one
/// call takes bounded time.
const LOOKS: u32 = 600;

/// Changes of a directed link by a fade: a new rate when another ModCod takes effect, a new loss when the loss
/// changes. The initial rate and loss are changes at the start of the run.
#[derive(Debug)]
pub(super) struct Fading<S> {
    channel: Channel<S>,
    loss: f64,
    /// Known future changes, the next one first.
    known: VecDeque<(Instant, Change)>,
}

impl<S: Sky> Fading<S> {
    /// The changes by a channel, from the start of a run.
    pub(super) fn start(channel: Channel<S>) -> Box<dyn Course> {
        let mut fading = Self { channel, loss: 0.0, known: VecDeque::new() };
        fading.set_rate(Instant::ZERO);
        fading.lose(Instant::ZERO);
        fading.look_ahead();
        Box::new(fading)
    }

    /// Computes ahead until a change is known, or nothing more will change.
    fn look_ahead(&mut self) {
        let mut at = Instant::ZERO;
        for _ in 0..LOOKS {
            at = self.channel.next();
            if !self.known.is_empty() || at == Instant::MAX {
                return;
            }
            if self.channel.step() {
                self.set_rate(at);
            }
            self.lose(at);
        }
        if self.known.is_empty() {
            self.known.push_back((at, Change::Fade(self.loss)));
        }
    }

    /// Another ModCod is in use.
    fn set_rate(&mut self, at: Instant) {
        if let Some(rate) = self.channel.rate() {
            self.known.push_back((at, Change::Rate(rate.into())));
        }
    }

    /// The loss may have changed.
    fn lose(&mut self, at: Instant) {
        let loss = self.channel.loss();
        if loss != self.loss {
            self.loss = loss;
            self.known.push_back((at, Change::Fade(loss)));
        }
    }
}

impl<S: Sky> Course for Fading<S> {
    fn next(&self) -> Instant {
        self.known.front().map_or(Instant::MAX, |k| k.0)
    }

    fn take(&mut self) -> Change {
        let change = self.known.pop_front().map_or(Change::Fade(self.loss), |k| k.1);
        self.look_ahead();
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fade::{Config, Model, Series, carrier, modcod, rain, shadowing};
    use crate::rate;
    use crate::trace::End;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt::Write;
    use skyhaul_base::{Duration, Rng};

    /// 9 dB under a clear sky, 5 million symbols per second, and no rise of the noise.
    fn radio() -> carrier::Config {
        carrier::Config {
            es_n0: 9.0,
            symbol_rate: Some(5e6),
            reaction: Some(Duration::from_millis(550)),
            noise_rise: false,
            ..carrier::Config::default()
        }
    }
    fn series(points: &[(u64, f64)], carrier: carrier::Config) -> Config {
        let mut text = String::from("time_ms,attenuation_dB\n");
        for (t, a) in points {
            let _ = writeln!(text, "{t},{a}");
        }
        Config::Series(Series::read(&text, End::Hold, carrier).unwrap())
    }
    /// Milliseconds with rates in bit/s and losses.
    fn changes(fade: &Config, most: usize) -> Vec<(u64, Result<u64, f64>)> {
        let mut course = fade.course(Rng::stream(1, "links.sat.fade"));
        let mut seen = Vec::new();
        while seen.len() < most && course.next() < Instant::MAX {
            let at = course.next().as_nanos() / 1_000_000;
            seen.push((
                at,
                match course.take() {
                    Change::Rate(rate::Config::Constant(rate)) => Ok(rate.bits_per_sec()),
                    Change::Fade(loss) => Err(loss),
                    other => panic!("{other:?}"),
                },
            ));
        }
        seen
    }

    #[test]
    fn an_adaptive_carrier_follows_one_reaction_later_and_loses_what_comes_between() {
        // 8PSK 3/4 (7.91 dB, 2.228124 bits per symbol) under a clear sky. 5 dB of attenuation leave 4 dB: QPSK 3/5
        // (2.23 dB + 1 dB), and until then all is lost. 12 dB leave -3 dB: nothing works. 0.9 dB leave 8.1 dB: 8PSK 2/3.
        let points = [(0, 0.0), (10_000, 5.0), (20_000, 12.0), (30_000, 0.9), (40_000, 0.0)];
        let seen = changes(&series(&points, radio()), 99);
        let expected = [
            (0, Ok(11_140_620)),
            (0, Err(1e-7)),
            (10_000, Err(1.0)),
            (10_550, Ok(5_941_520)),
            (10_550, Err(1e-7)),
            (20_000, Err(1.0)),
            // The most robust, QPSK 1/4, is of no use either.
            (20_550, Ok(2_451_215)),
            (30_000, Err(1e-7)),
            (30_550, Ok(9_903_180)),
            (40_550, Ok(11_140_620)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_fixed_modcod_has_a_cliff() {
        let fixed = carrier::Config { modcod: "QPSK 2/3".into(), ..radio() };
        // 3.10 dB are needed: 5.9 dB of attenuation to spare.
        let points = [(0, 0.0), (1_000, 5.8), (2_000, 6.05), (3_000, 6.3), (4_000, 5.0)];
        let seen = changes(&series(&points, fixed), 99);
        assert_eq!(seen[0], (0, Ok(6_611_265)));
        assert_eq!((seen[1], seen[3], seen[4]), ((0, Err(1e-7)), (3_000, Err(1.0)), (4_000, Err(1e-7))));
        let (at, Err(loss)) = seen[2] else { panic!("{seen:?}") };
        assert!(at == 2_000 && (loss / modcod::loss(-0.15) - 1.0).abs() < 1e-9, "{loss}");
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn choices_come_into_effect_in_their_order() {
        // Two choices within one reaction.
        let points = [(0, 0.0), (100, 5.0), (200, 0.0)];
        let slow = carrier::Config { reaction: Some(Duration::from_millis(500)), ..radio() };
        let rates: Vec<_> = changes(&series(&points, slow), 99).into_iter().filter(|c| c.1.is_ok()).collect();
        assert_eq!(rates, [(0, Ok(11_140_620)), (600, Ok(5_941_520)), (700, Ok(11_140_620))]);
        let quick = carrier::Config { reaction: None, ..radio() };
        let seen = changes(&series(&points, quick), 99);
        // The loss of the old ModCod is reported, and at the same time that of the new one.
        assert_eq!(
            seen[2..],
            [(100, Err(1.0)), (100, Ok(5_941_520)), (100, Err(1e-7)), (200, Ok(11_140_620)),]
        );
    }

    #[test]
    fn without_symbols_the_rate_is_left_alone() {
        let carrier = carrier::Config { symbol_rate: None, ..radio() };
        let seen = changes(&series(&[(0, 0.0), (1_000, 20.0)], carrier), 99);
        assert_eq!(seen, [(0, Err(1e-7)), (1_000, Err(1.0))]);
    }

    #[test]
    fn rain_changes_rates_as_long_as_it_lasts_and_is_looked_at_in_bounded_time() {
        // It never rains: the current loss is reported again every 600 s.
        let dry = rain::Config { rain_probability: 1e-6, m: Some(-40.0), ..rain::Config::temperate(radio()) };
        let seen = changes(&dry.into(), 5);
        let seconds: Vec<_> = seen[2..].iter().map(|c| c.0 / 1_000).collect();
        assert_eq!(seconds, [600, 1200, 1800]);
        assert!(seen[2..].iter().all(|c| c.1 == Err(1e-7)));
        let wet = rain::Config { rain_probability: 0.9, ..rain::Config::temperate(radio()) };
        let seen = changes(&wet.into(), 200);
        assert!(seen.windows(2).all(|w| w[0].0 <= w[1].0));
        let rates = seen.iter().filter_map(|c| c.1.ok()).collect::<alloc::collections::BTreeSet<_>>();
        assert!(rates.len() > 2, "{rates:?}");
    }

    #[test]
    fn two_directions_with_one_stream_fade_together() {
        let a = Config::from(rain::Config { rain_probability: 0.9, ..rain::Config::temperate(radio()) });
        assert_eq!(changes(&a, 200), changes(&a, 200));
        assert!(a.shared());
    }

    #[test]
    fn shadowing_without_a_carrier_is_loss_alone() {
        let state = |name: &str, loss| shadowing::State {
            name: name.into(),
            mean: Duration::from_secs(1),
            attenuation: 0.0,
            deviation: 0.0,
            loss,
            then: alloc::collections::BTreeMap::new(),
        };
        // 1 − (1 − 0.1) is not 0.1 in binary fractions.
        let states = alloc::vec![state("good", 0.0), state("bad", 0.1)];
        let c = shadowing::Config { states, shared: true, carrier: None };
        assert!(c.validate().is_ok());
        let seen = changes(&c.into(), 100);
        assert!(seen.windows(2).all(|w| w[0].1 != w[1].1 && w[0].0 <= w[1].0));
        assert!(seen.iter().all(|c| c.1 == Err(0.0) || c.1 == Err(0.1)));
    }

    #[test]
    fn outage_is_where_the_most_robust_has_too_little() {
        // 9 dB + 2.35 dB of attenuation; with an adaptive carrier and one fixed to QPSK 1/4 alike.
        let adaptive = rain::Config::temperate(radio());
        let fixed = rain::Config::temperate(carrier::Config { modcod: "QPSK 1/4".into(), ..radio() });
        let expected = adaptive.exceeded(11.35);
        for config in [adaptive, fixed] {
            assert!((Config::from(config).outage() / expected - 1.0).abs() < 1e-9);
        }
    }
}
