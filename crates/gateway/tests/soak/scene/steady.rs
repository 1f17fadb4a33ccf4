//! A long mixed load: memory and descriptors of a gateway must not grow.

use super::{Outcome, Run, Stage, judged, patience, rough};
use crate::finding::Finding;
use crate::machine;
use crate::stop;
use crate::transfer::{Tally, TransferSpec, crowd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Pause between two transfers of a client, so that other programs can run.
const REST: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    resident: f64,
    descriptors: f64,
}

pub fn play(run: &Run) -> Outcome {
    let time = run.choose(Duration::from_secs(1800), Duration::from_secs(5));
    let every = run.choose(Duration::from_secs(5), Duration::from_millis(200));
    let stage = Stage::new("steady", rough(), patience(run))?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let mut samples = Vec::new();
    std::thread::scope(|s| -> Result<(), String> {
        let load = s.spawn(|| {
            crowd(&stage.bed, 24, &tally, &|| {
                std::thread::sleep(REST);
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed)).then(|| TransferSpec::draw(n, 1e6))
            })
        });
        let began = Instant::now();
        while began.elapsed() < time && !stop::requested() {
            std::thread::sleep(every);
            samples.push([0, 1].map(|n: usize| sample(stage.gateways[n].child.id())));
        }
        over.store(true, Ordering::Relaxed);
        load.join().map_err(|_| "a client failed")?
    })?;
    let mut findings = vec![Finding::recorded("time", time.as_secs_f64(), "s")];
    findings.extend(judged(&tally, &stage.server, false));
    let quarter = samples.len() / 4;
    for (n, name) in ["near", "far"].iter().enumerate() {
        let most = |of: fn(&Sample) -> f64, part: usize| {
            samples[part * quarter..(part + 1) * quarter].iter().map(|s| of(&s[n])).fold(0.0, f64::max)
        };
        if quarter > 0 {
            // By the second quarter TIME-WAIT and buffers are as full as they get.
            let (second, last) = (most(|s| s.resident, 1) / 1e6, most(|s| s.resident, 3) / 1e6);
            let what = format!("resident memory, {name} gateway, last quarter ({second:.1} in the second)");
            findings.push(Finding::at_most(what, last, second * 1.05 + run.choose(4.0, 30.0), "MB"));
            let (second, last) = (most(|s| s.descriptors, 1), most(|s| s.descriptors, 3));
            let what = format!("descriptors, {name} gateway, last quarter ({second} in the second)");
            findings.push(Finding::at_most(what, last, second * 1.25 + 20.0, ""));
        }
    }
    let left = stage.left(Duration::from_secs(90));
    findings.push(Finding::at_most("connections left in the gateways", left, 0.0, ""));
    for (g, name) in stage.gateways.iter().zip(["near", "far"]) {
        let what = format!("descriptors of the {name} gateway without connections");
        findings.push(Finding::at_most(what, sample(g.child.id()).descriptors, 32.0, ""));
    }
    Ok(findings)
}

fn sample(pid: u32) -> Sample {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    Sample { resident: machine::resident_of(pid), descriptors: descriptors as f64 }
}
