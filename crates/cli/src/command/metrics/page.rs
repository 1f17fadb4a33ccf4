//! A page in Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// Metric families in order, each with its help and its type.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// Begins a family: its name ends in `_total` exactly if it is a counter.
    pub(crate) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        debug_assert_eq!(name.ends_with("_total"), kind == "counter");
        let _ = writeln!(self.0, "# HELP skyhaul_{name} {help}.\n# TYPE skyhaul_{name} {kind}");
        Family { page: &mut self.0, name }
    }
    /// What it says.
    pub(crate) fn text(self) -> String {
        self.0
    }
}

/// Samples of one name.
pub(crate) struct Family<'a> {
    page: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.suffixed("", labels, value);
    }
    /// A sample whose name extends that of the family.
    pub(crate) fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.page, "skyhaul_{}{suffix}{labels} {value}", self.name);
    }
}

/// The value of a label, escaped for quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
