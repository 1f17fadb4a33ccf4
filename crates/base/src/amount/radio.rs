//! Amounts of radio links: power ratios, symbol rates, noise temperatures.

use super::AmountError;
#[cfg(feature = "schema")]
use super::types::capital;
use super::types::{Amount, Reader, real, text_amount};
use crate::decimal::{Decimal, number_len};
use alloc::format;
use alloc::string::String;
use core::fmt;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// A ratio of powers in decibels, which may be negative: `"-2.35 dB"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decibels(pub f64);

/// Symbols per second, more than zero: `"5 MBd"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymbolRate(pub f64);

/// A temperature in kelvins, above absolute zero: `"150 K"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(pub f64);

text_amount!(Decibels, SymbolRate, Temperature);

/// The number and the unit that follows it; `None` without a number, or with a minus sign.
fn split(text: &str) -> Option<(Decimal, &str)> {
    let end = number_len(text);
    Some((Decimal::parse(&text[..end])?, text[end..].trim()))
}

/// The message about a text that is not an amount of kind `T`.
fn refuse<T: Amount>(text: &str, what: &'static str) -> AmountError {
    AmountError::NotA { text: text.into(), what, advice: T::advice() }
}

/// The message about a number without a unit.
fn no_unit<T>(n: &str, unit: &str) -> Result<T, AmountError> {
    Err(AmountError::NoUnit { number: n.into(), advice: format!("write \"{n} {unit}\"") })
}

impl Amount for Decibels {
    const NAME: &'static str = "Decibels";
    const PATTERN: &'static str = r"^\s*[+-]?[0-9][0-9_.eE+-]*\s*dB\s*$";
    const EXAMPLES: &'static [&'static str] = &["10.2 dB", "-2.35 dB"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        no_unit(n, "dB")
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let trimmed = text.trim();
        // One sign only: a plus sign after the minus sign would be read as part of the number.
        let negative = trimmed.strip_prefix('-').filter(|rest| !rest.starts_with('+'));
        let (sign, size) = negative.map_or((1.0, trimmed), |rest| (-1.0, rest));
        match split(size) {
            // The sum makes -0.0 zero.
            Some((n, "dB")) => real(text, sign * n.to_f64() + 0.0).map(Self),
            Some((_, "")) => no_unit(trimmed, "dB"),
            _ => Err(refuse::<Self>(text, "a power ratio")),
        }
    }
    fn advice() -> String {
        "write a power ratio in dB, such as \"10.2 dB\"".into()
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}

impl Amount for SymbolRate {
    const NAME: &'static str = "SymbolRate";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*[kMG]?Bd\s*$";
    const EXAMPLES: &'static [&'static str] = &["5 MBd", "500 kBd"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        no_unit(n, "MBd")
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let (number, unit) = split(text.trim()).ok_or_else(|| refuse::<Self>(text, "a symbol rate"))?;
        let factor = match unit {
            "Bd" => 1.0,
            "kBd" => 1e3,
            "MBd" => 1e6,
            "GBd" => 1e9,
            "" => return no_unit(text.trim(), "MBd"),
            _ => return Err(refuse::<Self>(text, "a symbol rate")),
        };
        let rate = number.to_f64() * factor;
        if rate > 0.0 {
            real(text, rate).map(Self)
        } else {
            Err(AmountError::NeverSends { text: text.into(), advice: Self::advice() })
        }
    }
    fn advice() -> String {
        "write symbols per second, such as \"5 MBd\"".into()
    }
}

impl fmt::Display for SymbolRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Bd", self.0)
    }
}

impl Amount for Temperature {
    const NAME: &'static str = "Temperature";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*K\s*$";
    const EXAMPLES: &'static [&'static str] = &["150 K"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        no_unit(n, "K")
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let what = "a temperature above absolute zero";
        match split(text.trim()) {
            Some((n, "K")) if n.to_f64() > 0.0 => real(text, n.to_f64()).map(Self),
            Some((_, "")) => no_unit(text.trim(), "K"),
            _ => Err(refuse::<Self>(text, what)),
        }
    }
    fn advice() -> String {
        "write a temperature in kelvins, such as \"150 K\"".into()
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} K", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn amounts_are_read_with_their_units_and_written_to_read_the_same() {
        for (text, db) in [("10.2 dB", 10.2), ("-2.35dB", -2.35), (" 0 dB ", 0.0), ("-0 dB", 0.0_f64)] {
            let read: Decibels = text.parse().unwrap();
            assert_eq!(read.0.to_bits(), db.to_bits(), "{text}");
            assert_eq!(read.to_string().parse::<Decibels>().unwrap(), read);
        }
        for (text, rate) in [("5 MBd", 5e6), ("512 kBd", 512e3), ("1 Bd", 1.0), ("1.2 GBd", 1.2e9)] {
            let read: SymbolRate = text.parse().unwrap();
            assert_eq!(read, SymbolRate(rate));
            assert_eq!(read.to_string().parse::<SymbolRate>().unwrap(), read);
        }
        assert_eq!("150 K".parse(), Ok(Temperature(150.0)));
    }

    #[test]
    fn what_is_no_amount_is_refused_with_what_to_write() {
        let db = |text: &str| text.parse::<Decibels>().unwrap_err().to_string();
        assert_eq!(db("3"), "3 has no unit: write \"3 dB\"");
        assert_eq!(db("-3"), "-3 has no unit: write \"-3 dB\"");
        assert!(db("3 dBm").contains("is not a power ratio") && db("dB").contains("is not a power ratio"));
        assert!(db("--3 dB").contains("is not") && db("-+3 dB").contains("is not"));
        let baud = |text: &str| text.parse::<SymbolRate>().unwrap_err().to_string();
        assert!(
            baud("0 MBd").contains("never sends") && baud("5 Msym/s").contains("write symbols per second")
        );
        for text in ["0 K", "1e-400 K", "-3 K", "1e400 K"] {
            assert!(text.parse::<Temperature>().is_err(), "{text}");
        }
        assert_eq!(db("-1e400 dB"), "\"-1e400 dB\" is too large");
        assert_eq!(baud("1e21 GBd"), "\"1e21 GBd\" is too large");
    }
}
