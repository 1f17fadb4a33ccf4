//! What a receiver makes of segments.

use super::*;
use crate::config::DelayedAck;
use crate::store::Counted;
use alloc::vec::Vec;

fn receiver(config: &Config) -> Receiver<Counted> {
    let mut r = Receiver::new(&Arc::new(*config));
    r.start(true, true, false);
    r.discard();
    r
}
fn seg(seq: u64, len: u32) -> Data<'static> {
    Data { seq, len, fin: false, payload: &[], mark: Mark::None, probe_id: None }
}
fn blocks(r: &mut Receiver<Counted>) -> Vec<(u64, u64)> {
    let b = r.blocks(None);
    b.as_slice().to_vec()
}
fn config() -> Config {
    Config { mss: 100, receive_buffer: 100_000, dsack: true, sack_blocks: 4, ..Config::ns2_2001() }
}

#[test]
fn blocks_come_in_the_order_of_rfc_2018() {
    let mut r = receiver(&config());
    for s in [201, 401, 601, 801, 301] {
        r.handle(Instant::ZERO, &seg(s, 100)).unwrap();
        assert!(r.poll_ack());
    }
    // The trigger 301 bridged 201 and 401: that block first, then 801, 601.
    assert_eq!(blocks(&mut r), [(201, 501), (801, 901), (601, 701)]);
    r.handle(Instant::ZERO, &seg(1, 200)).unwrap();
    assert_eq!(r.next_expected(), 501);
    assert_eq!(blocks(&mut r), [(801, 901), (601, 701)]);
}

#[test]
fn duplicates_are_reported_once() {
    let mut r = receiver(&config());
    r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
    r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
    assert_eq!(blocks(&mut r), [(1, 101)]);
    assert!(blocks(&mut r).is_empty());
    r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
    r.handle(Instant::ZERO, &seg(401, 100)).unwrap();
    r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
    assert_eq!(blocks(&mut r), [(301, 401), (301, 501)], "beyond the gap: inside the second block");
    assert_eq!(blocks(&mut r), [(301, 501)]);
}

#[test]
fn every_second_segment_is_acknowledged_or_the_timer_fires() {
    let delay = Duration::from_millis(200);
    let mut r = receiver(&Config { delayed_ack: DelayedAck { every: 2, delay }, ..config() });
    r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
    assert!(!r.poll_ack());
    assert_eq!(r.next_timeout(), Instant::ZERO + delay);
    r.handle(Instant::ZERO, &seg(101, 100)).unwrap();
    assert!(r.poll_ack() && !r.poll_ack());
    assert_eq!(r.next_timeout(), Instant::MAX);
    r.handle(Instant::ZERO, &seg(201, 100)).unwrap();
    r.handle_timeout(Instant::ZERO + delay);
    assert!(r.poll_ack());
    // Out of order, and filling a gap: at once.
    r.handle(Instant::ZERO, &seg(401, 100)).unwrap();
    assert!(r.poll_ack());
    r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
    assert!(r.poll_ack());
}

#[test]
fn dummies_touch_nothing_and_are_answered_one_by_one() {
    let mut r = receiver(&config());
    let dummy = Data { mark: Mark::Dummy, probe_id: Some(7), ..seg(101, 100) };
    r.handle(Instant::ZERO, &dummy).unwrap();
    r.handle(Instant::ZERO, &dummy).unwrap();
    assert_eq!(r.next_expected(), 1);
    assert!(!r.poll_ack() && blocks(&mut r).is_empty());
    for _ in 0..2 {
        let a = r.poll_probe_answer().unwrap();
        assert_eq!((a.mark, a.id, a.range), (Mark::DummyAck, Some(7), (101, 201)));
        assert_eq!(r.blocks(Some(a.range)).as_slice(), [], "what is missing is no duplicate");
    }
    assert!(r.poll_probe_answer().is_none());
}

#[test]
fn a_reader_that_stalls_closes_the_window_and_never_shrinks_it() {
    let mut r: Receiver<Counted> = Receiver::new(&Arc::new(Config { receive_buffer: 300, ..config() }));
    assert_eq!(r.window(), 300);
    r.handle(Instant::ZERO, &seg(1, 300)).unwrap();
    assert_eq!(r.window(), 0);
    assert_eq!(r.read(&mut [], 50), 50);
    assert_eq!(r.window(), 0, "a sliver is not announced");
    r.read(&mut [], 60);
    assert_eq!(r.window(), 110);
    assert_eq!(r.handle(Instant::ZERO, &seg(601, 100)), Err(Rejected::OutOfWindow));
}

#[test]
fn acknowledgements_are_acceptable_after_a_fin_that_followed_a_full_window() {
    let mut r: Receiver<Counted> = Receiver::new(&Arc::new(Config { receive_buffer: 300, ..config() }));
    r.handle(Instant::ZERO, &Data { fin: true, ..seg(1, 300) }).unwrap();
    // The FIN is at the right edge, 301, and the peer's acknowledgements come from beyond it.
    assert_eq!((r.finished(), r.next_expected(), r.window()), (true, 302, 0));
    assert!(r.acceptable(302, 0) && !r.acceptable(301, 0) && !r.acceptable(303, 0) && !r.acceptable(302, 1));
}

#[test]
fn crumbs_with_gaps_between_them_are_not_accounted_for_without_end() {
    let config = Config { mss: 1448, receive_buffer: 1 << 20, dsack: true, ..Config::ns2_2001() };
    let mut r = receiver(&config);
    let most = FEW_RANGES + (1 << 20) / u64::from(DEFAULT_MSS);
    for n in 1..=4 * most {
        r.handle(Instant::ZERO, &seg(1 + 2 * n, 1)).unwrap();
        assert!(r.poll_ack(), "each is answered");
    }
    let first = (3, 4);
    let ranges = || r.out_of_order.as_ref().map_or(0, |b| b.len() as u64);
    assert_eq!(ranges(), most);
    // What joins a range is taken still, and so is what is next.
    r.handle(Instant::ZERO, &seg(first.1, 1)).unwrap();
    assert_eq!(r.out_of_order.as_ref().map_or(0, |b| b.len() as u64), most - 1);
    r.handle(Instant::ZERO, &seg(1, 1)).unwrap();
    assert_eq!(r.next_expected(), 2);
    r.handle(Instant::ZERO, &seg(2, 1)).unwrap();
    assert_eq!(r.next_expected(), 6);
}

#[test]
fn a_fin_beyond_a_gap_is_reported_with_its_segment_and_is_no_payload() {
    let now = Instant::ZERO;
    let fin = |seq, len| Data { fin: true, ..seg(seq, len) };
    // With text, and alone.
    for (seq, len, from) in [(201, 50, 201), (251, 0, 251)] {
        let mut r = Receiver::<Counted>::new(&Arc::new(config()));
        r.start(true, true, false);
        r.handle(now, &fin(seq, len)).unwrap();
        assert_eq!(blocks(&mut r), [(from, 252)]);
        assert!(!r.finished());
        // Again: a duplicate, with its FIN.
        r.handle(now, &fin(seq, len)).unwrap();
        assert_eq!(blocks(&mut r), [(from, 252), (from, 252)]);
        for s in (1..seq).step_by(50) {
            r.handle(now, &seg(s, 50)).unwrap();
        }
        assert!(r.finished() && blocks(&mut r).is_empty());
        assert_eq!((r.next_expected(), r.payload_received(), r.readable()), (252, 250, 250));
    }
}
