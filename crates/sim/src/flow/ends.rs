//! Both ends of a full connection.

use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_tcp::{Config, CongestionReport, Connection, Counted, Seq};
use std::sync::Arc;

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Sends the data.
    pub(crate) sender: Connection<Counted>,
    /// Receives it.
    pub(crate) receiver: Connection<Counted>,
    /// The receiving application ends its stream when the sender's has ended, and the connection is over only then.
    closes: bool,
}

impl Ends {
    /// Opens a connection with the controls of both ends; the SYN is about to be sent.
    pub(crate) fn open(
        now: Instant,
        config: &Arc<Config>,
        controls: (Algorithm, Algorithm),
        rng: Rng,
        peer_rng: Rng,
        closes: bool,
    ) -> Self {
        Self::of_leg(now, config, controls, rng, peer_rng, true).closing(closes)
    }

    /// As [`Self::open`], for a leg, without [`Self::closing`]. On the `last` leg the receiving application reads
    /// everything; on any other leg a relay reads, and ends the receiver's stream.
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
            closes: false,
        };
        if last {
            // The receiving application reads everything at once.
            ends.receiver.discard_reads();
        }
        ends
    }

    /// The end that a segment is addressed to: for a `backward` segment, the data sender.
    #[inline]
    pub(crate) fn end(&mut self, backward: bool) -> &mut Connection<Counted> {
        if backward { &mut self.sender } else { &mut self.receiver }
    }

    /// Ends the stream of the receiving application, if it does so and the sender's stream has ended.
    #[inline]
    pub(crate) fn answer_end(&mut self, now: Instant) {
        if self.closes && self.receiver.peer_finished() {
            self.receiver.shutdown(now);
        }
    }
    /// Whether everything is acknowledged, and the receiver's stream has ended if it is to end.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        self.sender.unacked() == 0 && (!self.closes || self.sender.peer_finished())
    }
    /// Sets whether the receiving application ends its stream once the sender's has ended.
    pub(crate) fn closing(self, closes: bool) -> Self {
        Self { closes, ..self }
    }

    /// Handles the expired deadlines of both ends. Returns the sender's judgement.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<CongestionReport> {
        for backward in [true, false] {
            let end = self.end(backward);
            if end.next_timeout() <= now {
                end.handle_timeout(now);
            }
        }
        self.sender.take_congestion_report()
    }

    /// The earliest deadline of the two ends.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}
