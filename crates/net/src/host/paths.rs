//! The MTUs of paths, as routers have reported them.

use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a reduced path MTU is remembered for new connections (RFC 1191 §6.3), and for how many destinations.
const AGE: Duration = Duration::from_secs(600);
const MOST: usize = 4096;

/// Path MTUs below that of the device. Hosts that share them know what any of them has learnt.
#[derive(Debug, Default)]
pub struct Paths(Mutex<BTreeMap<IpAddr, (u32, Instant)>>);

impl Paths {
    fn known(&self) -> MutexGuard<'_, BTreeMap<IpAddr, (u32, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A router has reported the MTU of the path to an address, bytes. A report never raises what is remembered, and does not
    /// renew it either (RFC 1191 §3, RFC 8201 §4). The oldest report makes room for a new one, so that an attacker cannot fill the
    /// memory and shut others out.
    pub(super) fn note(&self, now: Instant, to: IpAddr, mtu: u32) {
        let mut known = self.known();
        if known.get(&to).is_some_and(|&(least, until)| now < until && mtu > least) {
            return;
        }
        if known.len() >= MOST && !known.contains_key(&to) {
            known.retain(|_, (_, until)| *until > now);
            if known.len() >= MOST {
                let oldest = known.iter().min_by_key(|(_, (_, until))| *until).map(|(at, _)| *at);
                oldest.map(|at| known.remove(&at));
            }
        }
        known.insert(to, (mtu, now + AGE));
    }
    /// The MTU of the path to an address, if a smaller one was reported lately, bytes.
    pub(super) fn mtu(&self, now: Instant, to: IpAddr) -> Option<u32> {
        self.known().get(&to).filter(|(_, until)| now < *until).map(|(mtu, _)| *mtu)
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
        assert_eq!(paths.known().len(), MOST);
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
}
