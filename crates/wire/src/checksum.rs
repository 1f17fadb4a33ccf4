//! The Internet checksum (RFC 1071), and its incremental update (RFC 1624).

/// A ones' complement sum, not yet folded. Zero bytes contribute nothing, so the checksum of a payload of zeros
/// needs no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes; a part of odd length must be the last one.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        // A ones' complement sum can be computed over words of any length in either byte order and converted
        // afterwards (RFC 1071 §2): here over words of 32 bits, eight in parallel.
        const LANES: usize = 8;
        let word = |w: &[u8]| w.first_chunk().map_or(0, |w| u64::from(u32::from_le_bytes(*w)));
        let mut lanes = [0_u64; LANES];
        let mut blocks = bytes.chunks_exact(4 * LANES);
        for block in &mut blocks {
            for (lane, w) in lanes.iter_mut().zip(block.chunks_exact(4)) {
                *lane += word(w);
            }
        }
        let mut words = blocks.remainder().chunks_exact(4);
        // With fewer than 2^32 words, neither a lane nor a sum of lanes overflows.
        let mut sum = lanes.iter().sum::<u64>() + (&mut words).map(word).sum::<u64>();
        let mut last = [0; 4];
        last.iter_mut().zip(words.remainder()).for_each(|(to, from)| *to = *from);
        sum += word(&last);
        self.0 += u64::from(fold(sum).swap_bytes());
        self
    }
    /// Adds a number of 32 bits as two words.
    #[must_use]
    pub const fn long(mut self, n: u32) -> Self {
        self.0 += (n >> 16) as u64 + (n & 0xffff) as u64;
        self
    }
    /// The checksum: the complement of the folded sum. Over data that includes its checksum it is 0.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !fold(self.0)
    }
}

/// A sum in 16 bits, with end-around carry.
const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum after a word under it has changed (RFC 1624, equation 3).
#[must_use]
pub const fn repaired(checksum: u16, from: u16, to: u16) -> u16 {
    Sum(!checksum as u64 + !from as u64 + to as u64).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // §3: 00 01 f2 03 f4 f5 f6 f7 sum up to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(!Sum::default().bytes(&bytes).finish(), 0xddf2);
        // An odd byte stands for a word with a zero behind it.
        assert_eq!(!Sum::default().bytes(&bytes[..7]).finish(), {
            let mut padded = bytes;
            padded[7] = 0;
            !Sum::default().bytes(&padded).finish()
        });
    }

    #[test]
    fn words_of_any_length_give_the_sum_of_words_of_16_bits() {
        let bytes: [u8; 1500] =
            core::array::from_fn(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 13) as u8);
        for len in (0..140).chain([1447, 1448, 1460, 1499, 1500]) {
            let mut plain = Sum::default();
            for w in bytes[..len].chunks(2) {
                plain.0 += u64::from(w[0]) << 8 | u64::from(w.get(1).copied().unwrap_or(0));
            }
            assert_eq!(Sum::default().bytes(&bytes[..len]).finish(), plain.finish(), "{len} bytes");
        }
        assert_eq!(Sum::default().bytes(&[0; 64]).finish(), 0xffff);
        assert_eq!(Sum::default().bytes(&[0xff; 65_535]).finish(), Sum(0xff00).finish());
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // §4: checksum dd2f, a word changes from 5555 to 3285; equation 3 gives 0000.
        assert_eq!(repaired(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_repaired_checksum_is_the_one_computed_anew() {
        let mut bytes = [0x45u8, 0, 0x05, 0xdc, 0xab, 0xcd, 0x40, 0, 64, 6];
        let before = Sum::default().bytes(&bytes).finish();
        for to in [0u16, 1, 0x8000, 0xffff, 0x1234] {
            let from = u16::from_be_bytes([bytes[4], bytes[5]]);
            let old = Sum::default().bytes(&bytes).finish();
            bytes[4..6].copy_from_slice(&to.to_be_bytes());
            assert_eq!(repaired(old, from, to), Sum::default().bytes(&bytes).finish(), "{to:04x}");
        }
        assert_ne!(before, Sum::default().bytes(&bytes).finish());
    }
}
