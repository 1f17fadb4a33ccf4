//! The moves of a peer whose address the file leaves open, such as a gateway behind NAT whose router takes another mapping.

use skyhaul_base::{Duration, Instant};
use std::net::SocketAddr;

/// Minimum interval between lines about moves. A router may change its mapping with each packet.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts moves, and says them in lines that are rationed.
#[derive(Debug, Default)]
pub(super) struct Moves {
    count: u64,
    /// The count when the last line was written, and when that was.
    told: (u64, Option<Instant>),
    /// Where the peer was before the first move that no line has said.
    from: Option<SocketAddr>,
}

impl Moves {
    /// The peer is at `to`, and was last heard at `from`.
    pub(super) fn heard(&mut self, from: Option<SocketAddr>, to: SocketAddr) {
        if let Some(from) = from.filter(|from| *from != to) {
            self.count += 1;
            self.from.get_or_insert(from);
        }
    }
    /// Number of moves.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
    /// A line about the moves that no line has said, when it is time for one. The peer is at `at`.
    pub(super) fn line(&mut self, now: Instant, at: SocketAddr) -> Option<String> {
        let (before, when) = self.told;
        if when.is_some_and(|when| now < when + INTERVAL) {
            return None;
        }
        let from = self.from.take()?;
        self.told = (self.count, Some(now));
        Some(match self.count - before {
            1 => format!("the other gateway has moved from {from} to {at}"),
            times => format!("the other gateway has moved {times} times, from {from} to {at}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn a_move_is_said_once() {
        let mut moves = Moves::default();
        let now = Instant::ZERO + Duration::from_secs(1);
        moves.heard(None, at(1));
        moves.heard(Some(at(1)), at(1));
        assert_eq!((moves.count(), moves.line(now, at(1))), (0, None), "the first address is no move");
        moves.heard(Some(at(1)), at(2));
        let line = "the other gateway has moved from 192.0.2.1:1 to 192.0.2.1:2";
        assert_eq!(moves.line(now, at(2)).as_deref(), Some(line));
        assert_eq!(moves.line(now + INTERVAL, at(2)), None);
    }

    #[test]
    fn many_moves_are_one_line() {
        let mut moves = Moves::default();
        let began = Instant::ZERO;
        let mut lines = Vec::new();
        // A move each 10 ms for 25 s.
        for n in 0..2500_u16 {
            let now = began + Duration::from_millis(10 * u64::from(n));
            moves.heard(Some(at(n)), at(n + 1));
            lines.extend(moves.line(now, at(n + 1)));
        }
        assert_eq!(moves.count(), 2500);
        let words = [
            "moved from 192.0.2.1:0 to 192.0.2.1:1",
            "moved 1000 times, from 192.0.2.1:1 to 192.0.2.1:1001",
            "moved 1000 times, from 192.0.2.1:1001 to 192.0.2.1:2001",
        ];
        assert_eq!(lines.len(), words.len(), "{lines:?}");
        assert!(lines.iter().zip(words).all(|(l, w)| l.ends_with(w)), "{lines:?}");
        // The last of them are said when it is time, although no more come.
        let last = moves.line(began + INTERVAL * 3, at(2500));
        assert!(last.is_some_and(|l| l.contains("moved 499 times")));
    }
}
