//! Maps packets to the datagrams of the application.

/// Numbers of datagrams as offered, by the number of the packet that carried them. Datagrams refused by the sender
/// have a number for the application, but none on the link.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// First packet from which the datagram number is ahead of the packet number, and by how much. One entry per
    /// change.
    ahead: Vec<(u64, u64)>,
}

impl Offered {
    /// A packet is sent with the datagram that was offered under this number; `None` for endless data.
    pub fn left(&mut self, packet: u64, offered: Option<u64>) {
        let ahead = offered.map_or(0, |n| n.saturating_sub(packet));
        if ahead != self.ahead.last().map_or(0, |(_, by)| *by) {
            self.ahead.push((packet, ahead));
        }
    }
    /// The number of the datagram in a packet.
    #[must_use]
    pub fn in_packet(&self, packet: u64) -> u64 {
        let changes = self.ahead.partition_point(|(from, _)| *from <= packet);
        packet + changes.checked_sub(1).map_or(0, |last| self.ahead[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_know_their_datagrams() {
        let mut o = Offered::default();
        for (packet, offered) in [(0, 0), (1, 1), (2, 5), (3, 6), (4, 9)] {
            o.left(packet, Some(offered));
        }
        let found: Vec<u64> = (0..6).map(|packet| o.in_packet(packet)).collect();
        assert_eq!(found, [0, 1, 5, 6, 9, 10]);
        assert_eq!(Offered::default().in_packet(7), 7);
    }
}
