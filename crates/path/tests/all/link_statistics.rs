//! Queueing theory and timed changes: numbers known in advance.

use crate::common;

use common::{Fate, Fates, MICROSECOND_PER_BYTE, Pkt, arrivals, drive, events_until};
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::error::{self, list, mtu, per};
use skyhaul_path::{
    Delay, DropReason, Limit, Link, LinkConfig, Offered, PacketView, QueueConfig, Streams, rate,
};

const MS: u64 = 1_000_000;

fn ms(t: u64) -> Instant {
    Instant::from_nanos(t * MS)
}
fn pkt(id: u32) -> Pkt {
    Pkt { id, size: 1000, low: false, ..Pkt::default() }
}
fn no_loss(p: Pkt, why: DropReason) {
    panic!("{p:?} lost: {why:?}")
}
/// A link that sends 1000 bytes per millisecond, with a propagation delay of 10 ms.
fn config() -> LinkConfig {
    let delay = Delay::fixed(Duration::from_millis(10));
    LinkConfig { rate: MICROSECOND_PER_BYTE.into(), delay, ..LinkConfig::default() }
}
fn link(config: &LinkConfig) -> Link<Pkt> {
    Link::new(config, Streams::named(1, "links.test"))
}
fn deliveries(link: &mut Link<Pkt>) -> Vec<(u32, Instant)> {
    let mut fates = Fates::default();
    events_until(link, Instant::MAX, &mut fates);
    let arrival = |(id, f): (usize, &Option<Fate>)| match f {
        Some(Fate::Delivered(t)) => Some((id as u32, *t)),
        _ => None,
    };
    fates.0.iter().enumerate().filter_map(arrival).collect()
}

#[test]
fn mean_wait_of_a_poisson_queue() {
    // M/D/1 at load r: mean wait r/(2(1 - r)) service times, mean queue r times that (Pollaczek, Khinchine).
    let n = 1_000_000u32;
    let rho = 0.5;
    let mut link = link(&config());
    let mut rng = Rng::stream(3, "arrivals");
    let (mut t, mut waits, mut sent) = (0.0, 0.0, Vec::with_capacity(n as usize));
    let mut next = 0;
    let mut collect = |link: &mut Link<Pkt>, until: Instant, sent: &[Instant]| {
        while let Some(due) = link.next_service().filter(|t| *t <= until) {
            link.serve(due, &mut no_loss);
        }
        while let Some(due) = link.next_delivery().filter(|t| *t <= until) {
            assert_eq!(link.deliver(due).unwrap().id, next);
            waits += (due - sent[next as usize]).as_secs_f64() - 0.011;
            next += 1;
        }
    };
    for id in 0..n {
        t += rng.exponential(0.001 / rho);
        let now = Instant::from_secs_f64(t);
        collect(&mut link, now, &sent);
        sent.push(now);
        link.offer(now, pkt(id), &mut no_loss);
    }
    let end = Instant::from_secs_f64(t);
    collect(&mut link, Instant::from_secs_f64(t + 10.0), &sent);
    let wait = waits / f64::from(n) / 0.001;
    let expected = rho / (2.0 * (1.0 - rho));
    assert!((wait / expected - 1.0).abs() < 0.03, "{wait}");
    let queue = link.queue_integral(end) as f64 / end.as_nanos() as f64;
    assert!((queue / (rho * expected) - 1.0).abs() < 0.03, "{queue}");
    let utilization = link.busy_time(end).as_secs_f64() / end.as_secs_f64();
    assert!((utilization - rho).abs() < 0.005, "{utilization}");
}

#[test]
fn a_saturated_drop_tail_queue() {
    // Twice the capacity for 10 s, at the half and the whole milliseconds.
    let mut link = link(&LinkConfig { queue: QueueConfig::packets(50), ..config() });
    let mut dropped = 0u64;
    for id in 0..20_000 {
        let now = Instant::from_nanos(u64::from(id) * MS / 2);
        while let Some(due) = link.next_service().filter(|t| *t <= now) {
            link.serve(due, &mut no_loss);
        }
        while link.deliver(now).is_some() {}
        link.offer(now, pkt(id), &mut |_, why| dropped += u64::from(why == DropReason::Full));
    }
    // 10 s carry 10 000 packets, the last one just begun, and 50 wait.
    assert_eq!((dropped, link.queue_len(), link.counters().max_queue), (20_000 - 10_000 - 50, 50, 50));
    assert_eq!(link.counters().max_queue_bytes, 50_000);
    let end = Instant::from_nanos(19_999 * MS / 2);
    assert_eq!(link.busy_time(end), end - Instant::ZERO);
}

#[test]
fn the_reference_link_has_no_drift() {
    // [Peach §V-A]: 1300 segments of 1000 bytes per second; 769 230.77 ns each.
    let rate = Rate::from_bits_per_sec(10_400_000).into();
    let burst: Vec<_> = (0..1300).map(|_| (0, 1000, false)).collect();
    let fates = drive(&LinkConfig { rate, ..config() }, &arrivals(&burst));
    assert_eq!(fates[0], Some(Fate::Delivered(Instant::from_nanos(10_769_230))));
    assert_eq!(fates[1299], Some(Fate::Delivered(ms(1010))));
}

#[test]
fn an_infinitely_fast_link_only_delays() {
    let mut link =
        link(&LinkConfig { rate: rate::Config::Unlimited, queue: QueueConfig::packets(0), ..config() });
    for id in 0..100 {
        assert!(link.offer(ms(1), pkt(id), &mut no_loss).is_taken());
        assert_eq!(link.next_service(), None);
    }
    assert!(deliveries(&mut link).iter().all(|(_, t)| *t == ms(11)));
    assert_eq!(link.busy_time(ms(50)), Duration::ZERO);
}

#[test]
fn uncongested_hops_need_no_service_event() {
    let mut link = link(&config());
    for id in 0..10 {
        // Exactly as fast as the link.
        assert!(link.offer(ms(id.into()), pkt(id), &mut no_loss).is_taken());
        assert_eq!(link.next_service(), None);
    }
    assert_eq!(link.offer(ms(9), pkt(10), &mut no_loss), Offered::Queued);
    assert_eq!((link.next_service(), link.next_delivery()), (Some(ms(10)), Some(ms(11))));
    assert_eq!(link.counters().max_queue, 1);
}

#[test]
fn an_outage_holds_the_queue_and_loses_what_is_in_flight() {
    for drop_inflight in [false, true] {
        let mut link = link(&LinkConfig { drop_inflight, queue: QueueConfig::packets(3), ..config() });
        // 0..4 are sent until 4 ms; 4 is in transmission at 4.5 ms, 5 waits.
        for id in 0..6 {
            link.offer(ms(id.min(4).into()), pkt(id), &mut no_loss);
        }
        let mut lost = Vec::new();
        let half = Instant::from_nanos(4 * MS + MS / 2);
        link.set_up(half, false, &mut |p, why| lost.push((p.id, why)));
        let expected = if drop_inflight { 5 } else { 0 };
        assert_eq!(lost, (0..expected).map(|id| (id, DropReason::LinkDown)).collect::<Vec<_>>());
        assert_eq!((link.next_service(), link.queue_len(), link.is_up()), (None, 1, false));
        // The queue keeps filling, up to its limit.
        lost.clear();
        for id in 6..10 {
            link.offer(ms(20), pkt(id), &mut |p, why| lost.push((p.id, why)));
        }
        assert_eq!(lost, [(8, DropReason::Full), (9, DropReason::Full)]);
        link.serve(ms(29), &mut no_loss);
        assert_eq!(link.queue_len(), 3);
        link.set_up(ms(30), true, &mut no_loss);
        assert_eq!(link.next_service(), Some(ms(30)));
        let late: Vec<_> = deliveries(&mut link).into_iter().filter(|d| d.0 >= 5).collect();
        assert_eq!(late, [(5, ms(41)), (6, ms(42)), (7, ms(43))]);
        // 5 waited from 4 to 30 ms, 6 and 7 from 20, each then behind those before it.
        assert_eq!(link.queue_integral(ms(50)), (26 + 11 + 12) * MS);
    }
}

#[test]
fn a_short_outage_does_not_free_the_transmitter_early() {
    let mut link = link(&config());
    link.offer(ms(0), Pkt { id: 0, size: 4000, low: false, ..Pkt::default() }, &mut no_loss);
    link.offer(ms(0), pkt(1), &mut no_loss);
    link.set_up(ms(1), false, &mut no_loss);
    link.set_up(ms(2), true, &mut no_loss);
    assert_eq!(link.next_service(), Some(ms(4)));
    assert_eq!(deliveries(&mut link), [(0, ms(14)), (1, ms(15))]);
}

#[test]
fn an_idle_transmitter_occupies_no_room() {
    let counted = QueueConfig { count_in_service: true, ..QueueConfig::packets(2) };
    let mut link = link(&LinkConfig { queue: counted, ..config() });
    link.offer(ms(0), pkt(0), &mut no_loss);
    link.set_up(Instant::from_nanos(MS / 2), false, &mut no_loss);
    assert_eq!(link.offer(Instant::from_nanos(MS / 2), pkt(1), &mut no_loss), Offered::Queued);
    let mut lost = 0;
    assert_eq!(link.offer(Instant::from_nanos(MS / 2), pkt(2), &mut |_, _| lost += 1), Offered::Dropped);
    // At 1 ms the transmission is over, though the link is down.
    assert_eq!((link.offer(ms(1), pkt(3), &mut no_loss), lost), (Offered::Behind, 1));
}

#[test]
fn the_packet_in_transmission_occupies_its_own_size_even_in_fragments() {
    let queue = QueueConfig { count_in_service: true, limit: Limit::Bytes(3000), ..QueueConfig::default() };
    let error = mtu::Config { mtu: 576, fragments: true, p: 0.0 }.into();
    let mut link = link(&LinkConfig { queue, error, ..config() });
    // On the link 1500 bytes are 1540 in three fragments; in the queue a packet of 1500 bytes fits beside them.
    for (id, offered) in [(0, Offered::Sent), (1, Offered::Queued)] {
        let p = Pkt { id, size: 1500, low: false, ..Pkt::default() };
        assert_eq!(link.offer(ms(0), p, &mut no_loss), offered);
    }
}

#[test]
fn after_an_outage_arrivals_do_not_wait_for_lost_packets() {
    let mut link = link(&LinkConfig { drop_inflight: true, ..config() });
    link.offer(ms(0), pkt(0), &mut no_loss);
    link.set_up(ms(1), false, &mut |_, _| {});
    link.set_delay(Delay::fixed(Duration::from_millis(2)));
    link.set_up(ms(2), true, &mut no_loss);
    link.offer(ms(2), pkt(1), &mut no_loss);
    assert_eq!(deliveries(&mut link), [(1, ms(5))]);
}

#[test]
fn a_falling_delay_shows_as_a_burst_unless_reordering_is_allowed() {
    for (allow_reorder, second) in [(false, 11), (true, 4)] {
        let mut link = link(&LinkConfig { allow_reorder, ..config() });
        link.offer(ms(0), pkt(0), &mut no_loss);
        link.set_delay(Delay::fixed(Duration::from_millis(2)));
        link.offer(ms(1), pkt(1), &mut no_loss);
        assert_eq!(deliveries(&mut link), [(0, ms(11)), (1, ms(second))]);
    }
}

#[test]
fn a_new_rate_holds_from_the_next_packet() {
    let mut link = link(&config());
    for id in 0..4 {
        link.offer(ms(0), pkt(id), &mut no_loss);
    }
    link.set_rate(&Rate::from_bits_per_sec(4_000_000).into());
    link.serve(ms(1), &mut no_loss);
    link.set_rate(&rate::Config::Unlimited);
    assert_eq!((link.next_service(), link.rate()), (Some(ms(3)), None));
    // Infinitely fast from 3 ms on, but no packet overtakes the one in transmission.
    link.offer(ms(2), pkt(4), &mut no_loss);
    link.serve(ms(3), &mut no_loss);
    link.set_rate(&MICROSECOND_PER_BYTE.into());
    link.offer(ms(3), pkt(5), &mut no_loss);
    let times: Vec<_> = deliveries(&mut link).into_iter().map(|d| d.1).collect();
    assert_eq!(times, [ms(11), ms(13), ms(13), ms(13), ms(13), ms(14)]);
}

#[test]
fn a_lost_packet_has_used_the_transmitter() {
    let mut link = link(&LinkConfig { error: per::Config { p: 1.0 }.into(), ..config() });
    let mut lost = Vec::new();
    link.offer(ms(0), pkt(0), &mut |p, why| lost.push((p.id, why)));
    link.set_error(error::Config::NONE.build());
    link.offer(ms(0), pkt(1), &mut no_loss);
    assert_eq!(lost, [(0, DropReason::Error)]);
    assert_eq!(deliveries(&mut link), [(1, ms(12))]);
    let c = link.counters();
    assert_eq!((c.high().dropped(DropReason::Error), c.high().delivered, c.low().offered), (1, 1, 0));
}

#[test]
fn spared_acknowledgements_pass_the_error_model_unseen() {
    /// An acknowledgement (`true`) or a data packet.
    #[derive(Clone, Copy, Default)]
    struct P(bool);
    impl PacketView for P {
        fn size(&self) -> u32 {
            40
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            0
        }
        fn is_pure_ack(&self) -> bool {
            self.0
        }
    }
    // Data packets 0 and 2 are listed; acknowledgements in between do not count.
    let error = list::Config::all([0, 2]).into();
    let mut link =
        Link::new(&LinkConfig { error, spares_acks: true, ..config() }, Streams::named(1, "links.test"));
    let kinds = [true, false, true, false, true, false, true];
    let mut lost = Vec::new();
    for (i, ack) in kinds.into_iter().enumerate() {
        let mut on_loss = |p: P, why| lost.push((i, p.0, why));
        assert!(link.offer(ms(i as u64), P(ack), &mut on_loss).is_taken());
    }
    assert_eq!(lost, [(1, false, DropReason::Error), (5, false, DropReason::Error)]);
    let flying: Vec<bool> = (0..).map_while(|n| link.peek(n)).map(|p| p.0).collect();
    assert_eq!(flying, [true, true, false, true, true]);
}
