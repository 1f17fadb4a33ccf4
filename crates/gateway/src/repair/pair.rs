//! Two paths that face each other in virtual time, for tests and for the fuzz target `repair_packets`.

#![allow(clippy::indexing_slicing, reason = "an index out of bounds is a fault of the test")]

use super::key::Secret;
use super::path::Path;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::QueueConfig;
use skyhaul_repair::{Config, ip};
use std::collections::VecDeque;

/// The pre-shared key.
pub(super) const KEY: &[u8] = b"the key that both gateways share";

/// Two ends with a link between them.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) ends: [Path; 2],
    /// Packets under way to each end: when they arrive, and whether they were marked as congested.
    pub(super) flying: [VecDeque<(Instant, Vec<u8>, bool)>; 2],
    /// Datagrams that have arrived at each end.
    pub(super) delivered: [Vec<Vec<u8>>; 2],
    pub(super) delay: Duration,
    /// Probability that a packet to each end is lost.
    pub(super) loss: [f64; 2],
    /// Packets to each end that were lost, for later.
    pub(super) lost: [Vec<Vec<u8>>; 2],
    rng: Rng,
}

/// The configuration of both ends.
pub(super) fn config() -> Config {
    let usual = Config::new(Rate::from_bits_per_sec(10_000_000), QueueConfig::packets(1000));
    Config { mtu: Some(1500), compress: true, bundle: true, ..usual }
}

/// An end with this key, whose identities are numbered from `first`.
pub(super) fn end(now: Instant, key: &[u8], first: u64) -> Path {
    let mut n = first;
    let draw = move || {
        n += 1;
        let mut id = [1; 16];
        id[8..].copy_from_slice(&n.to_be_bytes());
        id
    };
    Path::new(now, config(), Secret::new(key), Box::new(draw))
}

impl Pair {
    pub(super) fn new(delay: Duration) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        Self {
            now,
            ends: [end(now, KEY, 0), end(now, KEY, 1 << 32)],
            flying: Default::default(),
            delivered: Default::default(),
            delay,
            loss: [0.0; 2],
            lost: Default::default(),
            rng: Rng::stream(1, "pair"),
        }
    }
    /// Sends what is ready.
    pub(super) fn serve(&mut self) {
        let mut out = Vec::new();
        for n in 0..2 {
            self.ends[n].handle_timeout(self.now);
            while self.ends[n].poll_transmit(self.now, &mut out).is_some() {
                if self.rng.unit() < self.loss[1 - n] {
                    self.lost[1 - n].push(out.clone());
                } else {
                    self.flying[1 - n].push_back((self.now + self.delay, out.clone(), false));
                }
            }
            while let Some(packet) = self.ends[n].poll_delivery() {
                self.delivered[n].push(packet);
            }
        }
    }
    /// Time passes.
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.serve();
            let arrivals = self.flying.iter().filter_map(|f| f.front()).map(|(at, ..)| *at).min();
            let timers = [0, 1].map(|n: usize| self.ends[n].next_timeout(self.now)).into_iter().min();
            let next = arrivals.into_iter().chain(timers).min().unwrap_or(until).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            for n in 0..2 {
                while self.flying[n].front().is_some_and(|(at, ..)| *at <= next) {
                    if let Some((_, mut packet, marked)) = self.flying[n].pop_front() {
                        self.ends[n].receive(next, &mut packet, marked);
                    }
                }
            }
        }
    }
}

/// A datagram of IPv4 and UDP with this number in it.
pub(super) fn datagram(number: u32, class: u8, size: usize) -> Vec<u8> {
    let mut p = vec![0x45, class, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2];
    p.extend([0x30, 0x39, 0, 53, 0, 0, 0, 0]);
    p.extend(number.to_be_bytes());
    p.resize(size.max(32), 7);
    let length = (p.len() as u16).to_be_bytes();
    p[2..4].copy_from_slice(&length);
    let sum = ip::checksum(ip::sum(&p[..20])).to_be_bytes();
    p[10..12].copy_from_slice(&sum);
    let length = ((p.len() - 20) as u16).to_be_bytes();
    p[24..26].copy_from_slice(&length);
    let pseudo = ip::sum(&p[12..20]) + 17 + (p.len() - 20) as u64;
    let sum = ip::checksum(pseudo + ip::sum(&p[20..])).to_be_bytes();
    p[26..28].copy_from_slice(&sum);
    p
}

#[cfg(test)]
mod tests {
    use super::super::hello::Hello;
    use super::super::path::{Cause, Origin};
    use super::*;
    use skyhaul_repair::wire::VERSION;

    const GEO: Duration = Duration::from_millis(275);

    fn up() -> Pair {
        let mut pair = Pair::new(GEO);
        pair.run(Duration::from_secs(2));
        assert!(repairs(&pair), "{pair:?}");
        pair
    }
    fn repairs(pair: &Pair) -> bool {
        pair.ends.iter().all(Path::repairs)
    }
    fn causes(pair: &Pair) -> [Option<Cause>; 2] {
        [0, 1].map(|n: usize| pair.ends[n].cause().0)
    }
    fn numbers(of: &[Vec<u8>]) -> Vec<u32> {
        of.iter().map(|p| u32::from_be_bytes(p[28..32].try_into().expect("four"))).collect()
    }

    #[test]
    fn two_ends_find_each_other_also_over_a_bad_link() {
        for seed in 0..20 {
            let mut pair = Pair::new(GEO);
            pair.loss = [0.3; 2];
            pair.rng = Rng::stream(seed, "bad");
            pair.run(Duration::from_secs(20));
            assert!(pair.ends.iter().all(|e| e.totals().sessions >= 1), "{pair:?}");
            pair.loss = [0.0; 2];
            pair.run(Duration::from_secs(3));
            assert!(repairs(&pair));
        }
    }

    #[test]
    fn datagrams_arrive_whole_and_in_order() {
        let mut pair = up();
        pair.loss = [0.05; 2];
        let sent = 4000;
        for n in 0..sent {
            for side in 0..2 {
                let now = pair.now;
                assert!(pair.ends[side].offer(now, &datagram(n, 0, 1000 + n as usize % 400)));
            }
            pair.run(Duration::from_millis(2));
        }
        pair.run(Duration::from_secs(3));
        for side in 0..2 {
            let got = numbers(&pair.delivered[side]);
            assert!(got.len() as u32 * 1000 >= sent * 998, "{}", got.len());
            assert!(got.is_sorted_by(|a, b| a < b));
            for (packet, n) in pair.delivered[side].iter().zip(got) {
                assert_eq!(*packet, datagram(n, 0, 1000 + n as usize % 400));
            }
        }
    }

    #[test]
    fn a_peer_that_falls_silent_is_given_up_within_a_second() {
        let mut pair = up();
        pair.loss = [1.0, 0.0];
        let before = pair.now;
        while pair.ends[0].repairs() {
            pair.run(Duration::from_millis(10));
        }
        assert!(pair.now - before < Duration::from_secs(1), "{:?}", pair.now - before);
        assert_eq!(causes(&pair)[0], Some(Cause::Silent));
        let now = pair.now;
        assert!(!pair.ends[0].offer(now, &datagram(0, 0, 100)), "the kernel forwards it");
        // The other end hears it, and learns that it is not heard.
        pair.run(Duration::from_millis(700));
        assert_eq!(causes(&pair)[1], Some(Cause::Unheard));
        // The path comes back: the same session goes on.
        pair.loss = [0.0; 2];
        pair.run(Duration::from_secs(2));
        assert!(repairs(&pair));
        assert_eq!(pair.ends[0].totals().sessions, 1);
        assert_eq!(pair.ends[0].totals().withdrawals, 1);
    }

    #[test]
    fn a_peer_that_starts_again_begins_a_session() {
        // Milliseconds without any packet: none, until the silence is noticed (600 ms), past the pause, and past the end of the session (10 s).
        for down in [0, 650, 3000, 15_000] {
            let mut pair = up();
            pair.ends[1] = end(pair.now, KEY, 77 << 32);
            let loss = std::mem::replace(&mut pair.loss, [1.0; 2]);
            pair.run(Duration::from_millis(down));
            pair.loss = loss;
            pair.run(Duration::from_secs(4));
            assert!(repairs(&pair), "after {down} ms: {pair:?}");
            let now = pair.now;
            assert!(pair.ends[0].offer(now, &datagram(5, 0, 100)));
            pair.run(Duration::from_secs(1));
            assert_eq!(numbers(&pair.delivered[1]), [5]);
        }
    }

    #[test]
    fn another_key_or_version_is_the_cause() {
        let mut pair = Pair::new(GEO);
        pair.ends[1] = end(pair.now, b"another key that is long enough!", 9);
        pair.run(Duration::from_secs(3));
        assert_eq!(causes(&pair), [Some(Cause::Key); 2]);
        assert_eq!(pair.ends[0].totals().sessions, 0);
        let mut pair = Pair::new(GEO);
        pair.loss = [1.0; 2];
        let mut other = Vec::new();
        Hello { version: VERSION + 1, from: [5; 16], to: None }.write(&Secret::new(KEY), &mut other);
        let now = pair.now;
        pair.ends[0].receive(now, &mut other, false);
        pair.run(Duration::from_millis(10));
        assert_eq!(causes(&pair)[0], Some(Cause::Version(VERSION + 1)));
    }

    #[test]
    fn an_end_that_cannot_keep_up_tells_the_other() {
        let mut pair = up();
        let until = pair.now + Duration::from_secs(5);
        pair.ends[1].pause_until(until, Cause::BusyHere);
        pair.run(Duration::from_millis(500));
        assert_eq!(causes(&pair), [Some(Cause::BusyThere), Some(Cause::BusyHere)]);
        pair.run(Duration::from_secs(6));
        assert!(repairs(&pair));
        let now = pair.now;
        pair.ends[0].leave(now);
        pair.run(Duration::from_millis(400));
        assert_eq!(causes(&pair)[1], Some(Cause::BusyThere));
    }

    /// Everything that has passed, sent again to both ends in any order, now and in later sessions.
    #[test]
    fn what_is_replayed_or_reflected_changes_nothing() {
        let mut pair = Pair::new(GEO);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut record = |pair: &mut Pair, time: u64| {
            for _ in 0..time / 5 {
                seen.extend(pair.flying.iter().flatten().map(|(_, p, _)| p.clone()));
                pair.run(Duration::from_millis(5));
            }
            seen.clone()
        };
        record(&mut pair, 2000);
        assert!(repairs(&pair));
        for n in 0..20 {
            let now = pair.now;
            assert!(pair.ends[0].offer(now, &datagram(n, 0, 200)));
            record(&mut pair, 20);
        }
        let mut all = record(&mut pair, 1000);
        all.sort();
        all.dedup();
        assert!(all.len() > 50);
        // The last of them arrive.
        pair.run(Duration::from_secs(1));
        for round in 0..3 {
            let mut rng = Rng::stream(round, "replays");
            for _ in 0..3000 {
                let mut packet = all[rng.below(all.len() as u64) as usize].clone();
                let now = pair.now;
                // Nothing of it says that the other end is where it comes from.
                let origin = pair.ends[rng.below(2) as usize].receive(now, &mut packet, false);
                assert_eq!(origin, Origin::Unknown);
                if rng.below(10) == 0 {
                    pair.run(Duration::from_millis(1));
                }
                assert!(repairs(&pair));
            }
            pair.run(Duration::from_secs(2));
            assert_eq!(numbers(&pair.delivered[1]), (0..20).collect::<Vec<_>>());
            assert_eq!(pair.delivered[0].len(), 0);
            // Each round but the first ends with a new session.
            let sessions = 1 + round.saturating_sub(1);
            assert_eq!(pair.ends[0].totals().sessions, sessions, "no hello of old begins one");
            if round > 0 {
                // In a new session, what was recorded in the old one is worth nothing.
                pair.ends[1] = end(pair.now, KEY, (7 + round) << 32);
                pair.run(Duration::from_secs(4));
                assert!(repairs(&pair));
            }
        }
        let t = pair.ends[0].totals();
        assert!(t.forged > 0 && t.replayed > 0, "{t:?}");
    }

    /// Each packet that passes, and what it says of its origin: first, and when it is sent again to either end.
    #[test]
    fn only_what_is_new_says_where_the_other_end_is() {
        let mut pair = Pair::new(GEO);
        let mut firsts = [0; 2];
        for n in 0..4000_u32 {
            pair.serve();
            pair.now += Duration::from_millis(1);
            let now = pair.now;
            if pair.ends[0].repairs() {
                assert!(pair.ends[0].offer(now, &datagram(n, 0, 100)));
            }
            for (side, first) in firsts.iter_mut().enumerate() {
                while pair.flying[side].front().is_some_and(|(at, ..)| *at <= now) {
                    let Some((_, packet, _)) = pair.flying[side].pop_front() else { break };
                    let mut origin = |side: usize| pair.ends[side].receive(now, &mut packet.clone(), false);
                    *first += u32::from(origin(side) == Origin::Peer);
                    // A copy, and one that is sent back. The first hello of a handshake may be answered, but moves nothing.
                    assert_ne!(origin(side), Origin::Peer);
                    assert_ne!(origin(1 - side), Origin::Peer);
                }
            }
        }
        assert!(repairs(&pair) && firsts.iter().all(|n| *n > 20), "{firsts:?}");
    }

    #[test]
    fn hellos_are_answered_one_for_one_and_rationed() {
        let secret = Secret::new(KEY);
        let mut pair = Pair::new(GEO);
        pair.loss = [1.0; 2];
        let (mut sent, mut out) = (0, Vec::new());
        for n in 0..2000_u32 {
            let mut hello = Vec::new();
            let mut from = [3; 16];
            from[..4].copy_from_slice(&n.to_be_bytes());
            Hello::new(from, None).write(&secret, &mut hello);
            let now = pair.now;
            pair.ends[0].receive(now, &mut hello, false);
            while pair.ends[0].poll_transmit(now, &mut out).is_some() {
                assert!(out.len() <= hello.len(), "no answer is longer than what it answers");
                sent += 1;
            }
            pair.now += Duration::from_millis(1);
        }
        // An answer every 50 ms, from the first millisecond on, and a hello every 500 ms.
        assert!(sent <= 2 * 21 + 5, "{sent} packets in two seconds");
    }

    #[test]
    fn marks_pass_on_to_who_understands_them() {
        let mut pair = up();
        for (class, arrives) in
            [(46 << 2 | 2, Some(46 << 2 | 3)), (46 << 2 | 3, Some(46 << 2 | 3)), (46 << 2, None)]
        {
            let now = pair.now;
            assert!(pair.ends[0].offer(now, &datagram(1, class, 100)));
            let mut out = Vec::new();
            let mut outer = 0;
            while outer & 0xfc == 0 {
                outer = pair.ends[0].poll_transmit(now, &mut out).expect("a frame").class;
            }
            assert_eq!(outer, class, "DSCP and ECN of the datagram");
            pair.flying[1].push_back((now + GEO, out, true));
            pair.run(Duration::from_secs(1));
            let got = std::mem::take(&mut pair.delivered[1]);
            assert_eq!(got.first().map(|p| p[1]), arrives);
        }
        assert_eq!(pair.ends[1].totals().unmarkable, 1);
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_kernel() {
        let mut pair = up();
        let (now, largest) = (pair.now, pair.ends[0].config().largest_datagram() as usize);
        assert!(!pair.ends[0].offer(now, &datagram(1, 0, largest + 1)));
        pair.ends[0].set_mtu(1400);
        assert!(!pair.ends[0].offer(now, &datagram(1, 0, largest)));
        assert!(pair.ends[0].offer(now, &datagram(1, 0, largest - 100)));
        let longest = |pair: &Pair| pair.flying[1].iter().map(|(_, p, _)| p.len()).max();
        pair.serve();
        // IPv4 and UDP have 28 bytes.
        assert!(longest(&pair).is_some_and(|n| n + 28 <= 1400), "{:?}", longest(&pair));
    }
}
