//! One scenario in three worlds: the simulator, our transport and the kernel's over the emulated links. The runs are in real
//! time, side by side.
#![cfg(target_os = "linux")]

use skyhaul_net::world::{self, Outcome, World};
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{RunResult, run};
use skyhaul_testkit::need;

/// GEO, one flow with a handshake, so that every packet that draws a loss in one world does so in the other.
///
/// Losses are drawn in advance, by the number of a packet among those of high priority. Probes, which have low priority,
/// do not count: their places among the data depend on microseconds and must not decide which data is lost.
fn geo(cc: &str, loss: f64, seed: u64) -> Resolved {
    let mut rng = skyhaul_base::Rng::stream(seed, "losses");
    let lost: Vec<String> = (0..50_000).filter(|_| rng.unit() < loss).map(|n: u32| n.to_string()).collect();
    let lost = lost.join(", ");
    let text = format!(
        "duration = \"40 s\"\nseed = 5\n\
         [links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"275 ms\"\n\
         queue = {{ kind = \"strict-pushout\", limit = \"500 packets\" }}\n\
         error = {{ kind = \"list\", class = \"high\", indices = [{lost}] }}\nreverse = {{ error = \"none\" }}\n\
         [flows.bulk]\npath = [\"sat\"]\ncc = \"{cc}\"\nendpoint = \"modern\"\n"
    );
    let d = Document::parse("geo.toml", &text, &skyhaul_scenario::no_files).unwrap();
    d.resolve().unwrap_or_else(|e| panic!("{e}"))
}

fn simulated(s: &Resolved) -> RunResult {
    run(s, s.seed, skyhaul_trace::Null).expect("runs")
}
fn goodput(r: &RunResult) -> f64 {
    r.flows.iter().map(|f| f.goodput).sum()
}
fn privileged() -> bool {
    need::granted(skyhaul_net::Namespace::new()).is_some()
}

/// Counters of a run in real time, for the message of a failing test.
fn counters(o: &Outcome) -> String {
    format!(
        "{} retransmissions, {:?} timeouts, probes {:?}, doubts {:?}",
        o.retransmissions,
        o.timeouts,
        o.probes,
        o.emulation.doubts()
    )
}

type Runs = Vec<std::thread::JoinHandle<(f64, Outcome)>>;

/// Starts a run in `world` for each seed. Each gives the goodput of the simulator and the outcome in `world`.
fn start(cc: &'static str, loss: f64, world: &World, seeds: std::ops::Range<u64>) -> Runs {
    let one = |seed| {
        let world = world.clone();
        std::thread::spawn(move || {
            let s = geo(cc, loss, seed);
            let real = world::run(&s, &world, s.seed, &|| false).unwrap_or_else(|e| panic!("{e}"));
            (goodput(&simulated(&s)), real)
        })
    };
    seeds.map(one).collect()
}

/// The relative difference of the mean goodput in real time from the simulator's, and its standard error (jackknife over
/// the runs; zero for a single run).
fn difference(runs: &[(f64, Outcome)]) -> (f64, f64) {
    let (sim, real) = runs.iter().fold((0.0, 0.0), |(a, b), (sim, real)| (a + sim, b + real.goodput));
    let whole = real / sim - 1.0;
    let n = runs.len() as f64;
    let without = |(s, r): &(f64, Outcome)| (real - r.goodput) / (sim - s) - 1.0;
    let spread = |r: &(f64, Outcome)| (without(r) - whole).powi(2);
    let error =
        if runs.len() > 1 { ((n - 1.0) / n * runs.iter().map(spread).sum::<f64>()).sqrt() } else { 0.0 };
    (whole, error)
}

/// Whether the worlds differ by more than `tolerance` and two standard errors: a run has few losses, and which segments
/// they hit decides what it delivers. A loaded machine delays packets: if the emulator doubts most of its runs, twice the
/// tolerance is allowed.
fn differs(runs: &[(f64, Outcome)], tolerance: f64) -> bool {
    let (difference, error) = difference(runs);
    let doubted = runs.iter().filter(|(_, o)| !o.emulation.doubts().is_empty()).count();
    let allowed = if 2 * doubted > runs.len() { 2.0 * tolerance } else { tolerance };
    difference.abs() > allowed + 2.0 * error
}

#[test]
fn the_simulator_our_stack_and_the_kernel_agree_over_geo() {
    if !privileged() {
        return;
    }
    // A single run at a loss of 1e-2 sees some twenty losses; which of them hits a large window decides. So the mean of
    // several is compared.
    let cases = [
        ("sack", 0.0, World::Ours, 0.05, 1),
        ("sack", 1e-2, World::Ours, 0.05, 4),
        ("peach", 0.0, World::Ours, 0.05, 1),
        ("peach", 1e-2, World::Ours, 0.05, 10),
        ("sack", 0.0, World::Kernel("reno".into()), 0.15, 1),
        ("sack", 1e-2, World::Kernel("reno".into()), 0.15, 10),
    ];
    let mut wrong = Vec::new();
    // The cases of one world at a time: with all cases at once, the timers of so many threads would be late.
    for same_world in cases.chunk_by(|a, b| a.2.name() == b.2.name()) {
        let started: Vec<_> =
            same_world.iter().map(|(cc, loss, world, _, n)| start(cc, *loss, world, 0..*n)).collect();
        for ((cc, loss, world, tolerance, n), runs) in same_world.iter().zip(started) {
            let mut runs: Vec<_> = runs.into_iter().map(|r| r.join().unwrap()).collect();
            if difference(&runs).0.abs() > *tolerance {
                // Three times as many runs decide.
                let more = start(cc, *loss, world, 100..100 + 2 * n);
                runs.extend(more.into_iter().map(|r| r.join().unwrap()));
            }
            let (off, error) = difference(&runs);
            let line = format!(
                "{cc} at {loss}, {}: {:+.2} % off the simulator, standard error {:.2} %; {}",
                world.name(),
                off * 100.0,
                error * 100.0,
                runs.iter()
                    .map(|(sim, real)| format!("{sim:.0} {:.0} {}", real.goodput, counters(real)))
                    .collect::<Vec<_>>()
                    .join("; ")
            );
            println!("{line}");
            if differs(&runs, *tolerance) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_only_the_simulator_can_do_is_refused() {
    if !privileged() {
        return;
    }
    let refused = |change: &str, world: &World| {
        let text = format!(
            "duration = \"1 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n[flows.bulk]\npath = [\"sat\"]\n{change}"
        );
        let d = Document::parse("t.toml", &text, &skyhaul_scenario::no_files).unwrap();
        let s = d.resolve().unwrap_or_else(|e| panic!("{e}"));
        world::run(&s, world, 1, &|| false).unwrap_err().to_string()
    };
    let udp = "transport = \"udp\"\napp = { kind = \"cbr\", rate = \"8 kbit/s\", packet = \"40 B\" }\n";
    for world in [World::Ours, World::Kernel("reno".into())] {
        let e = refused(udp, &world);
        assert!(e.starts_with("flows.bulk: a real datagram carries its sequence number"), "{e}");
    }
    let e = refused("cc = \"user:mine\"\n", &World::Ours);
    assert!(e.starts_with("flows.bulk: the control \"mine\" is user-defined"), "{e}");
    let e = refused("", &World::Kernel("no-such".into()));
    assert!(e.starts_with("this kernel has no congestion control \"no-such\"; it has: "), "{e}");
    assert_eq!(World::parse("kernel:bbr"), Some(World::Kernel("bbr".into())));
    assert_eq!((World::parse("kernel:"), World::parse("moon")), (None, None));
}
