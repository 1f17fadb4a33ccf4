//! An interface that goes down and comes up, and one that is removed and made again, while clients fetch.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client;
use crate::finding::Finding;
use crate::stop;
use skyhaul_net::Namespace;
use std::net::TcpStream;
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
    // Without an interface there is no route, and connect fails at once. Connections that are to outlive the changes
    // therefore begin before the first of them.
    let clients: Vec<TcpStream> = ns
        .within(|| (0..CLIENTS).map(|n| client::connect(bed::at(n, bed::HTTP))).collect::<Result<_, _>>())
        .map_err(|e| e.to_string())?
        .map_err(|e| format!("connect: {e}"))?;
    let served: Vec<AtomicU64> = clients.iter().map(|_| AtomicU64::new(0)).collect();
    let (failed, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let counts = || -> Vec<u64> { served.iter().map(|n| n.load(Ordering::Relaxed)).collect() };
    let ip = |args: &str| -> Result<(), String> { change(&ns, args) };
    let name = server.interface.clone();
    // Of each change, the fewest fetches that a connection completed after it.
    let progress = std::thread::scope(|scope| -> Result<Vec<u64>, String> {
        for (mut s, served) in clients.into_iter().zip(&served) {
            let (failed, over) = (&failed, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && !stop::requested() {
                    if client::fetch(&mut s, BYTES, false).is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                }
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
                    // The first fetch may have ended before the change.
                    let (before, mut waited) = (counts(), 0);
                    let least =
                        || counts().iter().zip(&before).map(|(now, then)| now - then).min().unwrap_or(0);
                    while least() < 2 && waited < 600 && failed.load(Ordering::Relaxed) == 0 {
                        waited += 1;
                        bed::sleep(Duration::from_millis(100));
                        if stop::requested() {
                            break;
                        }
                    }
                    progress.push(least());
                }
            }
            Ok(progress)
        })();
        over.store(true, Ordering::Relaxed);
        played
    })?;
    let snapshot = server.snapshot()?;
    let refused = server.end()?;
    let least = progress.iter().min().copied().unwrap_or(0);
    Ok(vec![
        Finding::at_least(
            "times the interface went down or was removed",
            progress.len() as f64,
            f64::from(2 * rounds),
            "",
        ),
        Finding::at_least("minimum fetches of a connection after each", least as f64, 2.0, ""),
        Finding::at_most("connections that broke", failed.load(Ordering::Relaxed) as f64, 0.0, ""),
        Finding::recorded("fetches of 300 kB in total", counts().iter().sum::<u64>() as f64, ""),
        Finding::recorded("packets that the interface refused", refused as f64, ""),
        Finding::at_most("segments that could not be encoded", snapshot.counts.unwritable as f64, 0.0, ""),
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
