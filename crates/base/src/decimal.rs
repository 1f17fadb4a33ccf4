//! Exact decimal numbers.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A non-negative decimal number exactly as written: `digits · 10^exp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Without trailing zeros.
    digits: u128,
    exp: i32,
}

/// A number scaled to whole base units.
pub struct Scaled {
    /// The number.
    pub value: u128,
    /// False if `value` was rounded.
    pub exact: bool,
}

/// Length in bytes of the number that `text` begins with; 0 if there is none.
pub fn number_len(text: &str) -> usize {
    let b = text.as_bytes();
    let digits = |mut i: usize| {
        while i < b.len() && (b[i].is_ascii_digit() || b[i] == b'_') {
            i += 1;
        }
        i
    };
    let start = usize::from(b.first() == Some(&b'+'));
    let mut i = digits(start);
    if b.get(i) == Some(&b'.') {
        i = digits(i + 1);
    }
    if !b[..i].iter().any(u8::is_ascii_digit) {
        return 0;
    }
    // An exponent only if digits follow: "5 e" is no number with an exponent.
    if matches!(b.get(i), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(i + 1), Some(b'+' | b'-')));
        let end = digits(i + 1 + sign);
        if end > i + 1 + sign {
            i = end;
        }
    }
    i
}

impl Decimal {
    /// Reads `10.4`, `1e-3`, `1_000`; `None` if it is no number or has more than 30 digits, without leading zeros.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || number_len(text) != text.len() {
            return None;
        }
        let (mantissa, exp) = match text.find(['e', 'E']) {
            Some(i) => (&text[..i], text[i + 1..].replace('_', "").parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (mut digits, mut fraction, mut point) = (0u128, 0i32, false);
        for c in mantissa.bytes() {
            match c {
                b'.' => point = true,
                b'0'..=b'9' => {
                    digits = digits.checked_mul(10)?.checked_add(u128::from(c - b'0'))?;
                    if digits >= 10u128.pow(30) {
                        return None;
                    }
                    fraction += i32::from(point);
                }
                _ => {}
            }
        }
        let mut exp = exp.checked_sub(fraction)?;
        if digits == 0 {
            return Some(Self { digits: 0, exp: 0 });
        }
        while digits % 10 == 0 {
            digits /= 10;
            exp = exp.checked_add(1)?;
        }
        Some(Self { digits, exp })
    }

    /// A whole number.
    #[must_use]
    pub fn whole(n: u64) -> Self {
        let mut d = Self { digits: u128::from(n), exp: 0 };
        while d.digits != 0 && d.digits % 10 == 0 {
            d.digits /= 10;
            d.exp += 1;
        }
        d
    }

    /// True for zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// The nearest `f64`; infinite if there is none.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // The parser of `core` rounds correctly; multiplying by a power of ten would not.
        format!("{}e{}", self.digits, self.exp).parse().unwrap_or(f64::INFINITY)
    }

    /// The number itself if it is whole and fits.
    #[must_use]
    pub fn to_u64(self) -> Option<u64> {
        let scaled = self.scale(1, 1)?;
        if scaled.exact { u64::try_from(scaled.value).ok() } else { None }
    }

    /// `self · num / den`, rounded to the nearest; `None` if `digits · num` or the result exceeds 128 bits.
    ///
    /// # Panics
    /// If `den` is zero.
    pub fn scale(self, num: u128, den: u128) -> Option<Scaled> {
        let scaled = self.digits.checked_mul(num)?;
        let power = 10u128.checked_pow(self.exp.unsigned_abs());
        let (n, d) = if self.digits == 0 {
            (0, 1)
        } else if self.exp >= 0 {
            (scaled.checked_mul(power?)?, den)
        } else {
            match power.and_then(|p| p.checked_mul(den)) {
                Some(d) => (scaled, d),
                None => return Some(Scaled { value: 0, exact: false }),
            }
        };
        Some(Scaled { value: n / d + u128::from(n % d >= d - d / 2), exact: n % d == 0 })
    }

    /// `self · factor`, rounded to the nearest whole number; `None` if too large for 64 bits.
    #[must_use]
    pub fn times(self, factor: u64) -> Option<u64> {
        u64::try_from(self.scale(u128::from(factor), 1)?.value).ok()
    }

    /// `self · num / den`, rounded to the nearest whole number; `None` if too large for 64 bits or `den` is 0.
    #[must_use]
    pub fn times_ratio(self, num: u128, den: u128) -> Option<u64> {
        if den == 0 {
            return None;
        }
        u64::try_from(self.scale(num, den)?.value).ok()
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits.to_string();
        let point = i64::try_from(digits.len()).unwrap_or(i64::MAX) + i64::from(self.exp);
        match usize::try_from(point) {
            _ if self.exp < -30 || point > 30 => write!(f, "{digits}e{}", self.exp),
            Ok(p) if p >= digits.len() => {
                write!(f, "{digits}{}", "0".repeat(p - digits.len()))
            }
            Ok(p) if p > 0 => write!(f, "{}.{}", &digits[..p], &digits[p..]),
            _ => write!(f, "0.{}{digits}", "0".repeat(usize::try_from(-point).unwrap_or(0))),
        }
    }
}

/// `value / size` exactly, as a decimal number. `size` must have no prime factors but 2 and 5: otherwise there is no such
/// number, and the function does not return.
pub fn ratio(value: u64, size: u64) -> String {
    let (whole, mut rest) = (value / size, u128::from(value % size));
    let mut text = whole.to_string();
    if rest > 0 {
        text.push('.');
    }
    while rest > 0 {
        rest *= 10;
        text.push(char::from(b'0' + u8::try_from(rest / u128::from(size)).unwrap_or(0)));
        rest %= u128::from(size);
    }
    text
}
