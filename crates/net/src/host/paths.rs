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
    /// A router has reported the MTU of the path to an address, bytes.
    pub(super) fn note(&self, now: Instant, to: IpAddr, mtu: u32) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.retain(|_, (_, until)| *until > now);
        }
        if known.len() < MOST {
            known.insert(to, (mtu, now + AGE));
        }
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
    fn a_report_is_forgotten_and_so_many_are_kept() {
        let paths = Paths::default();
        let at = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..=MOST as u32 {
            paths.note(Instant::ZERO, at(n), 1400);
        }
        let last = Instant::ZERO + AGE;
        assert_eq!((paths.mtu(Instant::ZERO, at(0)), paths.mtu(last, at(0))), (Some(1400), None));
        assert_eq!(paths.mtu(Instant::ZERO, at(MOST as u32)), None, "there was no room");
        paths.note(last, at(MOST as u32), 1300);
        assert_eq!(paths.mtu(last, at(MOST as u32)), Some(1300), "old ones make room");
    }
}
