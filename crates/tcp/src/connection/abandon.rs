//! Connections that the application has closed in both directions. They continue until the written data has
//! arrived, but not indefinitely (RFC 1122 §4.2.2.13, RFC 6429).

use super::{Connection, Event, State};
use crate::segment::{Flags, Segment};
use crate::store::Store;
use skyhaul_base::Instant;

impl<S: Store> Connection<S> {
    /// The application closes both directions: a FIN follows the written data, and nothing more will be read.
    /// Unread or new data from the peer ends the connection with a RST, so that the peer does not take it as
    /// delivered (RFC 1122 §4.2.2.13, RFC 2525 §2.17). The connection waits `fin-timeout` for the peer's FIN, and
    /// as long for a peer that keeps its window closed.
    pub fn abandon(&mut self, now: Instant) {
        // In SYN-SENT no peer needs to learn of the end (RFC 9293 §3.10.4).
        if self.readable() > 0 || self.state == State::SynSent {
            self.abort(now);
            return;
        }
        self.shutdown(now);
        self.abandoned = true;
        self.sender.abandon();
        if self.state == State::FinWait2 {
            self.await_fin(now);
        }
    }

    /// Starts the timeout of FIN-WAIT-2.
    pub(super) fn await_fin(&mut self, now: Instant) {
        let wait = self.config.fin_timeout;
        if self.abandoned && self.deadline == Instant::MAX && !wait.is_zero() {
            self.deadline = now + wait;
        }
    }

    /// Gives up: the peer has not closed its side in time.
    pub(super) fn give_up_on_fin(&mut self, now: Instant) {
        if self.abandoned {
            self.emit(Event::TimedOut);
            self.abort(now);
        }
    }

    /// Whether the segment carries data that the application will not read, which ends the connection. The reset has the
    /// sequence number that the peer expects (RFC 9293 §3.10.7.1).
    #[cold]
    pub(super) fn refuses_text(&mut self, seg: &Segment, seq: u64) -> bool {
        let new = seg.len > 0 && seq + u64::from(seg.len) > self.receiver.next_expected();
        if new {
            self.emit(Event::Closed);
            self.close();
            self.reset_due = Some(Segment { seq: seg.ack, ..self.blank(Flags::RST) });
        }
        new
    }
}
