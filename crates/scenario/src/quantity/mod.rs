//! Quantities with units, as text: `"10.4 Mbit/s"`, `"550 ms"`, `"64 KiB"`, `"1.2 BDP"`.
//!
//! Numbers are read as exact decimals and scaled in integers, never through binary fractions. What is finer
//! than the resolution (1 ns, 1 bit/s) is rounded to the nearest; bytes and packets must be whole. A number
//! without a unit is refused wherever a unit is needed.

mod decimal;
mod types;

pub use decimal::Decimal;
pub use types::{Count, Frequency, Probability, QueueLimit, RateSpec, Size, Span, Time, Window};

use decimal::Scaled;

/// A unit: its name and its size as a fraction of the base unit.
type Unit = (&'static str, u128, u128);

/// A physical dimension, with what a message needs to say about it.
struct Dimension {
    /// With article: "a time".
    what: &'static str,
    /// The unit used in hints.
    unit: &'static str,
    /// A complete example.
    example: &'static str,
    /// Accepted units, the usual ones first and by size.
    units: &'static [Unit],
    /// How many of `units` a message lists.
    listed: usize,
    /// Name of the base unit if it cannot be divided.
    whole: Option<&'static str>,
}

const TIME: Dimension = Dimension {
    what: "a time",
    unit: "ms",
    example: "550 ms",
    units: &[
        ("ns", 1, 1),
        ("us", 1_000, 1),
        ("ms", 1_000_000, 1),
        ("s", 1_000_000_000, 1),
        ("min", 60_000_000_000, 1),
        ("h", 3_600_000_000_000, 1),
        // The micro sign and the Greek letter look the same and are both typed.
        ("\u{b5}s", 1_000, 1),
        ("\u{3bc}s", 1_000, 1),
    ],
    listed: 6,
    whole: None,
};

const RATE: Dimension = Dimension {
    what: "a rate",
    unit: "Mbit/s",
    example: "10.4 Mbit/s",
    units: &[
        ("bit/s", 1, 1),
        ("kbit/s", 1_000, 1),
        ("Mbit/s", 1_000_000, 1),
        ("Gbit/s", 1_000_000_000, 1),
        ("B/s", 8, 1),
        ("kB/s", 8_000, 1),
        ("MB/s", 8_000_000, 1),
        ("GB/s", 8_000_000_000, 1),
        ("bps", 1, 1),
        ("kbps", 1_000, 1),
        ("Mbps", 1_000_000, 1),
        ("Gbps", 1_000_000_000, 1),
    ],
    listed: 4,
    whole: None,
};

const SIZE: Dimension = Dimension {
    what: "a size",
    unit: "B",
    example: "64 KiB",
    units: &[
        ("B", 1, 1),
        ("kB", 1_000, 1),
        ("KiB", 1 << 10, 1),
        ("MB", 1_000_000, 1),
        ("MiB", 1 << 20, 1),
        ("GB", 1_000_000_000, 1),
        ("GiB", 1 << 30, 1),
        ("byte", 1, 1),
        ("bytes", 1, 1),
    ],
    listed: 7,
    whole: Some("byte"),
};

impl Dimension {
    /// What to write, for the end of a message.
    fn advice(&self) -> String {
        format!("write {} with a unit, such as \"{}\"", self.what, self.example)
    }

    /// Message for a bare number.
    fn bare(&self, number: &str) -> String {
        format!("{number} has no unit: write {} with a unit, such as \"{number} {}\"", self.what, self.unit)
    }

    /// Number and unit of `text`; the unit may be empty.
    fn split<'a>(&self, text: &'a str) -> Result<(Decimal, &'a str), String> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(format!("\"{text}\" is negative: {}", self.advice()));
        }
        let end = decimal::number_len(trimmed);
        if end == 0 {
            return Err(format!("\"{text}\" is not {}: {}", self.what, self.advice()));
        }
        let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
        if unit.starts_with(',') {
            return Err(format!("\"{text}\" has a comma: write decimals with a point, such as \"10.4\""));
        }
        let number = Decimal::parse(number)
            .ok_or_else(|| format!("\"{number}\" is not a number that can be read: {}", self.advice()))?;
        if unit.is_empty() {
            return Err(self.bare(text.trim()));
        }
        Ok((number, unit))
    }

    /// Scales to the base unit.
    fn scale(&self, text: &str, number: Decimal, unit: &str) -> Result<u64, String> {
        let Some(&(_, num, den)) = self.units.iter().find(|u| u.0 == unit) else {
            return Err(self.unknown_unit(text, unit));
        };
        let Some(Scaled { value, exact }) = number.scale(num, den) else {
            return Err(format!("\"{text}\" is too large"));
        };
        let Ok(value) = u64::try_from(value) else { return Err(format!("\"{text}\" is too large")) };
        if let (Some(base), false) = (self.whole, exact) {
            return Err(format!("\"{text}\" is not a whole number of {base}s"));
        }
        if value == 0 && !number.is_zero() {
            return Err(format!("\"{text}\" is too small to be told from zero"));
        }
        Ok(value)
    }

    fn unknown_unit(&self, text: &str, unit: &str) -> String {
        if let Some(hint) = ambiguous(text, unit) {
            return hint;
        }
        let names = self.units[..self.listed].iter().map(|u| u.0);
        let same = self.units.iter().map(|u| u.0).find(|u| u.eq_ignore_ascii_case(unit));
        let hint = same.map_or_else(String::new, |u| format!(", did you mean \"{u}\"?"));
        let list: Vec<_> = names.collect();
        format!("\"{unit}\" is not a unit of {}{hint} (known: {})", &self.what[2..], list.join(", "))
    }

    fn parse(&self, text: &str) -> Result<u64, String> {
        let (number, unit) = self.split(text)?;
        self.scale(text, number, unit)
    }

    /// `value` exactly, in the largest of `units` that is not larger.
    fn format(&self, value: u64, units: &[&'static str]) -> String {
        let sizes = units.iter().filter_map(|name| self.units.iter().find(|u| u.0 == *name));
        let (name, size) = sizes
            .map(|u| (u.0, u64::try_from(u.1).unwrap_or(u64::MAX)))
            .filter(|&(_, size)| size <= value)
            .max_by_key(|&(_, size)| size)
            .unwrap_or((units[0], 1));
        format!("{} {name}", decimal::ratio(value, size))
    }
}

/// The hint for units that people read in two ways.
fn ambiguous(text: &str, unit: &str) -> Option<String> {
    let number = text[..text.rfind(unit)?].trim();
    let (stem, per_second) = match unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")) {
        Some(stem) => (stem, "/s"),
        None => (unit, ""),
    };
    let prefix = match stem.to_ascii_lowercase().as_str() {
        "b" => "",
        "kb" => "k",
        "mb" => "M",
        "gb" => "G",
        _ => return None,
    };
    if stem == "KB" && per_second.is_empty() {
        return Some(format!(
            "\"{unit}\" may mean 1000 or 1024 bytes: write \"{number} kB\" or \"{number} KiB\""
        ));
    }
    if per_second.is_empty() && !stem.ends_with('b') {
        return None;
    }
    Some(format!(
        "\"{unit}\" may mean bits or bytes: write \"{number} {prefix}bit{per_second}\" or \
         \"{number} {prefix}B{per_second}\""
    ))
}

#[cfg(test)]
mod tests;
