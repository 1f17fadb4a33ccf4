//! The effect of the fade of a link.

use super::display::{percent, short};
use crate::resolved::Direction;
use serde::Serialize;
use skyhaul_path::fade;
use skyhaul_path::rate;
use std::fmt;

/// The fade of one direction of a link, in the long run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FadeCheck {
    /// Its description.
    pub what: String,
    /// The ModCods in use, from that under a clear sky downwards.
    pub modcods: Vec<ModCodCheck>,
    /// Mean rate over the whole time, including outages.
    pub mean_rate_bit_s: Option<f64>,
    /// Fraction of time in which no packet arrives.
    pub outage: f64,
    /// Fraction of packets of 188 bytes lost outside outages.
    pub loss: f64,
}

/// A ModCod in use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModCodCheck {
    /// Its name.
    pub name: String,
    /// The rate with it, if it sets one.
    pub rate_bit_s: Option<f64>,
    /// Fraction of time in which it is in use.
    pub share: f64,
}

impl FadeCheck {
    /// The fade of a direction of a link, if it has one.
    #[must_use]
    pub fn of(direction: &Direction) -> Option<Self> {
        direction.fade.as_ref().map(|fade| check(fade, &direction.rate))
    }
}

/// The effect of `fade` on a link of this rate.
pub(super) fn check(fade: &fade::Config, rate: &rate::Config) -> FadeCheck {
    let own = rate.mean().map(|r| r.bits_per_sec() as f64);
    let carrier = fade.carrier();
    let symbols = carrier.and_then(|c| c.symbol_rate);
    let outage = fade.outage();
    // Without reception under a clear sky no ModCod is ever of use.
    let mut before = if outage < 1.0 { 1.0 } else { 0.0 };
    let modcods: Vec<ModCodCheck> = carrier
        .map(fade::carrier::Config::ladder)
        .unwrap_or_default()
        .into_iter()
        .map(|(modcod, attenuation)| {
            let beyond = fade.exceeded(attenuation).min(before);
            let share = before - beyond;
            before = beyond;
            let rate_bit_s = symbols.map(|s| s * modcod.efficiency).or(own);
            ModCodCheck { name: modcod.name.into_owned(), rate_bit_s, share }
        })
        .collect();
    let mean = modcods.iter().map(|m| Some(m.share * m.rate_bit_s?)).sum::<Option<f64>>();
    let mean_rate_bit_s = if modcods.is_empty() { own } else { mean };
    FadeCheck { what: fade.words(), modcods, mean_rate_bit_s, outage, loss: fade.loss() }
}

impl fmt::Display for FadeCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        let mbit = |bits: f64| format!("{} Mbit/s", short(bits / 1e6));
        let named = |m: &ModCodCheck| match m.rate_bit_s {
            Some(bits) => format!("{} at {}", m.name, mbit(bits)),
            None => m.name.clone(),
        };
        match (self.modcods.first(), self.modcods.last()) {
            (Some(best), Some(last)) if self.modcods.len() > 1 => {
                write!(f, ", {} under a clear sky to {}", named(best), named(last))?;
            }
            (Some(only), _) => write!(f, ", always {}", named(only))?,
            _ => {}
        }
        if let (Some(mean), true) = (self.mean_rate_bit_s, !self.modcods.is_empty()) {
            write!(f, ", {} on average", mbit(mean))?;
        }
        if !self.modcods.is_empty() {
            write!(f, "; outage {}", percent(self.outage))?;
        }
        if self.loss > 0.0 {
            write!(f, "; loss {} of packets of 188 B", percent(self.loss))?;
        }
        Ok(())
    }
}
