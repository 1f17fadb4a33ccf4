//! What leaves, at the rate of the link that follows: so that the queue is ours, nothing is lost in somebody else's, and what
//! is of low priority really comes last.
//!
//! There is no queue of packets. Connections keep what they have to say until it is their turn ([`crate::outlet::Outlet::allowance`]);
//! only probes of low priority are written at once and wait, a few of them, for a moment in which nobody else wants to send.

use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// Packets that a connection sends in its turn.
const TURN: usize = 2;
/// How far ahead of the link packets are given to the device. Less, and a late wake-up leaves the link idle.
const AHEAD: Duration = Duration::from_millis(2);
/// Probes that wait. More of them would wait for longer than they tell anything.
const PROBES: usize = 64;

/// Paces what leaves a device.
#[derive(Debug)]
pub(super) struct Shaper {
    /// The link, as far as it has been given packets.
    link: Serializer,
    probes: VecDeque<Box<[u8]>>,
    /// Probes that found no room.
    pub(super) dropped: u64,
}

impl Shaper {
    pub(super) fn new(rate: Rate) -> Self {
        Self { link: Serializer::new(rate), probes: VecDeque::new(), dropped: 0 }
    }
    /// How many packets a connection may send in its turn now.
    pub(super) fn allowance(&self, now: Instant) -> usize {
        if self.link.free_at() <= now + AHEAD { TURN } else { 0 }
    }
    /// So many bytes leave.
    pub(super) fn spend(&mut self, now: Instant, bytes: usize) {
        self.link.send(now, bytes as u32);
    }
    /// A probe waits for a moment without other packets; the newest finds no room.
    pub(super) fn wait(&mut self, probe: &[u8]) {
        if self.probes.len() < PROBES {
            self.probes.push_back(probe.into());
        } else {
            self.dropped += 1;
        }
    }
    /// The next probe that may leave now, where nobody else wants to.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<Box<[u8]>> {
        if self.link.free_at() <= now { self.probes.pop_front() } else { None }
    }
    /// When something may leave, if somebody waits for it.
    pub(super) fn next_timeout(&self, others_wait: bool) -> Instant {
        if others_wait {
            // A millisecond's worth of packets at a time, not each one.
            self.link.free_at() - AHEAD / 2
        } else if self.probes.is_empty() {
            Instant::MAX
        } else {
            self.link.free_at()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_leave_at_the_rate_and_probes_after_them() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let mut shaper = Shaper::new(Rate::from_bits_per_sec(8_000_000));
        let mut sent = 0;
        while shaper.allowance(start) > 0 {
            shaper.spend(start, 1000);
            sent += 1;
        }
        // A millisecond each: what the link takes within two, and one more.
        assert_eq!(sent, 3);
        shaper.wait(b"probe");
        assert_eq!(shaper.next_probe(start), None);
        assert_eq!(shaper.next_timeout(true), start + Duration::from_millis(2));
        assert_eq!(shaper.next_timeout(false), start + Duration::from_millis(3));
        let then = start + Duration::from_millis(3);
        assert_eq!(shaper.next_probe(then).as_deref(), Some(&b"probe"[..]));
        assert_eq!(shaper.next_timeout(false), Instant::MAX);
        for _ in 0..=PROBES {
            shaper.wait(b"probe");
        }
        assert_eq!((shaper.probes.len(), shaper.dropped), (PROBES, 1));
    }
}
