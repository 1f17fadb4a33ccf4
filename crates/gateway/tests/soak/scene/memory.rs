//! Slow readers of far more data than the gateways may allocate. The system refuses the gateways memory beyond a limit (RLIMIT_DATA), and
//! an allocation that fails ends a program: the gateways have to hold back the senders before that.

use super::{Outcome, Run, Stage, judged};
use crate::bed::Link;
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd};
use skyhaul_base::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub fn play(run: &Run) -> Outcome {
    let (clients, megabytes, down) = run.choose((300, 128, 4 << 20), (40, 64, 2 << 20));
    let link = Link { delay: Duration::from_millis(10), ..Link::default() };
    let limit = format!("--data={}", megabytes << 20);
    let more = "[limits]\nmemory = \"8 MiB\"\nbuffer = \"16 KiB\"\n";
    let mut stage = Stage::started_by(&["prlimit", &limit], "memory", link, more)?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let [held, resident] = std::thread::scope(|s| -> Result<[f64; 2], String> {
        let slow = s.spawn(|| {
            let done = crowd(&stage.bed, clients, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                // 16 KiB at a time: the answers of all wait at once.
                let pause = std::time::Duration::from_millis(run.choose(100, 10));
                let spec = TransferSpec { seed: n, up: 1000, down, aborts: Aborts::Nobody, pause };
                (n < clients as u64 && !stop::requested()).then_some(spec)
            });
            over.store(true, Ordering::Relaxed);
            done
        });
        let most = stage.watch("memory", &over);
        slow.join().map_err(|_| "a client failed")??;
        Ok(most)
    })?;
    let mut findings = vec![
        Finding::recorded("data that waits for clients", clients as f64 * f64::from(down) / 1e6, "MB"),
        Finding::recorded("memory that a gateway may allocate", f64::from(megabytes) * 1.048_576, "MB"),
        Finding::at_most("gateways that ended", stage.ended(), 0.0, ""),
        Finding::recorded("most memory of connections over the link", held / 1e6, "MB"),
        Finding::recorded("most resident memory of a gateway", resident / 1e6, "MB"),
    ];
    findings.extend(judged(&tally, &stage.server, false));
    Ok(findings)
}
