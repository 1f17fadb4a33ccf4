//! Shapes outgoing traffic to the rate of the following link. Traffic then waits in this host and not in the queue of the
//! link. That queue would drop packets when it is full, and might send low-priority packets before others.
//!
//! Data wait in their connections, not as packets: a connection builds a packet only when it is its turn
//! ([`crate::outlet::Outlet::allowance`]). Low-priority probes are the only packets that wait here. They leave when nothing
//! else is to be sent.

use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// Packets that a connection sends per turn.
const TURN: usize = 2;
/// How far ahead of the link packets are passed to the device. With less, a late wake-up would leave the link idle.
const AHEAD: Duration = Duration::from_millis(2);
/// Maximum idle time of the link, due to a late wake-up, that is made up for with a burst. The queue of the link takes the burst.
const CATCH_UP: Duration = Duration::from_millis(10);
/// Maximum number of waiting probes. More would wait so long that their answers are useless.
const PROBES: usize = 64;

/// Paces the packets to a device.
#[derive(Debug)]
pub(super) struct Shaper {
    /// The link, with the packets passed to it so far.
    link: Serializer,
    /// A connection waited for its turn when the host was last flushed: if the link has been idle since, the wake-up was late.
    waited: bool,
    probes: VecDeque<Box<[u8]>>,
    /// Probes dropped because [`PROBES`] others waited.
    pub(super) dropped: u64,
}

impl Shaper {
    pub(super) fn new(rate: Rate) -> Self {
        Self { link: Serializer::new(rate), waited: false, probes: VecDeque::new(), dropped: 0 }
    }
    /// Changes the rate from now on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.link.set_rate(rate);
    }
    /// How many packets a connection may send in its turn now.
    pub(super) fn allowance(&self, now: Instant) -> usize {
        if self.link.free_at() <= now + AHEAD { TURN } else { 0 }
    }
    /// Accounts for this many bytes leaving.
    pub(super) fn spend(&mut self, now: Instant, bytes: usize) {
        let since = if self.waited { now - CATCH_UP } else { now };
        self.link.send(since, bytes as u32);
    }
    /// Notes whether connections wait for their turn.
    pub(super) fn note_waiting(&mut self, waits: bool) {
        self.waited = waits;
    }
    /// Queues a probe until no other packets are waiting; a full queue drops the new one.
    pub(super) fn wait(&mut self, probe: &[u8]) {
        if self.probes.len() < PROBES {
            self.probes.push_back(probe.into());
        } else {
            self.dropped += 1;
        }
    }
    /// The next probe that may leave now, when nothing else is waiting.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<Box<[u8]>> {
        if self.link.free_at() <= now { self.probes.pop_front() } else { None }
    }
    /// When the next packet may leave, if one is waiting.
    pub(super) fn next_timeout(&self, others_wait: bool) -> Instant {
        if others_wait {
            // About a millisecond's worth of packets at a time, not each one.
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
    fn a_late_wake_up_costs_the_link_nothing() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let mut shaper = Shaper::new(Rate::from_bits_per_sec(8_000_000));
        // A millisecond per packet, and a wake-up every seven: without catching up, the link would be idle for four of them.
        let mut sent = 0;
        for n in 0..100 {
            let now = start + Duration::from_millis(7 * n);
            while shaper.allowance(now) > 0 {
                shaper.spend(now, 1000);
                sent += 1;
            }
            shaper.note_waiting(true);
        }
        assert_eq!(sent, 7 * 99 + 3);
        // What was lost to a pause of a second is not sent at once.
        let later = start + Duration::from_secs(3);
        let mut burst = 0;
        while shaper.allowance(later) > 0 {
            shaper.spend(later, 1000);
            burst += 1;
        }
        assert_eq!(burst, 13);
        // Nor is anything made up for when nothing has waited.
        shaper.note_waiting(false);
        let later = start + Duration::from_secs(5);
        let mut burst = 0;
        while shaper.allowance(later) > 0 {
            shaper.spend(later, 1000);
            burst += 1;
        }
        assert_eq!(burst, 3);
    }

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
