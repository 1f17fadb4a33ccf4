//! From a study to its cells. Everything is resolved and checked before the first cell runs, so that a misspelt axis
//! is found at once and not after an hour.

use crate::claim;
use crate::error::StudyError;
use crate::expr::{Name, names_in};
pub use crate::key::cell_key;
use crate::key::hex;
use crate::metric::{metrics, names};
use crate::model::{Aggregation, Axis, Figure, OneOrMany, Profile, Rest, Settings, StudyFile};
use crate::planned::combination_label;
pub use crate::planned::{Cell, Plan, Prepared};
use crate::profile;
use crate::runner::{CellRunner, Problem, Resolution, Setting};
use crate::space::{Space, pins};
use sha2::{Digest, Sha256};
use skyhaul_sim::quantity::{is_on_demand, lacking};
use std::collections::BTreeMap;

/// Resolves and checks a study.
///
/// # Errors
/// If anything in it names something that does not exist, or a combination is refused.
pub fn plan<R: CellRunner>(runner: &R, file: StudyFile) -> Result<Plan, StudyError> {
    plan_profile(runner, file, Profile::Full)
}

/// Resolves and checks a study for a profile.
///
/// # Errors
/// As [`plan`].
pub fn plan_profile<R: CellRunner>(
    runner: &R,
    mut file: StudyFile,
    profile: Profile,
) -> Result<Plan, StudyError> {
    check_axes(&file)?;
    check_names(&file)?;
    let engine = runner.engine();
    let study_text = file.current_text();
    let only = profile::apply(&mut file, profile)?;
    check_size(&file)?;
    let base = base_settings(&file);
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
        lacks: Vec::new(),
        metrics: Vec::new(),
        claims: Vec::new(),
        words: resolved.words.clone(),
        base_text: resolved.text.clone(),
        file,
    };
    fill_grid(runner, &mut plan, &base)?;
    plan.metrics = metrics(&plan.file, names(&plan.file, runner.vocabulary(), &resolved))?;
    check_transports(&plan)?;
    plan.claims = claim::plan(&plan.file, &plan.metrics, &resolved)?;
    crate::figure::check(&plan.file, &plan.metrics, &resolved)?;
    crate::tabulate::check(&plan.file, &plan.metrics)?;
    crate::overview::check(&plan.file, &plan.metrics)?;
    Ok(plan)
}

/// Refuses metrics of quantities that no flow in any combination can have: they would be 0, or missing, everywhere.
fn check_transports(plan: &Plan) -> Result<(), StudyError> {
    for (i, metric) in plan.file.study.metric.iter().enumerate() {
        // A metric per group may concern some groups only.
        if metric.over == Some(Aggregation::PerGroup) {
            continue;
        }
        let Some(planned) = plan.metrics.iter().find(|m| m.name == metric.name) else { continue };
        let mut wrong = None;
        planned.expr.names(&mut |name| {
            let Name::Flow { group, quantity } = name else { return };
            let group = group.as_ref().or(planned.group.as_ref());
            let flows = plan.scenarios.iter().flat_map(|p| &p.scenario.flows);
            let mut reasons =
                flows.filter(|f| group.is_none_or(|g| f.name == *g)).map(|f| lacking(quantity, f));
            let first = reasons.next().flatten();
            if let (Some(because), true) = (first, reasons.all(|r| r.is_some())) {
                wrong.get_or_insert((quantity.clone(), because));
            }
        });
        if let Some((quantity, because)) = wrong {
            let message = format!("in `{}`: these flows have no `{quantity}`: {because}", metric.from);
            return Err(plan.file.refuse(&format!("metric[{i}].from"), message, &[]));
        }
    }
    Ok(())
}

fn check_axes(file: &StudyFile) -> Result<(), StudyError> {
    for (i, axis) in file.study.axis.iter().enumerate() {
        let key = |k: &str| format!("axis[{i}].{k}");
        if axis.name == "metric" || axis.name.is_empty() {
            return Err(file.refuse(
                &key("name"),
                format!("`{}` is not a valid name for an axis", axis.name),
                &[],
            ));
        }
        let sets = axis.values.iter().flat_map(|v| v.set.0.keys());
        if axis.path.0.iter().chain(sets).any(|path| path == "seed") {
            let message = "`seed` cannot be an axis: the study sets the seeds of each cell";
            return Err(file.refuse(&key("path"), message, &["seeds = { first = 1, count = 10 }"]));
        }
        check_values(file, axis, &key)?;
    }
    Ok(())
}

/// Checks the values of an axis, or of a free option; `key` is the place of one of its keys.
pub(crate) fn check_values(
    file: &StudyFile,
    axis: &Axis,
    key: &dyn Fn(&str) -> String,
) -> Result<(), StudyError> {
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
            let message = "a plain value needs the axis to have a `path`";
            return Err(file.refuse(&key, message, &["path = \"…\"", "{ set = { … } }"]));
        }
        if v.value.is_none() && !axis.path.0.is_empty() {
            return Err(file.refuse(&key, "this axis has a `path`, so each value needs `value`", &[]));
        }
        if let Some(twin) = (0..k).find(|j| axis.label(*j) == axis.label(k)) {
            let label = axis.label(k);
            return Err(file.refuse(&key, format!("label `{label}` also belongs to `values[{twin}]`"), &[]));
        }
    }
    Ok(())
}

/// Default limit of the number of cells.
const MAX_CELLS: u64 = 200_000;

/// Refuses a study of too many cells before the first is resolved: the numbers of values of the axes multiply, and a typing
/// error can make a study that runs for years.
fn check_size(file: &StudyFile) -> Result<(), StudyError> {
    let axes = &file.study.axis;
    let product =
        |of: &mut dyn Iterator<Item = usize>| of.fold(1u128, |n, len| n.saturating_mul(len as u128));
    let all = product(&mut axes.iter().map(|a| a.values.len()));
    let mut combinations = all;
    for (r, reading) in file.study.reading.iter().enumerate() {
        let only = pins(file, &reading.only, &format!("reading[{r}].only"))?;
        let left = axes.iter().zip(&only).map(|(a, p)| p.as_ref().map_or(a.values.len(), Vec::len));
        combinations = combinations.saturating_add(product(&mut left.into_iter()));
    }
    let seeds = file.study.seeds.count;
    let cells = combinations.saturating_mul(seeds.into());
    let most = file.max_cells.or(file.study.max_cells).unwrap_or(MAX_CELLS);
    if cells <= most.into() {
        return Ok(());
    }
    let count = |n: u128| if n < 1_000_000_000_000 { n.to_string() } else { "over 10^12".to_owned() };
    let message = format!(
        "{} {} {} combinations, {} with all readings; with {seeds} seeds each these are {} cells, more than {most}",
        axes.len(),
        if axes.len() == 1 { "axis makes" } else { "axes make" },
        count(all),
        count(combinations),
        count(cells),
    );
    Err(file.refuse(
        "max_cells",
        message,
        &["fewer values, readings or seeds", "max_cells = N", "--max-cells N"],
    ))
}

fn check_names(file: &StudyFile) -> Result<(), StudyError> {
    let s = &file.study;
    let lists: [(&str, Vec<&str>); 6] = [
        ("axis", s.axis.iter().map(|a| a.name.as_str()).collect()),
        ("reading", s.reading.iter().map(|r| r.label.as_str()).collect()),
        ("metric", s.metric.iter().map(|m| m.name.as_str()).collect()),
        ("claim", s.claim.iter().map(|c| c.id.as_str()).collect()),
        ("figure", s.figure.iter().map(Figure::name).collect()),
        ("table", s.table.iter().map(|t| t.file.as_str()).collect()),
    ];
    for (what, names) in lists {
        if let Some(i) = (0..names.len()).find(|i| names[..*i].contains(&names[*i])) {
            return Err(file.refuse(&format!("{what}[{i}]"), format!("`{}` appears twice", names[i]), &[]));
        }
    }
    if let Some(i) = s.reading.iter().position(|r| r.label == s.as_read) {
        let message = format!("`{}` is the name of the default reading", s.as_read);
        return Err(file.refuse(
            &format!("reading[{i}].label"),
            message,
            &["another name", "as_read = \"…\""],
        ));
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

pub(crate) fn settings_of(set: &Settings, origin: &str) -> Vec<Setting> {
    let one = |(path, value): (&String, &toml::Value)| Setting {
        path: path.clone(),
        value: value.clone(),
        origin: origin.to_owned(),
    };
    set.0.iter().map(one).collect()
}

/// Applies settings to the scenario of a study, and resolves it.
pub(crate) fn resolve<R: CellRunner>(
    runner: &R,
    file: &StudyFile,
    settings: &[Setting],
) -> Result<Resolution, StudyError> {
    runner.resolve(&file.study.scenario, file.dir(), settings).map_err(|p| blame(file, settings, &p))
}

/// The settings of all combinations.
pub(crate) fn base_settings(file: &StudyFile) -> Vec<Setting> {
    on_demand(file).into_iter().chain(settings_of(&file.study.set, "set")).collect()
}

/// Turns on the measurements that the metrics of a study need and that a run makes only on demand. Settings of the study come
/// later, and may turn them off.
fn on_demand(file: &StudyFile) -> Option<Setting> {
    let is_needed = |name: &Name| matches!(name, Name::Flow { quantity, .. } if is_on_demand(quantity));
    let metric = file.study.metric.iter().position(|m| names_in(&m.from).iter().any(is_needed))?;
    Some(Setting {
        path: "record.packet-delay".to_owned(),
        value: toml::Value::Boolean(true),
        origin: format!("metric[{metric}].from"),
    })
}

/// Finds the key of the study that causes a problem of the scenario.
fn blame(file: &StudyFile, settings: &[Setting], problem: &Problem) -> StudyError {
    let accepted: Vec<&str> = problem.accepted.iter().map(String::as_str).collect();
    let about = problem.path.as_deref().unwrap_or("");
    let related = |a: &str, b: &str| !a.is_empty() && (a == b || a.starts_with(&format!("{b}.")));
    let cause = settings.iter().rev().find(|s| related(about, &s.path) || related(&s.path, about));
    let message = match &problem.path {
        Some(path) if !problem.message.contains(path.as_str()) => format!("{path}: {}", problem.message),
        _ => problem.message.clone(),
    };
    let key = cause.map_or_else(|| "scenario".to_owned(), |s| s.origin.clone());
    file.refuse(&key, message, &accepted)
}

fn fill_grid<R: CellRunner>(runner: &R, plan: &mut Plan, base: &[Setting]) -> Result<(), StudyError> {
    let of_profile = profile::settings(&plan.file, plan.profile);
    let space = Space::of(&plan.file);
    let readings = plan.file.study.reading.len();
    let mut known = Index::default();
    for reading in 0..=readings {
        let only = match reading.checked_sub(1) {
            None => vec![None; space.lengths.len()],
            Some(r) => pins(&plan.file, &plan.file.study.reading[r].only, &format!("reading[{r}].only"))?,
        };
        let is_partial =
            reading.checked_sub(1).is_some_and(|r| plan.file.study.reading[r].rest == Rest::NotRun);
        let outside = |flat| is_partial && !profile::within(&space.unflatten(flat), &only);
        plan.lacks.push((0..space.len()).map(outside).collect());
        let mut row = Vec::with_capacity(space.len());
        for flat in 0..space.len() {
            let index = space.unflatten(flat);
            if reading > 0 && !profile::within(&index, &only) {
                row.push(plan.grid[0][flat]);
                continue;
            }
            let mut settings = base.to_vec();
            let mut constants = plan.file.study.constants.clone();
            for (a, i) in index.iter().enumerate() {
                axis_settings(&plan.file.study.axis[a], &format!("axis[{a}]"), *i, &mut settings);
                constants.extend(plan.file.study.axis[a].values[*i].constants.clone());
            }
            let mut label = combination_label(&plan.file, &index);
            if let Some(r) = reading.checked_sub(1) {
                let of = &plan.file.study.reading[r];
                settings.extend(settings_of(&of.set, &format!("reading[{r}].set")));
                label = format!("{label}, {}", of.label);
            }
            settings.extend(of_profile.clone());
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

/// The scenarios so far, by text. Scenarios with the same text differ only in constants and share a run; the index has their
/// numbers and that of the run.
#[derive(Default)]
struct Index {
    scenarios: BTreeMap<String, (Vec<usize>, Option<usize>)>,
    runs: usize,
}

/// Index of the scenario, whether new or known.
fn place(all: &mut Vec<Prepared>, known: &mut Index, new: Prepared, runs: bool) -> usize {
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

/// The settings of value `i` of an axis; `origin` is its place in the study.
pub(crate) fn axis_settings(axis: &Axis, origin: &str, i: usize, settings: &mut Vec<Setting>) {
    let OneOrMany(paths) = &axis.path;
    if let Some(value) = &axis.values[i].value {
        let one = |path: &String| Setting {
            path: path.clone(),
            value: value.clone(),
            origin: format!("{origin}.path"),
        };
        settings.extend(paths.iter().map(one));
    }
    settings.extend(settings_of(&axis.values[i].set, &format!("{origin}.values[{i}]")));
}
