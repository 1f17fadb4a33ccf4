//! Layers that both the allowed rate and the viewer's buffer must justify.
//!
//! SSVP adds a layer only if both available bandwidth and receiver buffering justify it (Papadimitriou, Tsaoussidis, "SSVP: a
//! congestion control scheme for real-time video streaming", Computer Networks 51, 2007). Its thresholds are not
//! published; those here are ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::amount::{Time, plain};
use skyhaul_base::{Duration, Instant};

/// When a layer is added and when the top one is dropped. The sender knows the viewer's buffer without delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LayerBuffer")]
pub struct LayerRule {
    /// Video that the viewer must have buffered before a layer is added, at the rate with that layer: "2 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub add: Duration,
    /// The top layer is dropped when the viewer has buffered less than this and the allowed rate is too low: "0.5 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub drop: Duration,
    /// Round trips during which the transport must allow the rate with another layer: 2 by default.
    pub hold: u32,
}

impl Default for LayerRule {
    fn default() -> Self {
        Self { add: Duration::from_secs(2), drop: Duration::from_millis(500), hold: 2 }
    }
}

/// What justifies a layer besides the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LayerConditions {
    /// Video in the viewer's buffer, s.
    pub(super) buffered_s: f64,
    /// The smoothed RTT of the transport.
    pub(super) round_trip: Duration,
}

/// The change of the layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LayerChange {
    /// Add a layer: the new rate, bit/s.
    Add(f64),
    /// Drop a layer: the new rate, bit/s.
    Drop(f64),
}

/// The rule, with the time since when it allows another layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layering {
    rule: LayerRule,
    /// Since when the transport allows another layer.
    since: Option<Instant>,
}

impl Layering {
    pub(super) fn new(rule: LayerRule) -> Self {
        Self { rule, since: None }
    }

    /// The transport allows `allowed` bit/s; of the `layers`, ascending rates, those up to `target` bit/s are sent.
    pub(super) fn step(
        &mut self,
        now: Instant,
        layers: &[u64],
        target: f64,
        allowed: f64,
        conditions: LayerConditions,
    ) -> Option<LayerChange> {
        let LayerConditions { buffered_s, round_trip } = conditions;
        let mut rates = layers.iter().map(|l| *l as f64);
        if allowed < target {
            self.since = None;
            let below = rates.rfind(|l| *l < target)?;
            return (buffered_s < self.rule.drop.as_secs_f64()).then_some(LayerChange::Drop(below));
        }
        let Some(next) = rates.find(|l| *l > target).filter(|l| allowed >= *l) else {
            self.since = None;
            return None;
        };
        let since = *self.since.get_or_insert(now);
        // The buffer was coded at the current rate: with another layer it lasts for less time.
        let enough = buffered_s * target / next >= self.rule.add.as_secs_f64();
        if now - since < round_trip * u64::from(self.rule.hold) || !enough {
            return None;
        }
        self.since = None;
        Some(LayerChange::Add(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [u64; 3] = [100_000, 200_000, 400_000];

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn step(l: &mut Layering, ms: u64, target: f64, allowed: f64, buffered_s: f64) -> Option<LayerChange> {
        let conditions = LayerConditions { buffered_s, round_trip: Duration::from_millis(550) };
        l.step(at(ms), &LAYERS, target, allowed, conditions)
    }

    #[test]
    fn a_layer_takes_the_rate_for_a_while_and_a_buffer_of_the_new_total() {
        let mut l = Layering::new(LayerRule::default());
        assert_eq!(step(&mut l, 0, 100e3, 200e3, 10.0), None, "not for long enough");
        assert_eq!(step(&mut l, 1099, 100e3, 200e3, 10.0), None);
        // 3.9 s at 100 kbit/s are 1.95 s at 200.
        assert_eq!(step(&mut l, 1100, 100e3, 200e3, 3.9), None, "not enough is buffered");
        assert_eq!(step(&mut l, 1200, 100e3, 200e3, 4.0), Some(LayerChange::Add(200e3)));
        assert_eq!(step(&mut l, 1210, 200e3, 1e6, 10.0), None, "the time begins anew");
        assert_eq!(step(&mut l, 2310, 200e3, 1e6, 10.0), Some(LayerChange::Add(400e3)));
        assert_eq!(step(&mut l, 9999, 400e3, 1e6, 10.0), None, "there is no more");
    }

    #[test]
    fn a_rate_that_falls_begins_the_time_anew() {
        let mut l = Layering::new(LayerRule::default());
        assert_eq!(step(&mut l, 0, 100e3, 200e3, 10.0), None);
        assert_eq!(step(&mut l, 1000, 100e3, 199e3, 10.0), None);
        assert_eq!(step(&mut l, 1500, 100e3, 200e3, 10.0), None);
        assert_eq!(step(&mut l, 2599, 100e3, 200e3, 10.0), None);
        assert_eq!(step(&mut l, 2600, 100e3, 200e3, 10.0), Some(LayerChange::Add(200e3)));
    }

    #[test]
    fn the_top_layer_goes_only_where_rate_and_buffer_are_short() {
        let mut l = Layering::new(LayerRule::default());
        assert_eq!(step(&mut l, 0, 400e3, 50e3, 0.5), None, "the buffer bridges it");
        assert_eq!(step(&mut l, 1, 400e3, 400e3, 0.0), None, "the rate is there");
        assert_eq!(step(&mut l, 2, 400e3, 50e3, 0.49), Some(LayerChange::Drop(200e3)), "one at a time");
        assert_eq!(step(&mut l, 3, 200e3, 50e3, 0.49), Some(LayerChange::Drop(100e3)));
        assert_eq!(step(&mut l, 4, 100e3, 50e3, 0.0), None, "the base stays");
    }
}
