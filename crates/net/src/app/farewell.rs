//! What remains to be done when an application has ended: what was said last has to arrive.
//!
//! A connection that was let go of may still have data or a FIN that nobody has acknowledged. One that we closed first is
//! in TIME-WAIT: if our last acknowledgement is lost, the peer repeats its FIN, and somebody has to answer.

use crate::host::{App, Host, Turn};
use skyhaul_base::{Duration, Instant};

/// How long nothing may have arrived beyond a round trip: peers repeat a FIN after a round trip and 200 ms at the least.
const QUIET: Duration = Duration::from_millis(300);
/// How long is waited at the most; after that what is still open is reset.
const MOST: Duration = Duration::from_secs(5);

/// Waits until connections that were let go of are closed, and until nobody repeats a FIN.
#[derive(Debug)]
pub struct Farewell {
    quiet: Duration,
    began: Option<Instant>,
    packets: u64,
    heard: Instant,
    next: Instant,
    /// When what was still open was reset. A peer that had not got everything asks back (RFC 5961 §3).
    reset: Option<Instant>,
}

impl Farewell {
    /// After connections of this round trip.
    #[must_use]
    pub fn new(rtt: Duration) -> Self {
        Self {
            quiet: rtt + QUIET,
            began: None,
            packets: 0,
            heard: Instant::ZERO,
            next: Instant::ZERO,
            reset: None,
        }
    }
    fn end(&self) -> Instant {
        self.began.map_or(Instant::ZERO, |began| began + MOST)
    }
}

impl App for Farewell {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while host.next_changed().is_some() {}
        let packets = host.counts().packets_in;
        if self.began.is_none() || packets != self.packets {
            (self.packets, self.heard) = (packets, now);
        }
        self.began.get_or_insert(now);
        if let Some(at) = self.reset {
            return if now >= at + self.quiet { Turn::Done } else { Turn::Waiting };
        }
        if host.connections() == host.half_open() {
            return Turn::Done;
        }
        if now >= self.end() {
            self.stop(now, host);
            return Turn::Waiting;
        }
        let quiet_at = self.heard + self.quiet;
        if now < quiet_at {
            self.next = quiet_at.min(self.end());
        } else if host.owes() {
            self.next = self.end();
        } else {
            return Turn::Done;
        }
        Turn::Waiting
    }

    fn next_timeout(&self) -> Instant {
        self.next
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        host.abort_all(now);
        (self.reset, self.next) = (Some(now), now + self.quiet);
    }
}
