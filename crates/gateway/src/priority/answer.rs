//! The far end of a test: notes what arrives, and reports it when asked.

use super::message::{Arrival, LONGEST, Message};
use skyhaul_base::Instant;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;

/// Maximum number of testers whose trains are kept.
const MOST: usize = 16;

#[derive(Debug)]
struct Log {
    train: u16,
    began: Instant,
    heard: Instant,
    arrivals: Vec<Arrival>,
}

/// The far end of path priority tests.
#[derive(Debug)]
pub(crate) struct Answerer {
    gateway: NonZeroU32,
    /// Tokens are a keyed hash (SipHash) of the tester's address.
    key: RandomState,
    logs: BTreeMap<SocketAddr, Log>,
}

impl Answerer {
    pub(crate) fn new(gateway: NonZeroU32) -> Self {
        Self { gateway, key: RandomState::new(), logs: BTreeMap::new() }
    }

    /// Takes a message that arrived at `now` with this DSCP; returns the answer.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        from: SocketAddr,
        dscp: u8,
        message: &Message,
    ) -> Option<Message> {
        let token = self.key.hash_one(from);
        match *message {
            Message::Hello { nonce } => Some(Message::Welcome { nonce, gateway: self.gateway, token }),
            Message::Probe { token: stated, train, index } if stated == token => {
                self.note(now, from, dscp, train, index);
                None
            }
            Message::Ask { token: stated, train } if stated == token => {
                let log = self.logs.get(&from).filter(|log| log.train == train);
                let arrivals = log.map(|log| log.arrivals.clone()).unwrap_or_default();
                Some(Message::Report { token, train, arrivals })
            }
            _ => None,
        }
    }

    fn note(&mut self, now: Instant, from: SocketAddr, dscp: u8, train: u16, index: u8) {
        if !self.logs.contains_key(&from) && self.logs.len() >= MOST {
            let oldest = self.logs.iter().min_by_key(|(_, log)| log.heard).map(|(at, _)| *at);
            oldest.and_then(|at| self.logs.remove(&at));
        }
        let new = || Log { train, began: now, heard: now, arrivals: Vec::new() };
        let log = self.logs.entry(from).or_insert_with(new);
        if log.train != train {
            *log = new();
        }
        log.heard = now;
        if log.arrivals.len() < LONGEST && log.arrivals.iter().all(|a| a.index != index) {
            let at = (now.since(log.began).as_nanos() / 1000).min(u32::MAX.into()) as u32;
            log.arrivals.push(Arrival { index, dscp, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn only_who_receives_at_its_address_is_reported_to() {
        let gateway = NonZeroU32::new(5).unwrap();
        let mut a = Answerer::new(gateway);
        let from = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        let t = |n| Instant::ZERO + Duration::from_millis(n);
        let Some(Message::Welcome { nonce: 9, gateway: g, token }) =
            a.take(t(0), from(1), 0, &Message::Hello { nonce: 9 })
        else {
            panic!("no welcome")
        };
        assert_eq!(g, gateway);
        for (n, train, index, dscp) in [(1, 7, 0, 0), (2, 7, 2, 1), (4, 7, 1, 0), (5, 7, 1, 0)] {
            assert_eq!(a.take(t(n), from(1), dscp, &Message::Probe { token, train, index }), None);
        }
        let arrived = |index, dscp, at| Arrival { index, dscp, at };
        let report = vec![arrived(0, 0, 0), arrived(2, 1, 1000), arrived(1, 0, 3000)];
        assert_eq!(
            a.take(t(9), from(1), 0, &Message::Ask { token, train: 7 }),
            Some(Message::Report { token, train: 7, arrivals: report })
        );
        // Others do not know its token, and another train is not there.
        assert_eq!(a.take(t(9), from(2), 0, &Message::Ask { token, train: 7 }), None);
        assert_eq!(
            a.take(t(9), from(1), 0, &Message::Ask { token, train: 8 }),
            Some(Message::Report { token, train: 8, arrivals: Vec::new() })
        );
        // Of many testers, the one that has been silent for longest is forgotten.
        for n in 0..100 {
            let Some(Message::Welcome { token, .. }) =
                a.take(t(10), from(n), 0, &Message::Hello { nonce: 1 })
            else {
                panic!("no welcome")
            };
            for index in 0..=255 {
                a.take(t(20 + u64::from(n)), from(n), 0, &Message::Probe { token, train: 1, index });
            }
        }
        assert_eq!(a.logs.len(), MOST);
        assert!(a.logs.values().all(|log| log.arrivals.len() == LONGEST));
    }
}
