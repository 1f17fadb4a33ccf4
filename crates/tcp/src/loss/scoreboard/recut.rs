//! Adapts outstanding segments to another size of full segments.

use super::{FIN, Scoreboard, Sent};
use alloc::collections::VecDeque;

impl Scoreboard {
    /// Increases the size of full segments to `smss`: outstanding ones are then short.
    pub(crate) fn widen(&mut self, smss: u32) {
        self.smss = smss;
        self.lost_above = u64::from(self.dup_thresh.saturating_sub(1)) * u64::from(smss);
        self.odd = self.ring.iter().filter(|s| s.is_odd(smss)).count() as u32;
    }

    /// The path carries at most `smss` bytes of payload: longer segments are cut in place. The SACK and loss state of
    /// all segments is discarded, which is harmless (RFC 2018 §8): the packets that were too long are lost, and others
    /// may be sent again.
    pub(crate) fn recut(&mut self, smss: u32) {
        let mut ring = VecDeque::with_capacity(self.ring.len() * 2);
        for s in &self.ring {
            let fin = u64::from(s.has(FIN));
            let end = s.end() - fin;
            let mut seq = s.seq;
            loop {
                let len = (end - seq).min(u64::from(smss)) as u32;
                let last = seq + u64::from(len) == end;
                let (span, flags) = if last { (len + fin as u32, s.flags & FIN) } else { (len, 0) };
                ring.push_back(Sent { seq, span, flags, skip: 0, ..*s });
                seq += u64::from(len);
                if last {
                    break;
                }
            }
        }
        let base = self.base;
        let repeated = ring.iter().filter(|s| s.rtx_count > 0).count() as u32;
        let odd = ring.iter().filter(|s| s.is_odd(smss)).count() as u32;
        *self = Self {
            ring,
            odd,
            repeated,
            base,
            una: self.una,
            max: self.max,
            total_lost: self.total_lost,
            judge: base,
            next_lost: base,
            next_hole: base,
            high_sacked: self.una,
            ..Self::new(self.una, self.dup_thresh, smss)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Instant;

    #[test]
    fn long_segments_are_cut_and_the_fin_stays_with_the_last_piece() {
        let mut b = Scoreboard::new(1, 3, 1000);
        b.push(1000, false, Instant::ZERO);
        b.push(400, false, Instant::ZERO);
        b.push(1001, true, Instant::ZERO);
        b.apply(1, &[(1401, 2402)]);
        assert_eq!(b.sacked(), 1001);
        b.recut(400);
        let pieces: alloc::vec::Vec<_> =
            (0..b.len()).filter_map(|i| b.item(i)).map(|i| (i.seq, i.len, i.fin, i.sacked)).collect();
        assert_eq!(
            pieces,
            [
                (1, 400, false, false),
                (401, 400, false, false),
                (801, 200, false, false),
                (1001, 400, false, false),
                (1401, 400, false, false),
                (1801, 400, false, false),
                (2201, 200, true, false)
            ]
        );
        assert_eq!((b.sacked(), b.lost(), b.pipe()), (0, 0, 2401));
        b.apply(2402, &[]);
        assert!(b.is_empty());
    }
}
