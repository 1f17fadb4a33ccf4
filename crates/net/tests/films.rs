//! Films in the simulator, by our transport, and by the kernel's: the viewer is the same, and gets what came to the receivers.
#![cfg(target_os = "linux")]

use skyhaul_net::world::{self, FlowOutcome, World};
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{FlowResult, Viewed, run};
use skyhaul_testkit::need;

/// A film of 600 kbit/s over a link of 30 ms each way that loses these packets.
fn scenario(flow: &str, lost: &str) -> Resolved {
    let text = format!(
        "duration = \"15 s\"\nseed = 5\n[links.sat]\nrate = \"4 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"100 packets\"\n\
         error = {{ kind = \"list\", class = \"high\", indices = [{lost}] }}\nreverse = {{ error = \"none\" }}\n\
         [flows.film]\npath = [\"sat\"]\n{flow}\n"
    );
    let d = Document::parse("films.toml", &text, &skyhaul_scenario::no_files).unwrap();
    d.resolve().unwrap_or_else(|e| panic!("{e}"))
}

fn both(s: &Resolved, world: &World) -> (FlowOutcome, FlowResult, bool) {
    let wire = world::run(s, world, s.seed, &|| false).unwrap_or_else(|e| panic!("{e}"));
    let sim = run(s, s.seed, skyhaul_trace::Null).expect("runs").flows.remove(0);
    (wire.flows[0].clone(), sim, wire.emulation.doubts().is_empty())
}

/// Frames of all types in time, and those that could be decoded, as shares.
fn shares(v: &Viewed) -> [f64; 2] {
    let (part, of) = v.complete.iter().fold((0, 0), |(p, o), s| (p + s.part, o + s.of));
    [part as f64 / of as f64, v.decodable.value().expect("frames")]
}

#[test]
fn a_viewer_gets_the_same_in_every_world() {
    if need::granted(skyhaul_net::Namespace::new()).is_none() {
        return;
    }
    let some: Vec<String> = (1..30).map(|k| (k * 40).to_string()).collect();
    let film = "app = { kind = \"video\", rate = \"600 kbit/s\" }";
    let tcp = format!("endpoint = \"modern\"\ncc = \"cubic\"\nhandshake = true\n{film}");
    let adapts = "app = { kind = \"video\", rate = \"600 kbit/s\", viewer = { warm = \"3 s\" }, \
                  coder = { layers = [\"150 kbit/s\", \"300 kbit/s\", \"600 kbit/s\"] } }";
    let cases = [
        (tcp.clone(), String::new(), World::Ours),
        (tcp.clone(), some.join(", "), World::Ours),
        (tcp.clone(), String::new(), World::OursToKernel),
        (tcp, String::new(), World::Kernel("cubic".into())),
        (format!("transport = \"udp\"\n{film}"), some.join(", "), World::Ours),
        (format!("transport = \"udp\"\n{film}"), some.join(", "), World::Kernel("cubic".into())),
        (format!("transport = \"tfrc\"\n{adapts}"), some.join(", "), World::Ours),
        (format!("transport = \"ssvp\"\n{adapts}"), some.join(", "), World::Ours),
    ];
    std::thread::scope(|scope| {
        let runs: Vec<_> = cases
            .iter()
            .map(|(flow, lost, world)| scope.spawn(move || both(&scenario(flow, lost), world)))
            .collect();
        for ((flow, lost, world), run) in cases.iter().zip(runs) {
            let what = format!("{}, {flow}, {} lost", world.name(), lost.split_whitespace().count());
            let (wire, sim, trusted) = run.join().unwrap();
            let (a, b) = (wire.video.expect("a viewer"), sim.video.expect("a viewer"));
            let (ours, theirs) = (shares(&a), shares(&b));
            println!(
                "{what}: in time and decodable {ours:.3?} and {theirs:.3?}, started {:?} and {:?}, stood still {:.2} and {:.2} s, \
                 delayed {:?} and {:?}, switches {} and {}, trusted {trusted}",
                a.played.startup,
                b.played.startup,
                a.played.stalled,
                b.played.stalled,
                a.delayed,
                b.delayed,
                a.switches,
                b.switches
            );
            // A busy machine is late, and the emulation says so. A coder decides by what its transport measures at the moment: a
            // millisecond may change all that it sends from then on.
            let adapts = a.switches + b.switches > 0;
            let near = if !trusted {
                0.5
            } else if adapts {
                0.3
            } else {
                0.1
            };
            for (x, y) in ours.iter().zip(theirs) {
                assert!((x - y).abs() < near, "{what}: {ours:?} instead of {theirs:?}");
            }
            // The films are the same to the byte unless a coder makes them smaller.
            if b.switches == 0 && a.switches == 0 {
                assert_eq!((a.frames, a.packets), (b.frames, b.packets), "{what}");
            }
            let start = a.played.startup.expect("it starts") - b.played.startup.expect("it starts");
            assert!(start.abs() < if trusted { 0.1 } else { 1.0 }, "{what}: starts {start} s later");
            assert_eq!(a.delayed_wire, None, "nobody sees segments out of order");
            let (x, y) = (a.measured.delay_p50.expect("packets"), b.measured.delay_p50.expect("packets"));
            // Another quality is another queue, and so another delay.
            assert!(
                (x - y).abs() < if trusted && !adapts { 0.02 } else { 0.5 },
                "{what}: {x} instead of {y} s"
            );
        }
    });
}
