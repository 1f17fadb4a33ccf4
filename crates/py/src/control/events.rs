//! Events for a control in Python: small immutable objects, one per event.

use pyo3::prelude::*;
use skyhaul_base::Duration;
use skyhaul_cc as cc;

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(Duration::as_secs_f64)
}

/// One arriving acknowledgement.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Ack(pub(crate) cc::Ack);

#[pymethods]
impl Ack {
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            cc::AckKind::New => "new",
            cc::AckKind::Partial => "partial",
            cc::AckKind::Full => "full",
            cc::AckKind::Duplicate { .. } => "duplicate",
        }
    }
    #[getter]
    fn acked(&self) -> f64 {
        self.0.acked
    }
    #[getter]
    fn sacked(&self) -> f64 {
        self.0.sacked
    }
    #[getter]
    fn lost(&self) -> f64 {
        self.0.lost
    }
    #[getter]
    fn rtt(&self) -> Option<f64> {
        seconds(self.0.rtt)
    }
    #[getter]
    fn rate(&self) -> Option<RateSample> {
        self.0.rate.map(RateSample)
    }
    #[getter]
    fn receiver_rate(&self) -> Option<u64> {
        self.0.receiver_rate.map(skyhaul_base::Rate::bits_per_sec)
    }
    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }
    #[getter]
    fn duplicates(&self) -> u32 {
        match self.0.kind {
            cc::AckKind::Duplicate { count, .. } => count,
            _ => 0,
        }
    }
    #[getter]
    fn new_sack(&self) -> bool {
        matches!(self.0.kind, cc::AckKind::Duplicate { new_sack: true, .. })
    }
    #[getter]
    fn dsack(&self) -> bool {
        matches!(self.0.kind, cc::AckKind::Duplicate { dsack: true, .. })
    }
    fn __repr__(&self) -> String {
        format!(
            "<Ack {}: {} segments acknowledged, {} selectively>",
            self.kind(),
            self.0.acked,
            self.0.sacked
        )
    }
}

/// Delivery-rate sample.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct RateSample(cc::RateSample);

#[pymethods]
impl RateSample {
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    #[getter]
    fn interval(&self) -> f64 {
        self.0.interval.as_secs_f64()
    }
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.0.rate.map(skyhaul_base::Rate::bits_per_sec)
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    #[getter]
    fn prior_delivered(&self) -> u64 {
        self.0.prior_delivered
    }
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }
    fn __repr__(&self) -> String {
        let rate = self.rate().map_or_else(|| "no rate".to_owned(), |r| format!("{r} bit/s"));
        format!("<RateSample {rate} over {} s>", self.interval())
    }
}

/// A reason to reduce the window.
#[pyclass(frozen, get_all, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) kind: &'static str,
}

impl Loss {
    pub(crate) const TIMEOUT: Self = Self { kind: "timeout" };

    pub(crate) fn of(signal: cc::Signal) -> Self {
        let kind = match signal {
            cc::Signal::Loss => "loss",
            cc::Signal::Ecn => "ecn",
            cc::Signal::Corruption => "corruption",
        };
        Self { kind }
    }

    pub(crate) fn signal(&self) -> cc::Signal {
        match self.kind {
            "ecn" => cc::Signal::Ecn,
            "corruption" => cc::Signal::Corruption,
            _ => cc::Signal::Loss,
        }
    }
}

#[pymethods]
impl Loss {
    fn __repr__(&self) -> String {
        format!("<Loss: {}>", self.kind)
    }
}

/// Why data transmission starts.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Start(pub(crate) cc::Start);

#[pymethods]
impl Start {
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            cc::Start::Established { .. } => "established",
            cc::Start::Idle => "idle",
        }
    }
    #[getter]
    fn rtt(&self) -> Option<f64> {
        match self.0 {
            cc::Start::Established { rtt, .. } => seconds(rtt),
            cc::Start::Idle => None,
        }
    }
    #[getter]
    fn syn_lost(&self) -> bool {
        matches!(self.0, cc::Start::Established { syn_lost: true, .. })
    }
    fn __repr__(&self) -> String {
        format!("<Start: {}>", self.kind())
    }
}

/// An event about probes.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Probe(pub(crate) cc::ProbeEvent);

#[pymethods]
impl Probe {
    #[getter]
    fn supported(&self) -> bool {
        self.0 != cc::ProbeEvent::Unsupported
    }
    #[getter]
    fn count(&self) -> u32 {
        match self.0 {
            cc::ProbeEvent::Acked { count, .. } => count,
            cc::ProbeEvent::Unsupported => 0,
        }
    }
    #[getter]
    fn stale(&self) -> bool {
        matches!(self.0, cc::ProbeEvent::Acked { stale: true, .. })
    }
    #[getter]
    fn newly_acked(&self) -> u32 {
        match self.0 {
            cc::ProbeEvent::Acked { newly_acked, .. } => newly_acked,
            cc::ProbeEvent::Unsupported => 0,
        }
    }
    fn __repr__(&self) -> String {
        if self.supported() {
            format!("<Probe: {} answered>", self.count())
        } else {
            "<Probe: unsupported>".into()
        }
    }
}

/// A segment that was marked lost.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Lost(pub(crate) cc::Lost);

#[pymethods]
impl Lost {
    #[getter]
    fn length(&self) -> u32 {
        self.0.len
    }
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    #[getter]
    fn same_gap(&self) -> bool {
        self.0.same_gap
    }
    fn __repr__(&self) -> String {
        format!("<Lost {} bytes>", self.0.len)
    }
}

/// A data segment that was sent.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Sent(pub(crate) cc::Sent);

#[pymethods]
impl Sent {
    #[getter]
    fn length(&self) -> u32 {
        self.0.len
    }
    #[getter]
    fn retransmission(&self) -> bool {
        self.0.retransmission
    }
    fn __repr__(&self) -> String {
        format!("<Sent {} bytes{}>", self.0.len, if self.0.retransmission { " again" } else { "" })
    }
}

/// Report on a run of the send loop.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Transmit(pub(crate) cc::Transmit);

#[pymethods]
impl Transmit {
    #[getter]
    fn sent(&self) -> u32 {
        self.0.sent
    }
    #[getter]
    fn clock(&self) -> &'static str {
        match self.0.clock {
            cc::Clock::Ack => "ack",
            cc::Clock::Probe => "probe",
            cc::Clock::Timer => "timer",
            cc::Clock::App => "app",
        }
    }
    #[getter]
    fn blocked(&self) -> &'static str {
        match self.0.blocked {
            cc::Blocked::App => "app",
            cc::Blocked::Burst => "burst",
            cc::Blocked::Cwnd => "cwnd",
            cc::Blocked::Pacing => "pacing",
            cc::Blocked::Rwnd => "rwnd",
        }
    }
    fn __repr__(&self) -> String {
        format!("<Transmit: {} segments, then {}>", self.0.sent, self.blocked())
    }
}
