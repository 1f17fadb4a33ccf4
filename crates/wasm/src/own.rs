//! Controls that the host of the module writes. What the sender reports becomes a message to the host; the answer has the window and
//! the requests of the control.
//!
//! A message and its answer are JSON. While the host handles a message, it may ask for what a control inherits
//! ([`inherited`]): `super.on_ack(ack)` in a class. An error of the host ends the run: its exception unwinds through the module, and
//! the host has to start another module.

use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_cc::parts::frame::Frame;
use skyhaul_cc::user::inherited;
use skyhaul_cc::user::{self, Request};
use skyhaul_cc::{
    Ack, AckKind, Actions, Blocked, Clock, CongestionControl, Controls, Cx, Lost, Path, Phase, Policy,
    Priority, ProbeEvent, ProbeSource, ProbeSupport, RateSample, RecoveryMode, Sent, Signal, Start, Train,
    Transmit, Window,
};
use std::cell::RefCell;
use std::sync::Arc;

/// Sends a message to the host and returns its answer.
pub(crate) type Host = fn(&str) -> String;

/// The controls of these names, which `host` provides.
pub(crate) fn controls(names: &[String], host: Host) -> Controls {
    let mut controls = Controls::default();
    for name in names {
        controls.provide(name, Factory { name: name.clone(), host });
    }
    controls
}

struct Factory {
    name: String,
    host: Host,
}

impl user::Factory for Factory {
    fn build(&self, request: &Request<'_>) -> Result<Box<dyn CongestionControl>, user::Error> {
        let options = serde_json::to_value(request.options).map_err(|e| e.to_string())?;
        let message = json!({ "create": { "control": self.name, "flow": request.flow, "options": options } });
        let made: Made = read(&(self.host)(&message.to_string()))?;
        let policy = made.policy.resolve(&made.hooks);
        let mut frame = Frame::new(request.rules, policy.recovery);
        frame.ssthresh = made.ssthresh.unwrap_or(f64::INFINITY);
        frame.reset(made.cwnd);
        Ok(Box::new(Own {
            id: made.id,
            hooks: made.hooks.into(),
            active: Active {
                frame,
                pacing: made.pacing.map(|bits| Rate::from_bits_per_sec(bits as u64)),
                policy,
                now: Instant::ZERO,
            },
            woken: (Instant::ZERO, 0),
            host: self.host,
        }))
    }
}

/// The answer to `create`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Made {
    /// The number by which later messages name this instance.
    id: u32,
    /// Methods that the class defines: others are not called.
    hooks: Vec<String>,
    policy: ClassPolicy,
    cwnd: f64,
    /// `null` is infinite.
    ssthresh: Option<f64>,
    /// Bit/s; `null` is no pacing.
    pacing: Option<f64>,
}

/// `policy` of a class, by the names of Python's `Policy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClassPolicy {
    recovery: RecoveryMode,
    max_burst: u16,
    rtt_samples: bool,
    rate_samples: bool,
    receiver_rate: bool,
    probes: bool,
    watch_head: bool,
    low_priority_data: bool,
    rack: bool,
}

impl Default for ClassPolicy {
    fn default() -> Self {
        let p = Policy::default();
        Self {
            recovery: p.recovery,
            max_burst: p.max_burst,
            rtt_samples: p.rtt_samples,
            rate_samples: p.rate_samples,
            receiver_rate: p.receiver_rate,
            probes: p.probes,
            watch_head: p.watch_head,
            low_priority_data: p.low_priority_data,
            rack: p.rack,
        }
    }
}

/// Whether a method is among those that a class defines.
fn has(hooks: &[String], method: &str) -> bool {
    hooks.iter().any(|h| h == method)
}

impl ClassPolicy {
    /// The policy with the events for which the class defines a method.
    fn resolve(&self, hooks: &[String]) -> Policy {
        let lost = has(hooks, "on_lost");
        Policy {
            recovery: self.recovery,
            max_burst: self.max_burst,
            rtt_samples: self.rtt_samples,
            // The records of lost segments are stored with the rate samples.
            rate_samples: self.rate_samples || lost,
            receiver_rate: self.receiver_rate,
            probes: self.probes,
            watch_head: self.watch_head,
            low_priority_data: self.low_priority_data,
            rack: self.rack,
            loss_events: lost,
            sent_events: has(hooks, "on_sent"),
            transmit_events: has(hooks, "on_transmit"),
            ..Policy::default()
        }
    }
}

/// The state of a control: the host learns it with each event and may change it.
#[derive(Clone)]
struct Active {
    frame: Frame,
    pacing: Option<Rate>,
    policy: Policy,
    now: Instant,
}

/// A control of the host, as the sender sees it.
struct Own {
    id: u32,
    hooks: Arc<[String]>,
    active: Active,
    /// The instant of the last `on_wake`, and how often it was called then.
    woken: (Instant, u32),
    host: Host,
}

impl core::fmt::Debug for Own {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Own").field("id", &self.id).field("window", &self.active.frame.window()).finish()
    }
}

/// Number of times that a control may be woken at one instant, as in Python.
const MOST_WAKES: u32 = 1000;

/// The event that a control handles, by its own method or by what it inherits.
struct Call {
    active: Active,
    path: Path,
    rng: Rng,
    host: Host,
    id: u32,
    hooks: Arc<[String]>,
    /// The event, for what the control inherits.
    event: Event,
    /// What the methods of the host have asked for.
    act: Requests,
}

#[derive(Clone)]
enum Event {
    Start(Start),
    Ack(Ack),
    Congestion(Signal),
    Recovered,
    Timeout(u32),
    Undo,
    Other,
}

thread_local! {
    /// The event in progress: a single one, since a module has one thread and a sender raises one event at a time.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

fn with_call<T>(f: impl FnOnce(&mut Call) -> T) -> T {
    CALL.with_borrow_mut(|call| {
        f(call.as_mut().expect("the host asks for this only while it handles a message"))
    })
}

/// An answer of the host. It was made by the host's own classes, so that another form is a fault of the host.
fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, user::Error> {
    serde_json::from_str(text).map_err(|e| user::Error::Refused(format!("the host's answer: {e}")))
}

/// What the host made of an event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// Attributes that the class has set.
    cwnd: Option<f64>,
    ssthresh: Option<Number>,
    pacing: Option<Number>,
    #[serde(default)]
    act: Requests,
    #[serde(default)]
    returned: Value,
}

/// A number, or a word for what JSON lacks: `"inf"` is an infinite threshold, `"none"` no rate or no time.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Word(#[expect(dead_code, reason = "there is one word for each attribute")] String),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Requests {
    probe_now: Option<(Source, u32)>,
    train: Option<(Source, u32, f64, f64)>,
    stop_probes: bool,
    wake_at: Option<Number>,
    retransmit_head: bool,
    rewind: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    LastSegment,
    OneByte,
    UnackedRoundRobin,
    UnackedModulo,
}

impl From<Source> for ProbeSource {
    fn from(s: Source) -> Self {
        match s {
            Source::LastSegment => Self::LastSegment,
            Source::OneByte => Self::OneByte,
            Source::UnackedRoundRobin => Self::UnackedRoundRobin,
            Source::UnackedModulo => Self::UnackedModulo,
        }
    }
}

impl Requests {
    fn put(&self, act: &mut Actions, now: Instant) {
        act.probe_now = self.probe_now.map(|(s, n)| (s.into(), n));
        act.train = self.train.map(|(s, count, first, spacing)| Train {
            source: s.into(),
            count,
            first: Duration::from_secs_f64(first),
            spacing: Duration::from_secs_f64(spacing),
        });
        act.stop_probes = self.stop_probes;
        act.wake_at = self.wake_at.as_ref().map(|at| match at {
            // The conversion may round below the current nanosecond.
            Number::Finite(at) => Instant::from_secs_f64(*at).max(now),
            Number::Word(_) => Instant::MAX,
        });
        act.retransmit_head = self.retransmit_head;
        act.rewind = self.rewind;
    }
}

/// Infinite numbers as `"inf"`.
fn number(x: f64) -> Value {
    if x.is_infinite() { json!("inf") } else { json!(x) }
}

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(Duration::as_secs_f64)
}

/// The facts of a path, by the names of the attributes in Python.
fn facts(active: &Active, path: &Path) -> Value {
    let queued = if path.queued_bytes == u64::MAX { f64::INFINITY } else { path.queued() };
    json!({
        "now": active.now.as_secs_f64(),
        "cwnd": active.frame.cwnd,
        "ssthresh": number(active.frame.ssthresh),
        "pacing": active.pacing.map(Rate::bits_per_sec),
        "smss": path.smss,
        "rwnd": number(path.rwnd),
        "in_flight": path.in_flight(),
        "pipe": path.pipe(),
        "queued": number(queued),
        "srtt": seconds(path.srtt),
        "rttvar": path.rttvar.as_secs_f64(),
        "min_rtt": seconds(path.min_rtt),
        "round": path.round,
        "delivered": path.delivered,
        "lost": path.lost,
        "head_age": path.head.map(|h| h.age.as_secs_f64()),
        "head_retransmissions": path.head.map(|h| h.retransmissions),
        "phase": match path.phase { Phase::Open => "open", Phase::Recovery => "recovery", Phase::Loss => "loss" },
        "after_timeout": path.after_timeout,
        "app_limited": path.app_limited,
        "probes": match path.probes { ProbeSupport::Unknown => "unknown", ProbeSupport::Yes => "yes", ProbeSupport::No => "no" },
    })
}

fn of_ack(a: &Ack) -> Value {
    let (count, new_sack, dsack) = match a.kind {
        AckKind::Duplicate { count, new_sack, dsack } => (count, new_sack, dsack),
        _ => (0, false, false),
    };
    json!({
        "kind": match a.kind {
            AckKind::New => "new", AckKind::Partial => "partial", AckKind::Full => "full", AckKind::Duplicate { .. } => "duplicate",
        },
        "acked": a.acked, "sacked": a.sacked, "lost": a.lost, "rtt": seconds(a.rtt), "rate": a.rate.as_ref().map(of_rate),
        "receiver_rate": a.receiver_rate.map(Rate::bits_per_sec), "ece": a.ece, "cwnd_limited": a.cwnd_limited,
        "duplicates": count, "new_sack": new_sack, "dsack": dsack,
    })
}

fn of_rate(r: &RateSample) -> Value {
    json!({
        "delivered": r.delivered, "interval": r.interval.as_secs_f64(), "rate": r.rate.map(Rate::bits_per_sec),
        "app_limited": r.app_limited, "prior_delivered": r.prior_delivered, "lost": r.lost, "in_flight": r.in_flight,
    })
}

fn loss(kind: &str) -> Value {
    json!({ "kind": kind })
}

/// The kind of a signal, as a class sees it.
const fn word(signal: Signal) -> &'static str {
    match signal {
        Signal::Loss => "loss",
        Signal::Ecn => "ecn",
        Signal::Corruption => "corruption",
    }
}

impl Own {
    fn has(&self, hook: &str) -> bool {
        has(&self.hooks, hook)
    }

    /// Handles an event: the host's method if the class has one of this name, and else what it inherits.
    fn event(&mut self, cx: &mut Cx<'_>, method: &str, event: Event, argument: &Value) {
        let own = self.has(method);
        if !own && matches!(event, Event::Other) {
            return;
        }
        self.active.now = cx.now;
        let call = Call {
            active: self.active.clone(),
            path: cx.path.clone(),
            rng: cx.rng.clone(),
            host: self.host,
            id: self.id,
            hooks: self.hooks.clone(),
            event,
            act: Requests::default(),
        };
        CALL.set(Some(call));
        if own {
            ask(method, argument);
        } else {
            inherit(method);
        }
        let call = CALL.take().expect("set above");
        call.act.put(cx.act, cx.now);
        *cx.rng = call.rng;
        self.active = call.active;
    }

    /// Calls a method without side effects.
    fn question(&self, method: &str, arguments: &Value) -> Value {
        let message =
            json!({ "call": { "id": self.id, "method": method, "of": arguments, "facts": Value::Null } });
        let text = (self.host)(&message.to_string());
        read::<Outcome>(&text).unwrap_or_else(|e| panic!("{e}")).returned
    }
}

/// Calls a method of the host's class, and takes over window, pacing and requests. Returns what the method returned.
fn ask(method: &str, argument: &Value) -> Value {
    let (message, host) = with_call(|c| {
        let facts = facts(&c.active, &c.path);
        (json!({ "call": { "id": c.id, "method": method, "of": argument, "facts": facts } }), c.host)
    });
    let text = host(&message.to_string());
    let mut outcome: Outcome = read(&text).unwrap_or_else(|e| panic!("{e}"));
    with_call(|c| {
        set(&mut c.active, &outcome);
        // The outermost method answers last, and has the requests of those within it.
        c.act = core::mem::take(&mut outcome.act);
    });
    outcome.returned
}

/// Takes over what the class has set. A window that it has not touched keeps its state of recovery.
fn set(active: &mut Active, outcome: &Outcome) {
    if let Some(cwnd) = outcome.cwnd {
        active.frame.reset(cwnd);
    }
    match outcome.ssthresh {
        Some(Number::Finite(x)) => active.frame.ssthresh = x,
        Some(Number::Word(_)) => active.frame.ssthresh = f64::INFINITY,
        None => {}
    }
    match outcome.pacing {
        Some(Number::Finite(bits)) => active.pacing = Some(Rate::from_bits_per_sec(bits as u64)),
        Some(Number::Word(_)) => active.pacing = None,
        None => {}
    }
}

/// Whether the class of the call defines this method.
fn defines(method: &str) -> bool {
    with_call(|c| has(&c.hooks, method))
}

/// Runs a function of [`Frame`] with the context of the call.
fn with_frame<T>(f: impl FnOnce(&mut Frame, &mut Cx<'_>) -> T) -> T {
    with_call(|c| {
        let mut act = Actions::default();
        let mut cx = Cx { now: c.active.now, path: &c.path, rng: &mut c.rng, act: &mut act };
        f(&mut c.active.frame, &mut cx)
    })
}

/// What a control inherits: the usual reaction to the event of the call.
fn inherit(method: &str) {
    let event = with_call(|c| c.event.clone());
    match (method, event) {
        ("on_start", Event::Start(start)) => with_frame(|frame, cx| frame.start(cx, &start)),
        ("on_ack", Event::Ack(ack)) => {
            let Some(rule) = with_frame(|frame, cx| inherited::acked(frame, cx, &ack)) else { return };
            if !defines(rule.name()) {
                return with_frame(|frame, cx| frame.grow_like_reno(cx, &ack));
            }
            let cwnd = with_call(|c| c.active.frame.cwnd);
            let by = ask(rule.name(), &of_ack(&ack)).as_f64().unwrap_or(0.0);
            with_frame(|frame, cx| inherited::grow_by(frame, cx, rule, cwnd, by));
        }
        ("on_congestion", Event::Congestion(signal)) => {
            let to = reduction(word(signal));
            let recovery = with_call(|c| c.active.policy.recovery);
            with_frame(|frame, _| inherited::congested(frame, recovery, signal, to));
        }
        ("on_recovered", Event::Recovered) => with_frame(|frame, cx| frame.recovered(cx)),
        ("on_timeout", Event::Timeout(backoff)) => {
            // Once per loss episode (RFC 5681 §3.1): the frame keeps the threshold at later timeouts, whatever the number.
            let to = if backoff <= 1 { reduction("timeout") } else { 2.0 };
            with_frame(|frame, _| frame.timeout(backoff, to));
        }
        ("on_undo", Event::Undo) => with_frame(|frame, cx| frame.undo(cx)),
        _ => {}
    }
}

/// The window that a loss leaves.
fn reduction(kind: &str) -> f64 {
    let kept = if defines("reduction") { ask("reduction", &loss(kind)).as_f64().unwrap_or(0.5) } else { 0.5 };
    with_call(|c| inherited::reduced(&c.active.frame, &c.path, kept))
}

/// A question of the host while it handles a message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) enum Question {
    /// Asks for the inherited reaction to the event; the answer has the facts after it.
    Inherit {
        /// The method of the event.
        method: String,
        /// What the class has set before it asks.
        #[serde(default)]
        set: Value,
    },
    /// Asks for the segments that the inherited rule adds to the window.
    Growth {
        /// Segments acknowledged.
        acked: f64,
    },
    /// Asks for a random number of the connection's stream.
    Random {
        /// Which distribution.
        of: Distribution,
        /// Its parameter, if it has one.
        #[serde(default)]
        with: f64,
    },
}

/// Distributions of random numbers, as in Python.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    /// Uniform on [0, 1).
    Random,
    /// A whole number uniform on 0 … n − 1.
    Below,
    /// Exponential with a mean.
    Exponential,
    /// Normal with mean 0 and standard deviation 1.
    Normal,
}

/// Answers a question of the host.
pub(crate) fn answer(question: Question) -> Value {
    if CALL.with_borrow(Option::is_none) {
        return json!({ "message": "random numbers and super are for events, such as on_ack; not for a constructor" });
    }
    match question {
        Question::Inherit { method, set: before } => {
            if let Ok(outcome) = serde_json::from_value::<Outcome>(before) {
                with_call(|c| set(&mut c.active, &outcome));
            }
            inherit(&method);
            with_call(|c| json!({ "facts": facts(&c.active, &c.path) }))
        }
        Question::Growth { acked } => {
            with_call(|c| json!({ "value": inherited::growth_of(&c.active.frame, &c.path, acked) }))
        }
        Question::Random { of, with } => with_call(|c| {
            let value = match of {
                Distribution::Random => c.rng.unit(),
                Distribution::Below => c.rng.below(with as u64) as f64,
                Distribution::Exponential => c.rng.exponential(with),
                Distribution::Normal => c.rng.normal(),
            };
            json!({ "value": value })
        }),
    }
}

impl CongestionControl for Own {
    fn window(&self) -> Window {
        self.active.frame.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.active.pacing
    }
    fn policy(&self) -> Policy {
        self.active.policy
    }
    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        let low = self.has("priority")
            && self.question("priority", &json!({ "offset": offset, "retransmission": retransmission }))
                == "low";
        if low { Priority::Low } else { Priority::Normal }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let argument = match *start {
            Start::Established { rtt, syn_lost, .. } => {
                json!({ "kind": "established", "rtt": seconds(rtt), "syn_lost": syn_lost })
            }
            Start::Idle => json!({ "kind": "idle", "rtt": Value::Null, "syn_lost": false }),
        };
        self.event(cx, "on_start", Event::Start(*start), &argument);
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let argument = if self.has("on_ack") { of_ack(ack) } else { Value::Null };
        self.event(cx, "on_ack", Event::Ack(ack.clone()), &argument);
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let argument = match event {
            ProbeEvent::Acked { count, stale, newly_acked } => {
                json!({ "supported": true, "count": count, "stale": stale, "newly_acked": newly_acked })
            }
            ProbeEvent::Unsupported => {
                json!({ "supported": false, "count": 0, "stale": false, "newly_acked": 0 })
            }
        };
        self.event(cx, "on_probe", Event::Other, &argument);
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.active.frame.remember();
        self.event(cx, "on_congestion", Event::Congestion(signal), &loss(word(signal)));
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.event(cx, "on_recovered", Event::Recovered, &Value::Null);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if backoff <= 1 {
            self.active.frame.remember();
        }
        self.event(cx, "on_timeout", Event::Timeout(backoff), &json!(backoff));
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.event(cx, "on_undo", Event::Undo, &Value::Null);
    }
    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &Lost) {
        let argument = json!({
            "length": lost.len, "in_flight": lost.in_flight, "lost": lost.lost, "app_limited": lost.app_limited,
            "same_gap": lost.same_gap,
        });
        self.event(cx, "on_lost", Event::Other, &argument);
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &Sent) {
        let argument = json!({ "length": sent.len, "retransmission": sent.retransmission });
        self.event(cx, "on_sent", Event::Other, &argument);
    }
    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        let clock = match transmit.clock {
            Clock::Ack => "ack",
            Clock::Probe => "probe",
            Clock::Timer => "timer",
            Clock::App => "app",
        };
        let blocked = match transmit.blocked {
            Blocked::App => "app",
            Blocked::Burst => "burst",
            Blocked::Cwnd => "cwnd",
            Blocked::Pacing => "pacing",
            Blocked::Rwnd => "rwnd",
        };
        let argument = json!({ "sent": transmit.sent, "clock": clock, "blocked": blocked });
        self.event(cx, "on_transmit", Event::Other, &argument);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let earlier = if self.woken.0 == cx.now { self.woken.1 } else { 0 };
        self.woken = (cx.now, earlier + 1);
        let argument = json!({ "too_often": earlier >= MOST_WAKES });
        self.event(cx, "on_wake", Event::Other, &argument);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host whose classes define what their name says, each as the base class does.
    fn host(message: &str) -> String {
        let message: Value = serde_json::from_str(message).expect("JSON");
        if let Some(create) = message.get("create") {
            let hooks = match create["control"].as_str().expect("a name") {
                "nothing" | "paced" => json!([]),
                "rules" => json!(["increase", "slow_start", "reduction"]),
                "events" => {
                    json!(["on_start", "on_ack", "on_congestion", "on_recovered", "on_timeout", "on_undo"])
                }
                "both" => json!(["on_ack", "increase", "on_timeout", "reduction", "on_transmit", "priority"]),
                "woken" => json!(["increase", "slow_start", "on_wake"]),
                _ => json!(["on_start", "on_ack"]),
            };
            let id = match create["control"].as_str() {
                Some("constant") => 1,
                Some("woken") => 2,
                _ => 0,
            };
            let pacing = (create["control"] == "paced").then_some(4000.0);
            let made = json!({ "id": id, "hooks": hooks, "policy": {}, "cwnd": 1.0, "ssthresh": null, "pacing": pacing });
            return made.to_string();
        }
        let call = &message["call"];
        let method = call["method"].as_str().expect("a method");
        let ask = |question: Value| answer(serde_json::from_value(question).expect("a question"));
        if call["id"] == 1 && method == "on_ack" {
            return json!({ "cwnd": 5.0, "ssthresh": "inf", "pacing": "none" }).to_string();
        }
        if call["id"] == 2 {
            return match method {
                "on_wake" => json!({ "cwnd": 7.0 }),
                _ => json!({ "returned": 0.0, "act": { "wake_at": call["facts"]["now"] } }),
            }
            .to_string();
        }
        let returned = match method {
            "increase" | "slow_start" => {
                ask(json!({ "growth": { "acked": call["of"]["acked"] } }))["value"].clone()
            }
            "reduction" => json!(0.5),
            "priority" => json!("normal"),
            "on_transmit" => Value::Null,
            _ => {
                let after = ask(json!({ "inherit": { "method": method } }));
                assert!(after["facts"]["cwnd"].is_number(), "{after}");
                Value::Null
            }
        };
        json!({ "returned": returned }).to_string()
    }

    fn run(cc: &str) -> Value {
        let set = [
            format!("flows.bulk.cc={cc}"),
            "flows.bulk.count=3".into(),
            "duration=60s".into(),
            "links.sat.error.p=5e-2".into(),
        ];
        let own = ["nothing", "rules", "events", "both", "constant", "paced", "woken"];
        let request =
            json!({ "run": { "scenario": "preset:peach-geo", "set": set, "own": own, "series": true } });
        let answer: Value =
            serde_json::from_str(&crate::answer_with(request.to_string().as_bytes(), host)).expect("JSON");
        assert!(answer["ok"]["digest"].is_string(), "{answer}");
        answer["ok"].clone()
    }

    #[test]
    fn a_class_that_does_as_the_base_class_is_sack() {
        let sack = run("sack");
        assert!(sack["flows"][0]["timeouts"].as_u64() > Some(0), "the run has timeouts");
        for name in ["nothing", "rules", "events", "both"] {
            assert_eq!(run(&format!("user:{name}"))["digest"], sack["digest"], "{name}");
        }
    }

    #[test]
    fn what_a_class_sets_is_what_happens() {
        let run = run("user:constant");
        let cwnd = run["series"]["flows"]["cwnd"].as_array().expect("a series");
        assert_eq!(cwnd.last(), Some(&json!(5.0)));
    }

    #[test]
    fn a_rule_may_ask_to_be_woken() {
        let run = run("user:woken");
        let cwnd = run["series"]["flows"]["cwnd"].as_array().expect("a series");
        assert!(cwnd.contains(&json!(7.0)), "{cwnd:?}");
    }

    #[test]
    fn a_constructor_may_set_the_pacing_rate() {
        let goodput = |cc: &str| run(cc)["flows"][0]["goodput_bit_s"].as_f64().expect("a rate");
        let (sack, paced) = (goodput("sack"), goodput("user:paced"));
        assert!(sack > 8000.0 && paced < 5000.0, "{sack} {paced}");
    }

    #[test]
    fn a_control_that_nobody_provides_is_refused() {
        let request =
            json!({ "run": { "scenario": "preset:peach-geo", "set": ["flows.bulk.cc=user:other"] } });
        let answer = crate::answer_with(request.to_string().as_bytes(), host);
        assert!(answer.contains("nobody provides the control"), "{answer}");
        assert!(crate::question(b"{\"random\":{\"of\":\"random\"}}").contains("not for a constructor"));
        assert!(crate::question(b"{}").contains("not a question"));
    }
}
