//! Kinds of links, and the settings that suit them.

use serde::Deserialize;
use skyhaul_base::{Duration, Rate};

/// A kind of link: its rate is known, does not change, and belongs to the gateway alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum LinkProfile {
    /// A geostationary satellite.
    Geo,
    /// A satellite of medium orbit.
    Meo,
}

impl TryFrom<String> for LinkProfile {
    type Error = String;
    fn try_from(word: String) -> Result<Self, String> {
        Ok(match word.as_str() {
            "geo" => Self::Geo,
            "meo" => Self::Meo,
            "leo" => {
                return Err("the rate of a LEO link changes, and a profile is for one rate: leave profile out, and write \
                            cc = \"bbr\""
                    .into());
            }
            // The wire formats of probes are called profiles, too ([`skyhaul_wire::Profile`]).
            "option" | "compact" | "paper" | "off" => {
                return Err(format!(
                    "{word:?} says how probes are marked: write probe-mark = {word:?}; a profile is a kind of link, \"geo\" or \
                     \"meo\""
                ));
            }
            _ => return Err(format!("{word:?} is no kind of link: write \"geo\" or \"meo\"")),
        })
    }
}

/// Congestion window, in bandwidth-delay products. More than one is harmless, since pacing at the link's rate keeps what exceeds the product
/// in the gateway.
const WINDOW: f64 = 2.0;
/// Receive and send buffer, in bandwidth-delay products. Each lost retransmission of a segment holds up the data after it for another
/// round trip, and buffers must take that data.
const BUFFER: f64 = 8.0;
/// Least size of a buffer, bytes: the other direction of the link may be faster.
const LEAST_BUFFER: u64 = 8 << 20;
/// Largest size of a buffer, bytes.
const MOST_BUFFER: u64 = 64 << 20;
/// Least congestion window, segments.
const LEAST_WINDOW: f64 = 16.0;
/// The largest retransmission timeout, RTTs.
const RTO_RTTS: u64 = 8;
/// Lower bound of the largest retransmission timeout: the file may state an RTT that is too small.
const LEAST_RTO: Duration = Duration::from_secs(3);
/// The least and the greatest RTT that a file may state.
pub(crate) const RTTS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(10)];

/// The settings of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// RTT of the link.
    pub rtt: Duration,
    /// The constant congestion window, segments.
    pub window: f64,
    /// Receive and send buffer, bytes.
    pub buffer: u64,
    /// The largest retransmission timeout. The rate is known and losses are no congestion, so timeouts need not back off far, and a
    /// connection goes on soon after an outage.
    pub rto_max: Duration,
}

impl LinkProfile {
    /// Name of the kind in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Geo => "geo",
            Self::Meo => "meo",
        }
    }
    /// The RTT if the file states none: among the longest of its kind, since a window that is too small would not fill the link.
    const fn rtt(self) -> Duration {
        match self {
            Self::Geo => Duration::from_millis(600),
            Self::Meo => Duration::from_millis(200),
        }
    }
    /// The settings for a link of this rate, with packets of at most `mtu` bytes.
    pub(crate) fn settings(self, rate: Rate, rtt: Option<Duration>, mtu: u16) -> LinkSettings {
        let rtt = rtt.unwrap_or_else(|| self.rtt());
        let product = rate.bits_per_sec() as f64 / 8.0 * rtt.as_secs_f64();
        let mebibytes = (BUFFER * product / f64::from(1 << 20)).ceil() as u64;
        LinkSettings {
            rtt,
            window: (WINDOW * product / f64::from(mtu)).ceil().max(LEAST_WINDOW),
            buffer: mebibytes.saturating_mul(1 << 20).clamp(LEAST_BUFFER, MOST_BUFFER),
            rto_max: (rtt * RTO_RTTS).max(LEAST_RTO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use skyhaul_cc::Config as Control;

    fn parse(more: &str) -> Result<Config, String> {
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        Config::parse("g.toml", &text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_profile_sets_what_a_link_needs_and_keys_override_it() {
        let c = parse("profile = \"geo\"\nrate = \"10 Mbit/s\"\n").unwrap();
        let tcp = &c.endpoint.tcp;
        // The product of 10 Mbit/s and 600 ms is 750 kB.
        let Control::ScpsLike(cc) = &c.endpoint.cc else { panic!("{:?}", c.endpoint.cc) };
        assert_eq!(cc.window, Some(1000.0));
        assert_eq!((tcp.receive_buffer, tcp.send_buffer), (8 << 20, 8 << 20));
        assert!(!tcp.receive_autotuning && !tcp.send_autotuning);
        assert_eq!(tcp.rto.max, Duration::from_millis(4800));
        // Fifteen timeouts of 4.8 s would end a connection before `limits.stuck` does.
        assert!(tcp.rto.max * u64::from(tcp.max_retransmissions) > c.limits.stuck.0, "{tcp:?}");

        let c = parse(
            "profile = \"meo\"\nrate = \"100 Mbit/s\"\nrtt = \"150 ms\"\ncc = \"bbr\"\nrwnd = \"2 MiB\"\n\
             endpoint = { send-autotuning = true, rto-max = \"60 s\" }\n",
        )
        .unwrap();
        let tcp = &c.endpoint.tcp;
        assert_eq!(c.endpoint.cc.name(), "bbr");
        assert_eq!((tcp.receive_buffer, tcp.send_buffer), (2 << 20, 15 << 20));
        assert!(!tcp.receive_autotuning && tcp.send_autotuning);
        assert_eq!((tcp.rto.max, tcp.max_retransmissions), (Duration::from_secs(60), 15));
    }

    #[test]
    fn a_profile_that_says_too_little_is_refused() {
        for (more, expected) in [
            (
                "profile = \"geo\"\n",
                "satellite.rate: profile = \"geo\" needs the rate of the link: write rate =",
            ),
            ("profile = \"geo\"\nrate = \"unlimited\"\n", "satellite.rate: profile"),
            (
                "profile = \"compact\"\n",
                "satellite.profile: \"compact\" says how probes are marked: write probe-mark =",
            ),
            ("profile = \"leo\"\n", "satellite.profile: the rate of a LEO link changes"),
            (
                "profile = \"heo\"\n",
                "satellite.profile: \"heo\" is no kind of link: write \"geo\" or \"meo\"",
            ),
            ("rtt = \"600 ms\"\n", "satellite.rtt: only a profile needs it"),
            (
                "profile = \"geo\"\nrate = \"9 Mbit/s\"\nrtt = \"11 s\"\n",
                "satellite.rtt: write a round-trip time",
            ),
            ("probe-mark = \"geo\"\n", "satellite.probe-mark: unknown variant"),
        ] {
            let e = parse(more).unwrap_err();
            assert!(e.starts_with(&format!("g.toml: {expected}")) && !e.contains('\n'), "{more}: {e}");
        }
    }
}
