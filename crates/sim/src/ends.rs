//! Both ends of a full connection.

use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_tcp::{Config, Connection, Counted, Judgement, Seq};
use std::sync::Arc;

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Sends the data.
    pub(crate) sender: Connection<Counted>,
    /// Receives it.
    pub(crate) receiver: Connection<Counted>,
}

impl Ends {
    /// Opens a connection with the controls of both ends; the SYN is about to be sent.
    pub(crate) fn open(
        now: Instant,
        config: &Arc<Config>,
        controls: (Algorithm, Algorithm),
        rng: Rng,
        peer_rng: Rng,
    ) -> Self {
        Self::of_leg(now, config, controls, rng, peer_rng, true)
    }

    /// As [`Self::open`], for a leg; a relay reads from the receiver, except on the last leg.
    pub(crate) fn of_leg(
        now: Instant,
        config: &Arc<Config>,
        (control, peer): (Algorithm, Algorithm),
        rng: Rng,
        peer_rng: Rng,
        last: bool,
    ) -> Self {
        let mut ends = Self {
            sender: Connection::connect(now, Arc::clone(config), control, Seq(0), rng),
            receiver: Connection::listen(Arc::clone(config), peer, Seq(0), peer_rng),
        };
        if last {
            // The receiving application reads everything at once.
            ends.receiver.discard_reads();
        }
        ends
    }

    /// The end that a segment is addressed to.
    #[inline]
    pub(crate) fn end(&mut self, backward: bool) -> &mut Connection<Counted> {
        if backward { &mut self.sender } else { &mut self.receiver }
    }

    /// Handles the expired deadlines of both ends. Returns the sender's judgement.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Judgement> {
        for backward in [true, false] {
            let end = self.end(backward);
            if end.next_timeout() <= now {
                end.handle_timeout(now);
            }
        }
        self.sender.take_judgement()
    }

    /// When one of them needs a call.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}
