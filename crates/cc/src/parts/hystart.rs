//! HyStart++ (RFC 9406): leaves slow start when the RTT rises, before the queue overflows.
//!
//! In each round of slow start, the minimum of at least eight RTT samples is compared with that of the previous
//! round. A rise by an eighth of it (4 to 16 ms) enters *conservative slow start*, which grows four times more
//! slowly. If the RTT falls below its value at that time, the rise was jitter and slow start resumes; after five
//! such rounds slow start ends.

use skyhaul_base::Duration;

// Names and values of RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// `L`: the maximum of acknowledged segments that one acknowledgement counts for without pacing.
const L: f64 = 8.0;

/// State of one slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStart {
    /// Number of the current round; `None` before the first acknowledgement.
    round: Option<u64>,
    /// Minimum RTT of the last round and of the current one; [`Duration::MAX`] without a sample.
    last: Duration,
    current: Duration,
    /// RTT samples of the current round.
    samples: u32,
    /// Conservative slow start: minimum RTT at its start, and rounds begun since.
    css: Option<(Duration, u32)>,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { round: None, last: Duration::MAX, current: Duration::MAX, samples: 0, css: None }
    }
}

impl HyStart {
    /// Processes an acknowledgement in the packet-timed round `round`. True if slow start is over: the caller sets
    /// `ssthresh` to the window.
    pub fn on_ack(&mut self, round: u64, rtt: Option<Duration>) -> bool {
        if self.round != Some(round) {
            self.round = Some(round);
            if let Some((_, rounds)) = &mut self.css {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return true;
                }
            }
            self.last = self.current;
            self.current = Duration::MAX;
            self.samples = 0;
        }
        let Some(rtt) = rtt else { return false };
        self.current = self.current.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return false;
        }
        match self.css {
            None if self.last == Duration::MAX => {}
            None => {
                let thresh = (self.last / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if self.current >= self.last + thresh {
                    self.css = Some((self.current, 0));
                }
            }
            // The rise was jitter: back to slow start.
            Some((baseline, _)) if self.current < baseline => self.css = None,
            Some(_) => {}
        }
        false
    }

    /// Growth for `acked` segments; `unlimited` removes the limit per acknowledgement, as for a paced sender.
    #[must_use]
    pub fn growth(&self, acked: f64, unlimited: bool) -> f64 {
        let n = if unlimited { acked } else { acked.min(L) };
        if self.css.is_some() { n / CSS_GROWTH_DIVISOR } else { n }
    }

    /// Whether it is in conservative slow start.
    #[must_use]
    pub fn conservative(&self) -> bool {
        self.css.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of `n` samples of `ms`; true if slow start ended.
    fn round(h: &mut HyStart, number: u64, n: u32, ms: u64) -> bool {
        (0..n).any(|_| h.on_ack(number, Some(Duration::from_millis(ms))))
    }

    #[test]
    fn a_rise_by_an_eighth_enters_and_five_rounds_end_it() {
        let mut h = HyStart::default();
        assert!(!round(&mut h, 0, 10, 80));
        // An eighth of 80 ms is 10 ms.
        assert!(!round(&mut h, 1, 10, 89));
        assert!(!h.conservative());
        assert!(!round(&mut h, 2, 7, 100));
        assert!(!h.conservative(), "eight samples are needed; 89/8 = 11.1");
        assert!(!round(&mut h, 2, 1, 101));
        assert!(!h.conservative());
        assert!(!round(&mut h, 3, 10, 113));
        assert!(h.conservative(), "100 + 12.5");
        assert_eq!((h.growth(2.0, false), h.growth(12.0, false), h.growth(12.0, true)), (0.5, 2.0, 3.0));
        for r in 4..8 {
            assert!(!round(&mut h, r, 10, 115));
        }
        assert!(round(&mut h, 8, 10, 115));
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (base, rise, enters) in [(8, 3, false), (8, 4, true), (550, 15, false), (550, 16, true)] {
            let mut h = HyStart::default();
            round(&mut h, 0, 8, base);
            round(&mut h, 1, 8, base + rise);
            assert_eq!(h.conservative(), enters, "{base} + {rise}");
        }
    }

    #[test]
    fn jitter_leads_back() {
        let mut h = HyStart::default();
        round(&mut h, 0, 8, 550);
        round(&mut h, 1, 8, 600);
        assert!(h.conservative());
        round(&mut h, 2, 8, 560);
        assert!(!h.conservative());
        assert_eq!(h.growth(2.0, false), 2.0);
        assert!(!h.on_ack(3, None));
    }

    #[test]
    fn jitter_leads_back_after_a_round_without_samples() {
        let mut h = HyStart::default();
        round(&mut h, 0, 8, 550);
        round(&mut h, 1, 8, 600);
        assert!(!h.on_ack(2, None));
        round(&mut h, 3, 8, 560);
        assert!(!h.conservative());
        // Nothing to compare with: the round before had no sample.
        assert!(!h.on_ack(4, None));
        round(&mut h, 5, 8, 900);
        assert!(!h.conservative());
    }
}
