//! Where packets go.

use skyhaul_wire::Checksum;

/// What may be done with a packet on its way into a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// It may be joined with others of its connection that follow each other and are of one priority.
    Allowed,
    /// It stays a packet of its own: a probe, or what answers one. Joined with its neighbour it would be one probe, and
    /// be answered once.
    Alone,
    /// It stays alone, and goes only where nobody else wants to: a probe of low priority.
    Low,
}

/// Where packets go. They are whole IP packets; what is done with one that finds no room is the outlet's business, as it
/// is a network's.
pub trait Outlet {
    /// Who computes the checksum of TCP of packets that may be joined ([`Merge::Allowed`]).
    fn checksum(&self) -> Checksum {
        Checksum::Written
    }

    /// How many packets a connection may send in its turn; 0 for none now: the host keeps its turn until it is flushed again.
    /// Answers to strangers and handshakes are not asked.
    fn allowance(&self) -> usize {
        usize::MAX
    }

    /// Takes a packet of at most `most` bytes. `write` writes it into the room that it is given, from its first byte on,
    /// and returns its length: so that a packet is written where it leaves from.
    ///
    /// # Errors
    /// That of `write`; then there is no packet.
    fn send<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E>;
}

/// For tests and tools: each packet is memory of its own.
impl<F: FnMut(&[u8])> Outlet for F {
    fn send<E>(
        &mut self,
        most: usize,
        _: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut packet = vec![0; most];
        let n = write(&mut packet)?;
        self(&packet[..n]);
        Ok(())
    }
}
