//! Scenarios from text, and what a run of them gives.

use skyhaul_scenario::resolved::Resolved;
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{ChainResult, FlowResult, RunResult, run};
use skyhaul_trace::Null;

/// A scenario's text with some of its keys set.
pub(crate) fn resolve(text: &str, sets: &[&str]) -> Resolved {
    let mut d = Document::parse("t.toml", text, &no_files).expect("TOML");
    for set in sets {
        d.set(set).unwrap_or_else(|e| panic!("{e}"));
    }
    d.resolve().unwrap_or_else(|e| panic!("{e}"))
}
/// What a run of it gives.
pub(crate) fn ran(text: &str, sets: &[&str], seed: u64) -> RunResult {
    run(&resolve(text, sets), seed, Null).expect("a world")
}
/// The only flow of the group "bulk".
pub(crate) fn bulk(result: &RunResult) -> &FlowResult {
    result.group("bulk").next().expect("a flow")
}
/// That flow, and what its chain of connections gave.
pub(crate) fn chained(result: &RunResult) -> (&FlowResult, ChainResult) {
    let flow = bulk(result);
    (flow, *flow.chain.as_deref().expect("a chain"))
}
