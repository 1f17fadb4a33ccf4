//! Test tools for algorithms, built-in or a user's own (feature `testing`).
//!
//! - [`Stage`] raises events one at a time: for unit tests with numbers computed by hand;
//! - [`ideal`] is a small sender over one ideal link: for worked traces and convergence;
//! - [`model`] feeds an algorithm random sequences of events in the documented order and checks the invariants of
//!   every algorithm:
//!
//! ```
//! use skyhaul_cc::{Config, Rules, testing::model};
//!
//! let rules = Rules::NS2_2001;
//! for seed in 0..10 {
//!     model::survive(|| Config::by_name("reno").unwrap().build(&rules), &rules, &model::ops(seed, 300));
//! }
//! ```

pub mod ideal;
pub mod model;

use crate::event::{
    Ack, AckKind, Blocked, Clock, Cx, Head, Path, Phase, ProbeEvent, ProbeSupport, Signal, Start, Transmit,
};
use crate::{Actions, CongestionControl};
use skyhaul_base::{Duration, Instant, Rng};

/// An algorithm with its inputs and nothing else: each method raises one event and returns the requests.
#[derive(Clone, Debug)]
pub struct Stage<C> {
    /// The algorithm.
    pub cc: C,
    /// The inputs.
    pub path: Path,
    /// The clock.
    pub now: Instant,
    /// The algorithm's random stream.
    pub rng: Rng,
}

/// Path facts of an established connection: segments of 1000 bytes, nothing in flight, endless data, a peer that
/// answers probes.
#[must_use]
pub fn path(rwnd: f64) -> Path {
    Path {
        smss: 1000,
        rwnd,
        in_flight_bytes: 0,
        pipe_bytes: 0,
        queued_bytes: u64::MAX,
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
        probes: ProbeSupport::Yes,
        sack: true,
        marked: None,
    }
}

impl Path {
    /// FlightSize, segments.
    pub fn set_in_flight(&mut self, segments: f64) {
        self.in_flight_bytes = self.bytes(segments);
    }
    /// Data in the network, segments.
    pub fn set_pipe(&mut self, segments: f64) {
        self.pipe_bytes = self.bytes(segments);
    }
    /// Data waiting to be sent, segments.
    pub fn set_queued(&mut self, segments: f64) {
        self.queued_bytes = self.bytes(segments);
    }
    fn bytes(&self, segments: f64) -> u64 {
        skyhaul_base::math::floor(segments * f64::from(self.smss) + 0.5) as u64
    }
}

/// An acknowledgement of `acked` segments without other information.
#[must_use]
pub fn ack(kind: AckKind, acked: f64) -> Ack {
    Ack {
        kind,
        acked,
        sacked: 0.0,
        lost: 0.0,
        rtt: None,
        rate: None,
        receiver_rate: None,
        ece: false,
        cwnd_limited: true,
    }
}

impl<C: CongestionControl> Stage<C> {
    /// The algorithm before its first event.
    pub fn new(cc: C, rwnd: f64) -> Self {
        Self { cc, path: path(rwnd), now: Instant::ZERO, rng: Rng::stream(1, "cc.testing") }
    }

    /// Raises an event.
    pub fn call(&mut self, event: impl FnOnce(&mut C, &mut Cx<'_>)) -> Actions {
        let mut act = Actions::default();
        event(&mut self.cc, &mut Cx { now: self.now, path: &self.path, rng: &mut self.rng, act: &mut act });
        act
    }

    /// The congestion window.
    pub fn cwnd(&self) -> f64 {
        self.cc.window().cwnd
    }
    /// The slow start threshold.
    pub fn ssthresh(&self) -> f64 {
        self.cc.window().ssthresh
    }
    /// A variable of [`CongestionControl::telemetry`].
    ///
    /// # Panics
    /// If the algorithm has no variable of that name.
    pub fn variable(&self, name: &str) -> f64 {
        let mut found = None;
        self.cc.telemetry(&mut |n, v| {
            if n == name {
                found = Some(v);
            }
        });
        found.unwrap_or_else(|| panic!("no variable {name}"))
    }

    /// The connection is established; the handshake took `rtt`.
    pub fn start(&mut self, rtt: Option<Duration>) -> Actions {
        self.call(|cc, cx| cc.on_start(cx, &Start::Established { rtt, syn_lost: false, cached: None }))
    }
    /// Data is sent after an idle period.
    pub fn idle(&mut self) -> Actions {
        self.call(|cc, cx| cc.on_start(cx, &Start::Idle))
    }
    /// An acknowledgement of `acked` segments.
    pub fn ack(&mut self, kind: AckKind, acked: f64) -> Actions {
        self.call(|cc, cx| cc.on_ack(cx, &ack(kind, acked)))
    }
    /// `n` acknowledgements of one segment each, outside of recovery.
    pub fn new_acks(&mut self, n: u32) {
        for _ in 0..n {
            self.ack(AckKind::New, 1.0);
        }
    }
    /// The `count`-th consecutive duplicate ACK.
    pub fn duplicate(&mut self, count: u32) -> Actions {
        self.ack(AckKind::Duplicate { count, new_sack: true, dsack: false }, 0.0)
    }
    /// Duplicate ACKs with these counts.
    pub fn duplicates(&mut self, counts: core::ops::RangeInclusive<u32>) {
        for count in counts {
            self.duplicate(count);
        }
    }
    /// `count` probes were answered.
    pub fn probe(&mut self, count: u32) -> Actions {
        self.call(|cc, cx| cc.on_probe(cx, ProbeEvent::Acked { count, stale: false, newly_acked: 0 }))
    }
    /// The peer turns out not to answer probes.
    pub fn unsupported(&mut self) -> Actions {
        self.path.probes = ProbeSupport::No;
        self.call(|cc, cx| cc.on_probe(cx, ProbeEvent::Unsupported))
    }
    /// A signal of congestion is found. Unless it is an ECN echo, recovery begins.
    pub fn congestion(&mut self, signal: Signal) -> Actions {
        let act = self.call(|cc, cx| cc.on_congestion(cx, signal));
        if signal != Signal::Ecn {
            self.path.phase = Phase::Recovery;
        }
        act
    }
    /// The recovery ends.
    pub fn recovered(&mut self) -> Actions {
        self.path.phase = Phase::Open;
        self.call(|cc, cx| cc.on_recovered(cx))
    }
    /// The retransmission timer expires.
    pub fn timeout(&mut self, backoff: u32) -> Actions {
        let act = self.call(|cc, cx| cc.on_timeout(cx, backoff));
        self.path.phase = Phase::Loss;
        self.path.after_timeout = true;
        act
    }
    /// The send loop ran on an acknowledgement and sent `sent` segments.
    pub fn transmitted(&mut self, sent: u32) -> Actions {
        let transmit = Transmit { sent, clock: Clock::Ack, blocked: Blocked::Cwnd };
        self.call(|cc, cx| cc.on_transmit(cx, &transmit))
    }
    /// The requested wake-up time has come.
    pub fn wake(&mut self) -> Actions {
        self.call(|cc, cx| cc.on_wake(cx))
    }
    /// The oldest outstanding segment was sent `age` ago.
    pub fn head(&mut self, age: Duration, retransmissions: u32) {
        self.path.head = Some(Head { age, retransmissions });
    }
}
