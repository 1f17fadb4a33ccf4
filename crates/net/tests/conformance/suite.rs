//! Runs cases, many at a time where they wait for the clock.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use super::host::Virtual;
use super::linux::Linux;
use super::record;
use super::tun::OverTun;
use skyhaul_testkit::conformance::core::Core;
use skyhaul_testkit::conformance::target::Target;
use skyhaul_testkit::conformance::{Case, TargetKind, files, run};
use skyhaul_testkit::need;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Cases that wait at the same time.
const AT_ONCE: usize = 12;
/// Repetitions of a failed case in real time, without other cases beside it. Only those count in which the machine was on time.
const TRIES: usize = 3;
/// Repetitions in all, those on a late machine included.
const TRIES_OF_A_BUSY_MACHINE: usize = 30;
/// A machine that wakes a thread this much later than asked is late.
const LATE: Duration = Duration::from_millis(10);
/// The kernel whose column the table has. Another one may differ.
const KERNEL: &str = "6.18";

struct Ask {
    patterns: Vec<String>,
    target: Option<TargetKind>,
    record: bool,
}

fn ask() -> Result<Ask, String> {
    let mut a = Ask { patterns: Vec::new(), target: None, record: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--record" => a.record = true,
            "--target" => {
                let name = words.next().unwrap_or_default();
                let known = [
                    ("core", TargetKind::Core),
                    ("host", TargetKind::Host),
                    ("tun", TargetKind::Tun),
                    ("linux", TargetKind::Linux),
                ];
                let found = known.iter().find(|(n, _)| *n == name);
                a.target =
                    Some(found.ok_or_else(|| format!("--target core, host, tun or linux, not {name:?}"))?.1);
            }
            // What the harness of Rust's tests is given besides.
            w if w.starts_with('-') => {}
            w => a.patterns.push(w.to_owned()),
        }
    }
    Ok(a)
}

/// One case on one target.
fn put(case: &Case, kind: TargetKind, offload: bool) -> Result<(), String> {
    fn to(case: &Case, target: Result<impl Target, String>) -> Result<(), String> {
        run(case, &mut target?).map_err(|f| f.to_string())
    }
    match kind {
        TargetKind::Core => to(case, Ok(Core::new(&case.conditions))),
        TargetKind::Host => to(case, Virtual::new(&case.conditions, offload)),
        // In threads of their own: they move into namespaces for good.
        TargetKind::Tun => alone(|| to(case, OverTun::new(&case.conditions, offload))),
        TargetKind::Linux => alone(|| to(case, Linux::new(&case.conditions))),
    }
}

fn alone(what: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    std::thread::scope(|s| s.spawn(what).join().unwrap_or_else(|_| Err("it panicked".into())))
}

/// The result of `work`, and how late the machine woke a thread meanwhile, at most.
fn beside_a_clock<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    const STEP: Duration = Duration::from_millis(5);
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        let clock = s.spawn(|| {
            let mut most = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                std::thread::sleep(STEP);
                most = most.max(asked.elapsed().saturating_sub(STEP));
            }
            most
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        (result, clock.join().expect("no panic"))
    })
}

/// Runs all cases on one target; returns those that fail, with the reason.
fn all<'a>(cases: &[&'a Case], kind: TargetKind, offload: bool) -> Vec<(&'a Case, String)> {
    let at_once = if kind.is_virtual() { 2 } else { AT_ONCE };
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for _ in 0..at_once {
            s.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(e) = put(case, kind, offload) {
                        failed.lock().expect("no panic").push((*case, e));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("no panic");
    failed.sort_by_key(|(c, _)| (&c.file, &c.name));
    if !kind.is_virtual() {
        failed.retain_mut(|(case, why)| {
            let mut tries = 0;
            for _ in 0..TRIES_OF_A_BUSY_MACHINE {
                let (done, lateness) = beside_a_clock(|| put(case, kind, offload));
                let Err(e) = done else { return false };
                *why = e;
                tries += usize::from(lateness < LATE);
                if tries == TRIES {
                    break;
                }
            }
            true
        });
    }
    failed
}

pub(crate) fn main() -> ExitCode {
    match go() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn go() -> Result<bool, String> {
    let ask = ask()?;
    let files = files::all().map_err(|e| e.to_string())?;
    if ask.record {
        record::write(&files)?;
    }
    let wanted = |c: &&Case| {
        let name = format!("{}/{}", c.file, c.name);
        ask.patterns.is_empty() || ask.patterns.iter().any(|p| name.contains(p))
    };
    let cases: Vec<&Case> = files.iter().flat_map(|(_, cases)| cases).filter(wanted).collect();
    let granted = skyhaul_net::Namespace::new().map_err(|e| e.to_string());
    let kernel = nix::sys::utsname::uname().map_err(|e| e.to_string())?;
    let kernel = kernel.release().to_string_lossy().into_owned();
    let mut fine = true;
    // What is ours and has bytes is asked twice: packet by packet, and over a device with super-packets.
    for (kind, offload, name) in [
        (TargetKind::Core, false, "core"),
        (TargetKind::Host, false, "host"),
        (TargetKind::Host, true, "host, merged"),
        (TargetKind::Tun, false, "tun"),
        (TargetKind::Tun, true, "tun, merged"),
        (TargetKind::Linux, false, "linux"),
    ] {
        if ask.target.is_some_and(|t| t != kind) {
            continue;
        }
        if let (false, Err(e)) = (kind.is_virtual(), &granted) {
            need::test(name);
            need::skip(need::NAMESPACES, e);
            continue;
        }
        let mine: Vec<&Case> = cases.iter().copied().filter(|c| c.is_for(kind)).collect();
        let failed = all(&mine, kind, offload);
        println!("{name:>12}: {} of {} cases came true", mine.len() - failed.len(), mine.len());
        for (_, why) in &failed {
            println!("{name}: {why}");
        }
        if kind == TargetKind::Linux && !kernel.starts_with(KERNEL) {
            println!(
                "        this kernel is {kernel}; the table is of {KERNEL}, so that differences are no failures"
            );
        } else {
            fine &= failed.is_empty();
        }
    }
    if ask.patterns.is_empty() {
        record::check(&files)?;
    }
    Ok(fine)
}
