//! Data files of flent, version 4 of the format.
//!
//! A file is one JSON object: `version`, `metadata` (settings of the test under names in capitals, `SERIES_META` with
//! data about each series), `x_values` (seconds since the start), `results` (for each series one value per
//! `x_values`, `null` if missing) and `raw_values` (for each series the measured points: `t` in seconds since the
//! epoch, `val`, and further values of the same point). Streams have the names of flent's test `tcp_nup`, so that its
//! plots find them.

use super::recorded::{Recorded, runs};
use crate::error::LabError;
use crate::results::json_file;
use serde_json::{Map, Value, json};
use skyhaul_scenario::resolved::Transport;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the format.
const VERSION: u32 = 4;
/// Series required for plots.
const NEEDED: [&str; 3] = ["acked", "cwnd", "srtt"];
/// Start of a simulated test: simulated time starts at 0.
const EPOCH: &str = "1970-01-01T00:00:00.000000Z";

/// Writes `run.flent` for every run under `out`; returns the files.
///
/// # Errors
/// If a run has not recorded the required series, or a file cannot be read or written.
pub fn flent(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for run in runs(results)? {
        run.need(&NEEDED)?;
        let folder = out.join(run.folder.strip_prefix(results).unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).map_err(LabError::write(&folder))?;
        let path = folder.join("run.flent");
        json_file(&path, &data(&run))?;
        written.push(path);
    }
    Ok(written)
}

fn data(run: &Recorded) -> Value {
    let flows = run.flows();
    let times: Vec<f64> = flows
        .first()
        .map(|f| run.curve(&f.object, "acked").iter().map(|(t, _)| *t).collect())
        .unwrap_or_default();
    let (mut results, mut raw, mut meta) = (Map::new(), Map::new(), Map::new());
    let mut tcp = 0;
    for flow in &flows {
        let is_tcp = flow.group.transport == Transport::Tcp;
        let name = if is_tcp {
            tcp += 1;
            format!("TCP upload::{tcp}")
        } else {
            format!("UDP upload::{}", flow.object)
        };
        let mss = f64::from(flow.group.endpoint.mss);
        let acked = run.curve(&flow.object, "acked");
        let rates: Vec<Option<f64>> = (0..acked.len())
            .map(|i| {
                let (now, total) = acked[i];
                let (before, earlier) = acked[i.checked_sub(1)?];
                // Mbit/s, from segments.
                Some((total? - earlier?) * mss * 8e-6 / (now - before))
            })
            .collect();
        let other = |series: &str, factor: f64| -> Vec<Option<f64>> {
            run.curve(&flow.object, series).iter().map(|(_, v)| v.map(|v| v * factor)).collect()
        };
        let mut measured = vec![("", rates)];
        if is_tcp {
            // As flent has them: the window in segments, the round-trip time in ms.
            measured.push(("::tcp_cwnd", other("cwnd", 1.0)));
            measured.push(("::tcp_rtt", other("srtt", 1e3)));
        }
        let points = times.iter().enumerate().filter_map(|(i, t)| {
            let mut point = Map::new();
            for (suffix, values) in &measured {
                let key = suffix.strip_prefix("::").unwrap_or("val");
                point.insert(key.into(), json!(values.get(i).copied().flatten()?));
            }
            point.insert("t".into(), json!(t));
            point.insert("dur".into(), json!(t - times[i.checked_sub(1)?]));
            Some(Value::Object(point))
        });
        raw.insert(name.clone(), points.collect());
        for (suffix, values) in measured {
            results.insert(format!("{name}{suffix}"), json!(values));
        }
        let mean = flow.measured["goodput_bit_s"].as_f64().map(|g| g / 1e6);
        meta.insert(
            name,
            json!({
                "UNITS": "Mbits/s", "RUNNER": "skyhaul", "MEAN_VALUE": mean, "FLOW": flow.object,
                "CONG_CONTROL": flow.group.label(), "UPSTREAM_RETRANSMITS": flow.measured["retransmissions"],
            }),
        );
    }
    for link in &run.scenario().links {
        for direction in ["forward", "reverse"] {
            let object = format!("links.{}.{direction}", link.name);
            let queue = run.curve(&object, "queue");
            if queue.is_empty() {
                continue;
            }
            let name = format!("Queue::{object}");
            results.insert(name.clone(), queue.iter().map(|(_, v)| json!(v)).collect());
            raw.insert(name.clone(), queue.iter().map(|(t, v)| json!({ "t": t, "val": v })).collect());
            meta.insert(name, json!({ "UNITS": "packets", "RUNNER": "skyhaul" }));
        }
    }
    let step = run.scenario().record.sample.map(|s| s.as_secs_f64());
    let title = &run.scenario().title;
    json!({
        "version": VERSION,
        "metadata": {
            "NAME": "tcp_nup",
            "TITLE": title,
            "NOTE": format!("simulated by skyhaul {}, engine {}", crate::VERSION, run.manifest["engine"].as_str().unwrap_or("?")),
            "TIME": EPOCH,
            "T0": EPOCH,
            "LENGTH": run.duration(),
            "TOTAL_LENGTH": run.duration(),
            "STEP_SIZE": step,
            "HOST": "receiver",
            "HOSTS": ["receiver"],
            "LOCAL_HOST": "sender",
            "IP_VERSION": 4,
            "TEST_PARAMETERS": { "upload_streams": tcp.to_string() },
            "DATA_FILENAME": "run.flent",
            "BATCH_NAME": null, "BATCH_TIME": null, "BATCH_TITLE": null, "BATCH_UUID": null,
            "SERIES_META": meta,
            "SCENARIO": run.manifest["scenario"],
            "SEED": run.case.seed,
        },
        "x_values": times,
        "results": results,
        "raw_values": raw,
    })
}
