//! Keepalive (RFC 9293 §3.8.4): probes a peer that has been silent for long.

use super::{Connection, Event, State};
use crate::store::Store;
use skyhaul_base::Instant;

/// How long the peer has been silent, and the keepalive probes sent since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// When the last acceptable segment arrived.
    pub(super) heard: Instant,
    /// Time of the next check; never if keepalive is off.
    pub(super) ask_at: Instant,
    /// Keepalive probes sent since the last segment of the peer.
    asked: u32,
}

impl Default for Silence {
    fn default() -> Self {
        Self { heard: Instant::ZERO, ask_at: Instant::MAX, asked: 0 }
    }
}

impl<S: Store> Connection<S> {
    /// Starts keepalive once the connection is established.
    pub(super) fn listen_for_silence(&mut self, now: Instant) {
        let idle = self.config.keepalive.idle;
        let ask_at = if idle.is_zero() { Instant::MAX } else { now + idle };
        self.silence = Silence { heard: now, ask_at, asked: 0 };
    }

    /// Checks how long the peer has been silent. While data is outstanding, other timers do this.
    #[cold]
    pub(super) fn keep_alive(&mut self, now: Instant) {
        let keepalive = self.config.keepalive;
        let Silence { heard, asked, .. } = self.silence;
        if self.state == State::TimeWait || !self.synchronised() {
            self.silence.ask_at = Instant::MAX;
        } else if now < heard + keepalive.idle {
            self.silence.asked = 0;
            self.silence.ask_at = heard + keepalive.idle;
        } else if self.sender.unacked() > 0 {
            self.silence.asked = 0;
            self.silence.ask_at = now + keepalive.interval;
        } else if asked >= keepalive.probes {
            self.emit(Event::TimedOut);
            self.abort(now);
        } else {
            self.silence.asked += 1;
            self.silence.ask_at = now + keepalive.interval;
            self.sender.ask();
        }
    }
}
