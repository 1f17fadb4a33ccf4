//! The worked traces of TCP-Peach: counts and times of [Peach] Figs. 3 and 6 to 9, event by event.
//!
//! Set-up of the loss traces: segment "100" of the paper is the first segment of the connection. The window is
//! 30, the application feeds one segment every RTT/30 until 30 are out and is greedy from then on, the first
//! segment is lost once, every segment is acknowledged at once. Both contenders begin in congestion avoidance.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{
    Config as Control, ControlOptions, InitialSsthresh, InitialWindow, RecoveryMode, Rules, alg,
};
use skyhaul_tcp::{Config, Counted, Mark};
use skyhaul_testkit::pair::{Act, Handshake, is_pure_ack};
use skyhaul_testkit::path::queue::{pushout, threshold};
use skyhaul_testkit::path::{Discipline, QueueConfig};
use skyhaul_testkit::spy::{Call, Note, Notes, Spy};
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const MSS: u64 = 960;
const C0: u64 = 30;

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}
fn acked(p: &Pair<Counted>) -> u64 {
    (p.conn(Side::Client).snapshot().una - 1) / MSS
}
fn cwnd(p: &Pair<Counted>) -> u64 {
    p.conn(Side::Client).snapshot().cwnd.min(64.0) as u64
}

// ----- T1 ---------------------------------------------------------------------------------------------------

fn opening(cc: &Control) -> Pair<Counted> {
    let config = Config { receive_buffer: 64 * MSS, ..Config::ns2_2001() };
    let rtt = Duration::from_secs(1);
    let mut setup = Setup::new(config, cc, rtt / 2);
    setup.handshake = Handshake::Skipped(Some(rtt));
    let mut p = setup.build();
    p.send(Side::Client, u64::MAX / 8, false);
    p
}

#[test]
fn t1_sudden_start_against_slow_start() {
    // [Peach] Fig. 3: rwnd 64, RTT 1 s, tau = 1/64 s.
    let mut columns = Vec::new();
    for name in ["peach", "reno"] {
        let mut p = opening(&Control::by_name(name).expect("known"));
        let column: Vec<_> = (1..=8u32)
            .map(|t| {
                p.run_until(secs(t.into()));
                (cwnd(&p), acked(&p))
            })
            .collect();
        columns.push(column);
    }
    assert_eq!(
        columns[0],
        [(2, 1), (64, 3), (64, 67), (64, 131), (64, 195), (64, 259), (64, 323), (64, 387)]
    );
    assert_eq!(columns[1], [(2, 1), (4, 3), (8, 7), (16, 15), (32, 31), (64, 63), (64, 127), (64, 191)]);
    assert_eq!(columns[0][7].1 - columns[1][7].1, 196, "the lead, in segments");
}

#[test]
fn t1_the_window_opens_by_one_each_tau_and_is_full_at_126_tau() {
    let mut p = opening(&Control::by_name("peach").expect("known"));
    let tau = Duration::from_secs(1) / 64;
    let at = |k: u64| Instant::ZERO + tau * k;
    p.run_until(at(63));
    let sent: Vec<_> = p.probes_sent(Side::Client).map(|e| e.at).collect();
    assert_eq!(sent, (1..=63).map(at).collect::<Vec<_>>(), "rwnd - 1 dummies, one every tau");
    for k in 64..=140u64 {
        p.run_until(at(k));
        assert_eq!(cwnd(&p), (k - 62).min(64), "at {k} tau");
    }
    p.run_until(secs(20.0));
    assert_eq!(p.conn(Side::Client).counters().probes_sent, 63);
    assert_eq!(p.conn(Side::Client).counters().probes_answered, 63);
}

#[test]
fn answers_that_acknowledgements_overtake_count_in_spite_of_their_timestamps() {
    for handshake in [Handshake::Modelled, Handshake::Skipped(Some(Duration::from_secs(1)))] {
        let rules = Rules::NS2_2001;
        let config = Config { rules, receive_buffer: 64 * 960, timestamps: true, ..Config::rfc() };
        let mut setup =
            Setup::new(config, &Control::by_name("peach").expect("known"), Duration::from_millis(500));
        setup.handshake = handshake;
        let mut p: Pair<Counted> = setup.build();
        p.send(Side::Client, 2000 * 960, false);
        p.faults(Side::Client, |d| if d.data_index == 400 { Verdict::Lose } else { Verdict::Deliver });
        // In the return queue every answer waits for a while: acknowledgements with newer timestamps pass it.
        p.faults(Side::Server, |d| match d.segment.mark.is_answer() {
            true => Verdict::Late(Duration::from_millis(80)),
            false => Verdict::Deliver,
        });
        p.run_until(secs(20.0));
        let c = p.conn(Side::Client).counters();
        assert!(c.probes_sent > 30, "{handshake:?}: {c:?}");
        assert_eq!(c.probes_answered, c.probes_sent, "{handshake:?}");
    }
}

// ----- T2, T3 -----------------------------------------------------------------------------------------------

#[derive(Clone, Copy)]
struct Trace {
    rtt: Duration,
    /// Forward bottleneck in bit/s; packets have 1000 bytes.
    rate: Option<u64>,
    discipline: Discipline,
    /// Lets the n-th dummy pass.
    admits: fn(u64) -> bool,
}

impl Trace {
    /// The open path: RTT 0.55 s, no bottleneck. 30 segments per RTT are 18.3 ms apart.
    const OPEN: Self = Self {
        rtt: Duration::from_millis(550),
        rate: None,
        discipline: Discipline::DROP_TAIL,
        admits: |_| true,
    };
    /// A bottleneck of 30 segments per RTT. The RTT is 0.6 s here, so that simultaneous events are exactly so:
    /// times of the paper's 0.55 s scale by 12/11.
    const BOTTLENECK: Self = Self { rtt: Duration::from_millis(600), rate: Some(400_000), ..Self::OPEN };

    fn config() -> Config {
        let rules = Rules {
            initial_window: InitialWindow::Segments(C0 as f64),
            initial_ssthresh: InitialSsthresh::Segments(2.0),
            inflate_ndup: 0.0,
            ..Rules::NS2_2001
        };
        Config { rules, receive_buffer: 64 * MSS, ..Config::ns2_2001() }
    }

    fn run(&self, cc: &Control) -> (Pair<Counted>, Notes) {
        let mut setup = Setup::new(Self::config(), cc, self.rtt / 2);
        setup.handshake = Handshake::Skipped(Some(self.rtt));
        setup.links[0].rate = self.rate.map(Rate::from_bits_per_sec).into();
        setup.links[0].queue = QueueConfig { discipline: self.discipline, ..QueueConfig::default() };
        let mut notes = Notes::default();
        let mut p: Pair<Counted> = setup.build_with(|side, cc| {
            let (spy, n) = Spy::on(cc);
            if side == Side::Client {
                notes = n;
            }
            spy
        });
        // rtt/30, without the drift of rounding it once.
        for k in 0..C0 {
            p.at(self.feed(k), Side::Client, Act::Write(MSS));
        }
        p.at(self.feed(C0 - 1), Side::Client, Act::Write(u64::MAX / 8));
        let admits = self.admits;
        p.faults(Side::Client, move |d| {
            let lost = if d.segment.mark.is_probe() { !admits(d.probe_index) } else { d.index == 0 };
            if lost { Verdict::Lose } else { Verdict::Deliver }
        });
        (p, notes)
    }

    fn feed(&self, k: u64) -> Instant {
        Instant::from_nanos(self.rtt.as_nanos() * k / C0)
    }
    /// Spacings (RTT/30) since time zero, to a thousandth. Behind a bottleneck the clock starts when the first
    /// segment would have been served, one spacing later.
    fn spacings(&self, at: Instant) -> f64 {
        let s = at.as_nanos() as f64 * C0 as f64 / self.rtt.as_nanos() as f64;
        let s = s - if self.rate.is_some() { 1.0 } else { 0.0 };
        (s * 1000.0).round() / 1000.0
    }
}

fn peach(recovery: RecoveryMode) -> Control {
    let config = alg::peach::Config { recovery, start: alg::peach::Opening::Slow, ..Default::default() };
    Control::Peach(config)
}
/// A dummy on every acknowledgement.
fn improved() -> Control {
    let config = alg::peach::Config::reading("improved").expect("a reading");
    Control::Peach(alg::peach::Config { start: alg::peach::Opening::Slow, ..config })
}
fn reno() -> Control {
    Control::by_name("reno").expect("known")
}

/// The four times of the tables: retransmission, exit, 16th and 30th answered dummy, in spacings.
#[derive(Debug, PartialEq)]
struct Times {
    retransmission: f64,
    exit: f64,
    probe_16: f64,
    probe_30: f64,
}

fn times(t: &Trace, p: &Pair<Counted>, notes: &[Note]) -> Times {
    let probes: Vec<_> = notes.iter().filter(|n| n.call == Call::Probe).collect();
    let first = |call| notes.iter().find(|n| n.call == call).expect("happened").at;
    let again = p.data_sent(Side::Client).filter(|e| e.segment.seq.0 == 0u32.wrapping_sub(4999)).nth(1);
    assert_eq!(again.expect("a retransmission").at, first(Call::Congestion));
    let nth = |n: usize| probes.get(n - 1).map_or(f64::NAN, |x| t.spacings(x.at));
    Times {
        retransmission: t.spacings(first(Call::Congestion)),
        exit: t.spacings(first(Call::Recovered)),
        probe_16: nth(16),
        probe_30: nth(30),
    }
}

/// Numbers of dummies and of new data segments that left at each acknowledgement, in order of arrival.
fn released(p: &Pair<Counted>, until: Instant) -> Vec<(usize, usize)> {
    let acks = p.arrived(Side::Client).filter(|e| is_pure_ack(&e.segment) && e.at <= until);
    acks.map(|a| {
        (
            p.probes_sent(Side::Client).filter(|e| e.at == a.at).count(),
            p.data_sent(Side::Client).filter(|e| e.at == a.at).count(),
        )
    })
    .collect()
}

#[test]
fn t2_reno_mode_on_the_open_path() {
    let t = Trace::OPEN;
    let (mut p, notes) = t.run(&peach(RecoveryMode::Reno));
    p.run_until(secs(1.6));
    let notes = notes.lock().expect("one thread").clone();
    // 0.6050, 1.1550, 1.3017, 1.4300 s are 33, 63, 71, 78 spacings.
    let want = Times { retransmission: 33.0, exit: 63.0, probe_16: 71.0, probe_30: 78.0 };
    assert_eq!(times(&t, &p, &notes), want);

    // Counts: duplicates 1-2 nothing, 3 the retransmission, 4-18 two dummies, 19-29 one new segment, the exit 4.
    let released = released(&p, secs(1.16));
    assert_eq!(released.len(), 30);
    for (i, &got) in released.iter().enumerate() {
        let want = match i + 1 {
            1 | 2 => (0, 0),
            3 => (0, 1),
            4..=18 => (2, 0),
            19..=29 => (0, 1),
            _ => (0, 4),
        };
        assert_eq!(got, want, "acknowledgement {}", i + 1);
    }

    // cwnd, wdsn, adsn through the recovery.
    let at = |call: Call| *notes.iter().find(|n| n.call == call).expect("happened");
    let halved = at(Call::Congestion);
    assert_eq!((halved.cwnd, halved.wdsn, halved.adsn), (15.0, 15.0, 30.0));
    let inside: Vec<_> = notes
        .iter()
        .filter(|n| n.at > halved.at && n.at <= at(Call::Recovered).at && n.call == Call::Ack)
        .collect();
    assert_eq!(inside.len(), 27, "27 acknowledgements of data");
    for (i, n) in inside.iter().enumerate() {
        assert_eq!(n.cwnd, 16.0 + i as f64);
        // The dummies of this acknowledgement leave after the window is noted.
        assert_eq!(n.adsn, 30.0 - 2.0 * (i.min(15) as f64));
        assert_eq!(n.wdsn, 15.0);
    }
    assert_eq!((inside[14].cwnd, inside[25].cwnd, inside[26].cwnd), (30.0, 41.0, 42.0));
    let out = at(Call::Recovered);
    assert_eq!((out.cwnd, out.wdsn, out.adsn), (15.0, 15.0, 0.0), "42 -> 15");

    // Probe answers: 15 consume wdsn, 15 open the window by one and release one segment each.
    let answers: Vec<_> = notes.iter().filter(|n| n.call == Call::Probe).collect();
    assert_eq!(answers.len(), 30);
    for (i, n) in answers.iter().enumerate() {
        assert_eq!((n.cwnd, n.wdsn), (15.0 + (i as f64 - 14.0).max(0.0), (14.0 - i as f64).max(0.0)));
    }
    let last = answers[29].at;
    let clocked = p.data_sent(Side::Client).filter(|e| e.at > out.at && e.at <= last).count();
    assert_eq!(clocked, 15, "one new segment for each of the last 15");
}

#[test]
fn t2_reno_mode_behind_a_bottleneck() {
    // B: 0.6050, 1.1733, 1.4667, 1.7233 s are 33, 64, 80, 94 spacings. C (strict priority): 30th at 1.9983 = 109.
    for (discipline, last) in [(Discipline::DROP_TAIL, 94.0), (pushout::Strict::default().into(), 109.0)] {
        let t = Trace { discipline, ..Trace::BOTTLENECK };
        let (mut p, notes) = t.run(&peach(RecoveryMode::Reno));
        p.run_until(secs(3.0));
        let notes = notes.lock().expect("one thread").clone();
        let want = Times { retransmission: 33.0, exit: 64.0, probe_16: 80.0, probe_30: last };
        assert_eq!(times(&t, &p, &notes), want, "{discipline:?}");
    }
}

#[test]
fn t2_cumulative_segments_acknowledged() {
    let moments = [1.155, 1.65, 2.0, 2.3, 2.75, 3.3];
    let column = |cc: &Control| -> Vec<u64> {
        let (mut p, _) = Trace::OPEN.run(cc);
        moments
            .iter()
            .map(|&s| {
                p.run_until(secs(s));
                acked(&p)
            })
            .collect()
    };
    let columns = (column(&peach(RecoveryMode::Reno)), column(&reno()));
    assert_eq!(columns, (vec![30, 41, 61, 75, 102, 134], vec![30, 41, 46, 60, 72, 89]));
}

#[test]
fn t2_sack_mode_on_the_open_path() {
    // By default dummies leave where no data may, up to the fifteenth duplicate: 24 of 30.
    for (cc, last, sent) in [(improved(), 18, 30), (peach(RecoveryMode::Sack), 15, 24)] {
        let t = Trace::OPEN;
        let (mut p, notes) = t.run(&cc);
        p.run_until(secs(1.6));
        let notes = notes.lock().expect("one thread").clone();
        let got = times(&t, &p, &notes);
        assert_eq!((got.retransmission, got.exit, got.probe_16), (33.0, 63.0, 71.0));
        let answers: Vec<_> = notes.iter().filter(|n| n.call == Call::Probe).collect();
        assert_eq!(answers.len(), sent);
        assert_eq!(t.spacings(answers[sent - 1].at), 60.0 + last as f64);
        let released = released(&p, secs(1.16));
        assert_eq!(released.len(), 30);
        for (i, &got) in released.iter().enumerate() {
            let k = i + 1;
            let dummies = if (4..=last).contains(&k) { 2 } else { 0 };
            let data = usize::from(k == 3 || (16..=30).contains(&k));
            assert_eq!(got, (dummies, data), "acknowledgement {k}");
        }
        let halved = notes.iter().position(|n| n.call == Call::Congestion).expect("happened");
        assert!(
            notes[halved..].iter().filter(|n| n.at < secs(1.16)).all(|n| n.cwnd == 15.0),
            "never inflated"
        );
    }
}

/// Data segments with the times at which they left, and ordinary acknowledgements with those of their arrival.
fn data_and_acks(p: &Pair<Counted>) -> [Vec<(Instant, u32)>; 2] {
    [
        p.data_sent(Side::Client).map(|e| (e.at, e.segment.seq.0)).collect(),
        p.arrived(Side::Client)
            .filter(|e| is_pure_ack(&e.segment))
            .map(|e| (e.at, e.segment.ack.0))
            .collect(),
    ]
}

/// [Peach] Figs. 8 and 9: where half of the dummies are lost, the flow is Reno.
fn indistinguishable_from_reno(t: &Trace, survivors: usize) {
    let (mut p, notes) = t.run(&peach(RecoveryMode::Reno));
    let (mut r, _) = t.run(&reno());
    p.run_until(secs(6.0));
    r.run_until(secs(6.0));
    assert_eq!(p.conn(Side::Client).counters().probes_sent, 30);
    let notes = notes.lock().expect("one thread").clone();
    let answers: Vec<_> = notes.iter().filter(|n| n.call == Call::Probe).collect();
    assert_eq!(answers.len(), survivors);
    let out = notes.iter().find(|n| n.call == Call::Recovered).expect("happened");
    let peak = notes.iter().filter(|n| n.at <= out.at).map(|n| n.cwnd).fold(0.0, f64::max);
    assert_eq!((peak, out.cwnd), (42.0, 15.0));
    for pair in notes.windows(2).filter(|w| w[1].call == Call::Probe) {
        assert_eq!(pair[0].cwnd, pair[1].cwnd, "an answer within the guard changes nothing");
    }
    assert_eq!(answers.last().map(|n| n.wdsn), Some(0.0), "the 15th consumes the last of the guard");
    assert_eq!(data_and_acks(&p), data_and_acks(&r));
}

#[test]
fn t3_every_second_dummy_dropped() {
    indistinguishable_from_reno(&Trace { admits: |n| n % 2 == 0, ..Trace::OPEN }, 15);
}

#[test]
fn t3_dummies_admitted_to_an_idle_link_only() {
    // Rate 1.01 c0/RTT: RTT 0.606 s, 20 ms per packet.
    let discipline = threshold::Config { low_below: 0 }.into();
    let t = Trace { rtt: Duration::from_millis(606), discipline, ..Trace::BOTTLENECK };
    indistinguishable_from_reno(&t, 15);
}

#[test]
fn t3_at_rate_one_departures_come_before_arrivals() {
    // Each pair of dummies meets the link at the very moment at which it falls idle. Departures come first, so
    // one of each pair survives: 15, as at rate 1.01. Were arrivals first, every second pair would be lost: 7.
    // (In floating-point time rounding decides, and anything between comes out.)
    let t = Trace { discipline: threshold::Config { low_below: 0 }.into(), ..Trace::BOTTLENECK };
    let (mut p, _) = t.run(&peach(RecoveryMode::Reno));
    p.run_until(secs(4.0));
    assert_eq!(p.conn(Side::Client).counters().probes_answered, 15);
}

#[test]
fn t3_a_sixteenth_dummy_opens_the_window_by_one() {
    let t = Trace { admits: |n| n % 2 == 0 || n == 29, ..Trace::OPEN };
    let (mut p, notes) = t.run(&peach(RecoveryMode::Reno));
    p.run_until(secs(1.5));
    let notes = notes.lock().expect("one thread").clone();
    let answers: Vec<_> = notes.iter().filter(|n| n.call == Call::Probe).collect();
    assert_eq!(answers.len(), 16);
    assert_eq!((answers[14].cwnd, answers[15].cwnd), (15.0, 16.0));
}

#[test]
fn dummies_of_the_traces_are_marked_and_of_low_priority() {
    let (mut p, _) = Trace::OPEN.run(&peach(RecoveryMode::Sack));
    p.run_until(secs(2.0));
    assert!(p.probes_sent(Side::Client).all(|e| {
        e.segment.mark == Mark::Dummy && e.segment.low_priority && u64::from(e.segment.len) == MSS
    }));
    assert!(p.data_sent(Side::Client).all(|e| !e.segment.low_priority));
}
