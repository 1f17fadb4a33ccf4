//! The simulator as a WebAssembly module without a clock and without entropy. Its only imports lead to congestion controls that
//! the host writes (module `own`); a host that writes none never sees them called.
//!
//! A request and its answer are JSON. [`answer`] is the whole interface; it runs natively as well, and the golden
//! test compares the two. A host writes the request into the module's memory and reads the answer from it:
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

mod crossing;
#[cfg(target_arch = "wasm32")]
mod exports;
#[cfg(target_arch = "wasm32")]
mod imports;
mod losses;
#[cfg_attr(
    not(any(test, target_arch = "wasm32")),
    expect(dead_code, reason = "only a host of WebAssembly asks questions")
)]
mod own;

use crossing::Crossings;
use losses::Losses;
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::{Document, Resolved, ScenarioError, no_files};
use skyhaul_sim::quantity::{Datum, FLOW, LINK, Quantity, RUN};
use skyhaul_sim::result::direction;
use skyhaul_sim::{FlowResult, LinkResult, RunResult, Sim};
use skyhaul_trace::{Digest, Series};

/// The requests of a host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Request {
    /// The properties derived from a scenario.
    Check(ScenarioRequest),
    /// The segments of one flow in a part of a run.
    Crossings(CrossingsRequest),
    /// The presets with titles and texts.
    Library {},
    /// Names of the presets.
    Presets {},
    /// A run.
    Run(ScenarioRequest),
    /// The JSON Schema of scenarios.
    Schema {},
    /// Version of the module.
    Version {},
}

/// A scenario, changes to it, and a seed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioRequest {
    /// The text of a scenario file, or `preset:NAME`.
    scenario: String,
    /// `key=value`, as on the command line.
    #[serde(default)]
    set: Vec<String>,
    /// The seed, instead of the scenario's.
    seed: Option<u64>,
    /// Return the series.
    #[serde(default)]
    series: bool,
    /// Return losses by cause, counted in this number of intervals of equal length.
    intervals: Option<u32>,
    /// Names of controls that the host provides: a scenario uses one as `user:NAME`.
    #[serde(default)]
    own: Vec<String>,
}

/// Asks for the segments of a flow that were sent in an interval of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CrossingsRequest {
    /// The run.
    of: ScenarioRequest,
    /// The flow, numbered as in the result.
    flow: u32,
    /// Segments sent from this time on, in seconds.
    from: f64,
    /// Segments sent up to this time, in seconds.
    to: f64,
    /// End of the run, in seconds; segments still in flight then have no end.
    until: f64,
}

/// Answers a request: `{"ok": …}`, or `{"error": {"message": …}}` with file, line and key where there are any.
///
/// # Panics
/// If a scenario uses a control of the host outside of WebAssembly: there is no host.
#[must_use]
pub fn answer(request: &[u8]) -> String {
    #[cfg(target_arch = "wasm32")]
    let host = imports::ask;
    #[cfg(not(target_arch = "wasm32"))]
    let host = |_: &str| panic!("there is no host that provides controls");
    answer_with(request, host)
}

/// Answers a question that the host has while it handles a message of one of its controls.
#[cfg(any(test, target_arch = "wasm32"))]
fn question(question: &[u8]) -> String {
    match serde_json::from_slice(question) {
        Ok(question) => own::answer(question).to_string(),
        Err(e) => json!({ "message": format!("not a question: {e}") }).to_string(),
    }
}

fn answer_with(request: &[u8], host: own::Host) -> String {
    let answer = match serde_json::from_slice(request) {
        Ok(request) => handle(&request, host),
        Err(e) => Err(json!({ "message": format!("not a request: {e}") })),
    };
    match answer {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    }
    .to_string()
}

fn handle(request: &Request, host: own::Host) -> Result<Value, Value> {
    let refuse = |message: String| json!({ "message": message });
    match request {
        Request::Check(subject) => serde_json::to_value(skyhaul_scenario::check(&resolve(subject)?))
            .map_err(|e| refuse(e.to_string())),
        Request::Crossings(request) => {
            let scenario = resolve(&request.of)?;
            let seed = request.of.seed.unwrap_or(scenario.seed);
            let at =
                |seconds: f64| Instant::from_secs_f64(seconds.clamp(0.0, scenario.duration.as_secs_f64()));
            let crossings = Crossings::new(request.flow, at(request.from), at(request.to));
            let controls = own::controls(&request.of.own, host);
            let mut sim = Sim::with_controls(&limited(&scenario), seed, crossings, &controls)
                .map_err(|e| refuse(e.to_string()))?;
            sim.run_until(at(request.until));
            Ok(sim.recorder().to_json())
        }
        Request::Library {} => Ok(skyhaul_scenario::preset::names()
            .map(|name| {
                let (title, text) =
                    (skyhaul_scenario::preset::title(name), skyhaul_scenario::preset::text(name));
                json!({ "name": name, "title": title, "text": text })
            })
            .collect()),
        Request::Presets {} => Ok(skyhaul_scenario::preset::names().collect()),
        Request::Run(subject) => {
            let scenario = resolve(subject)?;
            let seed = subject.seed.unwrap_or(scenario.seed);
            let controls = own::controls(&subject.own, host);
            let Some(intervals) = subject.intervals else {
                let result = skyhaul_sim::run_with(&limited(&scenario), seed, Digest::default(), &controls);
                let result = result.map_err(|e| refuse(e.to_string()))?;
                return Ok(measured(&scenario, seed, &result, subject.series));
            };
            let mut losses = Losses::new(scenario.duration, intervals);
            let recorder = (Digest::default(), &mut losses);
            let result = skyhaul_sim::run_with(&limited(&scenario), seed, recorder, &controls)
                .map_err(|e| refuse(e.to_string()))?;
            let mut value = measured(&scenario, seed, &result, subject.series);
            value["over_time"] = losses.to_json();
            Ok(value)
        }
        Request::Schema {} => Ok(skyhaul_scenario::scenario_schema()),
        Request::Version {} => Ok(env!("CARGO_PKG_VERSION").into()),
    }
}

/// Memory limit of a run, bytes: a module has 4 GB of addresses, and a page runs several modules.
const MAX_MEMORY: u64 = 1_000_000_000;

/// The scenario with a memory limit of at most [`MAX_MEMORY`].
fn limited(scenario: &Resolved) -> Resolved {
    Resolved { memory: scenario.memory.min(MAX_MEMORY), ..scenario.clone() }
}

fn resolve(subject: &ScenarioRequest) -> Result<Resolved, Value> {
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
    if let Some(why) = result.ended {
        value["ended_early"] = json!(why.to_string());
    }
    value["flows"] = result.flows.iter().map(flow).collect();
    value["links"] = result.links.iter().map(link).collect();
    if series {
        value["series"] =
            json!({ "flows": columns(&result.series.flows), "links": columns(&result.series.links) });
    }
    value
}

/// A subject with its measurements.
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

    /// One flow of Peach over a path of 1 s: what a page shows of it.
    fn one_flow() -> Value {
        let lines = [
            "links.sat.rate = 'unlimited'",
            "links.sat.delay = '500 ms'",
            "links.sat.queue.limit = '200 packets'",
            "links.sat.error = { kind = 'list', class = 'low', indices = [0, 1, 2] }",
            "flows.bulk.count = 1",
            "flows.bulk.start = '0 s'",
        ];
        json!({ "scenario": format!("schema = 1\nextends = 'preset:peach-geo'\nduration = '9 s'\n{}", lines.join("\n")) })
    }

    #[test]
    fn losses_over_time_add_up_to_those_of_the_result_and_change_nothing() {
        let set = ["duration=30s", "links.sat.error.p=1e-2"];
        let plain = ask(&json!({ "run": { "scenario": "preset:peach-geo", "set": set } }));
        let run = ask(&json!({ "run": { "scenario": "preset:peach-geo", "set": set, "intervals": 7 } }));
        assert_eq!((&plain["ok"]["digest"], true), (&run["ok"]["digest"], plain["ok"]["digest"].is_string()));
        let (link, over_time) = (&run["ok"]["links"][0], &run["ok"]["over_time"]);
        let sum = |cause: &str, class: &str| -> u64 {
            let lists = over_time["losses"].as_array().expect("a list");
            let found = lists.iter().filter(|l| l["cause"] == cause && l["class"] == class);
            found.flat_map(|l| l["counts"].as_array().expect("counts")).filter_map(Value::as_u64).sum()
        };
        assert!(sum("error", "data") > 0);
        for (cause, class, column) in [
            ("error", "data", "data_dropped_error"),
            ("full", "data", "data_dropped_full"),
            ("error", "probe", "probe_dropped_error"),
            ("pushed-out", "probe", "probe_dropped_pushed_out"),
        ] {
            assert_eq!(json!(sum(cause, class)), link[column], "{column}");
        }
        assert_eq!(over_time["losses"][0]["counts"].as_array().map(Vec::len), Some(7));
    }

    #[test]
    fn sudden_start_crosses_the_link() {
        let request = json!({ "of": one_flow(), "flow": 0, "from": 0.0, "to": 0.999, "until": 3.0 });
        let answer = ask(&json!({ "crossings": request }));
        let list = |column: &str| answer["ok"][column].as_array().cloned().unwrap_or_default();
        let kinds = list("kind");
        let count = |kind: &str| kinds.iter().filter(|k| **k == kind).count();
        // One segment of data and 63 dummies leave in the first RTT (Akyildiz, Morabito, Palazzo 2001, §III-B).
        assert_eq!((count("data"), count("probe")), (1, 63), "{answer}");
        let lost = list("fate").iter().filter(|f| **f == "error").count();
        assert_eq!(lost, 3);
        let took = list("end_s")[0].as_f64().unwrap_or(0.0) - list("sent_s")[0].as_f64().unwrap_or(9.0);
        assert!((took - 0.5).abs() < 1e-9, "half an RTT each way, not {took}");
    }

    #[test]
    fn answers_and_refuses() {
        let run = ask(
            &json!({ "run": { "scenario": "preset:peach-geo", "set": ["duration=10s"], "series": true } }),
        );
        assert_eq!(run["ok"]["flows"].as_array().map(Vec::len), Some(20));
        assert!(run["ok"]["series"]["flows"]["cwnd"].as_array().is_some_and(|c| !c.is_empty()));
        let library = ask(&json!({ "library": {} }));
        assert!(library["ok"][0]["text"].as_str().is_some_and(|t| t.contains("schema   = 1")));
        assert!(
            ask(&json!({ "presets": {} }))["ok"].as_array().is_some_and(|p| p.contains(&json!("peach-geo")))
        );
        let bad = ask(&json!({ "check": { "scenario": "schema = 1\ncolour = 3\n" } }));
        assert_eq!((&bad["error"]["line"], &bad["error"]["key"]), (&json!(2), &json!("colour")));
        assert!(ask(&json!({ "dance": {} }))["error"]["message"].is_string());
        assert!(answer(b"\xff").contains("not a request"));
    }
}
