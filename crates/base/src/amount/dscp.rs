//! A DSCP, which classifies packets [RFC 2474].

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A DSCP: a number below 64 or a name such as "EF", "CS5", "AF41". It is written as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Written"))]
pub struct Dscp(pub u8);

/// What a file writes.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Written {
    Number(#[schemars(range(min = 0, max = 63))] u8),
    Name(String),
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP: a number below 64, or a name such as \"EF\", \"CS5\", \"AF41\"")
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Dscp, E> {
                self.visit_str(&n.to_string())
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Dscp, E> {
                self.visit_str(&n.to_string())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(Reader)
    }
}

impl core::str::FromStr for Dscp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_uppercase();
        let digit =
            |c: Option<char>, most: u32| c.and_then(|c| c.to_digit(10)).filter(|d| (1..=most).contains(d));
        let found = match name.as_str() {
            // The names of the registry of DSCPs: RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622.
            "EF" => Some(46),
            "VOICE-ADMIT" => Some(44),
            "LE" => Some(1),
            "CS0" | "DF" => Some(0),
            _ => {
                let (kind, rest) = name.split_at_checked(2).unwrap_or((name.as_str(), ""));
                let mut rest = rest.chars();
                let (class, drop, end) = (rest.next(), rest.next(), rest.next());
                match (kind, end) {
                    ("CS", None) if drop.is_none() => digit(class, 7).map(|c| 8 * c),
                    ("AF", None) => digit(class, 4).zip(digit(drop, 3)).map(|(c, d)| 8 * c + 2 * d),
                    _ => name.parse().ok().filter(|n| *n < 64),
                }
            }
        };
        found.map(|n| Self(n as u8)).ok_or_else(|| {
            format!(
                "{text:?} is no DSCP: write a number below 64, or a name such as \"EF\", \"CS5\", \"AF41\""
            )
        })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_codepoints() {
        let of = |text: &str| text.parse::<Dscp>().map(|d| d.0);
        for (text, dscp) in [("EF", 46), ("cs5", 40), ("AF41", 34), ("10", 10), ("le", 1), ("df", 0)] {
            assert_eq!(of(text), Ok(dscp), "{text}");
        }
        for text in ["64", "-1", "AF44", "CS8", "CS", "", "\u{e9}"] {
            assert!(of(text).is_err_and(|e| e.contains("is no DSCP: write a number below 64")), "{text}");
        }
    }
}
