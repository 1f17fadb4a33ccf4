//! Angles and lengths of orbital geometry, as real numbers.

#[cfg(feature = "schema")]
use super::types::capital;
use super::types::{Amount, Reader, real, text_amount};
use super::{AmountError, Decimal};
use alloc::format;
use alloc::string::String;
use core::fmt;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// An angle in degrees: `"38.12 deg"`, `"-95.37 deg"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Angle(pub f64);

/// A length in kilometres: `"550 km"`, `"300 m"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length(pub f64);

text_amount!(Angle, Length);

/// Number and unit of a text; the number may have a sign.
fn split(text: &str) -> Option<(f64, &str)> {
    let trimmed = text.trim();
    let (sign, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, trimmed),
    };
    let end = crate::decimal::number_len(rest);
    let number = Decimal::parse(&rest[..end])?;
    Some((sign * number.to_f64(), rest[end..].trim()))
}

fn not_a(text: &str, what: &'static str, advice: String) -> AmountError {
    AmountError::NotA { text: text.into(), what, advice }
}

impl Amount for Angle {
    const NAME: &'static str = "Angle";
    const PATTERN: &'static str = r"^\s*[+-]?[0-9][0-9_.eE+-]*\s*(deg|°)\s*$";
    const EXAMPLES: &'static [&'static str] = &["38.12 deg", "-95.37 deg"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        let advice = format!("write an angle with a unit, such as \"{n} deg\"");
        Err(AmountError::NoUnit { number: n.into(), advice })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        match split(text).ok_or_else(|| not_a(text, "an angle", Self::advice()))? {
            (degrees, "deg" | "°") => real(text, degrees).map(Self),
            (_, "") => Self::bare(text.trim()),
            (_, unit) => {
                let known = "deg".into();
                Err(AmountError::UnknownUnit {
                    unit: unit.into(),
                    of: "an angle",
                    hint: String::new(),
                    known,
                })
            }
        }
    }
    fn advice() -> String {
        "write an angle with a unit, such as \"38.12 deg\"".into()
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deg", self.0)
    }
}

impl Amount for Length {
    const NAME: &'static str = "Length";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*k?m\s*$";
    const EXAMPLES: &'static [&'static str] = &["550 km"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        let advice = format!("write a length with a unit, such as \"{n} km\"");
        Err(AmountError::NoUnit { number: n.into(), advice })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        match split(text).ok_or_else(|| not_a(text, "a length", Self::advice()))? {
            (number, _) if number < 0.0 => {
                Err(AmountError::Negative { text: text.into(), advice: Self::advice() })
            }
            (number, "km") => real(text, number).map(Self),
            (number, "m") => real(text, number / 1000.0).map(Self),
            (_, "") => Self::bare(text.trim()),
            (_, unit) => {
                let known = "m, km".into();
                Err(AmountError::UnknownUnit {
                    unit: unit.into(),
                    of: "a length",
                    hint: String::new(),
                    known,
                })
            }
        }
    }
    fn advice() -> String {
        "write a length with a unit, such as \"550 km\"".into()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} km", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn angles_have_signs_and_lengths_have_none() {
        assert_eq!("38.12 deg".parse(), Ok(Angle(38.12)));
        assert_eq!(" -95.37deg".parse(), Ok(Angle(-95.37)));
        assert_eq!(Angle(-34.5).to_string().parse(), Ok(Angle(-34.5)));
        assert_eq!("300 m".parse(), Ok(Length(0.3)));
        assert_eq!(Length(550.0).to_string(), "550 km");
        for text in ["", "-", "deg", "1e999x deg", "north", "1 rad", "12"] {
            assert!(text.parse::<Angle>().is_err(), "{text}");
        }
        let refused = |e: AmountError| e.to_string();
        assert_eq!(
            "95.37".parse::<Angle>().map_err(refused),
            Err("95.37 has no unit: write an angle with a unit, such as \"95.37 deg\"".into())
        );
        assert!("-1 km".parse::<Length>().map_err(refused).is_err_and(|e| e.contains("negative")));
        assert_eq!("1e999 deg".parse::<Angle>().map_err(refused), Err("\"1e999 deg\" is too large".into()));
        assert_eq!("1e30 km".parse::<Length>().map_err(refused), Err("\"1e30 km\" is too large".into()));
        assert!("1 mi".parse::<Length>().map_err(refused).is_err_and(|e| e.contains("known: m, km")));
    }
}
