//! Gateways at the other end of the link, and the congestion windows of earlier connections to them.
//!
//! A connection to a known gateway starts with half the congestion window of an earlier one (the jump window of
//! draft-ietf-tsvwg-careful-resume), divided among the connections that are open. This requires pacing: a window sent at
//! once would overflow the queue of the link.

use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{Cookie, Early};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

/// Maximum number of gateways remembered, of hosts behind them, and of cookies.
const MOST: usize = 4096;
/// Time after which a window or a cookie expires, and for which no SYN carries data once too many were lost.
const AGE: Duration = Duration::from_secs(600);
/// SYNs with data that may be lost one after the other before no more are sent.
const PATIENCE: u8 = 8;
/// Maximum initial window, segments.
const LARGEST: f64 = 2000.0;

/// State of one other gateway.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Largest congestion window that a connection has used, segments.
    window: f64,
    learnt: Instant,
    flows: u32,
    /// SYNs with data that had to be repeated, since the last one that was answered at once.
    unanswered: u8,
    /// From when on SYNs carry data.
    early_from: Instant,
}

/// The gateways that are known.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: BTreeMap<NonZeroU32, Peer>,
    behind: BTreeMap<IpAddr, NonZeroU32>,
    /// By gateway and client.
    cookies: BTreeMap<(NonZeroU32, IpAddr), (Cookie, Instant)>,
}

impl Peers {
    /// Number of known gateways.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
    /// The gateway in front of a host, if an earlier connection found one.
    pub(crate) fn before(&self, server: IpAddr) -> Option<NonZeroU32> {
        self.behind.get(&server).copied()
    }
    /// Counts a new connection with `host` whose handshake has named this gateway.
    pub(crate) fn meet(&mut self, now: Instant, gateway: NonZeroU32, host: IpAddr) {
        if self.behind.len() >= MOST {
            self.behind.clear();
        }
        self.behind.insert(host, gateway);
        if self.known.len() >= MOST {
            self.known.retain(|_, p| p.flows > 0 || now < p.learnt + AGE);
        }
        if self.known.len() < MOST || self.known.contains_key(&gateway) {
            let new = Peer { window: 0.0, learnt: now, flows: 0, unanswered: 0, early_from: now };
            self.known.entry(gateway).or_insert(new).flows += 1;
        }
    }
    /// Records the cookie with which SYNs in the name of this client may carry data.
    pub(crate) fn keep(&mut self, now: Instant, gateway: NonZeroU32, client: IpAddr, cookie: Cookie) {
        if self.cookies.len() >= MOST && !self.cookies.contains_key(&(gateway, client)) {
            // Any of them: the next connection of its client brings a new one.
            self.cookies.pop_first();
        }
        self.cookies.insert((gateway, client), (cookie, now));
    }
    /// The cookie for connections in the name of `client` to a gateway; `None`: their SYNs carry no data.
    pub(crate) fn cookie(&self, now: Instant, gateway: NonZeroU32, client: IpAddr) -> Option<Cookie> {
        let (cookie, since) = self.cookies.get(&(gateway, client))?;
        let may = self.known.get(&gateway).is_some_and(|p| now >= p.early_from);
        (may && now < *since + AGE).then_some(*cookie)
    }
    /// Records what became of data in a SYN. If such SYNs are lost again and again, the path may drop them: then none are sent
    /// for a while.
    pub(crate) fn answered(&mut self, now: Instant, gateway: NonZeroU32, early: Early) {
        let Some(p) = self.known.get_mut(&gateway).filter(|_| early.sent > 0) else { return };
        p.unanswered = if early.repeated { p.unanswered.saturating_add(1) } else { 0 };
        if p.unanswered >= PATIENCE {
            (p.unanswered, p.early_from) = (0, now + AGE);
        }
    }
    /// A counted connection has ended.
    pub(crate) fn leave(&mut self, gateway: NonZeroU32) {
        if let Some(p) = self.known.get_mut(&gateway) {
            p.flows = p.flows.saturating_sub(1);
        }
    }
    /// Records the window that a connection has used, segments. A smaller one replaces a larger one only when that has expired.
    pub(crate) fn learn(&mut self, now: Instant, gateway: NonZeroU32, window: f64) {
        let Some(p) = self.known.get_mut(&gateway).filter(|_| window.is_finite()) else { return };
        if window >= p.window || now >= p.learnt + AGE {
            (p.window, p.learnt) = (window, now);
        }
    }
    /// The initial window of the next connection to a gateway, segments; `None`: that of the endpoint.
    pub(crate) fn window(&self, now: Instant, gateway: NonZeroU32) -> Option<NonZeroU16> {
        let p = self.known.get(&gateway).filter(|p| now < p.learnt + AGE)?;
        let share = p.window / 2.0 / f64::from(1 + p.flows);
        // Any connection may start with 10 segments (RFC 6928).
        NonZeroU16::new(share.min(LARGEST) as u16).filter(|n| n.get() > 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_for_a_client_and_rest_while_the_path_drops_syns_with_data() {
        let (g, client) = (NonZeroU32::MIN, IpAddr::from([192, 0, 2, 1]));
        let (mut p, t) = (Peers::default(), Instant::ZERO);
        p.meet(t, g, client);
        p.keep(t, g, client, [7; 8]);
        assert_eq!(p.cookie(t, g, client), Some([7; 8]));
        assert_eq!(p.cookie(t, g, IpAddr::from([192, 0, 2, 2])), None);
        assert_eq!(p.cookie(t + AGE, g, client), None, "expired");
        let lost = Early { sent: 100, taken: 0, repeated: true };
        let taken = Early { sent: 100, taken: 100, repeated: false };
        let ordinary =
            [[lost; PATIENCE as usize - 1].as_slice(), &[taken], &[lost; PATIENCE as usize - 1]].concat();
        for early in ordinary {
            p.answered(t, g, early);
            assert!(p.cookie(t, g, client).is_some(), "some losses are ordinary");
        }
        p.answered(t, g, lost);
        p.keep(t, g, client, [8; 8]);
        assert_eq!(p.cookie(t, g, client), None);
        p.keep(t + AGE, g, client, [9; 8]);
        assert_eq!(p.cookie(t + AGE, g, client), Some([9; 8]));
    }

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
