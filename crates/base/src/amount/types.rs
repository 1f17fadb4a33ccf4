//! The amounts that files contain, one type per kind of value.

use super::dimension::{RATE, SIZE, TIME};
use super::{AmountError, Decimal};
use crate::{Duration, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A time: `"275 ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// A time, or a multiple of the base RTT of the flow: `"1 s"`, `"1 RTT"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Multiple of the RTT without queueing.
    Rtts(Decimal),
    /// A fixed time.
    Time(Duration),
}

/// A rate: `"10.4 Mbit/s"`, `"1300 packets/s"`, `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSpec {
    /// In bit/s.
    Bits(Rate),
    /// In packets per second; the link defines the packet size.
    Packets(Decimal),
    /// Infinitely fast.
    Unlimited,
}

/// A size in bytes: `"1000 B"`, `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A window or buffer: `"64 segments"`, `"64 KiB"`, `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// In bytes of payload.
    Bytes(u64),
    /// In full segments.
    Segments(u64),
    /// No limit.
    Unlimited,
}

/// Capacity of a queue: `"50 packets"`, `"64 KiB"`, `"1.2 BDP"`, `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Multiple of the bandwidth-delay product.
    Bdp(Decimal),
    /// In bytes.
    Bytes(u64),
    /// In packets.
    Packets(u64),
    /// No limit.
    Unlimited,
}

/// A number of things: `50`, `"50 segments"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

/// A probability: a number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// How often something happens, per second: `"0.5 /s"`, `"30 /min"`. Always more than zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frequency(pub f64);

/// A value that files contain as text, mostly a number with a unit.
pub(super) trait Amount: Sized {
    /// The message that refuses the bare number `n`.
    fn bare(n: &str) -> Result<Self, AmountError>;
    /// Reads the text.
    fn parse(text: &str) -> Result<Self, AmountError>;
    /// What to write, for the end of a message.
    fn advice() -> String;
    /// Name in the JSON Schema.
    const NAME: &'static str;
    /// Regular expression of the text, for the schema.
    const PATTERN: &'static str;
    /// Examples for the schema.
    const EXAMPLES: &'static [&'static str];
}

/// Reads an amount from the text of a file, and refuses bare numbers as [`Amount::bare`] says.
pub(super) struct Reader<T>(pub(super) core::marker::PhantomData<T>);

impl<T: Amount> Visitor<'_> for Reader<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::advice().trim_start_matches("write "))
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        T::bare(&n.to_string()).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<T, E> {
        T::bare(&n.to_string()).map_err(E::custom)
    }
    fn visit_f64<E: de::Error>(self, x: f64) -> Result<T, E> {
        T::bare(&x.to_string()).map_err(E::custom)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).map_err(E::custom)
    }
}

macro_rules! text_amount {
    ($($type:ty),*) => { $(
        impl core::str::FromStr for $type {
            type Err = AmountError;
            fn from_str(text: &str) -> Result<Self, AmountError> {
                <Self as Amount>::parse(text)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(Reader(core::marker::PhantomData))
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        #[cfg(feature = "schema")]
        impl JsonSchema for $type {
            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                <Self as Amount>::NAME.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": format!("{}.", capital(&<Self as Amount>::advice())),
                    "pattern": <Self as Amount>::PATTERN,
                    "examples": <Self as Amount>::EXAMPLES,
                })
            }
        }
    )* };
}
pub(super) use text_amount;
text_amount!(Time, Span, RateSpec, Size, Window, QueueLimit, Frequency);

/// `text` with a capital first letter.
#[cfg(feature = "schema")]
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// A whole number of `unit`, from a number already split from its unit.
fn whole(text: &str, number: Decimal, unit: &str) -> Result<u64, AmountError> {
    number.to_u64().ok_or_else(|| AmountError::Uncountable { text: text.into(), unit: unit.into() })
}

/// Whether `unit` is `name` or its plural.
fn is(unit: &str, name: &str) -> bool {
    unit == name || unit.strip_suffix('s') == Some(name)
}

impl Amount for Time {
    const NAME: &'static str = "Time";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*(ns|us|µs|μs|ms|s|min|h)\s*$";
    const EXAMPLES: &'static [&'static str] = &["275 ms", "550 s", "2 min"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(TIME.bare(n))
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        TIME.parse(text).map(|ns| Self(Duration::from_nanos(ns)))
    }
    fn advice() -> String {
        TIME.advice()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0.is_zero() {
            "0 s".into()
        } else {
            TIME.format(self.0.as_nanos(), &["ns", "us", "ms", "s"])
        })
    }
}

impl Amount for Span {
    const NAME: &'static str = "TimeOrRtts";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*(ns|us|µs|μs|ms|s|min|h|RTT)\s*$";
    const EXAMPLES: &'static [&'static str] = &["1 s", "1 RTT"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(AmountError::NoUnit { number: n.into(), advice: Self::advice() })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let (number, unit) = TIME.split(text)?;
        if unit == "RTT" {
            return Ok(Self::Rtts(number));
        }
        TIME.scale(text, number, unit).map(|ns| Self::Time(Duration::from_nanos(ns)))
    }
    fn advice() -> String {
        "write a time with a unit, such as \"1 s\" or \"1 RTT\"".into()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rtts(n) => write!(f, "{n} RTT"),
            Self::Time(d) => Time(*d).fmt(f),
        }
    }
}

impl Amount for RateSpec {
    const NAME: &'static str = "Rate";
    const PATTERN: &'static str =
        r"^\s*(unlimited|\+?[0-9][0-9_.eE+-]*\s*([kMG]?(bit|B)/s|[kMG]?bps|(packet|segment)s?/s))\s*$";
    const EXAMPLES: &'static [&'static str] = &["10.4 Mbit/s", "1300 packets/s", "unlimited"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(RATE.bare(n))
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let (number, unit) = RATE.split(text)?;
        if number.is_zero() {
            return Err(AmountError::NeverSends { text: text.into(), advice: RATE.advice() });
        }
        if unit.strip_suffix("/s").is_some_and(|u| is(u, "packet") || is(u, "segment")) {
            return Ok(Self::Packets(number));
        }
        RATE.scale(text, number, unit).map(|bits| Self::Bits(Rate::from_bits_per_sec(bits)))
    }
    fn advice() -> String {
        "write a rate with a unit, such as \"10.4 Mbit/s\", or \"unlimited\"".into()
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(rate) => {
                f.write_str(&RATE.format(rate.bits_per_sec(), &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]))
            }
            Self::Packets(n) => write!(f, "{n} packets/s"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl Amount for Size {
    const NAME: &'static str = "Size";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*([kMG]?B|[KMG]iB|bytes?)\s*$";
    const EXAMPLES: &'static [&'static str] = &["1000 B", "64 KiB", "1 MB"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(SIZE.bare(n))
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        SIZE.parse(text).map(Self)
    }
    fn advice() -> String {
        "write a size with a unit, such as \"1000 B\"".into()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// A size, of which `bytes` makes the result, or a number of `name`s, of which `other` makes it.
fn size_or<T>(
    text: &str,
    name: &str,
    bytes: impl Fn(u64) -> T,
    other: impl Fn(u64) -> T,
    advice: &str,
) -> Result<T, AmountError> {
    let (number, unit) = SIZE.split(text).map_err(|e| e.advising(advice))?;
    if is(unit, name) {
        return whole(text, number, name).map(other);
    }
    let known = SIZE.units.iter().any(|u| u.0 == unit) || SIZE.ambiguous(text, unit).is_some();
    if !known {
        return Err(AmountError::UnknownUnitHere { unit: unit.into(), advice: advice.into() });
    }
    SIZE.scale(text, number, unit).map(bytes)
}

impl Amount for Window {
    const NAME: &'static str = "Window";
    const PATTERN: &'static str =
        r"^\s*(unlimited|\+?[0-9][0-9_.eE+-]*\s*([kMG]?B|[KMG]iB|bytes?|segments?))\s*$";
    const EXAMPLES: &'static [&'static str] = &["64 segments", "64 KiB", "unlimited"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(AmountError::NoUnit { number: n.into(), advice: format!("write \"{n} segments\" or \"{n} B\"") })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        size_or(text, "segment", Self::Bytes, Self::Segments, &Self::advice())
    }
    fn advice() -> String {
        "write a window with a unit, such as \"64 segments\" or \"64 KiB\"".into()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(n) => write!(f, "{n} B"),
            Self::Segments(n) => write!(f, "{n} segments"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl Amount for QueueLimit {
    const NAME: &'static str = "QueueLimit";
    const PATTERN: &'static str =
        r"^\s*(unlimited|\+?[0-9][0-9_.eE+-]*\s*([kMG]?B|[KMG]iB|bytes?|packets?|BDP))\s*$";
    const EXAMPLES: &'static [&'static str] = &["50 packets", "64 KiB", "1.2 BDP", "unlimited"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(AmountError::NoUnit {
            number: n.into(),
            advice: format!("write \"{n} packets\", \"{n} B\" or \"{n} BDP\""),
        })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        if let Some(Some(number)) = text.trim().strip_suffix("BDP").map(|n| Decimal::parse(n.trim())) {
            return Ok(Self::Bdp(number));
        }
        size_or(text, "packet", Self::Bytes, Self::Packets, &Self::advice())
    }
    fn advice() -> String {
        "write a limit with a unit, such as \"50 packets\", \"64 KiB\", \"1.2 BDP\" or \"unlimited\"".into()
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bdp(n) => write!(f, "{n} BDP"),
            Self::Bytes(n) => write!(f, "{n} B"),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Real amounts are below this: [`Decimal::parse`] takes 30 digits, so a larger number could not be read again.
const LARGEST_REAL: f64 = 1e30;

/// `value`, the amount that `text` names, unless it is too large.
pub(super) fn real(text: &str, value: f64) -> Result<f64, AmountError> {
    if value.abs() < LARGEST_REAL { Ok(value) } else { Err(AmountError::TooLarge { text: text.into() }) }
}

impl Amount for Frequency {
    const NAME: &'static str = "Frequency";
    const PATTERN: &'static str = r"^\s*\+?[0-9][0-9_.eE+-]*\s*/\s*(s|min|h)\s*$";
    const EXAMPLES: &'static [&'static str] = &["0.5 /s", "30 /min"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        Err(AmountError::NoUnit { number: n.into(), advice: format!("write \"{n} /s\" or \"{n} /min\"") })
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let what = "a frequency";
        let refuse = || AmountError::NotA { text: text.into(), what, advice: Self::advice() };
        let (number, unit) = text.split_once('/').ok_or_else(refuse)?;
        let seconds = match unit.trim() {
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(refuse()),
        };
        let number = Decimal::parse(number.trim()).ok_or_else(refuse)?.to_f64() / seconds;
        if number <= 0.0 {
            Err(AmountError::NeverHappens { text: text.into(), advice: Self::advice() })
        } else {
            real(text, number).map(Self)
        }
    }
    fn advice() -> String {
        "write a frequency such as \"0.5 /s\" or \"30 /min\"".into()
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /s", self.0)
    }
}

impl Amount for Count {
    const NAME: &'static str = "Count";
    const PATTERN: &'static str = r"^\s*[0-9][0-9_]*\s*((segment|packet|flow|page)s?)?\s*$";
    const EXAMPLES: &'static [&'static str] = &["50 segments"];
    fn bare(n: &str) -> Result<Self, AmountError> {
        let refuse = || AmountError::NotACount { number: n.into(), advice: Self::advice() };
        n.parse().map(Self).map_err(|_| refuse())
    }
    fn parse(text: &str) -> Result<Self, AmountError> {
        let trimmed = text.trim();
        let number = ["segment", "packet", "flow", "page"].iter().find_map(|name| {
            let short = trimmed.strip_suffix('s').unwrap_or(trimmed);
            short.strip_suffix(name)
        });
        let number = Decimal::parse(number.unwrap_or(trimmed).trim()).and_then(Decimal::to_u64);
        let refuse = || AmountError::NotA { text: text.into(), what: "a count", advice: Self::advice() };
        number.map(Self).ok_or_else(refuse)
    }
    fn advice() -> String {
        "write a whole number, such as 50".into()
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Reader(core::marker::PhantomData))
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(self.0)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Count {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        Self::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number, with or without a unit.",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": Self::PATTERN, "examples": Self::EXAMPLES },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = f64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1")
            }
            #[expect(clippy::cast_precision_loss, reason = "only 0 and 1 pass")]
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<f64, E> {
                Ok(n as f64)
            }
            #[expect(clippy::cast_precision_loss, reason = "only 0 and 1 pass")]
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<f64, E> {
                Ok(n as f64)
            }
            fn visit_f64<E: de::Error>(self, x: f64) -> Result<f64, E> {
                Ok(x)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
                Err(E::custom(AmountError::Quoted { text: text.into() }))
            }
        }
        let p = d.deserialize_any(Number)?;
        if (0.0..=1.0).contains(&p) {
            // -0.0 becomes 0.
            Ok(Self(p + 0.0))
        } else {
            Err(de::Error::custom(AmountError::NotAProbability(p.to_string())))
        }
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Probability {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "description": "A number from 0 to 1." })
    }
}
