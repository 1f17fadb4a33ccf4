//! TCP Fast Start over two endpoints: the second transfer, its priorities, its two ways to fail.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::{Act, Handshake};
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const MSS: u64 = 960;
const RTT: Duration = Duration::from_millis(500);

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

/// A transfer of 31 segments in slow start, which leaves a window of 32; another one of `n` segments at 20 s.
fn two_transfers(n: u64) -> Pair<Counted> {
    let config = Config { receive_buffer: 64 * MSS, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, &Control::by_name("fast-start").expect("known"), RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    let mut p = setup.build();
    p.send(C, 31 * MSS, false);
    p.at(secs(20.0), C, Act::Write(n * MSS));
    p
}
/// Departures of the second transfer: seconds after its start, offset in segments, low priority.
fn second(p: &Pair<Counted>) -> Vec<(f64, u64, bool)> {
    let first = p.data_sent(C).next().expect("data").segment.seq.0;
    p.data_sent(C)
        .filter(|e| e.at >= secs(20.0))
        .map(|e| {
            let offset = u64::from(e.segment.seq.0.wrapping_sub(first)) / MSS;
            ((e.at - secs(20.0)).as_secs_f64(), offset - 31, e.segment.low_priority)
        })
        .collect()
}

#[test]
fn the_second_transfer_is_paced_over_an_rtt_with_low_priority() {
    let mut p = two_transfers(12);
    p.run_until(secs(21.2));
    // Slow start ended at 32 segments: half of them, 16 in 0.5 s.
    let sent = second(&p);
    assert_eq!(sent.len(), 12);
    for (k, &(at, offset, low)) in sent.iter().enumerate() {
        assert_eq!((offset, low), (k as u64, k > 0));
        assert!((at - k as f64 * 0.5 / 16.0).abs() < 1e-6, "{k} at {at}");
    }
    assert_eq!(p.conn(C).unacked(), 0);
    assert_eq!(p.conn(C).counters().timeouts, 0);
}

#[test]
fn a_dropped_attempt_goes_back_without_a_timeout() {
    let mut p = two_transfers(12);
    p.faults(C, |d| if d.segment.low_priority { Verdict::Lose } else { Verdict::Deliver });
    p.run_until(secs(30.0));
    let sent = second(&p);
    // The first segment arrived, so the reset timer goes back to the second with normal priority.
    let again: Vec<_> = sent[12..].iter().map(|&(_, offset, low)| (offset, low)).collect();
    assert_eq!(again, (1..12).map(|k| (k, false)).collect::<Vec<_>>());
    // srtt + 4 rttvar after the acknowledgement of the first one.
    assert!((0.99..1.6).contains(&sent[12].0), "{}", sent[12].0);
    assert_eq!(p.conn(C).unacked(), 0);
    assert_eq!(p.conn(C).counters().timeouts, 0);
}

#[test]
fn a_partial_acknowledgement_goes_back_too() {
    let mut p = two_transfers(12);
    let mut n = 0;
    p.faults(C, move |d| {
        n += u32::from(d.segment.low_priority);
        if d.segment.low_priority && (n == 3 || n == 7) { Verdict::Lose } else { Verdict::Deliver }
    });
    p.run_until(secs(40.0));
    assert_eq!(p.conn(C).unacked(), 0);
    let c = p.conn(C).counters();
    assert_eq!((c.recoveries, c.timeouts), (1, 0));
}

#[test]
fn without_its_first_segment_it_is_an_ordinary_timeout() {
    let mut p = two_transfers(12);
    p.faults(C, |d| if d.data_index >= 31 && d.data_index < 43 { Verdict::Lose } else { Verdict::Deliver });
    p.run_until(secs(60.0));
    assert_eq!(p.conn(C).unacked(), 0);
    assert!(p.conn(C).counters().timeouts >= 1);
}
