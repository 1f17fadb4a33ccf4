//! Keeps the host running after its application has ended, until the last data has arrived.
//!
//! A released connection may still have unacknowledged data or an unacknowledged FIN. A connection that we closed
//! first is in TIME-WAIT: if our last acknowledgement is lost, the peer retransmits its FIN, and the host must
//! answer.

use crate::host::{App, AppStatus, Host};
use skyhaul_base::{Duration, Instant};

/// How long no packet must have arrived, beyond one RTT. Peers retransmit a FIN one RTT plus at least 200 ms after it.
const QUIET: Duration = Duration::from_millis(300);
/// Maximum time to wait; connections still open after it are reset.
const MOST: Duration = Duration::from_secs(5);

/// Waits until released connections are closed and no peer retransmits a FIN.
#[derive(Debug)]
pub struct Drain {
    quiet: Duration,
    began: Option<Instant>,
    packets: u64,
    last_arrival: Instant,
    next: Instant,
    /// When the connections still open were reset. A peer that is missing data then asks again (RFC 5961 §3).
    reset: Option<Instant>,
}

impl Drain {
    /// Waits for connections with this RTT.
    #[must_use]
    pub fn new(rtt: Duration) -> Self {
        Self {
            quiet: rtt + QUIET,
            began: None,
            packets: 0,
            last_arrival: Instant::ZERO,
            next: Instant::ZERO,
            reset: None,
        }
    }
    fn end(&self) -> Instant {
        self.began.map_or(Instant::ZERO, |began| began + MOST)
    }
}

impl App for Drain {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while host.next_changed().is_some() {}
        let packets = host.counts().packets_in;
        if self.began.is_none() || packets != self.packets {
            (self.packets, self.last_arrival) = (packets, now);
        }
        self.began.get_or_insert(now);
        if let Some(at) = self.reset {
            return if now >= at + self.quiet { AppStatus::Done } else { AppStatus::Waiting };
        }
        if host.connections() == host.half_open() {
            return AppStatus::Done;
        }
        if now >= self.end() {
            self.stop(now, host);
            return AppStatus::Waiting;
        }
        let quiet_at = self.last_arrival + self.quiet;
        if now < quiet_at {
            self.next = quiet_at.min(self.end());
        } else if host.owes() {
            self.next = self.end();
        } else {
            return AppStatus::Done;
        }
        AppStatus::Waiting
    }

    fn next_timeout(&self) -> Instant {
        self.next
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        host.abort_all(now);
        (self.reset, self.next) = (Some(now), now + self.quiet);
    }
}
