//! The cases as a table for readers.

use super::case::{Case, Expectation};
use std::fmt::Write as _;

/// For each file, in Markdown: the number of cases, and a line for each case in which a side differs. Cases that a side does
/// not run are only counted.
#[must_use]
pub fn markdown(files: &[(String, Vec<Case>)]) -> String {
    let mut out = String::new();
    for file in files {
        let (total, [ours, linux]) = count(std::slice::from_ref(file));
        let (ours, linux) = (exceptions("Skyhaul", ours), exceptions("Linux", linux));
        let _ = write!(out, "\n### {}\n\n{total} cases.{ours}{linux}\n", file.0);
        let differ = |c: &&Case| [&c.ours, &of_linux(c)].iter().any(|c| matches!(c, Expectation::Differs(_)));
        let differing: Vec<&Case> = file.1.iter().filter(differ).collect();
        if !differing.is_empty() {
            out.push('\n');
        }
        for c in differing {
            let (name, title, source) = (&c.name, sentence(&c.title), &c.source);
            let sides = [side("Skyhaul", &c.ours), side("Linux", &of_linux(c))].concat();
            let _ = writeln!(out, "* {title} (`{name}`, {source}).{sides}");
        }
    }
    out
}

/// In how many cases a side differs, and how many it does not run; nothing if it conforms in all.
fn exceptions(name: &str, [_, differs, not_run]: [usize; 3]) -> String {
    match (differs, not_run) {
        (0, 0) => String::new(),
        (n, 0) => format!(" {name} differs in {n}."),
        (0, n) => format!(" {name} does not run {n}."),
        (d, n) => format!(" {name} differs in {d}, does not run {n}."),
    }
}

/// What is expected of the kernel. A slow case runs in virtual time only, which a kernel does not have.
fn of_linux(c: &Case) -> Expectation {
    match (&c.linux, &c.slow) {
        (Expectation::Conforms | Expectation::Differs(_), Some(why)) => Expectation::NotRun(why.clone()),
        (expectation, _) => expectation.clone(),
    }
}

/// What a side does instead; nothing if it conforms.
fn side(name: &str, c: &Expectation) -> String {
    match c {
        Expectation::Conforms => String::new(),
        Expectation::Differs(why) => format!(" **{name}**: {why}."),
        Expectation::NotRun(why) => format!(" {name} does not run it: {why}."),
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// The number of cases; then, for our endpoint and for the kernel, how many it conforms to, differs in, and does not run.
#[must_use]
pub fn count(files: &[(String, Vec<Case>)]) -> (usize, [[usize; 3]; 2]) {
    let mut n = [[0; 3]; 2];
    let all = files.iter().flat_map(|(_, cases)| cases);
    let total = all.clone().count();
    for c in all {
        for (expectation, n) in [&c.ours, &of_linux(c)].into_iter().zip(&mut n) {
            n[match expectation {
                Expectation::Conforms => 0,
                Expectation::Differs(_) => 1,
                Expectation::NotRun(_) => 2,
            }] += 1;
        }
    }
    (total, n)
}
