//! Configuration of an endpoint, and the named presets, each of which sets every option.

use crate::autotune::Autotune;
use alloc::sync::Arc;
use skyhaul_base::Duration;
use skyhaul_cc::Rules;

/// Minimum segment size accepted from a peer, as in Linux (`TCP_MIN_SND_MSS`).
pub(crate) const MIN_MSS: u32 = 48;

/// Where RTT samples come from (RFC 6298 §3, RFC 7323 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "RttSourceSpec", description = "Where RTT samples come from.")
)]
pub enum RttSource {
    /// Every acknowledgement of a segment that was not retransmitted.
    EveryAck,
    /// One timed segment at a time, excluding retransmitted ones (Karn).
    #[cfg_attr(feature = "schema", schemars(description = "One timed segment at a time."))]
    Timed,
    /// The timestamp option; needs [`Config::timestamps`].
    #[cfg_attr(feature = "schema", schemars(description = "The timestamp option."))]
    Timestamps,
}

/// Retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Clock granularity G.
    pub tick: Duration,
    /// Timeout before the first sample.
    pub initial: Duration,
    /// Lower bound.
    pub min: Duration,
    /// Minimum difference between the timeout and the smoothed RTT, as in Linux, whose lower bound applies to the
    /// variation: on a steady long path, `min` alone would leave no room for a delayed acknowledgement.
    pub margin: Duration,
    /// Upper bound, also of the backed-off value.
    pub max: Duration,
    /// The lower bound is applied before the backoff doubles (ns-2.35), not after (ns-2.1b8a).
    pub min_before_backoff: bool,
    /// All samples of a round trip together have the weight of one (RFC 7323 §4.2, appendix G), so that a window of
    /// acknowledgements does not erase the history of the estimator. Otherwise each sample has the weight of RFC 6298.
    pub per_round: bool,
    /// NewReno restarts the timer on the first partial acknowledgement only (the "impatient" variant of
    /// RFC 6582), not on each.
    pub restart_on_first_partial_only: bool,
}

/// Delayed acknowledgements (RFC 1122 §4.2.3.2, RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge every `every`-th full segment.
    pub every: u32,
    /// Maximum delay; zero acknowledges each segment at once.
    pub delay: Duration,
}

impl DelayedAck {
    /// One acknowledgement per segment [Peach §II-A].
    pub const OFF: Self = Self { every: 1, delay: Duration::ZERO };
}

/// Keepalive: probes of a silent peer (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Time without a segment from the peer after which the first probe is sent; zero means never.
    pub idle: Duration,
    /// Interval between probes until the peer answers.
    pub interval: Duration,
    /// Number of unanswered probes after which the peer is given up.
    pub probes: u32,
}

impl Keepalive {
    /// No keepalive; the other values are those of Linux.
    pub const OFF: Self = Self { idle: Duration::ZERO, interval: Duration::from_secs(75), probes: 9 };
}

/// Loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LossDetectionSpec"))]
pub enum LossDetection {
    /// By acknowledgements above the segment: [`Config::dup_thresh`] segments, or as many separate runs of bytes (RFC 5681,
    /// RFC 6675).
    #[cfg_attr(
        feature = "schema",
        schemars(description = "By what was acknowledged above it (RFC 5681, RFC 6675).")
    )]
    DupAcks,
    /// By time: a segment sent later was delivered (RACK, RFC 8985). Requires SACK and an algorithm that repairs losses
    /// with it; otherwise duplicate acknowledgements indicate losses.
    #[cfg_attr(feature = "schema", schemars(description = "By time (RFC 8985)."))]
    Rack,
    /// By the receiver's reports of missing data, like the selective negative acknowledgements (SNACK) of SCPS-TP
    /// (CCSDS 714.0-B-2). Requires SACK, an algorithm that repairs losses with it, and a peer that sends SNACKs, which
    /// only simulated ones do; otherwise duplicate acknowledgements indicate losses.
    #[cfg_attr(
        feature = "schema",
        schemars(description = "By what the receiver names as missing (SCPS-TP's SNACK); only simulated.")
    )]
    Snack,
}

/// Which losses the sender attributes to channel errors and does not report to the congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossClassifier {
    /// None: every loss indicates congestion (RFC 5681).
    None,
    /// Those that are channel errors according to an observer of the links
    /// ([`Sender::tell_loss`](crate::Sender::tell_loss)), with the given error rates.
    Oracle {
        /// Probability that a channel error is reported as congestion.
        false_congestion: f64,
        /// Probability that a congestion loss is reported as a channel error.
        false_error: f64,
    },
    /// Those after which the next arrival is on time (Biaz, Vaidya 1999): with `n` segments missing, at least `(n +
    /// low)` and less than `(n + high)` times the minimum inter-arrival time after the last one.
    InterArrival {
        /// 1 in all versions.
        low: f64,
        /// 1.25, or 2 in the first version.
        high: f64,
    },
    /// Those while the RTT is not in a spike (Tobe et al. 2000).
    Spike {
        /// A spike begins above this fraction of the RTT range; 1/2 in the source.
        start: f64,
        /// A spike ends below this fraction of the RTT range; 1/3 in the source.
        end: f64,
    },
}

impl LossClassifier {
    /// Whether it requires an observer that knows why packets were lost: a simulator.
    #[must_use]
    pub const fn is_oracle(self) -> bool {
        matches!(self, Self::Oracle { .. })
    }
}

/// How the sender learns whether the peer answers probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProbesSpec"))]
pub enum ProbeNegotiation {
    /// By negotiation in the handshake.
    Negotiate,
    /// Probes are neither sent nor answered.
    Off,
    /// From the answers, without negotiation, as in [Peach §III-B].
    #[cfg_attr(feature = "schema", schemars(description = "From the answers."))]
    Paper,
}

impl ProbeNegotiation {
    /// Whether an end answers probes; `agreed`: the handshake agreed on probes.
    pub(crate) const fn answers(self, agreed: bool) -> bool {
        match self {
            Self::Negotiate => agreed,
            Self::Paper => true,
            Self::Off => false,
        }
    }
}

/// Explicit congestion notification (RFC 3168, RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "EcnSpec", description = "Explicit congestion notification (RFC 3168, RFC 9768).")
)]
pub enum Ecn {
    /// ECN is neither requested nor accepted.
    Off,
    /// ECN is accepted if the peer requests it, as in Linux by default.
    Grant,
    /// ECN is requested and accepted.
    Ask,
    /// Accurate ECN (AccECN) is requested and accepted. The connection falls back to classic ECN if the peer only knows that, and
    /// to none if the peer uses none.
    Accurate,
}

/// Congestion control of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "AckCcSpec", description = "Congestion control of acknowledgements.")
)]
pub enum AckCc {
    /// None: only `delayed-ack` determines acknowledgements.
    None,
    /// The data sender sets the number of segments per acknowledgement, the ACK ratio (RFC 5690), if both ends support
    /// it.
    Rfc5690,
    /// As "rfc5690", but only by ECN marks: a round trip with a mark doubles the ratio, each one without decreases it
    /// by one (RFC 3449 §4.3). The queue of the return link must mark, and both ends must use ECN.
    Rfc3449,
}

/// Configuration of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Header bytes per packet at the network layer, for simulated links.
    pub header: u32,
    /// On a real network: room for TCP options and payload in a packet (the MTU minus the fixed headers of IP and TCP).
    /// The SYN announces this value (RFC 6691), and the payload of a full segment is the smaller limit of both ends
    /// minus the options that every segment carries. `None`: `mss` is announced, and options take no room, as in the
    /// simulators of the papers.
    pub segment_limit: Option<u32>,
    /// Packetization-layer path MTU discovery (RFC 4821): segments start with at most 1024 bytes of payload, and longer
    /// ones are probed with data until the longest that the path carries is found, without help from routers.
    pub mtu_search: bool,
    /// Segment size for a peer that does not announce one: 536 bytes over IPv4, 1220 over IPv6 (RFC 9293 §3.7.1).
    pub unstated_mss: u16,
    /// Window arithmetic passed to the congestion control.
    pub rules: Rules,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// If both ends use ECN, retransmissions, window probes and a FIN without data are ECN-capable, too (ECN++,
    /// draft-ietf-tcpm-generalized-ecn); otherwise only new data is (RFC 3168 §6.1.5).
    pub ecn_plus: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Number of duplicate acknowledgements that indicate a loss.
    pub dup_thresh: u32,
    /// Loss detection.
    pub loss_detection: LossDetection,
    /// Loss classification.
    pub loss_classifier: LossClassifier,
    /// A tail loss probe before the retransmission timer (RFC 8985 §7); not with [`LossDetection::DupAcks`].
    pub tail_loss_probe: bool,
    /// Link outages are reported to the connection ([`Connection::outage`](crate::Connection::outage)): timers stop,
    /// only a probe is sent at this interval, and transmission resumes once the peer answers. `None`: outages are not
    /// reported.
    pub outage_probe: Option<Duration>,
    /// Retransmission timer.
    pub rto: Rto,
    /// Where RTT samples come from.
    pub rtt_source: RttSource,
    /// Use the timestamp option.
    pub timestamps: bool,
    /// Unit of timestamp values; zero stands for one millisecond.
    pub timestamp_tick: Duration,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Congestion control of acknowledgements. With byte counting ([`Rules::growth`](skyhaul_cc::Rules)) the window
    /// grows as fast as without it, and pacing avoids bursts (RFC 5690 §4.7).
    pub ack_cc: AckCc,
    /// Offer and use SACK. `None`: only if the congestion control repairs losses with it.
    pub sack: Option<bool>,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Maximum number of SACK blocks per acknowledgement, at most 4; with timestamps there is room for 3.
    pub sack_blocks: u8,
    /// Undo a reduction if every retransmission is reported as a duplicate (RFC 3708, Linux); requires the peer's
    /// reports.
    pub dsack_undo: bool,
    /// Undo a reduction if timestamps show that the original arrived (Eifel, RFC 3522); requires timestamps.
    pub eifel: bool,
    /// After a timeout, send new data first to detect a spurious timeout (F-RTO, RFC 5682).
    pub f_rto: bool,
    /// Retransmit the last segment once per recovery when nothing else may be sent (RFC 6675 §4, NextSeg rule 4).
    pub rescue_retransmission: bool,
    /// The scoreboard survives a timeout (RFC 6675 §5.1); otherwise it is cleared (RFC 2018 §8, ns-2).
    pub keep_sack_after_rto: bool,
    /// The window grows only while it is in use (RFC 7661).
    pub window_validation: bool,
    /// The window admits `floor(cwnd · SMSS)` bytes instead of `floor(cwnd)` segments.
    pub byte_window: bool,
    /// Hold small segments back while data is outstanding (RFC 896).
    pub nagle: bool,
    /// Ordinary segments take a fast path through the code (Van Jacobson's header prediction), which changes nothing but
    /// the computing time. Tests compare runs with and without it.
    pub header_prediction: bool,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// The receive buffer starts at 64 KiB and grows to `receive_buffer` as the application reads (dynamic
    /// right-sizing, as in Linux); otherwise it has that size from the start.
    pub receive_autotuning: bool,
    /// Send buffer, bytes: limits outstanding data.
    pub send_buffer: u64,
    /// The application may write twice the congestion window, and at least 64 KiB, instead of filling the whole send
    /// buffer at once, as in Linux.
    pub send_autotuning: bool,
    /// Window scaling (RFC 7323); without it, at most 65535 bytes are announced.
    pub window_scaling: bool,
    /// How the sender learns whether the peer answers probes.
    pub probes: ProbeNegotiation,
    /// Probes are numbered.
    pub probe_ids: bool,
    /// Offer in the handshake to measure the arrival rate of the peer's waves and to report it (TCP-Real). Nothing is
    /// measured unless the peer's congestion control requests it.
    pub receiver_rate: bool,
    /// Duration of TIME-WAIT (2 MSL).
    pub time_wait: Duration,
    /// Give up after this many unanswered retransmissions of a segment, or window probes (R2 of RFC 1122 §4.2.3.5); 0
    /// means never.
    pub max_retransmissions: u32,
    /// User timeout: give up when no waiting data has been acknowledged for this long, whatever the peer answers (RFC
    /// 9293 §3.9.1, RFC 5482; it is not announced to the peer); zero means never.
    pub user_timeout: Duration,
    /// Keepalive.
    pub keepalive: Keepalive,
    /// Time that a connection which the application has closed in both directions
    /// ([`Connection::abandon`](crate::Connection::abandon)) waits in FIN-WAIT-2 for the peer's FIN, or for the peer to
    /// open a closed window (RFC 1122 §4.2.2.13, RFC 6429); zero means indefinitely.
    pub fin_timeout: Duration,
}

impl From<&Config> for Arc<Config> {
    /// Makes a copy. Callers with many connections share one `Arc` instead.
    fn from(config: &Config) -> Self {
        Self::new(*config)
    }
}

/// Names of the presets, oldest first.
pub const PRESETS: &[&str] = &["ns2-2001", "ns2-2004", "rfc", "modern", "host"];

impl Config {
    /// Whether two ends without a handshake use ECN: neither refuses it, and at least one requests it.
    #[must_use]
    pub fn agrees_on_ecn(&self, peer: &Self) -> bool {
        let (a, b) = (self.ecn, peer.ecn);
        let asks = |ecn| matches!(ecn, Ecn::Ask | Ecn::Accurate);
        a != Ecn::Off && b != Ecn::Off && (asks(a) || asks(b))
    }

    /// Unit of timestamp values, never zero: one millisecond if [`Self::timestamp_tick`] is zero.
    pub(crate) fn tick(&self) -> Duration {
        if self.timestamp_tick.is_zero() { Duration::from_millis(1) } else { self.timestamp_tick }
    }

    /// Initial receive buffer of a connection, bytes.
    #[must_use]
    pub fn first_receive_buffer(&self) -> u64 {
        let most = self.receive_buffer;
        if self.receive_autotuning { Autotune::start(most) } else { most }
    }

    /// ns-2.1b8a of June 2001, the simulator of the papers: 1000-byte packets (960 + 40), one acknowledgement
    /// per segment, no limited transmit, RTOmin 1 s, scoreboard cleared by a timeout.
    #[must_use]
    pub const fn ns2_2001() -> Self {
        Self {
            mss: 960,
            header: 40,
            segment_limit: None,
            mtu_search: false,
            unstated_mss: 536,
            rules: Rules::NS2_2001,
            ecn: Ecn::Off,
            ecn_plus: false,
            limited_transmit: false,
            dup_thresh: 3,
            loss_detection: LossDetection::DupAcks,
            loss_classifier: LossClassifier::None,
            tail_loss_probe: false,
            outage_probe: None,
            rto: Rto {
                tick: Duration::from_millis(100),
                initial: Duration::from_secs(3),
                min: Duration::from_secs(1),
                margin: Duration::ZERO,
                max: Duration::from_secs(64),
                min_before_backoff: false,
                per_round: false,
                restart_on_first_partial_only: false,
            },
            rtt_source: RttSource::Timed,
            timestamps: false,
            timestamp_tick: Duration::from_millis(1),
            delayed_ack: DelayedAck::OFF,
            ack_cc: AckCc::None,
            sack: None,
            dsack: false,
            sack_blocks: 3,
            dsack_undo: false,
            eifel: false,
            f_rto: false,
            rescue_retransmission: false,
            keep_sack_after_rto: false,
            window_validation: false,
            byte_window: false,
            nagle: false,
            header_prediction: true,
            receive_buffer: 20 * 960,
            receive_autotuning: false,
            send_buffer: u64::MAX,
            send_autotuning: false,
            window_scaling: true,
            probes: ProbeNegotiation::Negotiate,
            probe_ids: false,
            receiver_rate: true,
            time_wait: Duration::from_secs(60),
            max_retransmissions: 0,
            user_timeout: Duration::ZERO,
            keepalive: Keepalive::OFF,
            fin_timeout: Duration::from_secs(60),
        }
    }

    /// ns-2 since October 2004: initial window 2, limited transmit, RTOmin 0.2 s, and the "impatient" variant of NewReno.
    #[must_use]
    pub const fn ns2_2004() -> Self {
        let old = Self::ns2_2001();
        Self {
            rules: Rules::NS2_2004,
            limited_transmit: true,
            rto: Rto {
                tick: Duration::from_millis(10),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                min_before_backoff: true,
                restart_on_first_partial_only: true,
                ..old.rto
            },
            ..old
        }
    }

    /// The standards to the letter: RFC 5681, 6582, 6675, 6298, 3042, 3390, 7323; delayed acknowledgements.
    #[must_use]
    pub const fn rfc() -> Self {
        let old = Self::ns2_2004();
        Self {
            mss: 1460,
            rules: Rules::RFC,
            rto: Rto {
                tick: Duration::from_millis(100),
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                ..old.rto
            },
            rtt_source: RttSource::EveryAck,
            delayed_ack: DelayedAck { every: 2, delay: Duration::from_millis(200) },
            dsack: true,
            sack_blocks: 4,
            rescue_retransmission: true,
            keep_sack_after_rto: true,
            window_validation: true,
            byte_window: true,
            nagle: true,
            receive_buffer: 65_535,
            probe_ids: true,
            max_retransmissions: 15,
            ..old
        }
    }

    /// A current server: timestamps, initial window 10, RTOmin 0.2 s, large buffers, undo of spurious reductions.
    #[must_use]
    pub const fn modern() -> Self {
        let old = Self::rfc();
        Self {
            mss: 1448,
            header: 52,
            rules: Rules::MODERN,
            rto: Rto {
                tick: Duration::from_millis(1),
                min: Duration::from_millis(200),
                margin: Duration::from_millis(200),
                max: Duration::from_secs(120),
                ..old.rto
            },
            rtt_source: RttSource::Timestamps,
            timestamps: true,
            delayed_ack: DelayedAck { every: 2, delay: Duration::from_millis(40) },
            dsack_undo: true,
            eifel: true,
            f_rto: true,
            nagle: false,
            receive_buffer: 6 << 20,
            send_buffer: 4 << 20,
            ..old
        }
    }

    /// A host on an open network: `modern` with RACK-TLP loss detection (RFC 8985), autotuned buffers in both directions,
    /// ECN if the peer requests it, and RTT samples weighted per round trip. Simulations default to `modern`, which has
    /// fewer interacting mechanisms.
    #[must_use]
    pub const fn host() -> Self {
        Self {
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            receive_autotuning: true,
            send_autotuning: true,
            ecn: Ecn::Grant,
            rto: Rto { per_round: true, ..Self::modern().rto },
            ..Self::modern()
        }
    }

    /// The preset called `name` (see [`PRESETS`]).
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "ns2-2001" => Some(Self::ns2_2001()),
            "ns2-2004" => Some(Self::ns2_2004()),
            "rfc" => Some(Self::rfc()),
            "modern" => Some(Self::modern()),
            "host" => Some(Self::host()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_a_name_and_differs_from_the_others() {
        let all: alloc::vec::Vec<_> =
            PRESETS.iter().map(|n| Config::preset(n).expect("named preset")).collect();
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert!(Config::preset("ns3").is_none());
    }
}
