//! Receive buffer auto-tuning: the buffer grows with what the application reads (dynamic right-sizing).
//!
//! A window of twice the data read in the last round trip lets a sender double its rate once per round trip, and
//! never limits one in steady state [Fisk, Feng 2001, "Dynamic right-sizing in TCP"]. Linux
//! (`tcp_rcv_space_adjust`, since 2.6.7) adds 16 segments and, while the rate grows, twice the relative growth;
//! this module does the same. The buffer never shrinks.

use skyhaul_base::{Duration, Instant};

/// Initial buffer, bytes, as in Linux: the default of `tcp_rmem[1]`, 128 KiB, gives a window of 64 KiB.
const START: u64 = 65_536;

/// Size of a first flight, segments, for the first comparison (RFC 6928).
const FIRST_FLIGHT: u64 = 10;

/// State of the auto-tuning. Amounts in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Autotune {
    /// Maximum size of the buffer.
    most: u64,
    mss: u64,
    /// RTT as seen by the receiver: the minimum time in which a window of data arrives. Never below the true RTT,
    /// and equal to it when the window is the limit.
    rtt: Option<Duration>,
    /// Right edge of the window announced at `window_began`; 0 before the first data.
    window_end: u64,
    window_began: Instant,
    /// Start of the round in progress.
    round_began: Instant,
    /// Offset up to which data was read before this round.
    read_before: u64,
    /// Data read in the best round so far.
    space: u64,
}

impl Autotune {
    /// Initial buffer if `most` is the maximum.
    pub(crate) fn start(most: u64) -> u64 {
        START.min(most)
    }

    pub(crate) fn new(most: u64, mss: u32) -> Self {
        let mss = u64::from(mss);
        Self {
            most,
            mss,
            rtt: None,
            window_end: 0,
            window_began: Instant::ZERO,
            round_began: Instant::ZERO,
            read_before: 1,
            space: FIRST_FLIGHT * mss,
        }
    }

    /// Restarts the measurement after a time in which the buffer could not grow; data up to the offset `read` was read.
    pub(crate) fn begin_anew(&mut self, read: u64) {
        (self.window_end, self.read_before) = (0, read);
    }

    /// Data has arrived up to `nxt` and was read up to `read`; `edge` is the right edge of the announced window. All three
    /// are stream offsets.
    /// Returns the new size for a buffer of `buffer` bytes.
    pub(crate) fn arrived(&mut self, now: Instant, nxt: u64, read: u64, edge: u64, buffer: u64) -> u64 {
        if self.window_end == 0 {
            // The first data starts the clock.
            (self.window_end, self.window_began) = (edge, now);
            self.round_began = now;
            return buffer;
        }
        if nxt >= self.window_end {
            let took = now - self.window_began;
            self.rtt = Some(self.rtt.map_or(took, |least| least.min(took)));
            (self.window_end, self.window_began) = (edge, now);
        }
        let Some(rtt) = self.rtt else { return buffer };
        if now - self.round_began < rtt {
            return buffer;
        }
        let copied = read - self.read_before;
        self.round_began = now;
        self.read_before = read;
        if copied <= self.space {
            return buffer;
        }
        let base = 2 * copied + 16 * self.mss;
        // The sender's rate is growing: leave room for more growth.
        let growth = u128::from(base) * u128::from(copied - self.space) / u128::from(self.space);
        let wanted = u128::from(base) + 2 * growth;
        self.space = copied;
        buffer.max(u64::try_from(wanted).unwrap_or(u64::MAX).min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_window_is_what_the_formula_says() {
        let mut a = Autotune::new(6 << 20, MSS);
        let start = Autotune::start(6 << 20);
        assert_eq!(start, 65_536);
        // The clock starts with the first data; the window ends at 65,537.
        assert_eq!(a.arrived(at(0), 1001, 1001, 65_537, start), start);
        assert_eq!(a.arrived(at(400), 60_001, 60_001, 125_537, start), start, "no RTT yet");
        // A window took 500 ms: that is the RTT, and 65,600 bytes were read in the first round. Beyond the 10,000 of
        // the first flight by a factor of 5.56: 2 · 65,600 + 16,000 = 147,200, and 2 · ⌊147,200 · 55,600 / 10,000⌋ more.
        let b = a.arrived(at(500), 65_601, 65_601, 131_137, start);
        assert_eq!(b, 147_200 + 2 * 818_432);
        // The same again in the next round changes nothing.
        assert_eq!(a.arrived(at(1000), 131_201, 131_201, 2_000_000, b), b);
        // A little more asks for less than there is.
        assert_eq!(a.arrived(at(1500), 197_001, 197_001, 2_000_000, b), b);
    }

    #[test]
    fn it_stops_at_the_largest_size_and_never_shrinks() {
        let mut a = Autotune::new(100_000, MSS);
        a.arrived(at(0), 1, 1, 65_537, 65_536);
        assert_eq!(a.arrived(at(500), 65_537, 65_537, 131_073, 65_536), 100_000);
        assert_eq!(a.arrived(at(1000), 65_600, 65_600, 165_000, 100_000), 100_000);
        assert_eq!(Autotune::start(20_000), 20_000);
    }

    #[test]
    fn what_is_not_read_asks_for_nothing() {
        let mut a = Autotune::new(6 << 20, MSS);
        a.arrived(at(0), 1, 1, 65_537, 65_536);
        assert_eq!(a.arrived(at(500), 65_537, 9_000, 65_537, 65_536), 65_536);
    }

    #[test]
    fn the_rtt_is_the_least_time_of_a_window() {
        let mut a = Autotune::new(6 << 20, MSS);
        a.arrived(at(0), 1, 1, 1001, 65_536);
        a.arrived(at(900), 1001, 1001, 2001, 65_536);
        assert_eq!(a.rtt, Some(Duration::from_millis(900)));
        a.arrived(at(1500), 2001, 2001, 3001, 65_536);
        a.arrived(at(2300), 3001, 3001, 4001, 65_536);
        assert_eq!(a.rtt, Some(Duration::from_millis(600)));
    }
}
