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

    /// Runs until `end`; `loses` decides whether a data packet is lost.
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
    // Ten packets, of which the last is lost with its sync request.
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
    assert_eq!(w.sender.counters().timeouts, 7, "the first request and six retries");
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

/// Both directions of a link that carries `rate` bytes per second and holds `queue` bytes: what does not fit is lost.
fn overflowing(rate: f64, queue: f64) -> impl FnMut(&mut World, Instant) -> (u64, u64) {
    let (mut level, mut last) = (0.0_f64, Instant::ZERO);
    move |w, end| {
        let (mut sent, mut lost, mut step) = (0, 0, w.now);
        while step < end {
            step += Duration::from_millis(1);
            w.run(step, |d| {
                // The queue has drained since the last packet. All packets of a burst arrive at once, at the end of the step.
                level = (level - rate * (step - last).as_secs_f64()).max(0.0);
                last = step;
                let full = level + f64::from(d.len + HEADER) > queue;
                if !full {
                    level += f64::from(d.len + HEADER);
                }
                (sent, lost) = (sent + 1, lost + u64::from(full));
                full
            });
        }
        (sent, lost)
    }
}

#[test]
fn a_rate_above_the_link_loses_its_excess_for_ever_and_a_guard_ends_that() {
    // 4 Mbit/s into 2.5 Mbit/s.
    let capacity = 2.5e6 / 8.0;
    let losses = |aimd_guard: bool| {
        let mut w = World::new(&Config { aimd_guard, ..config(Repair::Selective) }, 8 << 20);
        let mut link = overflowing(capacity, 30_000.0);
        link(&mut w, Instant::ZERO + Duration::from_secs(60));
        let before = w.receiver.received();
        let (sent, lost) = link(&mut w, Instant::ZERO + Duration::from_secs(360));
        assert!(!w.sender.gave_up());
        let got = (w.receiver.received() - before) as f64 / 300.0;
        (lost as f64 / sent as f64, got / (capacity * f64::from(PAYLOAD) / f64::from(PAYLOAD + HEADER)))
    };
    let (excess, got) = losses(false);
    assert!((excess - (1.0 - 2.5 / 4.0)).abs() < 0.01 && got > 0.9, "{excess}, {got} of the link");
    let (rest, got) = losses(true);
    // The guard halves the rate at about 1/0.9 of the link's, so that more than half of the link stays used.
    assert!(rest < 0.1 && got > 0.5, "{rest}, {got} of the link");
}

#[test]
fn without_loss_a_guard_changes_nothing() {
    let received = |aimd_guard: bool| {
        let mut w = World::new(&Config { aimd_guard, ..config(Repair::Selective) }, 4 << 20);
        let mut rng = Rng::stream(3, "loss");
        // One packet in fifty is lost, far from the tenth at which the guard acts.
        w.run(Instant::ZERO + Duration::from_secs(100), |d| d.len > 0 && rng.unit() < 0.02);
        (w.receiver.received(), w.sender.rate().to_bits())
    };
    assert_eq!(received(true), received(false));
}

/// Lets both ends talk for this many seconds; each packet and report is lost with probability `p`.
fn talk(w: &mut World, seconds: u64, p: f64, rng: &mut Rng) {
    let end = w.now + Duration::from_secs(seconds);
    while w.now < end {
        while let Some(d) = w.sender.poll(w.now) {
            if rng.unit() >= p {
                w.there.push_back((w.now + DELAY, d));
            }
        }
        w.read += w.receiver.read(u64::MAX);
        while let Some(r) = w.receiver.poll() {
            if rng.unit() >= p {
                w.back.push_back((w.now + DELAY, r));
            }
        }
        w.now += Duration::from_millis(2);
        while w.there.front().is_some_and(|x| x.0 <= w.now) {
            w.there.pop_front().into_iter().for_each(|(_, d)| w.receiver.handle(&d));
        }
        while w.back.front().is_some_and(|x| x.0 <= w.now) {
            w.back.pop_front().into_iter().for_each(|(_, r)| w.sender.handle(w.now, &r));
        }
        w.sender.handle_timeout(w.now);
        w.receiver.handle_timeout(w.now);
    }
}

#[test]
fn a_stream_ends_once_everything_has_arrived_whatever_is_lost() {
    for repair in [Repair::Selective, Repair::GoBackN] {
        for (seed, p) in [(1, 0.0), (2, 0.1), (3, 0.3), (4, 0.3), (5, 0.3)] {
            let mut rng = Rng::stream(seed, "loss");
            let c = Config { retry: 20, ..config(repair) };
            let mut w = World::new(&c, 4 << 20);
            // What is left over a packet, and nothing at all.
            let bytes = if seed == 4 { 0 } else { 100 * u64::from(PAYLOAD) + 7 };
            w.sender.write(bytes);
            w.sender.finish();
            assert_eq!(w.sender.write(1), 0, "nothing more is taken");
            assert!(!w.receiver.ended());
            talk(&mut w, 60, p, &mut rng);
            assert!(w.receiver.ended() && !w.receiver.failed(), "{repair:?} {seed}");
            assert_eq!((w.read, w.sender.acked()), (bytes, bytes), "{repair:?} {seed}");
            // The other direction is open until it closes as well.
            assert!(!w.sender.peer_finished() && !w.sender.is_over() && !w.receiver.is_over());
            w.receiver.finish(w.now);
            talk(&mut w, 120, p, &mut rng);
            assert!(w.sender.peer_finished() && w.sender.is_over(), "{repair:?} {seed}");
            // The last word may be lost: nobody repeats it.
            assert!(w.receiver.is_over() || p > 0.0);
            assert_eq!((w.sender.gave_up(), w.receiver.failed()), (false, false));
            assert_eq!((w.sender.next_timeout(), w.receiver.next_timeout()), (Instant::MAX, Instant::MAX));
        }
    }
}

#[test]
fn an_end_that_comes_first_waits_for_the_data() {
    // The other direction closes before the data has gone, as with a server that sends a banner and no more.
    let mut rng = Rng::stream(9, "loss");
    let mut w = World::new(&config(Repair::Selective), 4 << 20);
    w.sender.write(1 << 20);
    talk(&mut w, 1, 0.0, &mut rng);
    w.receiver.finish(w.now);
    talk(&mut w, 2, 0.0, &mut rng);
    assert!(w.sender.peer_finished() && !w.sender.is_over());
    talk(&mut w, 10, 0.0, &mut rng);
    assert_eq!(w.read, 1 << 20);
    w.sender.finish();
    talk(&mut w, 2, 0.0, &mut rng);
    assert!(w.receiver.ended() && w.sender.is_over() && w.receiver.is_over());
}

#[test]
fn whoever_gives_up_is_heard_within_one_way() {
    let half = DELAY + Duration::from_millis(20);
    for sender in [true, false] {
        let mut rng = Rng::stream(9, "loss");
        let mut w = World::new(&config(Repair::Selective), 4 << 20);
        w.sender.write(2 << 20);
        talk(&mut w, 2, 0.0, &mut rng);
        if sender {
            w.sender.abort()
        } else {
            w.receiver.abort()
        }
        assert!(!(w.sender.gave_up() && w.receiver.failed()));
        let at = w.now;
        while !(w.sender.gave_up() && w.receiver.failed()) && w.now < at + Duration::from_secs(2) {
            let end = w.now + Duration::from_millis(2);
            w.run(end, |_| false);
        }
        assert!(w.now - at <= half, "{sender}: {:?}", w.now - at);
        assert!(!w.receiver.ended(), "what was cut short has no end");
    }
}

#[test]
fn the_last_timeout_keeps_a_report_that_is_due() {
    let mut r = Receiver::new(&Config { retry: 0, ..config(Repair::Selective) }, 1 << 20);
    r.finish(Instant::ZERO);
    assert!(r.poll().is_some_and(|report| report.close.wclose));
    r.handle(&Data { sync: 1, ..Data::default() });
    r.handle_timeout(r.next_timeout());
    assert_eq!(r.poll().map(|report| report.echo), Some(1));
}
