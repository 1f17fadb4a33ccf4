//! Losses of the segment: measured by the receiver, estimated by the sender, and what a code of a length leaves of them.

use skyhaul_base::math;

/// How many frames a frame may be late before it is measured as lost. Repeats do not wait so long (RFC 9002 §6.1.1): a repeat too
/// many costs one datagram, a false loss spoils the estimate.
pub const REORDERING: u32 = 64;
/// Frames that the meter remembers: the bits of [`Meter::seen`].
const WINDOW: u32 = 128;

/// Counts the frames that arrive and those that are lost.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// The largest number; `None` before the first frame.
    largest: Option<u64>,
    /// Bit i: the frame with number largest − i has arrived.
    seen: u128,
    /// The frame judged last was lost.
    in_burst: bool,
    /// Frames that have arrived; it wraps.
    pub received: u32,
    /// Frames that were lost; it wraps.
    pub lost: u32,
    /// Runs of consecutive losses; it wraps.
    pub bursts: u32,
}

impl Meter {
    /// The largest number that has arrived.
    #[must_use]
    pub fn largest(&self) -> Option<u64> {
        self.largest
    }

    /// A frame has arrived. False if it has arrived before, or if it is too old to tell.
    pub fn arrived(&mut self, number: u64) -> bool {
        let Some(largest) = self.largest else {
            // Nothing is known of frames long before the first one: this end may have begun later.
            self.seen = u128::MAX;
            (0..=number).take(WINDOW as usize).for_each(|_| self.seen <<= 1);
            self.seen |= 1;
            self.largest = Some(number);
            self.received = self.received.wrapping_add(1);
            return true;
        };
        if number <= largest {
            let back = largest - number;
            if back >= u64::from(WINDOW) || self.seen >> back & 1 == 1 {
                return false;
            }
            self.seen |= 1 << back;
            // Judged already: it came later than any reordering allowed for, and counts as lost.
            if back < u64::from(REORDERING) {
                self.received = self.received.wrapping_add(1);
            }
            return true;
        }
        let ahead = number - largest;
        for _ in 0..ahead.min(WINDOW.into()) {
            self.judge();
            self.seen <<= 1;
        }
        let beyond = ahead.saturating_sub(WINDOW.into());
        if beyond > 0 {
            self.lose(u32::try_from(beyond).unwrap_or(u32::MAX));
        }
        self.seen |= 1;
        self.largest = Some(number);
        self.received = self.received.wrapping_add(1);
        true
    }

    /// The frame that is about to be too old to be merely reordered is lost, or is not.
    fn judge(&mut self) {
        if self.seen >> (REORDERING - 1) & 1 == 1 {
            self.in_burst = false;
        } else {
            self.lose(1);
        }
    }
    fn lose(&mut self, frames: u32) {
        self.lost = self.lost.wrapping_add(frames);
        if !self.in_burst {
            self.bursts = self.bursts.wrapping_add(1);
            self.in_burst = true;
        }
    }
}

/// A sum that forgets: what is `memory` frames old counts 1/e.
#[derive(Clone, Copy, Debug)]
struct Fading {
    memory: f64,
    frames: f64,
    lost: f64,
    bursts: f64,
}

impl Fading {
    fn add(&mut self, frames: f64, lost: f64, bursts: f64) {
        let kept = math::exp(-frames / self.memory);
        self.frames = self.frames * kept + frames;
        self.lost = self.lost * kept + lost;
        self.bursts = self.bursts * kept + bursts;
    }
    fn loss(&self) -> f64 {
        if self.frames > 0.0 { self.lost / self.frames } else { 0.0 }
    }
}

/// The sender's estimate of loss rate and mean burst length.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    quick: Fading,
    slow: Fading,
    /// Received, lost and bursts of the newest report.
    last: (u32, u32, u32),
}

impl Default for Estimate {
    fn default() -> Self {
        Self::new()
    }
}

impl Estimate {
    /// Memory in frames of the estimate that follows changes.
    const QUICK: f64 = 2_000.0;
    /// Memory in frames of the estimate that keeps rare losses in mind.
    const SLOW: f64 = 10_000.0;
    /// Losses in memory below which the segment is taken to be free of losses.
    const NONE: f64 = 0.1;

    /// Before the first report: half a loss in 50 frames.
    #[must_use]
    pub fn new() -> Self {
        let fading = |memory| Fading { memory, frames: 50.0, lost: 0.5, bursts: 0.5 };
        Self { quick: fading(Self::QUICK), slow: fading(Self::SLOW), last: (0, 0, 0) }
    }
    /// A report has the receiver's totals.
    pub fn reported(&mut self, received: u32, lost: u32, bursts: u32) {
        let since = |new: u32, old: u32| {
            // Reports may be overtaken: what goes backwards adds nothing.
            let ahead = new.wrapping_sub(old);
            if ahead > u32::MAX / 2 { 0.0 } else { f64::from(ahead) }
        };
        let (r, l, b) = self.last;
        let (r, l, b) = (since(received, r), since(lost, l), since(bursts, b));
        if r + l > 0.0 {
            self.quick.add(r + l, l, b);
            self.slow.add(r + l, l, b);
            self.last = (received, lost, bursts);
        }
    }
    /// The share of frames that is lost: the higher of two estimates, since too little repair costs more than too much.
    #[must_use]
    pub fn loss(&self) -> f64 {
        if self.slow.lost < Self::NONE { 0.0 } else { self.quick.loss().max(self.slow.loss()).min(0.5) }
    }
    /// The mean number of losses in a row.
    #[must_use]
    pub fn burst(&self) -> f64 {
        // As if one single loss were in memory: one long burst long ago does not determine the mean.
        (self.slow.lost + 1.0) / (self.slow.bursts + 1.0)
    }
}

/// The probability of more than `most` losses among `n` frames of which the share `loss` is lost, in bursts that begin
/// independently and have geometric lengths with the mean `burst`: a compound Poisson distribution (Pólya and Aeppli), by Panjer's
/// recursion. With bursts of one it is Poisson's limit of the binomial distribution.
#[must_use]
pub fn exceeds(n: u32, loss: f64, burst: f64, most: u32) -> f64 {
    let mut tail = Tail::new(n, loss, burst);
    for _ in 0..most {
        tail.advance();
    }
    tail.above()
}

/// The number of repair symbols for `k` datagrams: the least with which more are lost with a probability of at most
/// `residual`, and no more than `most`.
#[must_use]
pub fn parity(k: u32, loss: f64, burst: f64, residual: f64, most: u32) -> u32 {
    if loss <= 0.0 {
        return 0;
    }
    // Symbols can be lost, too: they count among the frames.
    (0..=most).find(|&r| exceeds(k + r, loss, burst, r) <= residual).unwrap_or(most)
}

/// The distribution of losses, from zero on.
struct Tail {
    /// λ, the mean number of bursts in n frames, and ρ, the probability that a burst goes on.
    lambda: f64,
    on: f64,
    /// Probabilities of j − 1 and j losses, and of at most j.
    before: f64,
    here: f64,
    below: f64,
    j: f64,
}

impl Tail {
    fn new(n: u32, loss: f64, burst: f64) -> Self {
        let burst = burst.max(1.0);
        let lambda = f64::from(n) * loss / burst;
        let none = math::exp(-lambda);
        Self { lambda, on: 1.0 - 1.0 / burst, before: 0.0, here: none, below: none, j: 0.0 }
    }
    /// One loss more. For geometric lengths Panjer's sum telescopes to two terms:
    /// j p(j) = (λ(1−ρ) + 2ρ(j−1)) p(j−1) − ρ² (j−2) p(j−2).
    fn advance(&mut self) {
        self.j += 1.0;
        let (j, on) = (self.j, self.on);
        let first = (self.lambda * (1.0 - on) + 2.0 * on * (j - 1.0)) * self.here;
        let next = (first - on * on * (j - 2.0).max(0.0) * self.before) / j;
        (self.before, self.here) = (self.here, next.max(0.0));
        self.below += self.here;
    }
    fn above(&self) -> f64 {
        (1.0 - self.below).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    #[test]
    fn single_losses_are_poisson() {
        // n p = 0.88: 1 − e^-0.88 Σ 0.88^j/j!.
        for (most, expected) in [(0, 0.585_217), (2, 0.059_604), (5, 0.000_305)] {
            let got = exceeds(88, 0.01, 1.0, most);
            assert!((got - expected).abs() < 2e-6, "{most}: {got}");
        }
    }

    #[test]
    fn the_recursion_is_the_definition() {
        // The sum over the number of bursts, each of a geometric length: P(N = m) C(j−1, m−1) (1−ρ)^m ρ^(j−m).
        for (n, loss, burst) in [(100, 0.01, 1.0), (100, 0.02, 4.0), (300, 0.05, 10.0), (20, 0.3, 2.5)] {
            let (lambda, on) = (f64::from(n) * loss / burst, 1.0 - 1.0 / burst);
            let p = |j: u32| {
                if j == 0 {
                    return math::exp(-lambda);
                }
                let (mut sum, mut poisson, mut choose) = (0.0, math::exp(-lambda), 1.0);
                for m in 1..=j {
                    poisson *= lambda / f64::from(m);
                    if m > 1 {
                        choose *= f64::from(j - m + 1) / f64::from(m - 1);
                    }
                    sum += poisson * choose * math::pow(1.0 - on, m.into()) * math::pow(on, f64::from(j - m));
                }
                sum
            };
            let mut below = 0.0;
            for most in 0..30 {
                below += p(most);
                let got = exceeds(n, loss, burst, most);
                assert!((got - (1.0 - below)).abs() < 1e-9, "{n} {loss} {burst} {most}: {got} {below}");
            }
        }
    }

    #[test]
    fn parity_meets_its_target_and_grows_with_bursts() {
        for k in [1, 10, 83, 100, 500] {
            for loss in [1e-4, 1e-3, 1e-2, 5e-2] {
                for burst in [1.0, 2.0, 5.0, 20.0] {
                    let r = parity(k, loss, burst, 1e-3, 255);
                    assert!(r == 255 || exceeds(k + r, loss, burst, r) <= 1e-3);
                    assert!(r == 0 || exceeds(k + r - 1, loss, burst, r - 1) > 1e-3);
                }
            }
        }
        assert_eq!(parity(83, 0.0, 1.0, 1e-3, 255), 0);
        assert_eq!(parity(83, 0.01, 1.0, 1e-3, 255), 5);
        assert_eq!(parity(83, 0.01, 1.0, 1e-3, 2), 2);
        assert!(parity(83, 0.01, 5.0, 1e-3, 255) > 2 * parity(83, 0.01, 1.0, 1e-3, 255));
    }

    #[test]
    fn the_meter_counts_every_frame_once() {
        let mut rng = Rng::stream(1, "meter");
        let mut meter = Meter::default();
        let (mut lost, mut bursts, mut last) = (0, 0, false);
        let sent = 20_000_u64;
        for number in 0..sent {
            // The first and the last frames arrive, so that all others are judged.
            let edge = number == 0 || number >= sent - u64::from(REORDERING);
            let gone = !edge && rng.below(10) == 0;
            if gone {
                lost += 1;
                bursts += u32::from(!last);
            } else {
                assert!(meter.arrived(number));
                assert!(!meter.arrived(number), "seen");
            }
            last = gone;
        }
        assert_eq!((meter.received, meter.lost, meter.bursts), (sent as u32 - lost, lost, bursts));
    }

    #[test]
    fn the_meter_forgives_reordering_and_refuses_what_is_old() {
        let mut meter = Meter::default();
        for number in 0..1000_u64 {
            // Every pair is swapped.
            assert!(meter.arrived(number ^ 1));
        }
        assert_eq!((meter.received, meter.lost), (1000, 0));
        assert!(meter.arrived(5000));
        assert_eq!(meter.lost, 5000 - 1000 - REORDERING + 1);
        assert!(!meter.arrived(4000) && !meter.arrived(5000));
        assert!(meter.arrived(u64::MAX));
    }

    #[test]
    fn the_estimate_follows_and_forgets() {
        let mut estimate = Estimate::new();
        let (mut received, mut lost, mut bursts) = (0_u32, 0_u32, 0_u32);
        for _ in 0..1000 {
            (received, lost, bursts) = (received + 96, lost + 4, bursts + 1);
            estimate.reported(received, lost, bursts);
        }
        assert!((estimate.loss() - 0.04).abs() < 0.002, "{}", estimate.loss());
        assert!((estimate.burst() - 4.0).abs() < 0.2, "{}", estimate.burst());
        // An older report adds nothing.
        let before = estimate.loss();
        estimate.reported(received - 960, lost - 40, bursts - 10);
        assert_eq!(estimate.loss(), before);
        for _ in 0..1000 {
            received += 100;
            estimate.reported(received, lost, bursts);
        }
        assert_eq!(estimate.loss(), 0.0);
    }
}
