//! The satellite side: a connection of our own host, as an end of a relay.

use crate::near::CHUNK;
use skyhaul_base::Instant;
use skyhaul_net::host::{ConnId, Host};
use skyhaul_relay::{Bytes, End, Fifo};
use std::cell::RefCell;

/// A connection of our own host.
pub(crate) struct Side<'a> {
    pub(crate) host: &'a mut Host,
    pub(crate) id: ConnId,
    pub(crate) now: Instant,
    /// Memory for bytes that are only passing through.
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
        let spare = &mut *self.spare.borrow_mut();
        into.borrow(spare);
        let n = self.host.read(self.now, self.id, into.room(CHUNK.min(most as usize)));
        into.append(n);
        into.give_back(spare);
        n as u64
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        let mut written = 0;
        while !from.is_empty() {
            let n = self.host.write(self.now, self.id, from.waiting());
            if n == 0 {
                break;
            }
            from.consume(n);
            written += n as u64;
        }
        // An idle connection holds no memory.
        from.give_back(&mut self.spare.borrow_mut());
        written
    }
    fn finish(&mut self) {
        self.host.shutdown(self.now, self.id);
    }
    fn abort(&mut self) {
        self.host.abort(self.now, self.id);
    }
}
