//! The control under test: studies of an evaluation name it by a placeholder, which is replaced before planning.

use crate::model::{AxisValue, Raw, Settings, StudyFile};

/// What a study writes in the place of the control under test, where a control is expected.
pub const CANDIDATE: &str = "candidate";

impl StudyFile {
    /// Puts a control (a name, or a table with `name` and options) wherever the study names the
    /// [candidate](CANDIDATE): in keys called `cc` of the scenario, of settings, and of axes. Labels stay, so that
    /// results for different controls have the same names; [`called`] translates them for readers. Returns how
    /// often it was named.
    pub fn test_control(&mut self, control: &Raw) -> usize {
        let study = &mut self.study;
        let mut named = inside(&mut study.scenario, control) + settings(&mut study.set, control);
        for axis in &mut study.axis {
            let of_control = axis.path.0.iter().any(|p| is_control(p));
            for AxisValue { value, set, label, .. } in &mut axis.values {
                named += settings(set, control);
                if let Some(v) = value {
                    if of_control && is_candidate(v) {
                        label.get_or_insert_with(|| CANDIDATE.to_owned());
                        *v = control.clone();
                        named += 1;
                    } else {
                        named += inside(v, control);
                    }
                }
            }
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
