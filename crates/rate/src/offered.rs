//! Which datagram of the application a packet carries.

/// Numbers of datagrams as they were offered, by those of the packets that they left in. Datagrams that find no room at the
/// sender have a number for the application, and none on the link.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// From which packet on the number of the datagram is ahead of the packet's, and by how much. An entry for each time that
    /// it changes.
    ahead: Vec<(u64, u64)>,
}

impl Offered {
    /// A packet leaves, which carries the datagram that was offered with this number; `None` for data without end.
    pub fn left(&mut self, packet: u64, offered: Option<u64>) {
        let ahead = offered.map_or(0, |n| n.saturating_sub(packet));
        if ahead != self.ahead.last().map_or(0, |(_, by)| *by) {
            self.ahead.push((packet, ahead));
        }
    }
    /// The number of the datagram that a packet carries.
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
