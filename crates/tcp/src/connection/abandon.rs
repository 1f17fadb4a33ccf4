//! Connections that the application has closed both ways: nobody reads any more. They go on until what was written has
//! arrived, but nobody keeps them open for ever (RFC 1122 §4.2.2.13, RFC 6429).

use super::{Connection, Event, State};
use crate::segment::{Flags, Segment};
use crate::store::Store;
use skyhaul_base::Instant;

impl<S: Store> Connection<S> {
    /// The application has closed both ways: a FIN follows what was written, and nothing will be read. What the peer has
    /// sent and nobody has read, or sends from now on, ends the connection with a RST, so that it does not believe that it
    /// was taken (RFC 1122 §4.2.2.13, RFC 2525 §2.17). The peer's FIN is awaited for `fin-timeout`; a peer that keeps its
    /// window closed for so long is given up.
    pub fn abandon(&mut self, now: Instant) {
        // In SYN-SENT there is nobody yet to be told of an end (RFC 9293 §3.10.4).
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

    /// In FIN-WAIT-2: from now on the time runs.
    pub(super) fn await_fin(&mut self, now: Instant) {
        let wait = self.config.fin_timeout;
        if self.abandoned && self.deadline == Instant::MAX && !wait.is_zero() {
            self.deadline = now + wait;
        }
    }

    /// The peer has not closed its side in time.
    pub(super) fn give_up_on_fin(&mut self, now: Instant) {
        if self.abandoned {
            self.emit(Event::TimedOut);
            self.abort(now);
        }
    }

    /// Text has come that nobody will read: the connection is over. The reset has the number that the peer expects
    /// (RFC 9293 §3.10.7.1).
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
