//! The simulator as a WebAssembly module that imports nothing: no clock, no entropy, no host functions.
//!
//! One request, one answer, both JSON: [`answer`] is all there is, and runs natively as well, which is how the
//! golden test compares the two. A host writes the request into the module's memory and reads the answer from
//! it:
//!
//! ```js
//! const { memory, skyhaul_input, skyhaul_call, skyhaul_output } = instance.exports;
//! const request = new TextEncoder().encode(JSON.stringify({ run: { scenario: text, seed: 1 } }));
//! const input = skyhaul_input(request.length); // Before `memory.buffer`: the memory may grow.
//! new Uint8Array(memory.buffer, input, request.length).set(request);
//! const length = skyhaul_call();
//! const bytes = new Uint8Array(memory.buffer, skyhaul_output(), length);
//! const answer = JSON.parse(new TextDecoder().decode(bytes)); // { ok: … } or { error: … }
//! ```

#[cfg(target_arch = "wasm32")]
mod exports;

use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_base::Duration;
use skyhaul_scenario::{Document, Resolved, ScenarioError, no_files};
use skyhaul_sim::quantity::{Datum, FLOW, LINK, Quantity, RUN};
use skyhaul_sim::result::direction;
use skyhaul_sim::{FlowResult, LinkResult, RunResult};
use skyhaul_trace::{Digest, Series};

/// What a host may ask for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Request {
    /// What follows from a scenario.
    Check(Subject),
    /// Names of the presets.
    Presets {},
    /// A run.
    Run(Subject),
    /// The JSON Schema of scenarios.
    Schema {},
    /// Version of the module.
    Version {},
}

/// A scenario, changes to it, and a seed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    /// The text of a scenario file, or `preset:NAME`.
    scenario: String,
    /// `key=value`, as on the command line.
    #[serde(default)]
    set: Vec<String>,
    /// Instead of the scenario's own.
    seed: Option<u64>,
    /// Return what was sampled.
    #[serde(default)]
    series: bool,
}

/// Answers a request: `{"ok": …}`, or `{"error": {"message": …}}` with file, line and key where there are any.
#[must_use]
pub fn answer(request: &[u8]) -> String {
    let answer = match serde_json::from_slice(request) {
        Ok(request) => handle(&request),
        Err(e) => Err(json!({ "message": format!("not a request: {e}") })),
    };
    match answer {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    }
    .to_string()
}

fn handle(request: &Request) -> Result<Value, Value> {
    let refuse = |message: String| json!({ "message": message });
    match request {
        Request::Check(subject) => serde_json::to_value(skyhaul_scenario::check(&resolve(subject)?))
            .map_err(|e| refuse(e.to_string())),
        Request::Presets {} => Ok(skyhaul_scenario::preset::names().collect()),
        Request::Run(subject) => {
            let scenario = resolve(subject)?;
            let seed = subject.seed.unwrap_or(scenario.seed);
            let result =
                skyhaul_sim::run(&scenario, seed, Digest::default()).map_err(|e| refuse(e.to_string()))?;
            Ok(measured(&scenario, seed, &result, subject.series))
        }
        Request::Schema {} => Ok(skyhaul_scenario::scenario_schema()),
        Request::Version {} => Ok(env!("CARGO_PKG_VERSION").into()),
    }
}

fn resolve(subject: &Subject) -> Result<Resolved, Value> {
    let words = |e: ScenarioError| json!({ "message": e.to_string(), "file": e.file, "line": e.line, "key": e.key, "what": e.message });
    let text = &subject.scenario;
    let document = if text.starts_with(skyhaul_scenario::preset::PREFIX) && !text.contains('\n') {
        Document::open(text, &no_files)
    } else {
        Document::parse("scenario", text, &no_files)
    };
    let mut document = document.map_err(words)?;
    for set in &subject.set {
        document.set(set).map_err(words)?;
    }
    document.resolve().map_err(words)
}

fn measured(scenario: &Resolved, seed: u64, result: &RunResult, series: bool) -> Value {
    let duration = result.duration;
    let flow = |f: &FlowResult| {
        let keys = [("group", json!(f.group)), ("index", json!(f.index))];
        object(keys, FLOW, f, duration)
    };
    let link = |l: &LinkResult| {
        let keys = [("link", json!(l.name)), ("direction", json!(direction(l.forward)))];
        object(keys, LINK, l, duration)
    };
    let keys = [
        ("title", json!(scenario.title)),
        ("scenario", json!(scenario.hash())),
        ("seed", json!(seed)),
        ("digest", json!(result.digest.map(|d| format!("{d:016x}")))),
    ];
    let mut value = object(keys, RUN, result, duration);
    value["flows"] = result.flows.iter().map(flow).collect();
    value["links"] = result.links.iter().map(link).collect();
    if series {
        value["series"] =
            json!({ "flows": columns(&result.series.flows), "links": columns(&result.series.links) });
    }
    value
}

/// What a subject is, and what was measured of it.
fn object<T, const N: usize>(
    keys: [(&str, Value); N],
    list: &[Quantity<T>],
    of: &T,
    duration: Duration,
) -> Value {
    let value = |x| match x {
        Datum::Count(n) => json!(n),
        Datum::Real(x) => json!(x),
        Datum::Missing => Value::Null,
    };
    let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
    keys.chain(list.iter().map(|q| (q.column(), value(q.value(of, duration))))).collect()
}

fn columns(s: &Series) -> Value {
    let mut value = json!({
        "time_s": s.time.iter().map(|t| t.as_secs_f64()).collect::<Vec<_>>(),
        "entity": s.entity,
    });
    for (name, column) in s.names.iter().zip(&s.columns) {
        value[*name] = json!(column);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Value) -> Value {
        serde_json::from_str(&answer(request.to_string().as_bytes())).expect("JSON")
    }

    #[test]
    fn answers_and_refuses() {
        let run = ask(
            &json!({ "run": { "scenario": "preset:peach-geo", "set": ["duration=10s"], "series": true } }),
        );
        assert_eq!(run["ok"]["flows"].as_array().map(Vec::len), Some(20));
        assert!(run["ok"]["series"]["flows"]["cwnd"].as_array().is_some_and(|c| !c.is_empty()));
        assert!(
            ask(&json!({ "presets": {} }))["ok"].as_array().is_some_and(|p| p.contains(&json!("peach-geo")))
        );
        let bad = ask(&json!({ "check": { "scenario": "schema = 1\ncolour = 3\n" } }));
        assert_eq!((&bad["error"]["line"], &bad["error"]["key"]), (&json!(2), &json!("colour")));
        assert!(ask(&json!({ "dance": {} }))["error"]["message"].is_string());
        assert!(answer(b"\xff").contains("not a request"));
    }
}
