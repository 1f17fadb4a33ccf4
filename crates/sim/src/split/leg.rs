//! A leg of a split path: one connection between two gateways, or between a gateway and an end.

use crate::flow::ends::Ends;
use crate::split::headers::Headers;
use crate::split::rate_leg::{Inlet, Outlet, RateLeg};
use crate::split::spoof::Spoof;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_relay::{Count, End, Fifo, Relay};
use skyhaul_tcp::{Config, Connection, Counted, Judgement, Seq, State};
use std::sync::Arc;

/// Both ends of one connection of a chain.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) ends: Ends,
    /// Carries the data instead of `ends` on a leg without TCP.
    pub(crate) rated: Option<Box<RateLeg>>,
    /// The spoofing gateway at its beginning, if any: this leg then has the receiver's end of the connection, and
    /// the previous one the sender's.
    pub(crate) spoof: Option<Box<Spoof>>,
    /// Its compressed headers.
    pub(crate) headers: Option<Box<Headers>>,
    /// Its ends that are moving from one gateway to another: they neither send nor receive.
    pub(crate) away: Away,
    /// The chain that it belongs to.
    pub(crate) chain: u32,
    /// Its place there, from 0.
    pub(crate) number: u8,
}

/// Which ends of a leg are moving from one gateway to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Away {
    pub(crate) sender: bool,
    pub(crate) receiver: bool,
}

impl Leg {
    /// Whether the connection is established at the end that opened it.
    pub(crate) fn established(&self) -> bool {
        if let Some(rated) = &self.rated {
            return rated.sender.established();
        }
        !matches!(self.ends.sender.state(), State::SynSent | State::Closed | State::Listen)
    }
    /// Whether the far end has seen a SYN, and whether it is established.
    pub(crate) fn arrived(&self) -> (bool, bool) {
        if let Some(rated) = &self.rated {
            return (rated.receiver.heard(), rated.receiver.heard());
        }
        match self.ends.receiver.state() {
            State::Listen | State::Closed => (false, false),
            state => (true, state != State::SynReceived),
        }
    }
    /// Bytes that the peer has acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        self.rated.as_ref().map_or_else(|| self.ends.sender.counters().bytes_acked, |r| r.sender.acked())
    }
    /// Whether the peer has acknowledged the end of the stream.
    pub(crate) fn end_acked(&self) -> bool {
        match &self.rated {
            Some(rated) => rated.sender.end_confirmed(),
            None => matches!(self.ends.sender.state(), State::FinWait2 | State::TimeWait),
        }
    }
    /// When one of its ends needs a call.
    pub(crate) fn next_timeout(&self) -> Instant {
        if self.away != Away::default() {
            return self.next_of_those_there();
        }
        let own = self.rated.as_ref().map_or_else(|| self.ends.next_timeout(), |r| r.next_timeout());
        self.spoof.as_ref().map_or(own, |s| own.min(s.next_timeout()))
    }
    /// When the end that is not moving needs a call.
    #[cold]
    fn next_of_those_there(&self) -> Instant {
        let there = |away: bool, next: Instant| if away { Instant::MAX } else { next };
        match &self.rated {
            Some(rated) => there(self.away.sender, rated.sender.next_timeout())
                .min(there(self.away.receiver, rated.receiver.next_timeout())),
            None => there(self.away.sender, self.ends.sender.next_timeout())
                .min(there(self.away.receiver, self.ends.receiver.next_timeout())),
        }
    }
    /// Data at the receiving end that is acknowledged and waits for the next leg.
    pub(crate) fn readable(&self) -> u64 {
        self.rated.as_ref().map_or_else(|| self.ends.receiver.readable(), |r| r.receiver.readable())
    }
    /// Data at the sending end.
    pub(crate) fn unacked(&self) -> u64 {
        self.rated.as_ref().map_or_else(|| self.ends.sender.unacked(), |r| r.sender.unacked())
    }
    /// Handles expired deadlines.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Judgement> {
        if let Some(spoof) = &mut self.spoof {
            spoof.expire(now);
        }
        if self.next_timeout() > now {
            return None;
        }
        match &mut self.rated {
            Some(rated) => {
                if !self.away.sender {
                    rated.sender.handle_timeout(now);
                }
                if !self.away.receiver {
                    rated.receiver.handle_timeout(now);
                }
                None
            }
            None if self.away != Away::default() => {
                let end = self.ends.end(!self.away.sender);
                end.handle_timeout(now);
                self.ends.sender.take_judgement()
            }
            None => self.ends.expire(now),
        }
    }
    /// Forwards data from the end of this leg to the beginning of the next one.
    pub(crate) fn pass_on(&mut self, now: Instant, relay: &mut Relay<Count>, next: &mut Self) {
        match (&mut self.rated, &mut next.rated) {
            (None, None) => {
                relay.pump(&mut Side(&mut self.ends.receiver, now), &mut Side(&mut next.ends.sender, now))
            }
            (Some(a), None) => {
                relay.pump(&mut Inlet(&mut a.receiver, now), &mut Side(&mut next.ends.sender, now))
            }
            (None, Some(b)) => {
                relay.pump(&mut Side(&mut self.ends.receiver, now), &mut Outlet(&mut b.sender))
            }
            (Some(a), Some(b)) => relay.pump(&mut Inlet(&mut a.receiver, now), &mut Outlet(&mut b.sender)),
        };
    }

    /// The sending or receiving end is replaced by one without state: it answers everything with a reset (RFC 9293
    /// §3.10.7.2).
    pub(crate) fn forget(&mut self, sender: bool, config: &Arc<Config>, control: Algorithm) {
        let fresh = Connection::listen(Arc::clone(config), control, Seq(0), Rng::stream(0, "forgotten"));
        if let Some(rated) = &mut self.rated {
            // The peer no longer answers: the remaining end retransmits in vain.
            if sender {
                rated.sender.stop();
            } else {
                rated.deaf = true;
            }
        }
        if sender {
            (self.ends.sender, self.away.sender) = (fresh, false);
        } else {
            (self.ends.receiver, self.away.receiver) = (fresh, false);
        }
    }
}

/// A gateway's end of a leg, in the form that a relay uses.
pub(crate) struct Side<'a>(pub(crate) &'a mut Connection<Counted>, pub(crate) Instant);

impl End<Count> for Side<'_> {
    fn ended(&self) -> bool {
        self.0.peer_finished() && self.0.readable() == 0
    }
    fn failed(&self) -> bool {
        // Data that arrived before an orderly end is still read.
        self.0.state() == State::Closed && !(self.0.peer_finished() && self.0.readable() > 0)
    }
    fn read(&mut self, into: &mut Count, most: u64) -> u64 {
        let n = self.0.read(&mut [], most.min(self.0.readable()));
        into.0 += n;
        n
    }
    fn write(&mut self, from: &mut Count) -> u64 {
        let n = self.0.write(self.1, &[], from.len().min(self.0.writable()));
        from.0 -= n;
        n
    }
    fn finish(&mut self) {
        self.0.shutdown(self.1);
    }
    fn abort(&mut self) {
        self.0.abort(self.1);
    }
}
