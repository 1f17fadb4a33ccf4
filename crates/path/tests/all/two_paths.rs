//! Two paths at a time: which copy counts, which are lost, and that every packet is counted once.

use crate::common;

use common::{Fate, Fates, MICROSECOND_PER_BYTE, Pkt, arrivals, events_until};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::error::{self, list, per};
use skyhaul_path::{Change, Delay, DropReason, Link, LinkConfig, Streams};

const MS: u64 = 1_000_000;

fn ms(t: u64) -> Instant {
    Instant::from_nanos(t * MS)
}
fn after(t: u64) -> Delay {
    Delay::fixed(Duration::from_millis(t))
}
/// A link that sends 1000 bytes per millisecond over paths of 10 and 30 ms.
fn link(error: error::Config, drop_inflight: bool, allow_reorder: bool) -> Link<Pkt> {
    let config = LinkConfig {
        rate: MICROSECOND_PER_BYTE.into(),
        delay: after(10),
        two_paths: true,
        error,
        drop_inflight,
        allow_reorder,
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config, Streams::named(5, "links.test"));
    for (path, delay) in [(0, 30), (1, 10)] {
        link.set_path(Instant::ZERO, path, Some(after(delay)), &mut |_, _| panic!());
    }
    link
}
fn offer(link: &mut Link<Pkt>, n: usize, fates: &mut Fates) {
    for a in arrivals(&vec![(0, 1000, false); n]) {
        link.offer(a.at, a.p, &mut |p, why| fates.set(p, Fate::Lost(why)));
    }
}
/// When packets were delivered, in ms.
fn delivered(fates: &Fates) -> Vec<Option<u64>> {
    let at = |f: &Option<Fate>| match f {
        Some(Fate::Delivered(t)) => Some(t.as_nanos() / MS),
        _ => None,
    };
    fates.0.iter().map(at).collect()
}

#[test]
fn the_first_copy_counts_and_the_other_is_dropped() {
    let (mut link, mut fates) = (link(error::Config::NONE, true, false), Fates::default());
    offer(&mut link, 3, &mut fates);
    events_until(&mut link, Instant::MAX, &mut fates);
    assert_eq!(delivered(&fates), [Some(11), Some(12), Some(13)]);
    let repair = link.counters().repair;
    assert_eq!((repair.transmissions, repair.parity), (6, 3));
    assert_eq!((repair.duplicates, repair.repairs), (3, 0));
    assert_eq!(link.counters().total().delivered, 3);
}

#[test]
fn a_packet_whose_first_copy_is_lost_arrives_over_the_other_path() {
    // Draws in turn: the nearer copy of a packet, then the other. Lost are the nearer of the first, and both of the third.
    for (reorder, want) in
        [(false, [Some(31), Some(31), None, Some(33)]), (true, [Some(31), Some(12), None, Some(14)])]
    {
        let lost = list::Config::all([0, 4, 5]).into();
        let (mut link, mut fates) = (link(lost, true, reorder), Fates::default());
        offer(&mut link, 4, &mut fates);
        events_until(&mut link, Instant::MAX, &mut fates);
        // In order, later packets wait for those that may still arrive over the longer path.
        assert_eq!(delivered(&fates), want);
        assert_eq!(fates.0[2], Some(Fate::Lost(DropReason::Error)));
        let repair = link.counters().repair;
        assert_eq!((repair.transmissions, repair.repairs, repair.duplicates), (8, 1, 2));
    }
}

#[test]
fn losses_are_the_square_of_those_of_one_path_at_twice_the_transmissions() {
    let (p, n) = (0.1, 100_000);
    let (mut link, mut fates) = (link(per::Config { p }.into(), true, false), Fates::default());
    offer(&mut link, n, &mut fates);
    events_until(&mut link, Instant::MAX, &mut fates);
    let (all, repair) = (link.counters().total(), link.counters().repair);
    let (mean, share) = (n as f64 * p * p, p * p);
    // Five standard deviations.
    assert!((all.lost() as f64 - mean).abs() < 5.0 * (mean * (1.0 - share)).sqrt(), "{}", all.lost());
    assert_eq!(repair.transmissions, 2 * n as u64);
}

#[test]
fn a_path_that_ends_loses_its_copies_and_the_other_path_delivers_the_packets() {
    for (cuts, want) in [(true, [Some(31), Some(32)]), (false, [Some(11), Some(12)])] {
        let (mut link, mut fates) = (link(error::Config::NONE, cuts, false), Fates::default());
        offer(&mut link, 2, &mut fates);
        events_until(&mut link, ms(5), &mut fates);
        link.set_path(ms(5), 1, None, &mut |_, why| panic!("{why:?}"));
        events_until(&mut link, Instant::MAX, &mut fates);
        assert_eq!(delivered(&fates), want);
    }
    // If both end, the packets in flight are lost; a packet that is sent over one path only is not counted twice.
    let (mut link, mut fates) = (link(error::Config::NONE, true, false), Fates::default());
    offer(&mut link, 1, &mut fates);
    events_until(&mut link, ms(5), &mut fates);
    for path in [0, 1] {
        link.set_path(ms(5), path, None, &mut |_, why| panic!("{why:?}"));
    }
    link.set_path(ms(6), 0, Some(after(30)), &mut |_, why| panic!("{why:?}"));
    let late = Pkt { id: 1, size: 1000, low: false, ..Pkt::default() };
    link.offer(ms(6), late, &mut |p, why| fates.set(p, Fate::Lost(why)));
    events_until(&mut link, Instant::MAX, &mut fates);
    let lost = Some(Fate::Lost(DropReason::LinkDown));
    assert_eq!(fates.0, [lost, Some(Fate::Delivered(ms(37)))]);
    assert_eq!((link.counters().repair.transmissions, link.counters().repair.duplicates), (3, 0));
}

/// An event of a link after a time in tenths of a millisecond: an arrival (`None`) or a change.
fn event() -> impl Strategy<Value = (u64, Option<Change>)> {
    let path = (0..2u8, proptest::option::of(1..40u64)).prop_map(|(i, d)| Change::Path(i, d.map(after)));
    let what = prop_oneof![
        6 => Just(None),
        2 => path.prop_map(Some),
        1 => any::<bool>().prop_map(|v| Some(Change::Visible(v))),
        1 => any::<bool>().prop_map(|v| Some(Change::Up(v))),
    ];
    (0..30u64, what)
}

proptest! {
    /// Offered = delivered + lost + waiting + in flight at any time, whatever happens to the paths; and every packet has one fate.
    #[test]
    fn no_packet_vanishes_and_none_is_delivered_twice(
        list in proptest::collection::vec(event(), 1..200),
        cuts: bool,
        reorder: bool,
    ) {
        let mut link = link(per::Config { p: 0.2 }.into(), cuts, reorder);
        let (mut fates, mut now, mut id) = (Fates::default(), Instant::ZERO, 0);
        for (wait, change) in list {
            now += Duration::from_nanos(wait * MS / 10);
            events_until(&mut link, now, &mut fates);
            match change {
                Some(change) => change.apply(now, &mut link, &mut |p, why| fates.set(p, Fate::Lost(why))),
                None => {
                    let p = Pkt { id, size: 1000, low: id % 3 == 0, ..Pkt::default() };
                    link.offer(now, p, &mut |p, why| fates.set(p, Fate::Lost(why)));
                    id += 1;
                }
            }
            let all = link.counters().total();
            let inside = u64::from(link.queue_len()) + link.in_flight() as u64;
            prop_assert_eq!(all.offered, all.delivered + all.lost() + inside);
        }
        for change in [Change::Up(true), Change::Visible(true)] {
            change.apply(now, &mut link, &mut |p, why| fates.set(p, Fate::Lost(why)));
        }
        events_until(&mut link, Instant::MAX, &mut fates);
        prop_assert_eq!((link.queue_len(), link.in_flight()), (0, 0));
        prop_assert_eq!(fates.0.iter().filter(|f| f.is_some()).count(), id as usize);
        let repair = link.counters().repair;
        prop_assert!(repair.duplicates + repair.repairs <= repair.parity);
    }
}
