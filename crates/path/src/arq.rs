//! Automatic repeat request on a link: selective repeat (RFC 3366 §1.4.2) with limited persistence (RFC 3366 §2).
//!
//! The sender keeps each packet until it knows its fate, with at most a window of them outstanding. Missing packets
//! are retransmitted at the head of the queue, up to a limit; then the packet is given up and the receiver skips
//! it. A retransmission takes transmission time and at least one RTT of the link. With in-order delivery,
//! everything behind a retransmitted packet waits for it: a transport sees a delay spike instead of a loss.
//!
//! The receiver's feedback is never lost (*our choice*).

use crate::param::Refusal;
use skyhaul_base::{Duration, math};

/// Selective repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum outstanding packets, at least 1. A window below the product of rate and RTT leaves the link idle at
    /// times.
    pub window: u32,
    /// Maximum retransmissions of a packet before it is given up.
    pub retries: u32,
    /// The receiver delivers in the order of first transmissions; otherwise as packets arrive.
    pub in_order: bool,
    /// Time after which the sender takes an overdue answer for missing.
    pub guard: Duration,
    /// How the sender learns what has arrived.
    pub feedback: Feedback,
}

/// Delay of the receiver's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// The delay of the link itself at the time of the answer, without jitter. The answer takes no transmission time.
    #[default]
    Ideal,
    /// Constant.
    After(Duration),
}

/// The window is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing could be sent: write a window of at least 1 packet")]
pub struct NoWindow;

impl Refusal for NoWindow {
    fn key(&self) -> &'static str {
        "window"
    }
}

impl Config {
    /// Default number of retransmissions of a packet.
    pub const RETRIES: u32 = 3;
    /// The guard time by default.
    pub const GUARD: Duration = Duration::from_millis(10);
    /// The default window in products of rate and RTT.
    pub const WINDOW_BDP: f64 = 1.5;

    /// A window of this many packets, and defaults for everything else.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self { window, retries: Self::RETRIES, in_order: true, guard: Self::GUARD, feedback: Feedback::Ideal }
    }
    /// Refuses a window of zero packets.
    ///
    /// # Errors
    /// [`NoWindow`].
    pub fn validate(&self) -> Result<(), NoWindow> {
        if self.window == 0 { Err(NoWindow) } else { Ok(()) }
    }
    /// Least time from the start of a transmission to that of the next one of the same packet: its `transmission`, the
    /// `delay` of the link, the answer and the guard.
    #[must_use]
    pub fn period(&self, delay: Duration, transmission: Duration) -> Duration {
        let answer = match self.feedback {
            Feedback::Ideal => delay,
            Feedback::After(time) => time,
        };
        transmission + delay + answer + self.guard
    }
    /// The fraction of packets given up, if each transmission is lost with probability `p`: p^(retries + 1).
    #[must_use]
    pub fn residual_loss(&self, p: f64) -> f64 {
        math::pow(p, f64::from(self.retries) + 1.0)
    }
    /// Mean number of transmissions per packet: (1 − p^(retries + 1))/(1 − p).
    #[must_use]
    pub fn mean_transmissions(&self, p: f64) -> f64 {
        if p >= 1.0 { f64::from(self.retries) + 1.0 } else { (1.0 - self.residual_loss(p)) / (1.0 - p) }
    }
    /// Maximum extra delay of a packet that is not given up: all its retransmissions, on an idle link.
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
        // Over a geostationary satellite: a transmission of 1 ms, 260 ms in each direction, and a guard of 10 ms.
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
