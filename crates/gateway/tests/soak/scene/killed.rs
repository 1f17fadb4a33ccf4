//! SIGKILL at random times: open transfers break with an error, new ones work.

use super::{Outcome, Run, Stage, judged, patience};
use crate::bed::{FAR, Link, NEAR};
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd, server, transfer};
use skyhaul_base::{Duration, Rng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

pub fn play(run: &Run) -> Outcome {
    let times = run.choose(50, 2);
    let link = Link { delay: Duration::from_millis(10), loss: 0.005, ..Link::default() };
    let mut stage = Stage::new("killed", link, patience(run))?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let mut rng = Rng::stream(1, "kills");
    let (mut longest, mut left, mut failed) = (0.0_f64, 0.0, 0.0);
    let Stage { server: at, gateways, bed } = &mut stage;
    std::thread::scope(|s| -> Result<(), String> {
        let load = s.spawn(|| {
            crowd(bed, 16, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed))
                    .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 1e6) })
            })
        });
        for n in 0..times {
            if stop::requested() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(500 + rng.below(2000)));
            let victim = rng.below(2) as usize;
            let place = [NEAR, FAR][victim];
            gateways.remove(victim).kill();
            // Repeated until a connection that was opened after the kill succeeds.
            let (killed, alone) = (Instant::now(), Tally::default());
            let spec = TransferSpec {
                seed: n,
                up: 100,
                down: 1000,
                aborts: Aborts::Nobody,
                pause: std::time::Duration::ZERO,
            };
            while alone.of(|t| &t.whole) < 1.0 && killed.elapsed().as_secs() < 20 {
                let _ = bed.spaces[crate::bed::CLIENT].within(|| transfer(server(), &spec, &alone));
            }
            failed += alone.of(|t| &t.broken) + alone.of(|t| &t.cut) + alone.of(|t| &t.wrong);
            longest = longest.max(killed.elapsed().as_secs_f64());
            // The keeper removes everything that the gateway had installed.
            let swept = Instant::now();
            while bed.traces(place).contains("skyhaul") && swept.elapsed().as_secs() < 5 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            left += f64::from(u8::from(bed.traces(place).contains("skyhaul")));
            gateways.insert(victim, bed.gateway(place, patience(run)));
        }
        over.store(true, Ordering::Relaxed);
        load.join().map_err(|_| "a client failed")?
    })?;
    let mut findings = vec![
        Finding::recorded("times that a gateway was killed", times as f64, ""),
        Finding::at_most("longest until a new connection was served", longest, 1.0, "s").timed(),
        Finding::recorded("attempts of new connections that broke before that", failed, ""),
        Finding::at_most("times that rules were left behind", left, 0.0, ""),
    ];
    findings.extend(judged(&tally, at, true));
    Ok(findings)
}
