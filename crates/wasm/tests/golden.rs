//! Runs whose every event is recorded as a hash in `golden/digests.json`. The same file is checked under
//! WebAssembly by `tools/wasm-golden.mjs`, so that both give the same results bit for bit.
//!
//! A change of results is written down with `SKYHAUL_BLESS=1 cargo test -p skyhaul-wasm --test golden`. A few quantities stand
//! beside each digest, so that the difference of the file shows what moved.

use serde_json::{Map, Value, json};
use std::path::Path;

/// Counts of flows; the file has their sums over the flows.
const SUMS: [&str; 7] =
    ["bytes_acked", "segments_sent", "retransmissions", "timeouts", "probes_sent", "lost_error", "lost_full"];

/// The quantities of a run that stand beside its digest.
fn quantities(run: &Value) -> Value {
    let flows = || run["flows"].as_array().expect("a list").iter();
    let sum = |name: &str| flows().map(|f| f[name].as_u64().expect("a count")).sum::<u64>();
    let sums = SUMS.iter().map(|name| ((*name).to_owned(), json!(sum(name))));
    sums.chain([("events".to_owned(), run["events"].clone())]).collect::<Map<_, _>>().into()
}

#[test]
fn native_runs_give_the_recorded_digests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = folder.join("digests.json");
    let text = std::fs::read_to_string(&file).expect("digests.json");
    let mut golden: Value = serde_json::from_str(&text).expect("JSON");
    let bless = std::env::var_os("SKYHAUL_BLESS").is_some();
    let mut wrong = Vec::new();
    for run in golden["runs"].as_array_mut().expect("a list") {
        let scenario = run["scenario"].as_str().expect("a name").to_owned();
        let text = if scenario.starts_with("preset:") {
            scenario.clone()
        } else {
            std::fs::read_to_string(folder.join(&scenario)).expect("a scenario beside this list")
        };
        let request = json!({ "run": { "scenario": text, "set": run["set"], "seed": run["seed"] } });
        let answer: Value =
            serde_json::from_str(&skyhaul_wasm::answer(request.to_string().as_bytes())).expect("JSON");
        assert!(answer["ok"]["digest"].is_string(), "{scenario}: {answer}");
        let now = [("digest", answer["ok"]["digest"].clone()), ("quantities", quantities(&answer["ok"]))];
        for (what, now) in now {
            if now != run[what] {
                wrong.push(format!("{scenario} {}:\n  {now}, recorded\n  {}", run["set"], run[what]));
                run[what] = now;
            }
        }
    }
    if bless {
        std::fs::write(&file, format!("{golden:#}\n")).expect("digests.json can be written");
    } else {
        assert!(wrong.is_empty(), "results changed:\n{}", wrong.join("\n"));
    }
}
