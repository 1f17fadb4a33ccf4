//! One scenario in three worlds: the simulator, our transport and the kernel's over the emulated links. The runs take
//! the time that they last, side by side.
#![cfg(target_os = "linux")]

use skyhaul_net::world::{self, Outcome, World};
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{RunResult, run};
use skyhaul_testkit::need;

/// GEO, one flow with a handshake, so that every packet that draws a loss in one world does so in the other.
///
/// A loss is drawn for each packet that is no probe, by its number: where probes lie between the data depends on
/// microseconds, and must not decide which data is lost.
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

/// What the emulator did, for the message of a test that fails.
fn trust(o: &Outcome) -> String {
    format!(
        "{} retransmissions, {:?} timeouts, probes {:?}, doubts {:?}",
        o.retransmissions,
        o.timeouts,
        o.probes,
        o.emulation.doubts()
    )
}

type Runs = Vec<std::thread::JoinHandle<(f64, Outcome)>>;

/// Starts a run for each seed; each gives the goodput of the simulator and what the other world measured.
fn start(cc: &'static str, loss: f64, world: &World, seeds: std::ops::Range<u64>) -> Runs {
    let one = |seed| {
        let world = world.clone();
        std::thread::spawn(move || {
            let s = geo(cc, loss, seed);
            let wire = world::run(&s, &world, s.seed, &|| false).unwrap_or_else(|e| panic!("{e}"));
            (goodput(&simulated(&s)), wire)
        })
    };
    seeds.map(one).collect()
}

/// How far the mean goodput of the other world is off the simulator's, and the standard error of that (jackknife over the
/// runs; zero for a single one).
fn difference(runs: &[(f64, Outcome)]) -> (f64, f64) {
    let (sim, wire) = runs.iter().fold((0.0, 0.0), |(a, b), (sim, wire)| (a + sim, b + wire.goodput));
    let whole = wire / sim - 1.0;
    let n = runs.len() as f64;
    let without = |(s, w): &(f64, Outcome)| (wire - w.goodput) / (sim - s) - 1.0;
    let spread = |r: &(f64, Outcome)| (without(r) - whole).powi(2);
    let error =
        if runs.len() > 1 { ((n - 1.0) / n * runs.iter().map(spread).sum::<f64>()).sqrt() } else { 0.0 };
    (whole, error)
}

/// Whether the worlds differ by more than `tolerance`. A loaded machine delays packets, and with losses a few decide what
/// a run delivers: so a difference counts if it exceeds the tolerance by two standard errors, and where the emulator itself
/// doubts most of its runs, by as much again as the tolerance.
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
    // All of them at once would be so many threads that their timers are late.
    for half in cases.chunk_by(|a, b| a.2.name() == b.2.name()) {
        let first: Vec<_> =
            half.iter().map(|(cc, loss, world, _, n)| start(cc, *loss, world, 0..*n)).collect();
        for ((cc, loss, world, tolerance, n), runs) in half.iter().zip(first) {
            let mut runs: Vec<_> = runs.into_iter().map(|r| r.join().unwrap()).collect();
            if difference(&runs).0.abs() > *tolerance {
                // Three times as many decide.
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
                    .map(|(sim, wire)| format!("{sim:.0} {:.0} {}", wire.goodput, trust(wire)))
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
