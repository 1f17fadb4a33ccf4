//! Events for a control in Python: small immutable objects, one per event.

use pyo3::prelude::*;
use skyhaul_base::Duration;
use skyhaul_cc as cc;

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(Duration::as_secs_f64)
}

/// One arriving acknowledgement. Amounts are in segments of the sender's maximum size.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Ack(pub(crate) cc::Ack);

#[pymethods]
impl Ack {
    /// Whether it advances the window's left edge, and in which state.
    ///
    /// "new" advances outside a recovery, "partial" within one, "full" ends one, "duplicate" does not.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            cc::AckKind::New => "new",
            cc::AckKind::Partial => "partial",
            cc::AckKind::Full => "full",
            cc::AckKind::Duplicate { .. } => "duplicate",
        }
    }
    /// Newly acknowledged cumulatively, segments.
    #[getter]
    fn acked(&self) -> f64 {
        self.0.acked
    }
    /// Newly acknowledged selectively, segments.
    #[getter]
    fn sacked(&self) -> f64 {
        self.0.sacked
    }
    /// Newly marked lost, segments.
    #[getter]
    fn lost(&self) -> f64 {
        self.0.lost
    }
    /// RTT sample, s, if it carries a valid one and the policy asks for them (`rtt_samples`).
    #[getter]
    fn rtt(&self) -> Option<f64> {
        seconds(self.0.rtt)
    }
    /// Delivery-rate sample, if the policy asks for them (`rate_samples`).
    #[getter]
    fn rate(&self) -> Option<RateSample> {
        self.0.rate.map(RateSample)
    }
    /// Arrival rate that the receiver measured, bit/s, if it reports one.
    #[getter]
    fn receiver_rate(&self) -> Option<u64> {
        self.0.receiver_rate.map(skyhaul_base::Rate::bits_per_sec)
    }
    /// Whether it carries an ECN echo.
    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }
    /// Whether the window was in use before it arrived (RFC 7661); True if the endpoint does not check.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }
    /// Duplicates in a row, including this one; 0 if it is not a duplicate.
    #[getter]
    fn duplicates(&self) -> u32 {
        match self.0.kind {
            cc::AckKind::Duplicate { count, .. } => count,
            _ => 0,
        }
    }
    /// Whether it is a duplicate with selective acknowledgements not seen before.
    #[getter]
    fn new_sack(&self) -> bool {
        matches!(self.0.kind, cc::AckKind::Duplicate { new_sack: true, .. })
    }
    /// Whether it is a duplicate that reports a duplicate segment (RFC 2883).
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

/// Delivery-rate sample (draft-ietf-ccwg-bbr, section on delivery rate).
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct RateSample(cc::RateSample);

#[pymethods]
impl RateSample {
    /// Bytes delivered over the interval.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    /// The longer of the send and the acknowledgement interval, s.
    #[getter]
    fn interval(&self) -> f64 {
        self.0.interval.as_secs_f64()
    }
    /// `delivered / interval`, bit/s; None where the interval is shorter than the minimum RTT.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.0.rate.map(skyhaul_base::Rate::bits_per_sec)
    }
    /// Whether the application limited the sender during the interval.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    /// `Control.delivered` when the newest segment of the sample was sent, bytes.
    #[getter]
    fn prior_delivered(&self) -> u64 {
        self.0.prior_delivered
    }
    /// Bytes marked lost between that moment and now.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    /// Bytes in flight when that segment was sent.
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
    /// What showed it: "loss" (by acknowledgements), "ecn", "corruption" or "timeout".
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
    /// Why: "established", or "idle" after nothing was outstanding for longer than the RTO.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            cc::Start::Established { .. } => "established",
            cc::Start::Idle => "idle",
        }
    }
    /// RTT of the handshake, s; None if it was not modelled or its SYN was retransmitted.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        match self.0 {
            cc::Start::Established { rtt, .. } => seconds(rtt),
            cc::Start::Idle => None,
        }
    }
    /// Whether the SYN was retransmitted: RFC 5681 then requires an initial window of one segment.
    #[getter]
    fn syn_lost(&self) -> bool {
        matches!(self.0, cc::Start::Established { syn_lost: true, .. })
    }
    fn __repr__(&self) -> String {
        format!("<Start: {}>", self.kind())
    }
}

/// An answer to probes, or the news that the peer does not answer them.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Probe(pub(crate) cc::ProbeEvent);

#[pymethods]
impl Probe {
    /// Whether the peer answers probes; if it does not, no more will be sent.
    #[getter]
    fn supported(&self) -> bool {
        self.0 != cc::ProbeEvent::Unsupported
    }
    /// Number of probes that this answer acknowledges.
    #[getter]
    fn count(&self) -> u32 {
        match self.0 {
            cc::ProbeEvent::Acked { count, .. } => count,
            cc::ProbeEvent::Unsupported => 0,
        }
    }
    /// Whether they were sent before the current recovery or start began.
    #[getter]
    fn stale(&self) -> bool {
        matches!(self.0, cc::ProbeEvent::Acked { stale: true, .. })
    }
    /// Bytes of the stream that the probe's payload delivered.
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

/// A segment that was marked lost, with the state of the path when it was last sent.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Lost(pub(crate) cc::Lost);

#[pymethods]
impl Lost {
    /// Its payload, bytes.
    #[getter]
    fn length(&self) -> u32 {
        self.0.len
    }
    /// Bytes in flight when it was sent, itself included.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }
    /// Bytes marked lost between that moment and now, itself included.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    /// Whether the application limited the sender when it was sent.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    /// Whether it directly follows the segment marked lost before it.
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
    /// Payload, bytes.
    #[getter]
    fn length(&self) -> u32 {
        self.0.len
    }
    /// Whether it is a retransmission.
    #[getter]
    fn retransmission(&self) -> bool {
        self.0.retransmission
    }
    fn __repr__(&self) -> String {
        format!("<Sent {} bytes{}>", self.0.len, if self.0.retransmission { " again" } else { "" })
    }
}

/// A run of the send loop.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Transmit(pub(crate) cc::Transmit);

#[pymethods]
impl Transmit {
    /// Data segments sent, without the one that fast retransmit forces.
    #[getter]
    fn sent(&self) -> u32 {
        self.0.sent
    }
    /// What made it run: "ack", "probe", "timer" or "app".
    #[getter]
    fn clock(&self) -> &'static str {
        match self.0.clock {
            cc::Clock::Ack => "ack",
            cc::Clock::Probe => "probe",
            cc::Clock::Timer => "timer",
            cc::Clock::App => "app",
        }
    }
    /// Why it stopped: "app", "burst", "cwnd", "pacing" or "rwnd".
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
