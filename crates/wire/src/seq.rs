//! Converts 32-bit sequence numbers to stream offsets.

use skyhaul_tcp::Seq;

/// Follows the sequence numbers of one direction of a connection, so that streams of more than 4 GiB have offsets
/// that do not wrap. A number may be up to 2 GiB below or above the largest one seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwrapper {
    largest: u64,
    at: Seq,
}

impl Unwrapper {
    /// An unwrapper whose offset 0 is `initial`.
    #[must_use]
    pub const fn new(initial: Seq) -> Self {
        Self { largest: 0, at: initial }
    }

    /// The offset of `seq`; `None` if it is before the start of the stream.
    pub fn offset(&mut self, seq: Seq) -> Option<u64> {
        let offset = seq.unwrap(self.largest, self.at)?;
        if offset > self.largest {
            *self = Self { largest: offset, at: seq };
        }
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_more_than_4_gib_has_offsets_that_go_on() {
        let initial = Seq(u32::MAX - 10);
        let mut u = Unwrapper::new(initial);
        let mut offset = 0u64;
        for step in [11u64, 1460, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 7] {
            offset += step;
            assert_eq!(u.offset(initial.add(offset as u32)), Some(offset));
            // A retransmission does not take the largest back.
            let earlier = offset.saturating_sub(100_000);
            assert_eq!(u.offset(initial.add(earlier as u32)), Some(earlier));
        }
        assert!(offset > u64::from(u32::MAX));
        assert_eq!(Unwrapper::new(Seq(5)).offset(Seq(4)), None);
    }
}
