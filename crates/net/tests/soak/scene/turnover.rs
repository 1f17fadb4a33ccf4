//! Connections that come, are served and go.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client;
use crate::finding::Finding;
use crate::{machine, stop};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u32 = 6;
/// Connections per client in the short form; the long form ends after its time alone.
const MOST: u64 = 200;

pub fn play(run: &Run) -> Outcome {
    let time = run.choose(Duration::from_secs(90), Duration::from_secs(20));
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |_| {})?;
    let (served, failed, numbers) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let most = if run.long { u64::MAX } else { MOST * u64::from(CLIENTS) };
    let mut early = 0.0;
    let mut peak = (0, 0.0_f64, 0);
    std::thread::scope(|scope| -> Result<(), String> {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let _ = ns.within(|| {
                    while began.elapsed() < time && !stop::requested() {
                        let n = numbers.fetch_add(1, Ordering::Relaxed);
                        if n >= most {
                            break;
                        }
                        let to = if one(n).is_ok() { &served } else { &failed };
                        to.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
        while began.elapsed() < time && !stop::requested() && numbers.load(Ordering::Relaxed) < most {
            bed::sleep(Duration::from_millis(250));
            let s = server.snapshot()?;
            peak = (peak.0.max(s.time_waits), peak.1.max(s.memory.held as f64), peak.2.max(s.timers));
            if began.elapsed() > time / 3 && early == 0.0 {
                early = machine::resident();
            }
        }
        Ok(())
    })?;
    let took = began.elapsed().as_secs_f64();
    let (served, failed) = (served.into_inner() as f64, failed.into_inner() as f64);
    let late = machine::resident();
    bed::sleep(Duration::from_millis(500));
    let snapshot = server.snapshot()?;
    let census = server.census()?;
    server.end()?;
    let waits = snapshot.time_waits.max(1) as f64;
    let mut findings = vec![
        Finding::at_least("served", served / took, 5000.0, "connections/s").timed(),
        Finding::at_most("not served", failed, 0.0, ""),
        Finding::recorded("connections served in total", served, ""),
        Finding::at_least("connections counted by the host", census.lives.accepted as f64, served, ""),
        Finding::at_most("connections in TIME-WAIT, maximum", peak.0 as f64, 65_536.0, ""),
        Finding::at_most(
            "memory per connection in TIME-WAIT",
            snapshot.table_bytes[1] as f64 / waits,
            200.0,
            "bytes",
        ),
        Finding::at_most("memory of the host, maximum", peak.1, 32e6, "bytes"),
        Finding::at_most("timers, maximum", peak.2 as f64, 300_000.0, ""),
        Finding::at_most(
            "connections open at the end",
            (snapshot.connections - snapshot.time_waits) as f64,
            0.0,
            "",
        ),
    ];
    if run.long {
        let grown = (late - early) / 1e6;
        findings.push(Finding::at_most("growth of resident memory in the last two thirds", grown, 8.0, "MB"));
    }
    Ok(findings)
}

/// One connection; every other one is closed by the server first, which then has it in TIME-WAIT.
fn one(n: u64) -> io::Result<()> {
    let mut s = client::connect(bed::at(n as u32, bed::HTTP))?;
    let close = n % 2 == 0;
    client::fetch(&mut s, 1000, close)?;
    if close { client::to_the_end(&mut s) } else { Ok(()) }
}
