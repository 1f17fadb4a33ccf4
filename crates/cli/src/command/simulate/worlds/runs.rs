//! Runs in several worlds, side by side.

use super::measure::{RunMeasures, measured, simulate};
use crate::args::CompareArgs;
use crate::command::simulate::progress::progress;
use crate::interrupt;
use crate::stop::Stop;
use skyhaul_kernel::Loaded;
use skyhaul_lab::cases::{self, Case};
use skyhaul_lab::lease::Lease;
use skyhaul_net::world::{self, World};
use std::collections::VecDeque;
use std::sync::Mutex;

/// A world and a case of the scenario that runs in it.
pub(super) struct Entry {
    pub(super) label: String,
    /// `None`: the simulator.
    pub(super) world: Option<World>,
    case: usize,
}

impl Entry {
    pub(super) fn has_kernel_sender(&self) -> bool {
        matches!(self.world, Some(World::Kernel(_)))
    }
}

/// Default number of concurrent real-time runs: one for every two processors, since each has several busy threads.
fn default_jobs() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from((cores / 2).clamp(1, 4)).unwrap_or(1)
}

/// Whether a key of `--set` names a congestion control.
fn is_control(key: &str) -> bool {
    key.ends_with(".cc")
}

/// Whether a key of `--set` names a congestion control or an option of one.
fn concerns_control(key: &str) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    matches!(parts[..], ["flows", _, "cc", ..] | ["flows", _, "chain", "legs", _, "cc", ..])
}

/// Provides the controls that the worlds name and the kernel does not have under that name: a world that names one of this
/// project's controls uses its BPF program. A program that was not installed is loaded, and removed when the result is dropped.
fn load(entries: &mut [Entry]) -> Result<Vec<Loaded>, Stop> {
    let mut loaded = Vec::new();
    for entry in entries {
        let Some(World::Kernel(name)) = &mut entry.world else { continue };
        let ours = if skyhaul_kernel::is_available(name) { None } else { skyhaul_kernel::find(name).ok() };
        if let Some(control) = ours {
            loaded.push(Loaded::new(control).map_err(|e| Stop::bad(format!("{}: {e}", entry.label)))?);
            control.kernel.clone_into(name);
        }
    }
    Ok(loaded)
}

/// The entries of all worlds: every case, but cases that would be the same run in a world only once.
fn entries(worlds: &[String], cases: &[Case]) -> Result<Vec<Entry>, Stop> {
    let mut all = Vec::new();
    for text in worlds {
        let text = text.trim();
        let world = match text {
            "sim" => None,
            _ => Some(World::parse(text).ok_or_else(|| {
                Stop::bad(format!(
                    "--worlds: {text:?} is not a world; write sim, wire, wire-to-kernel, or kernel:NAME, such as kernel:cubic"
                ))
            })?),
        };
        let kernel = matches!(world, Some(World::Kernel(_)));
        let mut choices = Vec::new();
        for (case, c) in cases.iter().enumerate() {
            // The kernel's transport does not use the scenario's congestion control: cases that differ in nothing else are one.
            let choice: Vec<_> =
                c.choice.iter().filter(|(key, _)| !kernel || !concerns_control(key)).collect();
            if kernel && choices.contains(&choice) {
                continue;
            }
            // With one group, the label names the congestion control already; the kernel uses its own.
            let one_group = c.scenario.flows.len() == 1;
            let named = choice.iter().any(|(key, _)| !one_group || !is_control(key));
            let words = choice.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
            let words = if named { format!(", {words}") } else { String::new() };
            let control = if kernel || !one_group {
                String::new()
            } else {
                format!(" {}", c.scenario.flows[0].label())
            };
            all.push(Entry { label: format!("{text}{control}{words}"), world: world.clone(), case });
            choices.push(choice);
        }
    }
    Ok(all)
}

/// The finished runs.
pub(super) struct Ran {
    pub(super) entries: Vec<Entry>,
    pub(super) seeds: Vec<u64>,
    /// The results of each run with the indices of its entry and seed, in the order of these indices.
    pub(super) done: Vec<(usize, usize, RunMeasures)>,
    /// The lock of the folder, held until everything is written.
    _lease: Option<Lease>,
}

impl Ran {
    /// The runs of an entry in the order of seeds.
    pub(super) fn of(&self, entry: usize) -> impl Iterator<Item = &RunMeasures> {
        self.done.iter().filter(move |(e, ..)| *e == entry).map(|(.., d)| d)
    }
}

/// Runs the scenario in every world on every seed.
pub(super) fn run(args: &CompareArgs) -> Result<Ran, Stop> {
    let path = args.a.to_string_lossy();
    let cases = cases::resolve(&path, &args.set, None)?;
    let mut entries = entries(&args.worlds, &cases)?;
    let lease = args.out.as_deref().map(Lease::take).transpose()?;
    // From here on Ctrl-C ends the runs, and what is loaded is removed.
    interrupt::listen();
    let loaded = load(&mut entries)?;
    let seeds: Vec<u64> = (0..u64::from(args.repeat)).map(|n| cases[0].seed + n).collect();
    let jobs: VecDeque<(usize, usize)> =
        (0..seeds.len()).flat_map(|s| (0..entries.len()).map(move |e| (e, s))).collect();
    let threads = jobs.len().min(args.jobs.unwrap_or_else(default_jobs).into());
    let bar = progress(jobs.len() as u64);
    let (queue, failure) = (Mutex::new(jobs), Mutex::new(None));
    let done: Mutex<Vec<(usize, usize, RunMeasures)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((e, s)) = queue.lock().ok().and_then(|mut q| q.pop_front()) {
                    let stopped = || interrupt::requested() || failure.lock().is_ok_and(|f| f.is_some());
                    if stopped() {
                        return;
                    }
                    let (entry, case) = (&entries[e], &cases[entries[e].case]);
                    let outcome = match &entry.world {
                        None => simulate(case, seeds[s]),
                        Some(w) => world::run(&case.scenario, w, seeds[s], &stopped)
                            .map(|o| measured(&o))
                            .map_err(|e| Stop::bad(format!("{}: {e}", entry.label))),
                    };
                    match outcome {
                        Ok(d) => done.lock().map(|mut all| all.push((e, s, d))).unwrap_or_default(),
                        Err(e) => {
                            if let Ok(mut f) = failure.lock() {
                                f.get_or_insert(e);
                            }
                        }
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    drop(loaded);
    if let Ok(Some(e)) = failure.into_inner() {
        return Err(e);
    }
    if interrupt::requested() {
        return Err(Stop::Interrupted("interrupted: real-time runs keep no partial results".into()));
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(e, s, _)| (*e, *s));
    Ok(Ran { entries, seeds, done, _lease: lease })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(sets: &[&str]) -> Vec<(String, usize)> {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let cases = cases::resolve("preset:geo-today", &sets, None).expect("resolves");
        let worlds = ["sim".to_owned(), "kernel:reno".to_owned()];
        let Ok(all) = entries(&worlds, &cases) else { panic!("these are worlds") };
        all.into_iter().map(|e| (e.label, e.case)).collect()
    }

    #[test]
    fn the_kernel_runs_cases_that_differ_in_the_control_only_once() {
        let entry = |l: &str, case| (l.to_owned(), case);
        assert_eq!(labels(&[]), [entry("sim cubic", 0), entry("kernel:reno", 0)]);
        assert_eq!(
            labels(&["flows.own.cc=sack,peach"]),
            [entry("sim sack", 0), entry("sim peach", 1), entry("kernel:reno", 0)]
        );
        assert_eq!(
            labels(&["flows.own.cc.beta=0.5,0.7"]),
            [
                entry("sim cubic, flows.own.cc.beta=0.5", 0),
                entry("sim cubic, flows.own.cc.beta=0.7", 1),
                entry("kernel:reno", 0)
            ]
        );
        let both = labels(&["flows.own.cc=sack,peach", "links.sat.error.p=0,1e-2"]);
        let kernel: Vec<_> = both.iter().filter(|(l, _)| l.starts_with("kernel")).collect();
        assert_eq!(kernel.len(), 2, "{both:?}");
        assert_eq!(kernel[0].0, "kernel:reno, links.sat.error.p=0");
        assert_eq!(kernel[1].0, "kernel:reno, links.sat.error.p=1e-2");
        assert_ne!(kernel[0].1, kernel[1].1);
        assert_eq!(both.len(), 6);
    }
}
