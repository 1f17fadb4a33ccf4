//! A leg of a split path: one connection between two gateways, or between a gateway and an end.

use crate::flow::ends::Ends;
use crate::split::headers::Headers;
use crate::split::rate_leg::{Inlet, Outlet, RateLeg};
use crate::split::spoof::Spoof;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_relay::{Count, End, Fifo, Relay};
use skyhaul_tcp::{Config, CongestionReport, Connection, Counted, Seq, State};
use std::sync::Arc;

/// One leg of a chain, with both of its ends.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) carrier: Carrier,
    /// The state of header compression on the leg, if it has any.
    pub(crate) headers: Option<Box<Headers>>,
    /// The ends that are moving from one gateway to another; such an end neither sends nor receives.
    pub(crate) moving: MovingEnds,
    /// The chain that the leg belongs to.
    pub(crate) chain: u32,
    /// Its place in the chain, from 0.
    pub(crate) number: u8,
}

/// How far the end of a leg is that did not open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceivingEnd {
    /// No SYN has arrived.
    Idle,
    /// A SYN has arrived.
    Requested,
    /// The connection is established there.
    Established,
}

/// What carries the data of a leg.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// A TCP connection.
    Tcp {
        ends: Box<Ends>,
        /// The spoofing gateway at the beginning of the leg, if any. Then one connection spans two legs: this leg has the
        /// receiver's end of it, and the previous leg the sender's.
        spoof: Option<Box<Spoof>>,
    },
    /// Packets at a rate.
    Rated(Box<RateLeg>),
}

/// Which ends of a leg are moving from one gateway to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MovingEnds {
    pub(crate) sender: bool,
    pub(crate) receiver: bool,
}

impl Leg {
    /// Both ends of the TCP connection, if the leg is one.
    pub(crate) fn tcp(&self) -> Option<&Ends> {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => Some(ends),
            Carrier::Rated(_) => None,
        }
    }
    /// Both ends of the TCP connection, if the leg is one.
    pub(crate) fn tcp_mut(&mut self) -> Option<&mut Ends> {
        match &mut self.carrier {
            Carrier::Tcp { ends, .. } => Some(ends),
            Carrier::Rated(_) => None,
        }
    }
    /// The spoofing gateway at the beginning of the leg, if any.
    pub(crate) fn spoof(&self) -> Option<&Spoof> {
        match &self.carrier {
            Carrier::Tcp { spoof, .. } => spoof.as_deref(),
            Carrier::Rated(_) => None,
        }
    }
    /// Both ends of a leg without TCP.
    pub(crate) fn rated(&self) -> Option<&RateLeg> {
        match &self.carrier {
            Carrier::Tcp { .. } => None,
            Carrier::Rated(rated) => Some(rated),
        }
    }
    /// Whether the connection is established at the end that opened it.
    pub(crate) fn established(&self) -> bool {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => {
                !matches!(ends.sender.state(), State::SynSent | State::Closed | State::Listen)
            }
            Carrier::Rated(rated) => rated.sender.established(),
        }
    }
    /// How far the receiving end is.
    pub(crate) fn receiving_end(&self) -> ReceivingEnd {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => match ends.receiver.state() {
                State::Listen | State::Closed => ReceivingEnd::Idle,
                State::SynReceived => ReceivingEnd::Requested,
                _ => ReceivingEnd::Established,
            },
            Carrier::Rated(rated) if rated.receiver.has_received() => ReceivingEnd::Established,
            Carrier::Rated(_) => ReceivingEnd::Idle,
        }
    }
    /// Bytes that the peer has acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => ends.sender.counters().bytes_acked,
            Carrier::Rated(rated) => rated.sender.acked(),
        }
    }
    /// Whether the peer has acknowledged the end of the stream.
    pub(crate) fn end_acked(&self) -> bool {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => matches!(ends.sender.state(), State::FinWait2 | State::TimeWait),
            Carrier::Rated(rated) => rated.sender.end_confirmed(),
        }
    }
    /// The earliest deadline of the ends that are not moving: when [`Self::expire`] must be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        let unless_moving = |moving: bool, next: Instant| if moving { Instant::MAX } else { next };
        let MovingEnds { sender, receiver } = self.moving;
        match &self.carrier {
            Carrier::Tcp { ends, spoof } => {
                let own = unless_moving(sender, ends.sender.next_timeout());
                let own = own.min(unless_moving(receiver, ends.receiver.next_timeout()));
                spoof.as_ref().map_or(own, |s| own.min(s.next_timeout()))
            }
            Carrier::Rated(rated) => {
                let own = unless_moving(sender, rated.sender.next_timeout());
                own.min(unless_moving(receiver, rated.receiver.next_timeout()))
            }
        }
    }
    /// Bytes at the receiving end that are acknowledged and wait for the next leg.
    pub(crate) fn readable(&self) -> u64 {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => ends.receiver.readable(),
            Carrier::Rated(rated) => rated.receiver.readable(),
        }
    }
    /// Bytes at the sending end that are not acknowledged.
    pub(crate) fn unacked(&self) -> u64 {
        match &self.carrier {
            Carrier::Tcp { ends, .. } => ends.sender.unacked(),
            Carrier::Rated(rated) => rated.sender.unacked(),
        }
    }
    /// Handles expired deadlines of the ends that are not moving. Returns the sender's congestion report.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<CongestionReport> {
        if let Carrier::Tcp { spoof: Some(spoof), .. } = &mut self.carrier {
            spoof.expire(now);
        }
        if self.next_timeout() > now {
            return None;
        }
        let MovingEnds { sender, receiver } = self.moving;
        match &mut self.carrier {
            Carrier::Tcp { ends, .. } => {
                for (moving, is_sender) in [(sender, true), (receiver, false)] {
                    let end = ends.end(is_sender);
                    if !moving && end.next_timeout() <= now {
                        end.handle_timeout(now);
                    }
                }
                ends.sender.take_congestion_report()
            }
            Carrier::Rated(rated) => {
                if !sender {
                    rated.sender.handle_timeout(now);
                }
                if !receiver {
                    rated.receiver.handle_timeout(now);
                }
                None
            }
        }
    }
    /// Forwards data from the end of this leg to the beginning of the next one.
    pub(crate) fn pass_on(&mut self, now: Instant, relay: &mut Relay<Count>, next: &mut Self) {
        use Carrier::{Rated, Tcp};
        match (&mut self.carrier, &mut next.carrier) {
            (Tcp { ends: a, .. }, Tcp { ends: b, .. }) => {
                relay.pump(&mut Side(&mut a.receiver, now), &mut Side(&mut b.sender, now))
            }
            (Rated(a), Tcp { ends: b, .. }) => {
                relay.pump(&mut Inlet(&mut a.receiver, now), &mut Side(&mut b.sender, now))
            }
            (Tcp { ends: a, .. }, Rated(b)) => {
                relay.pump(&mut Side(&mut a.receiver, now), &mut Outlet(&mut b.sender))
            }
            (Rated(a), Rated(b)) => relay.pump(&mut Inlet(&mut a.receiver, now), &mut Outlet(&mut b.sender)),
        };
    }

    /// Replaces the sending end (`sender`) or the receiving end by one without state, which answers every segment of the
    /// connection with a reset (RFC 9293 §3.10.7.2). On a leg without TCP the remaining end gets no answer and
    /// retransmits in vain.
    pub(crate) fn forget(&mut self, sender: bool, config: &Arc<Config>, control: Algorithm) {
        match &mut self.carrier {
            Carrier::Tcp { ends, .. } => {
                let rng = Rng::stream(0, "forgotten");
                *ends.end(sender) = Connection::listen(Arc::clone(config), control, Seq(0), rng);
            }
            Carrier::Rated(rated) if sender => rated.sender.stop(),
            Carrier::Rated(rated) => rated.receiver_lost_state = true,
        }
        if sender {
            self.moving.sender = false;
        } else {
            self.moving.receiver = false;
        }
    }
}

/// A gateway's end of a TCP leg as an end of a relay, and the current time.
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
