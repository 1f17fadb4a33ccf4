//! The transport of XTP's mechanisms over a wire that loses packets, against closed forms.

use skyhaul_base::amount::RateSpec;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_relay::xtp::{Config, Data, HEADER, Receiver, Repair, Report, Sender};
use std::collections::VecDeque;

const PAYLOAD: u32 = 1448;
/// One way.
const DELAY: Duration = Duration::from_millis(254);

struct World {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    there: VecDeque<(Instant, Data)>,
    back: VecDeque<(Instant, Report)>,
    read: u64,
    sent: u64,
}

impl World {
    fn new(config: &Config, buffer: u64) -> Self {
        Self {
            now: Instant::ZERO,
            sender: Sender::new(config, PAYLOAD, buffer, buffer),
            receiver: Receiver::new(config, buffer),
            there: VecDeque::new(),
            back: VecDeque::new(),
            read: 0,
            sent: 0,
        }
    }

    /// Runs until `end`; `loses` says of each packet of data whether it is lost.
    fn run(&mut self, end: Instant, mut loses: impl FnMut(&Data) -> bool) {
        loop {
            self.sender.write(u64::MAX / 2);
            while let Some(d) = self.sender.poll(self.now) {
                self.sent += u64::from(d.len + HEADER);
                if !loses(&d) {
                    self.there.push_back((self.now + DELAY, d));
                }
            }
            self.read += self.receiver.read(u64::MAX);
            while let Some(r) = self.receiver.poll() {
                self.back.push_back((self.now + DELAY, r));
            }
            let wires = self
                .there
                .front()
                .map_or(Instant::MAX, |x| x.0)
                .min(self.back.front().map_or(Instant::MAX, |x| x.0));
            let next = wires.min(self.sender.next_timeout());
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while self.there.front().is_some_and(|x| x.0 <= self.now) {
                let (_, d) = self.there.pop_front().expect("one");
                self.receiver.handle(&d);
            }
            while self.back.front().is_some_and(|x| x.0 <= self.now) {
                let (_, r) = self.back.pop_front().expect("one");
                self.sender.handle(self.now, &r);
            }
            self.sender.handle_timeout(self.now);
        }
    }
}

fn config(repair: Repair) -> Config {
    let rate = RateSpec::Bits(Rate::from_bits_per_sec(4_000_000));
    Config { rate: Some(rate), repair, ..Config::default() }
}

/// Payload delivered over payload that the rate would carry.
fn share(repair: Repair, p: f64) -> f64 {
    let mut w = World::new(&config(repair), 4 << 20);
    let mut rng = Rng::stream(7, "loss");
    let seconds = 400;
    w.run(Instant::ZERO + Duration::from_secs(seconds), |d| d.len > 0 && rng.unit() < p);
    let packets = 4e6 / 8.0 / f64::from(PAYLOAD + HEADER) * seconds as f64;
    w.read as f64 / (packets * f64::from(PAYLOAD))
}

#[test]
fn selective_repeats_cost_what_is_lost_and_nothing_else() {
    for p in [0.0, 1e-3, 1e-2, 1e-1] {
        let got = share(Repair::Selective, p);
        assert!((got - (1.0 - p)).abs() < 0.012, "{p}: {got}");
    }
}

#[test]
fn go_back_n_costs_a_window_per_loss() {
    // (1 - p) / (1 - p + p W) with W = 4 Mbit/s x 0.508 s / 1500 B = 169 packets: 0.855 at 1e-3.
    let (p, w) = (1e-3, 4e6 * 0.508 / 8.0 / 1500.0);
    let expected = (1.0 - p) / (1.0 - p + p * w);
    let got = share(Repair::GoBackN, p);
    assert!((got - expected).abs() < 0.03, "{got} against {expected}");
}

#[test]
fn bursts_keep_the_rate_and_no_loss_changes_it() {
    for lost in [false, true] {
        let mut w = World::new(&config(Repair::Selective), 4 << 20);
        let mut n = 0;
        w.run(Instant::ZERO + Duration::from_secs(100), |d| {
            n += u64::from(d.len > 0);
            lost && n % 4 == 0 && d.len > 0
        });
        let rate = w.sent as f64 / 100.0;
        assert!((rate / 500_000.0 - 1.0).abs() < 0.01, "{lost}: {rate} B/s");
    }
}

#[test]
fn no_round_trip_passes_before_data_and_a_lost_tail_is_asked_for() {
    let mut w = World::new(&config(Repair::Selective), 1 << 20);
    w.run(Instant::ZERO + DELAY, |_| false);
    assert!(w.receiver.received() > 0, "the first packets bring data");
    // Ten packets, of which the last is lost with its question.
    let mut s = World::new(&config(Repair::Selective), 10 * u64::from(PAYLOAD));
    let mut lost = 0;
    let tail = 9 * u64::from(PAYLOAD);
    s.run(Instant::ZERO + Duration::from_millis(4500), |d| {
        let hit = d.seq == tail && d.len > 0 && lost == 0;
        lost += u32::from(hit);
        hit
    });
    assert!(lost == 1 && s.receiver.received() > tail + u64::from(PAYLOAD));
}

#[test]
fn a_peer_that_is_gone_is_asked_so_often_and_given_up() {
    let mut w = World::new(&config(Repair::Selective), 1 << 20);
    w.run(Instant::ZERO + Duration::from_secs(2), |_| false);
    w.run(Instant::ZERO + Duration::from_secs(2000), |_| true);
    assert!(w.sender.gave_up());
    assert_eq!(w.sender.counters().timeouts, 7, "six questions more than the first");
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender_and_then_goes_on() {
    let buffer = 100 * u64::from(PAYLOAD);
    let c = config(Repair::Selective);
    let (mut s, mut r) = (Sender::new(&c, PAYLOAD, 4 << 20, buffer), Receiver::new(&c, buffer));
    s.write(1 << 20);
    let mut now = Instant::ZERO;
    let mut step = |s: &mut Sender, r: &mut Receiver, n: u32| {
        for _ in 0..n {
            while let Some(d) = s.poll(now) {
                r.handle(&d);
            }
            while let Some(report) = r.poll() {
                s.handle(now, &report);
            }
            now += Duration::from_millis(10);
        }
    };
    step(&mut s, &mut r, 500);
    assert_eq!((r.readable(), r.received()), (buffer, buffer), "a full buffer, and no more");
    assert_eq!(r.read(buffer), buffer);
    step(&mut s, &mut r, 500);
    assert_eq!(r.received(), 2 * buffer);
    assert_eq!((s.counters().repeats, r.duplicates()), (0, 0));
}
