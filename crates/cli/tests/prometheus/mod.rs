//! The text format of Prometheus, read strictly.
#![allow(unreachable_pub, missing_docs, reason = "a part of tests")]

use std::collections::{BTreeMap, BTreeSet};

/// Checks what `promtool check metrics` asks of a page: each family has help and type once, before its samples; counters, and
/// only counters, end in `_total`; only summaries have quantiles; no sample comes twice, and each has a number. Returns the number
/// of families.
pub fn in_order(page: &str) -> usize {
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeSet::new());
    let (mut helped, mut present) = (String::new(), String::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("words");
            assert!(!words.is_empty() && !kinds.contains_key(name), "{line}");
            helped = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(name, helped, "help comes first: {line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            kinds.insert(name.to_owned(), kind.to_owned());
            present = name.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            assert!(name == present || name == format!("{present}_count"), "{line} stands under {present}");
            assert!(value.parse::<f64>().is_ok() && samples.insert(series.to_owned()), "{line}");
            assert_eq!(
                series.contains("quantile=") || name.ends_with("_count"),
                kinds[&present] == "summary",
                "{line}"
            );
        }
    }
    assert!(samples.len() > 20, "{page}");
    kinds.len()
}
