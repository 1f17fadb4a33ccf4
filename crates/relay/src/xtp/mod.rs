//! A transport between two gateways with the mechanisms of XTP 4.0: a rate and a burst instead of a congestion
//! window, 64-bit sequence numbers and window, acknowledgements on request, immediate negative acknowledgements,
//! and selective retransmission or go-back-N. It resembles XTP but does not interoperate with it: it has neither
//! XTP's format nor its multicast and other paradigms. Losses never change the rate, so at a rate above that of the
//! link losses never end, unless a guard is on.
//!
//! Data flows in one direction. A stream ends as in XTP: the last packet has `wclose`, the receiver answers with
//! `rclose` once it has everything, and `end` follows when the other direction has closed too.

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::{Counters, Sender};

use skyhaul_base::Duration;
use skyhaul_base::amount::{Count, RateSpec, plain};

/// Header bytes of network and transport on each packet: 20 of IPv4 and 32 of XTP 4.0.
pub const HEADER: u32 = 52;

/// Maximum ranges in a report, which fit into a packet of 1500 bytes.
const MOST_SPANS: usize = 80;

/// Timeout of sync requests before an RTT is known, and first interval at which a receiver repeats that it has closed.
const FIRST_WAIT: Duration = Duration::from_secs(3);

/// Retransmission of lost data.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "XtpRepair")]
pub enum Repair {
    /// Only missing data is retransmitted.
    #[default]
    Selective,
    /// Everything from the first missing byte on is retransmitted; the receiver discards out-of-order data.
    GoBackN,
}

/// Rate control between two gateways, with the mechanisms of XTP 4.0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "XtpSpec")]
pub struct Config {
    /// Rate of packets including headers; required. Packets above the rate of the link are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Burst: packets sent at once.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub burst: u64,
    /// Retransmission of lost data.
    pub repair: Repair,
    /// The receiver reports a gap immediately instead of only on request.
    pub fastnak: bool,
    /// Number of unanswered sync requests in a row after which the peer is given up.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub retry: u64,
    /// Halve the rate after a round trip in which more than a tenth of the packets were lost; otherwise increase it by
    /// one packet per round trip, up to `rate`. Requires selective repair, which reports losses.
    #[serde(skip_serializing_if = "is_false")]
    pub aimd_guard: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde wants")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Default for Config {
    fn default() -> Self {
        Self { rate: None, burst: 10, repair: Repair::Selective, fastnak: true, retry: 6, aimd_guard: false }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The rate is missing.
    #[error(
        "missing: nothing but a rate limits this transport; write that of the leg, such as rate = \"9.5 Mbit/s\""
    )]
    NoRate,
    /// The rate is infinite or zero.
    #[error("a rate that can be sent at is needed: write one such as \"9.5 Mbit/s\"")]
    Rate,
    /// The burst is zero.
    #[error("a burst has at least one packet: write, say, burst = 10")]
    Burst,
    /// A guard without reports of losses.
    #[error("go-back-N does not tell how much was lost: leave this out, or write repair = \"selective\"")]
    Guard,
}

impl Invalid {
    /// The invalid key.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::NoRate | Self::Rate => "rate",
            Self::Burst => "burst",
            Self::Guard => "aimd-guard",
        }
    }
}

impl Config {
    /// Validates it.
    ///
    /// # Errors
    /// Says what to write instead.
    pub fn check(&self) -> Result<(), Invalid> {
        match self.rate {
            None => return Err(Invalid::NoRate),
            Some(RateSpec::Bits(r)) if r.bits_per_sec() > 0 => {}
            Some(_) => return Err(Invalid::Rate),
        }
        if self.burst == 0 {
            return Err(Invalid::Burst);
        }
        if self.aimd_guard && self.repair == Repair::GoBackN { Err(Invalid::Guard) } else { Ok(()) }
    }
    /// Bytes per second.
    pub(crate) fn bytes_per_sec(&self) -> f64 {
        match self.rate {
            Some(RateSpec::Bits(r)) => r.bytes_per_sec().max(1.0),
            _ => 1.0,
        }
    }
}

/// A data packet; without data it is a sync request, or opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Stream offset of its first byte.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Number of its sync request; 0 if it has none.
    pub sync: u32,
    /// State of the closing handshake.
    pub close: Close,
}

/// State of the closing handshake in a packet or report: XTP's bits of the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// The sender of this writes nothing more: the stream ends with this packet.
    pub wclose: bool,
    /// The sender of this has received everything that the peer wrote.
    pub rclose: bool,
    /// The connection has ended. Before both sides have closed, this is an abort.
    pub end: bool,
}

/// A receiver's report: the cumulative acknowledgement, the window, the sync request that it answers, and the data
/// beyond gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The next byte that is expected.
    pub rseq: u64,
    /// First byte that the sender may not send.
    pub alloc: u64,
    /// The last sync request received.
    pub echo: u32,
    /// Data beyond `rseq` has arrived.
    pub gap: bool,
    /// Data beyond gaps, in order.
    pub spans: Vec<(u64, u64)>,
    /// State of the closing handshake.
    pub close: Close,
}

impl Report {
    /// Its size beyond [`HEADER`], bytes: a control segment, or one for errors.
    #[must_use]
    pub fn size(&self) -> u32 {
        if self.spans.is_empty() { 20 } else { 24 + 16 * self.spans.len() as u32 }
    }
}
