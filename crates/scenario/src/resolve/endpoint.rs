//! Endpoints: preset, changes, windows and contradictions.

use super::{Result, refuse};
use crate::amount::Window;
use crate::model::{EndpointSpec, FlowSpec};
use crate::resolved::FlowGroup;
use skyhaul_base::Duration;
use skyhaul_cc::{Config as Control, Policy};
use skyhaul_tcp::Config;
use skyhaul_tcp::config::{AckCc, Ecn, LossClassifier, LossDetection, RttSource};

/// Largest packet, headers included: the limit of the IP length field.
pub(super) const MAX_PACKET: u32 = 65_535;
/// Largest window without and with scaling (RFC 7323 §2.2).
const MAX_PLAIN_WINDOW: u64 = 65_535;
const MAX_WINDOW: u64 = MAX_PLAIN_WINDOW << 14;

pub(super) fn resolve(key: &str, spec: &FlowSpec, cc: &Control) -> Result<Config> {
    let at = format!("{key}.endpoint");
    let table = spec.endpoint.clone().map_or_else(EndpointSpec::default, |e| e.0);
    let (wanted, ecn) = ((table.dsack_undo, table.eifel), table.ecn);
    let mut config = table.apply(&at)?;
    if ecn.is_none() && cc.policy(&config.rules).is_some_and(|policy| policy.scalable) {
        // A scalable control needs to know each mark (RFC 9331 §4.2).
        config.ecn = Ecn::Accurate;
    }
    check_undo(&at, &mut config, wanted)?;
    check(&at, &config)?;
    check_ack_cc(&at, &config)?;
    if let Some(policy) = cc.policy(&config.rules) {
        check_policy(key, &config, cc, &policy)?;
    }
    check_loss_classifier(&at, config.loss_classifier)?;
    if let Some(rwnd) = spec.rwnd {
        config.receive_buffer = window(&format!("{key}.rwnd"), rwnd, config.mss)?;
    }
    let rwnd = config.receive_buffer;
    let key_of_rwnd = format!("{key}.rwnd");
    if rwnd < u64::from(config.mss) {
        return refuse(key_of_rwnd, format!("\"{rwnd} B\" is less than a segment of {} B", config.mss));
    }
    if !config.window_scaling && rwnd > MAX_PLAIN_WINDOW {
        return refuse(
            key_of_rwnd,
            format!("{rwnd} B cannot be advertised without window scaling: write at most \"65535 B\""),
        );
    }
    if rwnd > MAX_WINDOW {
        return refuse(key_of_rwnd, format!("more than window scaling can advertise ({MAX_WINDOW} B)"));
    }
    if let Some(sndbuf) = spec.sndbuf {
        config.send_buffer = window(&format!("{key}.sndbuf"), sndbuf, config.mss)?;
    }
    if config.send_buffer < u64::from(config.mss) {
        let (buffer, mss) = (config.send_buffer, config.mss);
        return refuse(format!("{key}.sndbuf"), format!("\"{buffer} B\" is less than a segment of {mss} B"));
    }
    Ok(config)
}

fn window(key: &str, window: Window, mss: u32) -> Result<u64> {
    match window {
        Window::Bytes(n) => Ok(n),
        Window::Segments(n) => match n.checked_mul(mss.into()) {
            Some(bytes) => Ok(bytes),
            None => refuse(key, format!("{n} segments are too many")),
        },
        Window::Unlimited if key.ends_with("rwnd") => {
            refuse(key, format!("more than the largest TCP window: write at most \"{MAX_WINDOW} B\""))
        }
        Window::Unlimited => Ok(u64::MAX),
    }
}

/// The rule of RFC 3449 reacts only to ECN marks.
fn check_ack_cc(at: &str, c: &Config) -> Result<()> {
    if c.ack_cc == AckCc::Rfc3449 && c.ecn == Ecn::Off {
        let why = "\"rfc3449\" needs ECN marks: also write ecn = \"ask\", and put a queue that marks on the return link";
        return refuse(format!("{at}.ack-cc"), why);
    }
    Ok(())
}

/// Refuses a control whose recovery does not fit the endpoint of the flow at `key`: RACK and SNACK need selective
/// acknowledgements and a recovery that repairs losses in any order (RFC 8985 §4), and such a recovery needs them itself.
fn check_policy(key: &str, c: &Config, cc: &Control, policy: &Policy) -> Result<()> {
    let at = |k: &str| format!("{key}.endpoint.{k}");
    let (name, by_sack) = (cc.label(), policy.recovery.uses_pipe());
    let detection = match c.loss_detection {
        LossDetection::DupAcks => None,
        LossDetection::Rack => Some("rack"),
        LossDetection::Snack => Some("snack"),
    };
    if detection.is_none() && c.tail_loss_probe && !policy.rack {
        let why = "only \"rack\" can evaluate the answer to a tail loss probe: also write loss-detection = \"rack\"";
        return refuse(at("tail-loss-probe"), why);
    }
    if let (Some(detection), false) = (detection, by_sack) {
        let auto = if c.sack.is_none() { " (so sack = \"auto\" is off)" } else { "" };
        let plain = Control::by_name(&name).is_some_and(|plain| plain == *cc);
        let with = if plain { "" } else { " with these options" };
        return refuse(
            at("loss-detection"),
            format!(
                "\"{detection}\" needs a congestion control that repairs losses with SACK, and \"{name}\"{with} does not{auto}: \
                 write another one, such as cc = \"sack\", or loss-detection = \"dup-acks\""
            ),
        );
    }
    if let (Some(detection), Some(false)) = (detection, c.sack) {
        let why = format!("\"{detection}\" needs SACK: write sack = true, or leave sack out");
        return refuse(at("loss-detection"), why);
    }
    if by_sack && c.sack == Some(false) {
        return refuse(
            at("sack"),
            format!(
                "false, but cc = \"{name}\" needs selective acknowledgements to repair losses: write \
                 sack = true, recovery = \"newreno\" in cc if \"{name}\" has that option, or cc = \"newreno\""
            ),
        );
    }
    Ok(())
}

impl FlowGroup {
    /// Refuses the policy of a user's control as that of a built-in one, which was known when the scenario was resolved.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    pub fn check_policy(&self, policy: &Policy) -> core::result::Result<(), String> {
        check_policy(&format!("flows.{}", self.name), &self.endpoint, &self.cc, policy)
            .map_err(|p| format!("{}: {}", p.key, p.message))
    }
}

fn check_loss_classifier(at: &str, c: LossClassifier) -> Result<()> {
    let at = |k: &str| format!("{at}.loss-classifier.{k}");
    let share = |k: &str, x: f64| {
        if (0.0..=1.0).contains(&x) {
            Ok(())
        } else {
            refuse(at(k), format!("{x} is not a share: write a number from 0 to 1"))
        }
    };
    match c {
        LossClassifier::None => Ok(()),
        LossClassifier::Oracle { false_congestion, false_error } => {
            share("false-congestion", false_congestion)?;
            share("false-error", false_error)
        }
        LossClassifier::InterArrival { low, high } => {
            if low >= 0.0 && low < high && high.is_finite() {
                Ok(())
            } else {
                refuse(
                    at("high"),
                    format!("{low} to {high} is not a valid range: write numbers with 0 <= low < high"),
                )
            }
        }
        LossClassifier::Spike { start, end } => {
            share("start", start)?;
            share("end", end)?;
            if end <= start {
                Ok(())
            } else {
                refuse(
                    at("end"),
                    format!(
                        "a spike that begins at {start} cannot end at {end}: write an end not above start"
                    ),
                )
            }
        }
    }
}

/// Undoing a reduction needs its source of information. If only the preset asks for it, it is switched off with the
/// source.
fn check_undo(at: &str, c: &mut Config, (dsack_undo, eifel): (Option<bool>, Option<bool>)) -> Result<()> {
    if c.dsack_undo && !(c.dsack && c.sack != Some(false)) {
        if dsack_undo == Some(true) {
            let needs = if c.dsack { "sack = true, or leave sack out" } else { "dsack = true too" };
            return refuse(
                format!("{at}.dsack-undo"),
                format!("needs duplicates to be reported by the receiver (RFC 2883): write {needs}"),
            );
        }
        c.dsack_undo = false;
    }
    if c.eifel && !c.timestamps {
        if eifel == Some(true) {
            return refuse(format!("{at}.eifel"), "needs timestamps: also write timestamps = true");
        }
        c.eifel = false;
    }
    Ok(())
}

fn check(at: &str, c: &Config) -> Result<()> {
    let at = |k: &str| format!("{at}.{k}");
    if c.mss == 0 {
        return refuse(at("mss"), "a segment needs at least 1 byte of payload");
    }
    if c.mss.saturating_add(c.header) > MAX_PACKET {
        return refuse(
            at("mss"),
            format!(
                "{} B with headers is more than the largest packet (65535 B)",
                u64::from(c.mss) + u64::from(c.header)
            ),
        );
    }
    if c.dup_thresh == 0 {
        return refuse(at("dup-thresh"), "write at least 1");
    }
    if c.rto.tick.is_zero() {
        return refuse(at("rto-tick"), "a clock needs a granularity: write a time such as \"1 ms\"");
    }
    if c.rto.max.is_zero() || c.rto.min > c.rto.max {
        return refuse(at("rto-max"), "write a time above zero and not below rto-min");
    }
    if c.rto.initial.is_zero() || c.rto.initial > c.rto.max {
        return refuse(at("initial-rto"), "write a time above zero and not above rto-max");
    }
    if c.delayed_ack.every == 0 {
        return refuse(at("delayed-ack.every"), "write at least 1, which means no delay");
    }
    if c.delayed_ack.every > 1 && c.delayed_ack.delay == Duration::ZERO {
        return refuse(at("delayed-ack.delay"), "delayed acknowledgements need a time such as \"200 ms\"");
    }
    if c.timestamp_tick.is_zero() {
        return refuse(at("timestamp-tick"), "write a time such as \"1 ms\"");
    }
    if c.keepalive.interval.is_zero() {
        return refuse(at("keepalive-interval"), "no peer answers in no time: write a time such as \"75 s\"");
    }
    if c.keepalive.probes == 0 {
        return refuse(at("keepalive-probes"), "write at least 1");
    }
    if c.rtt_source == RttSource::Timestamps && !c.timestamps {
        return refuse(at("rtt-source"), "\"timestamps\" also needs timestamps = true");
    }
    if !(c.rules.inflate_ndup.is_finite() && c.rules.inflate_ndup >= 0.0) {
        return refuse(at("inflate-ndup"), "write a number of segments, 0 or more");
    }
    if !(1.0..=2.0).contains(&c.rules.abc_limit) {
        return refuse(at("abc-limit"), "write a number of segments from 1 to 2 (RFC 3465 §2.3)");
    }
    Ok(())
}
