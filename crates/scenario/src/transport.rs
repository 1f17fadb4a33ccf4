//! Transports of flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use skyhaul_apps::Transport as Over;
use skyhaul_rate::{Config, Invalid, ssvp, tfrc};

/// Headers of IPv4 and UDP (RFC 791, RFC 768), in bytes.
pub const UDP_HEADER: u32 = 28;

/// The transport. Short form: its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(rename = "TransportSpec")]
pub enum Transport {
    /// A connection with congestion control.
    #[default]
    #[serde(deserialize_with = "skyhaul_base::amount::no_other_keys")]
    Tcp,
    /// Datagrams without retransmission or reaction to losses.
    #[serde(deserialize_with = "skyhaul_base::amount::no_other_keys")]
    Udp,
    /// Rate-controlled datagrams without retransmission.
    Tfrc(tfrc::Config),
    /// Rate-controlled datagrams without retransmission.
    Ssvp(ssvp::Config),
}

impl Transport {
    /// The name in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Tfrc(_) => "tfrc",
            Self::Ssvp(_) => "ssvp",
        }
    }
    /// The transport of this name, with default options.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tcp" => Self::Tcp,
            "udp" => Self::Udp,
            "tfrc" => Self::Tfrc(tfrc::Config::default()),
            "ssvp" => Self::Ssvp(ssvp::Config::default()),
            _ => return None,
        })
    }
    /// Whether data goes in datagrams, without retransmission.
    #[must_use]
    pub fn sends_datagrams(&self) -> bool {
        *self != Self::Tcp
    }
    /// The rate control of datagrams, if any.
    #[must_use]
    pub fn rate(&self) -> Option<Config> {
        match *self {
            Self::Tcp | Self::Udp => None,
            Self::Tfrc(c) => Some(Config::Tfrc(c)),
            Self::Ssvp(c) => Some(Config::Ssvp(c)),
        }
    }
    /// Fills in the defaults, for an application with packets of `usual` bytes that offers this rate in bit/s.
    pub(crate) fn resolve(&self, usual: Option<u64>, offered: Option<f64>) -> Result<Self, Invalid> {
        let Some(rate) = self.rate() else { return Ok(*self) };
        Ok(match rate.resolve(usual, offered, UDP_HEADER)? {
            Config::Tfrc(c) => Self::Tfrc(c),
            Config::Ssvp(c) => Self::Ssvp(c),
        })
    }
    /// The transport as a workload sees it; full segments have `mss` bytes of payload.
    #[must_use]
    pub fn for_apps(&self, mss: u32) -> Over {
        match self {
            Self::Tcp => Over::Stream { segment: mss },
            Self::Udp => Over::Datagrams { header: UDP_HEADER, yields: false },
            Self::Tfrc(_) | Self::Ssvp(_) => Over::Datagrams { header: UDP_HEADER, yields: true },
        }
    }
}

/// A transport without options is written as its name.
impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        enum Table<'a> {
            Tfrc(&'a tfrc::Config),
            Ssvp(&'a ssvp::Config),
        }
        match self {
            Self::Tcp | Self::Udp => s.serialize_str(self.name()),
            Self::Tfrc(c) => Table::Tfrc(c).serialize(s),
            Self::Ssvp(c) => Table::Ssvp(c).serialize(s),
        }
    }
}
