//! TCP-Peach+ over two endpoints: the worked trace of Quick Recovery, its budgets, and data that only NIL segments
//! carry.

use crate::common;

use common::{Pattern, cases, iss, secs};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::alg::peach_plus::{self, Opening, PipeRule, RetransmitTimer};
use skyhaul_cc::{Config as Control, ControlOptions, InitialSsthresh, InitialWindow, Rules};
use skyhaul_tcp::{Bytes, Config, Counted, Mark};
use skyhaul_testkit::pair::{Act, Handshake};
use skyhaul_testkit::{Pair, SegmentEvent, Setup, Side, Verdict};

const C: Side = Side::Client;
const MSS: u64 = 960;
const RTT: Duration = Duration::from_millis(550);

fn peach_plus(config: peach_plus::Config) -> Control {
    Control::PeachPlus(config)
}

/// The pipe by the scoreboard, the timer by the left edge.
fn improved() -> peach_plus::Config {
    peach_plus::Config::reading("improved").expect("a reading")
}

/// A window of 30 evenly spaced segments of which those of `lost` are lost once.
fn steady(config: peach_plus::Config, lost: &'static [u64], nil_arrives: bool) -> Pair<Counted> {
    let rules = Rules {
        initial_window: InitialWindow::Segments(30.0),
        initial_ssthresh: InitialSsthresh::Segments(2.0),
        ..Rules::NS2_2001
    };
    let endpoint = Config { rules, receive_buffer: 64 * MSS, ..Config::ns2_2001() };
    let cc = peach_plus(peach_plus::Config { start: Opening::Slow, ..config });
    let mut setup = Setup::new(endpoint, &cc, RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    let mut p = setup.build();
    for k in 0..30 {
        p.at(Instant::from_nanos(RTT.as_nanos() * k / 30), C, Act::Write(MSS));
    }
    p.at(Instant::from_nanos(RTT.as_nanos() * 29 / 30), C, Act::Write(u64::MAX / 8));
    p.faults(C, move |d| {
        let gone = if d.segment.mark.is_probe() { !nil_arrives } else { lost.contains(&d.index) };
        if gone { Verdict::Lose } else { Verdict::Deliver }
    });
    p
}
fn cwnd(p: &Pair<Counted>) -> u64 {
    p.conn(C).snapshot().cwnd as u64
}
/// Spacings (RTT/30) after 0.55 s at which something left: with one loss, the number of the duplicate.
fn moments<'a>(at: impl Iterator<Item = &'a skyhaul_testkit::Entry>) -> Vec<u64> {
    at.filter(|e| e.at >= secs(0.55))
        .map(|e| ((e.at.as_nanos() - RTT.as_nanos()) as f64 * 30.0 / RTT.as_nanos() as f64).round() as u64)
        .collect()
}
fn range(r: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    r.collect()
}

#[test]
fn one_loss_with_both_kinds_of_pipe() {
    for (pipe, nils, new, last) in [
        (PipeRule::Rfc6675, range(4..=15), range(16..=29), 27),
        (PipeRule::Counter, range(4..=16), range(17..=29), 28),
        (PipeRule::CounterLiteral, range(4..=16), range(17..=29), 28),
    ] {
        let mut p = steady(peach_plus::Config { pipe, ..Default::default() }, &[0], true);
        p.run_until(secs(1.154));
        assert_eq!(moments(p.probes_sent(C)), nils, "{pipe:?}");
        // The retransmission leaves with the third.
        assert_eq!(moments(p.data_sent(C)), [&[3], &new[..]].concat(), "{pipe:?}");
        assert_eq!(cwnd(&p), 15);
        p.run_until(secs(1.1551));
        assert_eq!(moments(p.data_sent(C)).len(), 16, "15 new ones in all");
        p.run_until(secs(1.1732));
        assert_eq!(cwnd(&p), 15);
        p.run_until(secs(1.1734));
        assert_eq!(cwnd(&p), 16);
        p.run_until(secs(1.3934));
        assert_eq!(cwnd(&p), last, "{pipe:?}");
        let c = p.conn(C).counters();
        assert_eq!((c.recoveries, c.retransmissions, c.timeouts), (1, 1, 0));
    }
}

#[test]
fn two_losses_are_one_halving_and_a_nil_segment_repairs_the_second() {
    for (nil_arrives, ends) in [(false, 1.3933), (true, 1.2650)] {
        let mut p = steady(improved(), &[0, 10], nil_arrives);
        p.run_until(secs(0.8432));
        assert_eq!(p.conn(C).counters().retransmissions, 1);
        p.run_until(secs(0.8434));
        assert_eq!(p.conn(C).counters().retransmissions, 2, "110 with the fifteenth duplicate");
        p.run_until(secs(ends - 0.001));
        assert_eq!(p.conn(C).snapshot().una, 1 + 10 * MSS);
        p.run_until(secs(ends + 0.001));
        assert!(p.conn(C).snapshot().una > 30 * MSS, "nil_arrives {nil_arrives}");
        assert_eq!(p.conn(C).counters().recoveries, 1);
        assert_eq!(cwnd(&p), if nil_arrives { 21 } else { 15 });
    }
}

#[test]
fn selective_acknowledgements_postpone_the_timeout_if_the_option_says_so() {
    // Neither the first segment nor its retransmission arrives, nor any NIL segment: the timer has to find out.
    let timed_out = |retransmit_timer| {
        let mut p = steady(peach_plus::Config { retransmit_timer, ..improved() }, &[], true);
        p.faults(C, |d| {
            let first = d.segment.mark.is_probe() || d.segment.seq == skyhaul_tcp::Seq(iss(C) + 1);
            if first { Verdict::Lose } else { Verdict::Deliver }
        });
        let mut t = 0.0;
        while p.conn(C).counters().timeouts == 0 {
            t += 0.001;
            p.run_until(secs(t));
        }
        t
    };
    // The retransmission leaves at 0.605 s; with 34 more segments the peer's window of 64 is full, and what is
    // acknowledged selectively of them arrives until then.
    let advance = timed_out(RetransmitTimer::Advance);
    let new = timed_out(RetransmitTimer::NewSack);
    assert!(new > advance + 0.5, "{advance} {new}");
    assert_eq!(new, timed_out(RetransmitTimer::EverySack), "nothing is reported twice here");
}

#[test]
fn data_that_only_nil_segments_carry_arrives_intact() {
    let endpoint = Config { receive_buffer: 32 * MSS, max_retransmissions: 0, ..Config::ns2_2001() };
    // Each timeout begins a Jump Start, whose NIL segments are all that arrives.
    let mut setup = Setup::new(endpoint, &peach_plus(improved()), Duration::from_millis(100));
    setup.handshake = Handshake::Skipped(Some(Duration::from_millis(200)));
    let mut p: Pair<Bytes> = setup.build();
    p.send(C, 50 * MSS, true);
    p.at(Instant::ZERO, Side::Server, Act::Shutdown);
    p.faults(
        C,
        |d| if d.is_data() && d.segment.mark == Mark::None { Verdict::Lose } else { Verdict::Deliver },
    );
    p.run_until(secs(300.0));
    assert_eq!(p.end(Side::Server).corrupt, None);
    assert!(p.end(Side::Server).received >= 49 * MSS, "{}", p.end(Side::Server).received);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn budgets(
        pipe in prop::sample::select(vec![PipeRule::Rfc6675, PipeRule::Counter, PipeRule::CounterLiteral]),
        patterns in [Pattern::strategy(), Pattern::strategy()],
        bytes in 1..300_000u64,
    ) {
        let endpoint = Config { receive_buffer: 32 * MSS, max_retransmissions: 0, ..Config::ns2_2001() };
        let cc = peach_plus(peach_plus::Config { pipe, ..Default::default() });
        let mut setup = Setup::new(endpoint, &cc, Duration::from_millis(100));
        setup.handshake = Handshake::Skipped(Some(Duration::from_millis(200)));
        let mut p: Pair<Counted> = setup.build();
        p.send(C, bytes, true);
        p.at(Instant::ZERO, Side::Server, Act::Shutdown);
        p.faults(C, patterns[0].faults());
        p.faults(Side::Server, patterns[1].faults());
        let (mut seen, mut highest) = (0, 0);
        let ended = p.run_with(secs(1e6), |p| {
            let s = p.conn(C).snapshot();
            assert!(s.cwnd <= 32.0, "cwnd {} beyond rwnd", s.cwnd);
            let sent = p.log[seen..].iter().filter(|e| e.side == C && e.event == SegmentEvent::Sent && e.segment.len > 0);
            seen = p.log.len();
            let (mut data, mut nils) = (0, 0);
            for e in sent {
                let end = e.segment.seq.0.wrapping_sub(iss(C)) + e.segment.len;
                if e.segment.mark == Mark::Nil {
                    nils += 1;
                    assert!(end <= highest, "a NIL segment carries data never sent before");
                } else {
                    data += 1;
                    highest = highest.max(end);
                }
            }
            // One more for the retransmission that needs no window.
            assert!(data <= 5, "a burst of {data}");
            assert!(nils <= 1, "{nils} NIL segments at once");
        });
        prop_assert!(ended && p.finished());
    }
}
