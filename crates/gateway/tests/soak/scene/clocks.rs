//! Gateways that are halted for some seconds, as by a virtual machine that pauses: their clock jumps ahead. They run in a time
//! namespace whose monotonic clock is thirty years old. The time of day plays no part: no timer reads it.

use super::{Outcome, Run, Stage, judged};
use crate::bed::Link;
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use skyhaul_base::{Duration, Rng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Thirty years, seconds.
const OLD: &str = "946080000";

pub fn play(run: &Run) -> Outcome {
    let times = run.choose(20, 2);
    let link = Link { delay: Duration::from_millis(10), loss: 0.005, ..Link::default() };
    let starter = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", OLD, "--boottime", OLD];
    let aged = std::process::Command::new(starter[0]).args(&starter[1..]).arg("true").status();
    let aged = aged.is_ok_and(|s| s.success());
    let mut stage = Stage::started_by(if aged { &starter } else { &[] }, "clocks", link, "")?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let mut rng = Rng::stream(1, "halts");
    let mut halted = 0.0;
    std::thread::scope(|s| -> Result<(), String> {
        let load = s.spawn(|| {
            crowd(&stage.bed, 8, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed))
                    .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 300_000.0) })
            })
        });
        for _ in 0..times {
            if stop::requested() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(500 + rng.below(1500)));
            let pid = process(stage.gateways[rng.below(2) as usize].child.id(), aged);
            let pause = run.choose(1000 + rng.below(9000), 1000);
            kill(pid, Signal::SIGSTOP).map_err(|e| e.to_string())?;
            std::thread::sleep(std::time::Duration::from_millis(pause));
            kill(pid, Signal::SIGCONT).map_err(|e| e.to_string())?;
            halted += pause as f64 / 1e3;
        }
        over.store(true, Ordering::Relaxed);
        load.join().map_err(|_| "a client failed")?
    })?;
    let mut findings = vec![
        Finding::recorded("times that a gateway was halted", f64::from(times), ""),
        Finding::recorded("halted in all", halted, "s"),
        Finding::recorded("age of the monotonic clock", if aged { 30.0 } else { 0.0 }, "years"),
        Finding::at_most("gateways that ended", stage.ended(), 0.0, ""),
        Finding::at_least("transfers that arrived whole", tally.of(|t| &t.whole), 10.0, ""),
    ];
    findings.extend(judged(&tally, &stage.server, false));
    Ok(findings)
}

/// The process of a gateway. In a time namespace of its own, it is the child of the command that made the namespace.
fn process(started: u32, aged: bool) -> Pid {
    let children =
        std::fs::read_to_string(format!("/proc/{started}/task/{started}/children")).unwrap_or_default();
    let child = children.split_whitespace().next().and_then(|p| p.parse().ok()).filter(|_| aged);
    Pid::from_raw(child.unwrap_or(started as i32))
}
