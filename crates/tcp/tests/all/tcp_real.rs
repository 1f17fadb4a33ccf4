//! TCP-Real over two endpoints: wave numbers of the sender, measurements and reports of the receiver, and their effect.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{Config as Control, NAMES, alg};
use skyhaul_tcp::{Config, Counted, Flags, Segment};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::path::error::list;
use skyhaul_testkit::path::{Delay, LinkConfig};
use skyhaul_testkit::{Pair, SegmentEvent, Setup, Side, Verdict};

const C: Side = Side::Client;
const S: Side = Side::Server;
const MSS: u64 = 960;
const RTT: Duration = Duration::from_millis(500);
/// 125 packets of 1000 bytes per second, which carry 120 000 bytes of payload.
const LINK: u64 = 1_000_000;
const PAYLOAD_RATE: f64 = 120_000.0;

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}
fn setup(cc: &Control) -> Setup {
    let config = Config { receive_buffer: 100 * MSS, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, cc, RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    setup.links[0] = LinkConfig {
        rate: Rate::from_bits_per_sec(LINK).into(),
        delay: Delay::fixed(RTT / 2),
        ..LinkConfig::default()
    };
    setup
}
fn real() -> Control {
    Control::by_name("tcp-real").expect("known")
}
/// The rates reported to the client, one per acknowledgement, bytes per second.
fn reports(p: &Pair<Counted>) -> Vec<Option<u32>> {
    p.arrived(C).map(|e| e.segment.waves.rate.map(|r| r.get())).collect()
}
/// Whether the segment has a wave number or a report, except for the offer on a SYN.
fn marked(s: &Segment) -> bool {
    s.waves.number.is_some() && !s.flags.has(Flags::SYN) || s.waves.rate.is_some()
}

#[test]
fn the_report_is_the_rate_of_the_link() {
    let mut p: Pair<Counted> = setup(&real()).build();
    p.send(C, 3000 * MSS, false);
    p.run_until(secs(30.0));
    // Slow start from one segment: no report before the wave of two is complete. From then on segments of a wave
    // leave the link back to back, whether the window fills it or not.
    let reports = reports(&p);
    assert!(reports.len() > 2000);
    let first = reports.iter().position(Option::is_some).expect("a report");
    assert_eq!(first, 3, "with the acknowledgement of the first of four");
    for r in &reports[first..] {
        let error = f64::from(r.expect("no wave of one segment")) / PAYLOAD_RATE - 1.0;
        assert!(error.abs() < 1e-5, "{r:?}");
    }
    // The window fills the link and grows on: 62.5 segments are the link's, 0.008 s per segment.
    let s = p.conn(C).snapshot();
    assert!(s.cwnd > 63.0, "{s:?}");
    let acked: Vec<_> =
        p.arrived(C).filter(|e| e.at > secs(10.0) && e.at <= secs(20.0)).map(|e| e.segment.ack).collect();
    let carried = f64::from(acked[acked.len() - 1].0.wrapping_sub(acked[0].0)) / 10.0;
    assert!((carried / PAYLOAD_RATE - 1.0).abs() < 0.01, "{carried}");
}

#[test]
fn every_segment_of_a_window_is_of_one_wave_and_the_next_window_of_the_next() {
    let mut p: Pair<Counted> = setup(&real()).build();
    p.send(C, 15 * MSS, false);
    p.run_until(secs(10.0));
    let waves: Vec<_> = p.data_sent(C).map(|e| e.segment.waves.number.expect("marked").get()).collect();
    assert_eq!(waves, [1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
    // Wave 1: 960 bytes in 8 ms; wave 2: three times that.
    let expected = [None, None, None, Some(120_000)];
    assert_eq!(reports(&p)[..4], expected);
}

#[test]
fn lost_acknowledgements_take_no_report_away() {
    let mut p: Pair<Counted> = setup(&real()).build();
    p.faults(S, |d| if d.index % 3 == 2 { Verdict::Lose } else { Verdict::Deliver });
    p.send(C, 600 * MSS, false);
    p.run_until(secs(60.0));
    assert_eq!(p.conn(C).unacked(), 0);
    let reports: Vec<_> = reports(&p).into_iter().flatten().collect();
    assert!(reports.len() > 100);
    // The window is released in bursts, in which a wave still leaves the link back to back or, once the window is
    // short of the link, with pauses: never faster.
    assert!(reports.iter().all(|&r| f64::from(r) < PAYLOAD_RATE * 1.00001), "{reports:?}");
}

#[test]
fn a_loss_within_a_wave_by_hand() {
    // The fourth wave has eight segments, 7..15, of which the one with index 10 is lost: six of 960 bytes after the
    // first one in seven services of 8 ms.
    let mut p: Pair<Counted> = setup(&real()).build();
    p.faults(C, |d| if d.data_index == 10 { Verdict::Lose } else { Verdict::Deliver });
    p.send(C, 200 * MSS, false);
    p.run_until(secs(20.0));
    let all = reports(&p);
    // The lost one never occupied the link.
    let tail = all.iter().flatten().find(|&&r| f64::from(r) < 0.99 * PAYLOAD_RATE);
    assert_eq!(tail, None, "what is lost before the link leaves no gap in what crosses it: {all:?}");
    // Behind the link it does.
    let mut p: Pair<Counted> = setup(&real()).build();
    let mut behind = setup(&real());
    behind.links[0].error = list::Config::all([10]).into();
    let mut q: Pair<Counted> = behind.build();
    for pair in [&mut p, &mut q] {
        pair.send(C, 200 * MSS, false);
        pair.run_until(secs(20.0));
    }
    let low: Vec<_> = reports(&q).into_iter().flatten().filter(|&r| r < 119_999).collect();
    assert_eq!(low[0], (6 * 960 * 1000u32 + 28) / 56, "{low:?}");
    assert!(reports(&p).into_iter().flatten().all(|r| r >= 119_999));
}

#[test]
fn data_carries_the_report_too() {
    let mut setup = setup(&real());
    setup.links[1] = setup.links[0].clone();
    let mut p: Pair<Counted> = setup.build();
    p.send(C, 300 * MSS, false);
    p.send(S, 300 * MSS, false);
    p.run_until(secs(30.0));
    for side in Side::BOTH {
        assert_eq!(p.conn(side).unacked(), 0);
        let with_data = p.data_sent(side).filter(|e| e.segment.waves.rate.is_some()).count();
        assert!(with_data > 200, "{side:?}: {with_data}");
    }
}

#[test]
fn a_peer_that_does_not_measure_leaves_the_sender_without_reports() {
    for handshake in [Handshake::Modelled, Handshake::Skipped(Some(RTT)), Handshake::Simultaneous] {
        for unable in Side::BOTH {
            let mut setup = setup(&real());
            setup.handshake = handshake;
            setup.config[unable as usize].receiver_rate = false;
            let mut p: Pair<Counted> = setup.build();
            p.send(C, 200 * MSS, true);
            p.send(S, 20 * MSS, true);
            p.run_until(secs(60.0));
            assert_eq!(p.conn(C).unacked(), 0);
            assert!(p.sent(C).chain(p.sent(S)).all(|e| !marked(&e.segment)), "{handshake:?}, {unable:?}");
        }
        let mut setup = setup(&real());
        setup.handshake = handshake;
        let mut p: Pair<Counted> = setup.build();
        p.send(C, 200 * MSS, true);
        p.run_until(secs(60.0));
        assert!(p.data_sent(C).all(|e| e.segment.waves.number.is_some()), "{handshake:?}");
        assert!(p.arrived(C).filter(|e| e.segment.waves.rate.is_some()).count() > 150, "{handshake:?}");
    }
}

#[test]
fn an_offer_that_the_path_eats_is_withdrawn() {
    let mut setup = setup(&real());
    setup.handshake = Handshake::Modelled;
    let mut p: Pair<Counted> = setup.build();
    p.faults(C, |d| if d.index < 2 { Verdict::Lose } else { Verdict::Deliver });
    p.send(C, 20 * MSS, false);
    p.run_until(secs(60.0));
    let offers: Vec<_> = p.sent(C).take(3).map(|e| e.segment.waves.number.is_some()).collect();
    assert_eq!(offers, [true, true, false]);
    assert!(p.data_sent(C).all(|e| !marked(&e.segment)));
    assert_eq!(p.conn(C).unacked(), 0);
}

#[test]
fn nobody_else_marks_or_reports_anything() {
    for name in NAMES.iter().filter(|n| **n != "tcp-real") {
        let mut p: Pair<Counted> = setup(&Control::by_name(name).expect("known")).build();
        p.send(C, 100 * MSS, true);
        p.run_until(secs(30.0));
        assert!(p.data_sent(C).count() > 0);
        assert!(p.sent(C).chain(p.sent(S)).all(|e| !marked(&e.segment)), "{name}");
    }
}

#[test]
fn a_link_error_at_an_unchanged_rate_is_repaired_without_a_cut() {
    let run = |classify: bool| {
        let cc = alg::tcp_real::Config {
            classify,
            recovery: skyhaul_cc::RecoveryMode::Sack,
            ..Default::default()
        };
        let mut setup = setup(&Control::TcpReal(cc)).both(|c| {
            c.rules.initial_ssthresh = skyhaul_cc::InitialSsthresh::Segments(40.0);
        });
        setup.links[0].error = list::Config::all([500]).into();
        let mut p: Pair<Counted> = setup.build();
        p.send(C, 1000 * MSS, false);
        let mut least = f64::INFINITY;
        p.run_with(secs(60.0), |p| {
            if p.conn(C).counters().recoveries > 0 {
                least = least.min(p.conn(C).snapshot().cwnd);
            }
        });
        assert_eq!(p.conn(C).unacked(), 0);
        let c = p.conn(C).counters();
        assert_eq!((c.recoveries, c.retransmissions, c.timeouts), (1, 1, 0));
        assert!(p.log.iter().any(|e| matches!(e.event, SegmentEvent::Dropped(_))));
        least
    };
    let (cut, kept) = (run(false), run(true));
    // From 40 segments one per RTT; ns-2 cuts to whole segments.
    assert_eq!((cut, kept), (25.0, 50.0));
}
