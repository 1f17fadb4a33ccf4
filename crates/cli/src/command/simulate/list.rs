//! `skyhaul list`.

use super::presets;
use crate::args::{ListArgs, ListTopic};
use crate::output::print;
use crate::stop::Stop;
use serde_json::{Map, Value, json};
use skyhaul_cc::{Config, NAMES};
use skyhaul_lab::studies;
use skyhaul_scenario::resolved::Series;
use skyhaul_sim::quantity::{FLOW, LINK, Quantity, RUN, sampled};
use std::fmt::Write as _;

pub(crate) fn run(args: &ListArgs) -> Result<(), Stop> {
    let (columns, rows): (&[&str], Vec<Vec<String>>) = match args.what {
        ListTopic::Presets => (&["name", "title"], presets::titles().map(pair).collect()),
        ListTopic::Studies => (&["name", "title"], all_studies()?),
        ListTopic::Controls => (&["name", "about"], NAMES.iter().filter_map(|n| control(n)).collect()),
        ListTopic::Metrics => (&["name", "unit", "says"], metrics()),
    };
    print(&if args.json { as_json(columns, &rows) } else { as_text(&rows) })
}

fn pair((name, title): (&str, String)) -> Vec<String> {
    vec![name.to_owned(), title]
}

fn all_studies() -> Result<Vec<Vec<String>>, Stop> {
    let one = |name: &str| Ok(vec![name.to_owned(), studies::open(name)?.study.title]);
    studies::names().map(one).collect()
}

fn control(name: &str) -> Option<Vec<String>> {
    Config::by_name(name).map(|c| vec![name.to_owned(), c.about().to_owned()])
}

/// The names that metrics of a study may use. `LINK` stands for any link; what is listed of `forward` there is also of `reverse`.
fn metrics() -> Vec<Vec<String>> {
    fn rows<T: ?Sized>(of: &'static str, list: &'static [Quantity<T>]) -> impl Iterator<Item = Vec<String>> {
        list.iter()
            .map(move |q| vec![format!("{of}.{}", q.name), q.unit.symbol().into(), q.description.into()])
    }
    let series = Series::ALL.iter().map(|s| {
        let q = sampled(*s);
        vec![format!("series.{}", s.name()), q.unit.symbol().into(), q.description.into()]
    });
    rows("flow", FLOW).chain(rows("link.LINK.forward", LINK)).chain(rows("run", RUN)).chain(series).collect()
}

/// One line per row, in columns; the last column is not padded.
fn as_text(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.saturating_sub(1)).map(width).collect();
    rows.iter().fold(String::new(), |mut out, row| {
        let Some((last, first)) = row.split_last() else { return out };
        for (cell, width) in first.iter().zip(&widths) {
            let _ = write!(out, "{cell:width$}  ");
        }
        let _ = writeln!(out, "{last}");
        out
    })
}

fn as_json(columns: &[&str], rows: &[Vec<String>]) -> String {
    let one = |row: &Vec<String>| -> Value {
        columns.iter().zip(row).map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<Map<_, _>>().into()
    };
    format!("{:#}\n", json!(rows.iter().map(one).collect::<Vec<_>>()))
}
