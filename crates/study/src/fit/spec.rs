//! A search, checked before anything runs: options, printed numbers, and the combinations that they need.

use crate::error::StudyError;
use crate::metric::PlannedMetric;
use crate::model::{Axis, Fit, FreeOption, Printed, StudyFile};
use crate::plan::check_values;
use crate::profile::{needed, within};
use crate::space::{Space, pins};
use std::collections::BTreeMap;

/// A reading: the index of a value for each option.
pub(super) type Choice = Vec<usize>;

/// A free option.
#[derive(Debug)]
pub(super) struct OptionSpec {
    /// Its name and values.
    pub(super) axis: Axis,
    /// Whether it applies, by combination.
    pub(super) applies: Vec<bool>,
    /// Whether it changes the scenario, and not only constants of expressions.
    sets: bool,
}

/// A printed number.
#[derive(Debug)]
pub(super) struct NumberSpec {
    /// Index of the metric.
    pub(super) metric: usize,
    /// The combination at which it is evaluated.
    pub(super) at: usize,
    /// All combinations that the metric needs there.
    pub(super) needs: Vec<usize>,
    /// Index of its paper.
    pub(super) paper: usize,
    /// The value.
    pub(super) value: f64,
    /// Weight of its squared error.
    pub(super) weight: f64,
}

/// A checked search.
#[derive(Debug)]
pub(super) struct Spec {
    /// The options.
    pub(super) options: Vec<OptionSpec>,
    /// The printed numbers.
    pub(super) numbers: Vec<NumberSpec>,
    /// Names of the papers, in the order of their first number.
    pub(super) papers: Vec<String>,
    /// The named readings.
    pub(super) known: Vec<(String, Choice)>,
    /// Combinations that any number needs, ascending.
    pub(super) needs: Vec<usize>,
}

impl Spec {
    /// Checks the search of a study.
    pub(super) fn new(file: &StudyFile, fit: &Fit, metrics: &[PlannedMetric]) -> Result<Self, StudyError> {
        let options = options(file, fit)?;
        let (numbers, papers) = numbers(file, fit, metrics, &options)?;
        let known = known(file, fit, &options)?;
        let mut needs: Vec<usize> = numbers.iter().flat_map(|n| n.needs.iter().copied()).collect();
        needs.sort_unstable();
        needs.dedup();
        let idle = options.iter().position(|o| !needs.iter().any(|c| o.applies[*c]));
        if let Some(i) = idle {
            let message = format!("no printed number depends on the option `{}`", options[i].axis.name);
            let accepted = ["a number at a combination that it applies to", "leave it out"];
            return Err(file.refuse(&format!("fit.option[{i}].only"), message, &accepted));
        }
        Ok(Self { options, numbers, papers, known, needs })
    }

    /// Number of readings, saturating.
    pub(super) fn size(&self) -> u64 {
        self.options.iter().fold(1, |n: u64, o| n.saturating_mul(o.axis.values.len() as u64))
    }

    /// Largest number of runs of all readings, saturating.
    pub(super) fn runs(&self) -> u64 {
        let of = |c: &usize| {
            let here = self.options.iter().filter(|o| o.sets && o.applies[*c]);
            here.fold(1, |n: u64, o| n.saturating_mul(o.axis.values.len() as u64))
        };
        self.needs.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Whether the numbers that `counts` chooses depend on an option.
    pub(super) fn matters(&self, option: usize, counts: impl Fn(&NumberSpec) -> bool) -> bool {
        let used = self.numbers.iter().filter(|n| counts(n));
        used.flat_map(|n| &n.needs).any(|c| self.options[option].applies[*c])
    }

    /// All readings in order; the last option varies fastest.
    pub(super) fn all(&self) -> impl Iterator<Item = Choice> + '_ {
        let space = Space { lengths: self.options.iter().map(|o| o.axis.values.len()).collect() };
        (0..space.len()).map(move |flat| space.unflatten(flat))
    }

    /// A reading in words: the options that do not have their first value.
    pub(super) fn words(&self, choice: &[usize]) -> Vec<(String, String)> {
        let all = self.options.iter().zip(choice);
        all.filter(|(_, i)| **i > 0).map(|(o, i)| (o.axis.name.clone(), o.axis.label(*i))).collect()
    }
}

fn options(file: &StudyFile, fit: &Fit) -> Result<Vec<OptionSpec>, StudyError> {
    if fit.option.is_empty() {
        let message = "a search needs at least one free option";
        return Err(file.refuse("fit.option", message, &["[[fit.option]]"]));
    }
    let space = Space::of(file);
    let mut all: Vec<OptionSpec> = Vec::new();
    for (i, option) in fit.option.iter().enumerate() {
        let key = |k: &str| format!("fit.option[{i}].{k}");
        if all.iter().any(|o| o.axis.name == option.name) {
            return Err(file.refuse(&key("name"), format!("`{}` appears twice", option.name), &[]));
        }
        let axis = option.axis();
        check_values(file, &axis, &key)?;
        if axis.values.len() < 2 {
            let message = format!("`{}` has one value, so it is not free", option.name);
            return Err(file.refuse(&key("values"), message, &["two values or more", "set = { … }"]));
        }
        let undeclared = |c: &&String| !file.study.constants.contains_key(*c);
        if let Some(c) = axis.values.iter().flat_map(|v| v.constants.keys()).find(undeclared) {
            let message = format!("the study has no constant `{c}` that this value could replace");
            return Err(file.refuse(&key("values"), message, &[&format!("let = {{ {c} = … }}")]));
        }
        let only = pins(file, &option.only, &key("only"))?;
        let applies: Vec<bool> = (0..space.len()).map(|c| within(&space.unflatten(c), &only)).collect();
        let both = |o: &OptionSpec| o.applies.iter().zip(&applies).any(|(a, b)| *a && *b);
        let twin = all.iter().zip(&fit.option).find_map(|(o, f)| {
            let path = common(f, option).filter(|_| both(o))?;
            Some((o.axis.name.clone(), path))
        });
        if let Some((name, path)) = twin {
            let message =
                format!("`{name}` sets `{path}` too, in the same combinations: they contradict each other");
            return Err(file.refuse(&key("path"), message, &["one option for both", "only = { … }"]));
        }
        all.push(OptionSpec { axis, applies, sets: paths(option).next().is_some() });
    }
    Ok(all)
}

/// Keys that an option sets.
fn paths(option: &FreeOption) -> impl Iterator<Item = &String> {
    option.path.0.iter().chain(option.values.iter().flat_map(|v| v.set.0.keys()))
}

/// A key that two options set; it counts too if one of them sets a table with the key of the other in it.
fn common(a: &FreeOption, b: &FreeOption) -> Option<String> {
    let below =
        |p: &str, q: &str| p.strip_prefix(q).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    paths(a).find(|p| paths(b).any(|q| below(p, q) || below(q, p))).cloned()
}

fn numbers(
    file: &StudyFile,
    fit: &Fit,
    metrics: &[PlannedMetric],
    options: &[OptionSpec],
) -> Result<(Vec<NumberSpec>, Vec<String>), StudyError> {
    if fit.printed.is_empty() {
        let message = "a search needs at least one printed number";
        return Err(file.refuse("fit.printed", message, &["[[fit.printed]]"]));
    }
    let mut papers: Vec<String> = Vec::new();
    let mut all: Vec<NumberSpec> = Vec::new();
    for (i, number) in fit.printed.iter().enumerate() {
        let key = |k: &str| format!("fit.printed[{i}].{k}");
        let Printed { id, paper, value, weight, .. } = number;
        let earlier = &fit.printed[..i];
        if earlier.iter().any(|p| p.id == *id) || fit.left_out.iter().any(|l| l.id == *id) {
            return Err(file.refuse(&key("id"), format!("`{id}` appears twice"), &[]));
        }
        if !(value.is_finite() && *value > 0.0) {
            let message = "errors are logarithms of ratios";
            return Err(file.refuse(&key("value"), message, &["a number above 0"]));
        }
        if !(weight.is_finite() && *weight > 0.0) {
            let message = "a number without weight does not count";
            return Err(file.refuse(&key("weight"), message, &["a number above 0", "[[fit.left_out]]"]));
        }
        let known: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
        let metric = known.iter().position(|m| *m == number.metric).ok_or_else(|| {
            file.refuse(&key("metric"), format!("there is no metric `{}`", number.metric), &known)
        })?;
        let at = place(file, number, i)?;
        if let Some(j) = all.iter().position(|n| n.metric == metric && n.at == at) {
            let (other, theirs) = (&earlier[j].id, earlier[j].value);
            let message = format!("`{other}` is the same metric at the same place, with the value {theirs}");
            return Err(file.refuse(&key("at"), message, &["one number for each metric and place"]));
        }
        let needs = needed(file, metrics, metric, at);
        if !options.iter().any(|o| needs.iter().any(|c| o.applies[*c])) {
            let message = format!("no free option changes `{id}`");
            let accepted = ["a combination that an option applies to", "[[fit.left_out]]"];
            return Err(file.refuse(&key("at"), message, &accepted));
        }
        let paper = papers.iter().position(|p| p == paper).unwrap_or_else(|| {
            papers.push(paper.clone());
            papers.len() - 1
        });
        all.push(NumberSpec { metric, at, needs, paper, value: *value, weight: *weight });
    }
    Ok((all, papers))
}

/// The combination of a printed number.
fn place(file: &StudyFile, number: &Printed, i: usize) -> Result<usize, StudyError> {
    let key = format!("fit.printed[{i}].at");
    let mut index = Vec::new();
    for (pin, axis) in pins(file, &number.at, &key)?.into_iter().zip(&file.study.axis) {
        index.push(match pin.as_deref() {
            Some([one]) => *one,
            None if axis.values.len() == 1 => 0,
            _ => {
                let message = format!("axis `{}` is left open", axis.name);
                let accepted: Vec<String> = (0..axis.values.len())
                    .map(|v| format!("{} = \"{}\"", axis.name, axis.label(v)))
                    .collect();
                let accepted: Vec<&str> = accepted.iter().map(String::as_str).collect();
                return Err(file.refuse(&key, message, &accepted));
            }
        });
    }
    Ok(Space::of(file).flatten(&index))
}

fn known(file: &StudyFile, fit: &Fit, options: &[OptionSpec]) -> Result<Vec<(String, Choice)>, StudyError> {
    let names: Vec<&str> = options.iter().map(|o| o.axis.name.as_str()).collect();
    let mut all: Vec<(String, Choice)> = Vec::new();
    for (i, reading) in fit.known.iter().enumerate() {
        let key = format!("fit.known[{i}].choice");
        if all.iter().any(|(label, _)| *label == reading.label) {
            let message = format!("`{}` appears twice", reading.label);
            return Err(file.refuse(&format!("fit.known[{i}].label"), message, &[]));
        }
        let mut choice = vec![0; options.len()];
        for (name, value) in &reading.choice {
            let at = names.iter().position(|n| n == name);
            let at =
                at.ok_or_else(|| file.refuse(&key, format!("there is no free option `{name}`"), &names))?;
            let axis = &options[at].axis;
            choice[at] = axis.index_of(value).ok_or_else(|| {
                let labels: Vec<String> = (0..axis.values.len()).map(|v| axis.label(v)).collect();
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                file.refuse(&key, format!("option `{name}` has no value `{value}`"), &labels)
            })?;
        }
        all.push((reading.label.clone(), choice));
    }
    Ok(all)
}

/// The name of each choice that has one; of several the first.
pub(super) fn labels_of(known: &[(String, Choice)]) -> BTreeMap<Choice, String> {
    let mut labels = BTreeMap::new();
    for (label, choice) in known {
        labels.entry(choice.clone()).or_insert_with(|| label.clone());
    }
    labels
}
