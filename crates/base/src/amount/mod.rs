//! Amounts with units, as text: `"10.4 Mbit/s"`, `"550 ms"`, `"64 KiB"`, `"1.2 BDP"`.
//!
//! Numbers are read as exact decimals and scaled in integers, never through binary fractions. Values finer than the
//! resolution (1 ns, 1 bit/s) are rounded to the nearest; bytes and packets must be whole. A number without a unit is
//! refused wherever a unit is needed.
//!
//! A configuration keeps its values in plain types; [`plain`] reads and writes them as amounts.

mod dimension;
mod dscp;
mod error;
mod geometry;
pub mod plain;
mod radio;
mod text;
mod types;

pub use crate::decimal::Decimal;
pub use dscp::Dscp;
pub use error::AmountError;
pub use geometry::{Angle, Length};
pub use radio::{Decibels, SymbolRate, Temperature};
pub use text::{no_other_keys, text_or_table};
pub use types::{Count, Frequency, Probability, QueueLimit, RateSpec, Size, Span, Time, Window};

#[cfg(test)]
mod tests;
