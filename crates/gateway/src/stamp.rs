//! Timestamps of the kernel on arriving packets. They are times of day, and that clock may be set while packets pass.

use nix::sys::time::TimeSpec;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;

/// A stamp older than this, or one in the future, was made before the clock was set.
const OLDEST: Duration = Duration::from_secs(10);
/// Longest time between the readings of both clocks, and how often a pair of readings is tried.
const NEAR: Duration = Duration::from_micros(20);
const TRIES: usize = 4;

/// When a packet arrived, by the monotonic clock. If the stamp is useless because the clock was set meanwhile: now.
pub(crate) fn arrival(stamp: TimeSpec) -> Instant {
    let (now, wall) = both();
    let stamped =
        (stamp.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec() as u64);
    Instant::from_nanos(now.as_nanos().saturating_sub(ago(wall, stamped)))
}

/// How long before `wall` a stamp was made, nanoseconds; 0 if it is not believed.
fn ago(wall: u64, stamped: u64) -> u64 {
    wall.checked_sub(stamped).filter(|ago| *ago <= OLDEST.as_nanos()).unwrap_or(0)
}

/// Both clocks at one moment: if the thread was interrupted between the two readings, they are read again.
fn both() -> (Instant, u64) {
    let mut last = (Clock::now(), Clock::wall_nanos());
    for _ in 0..TRIES {
        let now = Clock::now();
        if now - last.0 <= NEAR {
            break;
        }
        last = (now, Clock::wall_nanos());
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_from_before_a_step_of_the_clock_is_not_believed() {
        const SECOND: u64 = 1_000_000_000;
        let wall = 1_800_000_000 * SECOND;
        assert_eq!(ago(wall, wall - SECOND / 2), SECOND / 2);
        for stamped in [wall - 3600 * SECOND, wall + 3600 * SECOND, wall + 1] {
            assert_eq!(ago(wall, stamped), 0);
        }
    }

    #[test]
    fn the_present_was_just_now() {
        let (before, wall) = (Clock::now(), Clock::wall_nanos());
        let at = arrival(TimeSpec::from_duration(std::time::Duration::from_nanos(wall)));
        let least = before.as_nanos().saturating_sub(NEAR.as_nanos());
        assert!((least..=Clock::now().as_nanos()).contains(&at.as_nanos()));
    }
}
