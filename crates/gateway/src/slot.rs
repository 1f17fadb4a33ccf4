//! The slot of a gateway among those of a network namespace: marks, routing tables and addresses that no two of them may share.
//!
//! The mark of packets for the transparent kernel sockets, and its routing table, which leads all of them to this machine, are the same for
//! all gateways. The last gateway that ends removes them.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Number of slots.
const SLOTS: u8 = 16;

/// A slot. Gateways of a namespace take the first that is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(u8);

impl Slot {
    /// All slots, in order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..SLOTS).map(Self)
    }
    fn number(self) -> u8 {
        self.0.min(SLOTS - 1)
    }
    /// The mark of packets for the gateway's own host, the TCP endpoint in user space that carries connections over the link. The upper half
    /// of all marks is "SH" in ASCII.
    #[must_use]
    pub fn far_mark(self) -> u32 {
        0x5348_0002 + 16 * u32::from(self.number())
    }
    /// The routing table of packets with [`Self::far_mark`].
    #[must_use]
    pub fn far_table(self) -> u32 {
        21_321 + 10 * u32::from(self.number())
    }
    /// An address of the block for special purposes (192.0.0.0/24, RFC 6890 §2.2.2) that is assigned to nothing. `of_first` is its last byte
    /// for the first slot; each further slot has 4 less.
    fn unassigned(self, of_first: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 0, of_first - 4 * self.number())
    }
    /// The address of the interface at which the gateway's own connection arrives, of a /31 whose other address is [`Self::client`].
    pub(crate) fn own_address(self) -> Ipv4Addr {
        self.unassigned(248)
    }
    /// The ends of the gateway's own connection ([`crate::proof`]): a client and a server without a host.
    pub(crate) fn client(self) -> Ipv4Addr {
        self.unassigned(249)
    }
    pub(crate) fn server(self) -> Ipv4Addr {
        self.unassigned(250)
    }
    /// The address of the gateway's host if ports are forwarded. The first one is in the block for addresses that are used within a machine
    /// (192.0.0.0/29, RFC 7335), which has room for one.
    #[must_use]
    pub fn host_address(self) -> Ipv4Addr {
        match self.number() {
            0 => Ipv4Addr::new(192, 0, 0, 5),
            n => Ipv4Addr::new(192, 0, 0, 65 + 4 * n),
        }
    }
    /// The address of the TUN interface if ports are forwarded, of a /30 that has the address of the gateway's host, too.
    pub(crate) fn tun_address(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.host_address().to_bits() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn slots_share_nothing() {
        let mut seen = BTreeSet::new();
        for slot in Slot::all() {
            assert!(seen.insert(slot.far_mark()) && seen.insert(slot.far_table()));
            assert!(![0x5348_0000, 0x5348_0001, 0x5348_0003].contains(&slot.far_mark()));
            assert!(![21_320, 21_322].contains(&slot.far_table()));
            // Ranges of addresses: a /31 with the address behind it, and a /30.
            let own = slot.own_address().to_bits();
            assert!(own % 2 == 0 && slot.client().to_bits() == own + 1 && slot.server().to_bits() == own + 2);
            let host = slot.host_address().to_bits();
            assert!(host % 4 == 1 && slot.tun_address().to_bits() == host + 1);
            for address in (own..own + 3).chain(host - 1..host + 3) {
                assert!(seen.insert(address));
                // Dummy, anycast and discovery addresses of RFC 6890 and its successors.
                assert!(![8, 9, 10, 170, 171].contains(&Ipv4Addr::from_bits(address).octets()[3]));
            }
        }
        assert_eq!(Slot::default().far_mark(), 0x5348_0002);
        assert_eq!(Slot::default().client(), Ipv4Addr::new(192, 0, 0, 249));
    }
}
