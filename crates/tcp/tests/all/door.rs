//! The entry point of segments (`connection/door.rs`): a refused segment changes nothing, options that were not negotiated have
//! no effect, and answers to unsolicited segments are rate-limited.

use crate::common;

use common::cases;
use core::num::{NonZeroU16, NonZeroU32};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, ProbeNegotiation};
use skyhaul_tcp::{
    Bytes, Config, Connection, Counted, Established, Flags, Mark, Rejected, SackBlocks, Segment, Seq, State,
    Waves,
};
use skyhaul_testkit::script::Script;

fn sack() -> Control {
    Control::by_name("sack").expect("known")
}
/// RFC rules; MSS 1000, 20 kB buffers, one acknowledgement per segment.
fn config() -> Config {
    Config { mss: 1000, receive_buffer: 20_000, delayed_ack: DelayedAck::OFF, ..Config::rfc() }
}

/// The state of a connection as text, without the count of refusals and the rate limits of answers.
fn state_of(c: &Connection<Bytes>) -> String {
    let mut text = format!("{c:?}");
    for (from, to) in [
        ("rejected: ", ","),
        ("challenges: Ration {", "}"),
        ("strays: Ration {", "}"),
        ("copies: Ration {", "}"),
    ] {
        let at = text.find(from).unwrap_or_else(|| panic!("{from:?} in the state")) + from.len();
        let end = at + text[at..].find(to).expect("an end");
        text.replace_range(at..end, "");
    }
    text
}

/// The text around the first difference of two states.
fn difference(a: &str, b: &str) -> Option<(String, String)> {
    let at = a.bytes().zip(b.bytes()).position(|(a, b)| a != b).or((a.len() != b.len()).then_some(0))?;
    let around = |s: &str| s.chars().skip(at.saturating_sub(60)).take(120).collect();
    Some((around(a), around(b)))
}

/// Everything that leaves now.
fn departures(c: &mut Connection<Bytes>, now: Instant) -> Vec<Segment> {
    core::iter::from_fn(|| c.poll_transmit(now)).take(1000).collect()
}

/// A segment near a connection: numbers relative to what it expects and has acknowledged.
#[derive(Clone, Debug)]
struct Near {
    flags: u8,
    seq: i64,
    ack: i64,
    len: u32,
    window: u32,
    ts: Option<i32>,
    mark: Mark,
    block: Option<(i64, u32)>,
    wave: bool,
    wait: u64,
}

impl Near {
    fn strategy() -> impl Strategy<Value = Self> {
        let place = prop_oneof![
            4 => Just(0i64),
            4 => -3000i64..3000,
            2 => -45_000i64..45_000,
            1 => (-1i64 << 31)..(1 << 31),
        ];
        let flags = prop_oneof![
            8 => Just(0x10u8), 2 => Just(0x18), 2 => Just(0x11), 1 => Just(0x02), 1 => Just(0x12), 1 => Just(0x14),
            1 => Just(0x04), 1 => Just(0x50), 1 => any::<u8>(),
        ];
        let len = prop_oneof![3 => Just(0u32), 1 => Just(1), 2 => 0u32..2500, 2 => Just(1000)];
        let ts = proptest::option::weighted(
            0.9,
            prop_oneof![4 => 0i32..50, 2 => -40_000i32..0, 1 => any::<i32>()],
        );
        let mark = prop_oneof![
            3 => Just(Mark::None), 2 => Just(Mark::Dummy), 2 => Just(Mark::Nil), 1 => Just(Mark::DummyAck),
            1 => Just(Mark::NilAck),
        ];
        let block = proptest::option::weighted(0.3, (-5000i64..5000, 1u32..3000));
        let window = prop_oneof![Just(0u32), 0u32..100_000];
        let numbers = (flags, place.clone(), place, len, window);
        let others = (ts, mark, block, any::<bool>(), prop_oneof![3 => Just(0u64), 1 => 0u64..700]);
        (numbers, others).prop_map(|((flags, seq, ack, len, window), (ts, mark, block, wave, wait))| Self {
            flags,
            seq,
            ack,
            len,
            window,
            ts,
            mark,
            block,
            wave,
            wait,
        })
    }

    fn at(&self, c: &Connection<Bytes>, recent: u32) -> Segment {
        let una = c.acknowledged();
        let mut blocks = SackBlocks::EMPTY;
        if let Some((from, len)) = self.block {
            let from = una.add(from as u32);
            blocks.push(from, from.add(len));
        }
        Segment {
            seq: c.expected().add(self.seq as u32),
            ack: una.add(self.ack as u32),
            len: self.len,
            window: self.window,
            ts: self.ts.map(|d| (recent.wrapping_add_signed(d), 1)),
            sack: blocks,
            flags: Flags::from_bits(self.flags),
            mark: self.mark,
            probe_id: (self.mark != Mark::None).then_some(3),
            waves: if self.wave {
                Waves { number: NonZeroU16::new(2), rate: NonZeroU32::new(9) }
            } else {
                Waves::NONE
            },
            ..Segment::default()
        }
    }
}

/// A connection in one of many situations.
fn situation(of: usize, config: &Config) -> Script<Bytes> {
    let mut s: Script<Bytes> =
        if of == 0 { Script::server(config, &sack()) } else { Script::established(config, &sack()) };
    let ts = if config.timestamps { "<ts 1000 0>" } else { "" };
    match of {
        0 => {
            s.accept("S 0:0 win 5000 <mss 1000,sackOK,wscale 2,probes,ts 1000 0>");
        }
        1 => {
            s.write(9000);
            s.accept(&format!(". 1:1001 ack 1 win 9000 {ts}"));
            s.accept(&format!(". 3001:4001 ack 1 win 9000 {ts}"));
        }
        2 => {
            s.write(300);
            s.shutdown();
        }
        3 => {
            s.shutdown().accept(&format!(". 1:1 ack 2 win 9999 {ts}"));
        }
        4 => {
            s.accept(&format!("F. 1:501 ack 1 win 9999 {ts}")).write(100);
        }
        5 => {
            s.accept(&format!("F. 1:501 ack 1 win 9999 {ts}")).shutdown();
        }
        6 => {
            s.shutdown().accept(&format!("F. 1:1 ack 2 win 9999 {ts}"));
        }
        // A FIN that waits for what is before it.
        7 => {
            s.accept(&format!("F. 2001:3001 ack 1 win 9999 {ts}"));
        }
        _ => {
            for n in 0..40 {
                s.accept(&format!(". {}:{} ack 1 win 9000 {ts}", 1 + n * 1000, 1001 + n * 1000));
                s.read(1000);
            }
            // The window that reading has opened is announced.
            s.accept(&format!(". 40001:41001 ack 1 win 9000 {ts}"));
        }
    }
    s.drain();
    s
}

fn configs() -> [Config; 4] {
    let modern =
        Config { mss: 1000, receive_buffer: 20_000, delayed_ack: DelayedAck::OFF, ..Config::modern() };
    [
        config(),
        Config { probes: ProbeNegotiation::Off, receiver_rate: false, ..config() },
        modern,
        Config { probes: ProbeNegotiation::Paper, probe_ids: false, ..modern },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_refused_changes_nothing(
        of in 0..9usize,
        config in 0..4usize,
        segments in prop::collection::vec(Near::strategy(), 1..60),
    ) {
        let mut s = situation(of, &configs()[config]);
        let mut now = s.now();
        for near in &segments {
            now += Duration::from_millis(near.wait);
            s.conn.handle_timeout(now);
            departures(&mut s.conn, now);
            if state_of(&s.conn).contains("duplicate: Some") {
                // Data has left since, without the report that any acknowledgement carries: one leaves first.
                now += Duration::from_secs(5);
                s.conn.handle_timeout(now);
                let seq = s.conn.expected().add(1 << 30);
                let stray = Segment { seq, ack: s.conn.acknowledged(), flags: Flags::ACK, ..Segment::default() };
                prop_assert!(s.conn.handle(now, &stray, &[]).is_err());
                departures(&mut s.conn, now);
            }
            let before = state_of(&s.conn);
            let seg = near.at(&s.conn, 1000);
            let result = s.conn.handle(now, &seg, &vec![7; seg.len as usize]);
            if let Err(why) = result {
                let answers = departures(&mut s.conn, now);
                prop_assert!(answers.len() <= 1 && answers.iter().all(|a| a.len == 0), "{why}: {answers:?}");
                let difference = difference(&before, &state_of(&s.conn));
                prop_assert!(difference.is_none(), "{why} changed something: {seg:?}\n{difference:?}");
            }
        }
    }

    #[test]
    fn marks_that_were_not_agreed_on_mean_nothing(
        of in 1..9usize,
        segments in prop::collection::vec(Near::strategy(), 1..60),
    ) {
        let config = Config { probes: ProbeNegotiation::Off, receiver_rate: false, ..config() };
        let (mut marked, mut plain) = (situation(of, &config), situation(of, &config));
        let mut now = marked.now();
        for near in &segments {
            now += Duration::from_millis(near.wait);
            let seg = near.at(&marked.conn, 1000);
            let unmarked = Segment { mark: Mark::None, probe_id: None, waves: Waves::NONE, ..seg };
            let mut ends = [(&mut marked.conn, seg), (&mut plain.conn, unmarked)].map(|(c, seg)| {
                c.handle_timeout(now);
                departures(c, now);
                let result = c.handle(now, &seg, &vec![7; seg.len as usize]);
                (result, departures(c, now), format!("{c:?}"))
            }).into_iter();
            let (a, b) = (ends.next().expect("one"), ends.next().expect("another"));
            prop_assert_eq!((a.0, &a.1), (b.0, &b.1), "{:?}", seg);
            let difference = difference(&a.2, &b.2);
            prop_assert!(difference.is_none(), "{seg:?}\n{difference:?}");
        }
    }
}

#[test]
fn one_blind_probe_moves_no_window() {
    // A probe mark on a connection without probes, or a probe beyond the window, each with a window of zero.
    for (probes, seq) in [(ProbeNegotiation::Off, 1_000_000_000), (ProbeNegotiation::Negotiate, 15_001)] {
        let mut s: Script<Counted> = Script::established(&Config { probes, ..config() }, &sack());
        s.write(8000);
        s.drain();
        let _ = s.inject(&format!(". {seq}:{} ack 1 win 0 <dummy,id 1>", seq + 10));
        s.drain();
        s.accept(". 1:1 ack 4001 win 20000");
        assert_eq!(s.drain().len(), 4, "{probes:?}: the window of the peer still counts");
        assert_eq!(s.conn.readable(), 0);
    }
}

#[test]
fn a_probe_copies_what_is_within_two_windows() {
    let mut s = situation(8, &config());
    let answered = |s: &mut Script<Bytes>, seq: u32| {
        let _ = s.inject(&format!(". {seq}:{} ack 1 win 9000 <dummy,id 1>", seq + 1000));
        s.drain().iter().any(|t| t.contains("dummy-ack"))
    };
    // 41 000 bytes have arrived, of which 1000 are not read; 20 000 is the window.
    for (seq, expected) in [(1001, true), (1000, false), (1, false), (59_001, true), (59_002, false)] {
        assert_eq!(answered(&mut s, seq), expected, "{seq}");
    }
}

#[test]
fn a_probe_that_waited_is_answered_and_an_ancient_one_is_not() {
    let modern =
        Config { mss: 1000, receive_buffer: 20_000, delayed_ack: DelayedAck::OFF, ..Config::modern() };
    let mut s: Script<Counted> = Script::established(&modern, &sack());
    s.accept(". 1:1001 ack 1 win 9000 <ts 100000 0>").drain();
    // Half of TIME-WAIT, 30 s, in milliseconds.
    s.accept(". 1:1001 ack 1 win 9000 <dummy,id 1,ts 70000 0>");
    assert!(s.drain()[0].contains("dummy-ack"));
    assert_eq!(s.inject(". 1:1001 ack 1 win 9000 <dummy,id 2,ts 69999 0>"), Err(Rejected::Paws));
    assert_eq!(
        s.inject(". 1:1001 ack 1 win 9000 <dummy,id 3>"),
        Err(Rejected::Paws),
        "agreed on, and missing"
    );
    s.drain();
    // The payload of an old one may be of another round of the sequence numbers; that of a new one is data.
    s.accept(". 1001:2001 ack 1 win 9000 <nil,id 4,ts 99999 0>");
    assert!(s.drain()[0].contains("nil-ack"));
    assert_eq!(s.conn.readable(), 1000);
    s.accept(". 1001:2001 ack 1 win 9000 <nil,id 5,ts 100000 0>");
    assert_eq!(s.conn.readable(), 2000);
}

#[test]
fn answers_to_probes_are_rationed_but_never_below_a_window_per_round_trip() {
    let mut s: Script<Counted> = Script::server(&config(), &sack());
    s.accept("S 0:0 win 50000 <mss 1000,sackOK,wscale 0,probes>").at(0.1);
    s.accept(". 1:1 ack 1 win 50000").accept(". 1:1001 ack 1 win 50000").drain();
    let blind = |s: &mut Script<Counted>| {
        for n in 0..2000 {
            let _ = s.inject(&format!(". 1:{} ack 1 win 50000 <dummy,id {n}>", 2 + n % 1000));
        }
        s.drain().len()
    };
    assert_eq!(blind(&mut s), 40, "two windows of full segments, however short they are");
    assert_eq!(s.inject(". 1:1001 ack 1 win 50000 <dummy,id 7>"), Err(Rejected::Rationed));
    // For ten round trips a window of copies in each.
    for n in 1..=10 {
        s.at(0.1 + 0.1 * f64::from(n));
        (0..20).for_each(|_| assert_eq!(s.inject(". 1:1001 ack 1 win 50000 <dummy,id 8>"), Ok(())));
        assert_eq!(s.drain().len(), 20);
    }
    // Ordinary copies, too.
    s.at(10.0);
    (0..2000).for_each(|_| assert_eq!(s.inject(". 1:1001 ack 1 win 50000"), Err(Rejected::Duplicate)));
    assert_eq!(s.drain().len(), 40);
}

// ----- answers to unsolicited segments ------------------------------------------------------------------------

#[test]
fn two_ends_that_have_lost_each_other_exchange_few_acknowledgements() {
    let end = |iss: u32, peer: u32| -> Connection<Counted> {
        let e = Established {
            iss: Seq(iss),
            peer_iss: Seq(peer),
            peer: &config(),
            sack: true,
            rtt: None,
            probes: true,
        };
        let cc = sack().build(&config().rules);
        Connection::established(Instant::ZERO, config(), cc, Rng::stream(1, "storm"), &e)
    };
    // Each expects other numbers than the other sends.
    let mut ends = [end(1_000, 2_000), end(900_000_000, 400_000_000)];
    ends[0].write(Instant::ZERO, &[], 100);
    let (mut way, mut bare) = ([const { Vec::<Segment>::new() }; 2], 0u32);
    for ms in 0..60_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        for (i, c) in ends.iter_mut().enumerate() {
            c.handle_timeout(now);
            for seg in way[i].drain(..) {
                assert!(c.handle(now, &seg, &[]).is_err());
            }
        }
        for (i, c) in ends.iter_mut().enumerate() {
            while let Some(seg) = c.poll_transmit(now) {
                bare += u32::from(seg.len == 0);
                way[1 - i].push(seg);
            }
        }
    }
    assert!((2..=2 * 10 * 12).contains(&bare), "{bare} in a minute");
}

#[test]
fn what_is_out_of_place_is_answered_ten_times_in_five_seconds() {
    let mut s: Script<Counted> = Script::established(&config(), &sack());
    for _ in 0..1000 {
        assert_eq!(s.inject(". 300001:300001 ack 1 win 9000"), Err(Rejected::OutOfWindow));
        assert_eq!(s.inject(". 300001:301001 ack 1 win 9000"), Err(Rejected::OutOfWindow));
    }
    assert_eq!(s.drain().len(), 10);
    s.at(5.0);
    assert_eq!(s.inject(". 300001:300001 ack 1 win 9000"), Err(Rejected::OutOfWindow));
    assert_eq!(s.drain().len(), 1);
}

#[test]
fn an_ancient_acknowledgement_is_challenged() {
    // RFC 5961 §5.2: also where it would lie before the beginning of the stream.
    for ack in [3_000_000_000u32, 2_147_483_649] {
        let mut s: Script<Counted> = Script::established(&config(), &sack());
        assert_eq!(s.inject(&format!(". 1:1001 ack {ack} win 9000")), Err(Rejected::AckTooOld), "{ack}");
        s.expect(". 1:1 ack 1").expect_nothing();
        assert_eq!(s.conn.readable(), 0);
    }
}

#[test]
fn junk_before_the_handshake_is_complete_is_answered_at_once_or_never() {
    let mut s: Script<Counted> = Script::server(&config(), &sack());
    s.accept("S 0:0 win 5000 <mss 1000,sackOK,wscale 0>").drain();
    for _ in 0..500 {
        assert!(s.inject(". 90001:90101 ack 1 win 9000").is_err());
    }
    assert_eq!(s.drain().len(), 10);
    for n in 0..500 {
        assert_eq!(s.inject(&format!(". 1:1 ack {} win 9000", 100 + n)), Err(Rejected::AckOfUnsent));
    }
    assert_eq!(s.drain().len(), 10, "resets");
    s.accept(". 1:1 ack 1 win 9000").expect_nothing();
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn nothing_lies_beyond_a_fin() {
    let mut s: Script<Counted> = Script::established(&config(), &sack());
    s.accept("F. 1:101 ack 1 win 9000").expect(". 1:1 ack 102");
    assert_eq!(s.inject(". 102:202 ack 1 win 9000"), Err(Rejected::BeyondFin));
    s.expect(". 1:1 ack 102 win").expect_nothing();
    assert_eq!(s.conn.readable(), 100);
    // One that waits for what is before it; then another place for it, before text that is there or elsewhere.
    let mut s: Script<Counted> = Script::established(&config(), &sack());
    s.accept("F. 2001:3001 ack 1 win 9000").drain();
    for text in [". 3001:3101 ack 1 win 9000", ". 2501:3101 ack 1 win 9000", "F. 1:501 ack 1 win 9000"] {
        assert_eq!(s.inject(text), Err(Rejected::BeyondFin), "{text}");
    }
    s.drain();
    s.accept(". 1:2001 ack 1 win 9000").expect(". 1:1 ack 3002");
    assert_eq!((s.conn.state(), s.conn.readable()), (State::CloseWait, 3000));
}

#[test]
fn what_a_window_without_a_scale_cannot_say_is_not_held() {
    // The peer scales nothing: 65 535 bytes are all that was announced.
    let wide = Config { receive_buffer: 200_000, ..config() };
    let mut s: Script<Counted> = Script::server(&wide, &sack());
    s.accept("S 0:0 win 5000 <mss 1000,sackOK>").accept(". 1:1 ack 1 win 9000").drain();
    assert_eq!(s.inject(". 65536:66536 ack 1 win 9000"), Err(Rejected::OutOfWindow));
    s.expect(". 1:1 ack 1 win 65535").expect_nothing();
    s.accept(". 64536:65536 ack 1 win 9000").expect(". 1:1 ack 1 win 65535 <sack 64536:65536>");
}

#[test]
fn an_ecn_echo_without_agreement_means_nothing() {
    let mut s: Script<Counted> = Script::established(&config(), &sack());
    s.write(20_000);
    s.drain();
    let before = s.conn.snapshot().cwnd;
    s.accept("E. 1:1 ack 1001 win 20000");
    assert!(s.conn.snapshot().cwnd >= before, "{} after {before}", s.conn.snapshot().cwnd);
}

#[test]
fn an_echo_of_an_hour_is_not_believed() {
    let modern = Config { mss: 1000, ..Config::modern() };
    let mut s: Script<Counted> = Script::established(&modern, &sack());
    // It has run for two hours.
    s.at(7200.0);
    let mut seen = Vec::new();
    for echo in [7_200_001, 7_200_101, 3_600_000, 1] {
        s.write(1000);
        s.drain();
        let end = s.conn.snapshot().nxt;
        s.at(s.now().as_nanos() as f64 / 1e9 + 0.1);
        s.accept(&format!(". 1:1 ack {end} win 60000 <ts 5 {echo}>"));
        seen.push(s.conn.snapshot().srtt);
    }
    assert_eq!(
        seen,
        [Some(Duration::from_millis(100)); 4],
        "what left 100 ms ago cannot be echoed from long before"
    );
}

#[test]
fn a_little_more_delay_on_a_long_path_is_no_timeout() {
    // 400 ms for ever, then 430 ms; the margin of real hosts outlasts it, the variation alone does not.
    let timeouts = |margin: Duration| {
        let base = Config::modern();
        let rto = skyhaul_tcp::config::Rto { margin, ..base.rto };
        let mut s: Script<Counted> = Script::established(&Config { mss: 1000, rto, ..base }, &sack());
        let mut at = 0.0;
        for n in 0..300u32 {
            s.write(1000);
            at += if n < 299 { 0.4 } else { 0.43 };
            s.at(at);
            s.accept(&format!(". 1:1 ack {} win 60000 <ts 5 {}>", 1 + (n + 1) * 1000, 1 + n * 400));
        }
        s.conn.counters().timeouts
    };
    assert_eq!(timeouts(Duration::from_millis(200)), 0);
    assert_eq!(timeouts(Duration::ZERO), 1);
}
