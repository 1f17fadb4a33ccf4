//! Windows worked out by hand, and events in any order.

use super::Adapter;
use crate::Factory;
use proptest::prelude::*;
use quinn_proto::congestion::Controller as _;
use skyhaul_cc::{Config, NAMES};
use std::time::{Duration, Instant};

const MTU: u16 = 1200;
const PACKET: u64 = MTU as u64;
const RTT: Duration = Duration::from_millis(600);

fn factory(name: &str) -> Option<Factory> {
    Factory::new(Config::by_name(name).expect("built in")).ok()
}

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "only differences of times count")]
    Instant::now()
}

/// A controller and the packets in flight.
struct Stage {
    control: Adapter,
    now: Instant,
    flight: Vec<(Instant, u64)>,
    mtu: u16,
}

impl Stage {
    fn new(name: &str) -> Self {
        let now = start();
        let control = factory(name).expect("it fits").adapter(now, MTU);
        Self { control, now, flight: Vec::new(), mtu: MTU }
    }
    fn packets(&self) -> f64 {
        self.control.window() as f64 / PACKET as f64
    }
    fn send(&mut self, packets: u64) {
        let bytes = u64::from(self.mtu);
        self.control.on_sent(self.now, packets * bytes, 0);
        self.flight.extend((0..packets).map(|_| (self.now, bytes)));
    }
    fn acknowledge(&mut self, packets: usize, app_limited: bool) {
        for (sent, bytes) in self.flight.drain(..packets.min(self.flight.len())) {
            self.control.arrived(sent, bytes);
        }
        let left = self.flight.iter().map(|(_, bytes)| bytes).sum();
        self.control.on_end_acks(self.now, left, app_limited, None);
    }
    fn lose(&mut self, packets: usize, persistent: bool) {
        let lost: Vec<_> = self.flight.drain(..packets.min(self.flight.len())).collect();
        if let Some(&(sent, _)) = lost.last() {
            let bytes = lost.iter().map(|(_, bytes)| bytes).sum();
            self.control.on_congestion_event(self.now, sent, persistent, bytes);
        }
    }
    /// A round in which the window is full and every packet arrives, two per acknowledgement.
    fn round(&mut self) {
        self.send((self.control.window() / PACKET).saturating_sub(self.flight.len() as u64));
        self.now += RTT;
        for _ in 0..self.flight.len().div_ceil(2) {
            self.acknowledge(2, false);
        }
    }
}

/// RFC 9002 §7.2: ten packets. §7.3.1: the window grows by what is acknowledged, whatever the number of acknowledgements.
#[test]
fn slow_start_doubles_the_window() {
    let mut stage = Stage::new("newreno");
    assert_eq!(stage.packets(), 10.0);
    assert_eq!(stage.control.initial_window(), 10 * PACKET);
    for expected in [20.0, 40.0, 80.0] {
        stage.round();
        assert_eq!(stage.packets(), expected);
    }
}

/// RFC 9002 §7.3.2: one reduction per round, by half; §7.3.3: one packet more per round after it.
#[test]
fn losses_of_one_flight_halve_the_window_once() {
    let mut stage = Stage::new("newreno");
    stage.round();
    stage.round();
    stage.send(40);
    stage.now += RTT;
    stage.lose(1, false);
    assert_eq!(stage.packets(), 20.0);
    stage.acknowledge(19, false);
    stage.lose(1, false);
    stage.acknowledge(19, false);
    assert_eq!(stage.packets(), 20.0);
    stage.round();
    let after = stage.packets();
    for n in 1..=4 {
        stage.round();
        let growth = (stage.packets() - after) / f64::from(n);
        assert!((0.8..=1.0).contains(&growth), "{growth} per round after {n} rounds");
    }
}

#[test]
fn a_mark_halves_the_window_like_a_loss() {
    let mut stage = Stage::new("newreno");
    stage.round();
    stage.send(20);
    stage.now += RTT;
    let sent = stage.flight[0].0;
    stage.control.on_congestion_event(stage.now, sent, false, 0);
    assert_eq!(stage.packets(), 10.0);
}

/// RFC 9002 §7.6.2: the window falls to its minimum, and slow start leads back to half of what was in flight.
#[test]
fn persistent_congestion_begins_anew() {
    let mut stage = Stage::new("newreno");
    stage.round();
    stage.round();
    stage.send(40);
    stage.now += RTT * 9;
    stage.lose(40, true);
    assert_eq!(stage.packets(), 2.0);
    // A later report of packets that were lost in the same period changes nothing.
    let reported = stage.control.metrics().ssthresh;
    let sent = stage.now.checked_sub(RTT).expect("a time");
    stage.control.on_congestion_event(stage.now, sent, true, PACKET);
    assert_eq!((stage.packets(), stage.control.metrics().ssthresh), (2.0, reported));
    stage.round();
    let first = stage.packets();
    stage.round();
    assert!(stage.packets() >= 1.9 * first, "slow start: {first}, {}", stage.packets());
}

/// RFC 9002 §7.8: a window that is not in use does not grow.
#[test]
fn an_application_that_sends_little_does_not_open_the_window() {
    let mut stage = Stage::new("newreno");
    for _ in 0..10 {
        stage.send(2);
        stage.now += RTT;
        stage.acknowledge(2, true);
    }
    assert_eq!(stage.packets(), 10.0);
}

/// RFC 9000 §9.4: what is known of the old path may be wrong for the new one.
#[test]
fn a_new_path_begins_anew() {
    let mut stage = Stage::new("newreno");
    stage.round();
    stage.round();
    let other = stage.control.clone_box();
    assert_eq!((other.window(), stage.packets()), (10 * PACKET, 40.0));
}

#[test]
fn a_new_path_late_in_a_connection_is_like_a_first_one() {
    // Controls that act by the time since their start, or since an event.
    for name in ["cubic", "westwood", "bbr", "bbr3", "hark"] {
        let mut stage = Stage::new(name);
        stage.round();
        stage.now += Duration::from_secs(100);
        stage.round();
        let control = *stage.control.clone_box().into_any().downcast::<Adapter>().expect("an adapter");
        let mut late = Stage { control, flight: Vec::new(), ..stage };
        let mut first = Stage::new(name);
        for n in 1..=3 {
            late.round();
            first.round();
            assert_eq!(late.packets(), first.packets(), "{name}, round {n}");
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    /// Time passes, ms.
    Wait(u64),
    Send(u64),
    /// This many of the oldest packets are acknowledged.
    Acknowledge {
        packets: usize,
        app_limited: bool,
    },
    Lose {
        packets: usize,
        persistent: bool,
    },
    Mark,
    Mtu(u16),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..700_u64).prop_map(Act::Wait),
        1 => (0..90_000_u64).prop_map(Act::Wait),
        4 => (1..40_u64).prop_map(Act::Send),
        4 => (1..40_usize, any::<bool>())
            .prop_map(|(packets, app_limited)| Act::Acknowledge { packets, app_limited }),
        2 => (1..40_usize, any::<bool>()).prop_map(|(packets, persistent)| Act::Lose { packets, persistent }),
        1 => Just(Act::Mark),
        1 => (1200..9000_u16).prop_map(Act::Mtu),
    ]
}

fn play(name: &str, acts: &[Act]) {
    let mut stage = Stage::new(name);
    for act in acts {
        match *act {
            Act::Wait(ms) => stage.now += Duration::from_millis(ms),
            Act::Send(packets) => stage.send(packets),
            Act::Acknowledge { packets, app_limited } => stage.acknowledge(packets, app_limited),
            Act::Lose { packets, persistent } => stage.lose(packets, persistent),
            Act::Mark => {
                if let Some(&(sent, _)) = stage.flight.last() {
                    stage.control.on_congestion_event(stage.now, sent, false, 0);
                }
            }
            Act::Mtu(bytes) => {
                stage.mtu = bytes;
                stage.control.on_mtu_update(bytes);
            }
        }
        let window = stage.control.window();
        assert!(window >= 2 * u64::from(stage.mtu), "{name}: {window} bytes after {act:?}");
        let _ = stage.control.metrics();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_order_of_events_breaks_a_control(acts in proptest::collection::vec(act(), 1..200)) {
        for name in NAMES.iter().filter(|name| factory(name).is_some()) {
            play(name, &acts);
        }
    }
}
