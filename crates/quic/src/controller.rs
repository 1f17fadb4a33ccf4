//! Events of quinn as those of a congestion control.

use crate::factory::Factory;
use crate::flight::Flight;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use skyhaul_base::{Instant, Rate, Rng};
use skyhaul_cc::{
    Ack, AckKind, Actions, Algorithm, Blocked, Clock, CongestionControl, Cx, Path, Phase, Policy, ProbeEvent,
    ProbeSupport, Sent, Signal, Start, Transmit,
};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// RFC 9002 §7.2: the smallest congestion window, packets.
const MIN_WINDOW: f64 = 2.0;
/// Maximum congestion window, packets: a larger one would limit nothing.
const MAX_WINDOW: f64 = 1e9;

/// A congestion control as a controller of quinn.
#[derive(Debug)]
pub struct Adapter {
    factory: Factory,
    /// Time zero of the control.
    began: std::time::Instant,
    /// quinn requires controllers to be `Sync`, which controls need not be. The lock is never contended: quinn calls with exclusive
    /// access.
    core: Mutex<Core>,
    /// The control's window, bytes.
    window: u64,
    /// The window of a new connection, bytes.
    initial: u64,
}

#[derive(Debug)]
struct Core {
    control: Algorithm,
    policy: Policy,
    rng: Rng,
    flight: Flight,
    phase: Phase,
    /// Time of the last reduction: losses of packets sent before it cause no further one (RFC 9002 §7.3.2).
    reduced: Option<Instant>,
    /// Persistent congestions since the last acknowledgement.
    timeouts: u32,
    /// Bytes lost since the last acknowledgement.
    lost: u64,
    /// Time at which the control asked to be woken.
    wake: Instant,
    /// Packet size, bytes.
    smss: u32,
}

impl Core {
    fn path(&self) -> Path {
        let f = &self.flight;
        Path {
            smss: self.smss,
            rwnd: MAX_WINDOW,
            in_flight_bytes: f.in_flight,
            pipe_bytes: f.in_flight,
            // quinn reports whether data waits, but not how much.
            queued_bytes: if f.app_limited { 0 } else { u64::from(u32::MAX) },
            srtt: f.srtt,
            rttvar: f.rttvar,
            min_rtt: f.min_rtt,
            round: f.round,
            delivered: f.delivered,
            lost: f.lost,
            head: None,
            phase: self.phase,
            // Unlike in RFC 3465 §2.3, growth afterwards is not slower (RFC 9002 §7.6.2).
            after_timeout: false,
            app_limited: f.app_limited,
            probes: ProbeSupport::No,
            sack: true,
            // quinn does not tell how many packets were marked.
            marked: None,
        }
    }

    fn notify(&mut self, now: Instant, event: impl FnOnce(&mut Algorithm, &mut Cx<'_>)) {
        let path = self.path();
        let mut act = Actions::default();
        event(&mut self.control, &mut Cx { now, path: &path, rng: &mut self.rng, act: &mut act });
        // The other requests concern a sender of TCP; quinn's interface cannot express them.
        if let Some(at) = act.wake_at {
            self.wake = at;
        }
    }

    /// quinn offers no timer: the control wakes with the next event.
    fn wake(&mut self, now: Instant) {
        if now >= self.wake {
            self.wake = Instant::MAX;
            self.notify(now, |c, cx| c.on_wake(cx));
        }
    }

    fn sent(&mut self, now: Instant, bytes: u64, window: u64) {
        self.wake(now);
        if self.flight.is_idle(now) {
            self.notify(now, |c, cx| c.on_start(cx, &Start::Idle));
        }
        self.flight.send(now, bytes);
        if self.policy.sent_events {
            let mut left = bytes;
            while left > 0 {
                let len = left.min(u64::from(self.smss)) as u32;
                left -= u64::from(len);
                self.notify(now, |c, cx| c.on_sent(cx, &Sent { len, retransmission: false }));
            }
        }
        if self.policy.transmit_events && self.control.wants_transmit() {
            let full = self.flight.in_flight + u64::from(self.smss) > window;
            let blocked = if full { Blocked::Cwnd } else { Blocked::App };
            let sent = bytes.div_ceil(u64::from(self.smss)) as u32;
            self.notify(now, |c, cx| c.on_transmit(cx, &Transmit { sent, clock: Clock::Ack, blocked }));
        }
    }

    fn acknowledged(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.wake(now);
        let Some(acked) = self.flight.end(now, in_flight, app_limited) else { return };
        // RFC 9002 §7.3.2: recovery ends when a packet is acknowledged that was sent during it.
        let ends = self.reduced.is_none_or(|at| acked.newest > at);
        let kind = match (self.phase, ends) {
            (Phase::Recovery, true) => AckKind::Full,
            (Phase::Recovery, false) => AckKind::Partial,
            (Phase::Loss, true) => {
                self.phase = Phase::Open;
                AckKind::New
            }
            _ => AckKind::New,
        };
        let size = f64::from(self.smss);
        let event = Ack {
            kind,
            acked: acked.bytes as f64 / size,
            sacked: 0.0,
            lost: core::mem::take(&mut self.lost) as f64 / size,
            rtt: Some(acked.rtt).filter(|_| self.policy.rtt_samples),
            rate: acked.rate.filter(|_| self.policy.rate_samples),
            receiver_rate: None,
            ece: false,
            cwnd_limited: !app_limited,
        };
        self.timeouts = 0;
        self.notify(now, |c, cx| c.on_ack(cx, &event));
        if kind == AckKind::Full {
            self.phase = Phase::Open;
            self.notify(now, |c, cx| c.on_recovered(cx));
            self.policy = self.control.policy();
        }
    }

    /// `bytes` are lost, or marked by ECN if 0; the newest of these packets was sent at `sent`.
    fn congested(&mut self, now: Instant, sent: Instant, persistent: bool, bytes: u64) {
        self.wake(now);
        let losses = self.flight.lose(sent, bytes, self.smss);
        self.lost += bytes;
        if self.policy.loss_events {
            for lost in losses {
                self.notify(now, |c, cx| c.on_lost(cx, &lost));
            }
        }
        // The loss of a packet sent after the last reduction is a new congestion event (RFC 9002 §7.3.2).
        let first_of_event = self.reduced.is_none_or(|at| sent > at);
        if persistent {
            if !first_of_event && self.phase == Phase::Loss {
                return;
            }
            // RFC 9002 §7.6.2: as after a retransmission timeout.
            (self.phase, self.reduced) = (Phase::Loss, Some(now));
            self.timeouts += 1;
            let backoff = self.timeouts;
            self.notify(now, |c, cx| c.on_timeout(cx, backoff));
        } else if first_of_event {
            self.reduced = Some(now);
            let signal = if bytes == 0 { Signal::Ecn } else { Signal::Loss };
            if signal == Signal::Loss {
                self.phase = Phase::Recovery;
            }
            self.notify(now, |c, cx| c.on_congestion(cx, signal));
        }
    }
}

impl Adapter {
    pub(crate) fn new(factory: Factory, now: std::time::Instant, mtu: u16) -> Self {
        let control = factory.control();
        let policy = control.policy();
        let core = Core {
            control,
            policy,
            rng: Rng::stream(factory.seed(), "quic"),
            flight: Flight::new(Instant::ZERO),
            phase: Phase::Open,
            reduced: None,
            timeouts: 0,
            lost: 0,
            wake: Instant::MAX,
            smss: u32::from(mtu),
        };
        let mut adapter = Self { factory, began: now, core: Mutex::new(core), window: 0, initial: 0 };
        adapter.with(|core, _| {
            let start = Start::Established { rtt: None, syn_lost: false, cached: None };
            core.notify(Instant::ZERO, |c, cx| c.on_start(cx, &start));
            if core.policy.probes {
                core.notify(Instant::ZERO, |c, cx| c.on_probe(cx, ProbeEvent::Unsupported));
            }
            core.policy = core.control.policy();
        });
        adapter.initial = adapter.window;
        adapter
    }

    fn with(&mut self, event: impl FnOnce(&mut Core, u64)) {
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        event(core, self.window);
        let w = core.control.window();
        let segments = if w.cwnd.is_finite() { w.cwnd.clamp(MIN_WINDOW, MAX_WINDOW) } else { MIN_WINDOW };
        self.window = (segments * f64::from(core.smss)) as u64;
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet sent at `sent` has arrived. The acknowledgement may cover further packets.
    fn arrived(&mut self, sent: std::time::Instant, bytes: u64) {
        let sent = self.time(sent);
        self.core.get_mut().unwrap_or_else(PoisonError::into_inner).flight.acknowledge(sent, bytes);
    }

    fn time(&self, at: std::time::Instant) -> Instant {
        let nanos = at.saturating_duration_since(self.began).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }
}

impl Factory {
    /// A controller for packets of `mtu` bytes.
    #[must_use]
    pub fn adapter(&self, now: std::time::Instant, mtu: u16) -> Adapter {
        Adapter::new(self.clone(), now, mtu)
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: std::time::Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.adapter(now, current_mtu))
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: std::time::Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.time(now);
        self.with(|core, window| core.sent(now, bytes, window));
    }

    fn on_ack(
        &mut self,
        _now: std::time::Instant,
        sent: std::time::Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &quinn_proto::RttEstimator,
    ) {
        self.arrived(sent, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: std::time::Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let now = self.time(now);
        self.with(|core, _| core.acknowledged(now, in_flight, app_limited));
    }

    fn on_congestion_event(
        &mut self,
        now: std::time::Instant,
        sent: std::time::Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.time(now), self.time(sent));
        self.with(|core, _| core.congested(now, sent, is_persistent_congestion, lost_bytes));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.with(|core, _| core.smss = u32::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        let core = self.core();
        let ssthresh = core.control.window().ssthresh * f64::from(core.smss);
        metrics.ssthresh = ssthresh.is_finite().then_some(ssthresh as u64);
        // quinn only logs it.
        metrics.pacing_rate = core.control.pacing().map(Rate::bits_per_sec);
        metrics
    }

    /// A new path begins with a new control: what is known of the old path may be wrong for it (RFC 9000 §9.4).
    fn clone_box(&self) -> Box<dyn Controller> {
        let core = self.core();
        let mtu = core.smss.try_into().unwrap_or(u16::MAX);
        // quinn passes no time here: that of the last event is the nearest.
        let now = self.began + std::time::Duration::from_nanos(core.flight.active.as_nanos());
        Box::new(Self::new(self.factory.clone(), now, mtu))
    }

    fn initial_window(&self) -> u64 {
        self.initial
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
