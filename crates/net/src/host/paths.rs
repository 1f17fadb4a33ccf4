//! The MTUs of paths, as routers have reported them and as connections have found them.

use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a path MTU is remembered for new connections (RFC 1191 §6.3).
const AGE: Duration = Duration::from_secs(600);
/// How long the MTU is remembered that an incomplete search has reached. Until then new connections do not search: each search
/// loses packets.
const PART_AGE: Duration = Duration::from_secs(60);
/// Maximum number of destinations in each table.
const MOST: usize = 4096;

/// The other end of a path: a gateway by its number, whoever is behind it, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Gateway(NonZeroU32),
    Address(IpAddr),
}

/// MTUs, bytes, each with the time at which it is forgotten.
type Mtus<K> = BTreeMap<K, (u32, Instant)>;

/// Path MTUs. Hosts that share them know what any of them has learnt.
#[derive(Debug, Default)]
pub struct Paths(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Below that of the device, as routers have reported them.
    reported: Mtus<IpAddr>,
    /// As a search has found them (RFC 8899).
    found: Mtus<End>,
    /// Gateways in front of addresses.
    behind: BTreeMap<IpAddr, NonZeroU32>,
}

impl Known {
    fn end(&self, to: IpAddr, gateway: Option<NonZeroU32>) -> End {
        gateway.or_else(|| self.behind.get(&to).copied()).map_or(End::Address(to), End::Gateway)
    }
}

/// Remembers an MTU. In a full table the one that would be forgotten first makes room, so that an attacker cannot fill the memory and
/// shut others out.
fn remember<K: Ord + Copy>(known: &mut Mtus<K>, now: Instant, to: K, (mtu, age): (u32, Duration)) {
    if known.len() >= MOST && !known.contains_key(&to) {
        known.retain(|_, (_, until)| *until > now);
        if known.len() >= MOST {
            let first = known.iter().min_by_key(|(_, (_, until))| *until).map(|(at, _)| *at);
            first.map(|at| known.remove(&at));
        }
    }
    known.insert(to, (mtu, now + age));
}

fn valid<K: Ord>(known: &Mtus<K>, now: Instant, to: &K) -> Option<u32> {
    known.get(to).filter(|(_, until)| now < *until).map(|(mtu, _)| *mtu)
}

impl Paths {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A router has reported the MTU of the path to an address, bytes. A report of a larger MTU neither raises nor renews what is
    /// remembered (RFC 1191 §3, RFC 8201 §4).
    pub(super) fn note(&self, now: Instant, to: IpAddr, mtu: u32) {
        let mut known = self.known();
        let reported = &mut known.reported;
        if valid(reported, now, &to).is_none_or(|least| mtu <= least) {
            remember(reported, now, to, (mtu, AGE));
        }
    }
    /// The MTU of the path to an address, bytes, if a router has reported one lately.
    pub(super) fn mtu(&self, now: Instant, to: IpAddr) -> Option<u32> {
        valid(&self.known().reported, now, &to)
    }

    /// This gateway is in front of an address: all addresses behind a gateway share a path.
    pub(super) fn stands_before(&self, to: IpAddr, gateway: NonZeroU32) {
        let mut known = self.known();
        let behind = &mut known.behind;
        if behind.len() >= MOST && !behind.contains_key(&to) {
            behind.clear();
        }
        behind.insert(to, gateway);
    }
    /// A search has found the MTU of the path to an address behind `gateway`, if there is one, bytes; if it is not complete, the path
    /// may carry more.
    pub(super) fn find(
        &self,
        now: Instant,
        (to, gateway): (IpAddr, Option<NonZeroU32>),
        mtu: u32,
        complete: bool,
    ) {
        let mut known = self.known();
        let end = known.end(to, gateway);
        remember(&mut known.found, now, end, (mtu, if complete { AGE } else { PART_AGE }));
    }
    /// The path may drop packets of the size that was found: the next connection searches again.
    pub(super) fn doubt(&self, to: IpAddr, gateway: Option<NonZeroU32>) {
        let mut known = self.known();
        let end = known.end(to, gateway);
        known.found.remove(&end);
    }
    /// The MTU that was found lately, bytes.
    pub(super) fn found(&self, now: Instant, to: IpAddr, gateway: Option<NonZeroU32>) -> Option<u32> {
        let known = self.known();
        valid(&known.found, now, &known.end(to, gateway))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_forgotten_and_the_oldest_makes_room() {
        let paths = Paths::default();
        let at = |n: u32| IpAddr::from(n.to_be_bytes());
        let s = |n: u32| Instant::ZERO + Duration::from_millis(n.into());
        let most = MOST as u32;
        (0..most).for_each(|n| paths.note(s(n), at(n), 1400));
        assert_eq!((paths.mtu(s(most), at(0)), paths.mtu(s(0) + AGE, at(0))), (Some(1400), None));
        // The first is renewed, so that the second is the oldest.
        paths.note(s(most), at(0), 1400);
        paths.note(s(most), at(most), 1300);
        let known = [0, 1, 2, most].map(|n| paths.mtu(s(most), at(n)));
        assert_eq!(known, [Some(1400), None, Some(1400), Some(1300)]);
        assert_eq!(paths.known().reported.len(), MOST);
    }

    #[test]
    fn a_larger_report_neither_raises_nor_renews_what_is_remembered() {
        let (paths, to) = (Paths::default(), IpAddr::from([192, 0, 2, 1]));
        let half = Instant::ZERO + AGE / 2;
        paths.note(Instant::ZERO, to, 1000);
        paths.note(half, to, 1400);
        assert_eq!((paths.mtu(half, to), paths.mtu(Instant::ZERO + AGE, to)), (Some(1000), None));
        paths.note(half, to, 900);
        assert_eq!(paths.mtu(half, to), Some(900));
        // What was forgotten is no bound any more.
        paths.note(half + AGE, to, 1400);
        assert_eq!(paths.mtu(half + AGE, to), Some(1400));
    }

    #[test]
    fn what_a_search_finds_holds_for_all_addresses_behind_a_gateway() {
        let (paths, now) = (Paths::default(), Instant::ZERO);
        let at = |n: u8| IpAddr::from([192, 0, 2, n]);
        let gateway = NonZeroU32::MIN;
        paths.find(now, (at(1), Some(gateway)), 1400, true);
        paths.stands_before(at(2), gateway);
        let found = |n, gateway| paths.found(now, at(n), gateway);
        assert_eq!([found(9, Some(gateway)), found(2, None), found(3, None)], [Some(1400), Some(1400), None]);
        assert_eq!(paths.found(now + AGE, at(2), None), None);
        paths.find(now, (at(3), None), 1300, false);
        paths.doubt(at(2), None);
        assert_eq!([found(9, Some(gateway)), found(3, None)], [None, Some(1300)]);
        assert_eq!(paths.found(now + PART_AGE, at(3), None), None);
    }
}
