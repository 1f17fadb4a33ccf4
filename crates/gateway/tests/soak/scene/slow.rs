//! Clients that read very slowly.

use super::{Outcome, Run, Stage, judged};
use crate::bed::Link;
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd};
use skyhaul_base::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Memory limit of all connections over the link, bytes.
const LIMIT: f64 = 16.0 * 1048576.0;
/// Memory that each connection may hold even beyond the limit, bytes.
const LEAST: f64 = 2.0 * 16384.0;

pub fn play(run: &Run) -> Outcome {
    let clients = run.choose(500, 40);
    let link = Link { delay: Duration::from_millis(10), ..Link::default() };
    let stage = Stage::new("slow", link, "[limits]\nmemory = \"16 MiB\"\nbuffer = \"64 KiB\"\n")?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let quick = Tally::default();
    let [held, resident] = std::thread::scope(|s| -> Result<[f64; 2], String> {
        let slow = s.spawn(|| {
            let done = crowd(&stage.bed, clients, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let pause = std::time::Duration::from_millis(run.choose(400, 20));
                (n < clients as u64 && !stop::requested()).then_some(TransferSpec {
                    seed: n,
                    up: 1000,
                    down: 1 << 20,
                    aborts: Aborts::Nobody,
                    pause,
                })
            });
            over.store(true, Ordering::Relaxed);
            done
        });
        let others = s.spawn(|| {
            crowd(&stage.bed, 2, &quick, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed))
                    .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 100_000.0) })
            })
        });
        let most = stage.watch("memory", &over);
        slow.join().map_err(|_| "a client failed")??;
        others.join().map_err(|_| "a client failed")??;
        Ok(most)
    })?;
    let mut findings = vec![
        Finding::recorded("clients", clients as f64, ""),
        Finding::at_most(
            "most memory of connections over the link",
            held / 1e6,
            (LIMIT + LEAST * clients as f64) / 1e6,
            "MB",
        ),
        Finding::recorded("most resident memory of a gateway", resident / 1e6, "MB"),
        Finding::recorded("transfers of others meanwhile", quick.of(|t| &t.whole), ""),
        Finding::at_most("of them broken", quick.of(|t| &t.broken) + quick.of(|t| &t.cut), 0.0, ""),
    ];
    findings.extend(judged(&tally, &stage.server, false));
    Ok(findings)
}
