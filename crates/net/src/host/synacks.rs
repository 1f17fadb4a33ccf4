//! Rate limit on SYN-ACKs. An attacker with forged addresses makes us send them to a victim. Each SYN causes at
//! most one, with a cookie or without, and the host limits their total rate. Once half of the limit is used, only first
//! answers are sent, no retransmissions: a genuine peer retransmits its SYN.

use super::Host;
use skyhaul_base::{Duration, Instant};

/// The limit is divided into parts of this length, so that a burst cannot use up a whole second.
const PART: Duration = Duration::from_millis(100);
const PARTS_PER_SECOND: u32 = 10;

/// SYN-ACKs sent in the current part of a second.
#[derive(Debug, Default)]
pub(super) struct SynAcks {
    sent: u32,
    until: Instant,
}

impl SynAcks {
    /// Whether one more may leave under a limit of `per_second`.
    fn admits(&mut self, now: Instant, per_second: u32, repetition: bool) -> bool {
        if now >= self.until {
            *self = Self { sent: 0, until: now + PART };
        }
        let most = per_second.div_ceil(PARTS_PER_SECOND);
        let most = if repetition { most / 2 } else { most };
        let may = self.sent < most;
        self.sent += u32::from(may);
        may
    }
}

impl Host {
    /// Whether a SYN-ACK may leave; counts it if not.
    pub(super) fn may_send_synack(&mut self, now: Instant, repetition: bool) -> bool {
        let may = self.syn_acks.admits(now, self.config.syn_acks, repetition);
        self.counts.syn_acks_withheld += u64::from(!may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_limit_in_equal_parts_and_repetitions_half_of_it() {
        let mut s = SynAcks::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(1000 + ms);
        let mut tried = |ms, repetition| (0..100).filter(|_| s.admits(at(ms), 200, repetition)).count();
        assert_eq!((tried(0, true), tried(50, false), tried(60, true)), (10, 10, 0));
        assert_eq!((tried(100, false), tried(199, false), tried(200, true)), (20, 0, 10));
    }
}
