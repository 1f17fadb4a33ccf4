//! Cases of a scenario: one, or one per combination of comma-separated values.

use crate::error::LabError;
use skyhaul_scenario::{Document, LoadError, Resolved};
pub use skyhaul_study::files::load;
use skyhaul_study::files::{STDIN, read_stdin};
use skyhaul_study::io_words;

/// One run to make.
#[derive(Clone, Debug)]
pub struct Case {
    /// The values that `--set` chose for this case among several: keys and values as written.
    pub choice: Vec<(String, String)>,
    /// The scenario.
    pub scenario: Resolved,
    /// The seed.
    pub seed: u64,
}

impl Case {
    /// Label of the choice.
    #[must_use]
    pub fn label(&self) -> String {
        self.choice.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
    }
}

/// Opens a scenario (`-` is standard input) and resolves all combinations of the values in `sets`; commas outside
/// quotes and brackets separate several values of a key. Nothing runs before everything is resolved.
///
/// # Errors
/// One line with the place and the problem.
pub fn resolve(path: &str, sets: &[String], seed: Option<u64>) -> Result<Vec<Case>, LabError> {
    let named = |file: &str| match file {
        STDIN if path == STDIN => read_stdin().map_err(|e| LoadError::System(io_words(&e))),
        _ => load(file),
    };
    let document = Document::open(path, &named)?;
    let mut open: Vec<(Document, Vec<(String, String)>)> = vec![(document, Vec::new())];
    for set in sets {
        let (key, values) = match set.split_once('=') {
            Some((key, values)) => (key.trim(), split(values)),
            None => ("", vec![]),
        };
        let assignments: Vec<(String, Option<&str>)> = match values.len() {
            0 | 1 => vec![(set.clone(), None)],
            _ => values.iter().map(|v| (format!("{key}={v}"), Some(*v))).collect(),
        };
        if open.len().saturating_mul(assignments.len()) > MAX_CASES {
            return Err(LabError::TooManyCases { most: MAX_CASES });
        }
        let mut next = Vec::new();
        for (document, choice) in &open {
            for (assignment, value) in &assignments {
                let (mut document, mut choice) = (document.clone(), choice.clone());
                document.set(assignment)?;
                choice.extend(value.map(|v| (key.to_owned(), v.to_owned())));
                next.push((document, choice));
            }
        }
        open = next;
    }
    open.into_iter()
        .map(|(mut document, choice)| {
            document.read_traces(&load)?;
            let scenario = document.resolve()?;
            let seed = seed.unwrap_or(scenario.seed);
            Ok(Case { choice, scenario, seed })
        })
        .collect()
}

/// Largest number of combinations of one command.
const MAX_CASES: usize = 1000;

/// A value of a key, as `--set` takes it: TOML, in which quotes around words are optional.
#[must_use]
pub fn value(text: &str) -> toml::Value {
    text.parse().unwrap_or_else(|_| toml::Value::String(text.into()))
}

/// Splits at commas that are not inside quotes or brackets.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut from, mut parts) = (0i32, None, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(text[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_and_brackets_separate_nothing() {
        assert_eq!(split("sack,peach"), ["sack", "peach"]);
        assert_eq!(split(" 1e-3 , 1e-2 "), ["1e-3", "1e-2"]);
        assert_eq!(split("'a, b',c"), ["'a, b'", "c"]);
        assert_eq!(
            split("{ name = 'peach', start = 'slow' },sack"),
            ["{ name = 'peach', start = 'slow' }", "sack"]
        );
        assert_eq!(split("['a', 'b']"), ["['a', 'b']"]);
    }

    #[test]
    fn every_combination_is_a_case() {
        let sets = ["flows.bulk.cc=sack,peach".to_owned(), "links.sat.error.p=0,1e-3,1e-2".to_owned()];
        let cases = resolve("preset:peach-geo", &sets, Some(7)).expect("good settings");
        assert_eq!(cases.len(), 6);
        assert_eq!(cases[5].label(), "flows.bulk.cc=peach links.sat.error.p=1e-2");
        assert!(cases.iter().all(|c| c.seed == 7));
        assert_eq!(cases[0].scenario.flows[0].cc.name(), "sack");
    }
}
