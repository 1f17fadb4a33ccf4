//! A congestion control that passes every call on to another one and records the window after it. It can pace a control that
//! does not pace.

use skyhaul_base::{Instant, Rate};
use skyhaul_cc::{
    Ack, Algorithm, CongestionControl, Cx, Lost, Policy, Priority, ProbeEvent, Sent, Signal, Start, Transmit,
    Window,
};
use std::sync::{Arc, Mutex};

/// Which call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `on_start`.
    Start,
    /// `on_ack`.
    Ack,
    /// `on_probe`.
    Probe,
    /// `on_congestion`.
    Congestion,
    /// `on_recovered`.
    Recovered,
    /// `on_timeout`.
    Timeout,
    /// `on_transmit`.
    Transmit,
    /// `on_wake` and `on_undo`.
    Other,
}

/// The state of the control after a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    /// When.
    pub at: Instant,
    /// Which call.
    pub call: Call,
    /// Congestion window after it.
    pub cwnd: f64,
    /// Slow start threshold after it.
    pub ssthresh: f64,
    /// Telemetry `wdsn`, 0 where there is none.
    pub wdsn: f64,
    /// Telemetry `adsn`, 0 where there is none.
    pub adsn: f64,
}

/// What a spy has recorded, shared with the test.
pub type Notes = Arc<Mutex<Vec<Note>>>;

/// The spy.
#[derive(Debug)]
pub struct Spy {
    inner: Algorithm,
    notes: Notes,
    /// Windows per smoothed RTT at which it paces, and the rate of the moment.
    gain: Option<f64>,
    rate: Option<Rate>,
}

impl Spy {
    /// Wraps a control. The notes fill as the connection runs.
    #[must_use]
    pub fn on(inner: Algorithm) -> (Algorithm, Notes) {
        let notes = Notes::default();
        (Algorithm::custom(Self { inner, notes: notes.clone(), gain: None, rate: None }), notes)
    }

    /// Wraps a control that does not pace, and paces it at `gain` windows per smoothed RTT.
    #[must_use]
    pub fn pacing(inner: Algorithm, gain: f64) -> Algorithm {
        Algorithm::custom(Self { inner, notes: Notes::default(), gain: Some(gain), rate: None })
    }

    fn note(&mut self, cx: &Cx<'_>, call: Call) {
        let Window { cwnd, ssthresh } = self.inner.window();
        if let (Some(gain), Some(srtt)) = (self.gain, cx.path.srtt) {
            self.rate = Rate::from_bytes_over(gain * cwnd * f64::from(cx.path.smss), srtt);
        }
        let (mut wdsn, mut adsn) = (0.0, 0.0);
        self.inner.telemetry(&mut |name, value| match name {
            "wdsn" => wdsn = value,
            "adsn" => adsn = value,
            _ => {}
        });
        let note = Note { at: cx.now, call, cwnd, ssthresh, wdsn, adsn };
        self.notes.lock().expect("one thread").push(note);
    }
}

impl CongestionControl for Spy {
    fn window(&self) -> Window {
        self.inner.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.inner.pacing().or(self.rate)
    }
    fn policy(&self) -> Policy {
        self.inner.policy()
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        self.inner.bandwidth_estimate(smss)
    }
    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        self.inner.priority(offset, retransmission)
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.inner.on_start(cx, start);
        self.note(cx, Call::Start);
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.inner.on_ack(cx, ack);
        self.note(cx, Call::Ack);
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        self.inner.on_probe(cx, event);
        self.note(cx, Call::Probe);
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.inner.on_congestion(cx, signal);
        self.note(cx, Call::Congestion);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.inner.on_recovered(cx);
        self.note(cx, Call::Recovered);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        self.inner.on_timeout(cx, backoff);
        self.note(cx, Call::Timeout);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.inner.on_undo(cx);
        self.note(cx, Call::Other);
    }
    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &Lost) {
        self.inner.on_lost(cx, lost);
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &Sent) {
        self.inner.on_sent(cx, sent);
    }
    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        self.inner.on_transmit(cx, transmit);
        self.note(cx, Call::Transmit);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.inner.on_wake(cx);
        self.note(cx, Call::Other);
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.inner.telemetry(out);
    }
}
