//! The base class of controls in Python.

use super::events::{Ack, Loss, Lost, Probe, Sent, Start, Transmit};
use super::value::{count, number, word};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_cc::parts::frame::Frame;
use skyhaul_cc::user::inherited::{self, Rule};
use skyhaul_cc::{
    Actions, Cx, Path, Phase, Policy, ProbeSource, ProbeSupport, RecoveryMode, Rules, Train, Window,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The methods that a class overrides; all others are never called in Python.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) on_start: bool,
    pub(crate) on_ack: bool,
    pub(crate) on_probe: bool,
    pub(crate) on_congestion: bool,
    pub(crate) on_recovered: bool,
    pub(crate) on_timeout: bool,
    pub(crate) on_undo: bool,
    pub(crate) on_lost: bool,
    pub(crate) on_sent: bool,
    pub(crate) on_transmit: bool,
    pub(crate) on_wake: bool,
    pub(crate) increase: bool,
    pub(crate) slow_start: bool,
    pub(crate) reduction: bool,
    pub(crate) priority: bool,
    pub(crate) telemetry: bool,
}

impl Hooks {
    fn of(class: &Bound<'_, PyAny>, base: &Bound<'_, PyAny>) -> PyResult<Self> {
        let own = |name: &str| Ok::<_, PyErr>(!class.getattr(name)?.is(&base.getattr(name)?));
        Ok(Self {
            on_start: own("on_start")?,
            on_ack: own("on_ack")?,
            on_probe: own("on_probe")?,
            on_congestion: own("on_congestion")?,
            on_recovered: own("on_recovered")?,
            on_timeout: own("on_timeout")?,
            on_undo: own("on_undo")?,
            on_lost: own("on_lost")?,
            on_sent: own("on_sent")?,
            on_transmit: own("on_transmit")?,
            on_wake: own("on_wake")?,
            increase: own("increase")?,
            slow_start: own("slow_start")?,
            reduction: own("reduction")?,
            priority: own("priority")?,
            telemetry: own("telemetry")?,
        })
    }
}

/// State of an instance.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) frame: Frame,
    pub(crate) pacing: Option<Rate>,
    pub(crate) path: Path,
    pub(crate) now: Instant,
    /// The random stream of the connection; `None` outside of events.
    pub(crate) rng: Option<Rng>,
    pub(crate) act: Actions,
    pub(crate) policy: Policy,
    pub(crate) hooks: Hooks,
    pub(crate) flow: String,
    /// The current method, for messages.
    pub(crate) method: &'static str,
}

impl State {
    /// Calls a function of [`Frame`] with a context.
    fn with<T>(&mut self, call: impl FnOnce(&mut Frame, &mut Cx<'_>) -> T) -> T {
        let Self { frame, path, now, rng, act, .. } = self;
        // Outside of events any stream will do, since frames draw no random numbers.
        let mut unused = None;
        let rng = match rng {
            Some(rng) => rng,
            None => unused.get_or_insert_with(|| Rng::stream(0, "")),
        };
        call(frame, &mut Cx { now: *now, path, rng, act })
    }

    /// The window given by `reduction`: a fraction, or a number of segments.
    fn reduced(&self, reduction: f64) -> f64 {
        inherited::reduced(&self.frame, &self.path, reduction)
    }
}

/// Base class of your own congestion controls: override what differs from NewReno with SACK.
///
/// There is one instance per connection; options of the scenario are keyword arguments of `__init__`. The
/// simplest way is to override `increase` and `reduction`; every event can be overridden too, and `super()`
/// does what is usual. Windows are numbers of segments, times are seconds of simulated time, rates are bit/s.
///
/// Events of one arriving segment come in this order: `on_ack`, `on_probe`, `on_recovered`, `on_undo`,
/// `on_congestion`, `on_sent` per segment, `on_transmit`. A method that the class does not define costs
/// nothing.
#[pyclass(frozen, subclass, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Control {
    state: Mutex<State>,
}

impl Control {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares a new instance for a connection.
    pub(crate) fn bind(slf: &Bound<'_, Self>, rules: &Rules, flow: &str) -> PyResult<()> {
        let hooks = Hooks::of(slf.get_type().as_any(), slf.py().get_type::<Self>().as_any())?;
        let policy = Self::read_policy(slf, hooks)?;
        let mut state = slf.get().lock();
        let Window { cwnd, ssthresh } = state.frame.window();
        state.frame = Frame::new(rules, policy.recovery);
        state.frame.ssthresh = ssthresh;
        state.frame.reset(cwnd);
        (state.policy, state.hooks) = (policy, hooks);
        flow.clone_into(&mut state.flow);
        Ok(())
    }

    /// The attribute `policy`; events for which the class has a method are enabled automatically.
    pub(crate) fn read_policy(slf: &Bound<'_, Self>, hooks: Hooks) -> PyResult<Policy> {
        let mut policy = super::policy::read(slf.as_any())?;
        policy.loss_events |= hooks.on_lost;
        // The records of lost segments are stored with the rate samples.
        policy.rate_samples |= policy.loss_events;
        policy.sent_events |= hooks.on_sent;
        policy.transmit_events |= hooks.on_transmit;
        Ok(policy)
    }

    fn refuse_probes(state: &State, what: &str) -> PyResult<()> {
        if state.policy.probes {
            return Ok(());
        }
        let words =
            format!("{what}: the class does not ask for probes: write policy = {{\"probes\": True}} in it");
        Err(PyValueError::new_err(words))
    }

    /// Default reaction to an acknowledgement.
    pub(crate) fn acked(slf: &Bound<'_, Self>, ack: &skyhaul_cc::Ack) -> PyResult<()> {
        let control = slf.get();
        let (rule, cwnd) = {
            let mut state = control.lock();
            let Some(rule) = state.with(|frame, cx| inherited::acked(frame, cx, ack)) else {
                return Ok(());
            };
            let hook = if rule == Rule::SlowStart { state.hooks.slow_start } else { state.hooks.increase };
            if !hook {
                state.with(|frame, cx| frame.grow_like_reno(cx, ack));
                return Ok(());
            }
            state.method = rule.name();
            (rule, state.frame.cwnd)
        };
        let method = rule.name();
        let grown = slf.call_method1(method, (Ack(ack.clone()),))?;
        let by =
            number(&format!("what {method} returns"), &grown, "a finite number of segments", f64::is_finite)?;
        control.lock().with(|frame, cx| inherited::grow_by(frame, cx, rule, cwnd, by));
        Ok(())
    }

    fn reduction_of(slf: &Bound<'_, Self>, loss: Loss) -> PyResult<f64> {
        let control = slf.get();
        let hook = {
            let mut state = control.lock();
            if state.hooks.reduction {
                state.method = "reduction";
            }
            state.hooks.reduction
        };
        if !hook {
            return Ok(control.lock().reduced(0.5));
        }
        let returned = slf.call_method1("reduction", (loss,))?;
        let accepted = "the fraction of the window that is kept (above 0, below 1), or the new window in segments (1 or more)";
        let r = number("what reduction returns", &returned, accepted, |x| x.is_finite() && x > 0.0)?;
        Ok(control.lock().reduced(r))
    }

    /// Default reaction to a loss.
    pub(crate) fn congested(slf: &Bound<'_, Self>, loss: &Loss) -> PyResult<()> {
        let to = Self::reduction_of(slf, Loss { kind: loss.kind })?;
        let mut state = slf.get().lock();
        let recovery = state.policy.recovery;
        inherited::congested(&mut state.frame, recovery, loss.signal(), to);
        Ok(())
    }

    /// Default reaction to a timeout.
    pub(crate) fn timed_out(slf: &Bound<'_, Self>, backoff: u32) -> PyResult<()> {
        // Once per loss episode (RFC 5681 §3.1).
        let to = if backoff <= 1 { Self::reduction_of(slf, Loss::TIMEOUT)? } else { 2.0 };
        slf.get().lock().frame.timeout(backoff, to);
        Ok(())
    }

    /// Default behaviour at a start.
    pub(crate) fn started(&self, start: &skyhaul_cc::Start) {
        self.lock().with(|frame, cx| frame.start(cx, start));
    }
    pub(crate) fn recovered(&self) {
        self.lock().with(|frame, cx| frame.recovered(cx));
    }
    pub(crate) fn undone(&self) {
        self.lock().with(|frame, cx| frame.undo(cx));
    }
}

const SOURCES: [(&str, ProbeSource); 4] = [
    ("last-segment", ProbeSource::LastSegment),
    ("one-byte", ProbeSource::OneByte),
    ("unacked-round-robin", ProbeSource::UnackedRoundRobin),
    ("unacked-modulo", ProbeSource::UnackedModulo),
];

fn source(value: Option<&Bound<'_, PyAny>>) -> PyResult<ProbeSource> {
    value.map_or(Ok(ProbeSource::LastSegment), |v| word("source", v, &SOURCES))
}

fn span(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = number(what, value, "a time in seconds, 0 or more", |t| t.is_finite() && t >= 0.0)?;
    Ok(Duration::from_secs_f64(seconds))
}

#[pymethods]
impl Control {
    #[new]
    #[pyo3(signature = (*args, **options))]
    fn new(args: &Bound<'_, PyTuple>, options: Option<&Bound<'_, PyDict>>) -> Self {
        // The arguments are for the class's own `__init__`.
        let _ = (args, options);
        let path = Path {
            smss: 1,
            rwnd: 0.0,
            in_flight_bytes: 0,
            pipe_bytes: 0,
            queued_bytes: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: None,
            round: 0,
            delivered: 0,
            lost: 0,
            head: None,
            phase: Phase::Open,
            after_timeout: false,
            app_limited: false,
            probes: ProbeSupport::Unknown,
            sack: false,
            marked: None,
        };
        Self {
            state: Mutex::new(State {
                frame: Frame::new(&Rules::MODERN, RecoveryMode::Sack),
                pacing: None,
                path,
                now: Instant::ZERO,
                rng: None,
                act: Actions::default(),
                policy: Policy::default(),
                hooks: Hooks::default(),
                flow: String::new(),
                method: "__init__",
            }),
        }
    }

    /// Sender mechanisms that the control requires; see `Policy`. Recovery with SACK by default.
    #[classattr]
    fn policy() -> Option<Py<PyAny>> {
        None
    }

    // The window.

    /// Congestion window, segments; finite, 1 or more, or else `ValueError`.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.lock().frame.cwnd
    }
    #[setter]
    fn set_cwnd(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let accepted = "a finite number of segments, 1 or more";
        let cwnd = number("cwnd", value, accepted, |x| x.is_finite() && x >= 1.0)?;
        self.lock().frame.reset(cwnd);
        Ok(())
    }
    /// Slow start threshold, segments, above 0, or else `ValueError`; may be infinite.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.lock().frame.ssthresh
    }
    #[setter]
    fn set_ssthresh(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let ssthresh =
            number("ssthresh", value, "a number of segments above 0; inf is no limit", |x| x > 0.0)?;
        self.lock().frame.ssthresh = ssthresh;
        Ok(())
    }
    /// Departure rate of data, bit/s, 1 or more, or else `ValueError`; None (default) is ACK clocking.
    #[getter]
    fn pacing(&self) -> Option<u64> {
        self.lock().pacing.map(Rate::bits_per_sec)
    }
    #[setter]
    fn set_pacing(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate = if value.is_none() {
            None
        } else {
            let accepted = "a rate in bit/s, 1 or more, or None for no pacing";
            let bits = number("pacing", value, accepted, |x| (1.0..1e18).contains(&x))?;
            Some(Rate::from_bits_per_sec(bits.round() as u64))
        };
        self.lock().pacing = rate;
        Ok(())
    }
    /// Whether cwnd is below ssthresh.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.lock().frame.slow_start()
    }

    // Facts.

    /// The flow, as in "bulk[3]".
    #[getter]
    fn flow(&self) -> String {
        self.lock().flow.clone()
    }
    /// Simulated time, s.
    #[getter]
    fn now(&self) -> f64 {
        self.lock().now.as_secs_f64()
    }
    /// Sender maximum segment size, bytes of payload.
    #[getter]
    fn smss(&self) -> u32 {
        self.lock().path.smss
    }
    /// Limit other than cwnd: the peer's window or the send buffer, segments.
    #[getter]
    fn rwnd(&self) -> f64 {
        self.lock().path.rwnd
    }
    /// FlightSize of RFC 5681, segments.
    #[getter]
    fn in_flight(&self) -> f64 {
        self.lock().path.in_flight()
    }
    /// Data in the network according to the scoreboard (RFC 6675), segments; FlightSize without SACK.
    #[getter]
    fn pipe(&self) -> f64 {
        self.lock().path.pipe()
    }
    /// Data written but not yet sent, segments; infinite for a greedy source.
    #[getter]
    fn queued(&self) -> f64 {
        self.lock().path.queued()
    }
    /// Smoothed RTT (RFC 6298), s; None before the first sample.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.lock().path.srtt.map(Duration::as_secs_f64)
    }
    /// RTT variation (RFC 6298), s.
    #[getter]
    fn rttvar(&self) -> f64 {
        self.lock().path.rttvar.as_secs_f64()
    }
    /// Smallest RTT sample of the connection, s.
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        self.lock().path.min_rtt.map(Duration::as_secs_f64)
    }
    /// Packet-timed rounds completed.
    #[getter]
    fn round(&self) -> u64 {
        self.lock().path.round
    }
    /// Bytes delivered so far, cumulatively or selectively acknowledged.
    #[getter]
    fn delivered(&self) -> u64 {
        self.lock().path.delivered
    }
    /// Bytes marked lost so far.
    #[getter]
    fn lost(&self) -> u64 {
        self.lock().path.lost
    }
    /// Age of the oldest outstanding segment's last copy, s; None unless the policy has `watch_head`.
    #[getter]
    fn head_age(&self) -> Option<f64> {
        self.lock().path.head.map(|h| h.age.as_secs_f64())
    }
    /// Number of retransmissions of that segment; None unless the policy has `watch_head`.
    #[getter]
    fn head_retransmissions(&self) -> Option<u32> {
        self.lock().path.head.map(|h| h.retransmissions)
    }
    /// What is repaired: "open" nothing, "recovery" a loss by acknowledgements, "loss" one by timeout.
    #[getter]
    fn phase(&self) -> &'static str {
        match self.lock().path.phase {
            Phase::Open => "open",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
        }
    }
    /// Whether the slow start after a timeout is in progress, that is, until cwnd reaches ssthresh.
    #[getter]
    fn after_timeout(&self) -> bool {
        self.lock().path.after_timeout
    }
    /// Whether the application, not the window, limits the sender.
    #[getter]
    fn app_limited(&self) -> bool {
        self.lock().path.app_limited
    }
    /// Whether the peer answers probes; "unknown" before its first answer.
    #[getter]
    fn probes(&self) -> &'static str {
        match self.lock().path.probes {
            ProbeSupport::Unknown => "unknown",
            ProbeSupport::Yes => "yes",
            ProbeSupport::No => "no",
        }
    }
    /// The connection's own random stream, for use in events.
    #[getter]
    fn rng(slf: &Bound<'_, Self>) -> Random {
        Random::new(slf.clone().unbind())
    }

    // Requests.

    /// Sends probes after this event: copies of the last segment, or unacknowledged data in turn.
    ///
    /// Raises `ValueError` if the policy of the class has no `probes`, or if `count` is below 1.
    #[pyo3(signature = (count, source=None))]
    fn probe_now(&self, count: &Bound<'_, PyAny>, source: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (n, source) = (self::count("probe_now, count", count)?, self::source(source)?);
        let mut state = self.lock();
        Self::refuse_probes(&state, "probe_now")?;
        state.act.probe_now = Some((source, n));
        Ok(())
    }
    /// Starts a train of probes: after `first` seconds, then every `spacing` seconds; replaces another.
    ///
    /// Raises `ValueError` if the policy of the class has no `probes`, if `count` is below 1, or if a time is
    /// negative.
    #[pyo3(signature = (count, first, spacing, source=None))]
    fn train(
        &self,
        count: &Bound<'_, PyAny>,
        first: &Bound<'_, PyAny>,
        spacing: &Bound<'_, PyAny>,
        source: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let train = Train {
            source: self::source(source)?,
            count: self::count("train, count", count)?,
            first: span("train, first", first)?,
            spacing: span("train, spacing", spacing)?,
        };
        let mut state = self.lock();
        Self::refuse_probes(&state, "train")?;
        state.act.train = Some(train);
        Ok(())
    }
    /// Stops the train in progress.
    fn stop_probes(&self) {
        self.lock().act.stop_probes = true;
    }
    /// Asks for `on_wake` at a simulated time, s; replaces an earlier request, None cancels.
    ///
    /// Raises `ValueError` if the time is before `now`. A control woken 1000 times at one instant is ended.
    fn wake_at(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        if time.is_none() {
            self.lock().act.wake_at = Some(Instant::MAX);
            return Ok(());
        }
        let now = self.now();
        let accepted = format!("a simulated time in seconds, not before now ({now}), or None to cancel");
        let at = number("wake_at", time, &accepted, |t| t.is_finite() && t >= now)?;
        let mut state = self.lock();
        // The conversion may round below the current nanosecond.
        state.act.wake_at = Some(Instant::from_secs_f64(at).max(state.now));
        Ok(())
    }
    /// Marks the oldest outstanding segment lost; outside a recovery `on_congestion` follows.
    fn retransmit_head(&self) {
        self.lock().act.retransmit_head = true;
    }
    /// Goes back to the oldest outstanding segment without backing off the timer.
    fn rewind(&self) {
        self.lock().act.rewind = true;
    }

    // Methods that a class may override.

    /// Segments to add to cwnd in congestion avoidance; Reno's one per window.
    ///
    /// A negative number shrinks cwnd, to no less than one segment, and ssthresh with it.
    /// Called once per acknowledgement that advances, outside fast recovery, while the window is in use.
    fn increase(&self, ack: PyRef<'_, Ack>) -> f64 {
        let state = self.lock();
        inherited::growth_of(&state.frame, &state.path, ack.0.acked)
    }
    /// Segments to add to cwnd below ssthresh; by default by the endpoint preset (RFC 5681, RFC 3465).
    fn slow_start(&self, ack: PyRef<'_, Ack>) -> f64 {
        let state = self.lock();
        inherited::growth_of(&state.frame, &state.path, ack.0.acked)
    }
    /// The window after a loss; 0.5 is Reno.
    ///
    /// A value below 1 is the fraction of the window that is kept (of cwnd or of FlightSize, as the preset
    /// says, at least two segments); a value of 1 or more is the new window in segments. After a timeout it
    /// sets ssthresh, and cwnd is one segment.
    fn reduction(&self, loss: PyRef<'_, Loss>) -> f64 {
        let _ = loss;
        0.5
    }
    /// The connection is established, or about to send after idling. Sets the initial window.
    fn on_start(&self, start: PyRef<'_, Start>) {
        self.started(&start.0);
    }
    /// An acknowledgement was processed. Calls `slow_start` or `increase`.
    fn on_ack(slf: &Bound<'_, Self>, ack: PyRef<'_, Ack>) -> PyResult<()> {
        Self::acked(slf, &ack.0)
    }
    /// A probe was answered, or the peer turned out not to answer. Does nothing.
    fn on_probe(&self, probe: PyRef<'_, Probe>) {
        let _ = probe;
    }
    /// A loss was detected: once per episode, before the retransmission. Calls `reduction`.
    fn on_congestion(slf: &Bound<'_, Self>, loss: PyRef<'_, Loss>) -> PyResult<()> {
        Self::congested(slf, &loss)
    }
    /// The recovery is over. Sets the window that the reduction chose.
    fn on_recovered(&self) {
        self.recovered();
    }
    /// The retransmission timer expired, `backoff` times in a row. Calls `reduction` the first time.
    fn on_timeout(slf: &Bound<'_, Self>, backoff: u32) -> PyResult<()> {
        Self::timed_out(slf, backoff)
    }
    /// The last reduction was spurious. Reverts it.
    fn on_undo(&self) {
        self.undone();
    }
    /// A segment was marked lost. Raised only for classes that define it.
    fn on_lost(&self, lost: PyRef<'_, Lost>) {
        let _ = lost;
    }
    /// A data segment was sent. Raised only for classes that define it.
    fn on_sent(&self, sent: PyRef<'_, Sent>) {
        let _ = sent;
    }
    /// The send loop has run. Raised only for classes that define it.
    fn on_transmit(&self, transmit: PyRef<'_, Transmit>) {
        let _ = transmit;
    }
    /// The time set with `wake_at` has come.
    fn on_wake(&self) {}
    /// Network priority of the segment that starts `offset` bytes into the stream; "normal" by default.
    fn priority(&self, offset: u64, retransmission: bool) -> &'static str {
        let _ = (offset, retransmission);
        "normal"
    }
    /// Variables for the series `telemetry.NAME` if the scenario records `telemetry`; none by default.
    fn telemetry<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }
}

/// The random stream of a connection: a function of seed and flow, independent of everything else.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Random {
    control: Py<Control>,
}

impl Random {
    pub(crate) fn new(control: Py<Control>) -> Self {
        Self { control }
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> PyResult<T> {
        let mut state = self.control.get().lock();
        let outside = || {
            PyRuntimeError::new_err("rng: random numbers are for events, such as on_ack; not for __init__")
        };
        state.rng.as_mut().map(draw).ok_or_else(outside)
    }
}

#[pymethods]
impl Random {
    /// Uniform on [0, 1).
    ///
    /// Outside of an event, such as in `__init__`, this and the other methods raise `RuntimeError`.
    fn random(&self) -> PyResult<f64> {
        self.draw(Rng::unit)
    }
    /// Uniform on [low, high).
    fn uniform(&self, low: f64, high: f64) -> PyResult<f64> {
        self.draw(|r| low + (high - low) * r.unit())
    }
    /// A whole number uniform on 0 … n - 1; 0 for `n` = 0.
    fn below(&self, n: u64) -> PyResult<u64> {
        self.draw(|r| r.below(n))
    }
    /// Exponentially distributed with this mean, in its unit.
    fn exponential(&self, mean: f64) -> PyResult<f64> {
        self.draw(|r| r.exponential(mean))
    }
    /// Normally distributed with mean 0 and standard deviation 1.
    fn normal(&self) -> PyResult<f64> {
        self.draw(Rng::normal)
    }
}
