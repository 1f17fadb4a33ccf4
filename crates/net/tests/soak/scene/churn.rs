//! Everything at once: clients who end in every way, a lossy path, idle ones, strangers. What the host holds must not grow.

use super::{Outcome, Run};
use crate::bed::{self, Path, Server, Stranger};
use crate::client::{self, Answer};
use crate::finding::Finding;
use crate::{machine, stop};
use skyhaul_base::Rng;
use skyhaul_net::Namespace;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LINKS: &str = "[links.sat]\nrate = \"20 Mbit/s\"\ndelay = \"40 ms\"\nqueue = \"200 packets\"\n\
                     error = { kind = \"per\", p = 0.01 }";
/// Clients of each kind at a time.
const EACH: u64 = 2;
/// Idle connections of one client.
const IDLE: usize = 100;
/// Time between two actions of a client, so that the machine has time for the others.
const REST: Duration = Duration::from_millis(10);

/// What the host holds at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    resident: f64,
    held: f64,
    timers: f64,
    tables: f64,
    connections: f64,
}

pub fn play(run: &Run) -> Outcome {
    let time = run.choose(Duration::from_secs(1800), Duration::from_secs(5));
    let every = run.choose(Duration::from_secs(5), Duration::from_millis(200));
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |c| c.memory = 256 << 20)?;
    let path = Path::new(&ns, LINKS)?;
    let stranger = Stranger::new(&ns)?;
    let (over, done, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut samples = Vec::new();
    std::thread::scope(|scope| -> Result<(), String> {
        for kind in 0..KINDS.len() as u64 * EACH {
            let work = KINDS[(kind % KINDS.len() as u64) as usize];
            let place = if work.far { &path.clients } else { &ns };
            let (over, done, failed) = (&over, &done, &failed);
            scope.spawn(move || client(place, work, kind, (over, done, failed)));
        }
        scope.spawn(|| strangers(&stranger, &over));
        let began = Instant::now();
        let sampled = (|| {
            while began.elapsed() < time && !stop::requested() {
                bed::sleep(every);
                let s = server.snapshot()?;
                samples.push(Sample {
                    resident: machine::resident(),
                    held: s.memory.held as f64,
                    timers: s.timers as f64,
                    tables: s.table_bytes.iter().sum::<usize>() as f64,
                    connections: s.connections as f64,
                });
            }
            Ok(())
        })();
        over.store(true, Ordering::Relaxed);
        sampled
    })?;
    let census = server.census()?;
    let mut findings = vec![
        Finding::recorded("client actions", done.into_inner() as f64, ""),
        Finding::at_most("unexpected failures", failed.into_inner() as f64, 0.0, ""),
        Finding::recorded("connections accepted", census.lives.accepted as f64, ""),
        Finding::recorded("connections closed in order", census.lives.closed as f64, ""),
        Finding::recorded("connections reset by clients", census.lives.reset as f64, ""),
        Finding::recorded("segments sent", census.traffic.segments_sent as f64, ""),
        Finding::recorded("segments retransmitted", census.traffic.retransmissions as f64, ""),
    ];
    findings.extend(growth(&samples, run));
    // TIME-WAIT and half-open connections end after a minute; in the short form only what ends at once is looked at.
    bed::sleep(run.choose(Duration::from_secs(70), Duration::from_secs(2)));
    let s = server.snapshot()?;
    server.end()?;
    path.end();
    let open = s.connections - s.time_waits - s.half_open;
    findings.push(Finding::at_most("connections open after all clients have left", open as f64, 0.0, ""));
    let rest = s.memory.held as f64 - s.table_bytes.iter().sum::<usize>() as f64;
    findings.push(Finding::at_most("their memory", rest, 65_536.0, "bytes"));
    if run.long {
        findings.push(Finding::at_most(
            "connections of any kind a minute later",
            s.connections as f64,
            0.0,
            "",
        ));
        findings.push(Finding::at_most("timers a minute later", s.timers as f64, 0.0, ""));
        findings.push(Finding::at_most(
            "tables a minute later",
            s.table_bytes.iter().sum::<usize>() as f64,
            65_536.0,
            "bytes",
        ));
    }
    findings.push(Finding::at_most(
        "segments that could not be encoded",
        s.counts.unwritable as f64,
        0.0,
        "",
    ));
    Ok(findings)
}

/// The last quarter against the second: by then TIME-WAIT and buffers are as full as they get. What goes up and down with
/// what clients just do is compared by its median, resident memory, which a process hardly gives back, by the most.
fn growth(samples: &[Sample], run: &Run) -> Vec<Finding> {
    let quarter = samples.len() / 4;
    type Of = fn(&Sample) -> f64;
    let quantities: [(&str, &'static str, Of, f64, f64); 5] = [
        ("resident memory, maximum", "MB", |s| s.resident / 1e6, 1.05, 4.0),
        ("memory of the host, median", "MB", |s| s.held / 1e6, 1.25, 2.0),
        ("timers, median", "", |s| s.timers, 1.25, 1000.0),
        ("tables of half-open and TIME-WAIT connections, median", "MB", |s| s.tables / 1e6, 1.25, 1.0),
        ("connections, median", "", |s| s.connections, 1.25, 1000.0),
    ];
    let mut findings = Vec::new();
    for (name, unit, of, factor, more) in quantities {
        let value = |part: &[Sample]| {
            let mut all: Vec<f64> = part.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            let at = if name.ends_with("maximum") { all.len().saturating_sub(1) } else { all.len() / 2 };
            all.get(at).copied().unwrap_or(0.0)
        };
        let (early, late) =
            (value(&samples[quarter..2 * quarter]), value(&samples[samples.len() - quarter..]));
        findings.push(Finding::recorded(format!("{name}: second quarter"), early, unit));
        let what = format!("{name}: last quarter");
        // The seconds of the short form are too few for a steady state.
        findings.push(if run.long {
            Finding::at_most(what, late, early * factor + more, unit)
        } else {
            Finding::recorded(what, late, unit)
        });
    }
    findings
}

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Over the lossy path.
    far: bool,
    work: fn(u32, &mut Rng) -> io::Result<()>,
}

const KINDS: [Kind; 8] = [
    Kind { name: "short", far: false, work: short },
    Kind { name: "several", far: false, work: several },
    Kind { name: "sends", far: false, work: sends },
    Kind { name: "leaves", far: false, work: leaves },
    Kind { name: "resets", far: false, work: resets },
    Kind { name: "idles", far: false, work: idles },
    Kind { name: "refused", far: false, work: refused },
    Kind { name: "far", far: true, work: short },
];

fn client(
    ns: &Namespace,
    kind: Kind,
    seed: u64,
    (over, done, failed): (&AtomicBool, &AtomicU64, &AtomicU64),
) {
    let mut rng = Rng::stream(seed, "churn");
    let _ = ns.within(|| {
        let mut n = seed as u32;
        while !over.load(Ordering::Relaxed) {
            n = n.wrapping_add(1);
            let to = match (kind.work)(n, &mut rng) {
                Ok(()) => done,
                Err(e) => {
                    println!("  failed: {}: {e}", kind.name);
                    failed
                }
            };
            to.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(REST);
        }
    });
}

/// Fetches once; the server closes, or the client.
fn short(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    let close = rng.below(2) == 0;
    client::fetch(&mut s, 1 + rng.below(50_000) as usize, close)?;
    if close { client::to_the_end(&mut s) } else { Ok(()) }
}
/// Fetches several times over one connection.
fn several(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    (0..5).try_for_each(|_| client::fetch(&mut s, rng.below(1_000_000) as usize, false))
}
/// Sends.
fn sends(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    client::put(&mut s, 1 + rng.below(300_000) as usize)
}
/// Closes in the middle, with unread data: the kernel resets the connection.
fn leaves(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    client::ask(&mut s, 5_000_000, false)?;
    let (mut answer, mut room) = (Answer::to(5_000_000), vec![0; 1 << 14]);
    for _ in 0..rng.below(20) {
        answer.read(&mut s, &mut room)?;
    }
    Ok(())
}
/// Resets at once, after the handshake or after a word.
fn resets(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    client::reset_at_end(&s);
    if rng.below(2) == 0 { client::ask(&mut s, 100_000, false) } else { Ok(()) }
}
/// Many that lie idle for a while and are then served once more.
fn idles(n: u32, rng: &mut Rng) -> io::Result<()> {
    let mut all = Vec::new();
    for i in 0..IDLE as u32 {
        let mut s = client::connect(bed::at(n.wrapping_add(i), bed::HTTP))?;
        client::fetch(&mut s, 1000, false)?;
        all.push(s);
    }
    std::thread::sleep(Duration::from_millis(rng.below(3000)));
    all.iter_mut().try_for_each(|s| client::fetch(s, 1000, false))
}
/// Connects to a port without a listener.
fn refused(n: u32, _: &mut Rng) -> io::Result<()> {
    // Resets are limited per second: this asks for fewer.
    std::thread::sleep(Duration::from_millis(50));
    match client::connect(bed::at(n, 81)) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(e) => Err(e),
        Ok(_) => Err(io::ErrorKind::Other.into()),
    }
}

/// SYNs of connections that are never completed, half of them corrupted: about a hundred per second.
fn strangers(stranger: &Stranger, over: &AtomicBool) {
    let mut rng = Rng::stream(17, "strangers");
    while !over.load(Ordering::Relaxed) {
        let address = 0x2000_0000 + rng.below(0x2000_0000) as u32;
        let from = (address.to_be_bytes(), 1 + rng.below(65_000) as u16).into();
        let mut p = crate::syn::syn(from, bed::at(0, bed::HTTP), rng.next_u64() as u32, rng.below(2) == 0);
        if rng.below(2) == 0 {
            for _ in 0..1 + rng.below(4) {
                let at = 20 + rng.below(p.len() as u64 - 20) as usize;
                p[at] = rng.next_u64() as u8;
            }
            skyhaul_testkit::fuzz::repair(&mut p);
        }
        stranger.say(&p);
        stranger.hear();
        std::thread::sleep(REST);
    }
}
