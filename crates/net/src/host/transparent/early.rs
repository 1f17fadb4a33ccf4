//! Data in the SYN of a connection between two gateways, as in TCP Fast Open (RFC 7413). Beyond that, nothing is
//! delivered twice: a gateway cannot know whether its clients' requests may be repeated.
//!
//! ```text
//! SYN, asks for a cookie                    ──▶   SYN-ACK with a cookie, for this gateway and this client
//! SYN with data, a serial number, a token   ──▶   the data is taken if the token is right and the number new
//! repeated SYN with both, without data      ──▶   from now on the number is not new
//! SYN with a number that is not new         ──▶   reset: its connection has ended, or never was
//! ```
//! The token is a keyed hash, under the cookie, of the number and of the initial sequence number: the cookie itself is
//! seen only in an answer. The token is as hard to guess as the sequence number of a handshake. It does not cover
//! addresses and ports, which a router between the gateways may translate; the cookie is bound to the client's address
//! as the other gateway sees it. A gateway numbers all its SYNs of this kind, in one sequence whatever their ends.
//! The other one keeps a window of the numbers that it has seen, as in IPsec (RFC 4303 §3.4.3). A late copy of a SYN
//! is thus recognised long after its connection is forgotten.

use crate::host::ends::Ends;
use crate::host::secret::Secret;
use crate::host::{ConnId, Endpoint, Host, HostError};
use siphasher::sip::SipHasher24;
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Seq;
use skyhaul_tcp::config::AckCc;
use skyhaul_wire::tcp::{OPTION_SPACE, Tcp};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a gateway gives to another one, so that it may send data in a SYN.
pub type Cookie = [u8; 8];

/// How long cookies of one kind are given out; they are accepted for as long again.
const PERIOD: Duration = Duration::from_secs(600);
/// How many serial numbers, up to the highest, are distinguished. A SYN with a lower one is reset, even if it is only late: SYNs of its
/// gateway to others count, too. A SYN that was lost is repeated after 1, 3 and 7 s (RFC 6298 §2.1, §5.5). At 6,000 connections per second
/// 42,000 numbers come in between.
const WINDOW: u32 = 1 << 16;
/// Maximum number of gateways and periods whose serial numbers are remembered. They are never forgotten within their
/// period: the data of further ones is not taken.
const MOST: usize = 1024;
/// Maximum data of SYNs that wait for admission, bytes.
const MOST_WAITING: usize = 4 << 20;

/// The serial numbers that were seen.
#[derive(Debug)]
struct Serials {
    highest: u32,
    /// Which of the last [`WINDOW`] numbers were seen: bit `n % WINDOW` for number n; 8 KiB.
    seen: Box<[u64]>,
}

impl Serials {
    fn new(first: u32) -> Self {
        // The first one itself is not seen yet.
        Self { highest: first.wrapping_sub(1), seen: vec![0; WINDOW as usize / 64].into() }
    }
    #[expect(clippy::indexing_slicing, reason = "there are as many words as a window has")]
    fn bit(&mut self, serial: u32) -> (&mut u64, u64) {
        let n = serial % WINDOW;
        (&mut self.seen[n as usize / 64], 1 << (n % 64))
    }
    /// Notes a number; false if it was seen before, or may have been.
    fn note(&mut self, serial: u32) -> bool {
        let ahead = serial.wrapping_sub(self.highest) as i32;
        if ahead >= WINDOW as i32 {
            self.seen.fill(0);
            self.highest = serial;
        } else if ahead > 0 {
            for n in 0..ahead as u32 {
                let (word, bit) = self.bit(serial.wrapping_sub(n));
                *word &= !bit;
            }
            self.highest = serial;
        } else if ahead <= -(WINDOW as i32) {
            return false;
        }
        let (word, bit) = self.bit(serial);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// The serial numbers of SYNs with data: those that a gateway sends, and those that it has seen of others. All hosts of a gateway
/// share them.
#[derive(Debug, Default)]
pub struct Numbers {
    next: AtomicU32,
    /// By period and gateway.
    seen: Mutex<BTreeMap<(u64, NonZeroU32), Serials>>,
}

impl Numbers {
    fn draw(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
    /// Notes a serial number of a period; false if it was seen before, and `None` if it cannot be noted.
    fn note(&self, period: u64, now: u64, gateway: NonZeroU32, serial: u32) -> Option<bool> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|(p, _), _| *p + 1 >= now);
        if seen.len() >= MOST && !seen.contains_key(&(period, gateway)) {
            return None;
        }
        Some(seen.entry((period, gateway)).or_insert_with(|| Serials::new(serial)).note(serial))
    }
}

/// Data in SYNs that has arrived.
#[derive(Debug, Default)]
pub(in crate::host) struct Arrivals {
    /// Of connections that wait for admission.
    waiting: BTreeMap<ConnId, Box<[u8]>>,
    held: usize,
}

impl Arrivals {
    /// Bytes that wait.
    pub(in crate::host) fn held(&self) -> usize {
        self.held
    }
    fn keep(&mut self, id: ConnId, data: &[u8]) {
        if !data.is_empty() && self.held + data.len() <= MOST_WAITING {
            self.held += data.len();
            self.waiting.insert(id, data.into());
        }
    }
    /// The data of a connection that no longer waits.
    pub(in crate::host) fn remove(&mut self, id: ConnId) -> Option<Box<[u8]>> {
        let data = self.waiting.remove(&id)?;
        self.held -= data.len();
        Some(data)
    }
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// The cookie of a gateway for connections in the name of this client.
fn cookie(secret: &Secret, period: u64, gateway: NonZeroU32, client: IpAddr) -> Cookie {
    let mut purpose = [0; 27];
    purpose[..15].copy_from_slice(b"data in the SYN");
    purpose[15..23].copy_from_slice(&period.to_be_bytes());
    purpose[23..].copy_from_slice(&gateway.get().to_be_bytes());
    secret.of(&purpose, &[SocketAddr::new(client, 0)]).to_be_bytes()
}

/// The token of a SYN.
fn token(cookie: Cookie, serial: u32, iss: Seq) -> [u8; 4] {
    let mut key = *b"........SYN data";
    key[..8].copy_from_slice(&cookie);
    let mut h = SipHasher24::new_with_key(&key);
    h.write(&serial.to_be_bytes());
    h.write(&iss.0.to_be_bytes());
    (h.finish() as u32).to_be_bytes()
}

/// Whether connections of this endpoint have room for the option.
fn has_room(endpoint: &Endpoint) -> bool {
    endpoint.profile.negotiates() && !endpoint.tcp.receiver_rate && endpoint.tcp.ack_cc == AckCc::None
}

impl Host {
    /// Whether SYNs of this endpoint may carry data.
    pub(in crate::host) fn may_be_early(&self, endpoint: &Endpoint) -> bool {
        self.config.early.is_some() && self.config.gateway.is_some() && has_room(endpoint)
    }

    /// Opens a connection whose SYN may carry data ([`super::Transparent::connect_early`]).
    pub(super) fn open_early(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        endpoint: &Endpoint,
        (gateway, cookie): (NonZeroU32, Cookie),
    ) -> Result<ConnId, HostError> {
        let id = self.connect(now, local, remote, endpoint)?;
        if !self.may_be_early(endpoint) {
            return Ok(id);
        }
        let room = self
            .limit(now, (remote.ip(), Some(gateway)), endpoint.longest)
            .saturating_sub(OPTION_SPACE as u32);
        let serial = self.config.early.as_ref().map_or(0, |n| n.draw());
        if let Some(conn) = self.get_mut(id) {
            let token = token(cookie, serial, conn.tcp().first());
            conn.offer_early(now, room, gateway, (serial, token));
        }
        Ok(id)
    }

    /// What a SYN-ACK to a gateway that asks for it states about data in later SYNs.
    pub(in crate::host) fn cookie_for(&self, began: Instant, gateway: NonZeroU32, client: IpAddr) -> Cookie {
        cookie(&self.config.secret, period(began), gateway, client)
    }

    /// Checks what a SYN without a connection states about its data, and keeps the data if all is well. False if its number was
    /// seen before: its connection must not be opened again.
    pub(in crate::host) fn take_early(
        &mut self,
        now: Instant,
        (id, ends): (ConnId, &Ends),
        tcp: &Tcp<'_>,
        endpoint: &Endpoint,
    ) -> bool {
        if !self.may_be_early(endpoint) {
            return true;
        }
        let exid = self.config.probe_exid;
        let (Some(gateway), Some(stated)) = (tcp.options.gateway(exid), tcp.options.early(exid)) else {
            return true;
        };
        let [a, b, c, d, token_stated @ ..] = stated;
        let serial = u32::from_be_bytes([a, b, c, d]);
        let client = ends.remote().ip();
        let now = period(now);
        let made = |p: &u64| {
            token(cookie(&self.config.secret, *p, gateway, client), serial, tcp.seq) == token_stated
        };
        let Some(period) = [Some(now), now.checked_sub(1)].into_iter().flatten().find(made) else {
            self.counts.early_refused += 1;
            return true;
        };
        match self.config.early.as_ref().and_then(|n| n.note(period, now, gateway, serial)) {
            Some(true) => self.early.keep(id, tcp.payload),
            Some(false) => {
                self.counts.early_repeated += 1;
                return false;
            }
            None => self.counts.early_refused += 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;
    use std::collections::BTreeSet;

    /// Random numbers with repetitions, against a plain set.
    #[test]
    fn no_number_is_new_twice() {
        for (seed, first) in [(1, 0), (2, u32::MAX - 500)] {
            let mut rng = Rng::stream(seed, "serials");
            let (mut s, mut seen, mut next) = (Serials::new(first), BTreeSet::new(), 0u64);
            let mut taken = 0;
            for _ in 0..20_000 {
                next += rng.below(3) + if rng.below(500) == 0 { rng.below(200_000) } else { 0 };
                let most = if rng.below(50) == 0 { 150_000 } else { 30 };
                let n = next.saturating_sub(rng.below(most));
                let new = s.note(first.wrapping_add(n as u32));
                assert!(!(new && seen.contains(&n)), "{n} was seen");
                if !seen.contains(&n)
                    && next - n < 30
                    && n >= seen.last().copied().unwrap_or(0).saturating_sub(60_000)
                {
                    assert!(new, "{n} is new and recent");
                }
                taken += u32::from(new);
                seen.insert(n);
            }
            assert!(taken > 10_000);
        }
    }

    /// The first repetitions of a lost SYN arrive while others of the same gateway go on, at 6,000 a second.
    #[test]
    fn the_number_of_a_lost_syn_is_new_for_seven_seconds() {
        let (gateway, numbers) = (NonZeroU32::MIN, Numbers::default());
        let note = |n: u32| numbers.note(7, 7, gateway, n);
        assert_eq!(note(0), Some(true));
        // Numbers 1, 2 and 3 are lost.
        for n in 4..7 * 6000 {
            assert_eq!(note(n), Some(true));
            if let Some(lost) = [6000, 3 * 6000, 7 * 6000 - 1].iter().position(|at| *at == n) {
                let lost = lost as u32 + 1;
                assert_eq!((note(lost), note(lost)), (Some(true), Some(false)), "{lost}");
            }
        }
        assert_eq!(note(1 << 20), Some(true));
        assert_eq!(note(7 * 6000), Some(false), "it may have been seen");
    }

    #[test]
    fn a_token_is_good_for_one_syn() {
        let secret = Secret::fixed([3; 16]);
        let (client, server) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 1]));
        let one = cookie(&secret, 5, NonZeroU32::MIN, client);
        let mut others = vec![token(one, 8, Seq(1)), token(one, 7, Seq(2))];
        for other in [
            cookie(&secret, 6, NonZeroU32::MIN, client),
            cookie(&secret, 5, NonZeroU32::MAX, client),
            cookie(&secret, 5, NonZeroU32::MIN, server),
            cookie(&Secret::fixed([4; 16]), 5, NonZeroU32::MIN, client),
        ] {
            others.push(token(other, 7, Seq(1)));
        }
        assert!(!others.contains(&token(one, 7, Seq(1))));
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 6, "all differ");
    }

    #[test]
    fn what_waits_is_limited_and_numbers_are_kept_as_long_as_their_cookies() {
        let mut a = Arrivals::default();
        let id = |slot| ConnId { slot, generation: 0 };
        for n in 0..5000 {
            a.keep(id(n), &[0; 1000]);
        }
        assert!(a.held() <= MOST_WAITING && a.held() > MOST_WAITING - 1000);
        assert_eq!(a.remove(id(0)).map(|d| d.len()), Some(1000));
        assert_eq!(a.remove(id(4999)), None, "there was no room");
        let (g, a) = (|n: u32| NonZeroU32::new(n).unwrap(), Numbers::default());
        for n in 1..=MOST as u32 {
            assert_eq!(a.note(7, 7, g(n), 3), Some(true));
        }
        assert_eq!(a.note(7, 7, g(5000), 3), None, "no room for one more");
        let next = [3, 4].map(|n| a.note(7, 8, g(1), n));
        assert_eq!(next, [Some(false), Some(true)], "in the next period it is still known");
        assert_eq!(a.note(9, 9, g(5000), 3), Some(true), "the old ones have expired");
    }
}
