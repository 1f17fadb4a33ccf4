//! Profiles: how much of a study runs.

use crate::error::StudyError;
use crate::metric::PlannedMetric;
use crate::model::{Profile, StudyFile};
use crate::runner::Setting;
use crate::space::{Space, pins};

impl Profile {
    /// The profile's addition to the hash of a study; empty for the whole study.
    pub(crate) const fn salt(self) -> &'static str {
        match self {
            Self::Full => "",
            Self::Quick => "\0quick",
        }
    }
}

/// Reduces a study to a profile; returns the remaining values of each axis (`None`: all).
pub(crate) fn apply(file: &mut StudyFile, profile: Profile) -> Result<Vec<Option<Vec<usize>>>, StudyError> {
    let quick = file.study.quick.clone().unwrap_or_default();
    let only = pins(file, &quick.only, "quick.only")?;
    for axis in &file.study.axis {
        if let Some(path) = axis.path.0.iter().find(|p| quick.set.0.contains_key(*p)) {
            let message = format!("axis `{}` varies `{path}`", axis.name);
            let fix = format!("only = {{ {} = … }}", axis.name);
            return Err(file.refuse("quick.set", message, &[&fix]));
        }
    }
    if profile == Profile::Full {
        return Ok(vec![None; file.study.axis.len()]);
    }
    file.study.seeds.count = file.study.seeds.count.min(quick.seeds);
    if !quick.readings {
        file.study.reading.clear();
    }
    Ok(only)
}

/// The settings of a profile, which come last.
pub(crate) fn settings(file: &StudyFile, profile: Profile) -> Vec<Setting> {
    let quick = file.study.quick.iter().filter(|_| profile == Profile::Quick);
    let one = |(path, value): (&String, &toml::Value)| Setting {
        path: path.clone(),
        value: value.clone(),
        origin: "quick.set".to_owned(),
    };
    quick.flat_map(|q| q.set.0.iter()).map(one).collect()
}

/// Whether a combination is among the remaining ones.
pub(crate) fn within(index: &[usize], only: &[Option<Vec<usize>>]) -> bool {
    index.iter().zip(only).all(|(i, only)| only.as_ref().is_none_or(|o| o.contains(i)))
}

/// All combinations that a metric at one of them needs: itself, and its bases.
pub(crate) fn needed(file: &StudyFile, metrics: &[PlannedMetric], metric: usize, at: usize) -> Vec<usize> {
    let m = &metrics[metric];
    let space = Space::of(file);
    let mut places = vec![at];
    if !m.base.is_empty() {
        let mut index = space.unflatten(at);
        for (i, pin) in index.iter_mut().zip(&m.base) {
            *i = pin.unwrap_or(*i);
        }
        places.push(space.flatten(&index));
    }
    let earlier = |name: &String| metrics[..metric].iter().position(|m| m.name == *name);
    let used: Vec<usize> = m.needs.iter().filter_map(earlier).collect();
    let deeper = places.iter().flat_map(|p| used.iter().flat_map(|u| needed(file, metrics, *u, *p)));
    let mut all: Vec<usize> = deeper.collect();
    all.extend(places);
    all.sort_unstable();
    all.dedup();
    all
}
