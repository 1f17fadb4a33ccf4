//! Physical dimensions: their units, and how amounts are parsed and written.

use super::AmountError;
use crate::decimal::{self, Decimal, Scaled};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A unit: its name and its size in base units: nanoseconds, bit/s or bytes.
type Unit = (&'static str, u64);

/// A physical dimension, with the words for messages.
pub(super) struct Dimension {
    /// With article: "a time".
    what: &'static str,
    /// The unit used in hints.
    unit: &'static str,
    /// A complete example.
    example: &'static str,
    /// Accepted units, the usual ones first and by size.
    pub(super) units: &'static [Unit],
    /// Number of `units` that a message lists.
    listed: usize,
    /// Name of the base unit if it cannot be divided.
    whole: Option<&'static str>,
}

pub(super) const TIME: Dimension = Dimension {
    what: "a time",
    unit: "ms",
    example: "550 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        // The micro sign and the Greek letter look the same and are both typed.
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
    ],
    listed: 6,
    whole: None,
};

pub(super) const RATE: Dimension = Dimension {
    what: "a rate",
    unit: "Mbit/s",
    example: "10.4 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
    ],
    listed: 4,
    whole: None,
};

pub(super) const SIZE: Dimension = Dimension {
    what: "a size",
    unit: "B",
    example: "64 KiB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("byte", 1),
        ("bytes", 1),
    ],
    listed: 7,
    whole: Some("byte"),
};

impl Dimension {
    /// What to write, for the end of a message.
    pub(super) fn advice(&self) -> String {
        format!("write {} with a unit, such as \"{}\"", self.what, self.example)
    }

    /// The error of a bare number.
    pub(super) fn bare(&self, number: &str) -> AmountError {
        let advice = format!("write {} with a unit, such as \"{number} {}\"", self.what, self.unit);
        AmountError::NoUnit { number: number.into(), advice }
    }

    /// Number and unit of `text`; the unit is never empty.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<(Decimal, &'a str), AmountError> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(AmountError::Negative { text: text.into(), advice: self.advice() });
        }
        let end = decimal::number_len(trimmed);
        if end == 0 {
            let what = self.what;
            return Err(AmountError::NotA { text: text.into(), what, advice: self.advice() });
        }
        let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
        if unit.starts_with(',') {
            return Err(AmountError::Comma { text: text.into() });
        }
        let refuse = || AmountError::NoNumber { number: number.into(), advice: self.advice() };
        let number = Decimal::parse(number).ok_or_else(refuse)?;
        if unit.is_empty() {
            return Err(self.bare(text.trim()));
        }
        Ok((number, unit))
    }

    /// Scales to the base unit.
    pub(super) fn scale(&self, text: &str, number: Decimal, unit: &str) -> Result<u64, AmountError> {
        let Some(&(_, size)) = self.units.iter().find(|u| u.0 == unit) else {
            return Err(self.unknown_unit(text, unit));
        };
        let large = || AmountError::TooLarge { text: text.into() };
        let Scaled { value, exact } = number.scale(size.into(), 1).ok_or_else(large)?;
        let value = u64::try_from(value).map_err(|_| large())?;
        if let (Some(unit), false) = (self.whole, exact) {
            return Err(AmountError::NotWhole { text: text.into(), unit });
        }
        if value == 0 && !number.is_zero() {
            return Err(AmountError::TooSmall { text: text.into() });
        }
        Ok(value)
    }

    fn unknown_unit(&self, text: &str, unit: &str) -> AmountError {
        if let Some(ambiguous) = self.ambiguous(text, unit) {
            return ambiguous;
        }
        let names = self.units[..self.listed].iter().map(|u| u.0);
        let same = self.units.iter().map(|u| u.0).find(|u| u.eq_ignore_ascii_case(unit));
        let hint = same.map_or_else(String::new, |u| format!(", did you mean \"{u}\"?"));
        let known = names.collect::<Vec<_>>().join(", ");
        AmountError::UnknownUnit { unit: unit.into(), of: &self.what[2..], hint, known }
    }

    pub(super) fn parse(&self, text: &str) -> Result<u64, AmountError> {
        let (number, unit) = self.split(text)?;
        self.scale(text, number, unit)
    }

    /// `value` exactly, in the largest of `units` that is not larger. These units are powers of ten times the base unit.
    pub(super) fn format(&self, value: u64, units: &[&'static str]) -> String {
        let sizes = units.iter().filter_map(|name| self.units.iter().find(|u| u.0 == *name));
        let largest = sizes.filter(|u| u.1 <= value).max_by_key(|u| u.1);
        let (name, size) = largest.copied().unwrap_or((units[0], 1));
        format!("{} {name}", decimal::ratio(value, size))
    }

    /// The error of a unit that people use with two meanings, with both amounts as this dimension writes them; `None` for
    /// a unit with one meaning.
    pub(super) fn ambiguous(&self, text: &str, unit: &str) -> Option<AmountError> {
        let number = text[..text.rfind(unit)?].trim();
        let (stem, per_second) = match unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")) {
            Some(stem) => (stem, true),
            None => (unit, false),
        };
        let prefix = match stem.to_ascii_lowercase().as_str() {
            "b" => "",
            "kb" => "k",
            "mb" => "M",
            "gb" => "G",
            _ => return None,
        };
        let has = |name: &str| self.units.iter().any(|u| u.0 == name);
        let is_lower = stem.ends_with('b');
        let (meanings, one, other) = if (per_second || is_lower) && has("bit/s") {
            ("bits or bytes", format!("{number} {prefix}bit/s"), format!("{number} {prefix}B/s"))
        } else if per_second || !has("KiB") {
            return None;
        } else if is_lower {
            let bits = Decimal::parse(number)?.to_f64() / 8.0;
            ("bits or bytes", format!("{bits} {prefix}B"), format!("{number} {prefix}B"))
        } else if stem == "KB" {
            ("1000 or 1024 bytes", format!("{number} kB"), format!("{number} KiB"))
        } else {
            return None;
        };
        Some(AmountError::Ambiguous { unit: unit.into(), meanings, one, other })
    }
}
