//! The quantities that a run measures: the only list of their names, units, descriptions and sources.
//!
//! Studies, tables, JSON, Python and the page `docs/quantities.md` use this list, so one line adds a quantity. Metrics
//! of studies use its [name](Quantity::name). Columns of tables and JSON append its [unit](Unit::suffix) to the name.

mod flow;
mod group;
mod link;
#[cfg(test)]
mod page;
mod run;
mod series;
mod video;

pub use flow::{FLOW, is_on_demand, lacking};
pub use group::{GROUP, group};
pub use link::LINK;
pub use run::RUN;
pub use series::{Sampled, Subject, sampled};

use skyhaul_base::Duration;

/// A number that a run measures of each subject `T`: the run itself, a flow, or a direction of a link.
#[derive(Debug)]
pub struct Quantity<T: ?Sized + 'static> {
    /// Its name, without the unit.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Description in one sentence or less.
    pub description: &'static str,
    /// How to read it from a result.
    pub of: Source<T>,
}

/// Reads a quantity from a result: called with the subject and the duration of the run.
#[derive(Debug)]
pub enum Source<T: ?Sized + 'static> {
    /// A count; counts of several flows add up.
    Count(fn(&T, Duration) -> u64),
    /// An amount, or an amount per time; those of several flows add up.
    Amount(fn(&T, Duration) -> f64),
    /// A level; those of several flows do not add up.
    Level(fn(&T, Duration) -> f64),
    /// A level that may be missing.
    Maybe(fn(&T, Duration) -> Option<f64>),
}

/// A unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of the things in the name.
    Count,
    /// Bytes; the name says so.
    Bytes,
    /// Bits per second.
    BitPerSecond,
    /// Packets.
    Packets,
    /// Seconds.
    Second,
    /// Segments of the sender's maximum size; the name says so.
    Segments,
    /// Segments per second; the name says "segments".
    SegmentPerSecond,
    /// A fraction.
    Share,
    /// Decibels.
    Decibel,
    /// Degrees of an angle.
    Degree,
    /// Bits per symbol.
    BitPerSymbol,
}

impl Unit {
    /// The unit as shown to users.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "B",
            Self::BitPerSecond => "bit/s",
            Self::Packets => "packets",
            Self::Second => "s",
            Self::Segments => "segments",
            Self::SegmentPerSecond => "segments/s",
            Self::Share => "of 1",
            Self::Decibel => "dB",
            Self::Degree => "°",
            Self::BitPerSymbol => "bit/symbol",
        }
    }

    /// The suffix of column names, with its underscore; empty if the name includes the unit.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Count | Self::Bytes | Self::Segments | Self::Share => "",
            Self::BitPerSecond => "_bit_s",
            Self::Packets => "_packets",
            Self::Second | Self::SegmentPerSecond => "_s",
            Self::Decibel => "_db",
            Self::Degree => "_deg",
            Self::BitPerSymbol => "_bit_symbol",
        }
    }
}

/// The value of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum {
    /// A count.
    Count(u64),
    /// A real number.
    Real(f64),
    /// Missing: it did not happen, or there was nothing to measure.
    Missing,
}

impl Datum {
    /// As a real number; NaN if it is missing.
    #[must_use]
    pub fn real(self) -> f64 {
        match self {
            Self::Count(n) => n as f64,
            Self::Real(x) => x,
            Self::Missing => f64::NAN,
        }
    }
}

impl<T: ?Sized> Quantity<T> {
    /// Its name in columns of tables and in JSON: the name followed by the unit.
    #[must_use]
    pub fn column(&self) -> String {
        format!("{}{}", self.name, self.unit.suffix())
    }

    /// Its value for a subject of a run of this `duration`.
    #[must_use]
    pub fn value(&self, subject: &T, duration: Duration) -> Datum {
        match self.of {
            Source::Count(of) => Datum::Count(of(subject, duration)),
            Source::Amount(of) | Source::Level(of) => Datum::Real(of(subject, duration)),
            Source::Maybe(of) => of(subject, duration).map_or(Datum::Missing, Datum::Real),
        }
    }
}

/// The mean; `None` of no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0u32, 0.0), |(n, s), x| (n + 1, s + x));
    (n > 0).then(|| sum / f64::from(n))
}

/// A count.
const fn count<T: ?Sized>(
    name: &'static str,
    description: &'static str,
    of: fn(&T, Duration) -> u64,
) -> Quantity<T> {
    Quantity { name, unit: Unit::Count, description, of: Source::Count(of) }
}

/// A number of bytes.
const fn bytes<T: ?Sized>(
    name: &'static str,
    description: &'static str,
    of: fn(&T, Duration) -> u64,
) -> Quantity<T> {
    Quantity { name, unit: Unit::Bytes, description, of: Source::Count(of) }
}

/// An amount.
const fn amount<T: ?Sized>(
    name: &'static str,
    unit: Unit,
    description: &'static str,
    of: fn(&T, Duration) -> f64,
) -> Quantity<T> {
    Quantity { name, unit, description, of: Source::Amount(of) }
}

/// A level.
const fn level<T: ?Sized>(
    name: &'static str,
    unit: Unit,
    description: &'static str,
    of: fn(&T, Duration) -> f64,
) -> Quantity<T> {
    Quantity { name, unit, description, of: Source::Level(of) }
}

/// A level that may be missing, with any unit.
const fn known<T: ?Sized>(
    name: &'static str,
    unit: Unit,
    description: &'static str,
    of: fn(&T, Duration) -> Option<f64>,
) -> Quantity<T> {
    Quantity { name, unit, description, of: Source::Maybe(of) }
}

/// A level in seconds that may be missing.
const fn maybe<T: ?Sized>(
    name: &'static str,
    description: &'static str,
    of: fn(&T, Duration) -> Option<f64>,
) -> Quantity<T> {
    Quantity { name, unit: Unit::Second, description, of: Source::Maybe(of) }
}

#[cfg(test)]
mod tests {
    use super::page::page;
    use super::*;
    use std::collections::BTreeSet;

    fn sound<T: ?Sized>(list: &[Quantity<T>]) {
        let names: BTreeSet<&str> = list.iter().map(|q| q.name).collect();
        let columns: BTreeSet<String> = list.iter().map(Quantity::column).collect();
        assert_eq!((names.len(), columns.len()), (list.len(), list.len()), "a name is there twice");
        for q in list {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(q.name.chars().all(plain), "{}: expressions of studies could not name it", q.name);
            assert!(
                !q.description.is_empty() && !q.description.ends_with('.'),
                "{}: {}",
                q.name,
                q.description
            );
            // Python, studies and columns show each description alone.
            for reference in ["of these", "the same ", "that number", "their "] {
                assert!(
                    !q.description.contains(reference),
                    "{}: {:?} refers to another description",
                    q.name,
                    q.description
                );
            }
        }
    }

    #[test]
    fn names_are_unique_words_with_a_description() {
        sound(FLOW);
        sound(LINK);
        sound(RUN);
        sound(GROUP);
        let group: BTreeSet<String> = GROUP.iter().map(Quantity::column).collect();
        assert!(FLOW.iter().all(|q| !group.contains(&q.column()) || !q.adds_up()), "a group has it twice");
    }

    #[test]
    fn the_page_says_what_the_list_says() {
        let path = format!("{}/../../docs/quantities.md", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, page()).expect("writable");
        }
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(file, page(), "docs/quantities.md is stale: run this test with UPDATE=1");
    }
}
