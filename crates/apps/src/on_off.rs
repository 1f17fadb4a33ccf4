//! Data at a constant rate with pauses.

use crate::short;
use crate::stream::{self, Invalid, Stream};
use crate::workload::{Kind, Start, Transport};
use skyhaul_base::amount::{RateSpec, Size};
use skyhaul_base::dist::Times;

/// Data at a constant rate with pauses.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rate while on; see "cbr".
    pub rate: RateSpec,
    /// See "cbr".
    #[serde(default, with = "short::size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub packet: Option<u64>,
    /// Duration of the on periods; the source starts in one.
    #[serde(deserialize_with = "short::deserialize")]
    #[schemars(with = "short::OrText<Times>")]
    pub on: Times,
    /// Duration of the pauses.
    #[serde(deserialize_with = "short::deserialize")]
    #[schemars(with = "short::OrText<Times>")]
    pub off: Times,
}

impl Kind for Config {
    type Workload = Box<Stream>;
    type Invalid = Invalid;
    const DATAGRAMS: bool = true;

    fn packet(&self) -> Option<u64> {
        self.packet
    }
    fn resolve(&self, over: Transport) -> Result<Self, Invalid> {
        self.on.validate().map_err(Invalid::On)?;
        self.off.validate().map_err(Invalid::Off)?;
        if self.on.mean() <= 0.0 {
            return Err(Invalid::NeverOn);
        }
        let (rate, packet) = stream::resolve(self.rate, self.packet, over)?;
        Ok(Self { rate, packet, ..*self })
    }
    fn build(&self, start: &Start<'_>) -> Box<Stream> {
        Box::new(Stream::new(start, self.rate, self.packet, Some((self.on, self.off))))
    }
    fn offered(&self) -> Option<f64> {
        let (on, off) = (self.on.mean(), self.off.mean());
        Some(stream::bits(self.rate) as f64 * on / (on + off))
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let mbit = number(stream::bits(self.rate) as f64 / 1e6);
        let (on, off) = (number(self.on.mean()), number(self.off.mean()));
        format!("{mbit} Mbit/s while on, on average {on} s on and {off} s off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::{Duration, Rate};

    #[test]
    fn pauses_dilute_the_rate() {
        let second = Duration::from_secs(1);
        let app = Config {
            rate: RateSpec::Bits(Rate::from_bits_per_sec(1_000_000)),
            packet: Some(1000),
            on: Times::Exponential(second),
            off: Times::Constant(second + second + second),
        };
        assert_eq!(app.offered(), Some(250_000.0));
    }
}
