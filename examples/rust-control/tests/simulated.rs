//! The control in the simulator, by its name in a scenario.

use rust_control::controls;
use skyhaul_cc::Controls;
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{check_controls, run_with};
use skyhaul_trace::Digest;

fn scenario(cc: &str) -> Resolved {
    let mut document = Document::preset("peach-geo").expect("a preset");
    for set in ["duration=40 s", "flows.bulk.count=3", "links.sat.error.p=5e-3", cc] {
        document.set(set).expect("a setting");
    }
    document.resolve().expect("a scenario")
}

#[test]
fn equal_runs_are_equal_and_long_paths_gain() {
    let own = || run_with(&scenario("flows.bulk.cc=user:constant-rate"), 1, Digest::default(), &controls());
    let first = own().expect("a run");
    assert_eq!(first.digest, own().expect("a run").digest);
    let newreno =
        run_with(&scenario("flows.bulk.cc=newreno"), 1, Digest::default(), &controls()).expect("a run");
    assert!(first.segments_acked() > 1.5 * newreno.segments_acked());
}

#[test]
fn options_come_from_the_scenario() {
    let cc =
        "flows.bulk.cc={ name = 'user', control = 'constant-rate', options = { reference-rtt-ms = 1000 } }";
    // A reference above the RTT of 550 ms: SACK.
    let like_sack = run_with(&scenario(cc), 1, Digest::default(), &controls()).expect("a run");
    let sack = run_with(&scenario("flows.bulk.cc=sack"), 1, Digest::default(), &controls()).expect("a run");
    assert_eq!(like_sack.digest, sack.digest);
    assert_eq!(like_sack.flows, sack.flows);
    let bad = scenario(&cc.replace("= 1000", "= -1"));
    let why = check_controls(&bad, &controls()).expect_err("negative").to_string();
    assert_eq!(why, "flows.bulk.cc: reference-rtt-ms is a time in milliseconds, above 0");
}

#[test]
fn who_does_not_provide_it_is_told_how() {
    let why = check_controls(&scenario("flows.bulk.cc=user:constant-rate"), &Controls::default());
    assert!(why.expect_err("nobody provides it").to_string().contains("skyhaul_cc::Controls"));
}
