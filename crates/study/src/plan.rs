//! From a study to its cells. Everything is resolved and checked before the first cell runs: a misspelt axis in
//! the last corner of a sweep must not show after an hour.

use crate::claim::{self, PlannedClaim};
use crate::error::StudyError;
use crate::expr::{self, Expr, Names, Shape};
use crate::model::{Metric, OneOrMany, Over, Pick, Profile, Selector, Settings, StudyFile};
use crate::profile;
use crate::runner::{CellRunner, Problem, Setting, Vocabulary};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A study in which nothing is open.
#[derive(Debug)]
pub struct Plan<S> {
    /// The study, as the profile wants it.
    pub file: StudyFile,
    /// How much of it runs.
    pub profile: Profile,
    /// The values of each axis that the profile leaves; `None`: all.
    pub only: Vec<Option<Vec<usize>>>,
    /// The study as it was asked for, before the profile.
    pub study_text: String,
    /// Version of the engine.
    pub engine: String,
    /// Hash of the base scenario, the study's settings and the engine, hexadecimal.
    pub hash: String,
    /// The different resolved scenarios.
    pub scenarios: Vec<Prepared<S>>,
    /// `grid[reading][combination]` is an index into `scenarios`; reading 0 is the default.
    pub grid: Vec<Vec<usize>>,
    /// Metrics in order, `per-group` ones expanded.
    pub metrics: Vec<PlannedMetric>,
    /// Claims in order.
    pub claims: Vec<PlannedClaim>,
    /// The base scenario before the axes, in words.
    pub words: Vec<(String, String)>,
    /// The base scenario before the axes, resolved.
    pub base_text: String,
}

/// A resolved scenario.
#[derive(Clone, Debug)]
pub struct Prepared<S> {
    /// What the runner runs.
    pub scenario: S,
    /// Canonical text.
    pub text: String,
    /// Version of users' own controls in it; see [`CellRunner::version`].
    pub version: Result<String, String>,
    /// Which combination it was first met in, in words.
    pub label: String,
    /// Constants of the axis values in force.
    pub constants: BTreeMap<String, f64>,
    /// Index of the run: scenarios that differ only in constants share it. `None`: not in the profile.
    pub run: Option<usize>,
}

/// A metric ready to be evaluated.
#[derive(Clone, Debug)]
pub struct PlannedMetric {
    /// Name in claims and figures.
    pub name: String,
    /// Title with unit.
    pub heading: String,
    /// Title.
    pub title: String,
    /// Unit.
    pub unit: String,
    /// The expression.
    pub expr: Expr,
    /// How flows become one number.
    pub over: Option<Over>,
    /// Only flows of this group.
    pub group: Option<String>,
    /// The value of each axis where `base` is; `None`: the same. Empty without a base.
    pub base: Vec<Option<usize>>,
    /// Earlier metrics that the expression names.
    pub needs: Vec<String>,
}

/// A run of one scenario with one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the run among [`Plan::runs`].
    pub run: usize,
    /// Index of the seed.
    pub seed_index: usize,
    /// The seed.
    pub seed: u64,
}

impl<S> Plan<S> {
    /// The first scenario of every different run.
    #[must_use]
    pub fn runs(&self) -> Vec<&Prepared<S>> {
        let mut runs = BTreeMap::new();
        for p in &self.scenarios {
            if let Some(run) = p.run {
                runs.entry(run).or_insert(p);
            }
        }
        runs.into_values().collect()
    }

    /// All cells: by run, then by seed. The position in this list is the cell's number.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let seeds: Vec<u64> = self.file.study.seeds.iter().collect();
        let runs = self.runs().len();
        let of =
            |run| seeds.iter().enumerate().map(move |(seed_index, &seed)| Cell { run, seed_index, seed });
        (0..runs).flat_map(of).collect()
    }

    /// Number of seeds.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.file.study.seeds.count as usize
    }

    /// Key of a cell in the cache.
    #[must_use]
    pub fn key(&self, run: &Prepared<S>, seed: u64) -> String {
        cell_key(&self.engine, &run.text, &run.version, seed)
    }

    /// Names of the readings, the default first.
    #[must_use]
    pub fn readings(&self) -> Vec<String> {
        let others = self.file.study.reading.iter().map(|r| r.label.clone());
        std::iter::once(self.file.study.as_read.clone()).chain(others).collect()
    }

    /// Index of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|m| m.name == name)
    }

    /// A combination in words, axes with one value left out.
    #[must_use]
    pub fn label(&self, combination: usize) -> String {
        let index = Space::of(&self.file).unflatten(combination);
        combination_label(&self.file, &index)
    }
}

/// Key of a cell: a hash of everything that its result depends on.
#[must_use]
pub fn cell_key(engine: &str, text: &str, version: &Result<String, String>, seed: u64) -> String {
    let mut digest = Sha256::new()
        .chain_update(engine)
        .chain_update([0])
        .chain_update(text)
        .chain_update([0])
        .chain_update(seed.to_le_bytes());
    match version {
        // Most cells: their keys are as old as the cache.
        Ok(version) if version.is_empty() => {}
        Ok(version) => digest.update(version),
        Err(_) => digest.update("?"),
    }
    hex(&digest.finalize())
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

/// The product of the axes; the last varies fastest.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) lengths: Vec<usize>,
}

impl Space {
    pub(crate) fn of(file: &StudyFile) -> Self {
        Self { lengths: file.study.axis.iter().map(|a| a.values.len()).collect() }
    }
    pub(crate) fn len(&self) -> usize {
        self.lengths.iter().product()
    }
    pub(crate) fn unflatten(&self, mut flat: usize) -> Vec<usize> {
        let mut index = vec![0; self.lengths.len()];
        for (i, length) in self.lengths.iter().enumerate().rev() {
            index[i] = flat % length;
            flat /= length;
        }
        index
    }
    pub(crate) fn flatten(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.lengths).fold(0, |flat, (i, length)| flat * length + i)
    }
}

/// The values of each axis that a selector leaves; `None`: it does not mention the axis.
pub(crate) fn pins(
    file: &StudyFile,
    selector: &Selector,
    key: &str,
) -> Result<Vec<Option<Vec<usize>>>, StudyError> {
    let axes = &file.study.axis;
    let names: Vec<&str> = axes.iter().map(|a| a.name.as_str()).collect();
    if let Some(unknown) = selector.0.keys().find(|k| !names.contains(&k.as_str())) {
        return Err(file.refuse(key, format!("there is no axis `{unknown}`"), &names));
    }
    let find = |axis: &crate::model::Axis, pick: &Pick| -> Result<Vec<usize>, StudyError> {
        let one = |p: &String| {
            axis.index_of(p).ok_or_else(|| {
                let labels: Vec<String> = (0..axis.values.len()).map(|i| axis.label(i)).collect();
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                file.refuse(key, format!("axis `{}` has no value `{p}`", axis.name), &labels)
            })
        };
        if pick.0.is_empty() {
            return Err(file.refuse(
                key,
                format!("no value of axis `{}` is named", axis.name),
                &["at least one"],
            ));
        }
        pick.0.iter().map(one).collect()
    };
    axes.iter().map(|a| selector.0.get(&a.name).map(|p| find(a, p)).transpose()).collect()
}

/// Resolves and checks a study.
///
/// # Errors
/// If anything in it names something that does not exist, or a combination is refused.
pub fn plan<R: CellRunner>(runner: &R, file: StudyFile) -> Result<Plan<R::Scenario>, StudyError> {
    plan_profile(runner, file, Profile::Full)
}

/// Resolves and checks a study of which a profile runs.
///
/// # Errors
/// As [`plan`].
pub fn plan_profile<R: CellRunner>(
    runner: &R,
    mut file: StudyFile,
    profile: Profile,
) -> Result<Plan<R::Scenario>, StudyError> {
    check_axes(&file)?;
    check_names(&file)?;
    let engine = runner.engine();
    let study_text = file.current_text();
    let only = profile::apply(&mut file, profile)?;
    let base = settings_of(&file.study.set, "set");
    let in_words = [base.clone(), profile::settings(&file, profile)].concat();
    let resolved = resolve(runner, &file, &in_words)?;
    let mut plan = Plan {
        hash: hex(&Sha256::digest(format!("{engine}\0{}\0{study_text}{}", resolved.text, profile.salt()))),
        engine,
        profile,
        only,
        study_text,
        scenarios: Vec::new(),
        grid: Vec::new(),
        metrics: Vec::new(),
        claims: Vec::new(),
        words: resolved.words,
        base_text: resolved.text,
        file,
    };
    fill_grid(runner, &mut plan, &base)?;
    let series = resolved.series.clone();
    let names = names(&plan, runner.vocabulary(), resolved.links, resolved.groups, resolved.series);
    plan.metrics = metrics(&plan.file, names)?;
    plan.claims = claim::plan(&plan.file, &plan.metrics, &series)?;
    crate::figure::check(&plan.file, &plan.metrics, &series)?;
    crate::tabulate::check(&plan.file, &plan.metrics)?;
    Ok(plan)
}

fn check_axes(file: &StudyFile) -> Result<(), StudyError> {
    for (i, axis) in file.study.axis.iter().enumerate() {
        let key = |k: &str| format!("axis[{i}].{k}");
        if axis.name == "metric" || axis.name.is_empty() {
            return Err(file.refuse(&key("name"), format!("`{}` is no name for an axis", axis.name), &[]));
        }
        if axis.values.is_empty() {
            return Err(file.refuse(&key("values"), "an axis needs at least one value", &[]));
        }
        if !axis.labels.is_empty() && axis.labels.len() != axis.values.len() {
            let n = axis.values.len().to_string();
            return Err(file.refuse(&key("labels"), "one label per value", &[&n]));
        }
        for (k, v) in axis.values.iter().enumerate() {
            let key = key(&format!("values[{k}]"));
            if v.value.is_some() && axis.path.0.is_empty() {
                let message = "a plain value needs the axis' `path`";
                return Err(file.refuse(&key, message, &["path = \"…\"", "{ set = { … } }"]));
            }
            if v.value.is_none() && !axis.path.0.is_empty() {
                return Err(file.refuse(&key, "this axis has a `path`, so each value needs `value`", &[]));
            }
            if let Some(twin) = (0..k).find(|j| axis.label(*j) == axis.label(k)) {
                let label = axis.label(k);
                return Err(file.refuse(&key, format!("label `{label}` is that of value {twin} too"), &[]));
            }
        }
    }
    Ok(())
}

fn check_names(file: &StudyFile) -> Result<(), StudyError> {
    let s = &file.study;
    let lists: [(&str, Vec<&str>); 6] = [
        ("axis", s.axis.iter().map(|a| a.name.as_str()).collect()),
        ("reading", s.reading.iter().map(|r| r.label.as_str()).collect()),
        ("metric", s.metric.iter().map(|m| m.name.as_str()).collect()),
        ("claim", s.claim.iter().map(|c| c.id.as_str()).collect()),
        ("figure", s.figure.iter().map(|f| f.file.as_str()).collect()),
        ("table", s.table.iter().map(|t| t.file.as_str()).collect()),
    ];
    for (what, names) in lists {
        if let Some(i) = (0..names.len()).find(|i| names[..*i].contains(&names[*i])) {
            return Err(file.refuse(&format!("{what}[{i}]"), format!("`{}` is there twice", names[i]), &[]));
        }
    }
    let ids: Vec<&str> = s.claim.iter().map(|c| c.id.as_str()).collect();
    for (i, r) in s.reading.iter().enumerate() {
        if let Some(unknown) = r.claims.iter().find(|c| !ids.contains(&c.as_str())) {
            let key = format!("reading[{i}].claims");
            return Err(file.refuse(&key, format!("there is no claim `{unknown}`"), &ids));
        }
    }
    Ok(())
}

fn settings_of(set: &Settings, origin: &str) -> Vec<Setting> {
    let one = |(path, value): (&String, &toml::Value)| Setting {
        path: path.clone(),
        value: value.clone(),
        origin: origin.to_owned(),
    };
    set.0.iter().map(one).collect()
}

fn resolve<R: CellRunner>(
    runner: &R,
    file: &StudyFile,
    settings: &[Setting],
) -> Result<crate::runner::Resolution<R::Scenario>, StudyError> {
    runner.resolve(&file.study.scenario, file.dir(), settings).map_err(|p| blame(file, settings, &p))
}

/// Says which key of the study a problem of the scenario comes from.
fn blame(file: &StudyFile, settings: &[Setting], problem: &Problem) -> StudyError {
    let accepted: Vec<&str> = problem.accepted.iter().map(String::as_str).collect();
    let about = problem.path.as_deref().unwrap_or("");
    let related = |a: &str, b: &str| !a.is_empty() && (a == b || a.starts_with(&format!("{b}.")));
    let guilty = settings.iter().rev().find(|s| related(about, &s.path) || related(&s.path, about));
    let message = match &problem.path {
        Some(path) if !problem.message.contains(path.as_str()) => format!("{path}: {}", problem.message),
        _ => problem.message.clone(),
    };
    let key = guilty.map_or_else(|| "scenario".to_owned(), |s| s.origin.clone());
    file.refuse(&key, message, &accepted)
}

fn fill_grid<R: CellRunner>(
    runner: &R,
    plan: &mut Plan<R::Scenario>,
    base: &[Setting],
) -> Result<(), StudyError> {
    let last = profile::settings(&plan.file, plan.profile);
    let space = Space::of(&plan.file);
    let readings = plan.file.study.reading.len();
    let mut known = Known::default();
    for reading in 0..=readings {
        let only = match reading.checked_sub(1) {
            None => vec![None; space.lengths.len()],
            Some(r) => pins(&plan.file, &plan.file.study.reading[r].only, &format!("reading[{r}].only"))?,
        };
        let mut row = Vec::with_capacity(space.len());
        for flat in 0..space.len() {
            let index = space.unflatten(flat);
            let meant = profile::within(&index, &only);
            if reading > 0 && !meant {
                row.push(plan.grid[0][flat]);
                continue;
            }
            let mut settings = base.to_vec();
            let mut constants = plan.file.study.constants.clone();
            for (a, i) in index.iter().enumerate() {
                axis_settings(&plan.file.study.axis[a], a, *i, &mut settings);
                constants.extend(plan.file.study.axis[a].values[*i].constants.clone());
            }
            let mut label = combination_label(&plan.file, &index);
            if let Some(r) = reading.checked_sub(1) {
                let of = &plan.file.study.reading[r];
                settings.extend(settings_of(&of.set, &format!("reading[{r}].set")));
                label = format!("{label}, {}", of.label);
            }
            settings.extend(last.clone());
            let resolved = resolve(runner, &plan.file, &settings)?;
            let version = runner.version(&resolved.scenario);
            let runs = profile::within(&index, &plan.only);
            let (scenario, text) = (resolved.scenario, resolved.text);
            let new = Prepared { scenario, text, version, label, constants, run: None };
            row.push(place(&mut plan.scenarios, &mut known, new, runs));
        }
        plan.grid.push(row);
    }
    Ok(())
}

/// Scenarios met so far, by text: their indices, which differ in constants only, and the run that they share.
#[derive(Default)]
struct Known {
    scenarios: BTreeMap<String, (Vec<usize>, Option<usize>)>,
    runs: usize,
}

/// Index of the scenario, which is new or was met before.
fn place<S>(all: &mut Vec<Prepared<S>>, known: &mut Known, new: Prepared<S>, runs: bool) -> usize {
    let (same, run) = known.scenarios.entry(new.text.clone()).or_default();
    if runs && run.is_none() {
        *run = Some(known.runs);
        known.runs += 1;
        // Combinations outside the profile may have the same scenario: they then have its result too.
        same.iter().for_each(|i| all[*i].run = *run);
    }
    if let Some(i) = same.iter().find(|i| all[**i].constants == new.constants) {
        return *i;
    }
    same.push(all.len());
    all.push(Prepared { run: *run, ..new });
    all.len() - 1
}

fn axis_settings(axis: &crate::model::Axis, a: usize, i: usize, settings: &mut Vec<Setting>) {
    let OneOrMany(paths) = &axis.path;
    if let Some(value) = &axis.values[i].value {
        let one = |path: &String| Setting {
            path: path.clone(),
            value: value.clone(),
            origin: format!("axis[{a}].path"),
        };
        settings.extend(paths.iter().map(one));
    }
    settings.extend(settings_of(&axis.values[i].set, &format!("axis[{a}].values[{i}]")));
}

fn combination_label(file: &StudyFile, index: &[usize]) -> String {
    let several = file.study.axis.iter().zip(index).filter(|(a, _)| a.values.len() > 1);
    let parts: Vec<_> = several.map(|(a, i)| format!("{} = {}", a.name, a.label(*i))).collect();
    if parts.is_empty() { "the only combination".to_owned() } else { parts.join(", ") }
}

fn names<S>(
    plan: &Plan<S>,
    words: Vocabulary,
    links: Vec<String>,
    groups: Vec<String>,
    series: Vec<String>,
) -> Names {
    let owned = |v: Vec<(&str, &str)>| v.into_iter().map(|(n, _)| n.to_owned()).collect();
    // A constant exists if at least every value of one axis has it.
    let axes = &plan.file.study.axis;
    let of_axis = |a: &crate::model::Axis| -> Vec<String> {
        let first = a.values[0].constants.keys();
        first.filter(|c| a.values.iter().all(|v| v.constants.contains_key(*c))).cloned().collect()
    };
    Names {
        flow: owned(words.flow),
        link: owned(words.link),
        run: owned(words.run),
        groups,
        links,
        series,
        constants: plan.file.study.constants.keys().cloned().chain(axes.iter().flat_map(of_axis)).collect(),
        metrics: Vec::new(),
        based: false,
    }
}

fn metrics(file: &StudyFile, mut names: Names) -> Result<Vec<PlannedMetric>, StudyError> {
    let mut planned = Vec::new();
    for (i, m) in file.study.metric.iter().enumerate() {
        let key = |k: &str| format!("metric[{i}].{k}");
        let refuse = |e: expr::ExprError| {
            let accepted: Vec<&str> = e.accepted.iter().map(String::as_str).collect();
            file.refuse(&key("from"), format!("in `{}`: {}", m.from, e.message), &accepted)
        };
        if let Some(g) = m.group.as_ref().filter(|g| !names.groups.contains(g)) {
            let groups: Vec<&str> = names.groups.iter().map(String::as_str).collect();
            return Err(file.refuse(&key("group"), format!("there is no group `{g}`"), &groups));
        }
        let mut base = Vec::new();
        if !m.base.is_empty() {
            for (pin, axis) in pins(file, &m.base, &key("base"))?.into_iter().zip(&file.study.axis) {
                base.push(match pin.as_deref() {
                    None => None,
                    Some([one]) => Some(*one),
                    Some(_) => {
                        let message = format!("there is one base: write one value of `{}`", axis.name);
                        return Err(file.refuse(&key("base"), message, &[]));
                    }
                });
            }
        }
        names.based = !base.is_empty();
        let expr = expr::parse(&m.from).map_err(refuse)?;
        let over = ["sum", "mean", "min", "max", "jain", "per-group"];
        match (expr::shape(&expr, &names).map_err(refuse)?, m.over) {
            (Shape::Scalar, Some(_)) => {
                let message = "the expression is one number already, so there is nothing to go over";
                return Err(file.refuse(&key("over"), message, &["leave it out"]));
            }
            (Shape::PerFlow, None) => {
                let message = "the expression has a value per flow; how do they become one?";
                return Err(file.refuse(&key("over"), message, &over));
            }
            (Shape::Curves, _) => {
                let message = "a series is no number";
                return Err(file.refuse(
                    &key("from"),
                    message,
                    &["at(series.…, t)", "reach(series.…, level)"],
                ));
            }
            (Shape::Scalar, None) | (Shape::PerFlow, Some(_)) => {}
        }
        planned.extend(expand(m, &expr, &base, &names.groups));
        names.metrics = planned.iter().map(|p: &PlannedMetric| p.name.clone()).collect();
    }
    Ok(planned)
}

fn expand(m: &Metric, expr: &Expr, base: &[Option<usize>], groups: &[String]) -> Vec<PlannedMetric> {
    let mut needs = Vec::new();
    expr.names(&mut |name| {
        if let expr::Name::Metric(m) | expr::Name::Base(m) = name {
            needs.push(m.clone());
        }
    });
    let title = m.title.clone().unwrap_or_else(|| m.name.clone());
    let heading = |t: &str| if m.unit.is_empty() { t.to_owned() } else { format!("{t} ({})", m.unit) };
    let one = |name: String, title: String, group: Option<String>, over| PlannedMetric {
        name,
        heading: heading(&title),
        title,
        unit: m.unit.clone(),
        expr: expr.clone(),
        over,
        group,
        base: base.to_vec(),
        needs: needs.clone(),
    };
    if m.over != Some(Over::PerGroup) {
        return vec![one(m.name.clone(), title, m.group.clone(), m.over)];
    }
    let of = |g: &String| {
        one(format!("{}.{g}", m.name), format!("{title}, {g}"), Some(g.clone()), Some(Over::Mean))
    };
    groups.iter().map(of).collect()
}
