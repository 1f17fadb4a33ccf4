//! Runs over two satellites at a time.

use crate::text::resolved;
use skyhaul_sim::run;
use skyhaul_trace::{Class, Digest, LossCause, Null};

/// Datagrams for ten minutes over low orbits; they stop before the end, so that nothing is on its way then.
fn scenario(diversity: &str, error: &str) -> skyhaul_scenario::Resolved {
    let text = format!(
        "schema = 1\nduration = \"600 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\nqueue = \"1000 packets\"\nerror = {error}\n\
         [links.sat.orbit]\nfrom = \"London\"\nto = \"Madrid\"\nconstellation = \"leo550\"\ndiversity = \"{diversity}\"\n\
         [flows.f]\ntransport = \"udp\"\napp = {{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1000 B\" }}\nstop = \"590 s\"\n"
    );
    resolved(&text)
}

#[test]
fn every_packet_is_delivered_once_or_lost_once() {
    for diversity in ["none", "best", "both"] {
        let r = run(&scenario(diversity, "{ kind = \"per\", p = 0.05 }"), 1, Null).expect("a run");
        for l in &r.links {
            for class in Class::ALL {
                let c = l.class(class);
                assert_eq!(c.offered, c.delivered + c.lost(), "{diversity} {} {}", l.name, l.forward);
            }
        }
        let delivered = r.flows[0].datagrams.expect("datagrams").delivered;
        let link: u64 = r.links[0].classes.iter().map(|c| c.delivered).sum();
        assert_eq!(delivered, link, "{diversity}");
    }
}

#[test]
fn a_handover_loses_nothing_that_goes_over_two_satellites() {
    let lost = |diversity| {
        let r = run(&scenario(diversity, "\"none\""), 1, Null).expect("a run");
        let by = |cause| r.links[0].classes.iter().map(|c| c.dropped[cause as usize]).sum::<u64>();
        (by(LossCause::LinkDown), r.links[0].repair)
    };
    let (one, none) = lost("none");
    assert!(one > 0 && none.transmissions == 0, "{one}");
    let (both, repair) = lost("both");
    assert_eq!(both, 0);
    // During a handover packets have no copy; of the packets in flight over the old satellite the copies over the other one arrive.
    assert!(repair.parity > 0 && repair.parity < repair.transmissions / 2);
    assert!(repair.repairs > 0 && repair.duplicates > repair.repairs * 100);
    assert!(repair.duplicates + repair.repairs <= repair.parity);
}

#[test]
fn losses_of_the_channel_are_squared_and_runs_repeat() {
    let p = 0.1;
    let s = scenario("both", "{ kind = \"per\", p = 0.1 }");
    let r = run(&s, 1, Null).expect("a run");
    let l = &r.links[0];
    let (offered, lost) =
        l.classes.iter().fold((0, 0), |(o, n), c| (o + c.offered, n + c.dropped[LossCause::Error as usize]));
    // Packets without a copy are lost with p, all others with p².
    let single = 2 * offered - l.repair.transmissions;
    let mean = (offered - single) as f64 * p * p + single as f64 * p;
    // Five standard deviations.
    assert!((lost as f64 - mean).abs() < 5.0 * mean.sqrt(), "{lost}, not {mean}");
    let digest = || run(&s, 7, Digest::default()).expect("a run").digest;
    assert_eq!(digest(), digest());
}
