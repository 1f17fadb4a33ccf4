//! Automatic repeat request on a link: selective repeat, as RFC 3366 §2 describes it for subnetworks.
//!
//! The sender keeps each packet until it knows what has become of it, and has at most a window of them outstanding. What
//! the receiver misses is sent again at the head of the queue, up to a limit; then it is given up and the receiver
//! skips it. A repeat takes transmission time and at least one RTT of the link. Where the order is kept, everything
//! behind a packet that is repeated waits for it: a transport sees a spike of delay instead of a loss.
//!
//! What the receiver says is never lost (*our choice*).

use crate::param::Refusal;
use skyhaul_base::{Duration, math};

/// Selective repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most packets that are outstanding, at least 1. Less than the product of rate and RTT keeps the link idle.
    pub window: u32,
    /// How often a packet is sent again before it is given up.
    pub retries: u32,
    /// The receiver delivers in the order of the first transmissions; otherwise as packets arrive.
    pub in_order: bool,
    /// How much later than an answer was due the sender takes it for missing.
    pub guard: Duration,
    /// How the sender learns what has arrived.
    pub feedback: Feedback,
}

/// How long the receiver's answer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// As long as a packet that leaves then takes the other way, without jitter; it costs no transmission time.
    #[default]
    Ideal,
    /// Always so long.
    After(Duration),
}

/// A window into which nothing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing could be sent: write a window of at least 1 packet")]
pub struct NoWindow;

impl Refusal for NoWindow {
    fn key(&self) -> &'static str {
        "window"
    }
}

impl Config {
    /// Repeats of a packet by default.
    pub const RETRIES: u32 = 3;
    /// The guard time by default.
    pub const GUARD: Duration = Duration::from_millis(10);
    /// The default window in products of rate and RTT.
    pub const WINDOW_BDP: f64 = 1.5;

    /// With a window of so many packets, and everything else as by default.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self { window, retries: Self::RETRIES, in_order: true, guard: Self::GUARD, feedback: Feedback::Ideal }
    }
    /// Refuses a window into which nothing goes.
    ///
    /// # Errors
    /// [`NoWindow`].
    pub fn validate(&self) -> Result<(), NoWindow> {
        if self.window == 0 { Err(NoWindow) } else { Ok(()) }
    }
    /// How much later a packet is sent again: its `transmission`, the `delay` of the link, the answer and the guard.
    #[must_use]
    pub fn period(&self, delay: Duration, transmission: Duration) -> Duration {
        let answer = match self.feedback {
            Feedback::Ideal => delay,
            Feedback::After(time) => time,
        };
        transmission + delay + answer + self.guard
    }
    /// The share of packets given up where each transmission is lost with probability `p`: p^(retries + 1).
    #[must_use]
    pub fn residual_loss(&self, p: f64) -> f64 {
        math::pow(p, f64::from(self.retries) + 1.0)
    }
    /// How often a packet is sent on average: (1 − p^(retries + 1))/(1 − p).
    #[must_use]
    pub fn mean_transmissions(&self, p: f64) -> f64 {
        if p >= 1.0 { f64::from(self.retries) + 1.0 } else { (1.0 - self.residual_loss(p)) / (1.0 - p) }
    }
    /// How much longer than others the last packet takes that is not given up: all of its repeats, on an idle link.
    #[must_use]
    pub fn longest_repair(&self, delay: Duration, transmission: Duration) -> Duration {
        self.period(delay, transmission).mul_f64(self.retries.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        for (p, retries, loss, mean) in [(0.01, 1, 1e-4, 1.01), (0.1, 3, 1e-4, 1.111), (0.3, 0, 0.3, 1.0)] {
            let arq = Config { retries, ..Config::new(10) };
            assert!((arq.residual_loss(p) / loss - 1.0).abs() < 1e-12, "{p}");
            assert!((arq.mean_transmissions(p) - mean).abs() < 1e-12, "{p}");
        }
        assert_eq!((Config::new(1).mean_transmissions(1.0), Config::new(1).residual_loss(1.0)), (4.0, 1.0));
        // Over a geostationary satellite a repeat doubles the delay: 260 ms there and back, 1 ms on the transmitter.
        let (delay, sending) = (Duration::from_millis(260), Duration::from_millis(1));
        assert_eq!(Config::new(10).period(delay, sending), Duration::from_millis(531));
        assert_eq!(Config::new(10).longest_repair(delay, sending), Duration::from_millis(3 * 531));
        let slow = Config { feedback: Feedback::After(Duration::from_millis(300)), ..Config::new(10) };
        assert_eq!(slow.period(delay, sending), Duration::from_millis(571));
    }

    #[test]
    fn a_window_of_nothing_is_refused() {
        assert_eq!(Config::new(0).validate().map_err(|e| e.key()), Err("window"));
        assert!(Config::new(1).validate().is_ok());
    }
}
