//! The satellite side: a connection of the gateway's own host, as an end of a relay.

use crate::near::CHUNK;
use skyhaul_base::Instant;
use skyhaul_net::host::{ConnId, Host};
use skyhaul_relay::{Bytes, End};
use std::cell::RefCell;

/// A connection of the gateway's own host.
pub(crate) struct Side<'a> {
    pub(crate) host: &'a mut Host,
    pub(crate) id: ConnId,
    pub(crate) now: Instant,
    /// Memory for bytes on their way between the connection and the relay's buffer, shared by all flows of a thread.
    pub(crate) spare: &'a RefCell<Vec<u8>>,
}

impl End<Bytes> for Side<'_> {
    fn ended(&self) -> bool {
        self.host.conn(self.id).is_some_and(skyhaul_net::host::Conn::at_end)
    }
    fn failed(&self) -> bool {
        self.host.conn(self.id).is_none_or(|c| c.failure().is_some() || (c.is_over() && !c.ended_in_order()))
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let Self { host, id, now, spare } = self;
        let most = most.min(CHUNK as u64) as usize;
        into.fill(&mut spare.borrow_mut(), most, |room| host.read(*now, *id, room)) as u64
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        let Self { host, id, now, spare } = self;
        from.drain(&mut spare.borrow_mut(), |waiting| host.write(*now, *id, waiting)) as u64
    }
    fn finish(&mut self) {
        self.host.shutdown(self.now, self.id);
    }
    fn abort(&mut self) {
        self.host.abort(self.now, self.id);
    }
}
