//! Links that repair: closed forms of losses, transmissions and delays.

use crate::common;

use common::{Fate, Fates, MICROSECOND_PER_BYTE, Pkt, arrivals, drive, events_until};
use skyhaul_base::{Duration, Instant};
use skyhaul_path::error::{bursts, list, per};
use skyhaul_path::fec::{self, block, code_rate, repeat};
use skyhaul_path::stats::RepairCounters;
use skyhaul_path::{Delay, DropReason, Link, LinkConfig, Streams, arq};

const MS: u64 = 1_000_000;

fn ms(t: u64) -> Instant {
    Instant::from_nanos(t * MS)
}
/// A link that sends 1000 bytes per millisecond, with a propagation delay of 10 ms.
fn config() -> LinkConfig {
    let delay = Delay::fixed(Duration::from_millis(10));
    LinkConfig { rate: MICROSECOND_PER_BYTE.into(), delay, ..LinkConfig::default() }
}
fn blocks(n: u64, k: u64) -> fec::Config {
    block::Config { n, k, ..block::Config::default() }.into()
}
/// Packets of 1000 bytes that all arrive at the start.
fn burst(n: usize) -> Vec<common::Arrival> {
    arrivals(&vec![(0, 1000, false); n])
}
/// Drives `n` packets through; returns how many were lost, the counters, and the fates.
fn run(config: &LinkConfig, n: usize) -> (u64, RepairCounters, Vec<Option<Fate>>) {
    let mut link = Link::new(config, Streams::named(5, "links.test"));
    let mut fates = Fates::default();
    for a in burst(n) {
        link.offer(a.at, a.p, &mut |_, why| panic!("{why:?}"));
    }
    events_until(&mut link, Instant::MAX, &mut fates);
    (link.counters().total().lost(), link.counters().repair, fates.0)
}
fn delivered(fates: &[Option<Fate>]) -> Vec<Option<u64>> {
    let at = |f: &Option<Fate>| match f {
        Some(Fate::Delivered(t)) => Some(t.as_nanos() / 1000),
        _ => None,
    };
    fates.iter().map(at).collect()
}

#[test]
fn a_block_code_leaves_what_the_formula_says() {
    for (n, k, p) in [(20, 18, 0.05), (20, 16, 0.1), (12, 10, 0.02), (4, 1, 0.4)] {
        let packets = 400_000 / k * k;
        let fec = Some(blocks(n, k));
        let (lost, repair, _) =
            run(&LinkConfig { error: per::Config { p }.into(), fec, ..config() }, packets as usize);
        let share = blocks(n, k).code().residual_loss(p);
        // Losses come in blocks: at most k of a block that fails, so the variance is at most k times that of single ones.
        let (mean, dev) = (packets as f64 * share, (packets as f64 * share * k as f64).sqrt());
        assert!((lost as f64 - mean).abs() < 5.0 * dev, "({n},{k}) {p}: {lost}, not {mean}");
        assert_eq!(repair.parity, packets / k * (n - k));
        assert_eq!(repair.transmissions, packets / k * n);
        // Packets that the channel lost were repaired or stayed lost.
        let taken = packets as f64 * p;
        assert!(((repair.repairs + lost) as f64 - taken).abs() < 5.0 * taken.sqrt(), "{repair:?}");
    }
}

#[test]
fn copies_are_lost_together_only() {
    for (times, p) in [(2, 0.1), (3, 0.2)] {
        let fec = Some(repeat::Config { times }.into());
        let (lost, repair, _) =
            run(&LinkConfig { error: per::Config { p }.into(), fec, ..config() }, 200_000);
        let mean = 200_000.0 * p.powi(times as i32);
        assert!((lost as f64 - mean).abs() < 5.0 * mean.sqrt(), "{times}: {lost}, not {mean}");
        assert_eq!(repair.transmissions, 200_000 * times);
    }
}

#[test]
fn repeats_leave_what_the_formula_says() {
    for (p, retries) in [(0.01, 1), (0.1, 3), (0.3, 0), (0.5, 2)] {
        let arq = arq::Config { retries, ..arq::Config::new(1000) };
        let error = per::Config { p }.into();
        let (lost, repair, _) = run(&LinkConfig { error, arq: Some(arq), ..config() }, 200_000);
        let mean = 200_000.0 * arq.residual_loss(p);
        assert!((lost as f64 - mean).abs() < 5.0 * mean.sqrt(), "{p} {retries}: {lost}, not {mean}");
        // A packet is sent once, again with probability p, and so on: the variance is at most that of a geometric number,
        // p/(1 − p)².
        let sent = 200_000.0 * arq.mean_transmissions(p);
        let dev = (200_000.0 * p).sqrt() / (1.0 - p);
        assert!(
            (repair.transmissions as f64 - sent).abs() < 5.0 * dev,
            "{p} {retries}: {repair:?}, not {sent}"
        );
        assert_eq!((repair.give_ups, repair.retransmissions), (lost, repair.transmissions - 200_000));
    }
}

#[test]
fn repeats_above_a_code_see_what_it_leaves() {
    // (10, 9) at 0.1 leaves a share of 0.0613. One retransmission of each then leaves about the square of it; retransmissions are
    // in blocks with other packets.
    let (p, fec) = (0.1, blocks(10, 9));
    let left = fec.code().residual_loss(p);
    let arq = arq::Config { retries: 1, ..arq::Config::new(2000) };
    let error = per::Config { p }.into();
    let (lost, repair, _) = run(&LinkConfig { error, fec: Some(fec), arq: Some(arq), ..config() }, 200_000);
    let (retransmitted, given_up) = (200_000.0 * left, 200_000.0 * left * left);
    // As above, up to nine losses of a block together.
    assert!(
        (repair.retransmissions as f64 - retransmitted).abs() < 5.0 * (9.0 * retransmitted).sqrt(),
        "{repair:?}, not {retransmitted}"
    );
    assert!((lost as f64 - given_up).abs() < 5.0 * (9.0 * given_up).sqrt(), "{lost}, not {given_up}");
}

#[test]
fn a_retransmission_arrives_one_period_later_and_delays_the_packets_behind_it() {
    // Packet 1 is lost twice: its transmission, and the sixth, which is its first repeat.
    let error = || list::Config::all([1, 5]).into();
    let at = |arq: arq::Config| {
        let config = LinkConfig { error: error(), arq: Some(arq), ..config() };
        delivered(&run(&config, 5).2)
    };
    let plain = arq::Config { in_order: false, ..arq::Config::new(10) };
    // 1 ms on the transmitter, 10 ms each way, 10 ms of guard.
    let period = plain.period(Duration::from_millis(10), Duration::from_millis(1)).as_nanos() / 1000;
    assert_eq!(period, 31_000);
    let late = 12_000 + 2 * period;
    assert_eq!(at(plain), [11_000, late, 13_000, 14_000, 15_000].map(Some));
    assert_eq!(at(arq::Config::new(10)), [11_000, late, late, late, late].map(Some));
    // With one retransmission it is given up a period after that, and the receiver is informed one propagation delay later.
    let skipped = 1_000 + 2 * period + 10_000;
    let all = [Some(11_000), None, Some(skipped), Some(skipped), Some(skipped)];
    assert_eq!(at(arq::Config { retries: 1, ..arq::Config::new(10) }), all);
    // An answer that takes longer delays the repeats by as much.
    let slow = arq::Config { feedback: arq::Feedback::After(Duration::from_millis(17)), ..plain };
    assert_eq!(at(slow)[1], Some(late + 2 * 7_000));
}

#[test]
fn retransmissions_go_first() {
    let plain = arq::Config { in_order: false, ..arq::Config::new(1000) };
    let config = LinkConfig { error: list::Config::all([0]).into(), arq: Some(plain), ..config() };
    let at = delivered(&run(&config, 100).2);
    // Packet 0 is overdue at 31 ms, when packet 31 would be sent.
    assert_eq!((at[0], at[30], at[31], at[99]), (Some(42_000), Some(41_000), Some(43_000), Some(111_000)));
}

#[test]
fn a_window_limits_the_outstanding_packets() {
    // One packet, then its answer: 1 + 10 + 10 ms each. With a window of one RTT the link never rests.
    for (window, last) in [(1, 9 * 21 + 11), (2, 4 * 21 + 12), (21, 20)] {
        let config = LinkConfig { arq: Some(arq::Config::new(window)), ..config() };
        assert_eq!(delivered(&run(&config, 10).2)[9], Some(last * 1000), "{window}");
    }
}

#[test]
fn a_link_that_goes_down_retransmits_the_packets_that_it_loses() {
    let arq = Some(arq::Config::new(100));
    let mut link =
        Link::new(&LinkConfig { drop_inflight: true, arq, ..config() }, Streams::named(1, "links.test"));
    for id in 0..6 {
        link.offer(ms(0), Pkt { id, size: 1000, low: false, ..Pkt::default() }, &mut |_, why| {
            panic!("{why:?}")
        });
    }
    let mut fates = Fates::default();
    // 0 and 1 have arrived at 12.5 ms, 2 to 5 are on their way.
    let down = Instant::from_nanos(25 * MS / 2);
    events_until(&mut link, down, &mut fates);
    link.set_up(down, false, &mut |_, why| panic!("{why:?}"));
    assert_eq!((link.in_flight(), link.next_delivery()), (4, None));
    events_until(&mut link, ms(80), &mut fates);
    link.set_up(ms(80), true, &mut |_, why| panic!("{why:?}"));
    events_until(&mut link, Instant::MAX, &mut fates);
    assert_eq!(delivered(&fates.0), [11_000, 12_000, 91_000, 92_000, 93_000, 94_000].map(Some));

    // Without ARQ they are lost, and the cause is the link.
    let fec = Some(repeat::Config { times: 2 }.into());
    let mut link =
        Link::new(&LinkConfig { drop_inflight: true, fec, ..config() }, Streams::named(1, "links.test"));
    link.offer(ms(0), Pkt { id: 0, size: 1000, low: false, ..Pkt::default() }, &mut |_, why| {
        panic!("{why:?}")
    });
    link.serve(ms(1), &mut |_, why| panic!("{why:?}"));
    let mut lost = Vec::new();
    link.set_up(ms(5), false, &mut |p, why| lost.push((p.id, why)));
    while let Some(at) = link.next_service() {
        link.serve(at, &mut |p, why| lost.push((p.id, why)));
    }
    assert_eq!(lost, [(0, DropReason::LinkDown)]);
}

#[test]
fn a_packet_that_the_channel_has_lost_is_not_lost_by_the_link_that_goes_down() {
    // Both copies of packet 0 are lost on the channel; those of packet 1 are in flight when the link goes down.
    let fec = Some(repeat::Config { times: 2 }.into());
    let config = LinkConfig { drop_inflight: true, fec, error: list::Config::all([0, 1]).into(), ..config() };
    let mut link = Link::new(&config, Streams::named(1, "links.test"));
    for a in burst(2) {
        link.offer(a.at, a.p, &mut |_, why| panic!("{why:?}"));
    }
    for at in 1..=4 {
        link.serve(ms(at), &mut |_, why| panic!("{why:?}"));
    }
    link.set_up(ms(5), false, &mut |_, why| panic!("{why:?}"));
    let mut lost = Vec::new();
    while let Some(at) = link.next_service() {
        link.serve(at, &mut |p, why| lost.push((p.id, why)));
    }
    assert_eq!(lost, [(0, DropReason::Error), (1, DropReason::LinkDown)]);
}

#[test]
fn a_code_costs_its_rate_with_or_without_losses() {
    // 900 packets of 1 ms: (10, 9) makes 1000 of them; a rate of 3/4, 1200 ms; both ends 10 ms later.
    let last = |fec: fec::Config| delivered(&run(&LinkConfig { fec: Some(fec), ..config() }, 900).2)[899];
    // The parity behind the last packet delays nothing.
    assert_eq!(last(blocks(10, 9)), Some(999_000 + 10_000));
    assert_eq!(last(code_rate::Config { rate: 0.75, residual: None }.into()), Some(1_200_000 + 10_000));
    assert_eq!(last(repeat::Config { times: 2 }.into()), Some(1_799_000 + 10_000));
}

#[test]
fn residual_losses_replace_the_losses_of_the_channel() {
    let error = || per::Config { p: 0.5 }.into();
    let left = |residual| {
        let fec = Some(code_rate::Config { rate: 0.5, residual }.into());
        run(&LinkConfig { error: error(), fec, ..config() }, 1000).0
    };
    assert_eq!(left(Some(skyhaul_path::error::Config::NONE)), 0);
    assert!(left(None) > 400);
}

#[test]
fn a_block_is_closed_when_its_time_is_over() {
    // Three packets of a block of ten, the second one lost: parity at 50 ms, of the largest size.
    let fec = Some(blocks(12, 10));
    let config = LinkConfig { error: list::Config::all([1]).into(), fec, ..config() };
    let at = drive(&config, &arrivals(&[(0, 1000, false), (0, 500, false), (0, 1500, false)]));
    assert_eq!(delivered(&at), [11_000, 61_500, 61_500].map(Some));
}

#[test]
fn interleaving_spreads_a_burst() {
    // Four transmissions in a row are lost. (6, 4) repairs two of a block: alone it fails, two blocks in turn do not.
    let lost = |interleave| {
        let fec = Some(block::Config { n: 6, k: 4, interleave, ..block::Config::default() }.into());
        run(&LinkConfig { error: list::Config::all(0..4).into(), fec, ..config() }, 16).0
    };
    assert_eq!((lost(1), lost(2)), (4, 0));
    // In bursts of five losses a code for four fails, and does not where they hit as many blocks.
    let left = |error, interleave| {
        let fec = Some(block::Config { n: 20, k: 16, interleave, ..block::Config::default() }.into());
        run(&LinkConfig { error, fec, ..config() }, 200_000).0
    };
    let in_bursts = || bursts::Config { loss: 0.02, burst: 5.0 }.into();
    let (together, apart) = (left(in_bursts(), 1), left(in_bursts(), 20));
    assert!(apart * 50 < together, "{apart} {together}");
}
