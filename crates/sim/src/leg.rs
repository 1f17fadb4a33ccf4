//! One connection of a chain: between two gateways, or between one and an end.

use crate::ends::Ends;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_relay::{Count, End, Fifo};
use skyhaul_tcp::{Config, Connection, Counted, Seq, State};
use std::sync::Arc;

/// One connection of a chain, by both its ends.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) ends: Ends,
    /// The chain that it belongs to.
    pub(crate) chain: u32,
    /// Its place there, from 0.
    pub(crate) number: u8,
}

impl Leg {
    /// The connection is open at the end that asked for it.
    pub(crate) fn established(&self) -> bool {
        !matches!(self.ends.sender.state(), State::SynSent | State::Closed | State::Listen)
    }
    /// The end that sends, or that receives, has been replaced by one that knows nothing: whatever comes is answered with a
    /// reset (RFC 9293 §3.10.7.2).
    pub(crate) fn forget(&mut self, sender: bool, config: &Arc<Config>, control: Algorithm) {
        let fresh = Connection::listen(Arc::clone(config), control, Seq(0), Rng::stream(0, "forgotten"));
        if sender {
            self.ends.sender = fresh;
        } else {
            self.ends.receiver = fresh;
        }
    }
}

/// A gateway's end of a leg, as a relay sees it.
pub(crate) struct Side<'a>(pub(crate) &'a mut Connection<Counted>, pub(crate) Instant);

impl End<Count> for Side<'_> {
    fn readable(&self) -> u64 {
        self.0.readable()
    }
    fn writable(&self) -> u64 {
        self.0.writable()
    }
    fn ended(&self) -> bool {
        self.0.peer_finished() && self.0.readable() == 0
    }
    fn failed(&self) -> bool {
        self.0.state() == State::Closed
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
