//! What gateways read and write of the outermost header of a datagram.

/// The ECN field of a packet whose transport is not capable of it, and that of one that is marked (RFC 3168).
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// The traffic class of a packet: DSCP and ECN field; 0 if it is none.
#[must_use]
pub fn class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    }
}

/// Marks a packet as congested. False if its transport is not capable of ECN: it has to be dropped (RFC 6040 §4.2).
pub fn mark(packet: &mut [u8]) -> bool {
    let ecn = class(packet) & CE;
    if ecn == NOT_ECT {
        return false;
    }
    match packet {
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            // The checksum follows from the old and the new word (RFC 1624): it falls by what the word gains.
            let gained = u16::from(CE - ecn);
            let sum = u16::from_be_bytes([*high, *low]);
            let (sum, borrowed) = sum.overflowing_sub(gained);
            [*high, *low] = (sum - u16::from(borrowed)).to_be_bytes();
            *second |= CE;
        }
        [first, second, ..] if *first >> 4 == 6 => *second |= CE << 4,
        _ => return false,
    }
    true
}

/// The sum of 16-bit words in one's complement arithmetic (RFC 1071), not yet folded.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let whole: u64 = words.by_ref().map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    whole + words.remainder().first().map_or(0, |last| u64::from(*last) << 8)
}

/// The checksum that belongs to a sum.
#[must_use]
pub fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(class: u8, id: u16) -> Vec<u8> {
        let mut p = vec![
            0x45, class, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2, 1, 2, 3, 4, 0, 8, 0, 0,
        ];
        // Any identification, so that the checksum takes all values.
        p[4..6].copy_from_slice(&id.to_be_bytes());
        let checksum = checksum(sum(&p[..20]));
        p[10..12].copy_from_slice(&checksum.to_be_bytes());
        p
    }

    #[test]
    fn a_mark_keeps_the_checksum() {
        for ecn in [1, 2, 3] {
            for id in 0..=u16::MAX {
                let mut p = v4(46 << 2 | ecn, id);
                assert!(mark(&mut p));
                assert_eq!(class(&p), 46 << 2 | CE);
                // The sum of all words of a header with a valid checksum is 0xffff (RFC 1071).
                assert_eq!(checksum(sum(&p[..20])), 0, "{ecn} {id}");
            }
        }
        let mut p = v4(46 << 2, 7);
        assert!(!mark(&mut p));
        let mut six = vec![0x62, 0xe1, 0, 0];
        assert_eq!(class(&six), 0x2e);
        assert!(mark(&mut six));
        assert_eq!((class(&six), six[0], six[1] & 15), (0x2f, 0x62, 1));
    }

    #[test]
    fn checksums_are_those_of_rfc_1071() {
        // The example of RFC 1071 §3: the sum of these words is ddf2.
        assert_eq!(checksum(sum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7])), !0xddf2);
        assert_eq!(checksum(sum(&[1, 2, 3])), !0x0402);
    }
}
