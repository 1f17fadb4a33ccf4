//! A control in Python, as the sender sees it.

use super::base::{Control, Hooks};
use super::events::{Ack, Loss, Lost, Probe, Sent, Start, Transmit};
use super::value::{number, word};
use super::{Failed, fail};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skyhaul_base::{Instant, Rate};
use skyhaul_cc::{self as cc, CongestionControl, Cx, Policy, Priority, ProbeEvent, Signal, Window};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of times that a control may be woken at one instant: one that always asks for the current time would stop the
/// simulated clock.
const MOST_WAKES: u32 = 1000;
/// Maximum number of different variable names in one process; see [`name`].
const MOST_NAMES: usize = 1000;

pub(super) struct Bridge {
    object: Py<Control>,
    class: String,
    flow: String,
    hooks: Hooks,
    window: Window,
    pacing: Option<Rate>,
    policy: Policy,
    /// True once the user asks to stop.
    stop: Arc<AtomicBool>,
    /// The instant of the last `on_wake`, and how often it was called then.
    woken: (Instant, u32),
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(&self.class).field("flow", &self.flow).field("window", &self.window).finish()
    }
}

impl Bridge {
    pub(super) fn new(object: &Bound<'_, Control>, class: &str, flow: &str, stop: Arc<AtomicBool>) -> Self {
        let state = object.get().lock();
        Self {
            object: object.clone().unbind(),
            class: class.to_owned(),
            flow: flow.to_owned(),
            hooks: state.hooks,
            window: state.frame.window(),
            pacing: state.pacing,
            policy: state.policy,
            stop,
            woken: (Instant::ZERO, 0),
        }
    }

    /// Handles an event: gives the object the state of the path, calls the method, and takes window, pacing and requests.
    fn event(
        &mut self,
        cx: &mut Cx<'_>,
        method: &'static str,
        call: impl FnOnce(&Bound<'_, Control>) -> PyResult<()>,
    ) {
        if self.stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Failed { message: "stopped".into(), detail: None, source: None }));
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            {
                let mut state = object.get().lock();
                state.path = cx.path.clone();
                state.now = cx.now;
                state.rng = Some(cx.rng.clone());
                state.method = method;
            }
            let result = call(object);
            let mut state = object.get().lock();
            if let Some(rng) = state.rng.take() {
                *cx.rng = rng;
            }
            *cx.act = std::mem::take(&mut state.act);
            self.window = state.frame.window();
            self.pacing = state.pacing;
            let method = state.method;
            drop(state);
            if let Err(e) = result {
                fail(py, e, &self.flow, &self.class, method);
            }
        });
    }

    /// Reads the policy again: a control may change it in `on_start`, and when the peer does not answer probes.
    fn reread_policy(&mut self) {
        Python::attach(|py| {
            let object = self.object.bind(py);
            match Control::read_policy(object, self.hooks) {
                Ok(policy) => {
                    object.get().lock().policy = policy;
                    self.policy = policy;
                }
                Err(e) => fail(py, e, &self.flow, &self.class, "policy"),
            }
        });
    }

    /// Calls a method without side effects.
    fn ask<T>(
        &self,
        method: &'static str,
        call: impl for<'py> FnOnce(&Bound<'py, Control>) -> PyResult<T>,
    ) -> T {
        Python::attach(|py| match call(self.object.bind(py)) {
            Ok(value) => value,
            Err(e) => fail(py, e, &self.flow, &self.class, method),
        })
    }
}

impl CongestionControl for Bridge {
    fn window(&self) -> Window {
        self.window
    }
    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    fn policy(&self) -> Policy {
        self.policy
    }
    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        if !self.hooks.priority {
            return Priority::Normal;
        }
        self.ask("priority", |o| {
            let returned = o.call_method1("priority", (offset, retransmission))?;
            word("what priority returns", &returned, &[("normal", Priority::Normal), ("low", Priority::Low)])
        })
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &cc::Start) {
        let own = self.hooks.on_start;
        self.event(cx, "on_start", |o| {
            if own {
                return o.call_method1("on_start", (Start(*start),)).map(drop);
            }
            o.get().started(start);
            Ok(())
        });
        self.reread_policy();
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &cc::Ack) {
        let own = self.hooks.on_ack;
        self.event(cx, "on_ack", |o| {
            if own { o.call_method1("on_ack", (Ack(ack.clone()),)).map(drop) } else { Control::acked(o, ack) }
        });
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        if self.hooks.on_probe {
            self.event(cx, "on_probe", |o| o.call_method1("on_probe", (Probe(event),)).map(drop));
        }
        if event == ProbeEvent::Unsupported {
            self.reread_policy();
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let own = self.hooks.on_congestion;
        self.event(cx, "on_congestion", |o| {
            if !own {
                return Control::congested(o, &Loss::of(signal));
            }
            o.get().lock().frame.remember();
            o.call_method1("on_congestion", (Loss::of(signal),)).map(drop)
        });
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        let own = self.hooks.on_recovered;
        self.event(cx, "on_recovered", |o| {
            if own {
                return o.call_method0("on_recovered").map(drop);
            }
            o.get().recovered();
            Ok(())
        });
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let own = self.hooks.on_timeout;
        self.event(cx, "on_timeout", |o| {
            if !own {
                return Control::timed_out(o, backoff);
            }
            if backoff <= 1 {
                o.get().lock().frame.remember();
            }
            o.call_method1("on_timeout", (backoff,)).map(drop)
        });
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        let own = self.hooks.on_undo;
        self.event(cx, "on_undo", |o| {
            if own {
                return o.call_method0("on_undo").map(drop);
            }
            o.get().undone();
            Ok(())
        });
    }
    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &cc::Lost) {
        if self.hooks.on_lost {
            self.event(cx, "on_lost", |o| o.call_method1("on_lost", (Lost(*lost),)).map(drop));
        }
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &cc::Sent) {
        if self.hooks.on_sent {
            self.event(cx, "on_sent", |o| o.call_method1("on_sent", (Sent(*sent),)).map(drop));
        }
    }
    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &cc::Transmit) {
        if self.hooks.on_transmit {
            self.event(cx, "on_transmit", |o| {
                o.call_method1("on_transmit", (Transmit(*transmit),)).map(drop)
            });
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        if !self.hooks.on_wake {
            return;
        }
        let earlier = if self.woken.0 == cx.now { self.woken.1 } else { 0 };
        self.woken = (cx.now, earlier + 1);
        self.event(cx, "on_wake", |o| {
            if earlier < MOST_WAKES {
                return o.call_method0("on_wake").map(drop);
            }
            let words = format!(
                "wake_at: woken {MOST_WAKES} times at one instant, since it asks for the current time each time: ask for a \
                 later one, such as self.now + self.srtt"
            );
            Err(PyRuntimeError::new_err(words))
        });
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if !self.hooks.telemetry {
            return;
        }
        let read = |o: &Bound<'_, Control>| {
            let returned = o.call_method0("telemetry")?;
            let wrong = |_| PyTypeError::new_err("what telemetry returns: write a dict of names and numbers");
            let table = returned.cast_into::<PyDict>().map_err(|e| wrong(PyErr::from(e)))?;
            let one = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                let key = name(&key.extract::<String>().map_err(wrong)?)?;
                Ok((key, number(&format!("telemetry, {key}"), &value, "a number", |_| true)?))
            };
            table.into_iter().map(one).collect::<PyResult<Vec<_>>>()
        };
        self.ask("telemetry", read).into_iter().for_each(|(name, value)| out(name, value));
    }
}

/// A variable name that lives as long as the process, since series need static names. Each name is stored once, and
/// their number is limited.
fn name(text: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text) {
        return Ok(known);
    }
    if names.len() >= MOST_NAMES {
        let words =
            format!("telemetry: more than {MOST_NAMES} different names: use the same names in every call");
        return Err(PyValueError::new_err(words));
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}
