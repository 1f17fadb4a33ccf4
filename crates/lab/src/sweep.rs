//! Sweeps: a scenario with every combination of values of some keys, as a study without claims.

use crate::cases;
use crate::error::LabError;
use crate::studies;
use skyhaul_sim::quantity::{FLOW, LINK, RUN, Unit};
use skyhaul_study::StudyError;
use skyhaul_study::expr::{Name, names_in};
use skyhaul_study::model::StudyFile;
use skyhaul_study::plan::Plan;
use std::path::Path;
use toml::{Table, Value};

/// Maximum number of figures of a metric if more than two keys vary. A metric that needed more figures has none.
const MOST_FIGURES: usize = 12;

/// Names of columns of the table of cells, which no axis may have.
const RESERVED: [&str; 3] = ["metric", "seed", "reading"];

/// Name of the study in messages.
const NAME: &str = "sweep";

/// The metric of a sweep for which none is named.
pub const USUAL_METRIC: &str = "sum(flow.goodput)";

/// What to run and to measure.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// A scenario file, `preset:NAME`, or `-` for standard input.
    pub scenario: String,
    /// Title of the outcome.
    pub title: String,
    /// The keys that vary.
    pub axes: Vec<SweepAxis>,
    /// The metrics: the name, if the option gives one, and the expression.
    pub metrics: Vec<(Option<String>, String)>,
}

/// A key and its values.
#[derive(Clone, Debug)]
pub struct SweepAxis {
    /// The key of the scenario.
    pub key: String,
    /// Values of the key, each with its label if it has one.
    pub values: Vec<(Option<String>, Value)>,
}

/// The sweep of `skyhaul sweep`, and the other settings of its scenario. A key of `sets` with values separated by commas
/// varies, a key with a single value is a setting. The scenario is resolved with each value, so that an error in it is the one
/// of `skyhaul run`.
///
/// # Errors
/// If no key has several values, a metric has no expression, or the scenario is refused with one of the values.
pub fn parse(scenario: &str, sets: &[String], metrics: &[String]) -> Result<(Sweep, Vec<String>), LabError> {
    let (mut axes, mut settings): (Vec<SweepAxis>, Vec<String>) = (Vec::new(), Vec::new());
    // The first value of each key, and the other values of those that vary.
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for set in sets {
        let (key, values) = match set.split_once('=') {
            Some((key, values)) => (key.trim(), cases::split(values)),
            None => ("", Vec::new()),
        };
        if values.len() < 2 {
            settings.push(set.clone());
            first.push(set.clone());
            continue;
        }
        let assignments: Vec<String> = values.iter().map(|v| format!("{key}={v}")).collect();
        others.extend(assignments[1..].iter().map(|a| (first.len(), a.clone())));
        first.extend(assignments.into_iter().take(1));
        let values = values.into_iter().map(|v| (None, cases::value(v))).collect();
        axes.push(SweepAxis { key: key.to_owned(), values });
    }
    if axes.is_empty() {
        return Err(LabError::NothingVaries);
    }
    if let Some(twice) = axes.iter().enumerate().find(|(i, a)| axes[..*i].iter().any(|b| b.key == a.key)) {
        return Err(LabError::VariesTwice { key: twice.1.key.clone() });
    }
    // Standard input can be read once: what it says is checked as part of the study.
    if scenario != skyhaul_study::files::STDIN {
        cases::resolve(scenario, &first, None)?;
        for (place, assignment) in others {
            let mut sets = first.clone();
            sets[place] = assignment;
            cases::resolve(scenario, &sets, None)?;
        }
    }
    let metrics = if metrics.is_empty() { &[USUAL_METRIC.to_owned()][..] } else { metrics };
    let metrics = metrics.iter().map(|text| named(text)).collect::<Result<_, _>>()?;
    let sweep = Sweep { scenario: scenario.to_owned(), title: "Sweep".to_owned(), axes, metrics };
    Ok((sweep, settings))
}

/// A metric as an option writes it: `EXPRESSION` or `NAME=EXPRESSION`.
fn named(text: &str) -> Result<(Option<String>, String), LabError> {
    // No expression has an equals sign.
    let (name, expression) = match text.split_once('=') {
        Some((name, expression)) => (Some(name.trim().to_owned()), expression.trim()),
        None => (None, text.trim()),
    };
    let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if expression.is_empty() || name.as_ref().is_some_and(|n| n.is_empty() || !plain(n)) {
        return Err(LabError::NoMetric { text: text.to_owned() });
    }
    Ok((name, expression.to_owned()))
}

impl Sweep {
    /// The study that runs the sweep.
    ///
    /// # Errors
    /// If the scenario comes from standard input, which cannot be read or is no scenario.
    pub fn study(&self) -> Result<StudyFile, LabError> {
        // Relative paths of the scenario start from the current folder.
        Ok(StudyFile::parse(&self.text()?, Path::new(NAME))?)
    }

    /// The text of that study.
    ///
    /// # Errors
    /// As [`Self::study`].
    pub fn text(&self) -> Result<String, LabError> {
        Ok(toml::to_string(&self.table()?).unwrap_or_default())
    }

    /// Resolves all combinations, and checks the metrics.
    ///
    /// # Errors
    /// What is wrong, with the key of the scenario or the metric in place of the key of the study.
    pub fn plan(&self, file: StudyFile) -> Result<Plan, LabError> {
        studies::plan(file).map_err(|e| match e {
            LabError::Study(StudyError::Invalid { key, message, accepted, .. }) => {
                let (path, key) = self.place(&key).unwrap_or((NAME, &key));
                // The expression is already the key of the error.
                let message = message.strip_prefix(&format!("in `{key}`: ")).unwrap_or(&message).to_owned();
                StudyError::Invalid { path: path.into(), line: None, key: key.to_owned(), message, accepted }
                    .into()
            }
            other => other,
        })
    }

    /// The option of the command, and its key or expression, from which a key of the study comes.
    fn place(&self, key: &str) -> Option<(&'static str, &str)> {
        let (list, rest) = key.split_once('[')?;
        let index: usize = rest.split_once(']')?.0.parse().ok()?;
        match list {
            "axis" => Some(("--set", &self.axes.get(index)?.key)),
            "metric" => Some(("--metric", &self.metrics.get(index)?.1)),
            _ => None,
        }
    }

    /// The study as a file.
    fn table(&self) -> Result<Table, LabError> {
        let names = self.names();
        let axis = |(axis, name): (&SweepAxis, &String)| {
            let value = |(label, value): &(Option<String>, Value)| {
                let label = label.iter().map(|l| ("label".to_owned(), Value::from(l.as_str())));
                Value::Table(label.chain([("value".to_owned(), value.clone())]).collect())
            };
            Value::Table(Table::from_iter([
                ("name".to_owned(), Value::from(name.as_str())),
                ("path".to_owned(), Value::from(axis.key.as_str())),
                ("values".to_owned(), axis.values.iter().map(value).collect::<Vec<_>>().into()),
            ]))
        };
        let metrics: Vec<(String, &str)> = self
            .metrics
            .iter()
            .map(|(name, from)| (name.clone().unwrap_or_else(|| name_of(from)), &**from))
            .collect();
        let metric = |(name, from): &(String, &str)| {
            let mut metric = Table::new();
            metric.insert("name".into(), name.as_str().into());
            metric.insert("from".into(), (*from).into());
            if names_flow(from) && !from.contains('(') {
                metric.insert("over".into(), "mean".into());
            }
            if let Some(unit) = unit_of(from) {
                metric.insert("unit".into(), unit.into());
            }
            Value::Table(metric)
        };
        let scenario = match self.scenario.as_str() {
            skyhaul_study::files::STDIN => {
                let text = skyhaul_study::files::read_stdin()
                    .map_err(|source| StudyError::Read { path: self.scenario.clone().into(), source })?;
                let parsed = text.parse::<Table>().map_err(|e| StudyError::Parse {
                    path: self.scenario.clone().into(),
                    line: None,
                    message: e.message().to_owned(),
                })?;
                Value::Table(parsed)
            }
            name => name.into(),
        };
        Ok(Table::from_iter([
            ("schema".to_owned(), Value::Integer(1)),
            ("title".to_owned(), self.title.as_str().into()),
            ("scenario".to_owned(), scenario),
            ("axis".to_owned(), self.axes.iter().zip(&names).map(axis).collect::<Vec<_>>().into()),
            ("metric".to_owned(), metrics.iter().map(metric).collect::<Vec<_>>().into()),
            (
                "figure".to_owned(),
                metrics.iter().flat_map(|(m, _)| self.figures(m, &names)).collect::<Vec<_>>().into(),
            ),
        ]))
    }

    /// The names of the axes: the last part of each key, or the whole key if that is taken.
    fn names(&self) -> Vec<String> {
        let short = |axis: &SweepAxis| axis.key.rsplit('.').next().unwrap_or_default().to_owned();
        let all: Vec<String> = self.axes.iter().map(short).collect();
        let name = |(axis, name): (&SweepAxis, &String)| {
            let alone = all.iter().filter(|n| *n == name).count() == 1 && !RESERVED.contains(&&**name);
            if alone { name.clone() } else { axis.key.replace('.', "_") }
        };
        self.axes.iter().zip(&all).map(name).collect()
    }

    /// The figures of a metric over the first key with numbers, with a curve per value of the next key: one figure for each
    /// combination of the values of the other keys.
    fn figures(&self, metric: &str, names: &[String]) -> Vec<Value> {
        let x = self.axes.iter().position(|a| a.numbers().is_some()).unwrap_or(0);
        let others: Vec<usize> = (0..self.axes.len()).filter(|i| *i != x).collect();
        let (series, rest) = others.split_first().map_or((None, &[][..]), |(s, rest)| (Some(*s), rest));
        let count = rest.iter().fold(1usize, |n, i| n.saturating_mul(self.axes[*i].values.len()));
        if count > MOST_FIGURES {
            return Vec::new();
        }
        let choice = |i: usize| {
            let axis = &self.axes[i];
            axis.values.iter().map(move |(label, value)| match (label, value) {
                (Some(label), _) => Some((i, Value::from(label.as_str()))),
                // A figure selects no value by a table or an array.
                (None, Value::Table(_) | Value::Array(_)) => None,
                (None, value) => Some((i, value.clone())),
            })
        };
        let mut chosen: Vec<Vec<(usize, Value)>> = vec![Vec::new()];
        for axis in rest {
            let Some(values) = choice(*axis).collect::<Option<Vec<_>>>() else { return Vec::new() };
            let with = |so_far: &Vec<(usize, Value)>| {
                values
                    .iter()
                    .map(|v| [so_far.as_slice(), std::slice::from_ref(v)].concat())
                    .collect::<Vec<_>>()
            };
            chosen = chosen.iter().flat_map(with).collect();
        }
        let positive: Vec<f64> =
            self.axes[x].numbers().unwrap_or_default().into_iter().filter(|n| *n > 0.0).collect();
        let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
        let most = positive.iter().copied().fold(0.0, f64::max);
        let negative = self.axes[x].numbers().is_some_and(|all| all.iter().any(|n| *n < 0.0));
        let figure = |(number, chosen): (usize, Vec<(usize, Value)>)| {
            let mut figure = Table::new();
            let file = if rest.is_empty() { metric.to_owned() } else { format!("{metric}-{number}") };
            figure.insert("file".into(), file.into());
            figure.insert("x".into(), names[x].as_str().into());
            figure.insert("y".into(), metric.into());
            if let Some(series) = series {
                figure.insert("series".into(), names[series].as_str().into());
            }
            if !chosen.is_empty() {
                let words = chosen.iter().map(|(i, v)| format!("{} = {}", names[*i], plain(v)));
                figure.insert("title".into(), words.collect::<Vec<_>>().join(", ").into());
                figure.insert(
                    "at".into(),
                    Value::Table(chosen.into_iter().map(|(i, v)| (names[i].clone(), v)).collect()),
                );
            }
            if !positive.is_empty() && most >= 10.0 * least && !negative {
                figure.insert("x_scale".into(), "log".into());
            }
            Value::Table(figure)
        };
        chosen.into_iter().enumerate().map(figure).collect()
    }
}

impl SweepAxis {
    /// The values if all are numbers without labels.
    fn numbers(&self) -> Option<Vec<f64>> {
        let number = |(label, value): &(Option<String>, Value)| match (label, value) {
            (None, Value::Integer(n)) => Some(*n as f64),
            (None, Value::Float(x)) => Some(*x),
            _ => None,
        };
        self.values.iter().map(number).collect()
    }
}

/// A value without the quotes of TOML.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A name for an expression: the name of its last quantity.
fn name_of(expression: &str) -> String {
    let mut named = names_in(expression).into_iter().filter_map(|name| match name {
        Name::Flow { quantity, .. } | Name::Run(quantity) => Some(quantity),
        Name::Link { quantity, .. } => quantity.rsplit('.').next().map(str::to_owned),
        Name::Series { series, .. } => Some(series),
        _ => None,
    });
    named.next_back().unwrap_or_else(|| "value".to_owned())
}

/// Whether an expression names a quantity of flows.
fn names_flow(expression: &str) -> bool {
    names_in(expression).iter().any(|name| matches!(name, Name::Flow { .. }))
}

/// The unit of an expression that is one quantity or its sum, mean, minimum or maximum over flows; unknown for other expressions.
fn unit_of(expression: &str) -> Option<&'static str> {
    let inner = ["sum", "mean", "min", "max"]
        .iter()
        .find_map(|f| expression.trim().strip_prefix(f)?.trim_start().strip_prefix('(')?.strip_suffix(')'));
    let text = inner.unwrap_or(expression).trim();
    // A quantity may have a minus sign in its name.
    if text.contains(['+', '*', '/', '(', ')', ',']) {
        return None;
    }
    let [name] = &names_in(text)[..] else { return None };
    let unit = match name {
        Name::Flow { quantity, .. } => FLOW.iter().find(|q| q.name == *quantity)?.unit,
        Name::Run(quantity) => RUN.iter().find(|q| q.name == *quantity)?.unit,
        Name::Link { quantity, .. } => {
            let (_, quantity) = quantity.rsplit_once('.')?;
            LINK.iter().find(|q| q.name == quantity)?.unit
        }
        _ => return None,
    };
    Some(Unit::symbol(unit)).filter(|symbol| !symbol.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(all: &[&str]) -> Vec<String> {
        all.iter().map(|s| (*s).to_owned()).collect()
    }

    fn refused(sets: &[String], metrics: &[String]) -> String {
        parse("preset:peach-geo", sets, metrics).expect_err("refused").to_string()
    }

    #[test]
    fn a_sweep_is_a_study_with_an_axis_per_key_and_a_figure_per_metric() {
        let sets = sets(&[
            "duration=5 s",
            "flows.bulk.cc=sack,{ name = 'peach', recovery = 'newreno' }",
            "links.sat.error.p=1e-3,1e-2",
        ]);
        let metrics =
            ["sum(flow.goodput)".to_owned(), "late=1000 * percentile(flow.packet_delay_p95, 50)".to_owned()];
        let (sweep, settings) = parse("preset:peach-geo", &sets, &metrics).expect("a sweep");
        assert_eq!(settings, ["duration=5 s"]);
        let file = sweep.study().expect("a study");
        let study = &file.study;
        let axes: Vec<&str> = study.axis.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(axes, ["cc", "p"]);
        assert_eq!((study.axis[0].values.len(), study.axis[1].label(1)), (2, "0.01".to_owned()));
        let metrics: Vec<_> = study.metric.iter().map(|m| (m.name.as_str(), m.unit.as_str())).collect();
        assert_eq!(metrics, [("goodput", "bit/s"), ("late", "")]);
        let figure = &study.figure[0];
        assert_eq!((figure.x.as_deref(), figure.series.as_deref()), (Some("p"), Some("cc")));
        // What it names is measured: the metric turns it on.
        let plan = sweep.plan(file).expect("a plan");
        assert!(plan.scenarios.iter().all(|s| s.scenario.record.packet_delay));
    }

    #[test]
    fn axes_of_one_name_have_their_whole_key_and_a_mean_over_flows() {
        let sets = sets(&["links.sat.delay=100 ms,200 ms", "links.sat.reverse.delay=20 ms,30 ms"]);
        let (sweep, _) = parse("preset:peach-geo", &sets, &["flow.mean_srtt".to_owned()]).expect("a sweep");
        assert_eq!(sweep.names(), ["links_sat_delay", "links_sat_reverse_delay"]);
        let study = sweep.study().expect("a study").study;
        assert_eq!((study.metric[0].unit.as_str(), study.metric[0].over.is_some()), ("s", true));
        assert!(sweep.plan(sweep.study().expect("a study")).is_ok());
    }

    #[test]
    fn three_keys_have_a_figure_for_each_value_of_the_third() {
        let sets = sets(&["flows.bulk.cc=sack,reno", "links.sat.error.p=0,1e-3", "flows.bulk.count=1,2,3"]);
        let (sweep, _) = parse("preset:peach-geo", &sets, &[]).expect("a sweep");
        let figures: Vec<String> =
            sweep.study().expect("a study").study.figure.iter().map(|f| f.file.clone()).collect();
        assert_eq!(figures, ["goodput-0", "goodput-1", "goodput-2"]);
        assert!(sweep.plan(sweep.study().expect("a study")).is_ok());
    }

    #[test]
    fn so_many_keys_that_no_memory_holds_all_combinations_have_no_figures() {
        let key = |i: usize| SweepAxis {
            key: format!("links.sat.key{i}"),
            values: (0..100).map(|n| (None, Value::Integer(n))).collect(),
        };
        let sweep = Sweep {
            scenario: "preset:peach-geo".to_owned(),
            title: "Sweep".to_owned(),
            axes: (0..14).map(key).collect(),
            metrics: vec![(None, USUAL_METRIC.to_owned())],
        };
        assert!(sweep.study().expect("a study").study.figure.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_as_run_says_it() {
        let one = sets(&["links.sat.error.p=1e-3"]);
        assert!(refused(&one, &[]).contains("no key has several values"), "{}", refused(&one, &[]));
        let misspelt = sets(&["links.sat.eror.p=1e-3,1e-2"]);
        let as_run = cases::resolve("preset:peach-geo", &misspelt, None).expect_err("refused").to_string();
        assert_eq!(refused(&misspelt, &[]), as_run);
        // Only the last value is wrong.
        let last = sets(&["flows.bulk.cc=sack,peach,peech"]);
        let as_run = cases::resolve("preset:peach-geo", &last, None).expect_err("refused").to_string();
        assert_eq!(refused(&last, &[]), as_run);
        let unknown = |metric: &str| {
            let (sweep, _) =
                parse("preset:peach-geo", &sets(&["flows.bulk.count=1,2"]), &[metric.to_owned()])
                    .expect("read");
            sweep.plan(sweep.study().expect("a study")).expect_err("refused").to_string()
        };
        let e = unknown("sum(flow.goodputt)");
        assert!(e.starts_with("--metric: `sum(flow.goodputt)`: unknown quantity of flows `goodputt`"), "{e}");
        let e = unknown("sum(flow.goodput");
        assert!(e.starts_with("--metric: `sum(flow.goodput`: ") && !e.contains('\n'), "{e}");
        let same = sets(&["flows.bulk.cc=sack,sack"]);
        let (sweep, _) = parse("preset:peach-geo", &same, &[]).expect("read");
        let e = sweep.plan(sweep.study().expect("a study")).expect_err("refused").to_string();
        assert!(e.starts_with("--set: `flows.bulk.cc`: label `sack`"), "{e}");
        let twice = sets(&["links.sat.error.p=1e-3,1e-2", "links.sat.error.p=0,1"]);
        assert!(refused(&twice, &[]).contains("links.sat.error.p"), "{}", refused(&twice, &[]));
        let good = sets(&["links.sat.error.p=1e-3,1e-2"]);
        for metric in ["", "busy=", "a b=run.goodput"] {
            assert!(refused(&good, &[metric.to_owned()]).starts_with("--metric"), "{metric}");
        }
    }
}
