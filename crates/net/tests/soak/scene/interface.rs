//! An interface that goes down and comes up, and one that is removed and made again, while clients fetch.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client;
use crate::finding::Finding;
use crate::stop;
use skyhaul_net::Namespace;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CLIENTS: u32 = 8;
const BYTES: usize = 300_000;

pub fn play(run: &Run) -> Outcome {
    let rounds: u32 = run.choose(10, 2);
    let gone = run.choose(Duration::from_secs(2), Duration::from_millis(400));
    let ns = bed::space()?;
    let server = Server::start(&ns, true, |_| {})?;
    let (served, failed, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let ip = |args: &str| -> Result<(), String> { change(&ns, args) };
    let name = server.interface.clone();
    let progress = std::thread::scope(|scope| -> Result<Vec<u64>, String> {
        for n in 0..CLIENTS {
            let (served, failed, over) = (&served, &failed, &over);
            let ns = &ns;
            scope.spawn(move || {
                let _ = ns.within(|| {
                    // One connection from the beginning to the end.
                    let Ok(mut s) = client::connect(bed::at(n, bed::HTTP)) else {
                        failed.fetch_add(1, Ordering::Relaxed);
                        return;
                    };
                    while !over.load(Ordering::Relaxed) && !stop::requested() {
                        if client::fetch(&mut s, BYTES, false).is_err() {
                            failed.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        served.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
            });
        }
        let played = (|| {
            let mut progress = Vec::new();
            for _ in 0..rounds {
                for removed in [false, true] {
                    if removed {
                        ip(&format!("link del {name}"))?;
                        // The server has made itself another one by now, or does so when it next looks.
                    } else {
                        ip(&format!("link set {name} down"))?;
                        bed::sleep(gone);
                        ip(&format!("link set {name} up"))?;
                    }
                    // Every connection goes on: each of them fetches once more.
                    let (before, mut waited) = (served.load(Ordering::Relaxed), 0);
                    while served.load(Ordering::Relaxed) < before + 3 * u64::from(CLIENTS) && waited < 600 {
                        waited += 1;
                        bed::sleep(Duration::from_millis(100));
                        if stop::requested() {
                            break;
                        }
                    }
                    progress.push(served.load(Ordering::Relaxed) - before);
                }
            }
            Ok(progress)
        })();
        over.store(true, Ordering::Relaxed);
        played
    })?;
    let seen = server.seen()?;
    let refused = server.end()?;
    let least = progress.iter().min().copied().unwrap_or(0);
    Ok(vec![
        Finding::at_least(
            "times the interface went down or was removed",
            progress.len() as f64,
            f64::from(2 * rounds),
            "",
        ),
        Finding::at_least("minimum fetches after each", least as f64, f64::from(3 * CLIENTS), ""),
        Finding::at_most("connections that broke", failed.load(Ordering::Relaxed) as f64, 0.0, ""),
        Finding::told("fetches of 300 kB in total", served.load(Ordering::Relaxed) as f64, ""),
        Finding::told("packets that the interface refused", refused as f64, ""),
        Finding::at_most("segments that could not be encoded", seen.counts.unwritable as f64, 0.0, ""),
    ])
}

fn change(ns: &Namespace, args: &str) -> Result<(), String> {
    let run = || Command::new("ip").args(args.split(' ')).output();
    let out = ns.within(run).map_err(|e| e.to_string())?.map_err(|e| format!("ip: {e}"))?;
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("ip {args}: {}", String::from_utf8_lossy(&out.stderr).trim()))
    }
}
