//! A coder that adapts to the rate allowed by the transport, and the time that this takes.
//!
//! Papadimitriou, Tsaoussidis 2007 §3: after a loss the transport asks the coder to reduce its rate, which takes a time D_v,
//! an idle period of the sender. The paper gives neither a value of D_v nor a rule for the rate; both are ours.

use super::layers::{LayerChange, LayerConditions, LayerRule, Layering};
use crate::short;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::amount::{RateSpec, Time, plain};
use skyhaul_base::{Duration, Instant};

/// A coder that adapts its rate. Where the source is silent, times and fractions have our own defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Coder {
    /// Pause of the coder after a reduction of its rate: "0.48 s" by default, the time of 12 frames.
    #[serde(default = "usual_delay", with = "plain::time")]
    #[schemars(with = "Time")]
    pub delay: Duration,
    /// Fraction of the transport's allowed rate that the coder uses: 0.95 by default.
    #[serde(default = "usual_share")]
    pub share: f64,
    /// The lowest rate, as a fraction of the film's: 0.2 by default.
    #[serde(default = "usual_least")]
    pub least: f64,
    /// The highest rate, as a fraction of the film's: 1 by default.
    #[serde(default = "usual_most")]
    pub most: f64,
    /// Smallest relative change of the rate: 0.05 by default.
    #[serde(default = "usual_dead")]
    pub dead: f64,
    /// Relative size of an increase: 0.1 by default. With `layers` the rate rises to the next layer instead.
    #[serde(default = "usual_rise")]
    pub rise: f64,
    /// Time from a change of the rate to the next increase: "1 s" by default.
    #[serde(default = "usual_every", with = "plain::time")]
    #[schemars(with = "Time")]
    pub every: Duration,
    /// The available rates, ascending; any by default.
    #[serde(default, with = "short::rates", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<RateSpec>")]
    pub layers: Vec<u64>,
    /// With `layers`: start at the lowest layer, add one when both the rate and the viewer's buffer justify it, drop one at a
    /// time; `least`, `dead`, `rise` and `every` then have no effect. Without it the rate alone selects the layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Box<LayerRule>>,
}

fn usual_delay() -> Duration {
    Duration::from_millis(480)
}
fn usual_share() -> f64 {
    0.95
}
fn usual_least() -> f64 {
    0.2
}
fn usual_most() -> f64 {
    1.0
}
fn usual_dead() -> f64 {
    0.05
}
fn usual_rise() -> f64 {
    0.1
}
fn usual_every() -> Duration {
    Duration::from_secs(1)
}

impl Default for Coder {
    fn default() -> Self {
        Self {
            delay: usual_delay(),
            share: usual_share(),
            least: usual_least(),
            most: usual_most(),
            dead: usual_dead(),
            rise: usual_rise(),
            every: usual_every(),
            layers: Vec::new(),
            buffer: None,
        }
    }
}

/// Why a coder is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum InvalidCoder {
    /// An invalid fraction: the key and the value.
    #[error("{1}: write a number above 0, 1 at most")]
    Share(&'static str, f64),
    /// The highest rate is below the lowest, or more than ten times the film's: the value of `most`.
    #[error("{0}: write a number not below least, 10 at most")]
    Most(f64),
    /// An invalid relative change: the key and the value.
    #[error("{1}: write a number from 0 to 1")]
    Change(&'static str, f64),
    /// Rates that are not ascending.
    #[error("write ascending rates, such as [\"80 kbit/s\", \"160 kbit/s\", \"320 kbit/s\"]")]
    Layers,
    /// A rate above the highest; both in bit/s.
    #[error(
        "{0} bit/s exceeds {1} bit/s, the film's rate times most: write lower rates, or a higher rate or most"
    )]
    Layer(u64, f64),
    /// A buffer without layers.
    #[error("there are no layers to add: write layers too, such as [\"160 kbit/s\", \"320 kbit/s\"]")]
    Unlayered,
    /// A layer would be dropped with as much video buffered as is needed to add it.
    #[error("drop is not below add: write a shorter time, such as \"0.5 s\"")]
    Drop,
    /// An excessive time of the buffer.
    #[error("too long: write times up to an hour, such as \"2 s\", and at most 1000 round trips for hold")]
    Buffer,
    /// An excessive pause.
    #[error("longer than an hour: write a time such as \"0.48 s\"")]
    Delay,
}

impl InvalidCoder {
    /// The key within the coder.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Share(key, _) | Self::Change(key, _) => key,
            Self::Most(_) => "most",
            Self::Layers | Self::Layer(..) => "layers",
            Self::Delay => "delay",
            Self::Unlayered | Self::Drop | Self::Buffer => "buffer",
        }
    }
}

impl Coder {
    pub(super) fn validate(&self) -> Result<(), InvalidCoder> {
        for (key, share) in [("share", self.share), ("least", self.least)] {
            if !(share > 0.0 && share <= 1.0) {
                return Err(InvalidCoder::Share(key, share));
            }
        }
        if !(self.least..=10.0).contains(&self.most) {
            return Err(InvalidCoder::Most(self.most));
        }
        for (key, change) in [("dead", self.dead), ("rise", self.rise)] {
            if !(0.0..=1.0).contains(&change) {
                return Err(InvalidCoder::Change(key, change));
            }
        }
        if self.layers.windows(2).any(|w| w[1] <= w[0]) {
            return Err(InvalidCoder::Layers);
        }
        if let Some(buffer) = &self.buffer {
            let LayerRule { add, drop, hold } = **buffer;
            if self.layers.is_empty() {
                return Err(InvalidCoder::Unlayered);
            }
            if add > Duration::from_secs(3600) || hold > 1000 {
                return Err(InvalidCoder::Buffer);
            }
            if drop >= add {
                return Err(InvalidCoder::Drop);
            }
        }
        if self.delay > Duration::from_secs(3600) { Err(InvalidCoder::Delay) } else { Ok(()) }
    }
    /// Refuses rates that a video of `nominal` bit/s never has.
    pub(super) fn suits(&self, nominal: f64) -> Result<(), InvalidCoder> {
        let most = self.most * nominal;
        // The rate of a film is a mean over frames of whole bytes, so it can miss a round number slightly.
        let above = self.layers.iter().find(|l| **l as f64 > most * (1.0 + 1e-6));
        above.map_or(Ok(()), |l| Err(InvalidCoder::Layer(*l, most)))
    }
}

/// The running coder. Rates are in bit/s.
#[derive(Clone, Debug)]
pub(super) struct Coding {
    rule: Coder,
    /// Rate of the film.
    nominal: f64,
    /// Current rate of the coder.
    target: f64,
    paused_until: Instant,
    /// Time of the last change of the rate, or of the start.
    changed: Instant,
    layering: Option<Layering>,
}

impl Coding {
    pub(super) fn new(rule: Coder, nominal: f64, now: Instant) -> Self {
        let layering = rule.buffer.as_deref().copied().map(Layering::new);
        let mut coding =
            Self { rule, nominal, target: nominal, paused_until: Instant::ZERO, changed: now, layering };
        // Layers that have to be justified start with the lowest.
        let first = if coding.layering.is_some() { 0.0 } else { coding.bounded(nominal) };
        coding.target = coding.snapped(first);
        coding
    }
    pub(super) fn target(&self) -> f64 {
        self.target
    }
    /// Whether the viewer's buffer matters.
    pub(super) fn asks_the_viewer(&self) -> bool {
        self.layering.is_some()
    }
    /// Whether the coder pauses, so that nothing is emitted.
    pub(super) fn is_pausing(&self, now: Instant) -> bool {
        now < self.paused_until
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.clamp(self.rule.least * self.nominal, self.rule.most * self.nominal)
    }
    /// The highest layer not above `rate`, or the lowest.
    fn snapped(&self, rate: f64) -> f64 {
        let layers = &self.rule.layers;
        let below = layers.iter().rev().find(|l| **l as f64 <= rate);
        below.or(layers.first()).map_or(rate, |l| *l as f64)
    }

    /// The transport allows this rate.
    pub(super) fn allowed(&mut self, now: Instant, allowed: f64, conditions: LayerConditions) {
        if let Some(layering) = &mut self.layering {
            let change =
                layering.step(now, &self.rule.layers, self.target, self.rule.share * allowed, conditions);
            match change {
                Some(LayerChange::Add(rate)) => self.target = rate,
                Some(LayerChange::Drop(rate)) => {
                    self.target = rate;
                    self.paused_until = self.paused_until.max(now + self.rule.delay);
                }
                None => {}
            }
            return;
        }
        let Self { target, rule: Coder { share, dead, rise, every, delay, .. }, .. } = *self;
        let wanted = self.snapped(self.bounded(share * allowed));
        if wanted < target * (1.0 - dead) {
            self.target = wanted;
            self.paused_until = self.paused_until.max(now + delay);
            self.changed = now;
        } else if wanted > target * (1.0 + dead) && now - self.changed > every {
            // With layers, the next one at most.
            let next = self.rule.layers.iter().map(|l| *l as f64).find(|l| *l > target);
            self.target = wanted.min(next.unwrap_or(target * (1.0 + rise)));
            self.changed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn down_at_once_with_a_pause_and_up_in_steps_without() {
        let mut c = Coding::new(Coder::default(), 320e3, at(0));
        c.allowed(at(10), 1e6, LayerConditions::default());
        assert_eq!((c.target(), c.is_pausing(at(10))), (320e3, false), "no more than the film has");
        c.allowed(at(100), 200e3, LayerConditions::default());
        assert_eq!((c.target(), c.is_pausing(at(579)), c.is_pausing(at(580))), (190e3, true, false));
        // Within 5 % nothing changes.
        c.allowed(at(200), 191e3, LayerConditions::default());
        assert_eq!((c.target(), c.is_pausing(at(580))), (190e3, false));
        c.allowed(at(300), 1.0, LayerConditions::default());
        assert_eq!((c.target(), c.is_pausing(at(779))), (64e3, true), "the lowest");
        c.allowed(at(1300), 1e6, LayerConditions::default());
        assert_eq!(c.target(), 64e3, "a second has to pass");
        c.allowed(at(1301), 1e6, LayerConditions::default());
        assert!((c.target() - 70.4e3).abs() < 1e-6 && !c.is_pausing(at(1301)));
        let mut steps = 0;
        for t in 1302..30_000 {
            let before = c.target();
            c.allowed(at(t), 1e6, LayerConditions::default());
            steps += u32::from(c.target() != before);
        }
        // 70.4 · 1.1^16 exceeds 320; what remains at the top is within 5 %.
        assert!((14..=16).contains(&steps) && c.target() > 304e3, "{steps} {}", c.target());
    }

    #[test]
    fn layers_are_the_only_rates() {
        let coder = Coder { layers: vec![80_000, 160_000, 240_000, 320_000], ..Coder::default() };
        let mut c = Coding::new(coder, 320e3, at(0));
        c.allowed(at(0), 250e3, LayerConditions::default());
        assert_eq!(c.target(), 160e3);
        c.allowed(at(5), 10e3, LayerConditions::default());
        assert_eq!(c.target(), 80e3);
        for (t, target) in [(1006, 160e3), (2007, 240e3), (3008, 320e3), (4009, 320e3)] {
            c.allowed(at(t), 1e6, LayerConditions::default());
            assert_eq!(c.target(), target);
        }
    }

    #[test]
    fn layers_that_the_viewer_has_to_justify() {
        let buffered = |buffered_s| LayerConditions { buffered_s, round_trip: Duration::from_millis(550) };
        let coder = Coder { layers: vec![80_000, 160_000], buffer: Some(Box::default()), ..Coder::default() };
        let mut c = Coding::new(coder, 320e3, at(0));
        assert_eq!(c.target(), 80e3, "from the lowest on");
        c.allowed(at(0), 1e6, buffered(4.0));
        c.allowed(at(1100), 1e6, buffered(3.9));
        assert_eq!(c.target(), 80e3);
        c.allowed(at(1101), 1e6, buffered(4.0));
        assert_eq!((c.target(), c.is_pausing(at(1101))), (160e3, false));
        c.allowed(at(1200), 1e3, buffered(0.6));
        assert_eq!(c.target(), 160e3, "the buffer bridges it");
        c.allowed(at(1300), 1e3, buffered(0.4));
        assert_eq!((c.target(), c.is_pausing(at(1779)), c.is_pausing(at(1780))), (80e3, true, false));
    }

    #[test]
    fn coders_without_sense() {
        let refused = |c: Coder| c.validate().unwrap_err().key();
        let usual = Coder::default();
        assert_eq!(refused(Coder { share: 0.0, ..usual.clone() }), "share");
        assert_eq!(refused(Coder { least: f64::NAN, ..usual.clone() }), "least");
        assert_eq!(refused(Coder { most: 0.1, ..usual.clone() }), "most");
        assert_eq!(refused(Coder { dead: -0.1, ..usual.clone() }), "dead");
        assert_eq!(refused(Coder { layers: vec![2, 1], ..usual.clone() }), "layers");
        assert_eq!(refused(Coder { delay: Duration::from_secs(4000), ..usual.clone() }), "delay");
        let buffer = Some(Box::<LayerRule>::default());
        assert_eq!(refused(Coder { buffer: buffer.clone(), ..usual.clone() }), "buffer", "no layers");
        let layered = Coder { layers: vec![1, 2], buffer, ..usual.clone() };
        assert_eq!(layered.validate(), Ok(()));
        let late = LayerRule { drop: Duration::from_secs(2), ..LayerRule::default() };
        assert_eq!(refused(Coder { buffer: Some(Box::new(late)), ..layered.clone() }), "buffer");
        let long = LayerRule { hold: 1001, ..LayerRule::default() };
        assert_eq!(refused(Coder { buffer: Some(Box::new(long)), ..layered }), "buffer");
        assert_eq!(usual.validate(), Ok(()));
    }
}
