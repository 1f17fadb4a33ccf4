//! A worked trace of TCP-Probing: what a loss holds back, what the probes say, and what leaves then.
//!
//! A window of 30 segments, one each 20 ms, RTT 600 ms, no bottleneck; the first segment is lost once, every segment is
//! acknowledged at once. Times are in units of 20 ms, a thirtieth of the RTT.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, InitialSsthresh, InitialWindow, Rules};
use skyhaul_tcp::{Config, Counted, Mark};
use skyhaul_testkit::pair::{Act, Handshake};
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const MSS: u64 = 960;
const UNIT: Duration = Duration::from_millis(20);

fn at(units: u64) -> Instant {
    Instant::ZERO + UNIT * units
}

/// The fate of the n-th probe is `probes(n)`.
fn run(probes: fn(u64) -> Verdict) -> Pair<Counted> {
    let rules = Rules {
        initial_window: InitialWindow::Segments(30.0),
        initial_ssthresh: InitialSsthresh::Segments(2.0),
        ..Rules::NS2_2001
    };
    let outage_probe = Some(UNIT * 5);
    let config = Config { rules, receive_buffer: 64 * MSS, outage_probe, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, &Control::by_name("tcp-probing").expect("known"), UNIT * 15);
    setup.handshake = Handshake::Skipped(Some(UNIT * 30));
    let mut p = setup.build();
    for k in 0..30 {
        p.at(at(k), C, Act::Write(MSS));
    }
    p.at(at(29), C, Act::Write(u64::MAX / 8));
    p.faults(C, move |d| match d.segment.mark.is_probe() {
        true => probes(d.probe_index),
        false if d.data_index == 0 => Verdict::Lose,
        false => Verdict::Deliver,
    });
    p
}

fn data(p: &Pair<Counted>, from: u64, to: u64) -> usize {
    p.data_sent(C).filter(|e| e.at >= at(from) && e.at < at(to)).count()
}
fn probes(p: &Pair<Counted>) -> Vec<Instant> {
    p.probes_sent(C).map(|e| e.at).collect()
}
fn cwnd(p: &Pair<Counted>) -> f64 {
    p.conn(C).snapshot().cwnd
}

#[test]
fn short_round_trips_bring_the_whole_window_back_at_once() {
    let mut p = run(|_| Verdict::Deliver);
    // The duplicates for segments 1, 2, 3 arrive at 31, 32, 33: data stops, and a probe of one byte leaves.
    p.run_until(at(92));
    assert_eq!(probes(&p), [at(33), at(63)], "the second one upon the answer to the first");
    let first = p.probes_sent(C).next().expect("sent").segment;
    assert_eq!((first.len, first.mark, first.low_priority), (1, Mark::Dummy, false));
    assert_eq!(data(&p, 0, 30), 30);
    assert_eq!(data(&p, 30, 93), 0, "two round trips of silence");
    assert_eq!(p.conn(C).counters().timeouts, 0, "the timer waits as well");
    // The second answer: the retransmission, and as many as have left the network.
    p.run_until(at(94));
    assert_eq!(data(&p, 93, 94), 1 + 29);
    p.run_until(at(124));
    assert!((30.0..32.0).contains(&cwnd(&p)), "the window is what it was: {}", cwnd(&p));
    assert!(p.conn(C).snapshot().una > 30 * MSS, "the loss is repaired");
    assert_eq!(p.conn(C).counters().retransmissions, 1);
}

#[test]
fn a_long_round_trip_means_congestion() {
    let mut p = run(|n| if n == 1 { Verdict::Late(UNIT) } else { Verdict::Deliver });
    p.run_until(at(95));
    // The second answer is at 94, one late: from one segment on, slowly up to half the window.
    assert_eq!(data(&p, 30, 95), 1);
    assert_eq!((cwnd(&p), p.conn(C).snapshot().ssthresh), (1.0, 15.0));
    p.run_until(at(125));
    assert_eq!(p.conn(C).counters().timeouts, 0);
    assert_eq!(data(&p, 95, 125), 2, "slow start");
}

#[test]
fn lost_probes_prolong_the_silence() {
    let mut p = run(|n| if n == 1 { Verdict::Lose } else { Verdict::Deliver });
    p.run_until(at(183));
    // The second probe leaves at 63 and is waited for during two RTTs; then both anew.
    assert_eq!(probes(&p), [at(33), at(63), at(123), at(153)]);
    assert_eq!(data(&p, 30, 183), 0);
    p.run_until(at(184));
    assert_eq!(data(&p, 183, 184), 30);
}

#[test]
fn a_peer_that_answers_no_probes_makes_it_newreno() {
    let run = |name: &str| {
        let config = Config { probes: skyhaul_tcp::config::ProbeNegotiation::Off, ..Config::ns2_2001() };
        let mut p: Pair<Counted> =
            Setup::new(config, &Control::by_name(name).expect("known"), UNIT * 15).build();
        p.send(C, 300 * MSS, false);
        p.faults(C, |d| if d.data_index == 40 { Verdict::Lose } else { Verdict::Deliver });
        p.run_until(Instant::from_secs_f64(60.0));
        p.data_sent(C).map(|e| (e.at, e.segment.seq)).collect::<Vec<_>>()
    };
    assert_eq!(run("tcp-probing"), run("newreno"));
}

#[test]
fn an_outage_that_ends_during_the_probes_does_not_end_the_silence() {
    let mut p = run(|n| if n == 1 { Verdict::Lose } else { Verdict::Deliver });
    p.run_until(at(64));
    // The link layer reports an outage; the peer is asked at 69 and answers at 99, while the lost probe is waited for.
    p.end_mut(C).conn.outage(at(64));
    p.run_until(at(182));
    assert!(p.conn(C).counters().window_probes > 0);
    assert_eq!(data(&p, 30, 183), 0, "the algorithm still holds the data back");
    p.run_until(at(400));
    assert!(p.conn(C).snapshot().una > 60 * MSS, "and releases it");
}
