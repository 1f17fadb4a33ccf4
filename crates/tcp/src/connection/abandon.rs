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

    /// Resets the connection if the segment carries new data, which the application will not read; true if it does. The reset
    /// has the sequence number that the peer expects (RFC 9293 §3.10.7.1).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::connection::Established;
    use crate::segment::{Mark, Seq};
    use crate::store::Counted;
    use skyhaul_base::Rng;

    /// The state, the news and the answer after a NIL segment or a dummy with new bytes.
    fn after_probe(mark: Mark) -> (State, Option<Event>, Option<Segment>) {
        let config = Config { timestamps: false, ..Config::rfc() };
        let cc = skyhaul_cc::Config::by_name("sack").expect("known").build(&config.rules);
        let (now, iss, peer_iss) = (Instant::ZERO, Seq(100), Seq(900));
        let e = Established { iss, peer_iss, peer: &config, sack: true, rtt: None, probes: true };
        let mut c = Connection::<Counted>::established(now, config, cc, Rng::stream(1, "abandon"), &e);
        c.abandon(now);
        assert!(c.poll_transmit(now).is_some_and(|s| s.flags.has(Flags::FIN)));
        let (seq, ack) = (peer_iss.add(1), iss.add(1));
        let probe =
            Segment { seq, ack, len: 500, window: 9000, flags: Flags::ACK, mark, ..Segment::default() };
        assert_eq!(c.handle(now, &probe, &[]), Ok(()));
        (c.state(), c.poll_event(), c.poll_transmit(now))
    }

    #[test]
    fn new_data_in_a_nil_segment_ends_the_connection_but_a_dummy_is_answered() {
        let (state, event, answer) = after_probe(Mark::Nil);
        assert_eq!((state, event), (State::Closed, Some(Event::Closed)));
        assert!(answer.is_some_and(|s| s.flags == Flags::RST && s.seq == Seq(101)), "{answer:?}");
        let (state, event, answer) = after_probe(Mark::Dummy);
        assert_eq!((state, event), (State::FinWait1, None));
        assert!(answer.is_some_and(|s| s.mark == Mark::DummyAck && s.ack == Seq(901)), "{answer:?}");
    }
}
