//! Where packets go.

use skyhaul_wire::Checksum;

/// How a packet may be merged on its way to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// It may be merged with adjacent packets of the same connection and priority.
    Allowed,
    /// It stays separate: a probe, or the answer to one. Two merged probes would count as one and get one answer.
    Alone,
    /// It stays separate and is sent only when nothing else is waiting: a low-priority probe.
    Low,
}

/// A destination for complete IP packets. If there is no room, the outlet decides what happens to a packet, as a
/// network does.
pub trait Outlet {
    /// Who computes the TCP checksum of packets that may be merged ([`Merge::Allowed`]).
    fn checksum(&self) -> Checksum {
        Checksum::Written
    }

    /// How many packets a connection may send in its turn. With 0 the host keeps the turn until it is flushed
    /// again. Answers to packets without a connection, handshakes, and datagrams are exempt.
    fn allowance(&self) -> usize {
        usize::MAX
    }

    /// Takes a packet of at most `most` bytes. `write` writes it into the given buffer, starting with the first
    /// byte, and returns its length. The packet is thus written directly to its final place.
    ///
    /// # Errors
    /// The error of `write`; there is no packet then.
    fn send<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E>;
}

/// For tests and tools: each packet has its own buffer.
impl<F: FnMut(&[u8])> Outlet for F {
    fn send<E>(
        &mut self,
        most: usize,
        _: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut packet = vec![0; most];
        let n = write(&mut packet)?;
        packet.truncate(n);
        self(&packet);
        Ok(())
    }
}
