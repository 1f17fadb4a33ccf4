//! The control under test: studies of an evaluation name it by a placeholder, which is replaced before planning.

use crate::model::raw::label_of;
use crate::model::{AxisValue, OneOrMany, Raw, Settings, StudyFile};

/// What a study writes in the place of the control under test, where a control is expected.
pub const CANDIDATE: &str = "candidate";

impl StudyFile {
    /// Puts a control (a name, or a table with `name` and options) wherever the study names the
    /// [candidate](CANDIDATE): in keys called `cc` of the scenario, of settings, of axes and of the options of a search.
    /// Labels stay, so that results for different controls have the same names; [`called`] translates them for
    /// readers. Returns how often the candidate was named.
    pub fn test_control(&mut self, control: &Raw) -> usize {
        let study = &mut self.study;
        let mut named = inside(&mut study.scenario, control) + settings(&mut study.set, control);
        for axis in &mut study.axis {
            named += values(&axis.path, &mut axis.values, &axis.labels, control);
        }
        for option in study.fit.iter_mut().flat_map(|fit| &mut fit.option) {
            named += values(&option.path, &mut option.values, &option.labels, control);
        }
        for reading in &mut study.reading {
            named += settings(&mut reading.set, control);
        }
        if let Some(quick) = &mut study.quick {
            named += settings(&mut quick.set, control);
        }
        named
    }
}

/// A label as texts for readers have it: the name of the control under test, if there is one, in the place of the candidate.
#[must_use]
pub fn called<'a>(label: &'a str, candidate: Option<&'a str>) -> &'a str {
    if label == CANDIDATE { candidate.unwrap_or(label) } else { label }
}

fn is_control(path: &str) -> bool {
    path.rsplit('.').next() == Some("cc")
}

fn is_candidate(value: &Raw) -> bool {
    value.as_str() == Some(CANDIDATE)
}

/// Within the values of an axis, or of an option of a search.
fn values(path: &OneOrMany, values: &mut [AxisValue], labels: &[String], control: &Raw) -> usize {
    let of_control = path.0.iter().any(|p| is_control(p));
    let mut named = 0;
    for (i, AxisValue { value, set, label, .. }) in values.iter_mut().enumerate() {
        named += settings(set, control);
        let Some(v) = value else { continue };
        let before = labels.get(i).cloned().unwrap_or_else(|| label_of(v));
        let replaced = if of_control && is_candidate(v) {
            *v = control.clone();
            1
        } else {
            inside(v, control)
        };
        if replaced > 0 {
            label.get_or_insert(before);
        }
        named += replaced;
    }
    named
}

fn settings(set: &mut Settings, control: &Raw) -> usize {
    set.0.iter_mut().map(|(path, value)| replace(path, value, control)).sum()
}

fn replace(key: &str, value: &mut Raw, control: &Raw) -> usize {
    if is_control(key) && is_candidate(value) {
        *value = control.clone();
        return 1;
    }
    inside(value, control)
}

/// Within a table; a list holds no flows.
fn inside(value: &mut Raw, control: &Raw) -> usize {
    let Raw::Table(table) = value else { return 0 };
    table.iter_mut().map(|(key, value)| replace(key, value, control)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn options_of_a_search_have_the_control_too_and_labels_of_an_axis_stay() {
        let text = r#"
            schema = 1
            title = "t"
            scenario = "preset:peach-geo"
            [[axis]]
            name = "cc"
            path = "flows.bulk.cc"
            values = ["candidate", "newreno"]
            labels = ["ours", "NewReno"]
            [[fit.option]]
            name = "own"
            path = "flows.own.cc"
            values = ["candidate", { set = { "flows.b.cc" = "candidate" } }]
        "#;
        let mut file = StudyFile::parse(text, Path::new("t.toml")).expect("a study");
        assert_eq!(file.test_control(&"sack".into()), 3);
        assert_eq!(file.study.axis[0].label(0), "ours");
        let option = file.study.fit.expect("a search").option.remove(0);
        assert_eq!(option.values[0].value, Some("sack".into()));
        assert_eq!(option.values[1].set.0["flows.b.cc"], Raw::from("sack"));
        assert_eq!(option.axis().label(0), "candidate");
    }

    #[test]
    fn the_control_stands_wherever_the_candidate_was_named() {
        let text = r#"
            schema = 1
            title = "candidate"
            set = { "flows.own.cc" = "candidate" }
            scenario = { flows = { a = { cc = "candidate", app = "candidate" } } }
            [[axis]]
            name = "cc"
            path = "flows.b.cc"
            values = ["candidate", "newreno"]
            [[axis]]
            name = "beside"
            values = [{ set = { "flows.c" = { cc = "candidate" } }, label = "candidate" }]
        "#;
        let mut file = StudyFile::parse(text, Path::new("t.toml")).expect("a study");
        let control: Raw =
            toml::from_str::<toml::Table>("name = \"sack\"\nmax-burst = 4").expect("a table").into();
        assert_eq!(file.test_control(&control), 4);
        let study = &file.study;
        assert_eq!(study.title, "candidate");
        assert_eq!(study.set.0["flows.own.cc"], control);
        assert_eq!(study.scenario["flows"]["a"]["cc"], control);
        assert_eq!(study.scenario["flows"]["a"]["app"].as_str(), Some("candidate"));
        assert_eq!(study.axis[0].label(0), "candidate");
        assert_eq!(study.axis[0].values[0].value.as_ref(), Some(&control));
        assert_eq!(study.axis[1].values[0].set.0["flows.c"]["cc"], control);
        assert_eq!(file.test_control(&control), 0, "it is named no more");
        assert_eq!(called("candidate", None), "candidate");
        assert_eq!(["candidate", "newreno"].map(|l| called(l, Some("sack"))), ["sack", "newreno"]);
    }
}
