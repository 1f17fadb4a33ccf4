//! Real numbers become whole ones with few instructions, several at a time: the last bits of a sum near 2⁵² are a whole
//! number.

/// Neighbouring real numbers are 1 apart from here on, and ½ below.
const ONES: f64 = (1u64 << 52) as f64;

/// `x`, from 0 to 2³¹, without its fraction, as both kinds of numbers. If `x` is odd and whole, they may be one less; below 1,
/// they may be −1 and −½.
#[inline(always)]
pub(super) fn round_down(x: f64) -> (i32, f64) {
    let sum = x + (ONES - 0.5);
    (sum.to_bits() as i32, sum - ONES)
}

/// `x`, from 0 to 2⁵¹, rounded, at least 1. Halves become even.
#[inline(always)]
pub(super) fn round(x: f64) -> u64 {
    let (sum, one) = (x + ONES, ONES + 1.0);
    // In this order it is one instruction.
    let sum = if sum > one { sum } else { one };
    sum.to_bits() - ONES.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_ordinary_rounding() {
        for quarters in 0..40_000u32 {
            let (x, whole) = (f64::from(quarters) / 4.0, quarters / 4);
            let (number, real) = round_down(x);
            if whole >= 1 {
                assert_eq!(real, f64::from(number), "{x}");
                assert!(number == whole as i32 || f64::from(number) == x - 1.0, "{x}: {number}");
            } else {
                assert!(number == 0 && real == 0.0 || number == -1 && real == -0.5, "{x}: {number} {real}");
            }
            assert_eq!(round(x), (x.round_ties_even() as u64).max(1), "{x}");
        }
        assert_eq!(round(1e15), 1_000_000_000_000_000);
    }
}
