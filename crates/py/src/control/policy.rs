//! The attribute `policy` of a class: a dict, or the dataclass `skyhaul.Policy`.

use super::value::word;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skyhaul_cc::{Pipe, Policy, RecoveryEnd, RecoveryMode};

/// The keys, for an error message.
const KNOWN: &str = "recovery, recovery_end, gate_on_flight, pipe, max_burst, rtt_samples, rate_samples, receiver_rate, \
    loss_events, sent_events, watch_head, transmit_events, probes, low_priority_data, rack";

/// Reads the attribute `policy` of an instance.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Policy> {
    let mut policy = Policy::default();
    let value = object.getattr("policy")?;
    if value.is_none() {
        return Ok(policy);
    }
    let fields = if let Ok(table) = value.cast::<PyDict>() {
        table.clone()
    } else if value.hasattr("__dataclass_fields__")? {
        let fields = object.py().import("dataclasses")?.call_method1("asdict", (&value,))?;
        fields.cast_into::<PyDict>()?
    } else {
        return Err(PyTypeError::new_err("policy: write a dict, or a skyhaul.Policy"));
    };
    for (key, value) in fields {
        let key: String = key.extract()?;
        set(&mut policy, &key, &value)?;
    }
    Ok(policy)
}

fn set(p: &mut Policy, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let what = format!("policy, {key}");
    let flag = || {
        let wrong = |_| PyTypeError::new_err(format!("{what}: write True or False"));
        value.extract::<bool>().map_err(wrong)
    };
    match key {
        "recovery" => {
            let known = [
                ("tahoe", RecoveryMode::Tahoe),
                ("reno", RecoveryMode::Reno),
                ("newreno", RecoveryMode::NewReno),
                ("sack", RecoveryMode::Sack),
                ("prr", RecoveryMode::Prr),
            ];
            p.recovery = word(&what, value, &known)?;
        }
        "recovery_end" => {
            let known = [
                ("all-outstanding", RecoveryEnd::AllOutstanding),
                ("triggering-segment", RecoveryEnd::TriggeringSegment),
            ];
            p.recovery_end = word(&what, value, &known)?;
        }
        "pipe" => {
            let known = [
                ("scoreboard", Pipe::Scoreboard),
                ("counter", Pipe::Counter { partial_extra: false, from_window: false }),
                ("counter-partial-extra", Pipe::Counter { partial_extra: true, from_window: false }),
            ];
            p.pipe = word(&what, value, &known)?;
        }
        "max_burst" => {
            let wrong = |_| {
                let most = u16::MAX;
                PyValueError::new_err(format!(
                    "{what}: write a whole number of segments, at most {most}; 0 is unlimited"
                ))
            };
            p.max_burst = value.extract::<u16>().map_err(wrong)?;
        }
        "gate_on_flight" => p.gate_on_flight = flag()?,
        "rtt_samples" => p.rtt_samples = flag()?,
        "rate_samples" => p.rate_samples = flag()?,
        "sent_events" => p.sent_events = flag()?,
        "watch_head" => p.watch_head = flag()?,
        "transmit_events" => p.transmit_events = flag()?,
        "probes" => p.probes = flag()?,
        "receiver_rate" => p.receiver_rate = flag()?,
        "loss_events" => p.loss_events = flag()?,
        "rack" => p.rack = flag()?,
        "low_priority_data" => p.low_priority_data = flag()?,
        _ => return Err(PyValueError::new_err(format!("policy: unknown key \"{key}\" (known: {KNOWN})"))),
    }
    Ok(())
}
