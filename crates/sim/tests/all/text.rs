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
/// A scenario's text as it is.
pub(crate) fn resolved(text: &str) -> Resolved {
    resolve(text, &[])
}
/// Why a scenario's text is refused.
pub(crate) fn refusal(text: &str) -> String {
    let document = Document::parse("t.toml", text, &no_files);
    document.and_then(|d| d.resolve()).expect_err("a refusal").to_string()
}
/// The file that a result is stored with gives the same scenario again.
pub(crate) fn assert_comes_back_from_its_file(s: &Resolved) {
    let again = resolved(&s.to_toml());
    assert_eq!((again.hash(), &again), (s.hash(), s));
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

/// A scenario whose gateways split a path: 100 Mbit/s and 5 ms on the ground at both ends (`near`, `far`), and
/// 10 Mbit/s over the satellite (`sat`), with this delay each way and this queue; and the rest of the scenario.
macro_rules! split_path {
    (duration: $duration:literal, delay: $delay:literal, queue: $queue:literal, $rest:literal) => {
        concat!(
            "duration = \"",
            $duration,
            "\"\n[links.near]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { limit = \"1000 packets\" }",
            "\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"",
            $delay,
            "\"\nqueue = { limit = \"",
            $queue,
            "\" }\n[links.far]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { limit = \"1000 packets\" }\n",
            $rest
        )
    };
}
pub(crate) use split_path;
