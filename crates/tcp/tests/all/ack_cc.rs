//! Congestion control of acknowledgements (RFC 5690): losses and marks of acknowledgements make acknowledgements rarer, but data
//! never waits for them.

use crate::common;

use common::secs;
use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{AckCc, DelayedAck, Ecn};
use skyhaul_tcp::{Bytes, Codepoint, Config, Counted, Flags};
use skyhaul_testkit::pair::is_pure_ack;
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Departure, Entry, Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const S: Side = Side::Server;

fn config() -> Config {
    Config {
        mss: 1000,
        receive_buffer: 60_000,
        delayed_ack: DelayedAck { every: 1, delay: Duration::from_millis(100) },
        ack_cc: AckCc::Rfc5690,
        ..Config::rfc()
    }
}
/// 600 kB from the client to the server over 2 x 50 ms; the server's pure acknowledgements meet `verdict`.
fn transfer(config: [Config; 2], verdict: impl FnMut(u64) -> Verdict + 'static) -> Pair<Bytes> {
    let mut setup = Setup::new(config[0], &Control::by_name("sack").unwrap(), Duration::from_millis(50));
    setup.config = config;
    let mut p: Pair<Bytes> = setup.build();
    let (mut n, mut verdict) = (0, verdict);
    p.faults(S, move |d: &Departure<'_>| {
        if !is_pure_ack(d.segment) {
            return Verdict::Deliver;
        }
        n += 1;
        verdict(n)
    });
    p.send(C, 600_000, true);
    p.send(S, 0, true);
    assert!(p.run_to_end(secs(1000.0)) && p.finished(), "{:?}", p.conn(C).snapshot());
    assert_eq!(p.end(S).corrupt, None);
    p
}
/// Ratios that the client asked for, each once.
fn asked(p: &Pair<Bytes>) -> Vec<u8> {
    let mut all: Vec<u8> = p.data_sent(C).filter_map(|e| e.segment.ack_ratio.map(|n| n.get())).collect();
    all.dedup();
    all
}
fn acks(p: &Pair<Bytes>) -> usize {
    p.sent(S).filter(|e| is_pure_ack(&e.segment)).count()
}

#[test]
fn a_clear_way_back_keeps_one_acknowledgement_for_every_second_segment() {
    let p = transfer([config(); 2], |_| Verdict::Deliver);
    assert!(asked(&p).is_empty(), "{:?}", asked(&p));
    // 600 segments.
    let n = acks(&p);
    assert!((300..=330).contains(&n), "{n}");
    assert_eq!(p.conn(C).counters().retransmissions, 0);
}

#[test]
fn lost_acknowledgements_make_them_fewer_and_no_data_goes_twice() {
    // Every third acknowledgement is lost, but none at the end, where no later acknowledgement would replace it. The ratio
    // doubles, and falls again after the losses.
    let p = transfer([config(); 2], |n| {
        if (40..140).contains(&n) && n % 3 == 0 { Verdict::Lose } else { Verdict::Deliver }
    });
    let ratios = asked(&p);
    assert_eq!(ratios[0], 4, "{ratios:?}");
    assert!(ratios.windows(2).all(|w| w[1] <= 2 * w[0]), "never more than that at once: {ratios:?}");
    assert_eq!((p.conn(C).counters().timeouts, p.conn(C).counters().retransmissions), (0, 0));
}

#[test]
fn marked_acknowledgements_make_them_fewer_and_leave_the_window_alone() {
    let ecn = Config { ecn: Ecn::Ask, ..config() };
    let p = transfer([ecn; 2], |n| if (40..60).contains(&n) { Verdict::Mark } else { Verdict::Deliver });
    assert_eq!(asked(&p)[0], 4);
    let capable = |e: &Entry| e.segment.ecn == Codepoint::Capable;
    assert!(p.sent(S).filter(|e| is_pure_ack(&e.segment) && e.at > secs(0.06)).all(capable), "RFC 5690 §4.1");
    let c = p.conn(C).counters();
    assert_eq!((p.conn(C).sender().marks_answered(), c.retransmissions), (0, 0));
    assert!(p.sent(C).all(|e| e.segment.flags.has(Flags::SYN) || !e.segment.flags.has(Flags::ECE)));
}

#[test]
fn by_the_older_rule_only_marks_count_and_a_round_trip_without_one_takes_one_off() {
    let config = Config { ecn: Ecn::Ask, ack_cc: AckCc::Rfc3449, ..config() };
    let lost = transfer([config; 2], |n| {
        if (40..140).contains(&n) && n % 3 == 0 { Verdict::Lose } else { Verdict::Deliver }
    });
    assert!(asked(&lost).is_empty(), "{:?}", asked(&lost));
    let p = transfer([config; 2], |n| if (40..60).contains(&n) { Verdict::Mark } else { Verdict::Deliver });
    let ratios = asked(&p);
    assert_eq!(ratios[0], 4);
    let top = ratios.iter().position(|r| Some(r) == ratios.iter().max()).expect("some");
    assert!(ratios[..=top].windows(2).all(|w| w[1] == 2 * w[0]), "{ratios:?}");
    assert!(ratios[top..].windows(2).all(|w| w[1] + 1 == w[0]), "{ratios:?}");
    assert_eq!(ratios.last(), Some(&2), "all is as before: {ratios:?}");
    let c = p.conn(C).counters();
    assert_eq!((p.conn(C).sender().marks_answered(), c.retransmissions), (0, 0));
}

#[test]
fn both_ends_must_take_part() {
    let none = Config { ack_cc: AckCc::None, ..config() };
    for pair in [[config(), none], [none, config()], [none, none]] {
        let p = transfer(pair, |n| if n % 3 == 0 { Verdict::Lose } else { Verdict::Deliver });
        assert!(asked(&p).is_empty(), "{:?}", asked(&p));
        let offers =
            |side, own: Config| p.sent(side).any(|e| e.segment.syn.ack_cc) == (own.ack_cc != AckCc::None);
        assert!(offers(C, pair[0]));
        assert!(!p.sent(S).any(|e| e.segment.syn.ack_cc), "an answer offers nothing that was not asked for");
        // One for each segment, as delayed acknowledgements say.
        assert!(acks(&p) >= 600, "{}", acks(&p));
    }
}

#[test]
fn three_duplicates_tell_of_a_loss_whatever_the_ratio() {
    let mut s: Script<Counted> = Script::established(&config(), &Control::by_name("sack").unwrap());
    s.accept(". 1:1001 ack 1 win 90000 <ratio 6>").drain();
    for n in 1..=5 {
        s.accept(&format!(". {n}001:{}001 ack 1 win 90000", n + 1));
    }
    // Six with the first one, unless that left by itself.
    assert_eq!(s.drain().len(), 1);
    // 6001 is lost: each of the first three segments beyond it is acknowledged at once, then every sixth.
    let mut told = Vec::new();
    for n in 7..=21 {
        s.accept(&format!(". {n}001:{}001 ack 1 win 90000", n + 1));
        told.extend(s.drain().iter().map(|_| n));
    }
    assert_eq!(told, [7, 8, 9, 15, 21]);
    // The segment that fills the gap is acknowledged at once.
    s.accept(". 6001:7001 ack 1 win 90000").expect(". 1:1 ack 22001");
    // No acknowledgement is delayed for longer than the timer.
    s.accept(". 22001:23001 ack 1 win 90000").expect_nothing();
    let at = s.now().as_secs_f64();
    s.at(at + 0.2);
    s.expect(". 1:1 ack 23001");
}
