//! Fields of plain types that are written as amounts in files:
//!
//! ```
//! # use skyhaul_base::{Duration, amount::plain};
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Jitter {
//!     #[serde(with = "plain::time")]
//!     base: Duration,
//! }
//! let jitter: Jitter = serde_json::from_str(r#"{ "base": "275 ms" }"#)?;
//! assert_eq!(jitter.base, Duration::from_millis(275));
//! # Ok::<(), serde_json::Error>(())
//! ```

use super::{
    Angle, Count, Decibels, Frequency, Length, Probability, RateSpec, Size, SymbolRate, Temperature, Time,
};
use crate::{Duration, Rate};
use alloc::vec::Vec;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! plain {
    ($($(#[doc = $doc:literal])* $name:ident: $plain:ty as $amount:ident;)*) => { $(
        $(#[doc = $doc])*
        pub mod $name {
            use super::*;

            /// Writes the amount.
            ///
            /// # Errors
            /// Those of the serializer.
            pub fn serialize<S: Serializer>(value: &$plain, s: S) -> Result<S::Ok, S::Error> {
                $amount(*value).serialize(s)
            }

            /// Reads the amount.
            ///
            /// # Errors
            /// An [`AmountError`](crate::amount::AmountError), or those of the deserializer.
            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$plain, D::Error> {
                $amount::deserialize(d).map(|amount| amount.0)
            }
        }
    )* };
}

plain! {
    /// Degrees, written as [`Angle`].
    angle: f64 as Angle;
    /// A whole number, written as [`Count`].
    count: u64 as Count;
    /// A ratio of powers in dB, written as [`Decibels`].
    decibels: f64 as Decibels;
    /// Symbols per second, written as [`SymbolRate`].
    symbol_rate: f64 as SymbolRate;
    /// Kelvins, written as [`Temperature`].
    temperature: f64 as Temperature;
    /// Events per second, written as [`Frequency`].
    frequency: f64 as Frequency;
    /// Kilometres, written as [`Length`].
    length: f64 as Length;
    /// A number from 0 to 1, written as [`Probability`].
    probability: f64 as Probability;
    /// Bytes, written as [`Size`].
    size: u64 as Size;
    /// A span of time, written as [`Time`].
    time: Duration as Time;
}

/// A list of sizes in bytes, each written as [`Size`].
pub mod sizes {
    use super::*;

    /// Writes the list.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(list: &[u64], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(list.iter().map(|n| Size(*n)))
    }

    /// Reads the list.
    ///
    /// # Errors
    /// An [`AmountError`](crate::amount::AmountError), or those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u64>, D::Error> {
        Ok(Vec::<Size>::deserialize(d)?.into_iter().map(|n| n.0).collect())
    }
}

/// A whole number that may be left out, written as [`Count`]. The field needs `default` and `skip_serializing_if`.
pub mod optional_count {
    use super::*;

    /// Writes the number.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        value.map(Count).serialize(s)
    }

    /// Reads the number.
    ///
    /// # Errors
    /// An [`AmountError`](crate::amount::AmountError), or those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        Count::deserialize(d).map(|n| Some(n.0))
    }
}

/// Bit/s, written as a [`RateSpec`] that is neither in packets nor unlimited.
pub mod rate {
    use super::*;

    /// Writes the rate.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(rate: &Rate, s: S) -> Result<S::Ok, S::Error> {
        RateSpec::Bits(*rate).serialize(s)
    }

    /// Reads the rate.
    ///
    /// # Errors
    /// If the rate is not in bit/s; those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Rate, D::Error> {
        match RateSpec::deserialize(d)? {
            RateSpec::Bits(rate) => Ok(rate),
            other => Err(serde::de::Error::custom(alloc::format!(
                "\"{other}\" is not a rate in bit/s: write one such as \"2 Mbit/s\""
            ))),
        }
    }
}

/// Bit/s that may be left out, written as a [`RateSpec`]. The field needs `default` and `skip_serializing_if`.
pub mod optional_rate {
    use super::*;

    /// Writes the rate.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(rate: &Option<Rate>, s: S) -> Result<S::Ok, S::Error> {
        rate.map(RateSpec::Bits).serialize(s)
    }

    /// Reads the rate.
    ///
    /// # Errors
    /// If the rate is not in bit/s; those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
        #[derive(Deserialize)]
        struct Written(#[serde(with = "super::rate")] Rate);
        Ok(Option::<Written>::deserialize(d)?.map(|written| written.0))
    }
}
