//! Packets and drivers that the integration tests share.

use proptest::prelude::*;
use skyhaul_base::{Instant, Rate};
pub(crate) use skyhaul_path::testing::Pkt;
use skyhaul_path::{DropReason, Link, LinkConfig, Streams};

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Delivered(Instant),
    Lost(DropReason),
}

/// A packet that arrives at a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) p: Pkt,
}

/// 8 Mbit/s: one microsecond per byte, so that departures fall on arrivals when sizes and gaps are round.
pub(crate) const MICROSECOND_PER_BYTE: Rate = Rate::from_bits_per_sec(8_000_000);

/// Arrivals from (gap in nanoseconds, size in bytes, low priority).
pub(crate) fn arrivals(list: &[(u64, u32, bool)]) -> Vec<Arrival> {
    let mut t = 0;
    let arrive = |(id, &(gap, size, low)): (usize, &(u64, u32, bool))| {
        t += gap;
        Arrival { at: Instant::from_nanos(t), p: Pkt { id: id as u32, size, low, ..Pkt::default() } }
    };
    list.iter().enumerate().map(arrive).collect()
}

/// Drives a link through all arrivals with every event at its time: service, then delivery, then arrival.
/// Returns the fates by packet number; a packet that did not arrive has none.
pub(crate) fn drive(config: &LinkConfig, arrivals: &[Arrival]) -> Vec<Option<Fate>> {
    let mut link = Link::new(config, Streams::named(5, "links.test"));
    let mut fates = Fates::default();
    for a in arrivals {
        events_until(&mut link, a.at, &mut fates);
        link.offer(a.at, a.p, &mut |p, why| fates.set(p, Fate::Lost(why)));
    }
    events_until(&mut link, Instant::MAX, &mut fates);
    assert!(link.queue_len() == 0 && link.in_flight() == 0 && link.queue_bytes() == 0);
    fates.0
}

/// Runs all events of a link that are due by `until`.
pub(crate) fn events_until(link: &mut Link<Pkt>, until: Instant, fates: &mut Fates) {
    loop {
        let service = link.next_service().unwrap_or(Instant::MAX);
        let delivery = link.next_delivery().unwrap_or(Instant::MAX);
        let next = service.min(delivery);
        if next > until || next == Instant::MAX {
            return;
        }
        if service <= delivery {
            link.serve(service, &mut |p, why| fates.set(p, Fate::Lost(why)));
        } else {
            let p = link.deliver(delivery).expect("due");
            fates.set(p, Fate::Delivered(delivery));
        }
    }
}

/// Fates by packet number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fates(pub(crate) Vec<Option<Fate>>);

impl Fates {
    pub(crate) fn set(&mut self, p: Pkt, fate: Fate) {
        let i = p.id as usize;
        self.0.resize(self.0.len().max(i + 1), None);
        assert!(self.0[i].is_none(), "packet {i} has two fates: {:?} and {fate:?}", self.0[i]);
        self.0[i] = Some(fate);
    }
}

/// Arrivals of random gaps, sizes and priorities, for [`arrivals`].
pub(crate) fn traffic() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    let gap = prop_oneof![4 => Just(0u64), 2 => Just(1_000_000), 1 => Just(500_000), 2 => 0..2_500_000u64];
    let size = prop_oneof![3 => Just(1000u32), 1 => Just(500), 1 => 0..1500u32];
    proptest::collection::vec((gap, size, any::<bool>()), 1..120)
}

/// Round and odd rates.
pub(crate) fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![Just(8_000_000u64), Just(10_400_000), 3_000_000..20_000_000u64]
        .prop_map(Rate::from_bits_per_sec)
}
