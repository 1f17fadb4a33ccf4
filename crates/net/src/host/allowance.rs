//! Rate limit on answers to packets without a connection: resets, echo replies, challenge ACKs of half-open connections.
//!
//! Each address has its own limit. With a shared one, an attacker could count answers and so learn about the
//! connections of others (the side channel of CVE-2016-5696). For the same reason the total limit is drawn anew each
//! second.

use super::secret::Secret;
use skyhaul_base::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

const PERIOD: Duration = Duration::from_secs(1);
/// Answers per second for each address, and for the addresses that share its table entry.
const EACH: u8 = 50;
const PLACES: usize = 256;
/// Answers per second in total: at least this many, and a random number below [`MORE`] in addition.
const LEAST: u64 = 200;
const MORE: u64 = 200;

/// Answers left in the current second.
#[derive(Debug)]
pub(super) struct Allowance {
    until: Instant,
    /// Counts the seconds with requests.
    round: u16,
    left: u64,
    used: Box<[u8; PLACES]>,
}

impl Allowance {
    pub(super) fn new() -> Self {
        Self { until: Instant::ZERO, round: 0, left: 0, used: Box::new([0; PLACES]) }
    }

    /// Whether this address may be answered now; if so, the answer counts.
    pub(super) fn take(&mut self, secret: &Secret, now: Instant, to: IpAddr) -> bool {
        if now >= self.until {
            self.until = now + PERIOD;
            self.round = self.round.wrapping_add(1);
            // The keyed hash covers socket addresses: the port carries the number of the second.
            let round = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), self.round);
            self.left = LEAST + secret.of(b"answers", &[round]) % MORE;
            self.used.fill(0);
        }
        let place = secret.of(b"answer", &[SocketAddr::new(to, 0)]) as usize % PLACES;
        let Some(used) = self.used.get_mut(place).filter(|used| self.left > 0 && **used < EACH) else {
            return false;
        };
        self.left -= 1;
        *used += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_use_up_what_belongs_to_another() {
        let (secret, mut a) = (Secret::fixed([3; 16]), Allowance::new());
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        let now = Instant::ZERO + PERIOD;
        let mut asked = |from, times, at| (0..times).filter(|_| a.take(&secret, at, ip(from))).count();
        assert_eq!([asked(1, 1000, now), asked(2, 1, now)], [usize::from(EACH), 1]);
        assert_eq!(asked(1, 1000, now + PERIOD), usize::from(EACH), "the next second");
    }

    #[test]
    fn all_together_have_a_limit_that_nobody_knows() {
        let (secret, mut a) = (Secret::fixed([3; 16]), Allowance::new());
        let mut seen = std::collections::BTreeSet::new();
        for second in 1..20 {
            let now = Instant::ZERO + PERIOD * second;
            let n =
                (0..60_000u32).filter(|n| a.take(&secret, now, IpAddr::from(n.to_be_bytes()))).count() as u64;
            assert!((LEAST..LEAST + MORE).contains(&n), "{n}");
            seen.insert(n);
        }
        assert!(seen.len() > 10);
    }
}
