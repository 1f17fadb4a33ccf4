//! A page in Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// Metric families in order, each with its help and its type.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a family called `skyhaul_` and `name`. The name ends in `_total` exactly if `kind` is `counter`. `help` is a
    /// sentence without its full stop.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: &str, help: &str) -> Family<'a> {
        debug_assert_eq!(name.ends_with("_total"), kind == "counter");
        let _ = writeln!(self.0, "# HELP skyhaul_{name} {help}.\n# TYPE skyhaul_{name} {kind}");
        Family { page: &mut self.0, name }
    }
    /// The text of the page.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

/// The samples of a family.
#[derive(Debug)]
pub struct Family<'a> {
    page: &'a mut String,
    name: &'a str,
}

impl Family<'_> {
    /// Adds a sample; `labels` are names and values.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.suffixed("", labels, value);
    }
    /// Adds a sample whose name is that of the family and `suffix`.
    pub fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.page, "skyhaul_{}{suffix}{labels} {value}", self.name);
    }
}

/// The value of a label as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
