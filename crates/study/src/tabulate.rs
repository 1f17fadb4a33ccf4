//! Tables of means.

use crate::error::StudyError;
use crate::files::{NOT_A_NAME, is_plain_name};
use crate::format;
use crate::metric::PlannedMetric;
use crate::model::{StudyFile, headings};
use crate::results::Results;
use crate::space::{Space, pins};
use crate::stats::{self, Center, Estimate};
use crate::summary::Summary;
use crate::table::{Column, Table};

/// A filled-in table.
#[derive(Clone, Debug)]
pub struct Tabulated {
    /// Name of the file, without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// Sentence below it.
    pub caption: Option<String>,
    /// Headings of the axes whose values are the rows.
    pub axes: Vec<String>,
    /// Name of the axis whose values are columns, if there is one: the headings of these columns begin with it.
    pub across: Option<String>,
    /// Headings of the columns with numbers.
    pub columns: Vec<String>,
    /// Labels of the axis values of each row, and its numbers.
    pub rows: Vec<(Vec<String>, Vec<Estimate>)>,
    /// The numbers of each row for a reader; see [`format::sample`].
    pub shown: Vec<Vec<String>>,
    /// The medians of each row, where a column shows them.
    pub medians: Vec<Vec<Option<Center>>>,
}

/// The axes and metrics of a table's rows and columns.
struct Layout {
    rows: Vec<usize>,
    columns: Option<usize>,
    metrics: Vec<usize>,
    /// The values of each axis that are shown.
    shown: Vec<Vec<usize>>,
}

fn layout(file: &StudyFile, metrics: &[PlannedMetric], i: usize) -> Result<Layout, StudyError> {
    let table = &file.study.table[i];
    let key = |k: &str| format!("table[{i}].{k}");
    let axes: Vec<&str> = file.study.axis.iter().map(|a| a.name.as_str()).collect();
    let axis = |k: &str, name: &str| {
        let at = axes.iter().position(|a| *a == name);
        at.ok_or_else(|| file.refuse(&key(k), format!("there is no axis `{name}`"), &axes))
    };
    let rows = table.rows.0.iter().map(|name| axis("rows", name)).collect::<Result<Vec<_>, _>>()?;
    let columns = table.columns.as_ref().map(|name| axis("columns", name)).transpose()?;
    if let Some(i) = (0..rows.len()).find(|i| rows[..*i].contains(&rows[*i])) {
        return Err(file.refuse(&key("rows"), format!("`{}` appears twice", axes[rows[i]]), &[]));
    }
    if let Some(c) = columns.filter(|c| rows.contains(c)) {
        let message = format!("axis `{}` is among the `rows` too", axes[c]);
        return Err(file.refuse(&key("columns"), message, &["another axis"]));
    }
    let known: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
    let find = |name: &String| {
        let at = known.iter().position(|m| m == name);
        at.ok_or_else(|| file.refuse(&key("metric"), format!("there is no metric `{name}`"), &known))
    };
    let metrics = table.metric.0.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    if metrics.is_empty() || rows.is_empty() {
        let k = if rows.is_empty() { "rows" } else { "metric" };
        return Err(file.refuse(&key(k), "an empty table", if rows.is_empty() { &axes } else { &known }));
    }
    let mut shown = Vec::new();
    for (a, pin) in pins(file, &table.at, &key("at"))?.into_iter().enumerate() {
        let values = pin.unwrap_or_else(|| (0..file.study.axis[a].values.len()).collect());
        if values.len() != 1 && !rows.contains(&a) && columns != Some(a) {
            let message = format!("axis `{}` has several values: which one is shown?", axes[a]);
            return Err(file.refuse(&key("at"), message, &["one value", "make it `rows` or `columns`"]));
        }
        shown.push(values);
    }
    Ok(Layout { rows, columns, metrics, shown })
}

/// Checks that all tables can be filled in.
pub(crate) fn check(file: &StudyFile, metrics: &[PlannedMetric]) -> Result<(), StudyError> {
    for (i, table) in file.study.table.iter().enumerate() {
        if !is_plain_name(&table.file) {
            let accepted = ["a name such as \"goodput\""];
            return Err(file.refuse(&format!("table[{i}].file"), NOT_A_NAME, &accepted));
        }
        layout(file, metrics, i)?;
    }
    Ok(())
}

/// Fills in all tables, with the default reading.
///
/// # Errors
/// None for a study that was checked.
pub(crate) fn fill(results: &Results<'_>) -> Result<Vec<Tabulated>, StudyError> {
    (0..results.plan.file.study.table.len()).map(|i| one(results, i)).collect()
}

fn one(results: &Results<'_>, i: usize) -> Result<Tabulated, StudyError> {
    let plan = results.plan;
    let file = &plan.file;
    let table = &file.study.table[i];
    let l = layout(file, &plan.metrics, i)?;
    let axis = |a: usize| &file.study.axis[a];
    let headings = headings(&file.study.axis);
    let space = Space::of(file);
    let mut index: Vec<usize> = l.shown.iter().map(|v| v[0]).collect();
    let across: Vec<Option<usize>> = match l.columns {
        Some(c) => l.shown[c].iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let heading = |value: Option<usize>, m: usize| match (value, l.columns) {
        (Some(v), Some(c)) => {
            let at = format!("{} {}", axis(c).name, axis(c).label(v));
            if l.metrics.len() == 1 { at } else { format!("{at}: {}", plan.metrics[m].heading) }
        }
        _ => plan.metrics[m].heading.clone(),
    };
    let columns = across.iter().flat_map(|v| l.metrics.iter().map(|m| heading(*v, *m))).collect();
    let (mut rows, mut shown, mut medians) = (Vec::new(), Vec::new(), Vec::new());
    // The row axes count through their values, the last one fastest.
    let lengths: Vec<usize> = l.rows.iter().map(|a| l.shown[*a].len()).collect();
    let counter = Space { lengths };
    for row in 0..counter.len() {
        let place = counter.unflatten(row);
        for (a, k) in l.rows.iter().zip(place) {
            index[*a] = l.shown[*a][k];
        }
        let (mut numbers, mut texts, mut of_row) = (Vec::new(), Vec::new(), Vec::new());
        for value in &across {
            if let (Some(c), Some(v)) = (l.columns, value) {
                index[c] = *v;
            }
            let combination = space.flatten(&index);
            let values = || l.metrics.iter().map(|m| (results.metric(0, combination, *m), results.shown(*m)));
            numbers.extend(values().map(|(v, _)| stats::estimate(v)));
            texts.extend(values().map(|(v, summary)| format::sample(v, summary)));
            let median = |(v, summary)| (summary == Summary::Median).then(|| stats::median(v));
            of_row.extend(values().map(median));
        }
        medians.push(of_row);
        shown.push(texts);
        rows.push((l.rows.iter().map(|a| axis(*a).label(index[*a])).collect(), numbers));
    }
    Ok(Tabulated {
        name: table.file.clone(),
        title: table.title.clone().unwrap_or_else(|| table.file.clone()),
        caption: table.caption.clone(),
        axes: l.rows.iter().map(|a| headings[*a].clone()).collect(),
        across: table.columns.clone(),
        columns,
        rows,
        shown,
        medians,
    })
}

impl Tabulated {
    /// Headings, then the rows, as text.
    #[must_use]
    pub fn text(&self) -> Vec<Vec<String>> {
        let head = self.axes.iter().chain(&self.columns).cloned().collect();
        let row = |((at, _), shown): (&(Vec<String>, Vec<Estimate>), &Vec<String>)| {
            at.iter().chain(shown).cloned().collect()
        };
        std::iter::once(head).chain(self.rows.iter().zip(&self.shown).map(row)).collect()
    }

    /// The numbers: per column a mean and the half-width of its 95 % interval (`… ±`); of a column that shows medians also
    /// the median and the ends of its interval (`…, median`, `…, from`, `…, to`).
    #[must_use]
    pub fn numbers(&self) -> Table {
        let mut columns = Vec::new();
        for (i, name) in self.axes.iter().enumerate() {
            columns.push((name.clone(), Column::text(self.rows.iter().map(|r| r.0[i].as_str()))));
        }
        for (i, name) in self.columns.iter().enumerate() {
            let real = |f: fn(&Estimate) -> f64| Column::real(self.rows.iter().map(|r| f(&r.1[i])).collect());
            columns.push((name.clone(), real(|e| e.mean)));
            columns.push((format!("{name} ±"), real(|e| e.half)));
            if self.medians.iter().any(|row| row[i].is_some()) {
                let of = |f: fn(&Center) -> f64| {
                    let value = |row: &Vec<Option<Center>>| row[i].as_ref().map_or(f64::NAN, f);
                    Column::real(self.medians.iter().map(value).collect())
                };
                columns.push((format!("{name}, median"), of(|c| c.value)));
                columns.push((format!("{name}, from"), of(|c| c.interval().map_or(f64::NAN, |i| i.0))));
                columns.push((format!("{name}, to"), of(|c| c.interval().map_or(f64::NAN, |i| i.1))));
            }
        }
        Table::new(columns)
    }
}
