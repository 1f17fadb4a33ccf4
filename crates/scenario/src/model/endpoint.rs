//! The endpoint of a flow: a preset and changes to it.

use super::loss_classifier::LossClassifierSpec;
use super::os::OsSpec;
use super::short::{Short, ShortForm};
use crate::amount::{Decimal, Size, Time};
use crate::error::{Problem, ValueError};
use core::fmt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use skyhaul_base::Duration;
use skyhaul_cc::{CaGrowth, HalvingBase, InitialSsthresh, InitialWindow};
use skyhaul_tcp::Config;
use skyhaul_tcp::config::{
    AckCc, DelayedAck, Ecn, LossClassifier, LossDetection, PRESETS, ProbeNegotiation, RttSource,
};
use std::borrow::Cow;

/// Name of the default endpoint.
pub(super) const DEFAULT_ENDPOINT: &str = "modern";

/// Conversion between a value in a file and one of the configuration.
trait Key<T>: Sized {
    fn into_value(self) -> Result<T, ValueError>;
    fn of(value: T) -> Self;
    /// The value in a file with every key explicit; `None` for a value that all presets have, so that the key is left out.
    fn written(value: T) -> Option<Self> {
        Some(Self::of(value))
    }
}

/// Declares the keys of the endpoint table, one line each: key, type in the file, place in the configuration.
macro_rules! endpoint_keys {
    ($($(#[doc = $doc:literal])* $key:ident: $type:ty => $($place:ident).+;)*) => {
        /// An endpoint. Short form: the name of a preset.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        pub struct EndpointSpec {
            /// The preset to which the other keys apply; "modern" by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub preset: Option<String>,
            /// Buffers, window scaling and timestamps of an operating system of around 2002, such as "linux-2.4"; the
            /// other keys, and `rwnd` and `sndbuf` of the flow, take precedence.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub os: Option<Short<OsSpec>>,
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )*
        }

        impl EndpointSpec {
            /// The preset with the changes applied.
            pub(crate) fn apply(self, at: &str) -> Result<Config, Problem> {
                let name = self.preset.as_deref().unwrap_or(DEFAULT_ENDPOINT);
                let mut config = preset(name).map_err(|e| Problem::new(format!("{at}.preset"), e))?;
                let of_os = |e| Problem::new(format!("{at}.os"), e);
                if let Some(Short(os)) = &self.os {
                    os.apply_options(&mut config).map_err(of_os)?;
                }
                $(if let Some(value) = self.$key {
                    config.$($place).+ = value.into_value().map_err(|e| {
                        Problem::new(format!("{at}.{}", stringify!($key).replace('_', "-")), e)
                    })?;
                })*
                if let Some(Short(os)) = &self.os {
                    os.apply_buffers(&mut config).map_err(of_os)?;
                }
                Ok(config)
            }

            /// Every key as in `config`, so that later changes of a preset do not change the meaning of the file.
            pub(crate) fn of(config: &Config) -> Self {
                Self { preset: None, os: None, $($key: Key::written(config.$($place).+),)* }
            }
        }
    };
}

endpoint_keys! {
    /// Payload of a full segment.
    mss: Size => mss;
    /// Search for the largest segment that the path carries, from 1024 bytes up, with probe segments (RFC 4821).
    mtu_search: bool => mtu_search;
    /// Headers per packet, network layer and above.
    header: Size => header;
    /// Initial congestion window: "1 segment", "rfc3390" or "rfc6928".
    initial_window: InitialWindowSpec => rules.initial_window;
    /// Initial slow start threshold: "64 segments", "rwnd" or "infinite".
    initial_ssthresh: InitialSsthreshSpec => rules.initial_ssthresh;
    /// What a reduction halves.
    halving_base: HalvingBase => rules.halving_base;
    /// Round the halved window down to whole segments.
    integer_halving: bool => rules.integer_halving;
    /// Segments added at the start of Reno and NewReno fast recovery.
    inflate_ndup: f64 => rules.inflate_ndup;
    /// NewReno deflates the window by the data that a partial acknowledgement covers.
    partial_deflation: bool => rules.partial_deflation;
    /// The congestion window never grows beyond the receiver's window.
    cap_at_rwnd: bool => rules.cap_at_rwnd;
    /// How the window grows.
    growth: CaGrowth => rules.growth;
    /// Largest increase per acknowledgement in slow start with growth "abc", in segments: 1 to 2 (L of RFC 3465).
    abc_limit: f64 => rules.abc_limit;
    /// After an idle period the window falls back to the initial window.
    restart_after_idle: bool => rules.restart_after_idle;
    /// Explicit congestion notification: "off", "grant" (accept if the peer asks), "ask" (RFC 3168), or "accurate" (AccECN, RFC 9768,
    /// which counts marks). In a simulation, flows use ECN with "ask" and "accurate". The control "prague" has "accurate" by default.
    ecn: Ecn => ecn;
    /// Send retransmissions, window probes and FINs as ECN-capable too (ECN++); needs `ecn`.
    ecn_plus: bool => ecn_plus;
    /// Limited transmit: the first two duplicate acknowledgements release new data (RFC 3042).
    limited_transmit: bool => limited_transmit;
    /// Number of duplicate acknowledgements that indicate a loss.
    dup_thresh: u32 => dup_thresh;
    /// Loss detection: "dup-acks", "rack" (by time, RFC 8985), or "snack" (by the holes that the receiver names, as in SCPS-TP;
    /// only in simulations); both need SACK.
    loss_detection: LossDetection => loss_detection;
    /// Which losses the sender attributes to channel errors and hides from the congestion control: "none", "oracle"
    /// (only in simulations), "inter-arrival", "spike", or a table with parameters.
    loss_classifier: Short<LossClassifierSpec> => loss_classifier;
    /// Tail loss probe: two round trips after the last segment, before the retransmission timer (RFC 8985 §7); needs
    /// "rack" or "snack".
    tail_loss_probe: bool => tail_loss_probe;
    /// Link outages are reported to the sender, as in SCPS-TP: timers stop, and the peer is probed at this interval
    /// until it answers; "0 s": outages are not reported. Only in simulations.
    outage_probe: Time => outage_probe;
    /// Clock granularity of the retransmission timer.
    rto_tick: Time => rto.tick;
    /// Retransmission timeout before the first RTT sample.
    initial_rto: Time => rto.initial;
    /// Lower bound of the retransmission timeout.
    rto_min: Time => rto.min;
    /// Minimum difference between the retransmission timeout and the smoothed RTT (Linux: 200 ms).
    rto_margin: Time => rto.margin;
    /// Upper bound of the retransmission timeout.
    rto_max: Time => rto.max;
    /// Apply the lower bound before the backoff.
    rto_min_before_backoff: bool => rto.min_before_backoff;
    /// Give all RTT samples of a round trip together the weight of one (RFC 7323, appendix G).
    rto_per_round: bool => rto.per_round;
    /// NewReno restarts the retransmission timer only on the first partial acknowledgement.
    restart_on_first_partial_only: bool => rto.restart_on_first_partial_only;
    /// Where RTT samples come from.
    rtt_source: RttSource => rtt_source;
    /// Use the timestamp option.
    timestamps: bool => timestamps;
    /// Unit of timestamp values.
    timestamp_tick: Time => timestamp_tick;
    /// Delayed acknowledgements: "off" or { every = 2, delay = "200 ms" }.
    delayed_ack: Short<DelayedAckSpec> => delayed_ack;
    /// Congestion control of acknowledgements: "none"; "rfc5690": the sender sets the acknowledgement ratio, with
    /// fewer acknowledgements if they are lost or marked; "rfc3449": by ECN marks alone, with `ecn`.
    ack_cc: AckCc => ack_cc;
    /// Offer and use SACK; "auto": only if the congestion control repairs losses with it.
    sack: SackSpec => sack;
    /// Report duplicates (RFC 2883).
    dsack: bool => dsack;
    /// Largest number of SACK blocks per acknowledgement.
    sack_blocks: SackBlocksSpec => sack_blocks;
    /// Undo a reduction if every retransmission is reported as a duplicate (as Linux does; discussed in RFC 3708).
    dsack_undo: bool => dsack_undo;
    /// Undo a reduction if timestamps show that the original arrived (Eifel, RFC 3522).
    eifel: bool => eifel;
    /// After a timeout, send new data first to detect a spurious timeout, and undo it (F-RTO, RFC 5682).
    f_rto: bool => f_rto;
    /// Retransmit the last segment once per recovery when nothing else may be sent (RFC 6675).
    rescue_retransmission: bool => rescue_retransmission;
    /// Keep the scoreboard after a timeout.
    keep_sack_after_rto: bool => keep_sack_after_rto;
    /// Grow the window only while it is in use (RFC 7661).
    window_validation: bool => window_validation;
    /// Count the window in bytes instead of whole segments.
    byte_window: bool => byte_window;
    /// Nagle's algorithm: hold back small segments (RFC 896).
    nagle: bool => nagle;
    /// Start the receive buffer at 64 KiB and grow it to `rwnd` as the application reads, as in Linux.
    receive_autotuning: bool => receive_autotuning;
    /// Let the application write at most twice the congestion window, instead of all that `sndbuf` holds, as in
    /// Linux.
    send_autotuning: bool => send_autotuning;
    /// Window scaling (RFC 7323).
    window_scaling: bool => window_scaling;
    /// How the sender learns whether the peer answers probes.
    probes: ProbeNegotiation => probes;
    /// Number the probes.
    probe_ids: bool => probe_ids;
    /// Measure and report the arrival rate of the peer's data, for congestion controls that need it (TCP-Real).
    receiver_rate: bool => receiver_rate;
    /// Duration of TIME-WAIT.
    time_wait: Time => time_wait;
    /// Give up after this many unanswered retransmissions of a segment or window probes; 0: never.
    max_retransmissions: u32 => max_retransmissions;
    /// User timeout: give up when no data has been acknowledged for this long; "0 s": never (RFC 5482).
    user_timeout: Time => user_timeout;
    /// Send keep-alives after this long without a segment from the peer; "0 s": never (RFC 9293).
    keepalive_idle: Time => keepalive.idle;
    /// Interval between keep-alives.
    keepalive_interval: Time => keepalive.interval;
    /// Give up after this many unanswered keep-alives.
    keepalive_probes: u32 => keepalive.probes;
    /// Once the application has closed both directions, wait this long for the peer's FIN, or for its closed window to
    /// open; "0 s": for ever (Linux: `tcp_fin_timeout`, 60 s).
    fin_timeout: Time => fin_timeout;
}

impl ShortForm for EndpointSpec {
    const EXPECTING: &'static str =
        "a preset such as \"ns2-2001\", or a table such as { preset = \"ns2-2001\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self { preset: Some(text.into()), ..Self::default() })
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": skyhaul_tcp::config::PRESETS })
    }
}

/// The preset called `name`.
fn preset(name: &str) -> Result<Config, ValueError> {
    let unknown = || ValueError::unknown(name, "an endpoint preset", PRESETS.iter().copied(), "");
    Config::preset(name).ok_or_else(unknown)
}

macro_rules! same {
    ($($type:ty),*) => { $(impl Key<$type> for $type {
        fn into_value(self) -> Result<$type, ValueError> { Ok(self) }
        fn of(value: $type) -> Self { value }
    })* };
}
same!(bool, u32, f64, HalvingBase, CaGrowth, LossDetection, ProbeNegotiation, RttSource, Ecn, AckCc);

impl Key<Duration> for Time {
    fn into_value(self) -> Result<Duration, ValueError> {
        Ok(self.0)
    }
    fn of(value: Duration) -> Self {
        Self(value)
    }
}

impl Key<u32> for Size {
    fn into_value(self) -> Result<u32, ValueError> {
        u32::try_from(self.0).map_err(|_| ValueError::LargePacket(self.0))
    }
    fn of(value: u32) -> Self {
        Self(value.into())
    }
}

/// A time of zero stands for none.
impl Key<Option<Duration>> for Time {
    fn into_value(self) -> Result<Option<Duration>, ValueError> {
        Ok(Some(self.0).filter(|t| !t.is_zero()))
    }
    fn of(value: Option<Duration>) -> Self {
        Self(value.unwrap_or(Duration::ZERO))
    }
    fn written(value: Option<Duration>) -> Option<Self> {
        value.map(Self)
    }
}

/// Delayed acknowledgements. Short form: "off".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DelayedAckSpec {
    /// Acknowledge every this many full segments.
    pub every: u32,
    /// Longest delay of an acknowledgement.
    pub delay: Time,
}

impl ShortForm for DelayedAckSpec {
    const EXPECTING: &'static str = "\"off\", or a table such as { every = 2, delay = \"200 ms\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "off" => Ok(Self { every: 1, delay: Time(Duration::ZERO) }),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "off" })
    }
}

impl Key<DelayedAck> for Short<DelayedAckSpec> {
    fn into_value(self) -> Result<DelayedAck, ValueError> {
        Ok(DelayedAck { every: self.0.every, delay: self.0.delay.0 })
    }
    fn of(value: DelayedAck) -> Self {
        Self(DelayedAckSpec { every: value.every, delay: Time(value.delay) })
    }
}

impl Key<LossClassifier> for Short<LossClassifierSpec> {
    fn into_value(self) -> Result<LossClassifier, ValueError> {
        Ok(self.0.into())
    }
    fn of(value: LossClassifier) -> Self {
        Self(value.into())
    }
    fn written(value: LossClassifier) -> Option<Self> {
        (value != LossClassifier::None).then(|| Self::of(value))
    }
}

/// Number of SACK blocks, of which at most four fit into the options of a segment (RFC 2018 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SackBlocksSpec(u8);

impl<'de> Deserialize<'de> for SackBlocksSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = u8;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 1 to 4")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<u8, E> {
                let blocks = u8::try_from(n).ok().filter(|blocks| (1..=4).contains(blocks));
                blocks.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
        }
        d.deserialize_i64(Reader).map(Self)
    }
}

impl JsonSchema for SackBlocksSpec {
    fn schema_name() -> Cow<'static, str> {
        "SackBlocksSpec".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 4 })
    }
}

impl Key<u8> for SackBlocksSpec {
    fn into_value(self) -> Result<u8, ValueError> {
        Ok(self.0)
    }
    fn of(value: u8) -> Self {
        Self(value)
    }
}

/// Offer and use SACK: `true`, `false` or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackSpec(pub Option<bool>);

impl<'de> Deserialize<'de> for SackSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Option<bool>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or \"auto\"")
            }
            fn visit_bool<E: de::Error>(self, b: bool) -> Result<Option<bool>, E> {
                Ok(Some(b))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<bool>, E> {
                if text == "auto" {
                    Ok(None)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }
        d.deserialize_any(Reader).map(Self)
    }
}

impl Serialize for SackSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => s.serialize_str("auto"),
            Some(b) => s.serialize_bool(b),
        }
    }
}

impl JsonSchema for SackSpec {
    fn schema_name() -> Cow<'static, str> {
        "SackSpec".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [true, false, "auto"] })
    }
}

impl Key<Option<bool>> for SackSpec {
    fn into_value(self) -> Result<Option<bool>, ValueError> {
        Ok(self.0)
    }
    fn of(value: Option<bool>) -> Self {
        Self(value)
    }
}

/// Reads what `word` accepts, or `"N segments"`, fractions allowed.
fn segments<T>(
    text: &str,
    of: impl Fn(f64) -> T,
    word: impl Fn(&str) -> Option<T>,
    expected: &'static str,
) -> Result<T, ValueError> {
    if let Some(value) = word(text.trim()) {
        return Ok(value);
    }
    let number = text.trim().strip_suffix('s').unwrap_or(text.trim()).strip_suffix("segment");
    let number = number.and_then(|n| Decimal::parse(n.trim())).map(Decimal::to_f64).filter(|n| n.is_finite());
    number.map(of).ok_or_else(|| ValueError::NotAccepted { text: text.into(), expected })
}

/// Declares a value of the window rules that is written as a string.
macro_rules! rule_text {
    ($(#[doc = $doc:literal])* $spec:ident($rule:ident), $advice:literal, $pattern:literal, { $($word:literal => $variant:ident),* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $spec(pub $rule);

        impl<'de> Deserialize<'de> for $spec {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str>>::deserialize(d)
                    .map_err(|_| de::Error::custom(concat!("not accepted here: write ", $advice)))?;
                let word = |w: &str| match w { $($word => Some($rule::$variant),)* _ => None };
                segments(&text, $rule::Segments, word, $advice).map(Self).map_err(de::Error::custom)
            }
        }
        impl Serialize for $spec {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    $rule::Segments(n) => s.collect_str(&format_args!("{n} segments")),
                    $($rule::$variant => s.serialize_str($word),)*
                }
            }
        }
        impl JsonSchema for $spec {
            fn schema_name() -> Cow<'static, str> {
                stringify!($spec).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
        impl Key<$rule> for $spec {
            fn into_value(self) -> Result<$rule, ValueError> {
                match self.0 {
                    $rule::Segments(n) if n < 1.0 => Err(ValueError::FewSegments(n)),
                    rule => Ok(rule),
                }
            }
            fn of(value: $rule) -> Self {
                Self(value)
            }
        }
    };
}

rule_text!(
    /// Initial congestion window: `"4 segments"`, `"rfc3390"`, `"rfc6928"`.
    InitialWindowSpec(InitialWindow), "\"4 segments\", \"rfc3390\" or \"rfc6928\"",
    r"^\s*([0-9][0-9_.]*\s*segments?|rfc3390|rfc6928)\s*$", { "rfc3390" => Rfc3390, "rfc6928" => Rfc6928 }
);
rule_text!(
    /// Initial slow start threshold: `"64 segments"`, `"rwnd"`, `"infinite"`.
    InitialSsthreshSpec(InitialSsthresh), "\"64 segments\", \"rwnd\" or \"infinite\"",
    r"^\s*([0-9][0-9_.]*\s*segments?|rwnd|infinite)\s*$", { "rwnd" => Rwnd, "infinite" => Infinite }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_configuration_has_a_key() {
        // A new field stops this from compiling: give it a line in `endpoint_keys`, and add it here.
        let Config {
            mss: _,
            dsack_undo: _,
            eifel: _,
            f_rto: _,
            header: _,
            mtu_search: _,
            // A host sets it for the path to its peer.
            segment_limit: _,
            rules: _,
            ecn: _,
            ecn_plus: _,
            limited_transmit: _,
            // A host sets it for the version of IP.
            unstated_mss: _,
            dup_thresh: _,
            loss_detection: _,
            tail_loss_probe: _,
            outage_probe: _,
            rto: _,
            rtt_source: _,
            timestamps: _,
            timestamp_tick: _,
            delayed_ack: _,
            ack_cc: _,
            sack: _,
            dsack: _,
            sack_blocks: _,
            rescue_retransmission: _,
            keep_sack_after_rto: _,
            window_validation: _,
            byte_window: _,
            nagle: _,
            receive_buffer: _,
            receive_autotuning: _,
            send_buffer: _,
            send_autotuning: _,
            window_scaling: _,
            probes: _,
            probe_ids: _,
            receiver_rate: _,
            time_wait: _,
            max_retransmissions: _,
            user_timeout: _,
            fin_timeout: _,
            keepalive: _,
            loss_classifier: _,
            // It changes no result.
            header_prediction: _,
        } = Config::modern();
        // All keys of one preset, applied to another, give the first; the buffers have separate keys.
        for from in PRESETS.iter().map(|name| Config::preset(name).unwrap()) {
            for name in PRESETS {
                let spec = EndpointSpec { preset: Some((*name).into()), ..EndpointSpec::of(&from) };
                let mut config = spec.apply("endpoint").unwrap();
                config.receive_buffer = from.receive_buffer;
                config.send_buffer = from.send_buffer;
                assert_eq!(config, from);
            }
        }
    }
}
