//! A case: its heading and its lines.

use super::conditions::Conditions;
use super::error::SyntaxError;
use super::step::{Step, Targets};
use super::target::TargetKind;

/// What a case expects of our endpoint or of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// To do what the document says.
    Conforms,
    /// To do something else, in lines of its own, for this reason.
    Differs(String),
    /// Nothing: the case does not run on it, for this reason.
    NotRun(String),
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// What the case shows, as a sentence.
    pub title: String,
    /// The documents that say so.
    pub source: String,
    /// How the endpoint under test is configured.
    pub conditions: Conditions,
    /// What is expected of our endpoint.
    pub ours: Expectation,
    /// What is expected of the kernel.
    pub linux: Expectation,
    /// Why it runs in virtual time only.
    pub slow: Option<String>,
    /// Its lines.
    pub steps: Vec<Step>,
}

impl Case {
    /// Whether the target takes part.
    #[must_use]
    pub fn is_for(&self, kind: TargetKind) -> bool {
        let expectation = if kind == TargetKind::Linux { &self.linux } else { &self.ours };
        let runs = !matches!(expectation, Expectation::NotRun(_));
        let quick = kind.is_virtual() || self.slow.is_none();
        runs && quick
            && (kind != TargetKind::Core || !self.steps.iter().any(Step::needs_bytes) && !self.needs_a_host())
    }
    /// Whether the case needs a host: an endpoint has neither addresses nor a backlog.
    fn needs_a_host(&self) -> bool {
        self.conditions.v6 || self.conditions.backlog.is_some()
    }
}

/// Reads the cases of a file.
///
/// # Errors
/// The first line that makes no sense.
pub fn parse(file: &str, text: &str) -> Result<Vec<Case>, SyntaxError> {
    let mut all: Vec<Case> = Vec::new();
    for (n, raw) in text.lines().enumerate() {
        let line = n + 1;
        let wrong = |what: String| SyntaxError { file: file.to_owned(), line, what };
        let text = raw.split_once(" #").map_or(raw, |(text, _)| text).trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(heading) = text.strip_prefix("case ") {
            let (name, title) =
                heading.split_once(':').ok_or_else(|| wrong("a heading is case NAME: TITLE".into()))?;
            let name = name.trim();
            if all.iter().any(|c| c.name == name) {
                return Err(wrong(format!("there is another case {name:?}")));
            }
            all.push(Case::begin(file, name, title.trim()));
            continue;
        }
        let Some(case) = all.last_mut() else {
            return Err(wrong("the first line is case NAME: TITLE".into()));
        };
        case.take(line, text).map_err(wrong)?;
    }
    for case in &all {
        case.check().map_err(|what| SyntaxError {
            file: file.to_owned(),
            line: 0,
            what: format!("{}: {what}", case.name),
        })?;
    }
    Ok(all)
}

impl Case {
    fn begin(file: &str, name: &str, title: &str) -> Self {
        Self {
            file: file.to_owned(),
            name: name.to_owned(),
            title: title.to_owned(),
            source: String::new(),
            conditions: Conditions::default(),
            ours: Expectation::Conforms,
            linux: Expectation::Conforms,
            slow: None,
            steps: Vec::new(),
        }
    }

    fn take(&mut self, line: usize, text: &str) -> Result<(), String> {
        let after = |prefix: &str| text.strip_prefix(prefix).map(|rest| rest.trim().to_owned());
        if let Some(source) = after("source ") {
            self.source = source;
        } else if let Some(conditions) = after("given ") {
            conditions.split(',').try_for_each(|c| self.conditions.take(c.trim()))?;
        } else if let Some(why) = after("ours differs:") {
            self.ours = Expectation::Differs(why);
        } else if let Some(why) = after("linux differs:") {
            self.linux = Expectation::Differs(why);
        } else if let Some(why) = after("only ours:") {
            self.linux = Expectation::NotRun(why);
        } else if let Some(why) = after("only linux:") {
            self.ours = Expectation::NotRun(why);
        } else if let Some(why) = after("slow:") {
            self.slow = Some(why);
        } else {
            self.steps.extend(Step::parse(line, text)?);
        }
        Ok(())
    }

    /// Checks that the heading agrees with the lines.
    fn check(&self) -> Result<(), String> {
        if self.source.is_empty() || self.title.is_empty() || self.steps.is_empty() {
            return Err("a case has a title, a source and lines".into());
        }
        let own = self.steps.iter().any(|s| s.targets != Targets::All);
        let differs =
            matches!(self.ours, Expectation::Differs(_)) || matches!(self.linux, Expectation::Differs(_));
        if own != differs {
            let what = "a case with lines for one target needs \"ours differs:\" or \"linux differs:\" with the reason";
            return Err(format!("{what}, and vice versa"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str =
        "case a: title\n source RFC 1\n given sack off, mtu 900\n\n listen # a remark\n +1s > S 0:0\n";

    #[test]
    fn cases_are_read() {
        let all = parse("f", CASE).expect("a case");
        assert_eq!((all[0].name.as_str(), all[0].conditions.sack, all[0].conditions.mtu), ("a", false, 900));
        assert_eq!((all[0].steps.len(), all[0].steps[1].line), (2, 6));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (text, line, part) in [
            ("listen\n", 1, "the first line"),
            ("case a: t\n source x\n foo\n", 3, "no line is written"),
            ("case a: t\n source x\n given tea hot\n", 3, "no condition"),
            ("case a: t\n listen\n", 0, "a source"),
            ("case a: t\n source x\n ours| listen\n", 0, "with the reason"),
            ("case a: t\n source x\n linux differs: y\n listen\n", 0, "with the reason"),
            ("case a: t\n source x\n +5 > S 0:0\n", 3, "with its unit"),
            ("case a: t\n source x\n listen\n case a: t\n", 4, "another case"),
            ("case a: t\n source x\n listen\ncase a : t\n source x\n listen\n", 4, "another case"),
            ("case a\n", 1, "case NAME: TITLE"),
        ] {
            let e = parse("f", text).expect_err(text);
            assert!(e.line == line && e.what.contains(part), "{e}");
        }
    }
}
