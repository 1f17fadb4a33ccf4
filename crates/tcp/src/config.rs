//! Everything that can be chosen about an endpoint, and the named presets that fix all of it.

use crate::autotune::Autotune;
use alloc::sync::Arc;
use skyhaul_base::Duration;
use skyhaul_cc::Rules;

/// Smallest segment size that is taken from a peer, as in Linux (`TCP_MIN_SND_MSS`).
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
    /// One timed segment at a time, never one that was retransmitted (Karn).
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
    /// Before the first sample.
    pub initial: Duration,
    /// Lower bound.
    pub min: Duration,
    /// What the timeout exceeds the smoothed RTT by at least. As in Linux, whose lower bound is one of the variation: on a
    /// steady long path `min` alone leaves no room for a delayed acknowledgement.
    pub margin: Duration,
    /// Upper bound, also of the backed-off value.
    pub max: Duration,
    /// The lower bound is applied before the backoff doubles (ns-2.35), not after (ns-2.1b8a).
    pub min_before_backoff: bool,
    /// All samples of a round trip together weigh as much as one (RFC 7323 §4.2, appendix G): a window of acknowledgements
    /// does not make the estimator forget what it knew before. Otherwise each has the weight of RFC 6298.
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
    /// And no later than this; zero acknowledges each segment at once.
    pub delay: Duration,
}

impl DelayedAck {
    /// One acknowledgement per segment [Peach §II-A].
    pub const OFF: Self = Self { every: 1, delay: Duration::ZERO };
}

/// Whether the peer is still there, asked where nothing else would tell (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// After so long without a segment of the peer; zero never.
    pub idle: Duration,
    /// Then so often, until it answers.
    pub interval: Duration,
    /// So many times; then it is given up.
    pub probes: u32,
}

impl Keepalive {
    /// Never; the other values are those of Linux.
    pub const OFF: Self = Self { idle: Duration::ZERO, interval: Duration::from_secs(75), probes: 9 };
}

/// How a loss shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LossDetectionSpec"))]
pub enum LossDetection {
    /// By what was acknowledged above it: [`Config::dup_thresh`] segments or runs (RFC 5681, RFC 6675).
    #[cfg_attr(
        feature = "schema",
        schemars(description = "By what was acknowledged above it (RFC 5681, RFC 6675).")
    )]
    DupAcks,
    /// By time: something sent later was delivered (RACK, RFC 8985). Needs SACK and an algorithm that repairs
    /// losses with it; on a connection without either, losses show by duplicates.
    #[cfg_attr(feature = "schema", schemars(description = "By time (RFC 8985)."))]
    Rack,
    /// By what the receiver names as missing, as the selective negative acknowledgements of SCPS-TP do (CCSDS 714.0-B-2). Needs
    /// SACK and an algorithm that repairs losses with it, and a peer that names holes: simulated ones do, nobody on a real
    /// wire; with others losses show by duplicates.
    #[cfg_attr(
        feature = "schema",
        schemars(description = "By what the receiver names as missing (SCPS-TP's SNACK); only simulated.")
    )]
    Snack,
}

/// Which losses the sender takes for errors of the channel, so that the congestion control does not hear of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossClassifier {
    /// None: every loss is a sign of congestion (RFC 5681).
    None,
    /// Those that are: somebody who sees the links says so ([`Sender::tell_loss`](crate::Sender::tell_loss)). Whoever says it
    /// errs as asked for.
    Oracle {
        /// Share of the errors that are called congestion.
        false_congestion: f64,
        /// Share of the losses by congestion that are called errors.
        false_error: f64,
    },
    /// Those after which the next arrival is on time (Biaz, Vaidya 1999): no less than `(n + low)` and less than `(n + high)`
    /// times the least time between arrivals after the last one, where `n` are missing.
    InterArrival {
        /// 1 in all versions.
        low: f64,
        /// 1.25, or 2 in the first version.
        high: f64,
    },
    /// Those while the round trip is short (Tobe et al. 2000).
    Spike {
        /// A spike begins at this share of the range of round trips: 1/2.
        start: f64,
        /// It ends at this one: 1/3.
        end: f64,
    },
}

impl LossClassifier {
    /// Somebody has to know why packets are lost: a simulator.
    #[must_use]
    pub const fn is_oracle(self) -> bool {
        matches!(self, Self::Oracle { .. })
    }
}

/// How the ability of the peer to answer probes is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProbesSpec"))]
pub enum ProbeNegotiation {
    /// In the handshake.
    Negotiate,
    /// Probes are neither sent nor answered.
    Off,
    /// Not at all: from the answers, as [Peach §III-B] describes.
    #[cfg_attr(feature = "schema", schemars(description = "From the answers."))]
    Paper,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "EcnSpec", description = "Explicit congestion notification (RFC 3168).")
)]
pub enum Ecn {
    /// Neither asked for nor granted.
    Off,
    /// Granted to who asks for it, as Linux does by default.
    Grant,
    /// Asked for, and granted.
    Ask,
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
    /// None: they come as delayed acknowledgements say.
    None,
    /// The sender of data says for how many segments one is sent (RFC 5690), if both ends take part.
    Rfc5690,
    /// The same by marks alone, which double that number, and less each round trip without one (RFC 3449 §4.3): the queue of the
    /// return link has to mark, and both ends have to take part in ECN.
    Rfc3449,
}

/// Configuration of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Header bytes per packet at the network layer, for simulated links.
    pub header: u32,
    /// On a real wire: TCP options and payload that a packet has room for (MTU less the fixed headers of IP and TCP).
    /// This is what a SYN then announces (RFC 6691), and the payload of a full segment is what is left of the smaller
    /// limit of both ends beside the options that every segment carries. `None`: `mss` is announced, and options
    /// take no room, as in the simulators of the papers.
    pub segment_limit: Option<u32>,
    /// Segments begin with 1024 bytes of payload at most, and longer ones are tried with data until the longest is found that
    /// the path takes (RFC 4821), whether or not its routers say what that is.
    pub mtu_search: bool,
    /// Payload that a peer takes which does not say how much: 536 bytes over IPv4, 1220 over IPv6 (RFC 9293 §3.7.1).
    pub unstated_mss: u16,
    /// Window arithmetic handed to the congestion control.
    pub rules: Rules,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Where both ends take part, routers may mark retransmissions, questions for a closed window and a FIN without data, too
    /// (ECN++, draft-ietf-tcpm-generalized-ecn); otherwise only data that leaves for the first time (RFC 3168 §6.1.5).
    pub ecn_plus: bool,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// Duplicate acknowledgements that reveal a loss.
    pub dup_thresh: u32,
    /// How a loss shows.
    pub loss_detection: LossDetection,
    /// What a loss was.
    pub loss_classifier: LossClassifier,
    /// A tail loss probe before the retransmission timer (RFC 8985 §7); not with [`LossDetection::DupAcks`].
    pub tail_loss_probe: bool,
    /// Somebody tells of a link that is down ([`Connection::outage`](crate::Connection::outage)): timers stop then, nothing is
    /// sent but a question so often, and everything goes on once the peer answers one; `None`: nobody tells.
    pub outage_probe: Option<Duration>,
    /// Retransmission timer.
    pub rto: Rto,
    /// Where RTT samples come from.
    pub rtt_source: RttSource,
    /// Use the timestamp option.
    pub timestamps: bool,
    /// Unit of timestamp values.
    pub timestamp_tick: Duration,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Congestion control of acknowledgements. Byte counting ([`Rules::growth`](skyhaul_cc::Rules)) lets the window grow as fast
    /// as without it, and pacing keeps bursts away (RFC 5690 §4.7).
    pub ack_cc: AckCc,
    /// Offer and use SACK. `None`: exactly if the congestion control repairs losses with it.
    pub sack: Option<bool>,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Most SACK blocks per acknowledgement, at most 4; beside timestamps there is room for 3.
    pub sack_blocks: u8,
    /// A reduction is undone if every retransmission is reported as a duplicate (RFC 3708, Linux); needs the peer's
    /// reports.
    pub dsack_undo: bool,
    /// A reduction is undone if timestamps show that the original arrived (Eifel, RFC 3522); needs timestamps.
    pub eifel: bool,
    /// After a timeout, new data first, to see whether it was spurious (F-RTO, RFC 5682).
    pub f_rto: bool,
    /// Once per recovery, when nothing else may be sent, retransmit the last segment (RFC 6675 §4, NextSeg rule 4).
    pub rescue_retransmission: bool,
    /// The scoreboard survives a timeout (RFC 6675 §5.1); otherwise it is cleared (RFC 2018 §8, ns-2).
    pub keep_sack_after_rto: bool,
    /// The window grows only while it is in use (RFC 7661).
    pub window_validation: bool,
    /// The window admits `floor(cwnd · SMSS)` bytes instead of `floor(cwnd)` segments.
    pub byte_window: bool,
    /// Hold small segments back while data is outstanding (RFC 896).
    pub nagle: bool,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// The receive buffer starts at 64 KiB and grows to `receive_buffer` as the application reads (dynamic
    /// right-sizing, as in Linux); otherwise it has that size from the start.
    pub receive_autotuning: bool,
    /// Send buffer, bytes: bounds what is outstanding.
    pub send_buffer: u64,
    /// An application may write twice the congestion window, and 64 KiB in any case, instead of filling the whole send
    /// buffer at once, as in Linux.
    pub send_autotuning: bool,
    /// Window scaling (RFC 7323); without it no more than 65535 bytes are announced.
    pub window_scaling: bool,
    /// How the ability to answer probes is learnt.
    pub probes: ProbeNegotiation,
    /// Probes carry numbers.
    pub probe_ids: bool,
    /// Take part in TCP-Real's measurement: offer in the handshake to measure the rate of the peer's waves and to
    /// report it. Nothing is measured unless the peer's congestion control asks for it.
    pub receiver_rate: bool,
    /// Wait in TIME-WAIT (2 MSL).
    pub time_wait: Duration,
    /// Give up after this many retransmissions of the same segment, or questions for the window, without any answer
    /// (R2 of RFC 1122 §4.2.3.5); 0 never.
    pub max_retransmissions: u32,
    /// Give up when data has waited for so long without any of it being acknowledged, whatever the peer answers (RFC 9293
    /// §3.9.1, RFC 5482; the peer is not told of it); zero never.
    pub user_timeout: Duration,
    /// Asks a silent peer whether it is still there.
    pub keepalive: Keepalive,
    /// How long a connection that the application has closed both ways ([`Connection::abandon`](crate::Connection::abandon))
    /// waits in FIN-WAIT-2 for the peer's FIN, and at a closed window for the peer to take what is left (RFC 1122 §4.2.2.13,
    /// RFC 6429); zero: for ever.
    pub fin_timeout: Duration,
}

impl From<&Config> for Arc<Config> {
    /// A copy of one's own. Whoever makes many connections shares one instead.
    fn from(config: &Config) -> Self {
        Self::new(*config)
    }
}

/// Names of the presets, in the order of age.
pub const PRESETS: &[&str] = &["ns2-2001", "ns2-2004", "rfc", "modern", "host"];

impl Config {
    /// Both ends take part in ECN, if either asks.
    #[must_use]
    pub fn agrees_on_ecn(&self, peer: &Self) -> bool {
        let (a, b) = (self.ecn, peer.ecn);
        a != Ecn::Off && b != Ecn::Off && (a == Ecn::Ask || b == Ecn::Ask)
    }

    /// The receive buffer with which a connection begins, bytes.
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

    /// ns-2 since October 2004: initial window 2, limited transmit, RTOmin 0.2 s.
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

    /// What servers run today: timestamps, initial window 10, RTOmin 0.2 s, large buffers, reductions undone that
    /// prove spurious.
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

    /// What a host on an open network runs: `modern`, and besides it losses that show by time with probes of the tail
    /// (RFC 8985), and buffers that grow in both directions. Simulations do without, since they are about one thing at a time.
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
