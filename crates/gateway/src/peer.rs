//! Gateways at the other end of the link, and what connections have learnt of the way to them.
//!
//! A connection to a gateway that others went to before begins with half the congestion window that one of them had
//! (draft-ietf-tsvwg-careful-resume §4: the jump window), shared with those that exist. Only where packets are paced: a
//! window at once would fill any queue of the link.

use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

/// Gateways, and servers behind them, that are remembered.
const MOST: usize = 4096;
/// What was learnt is forgotten after this.
const AGE: Duration = Duration::from_secs(600);
/// No connection begins with a larger window, segments.
const LARGEST: f64 = 2000.0;

/// What is known of one gateway.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Congestion window of a connection that had used it, segments.
    window: f64,
    learnt: Instant,
    flows: u32,
}

/// The gateways that are known.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: BTreeMap<NonZeroU32, Peer>,
    behind: BTreeMap<IpAddr, NonZeroU32>,
}

impl Peers {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
    /// The gateway before a server, if a connection to it has found one.
    pub(crate) fn before(&self, server: IpAddr) -> Option<NonZeroU32> {
        self.behind.get(&server).copied()
    }
    /// A connection with `host` has found this gateway in between, and begins.
    pub(crate) fn meet(&mut self, now: Instant, gateway: NonZeroU32, host: IpAddr) {
        if self.behind.len() >= MOST {
            self.behind.clear();
        }
        self.behind.insert(host, gateway);
        if self.known.len() >= MOST {
            self.known.retain(|_, p| p.flows > 0 || now < p.learnt + AGE);
        }
        if self.known.len() < MOST || self.known.contains_key(&gateway) {
            let new = Peer { window: 0.0, learnt: now, flows: 0 };
            self.known.entry(gateway).or_insert(new).flows += 1;
        }
    }
    /// A connection that was counted has ended.
    pub(crate) fn leave(&mut self, gateway: NonZeroU32) {
        if let Some(p) = self.known.get_mut(&gateway) {
            p.flows = p.flows.saturating_sub(1);
        }
    }
    /// A connection has used a window of so many segments. An old larger one counts for as long as it is remembered.
    pub(crate) fn learn(&mut self, now: Instant, gateway: NonZeroU32, window: f64) {
        let Some(p) = self.known.get_mut(&gateway).filter(|_| window.is_finite()) else { return };
        if window >= p.window || now >= p.learnt + AGE {
            (p.window, p.learnt) = (window, now);
        }
    }
    /// The initial window of the next connection to it, segments; `None`: as its endpoint says.
    pub(crate) fn window(&self, now: Instant, gateway: NonZeroU32) -> Option<NonZeroU16> {
        let p = self.known.get(&gateway).filter(|p| now < p.learnt + AGE)?;
        let share = p.window / 2.0 / f64::from(1 + p.flows);
        // Less than this any connection begins with (RFC 6928).
        NonZeroU16::new(share.min(LARGEST) as u16).filter(|n| n.get() > 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_with_its_share_of_half_of_what_was_used() {
        let (g, server) = (NonZeroU32::MIN, IpAddr::from([192, 0, 2, 1]));
        let (mut p, t) = (Peers::default(), Instant::ZERO);
        assert_eq!((p.before(server), p.window(t, g)), (None, None));
        p.meet(t, g, server);
        p.learn(t, g, 500.0);
        p.learn(t, g, 100.0);
        assert_eq!(p.before(server), Some(g));
        assert_eq!(p.window(t, g).map(NonZeroU16::get), Some(125));
        p.leave(g);
        assert_eq!(p.window(t, g).map(NonZeroU16::get), Some(250));
        assert_eq!(p.window(t + AGE, g), None, "what is old is worth nothing");
        p.learn(t + AGE, g, 30.0);
        assert_eq!(p.window(t + AGE, g).map(NonZeroU16::get), Some(15));
        p.learn(t + AGE, g, f64::INFINITY);
        assert_eq!(p.window(t + AGE, g).map(NonZeroU16::get), Some(15));
    }
}
