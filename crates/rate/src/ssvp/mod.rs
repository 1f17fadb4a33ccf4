//! SSVP, the scalable streaming video protocol (Papadimitriou and Tsaoussidis, Computer Networks 51, 2007): a reconstruction.
//!
//! Published facts: it runs over UDP, it is AIMD with gentle constants, and it controls the gap between evenly
//! spaced packets. The exact rule, the constants, the report format and the timers are not published. This version
//! uses RAP's rule for the gap, `gap' = C · gap / (C + gap)`, and the constants of GAIMD: the window `srtt / gap`
//! grows by alpha per RTT without loss, and the rate is multiplied by beta per RTT with loss. Results call it
//! `ssvp-reconstructed`. Layer adaptation, which needs the receiver's buffer, is done by the coder of the video.

mod control;
mod receiver;

pub(crate) use control::Control;
pub(crate) use receiver::Receiver;

use crate::option::{Feedback, Invalid, bits, bytes, optional_size};
use skyhaul_base::Rate;
use skyhaul_base::amount::{Count, RateSpec, Size, plain};

/// How a sender starts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SsvpStartup")]
pub enum Startup {
    /// Additive increase by alpha per round-trip time, as later.
    #[default]
    Linear,
    /// The inter-packet gap halves every round-trip time until the first loss, unless the application offers less than the rate.
    Double,
}

/// SSVP, reconstructed: results call it `ssvp-reconstructed`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SsvpSpec")]
pub struct Config {
    /// Packet size with headers; by default that of the application, or "1000 B".
    #[serde(with = "optional_size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub packet: Option<u64>,
    /// Increase of the window in packets per round-trip time. TCP-friendly values for beta = 0.875 are 0.31 (with
    /// timeouts, 4(1 − beta²)/3) and 0.20 (without, 3(1 − beta)/(1 + beta)).
    pub alpha: f64,
    /// Factor by which the rate is reduced when packets are lost.
    pub beta: f64,
    /// How a sender starts.
    pub startup: Startup,
    /// When the receiver reports: "rtt" or "packet".
    pub feedback: Feedback,
    /// Use ECN (RFC 3168): queues may mark packets instead of dropping them, and marked packets count as lost.
    pub ecn: bool,
    /// Largest number of datagrams queued at the sender; more are refused.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub queue: u64,
    /// Upper bound of the rate; by default twice that of the application, or "unlimited" if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<RateSpec>,
    /// Lower bound of the rate; "1 packets/s" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<RateSpec>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packet: None,
            alpha: 0.31,
            beta: 0.875,
            startup: Startup::Linear,
            feedback: Feedback::Rtt,
            ecn: false,
            queue: 64,
            max_rate: None,
            min_rate: None,
        }
    }
}

impl Config {
    /// Without defaults, with packets of `packet` bytes, for an application that offers so many bit/s.
    pub(crate) fn resolve(&self, packet: u64, offered: Option<f64>) -> Result<Self, Invalid> {
        if self.queue == 0 {
            return Err(Invalid::NoQueue);
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0 && self.alpha <= 1000.0) {
            return Err(Invalid::Range { key: "alpha", value: self.alpha, range: "above 0, such as 0.31" });
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(Invalid::Range {
                key: "beta",
                value: self.beta,
                range: "between 0 and 1, such as 0.875",
            });
        }
        let twice = offered.map(|bits| RateSpec::Bits(Rate::from_bits_per_sec((2.0 * bits) as u64)));
        let most = bits("max-rate", self.max_rate.or(twice).unwrap_or(RateSpec::Unlimited), packet)?;
        let one = RateSpec::Bits(Rate::from_bits_per_sec(8 * packet));
        // A slow application may offer less than half a packet per second.
        let least = match self.min_rate {
            Some(given) => bits("min-rate", given, packet)?,
            None if bytes(one) > bytes(most) => most,
            None => one,
        };
        if least == RateSpec::Unlimited || bytes(least) > bytes(most) {
            return Err(Invalid::Rate {
                key: "max-rate",
                problem: "the largest rate is below the smallest: write max-rate above min-rate",
            });
        }
        Ok(Self { packet: Some(packet), max_rate: Some(most), min_rate: Some(least), ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_rate_that_is_wrong() {
        let zero = Some(RateSpec::Bits(Rate::from_bits_per_sec(0)));
        let key = |config: Config| config.resolve(1000, None).map_err(|e| e.key());
        assert_eq!(key(Config { min_rate: zero, ..Config::default() }), Err("min-rate"));
        assert_eq!(key(Config { max_rate: zero, ..Config::default() }), Err("max-rate"));
    }
}
