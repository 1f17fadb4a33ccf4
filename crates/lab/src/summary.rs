//! The whole result of a run as JSON: the content of `summary.json` and of `run --json`.
//!
//! Keys are sorted by name at every level. Rows of flows and links are streamed, since a run may have tens of
//! thousands of them.

use crate::measure::groups;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};
use skyhaul_base::Duration;
use skyhaul_scenario::Resolved;
use skyhaul_sim::quantity::{Datum, FLOW, LINK, Quantity, RUN};
use skyhaul_sim::result::direction;
use skyhaul_sim::{FlowResult, LinkResult, RunResult};
use skyhaul_study::runner::CellRunner;

/// The measurements of a run, ready to be written. Quantities have the names of columns.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// What was run.
    pub scenario: &'a Resolved,
    /// The seed of the run.
    pub seed: u64,
    /// The result of the run.
    pub result: &'a RunResult,
    /// The values that `--set` chose for this run, if it is one of several.
    pub choice: Option<&'a Value>,
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { scenario, seed, result, choice } = *self;
        let duration = result.duration;
        let mut all = Map::new();
        all.insert("version".into(), json!(crate::VERSION));
        all.insert("engine".into(), json!(crate::engine::simulator().engine()));
        all.insert("title".into(), json!(scenario.title));
        all.insert("scenario".into(), json!(scenario.hash()));
        all.insert("seed".into(), json!(seed));
        all.insert("digest".into(), json!(result.digest.map(|d| format!("{d:016x}"))));
        all.extend(choice.map(|c| ("choice".into(), c.clone())));
        all.extend(result.ended.map(|why| ("ended_early".into(), json!(why.to_string()))));
        all.extend(RUN.iter().map(|q| (q.column(), value(q.value(result, duration)))));
        let group = |g: crate::measure::Group<'_>| {
            let mut row = Map::new();
            row.insert("group".into(), json!(g.name));
            row.insert("cc".into(), json!(g.cc));
            row.extend(g.measured.into_iter().map(|(name, x)| (name, value(x))));
            Value::Object(row)
        };
        all.insert("groups".into(), groups(scenario, result).into_iter().map(group).collect());
        // Placeholders: the rows are streamed below, at the place of their key in the order.
        for rows in ["flows", "links"] {
            all.insert(rows.into(), Value::Null);
        }
        let flows = Rows::new(
            &result.flows,
            duration,
            FLOW,
            [("group", |f: &FlowResult| json!(f.group)), ("index", |f: &FlowResult| json!(f.index))],
        );
        let links = Rows::new(
            &result.links,
            duration,
            LINK,
            [
                ("link", |l: &LinkResult| json!(l.name)),
                ("direction", |l: &LinkResult| json!(direction(l.forward))),
            ],
        );
        let mut map = serializer.serialize_map(Some(all.len()))?;
        for (key, value) in &all {
            match key.as_str() {
                "flows" => map.serialize_entry(key, &flows)?,
                "links" => map.serialize_entry(key, &links)?,
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// A key that identifies a row, and how to read its value.
type Name<T> = (&'static str, fn(&T) -> Value);

/// How to read the value of a key in a row.
enum Cell<T: 'static> {
    /// A key that identifies the row.
    Name(fn(&T) -> Value),
    /// A measurement.
    Quantity(&'static Quantity<T>),
}

/// Rows of one kind.
struct Rows<'a, T: 'static> {
    rows: &'a [T],
    duration: Duration,
    /// The keys of each row, in the order of their names.
    keys: Vec<(String, Cell<T>)>,
}

impl<'a, T> Rows<'a, T> {
    fn new(rows: &'a [T], duration: Duration, list: &'static [Quantity<T>], names: [Name<T>; 2]) -> Self {
        let names = names.into_iter().map(|(key, of)| (key.to_owned(), Cell::Name(of)));
        let mut keys: Vec<_> = names.chain(list.iter().map(|q| (q.column(), Cell::Quantity(q)))).collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Self { rows, duration, keys }
    }
}

impl<T> Serialize for Rows<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in self.rows {
            seq.serialize_element(&Row { rows: self, row })?;
        }
        seq.end()
    }
}

/// One row.
struct Row<'a, T: 'static> {
    rows: &'a Rows<'a, T>,
    row: &'a T,
}

impl<T> Serialize for Row<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Rows { keys, duration, .. } = self.rows;
        let mut map = serializer.serialize_map(Some(keys.len()))?;
        for (key, cell) in keys {
            match cell {
                Cell::Name(of) => map.serialize_entry(key, &of(self.row))?,
                Cell::Quantity(q) => match q.value(self.row, *duration) {
                    Datum::Count(n) => map.serialize_entry(key, &n)?,
                    Datum::Real(x) => map.serialize_entry(key, &x)?,
                    Datum::Missing => map.serialize_entry(key, &())?,
                },
            }
        }
        map.end()
    }
}

fn value(x: Datum) -> Value {
    match x {
        Datum::Count(n) => json!(n),
        Datum::Real(x) => json!(x),
        Datum::Missing => Value::Null,
    }
}
