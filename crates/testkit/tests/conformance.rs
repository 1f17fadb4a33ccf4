//! The conformance cases against the endpoint of the simulator, in virtual time.

use skyhaul_base::Duration;
use skyhaul_testkit::conformance::core::Core;
use skyhaul_testkit::conformance::scaled::ScaledTarget;
use skyhaul_testkit::conformance::{TargetKind, files, run};

#[test]
fn the_endpoint_of_the_simulator_conforms() {
    let (mut asked, mut failed) = (0, Vec::new());
    for (_, cases) in files::all().unwrap_or_else(|e| panic!("{e}")) {
        for case in cases.iter().filter(|c| c.is_for(TargetKind::Core)) {
            asked += 1;
            failed.extend(run(case, &mut Core::new(&case.conditions)).err().map(|f| f.to_string()));
        }
    }
    assert!(asked > 0);
    assert!(failed.is_empty(), "{} of {asked} cases failed:\n{}", failed.len(), failed.join("\n"));
}

/// A case that a real clock would hold up for minutes says so, and then runs in virtual time only.
#[test]
fn long_cases_are_marked() {
    let longest = Duration::from_secs(90);
    for (_, cases) in files::all().unwrap_or_else(|e| panic!("{e}")) {
        for case in cases.iter().filter(|c| c.slow.is_none()) {
            let waits = case.steps.iter().filter_map(|s| s.after).map(|(_, latest)| latest);
            let total = waits.fold(Duration::ZERO, |sum, t| sum + t);
            assert!(total <= longest, "{}/{} may take {total:?} and has no \"slow:\"", case.file, case.name);
        }
    }
}

/// Files about timers and what begins with them: timeouts, F-RTO, RACK and its probe, undo, keepalive, persist.
const TIMED: [&str; 9] = [
    "congestion",
    "long-path",
    "patience",
    "rack",
    "recovery",
    "sack-recovery",
    "spurious",
    "timer",
    "window",
];

/// Cases with a time that no path changes, and which.
const FIXED: [(&str, &str); 3] = [
    ("three-seconds-after-syn", "three seconds (RFC 6298 §5.7)"),
    ("three-seconds-after-syn-ack", "three seconds (RFC 6298 §5.7)"),
    ("three-seconds-with-timestamps", "three seconds (RFC 6298 §5.7)"),
];

#[test]
fn what_is_said_of_timers_holds_on_paths_of_20_ms_to_10_s() {
    // A case is written for 100 ms.
    for percent in [20, 600, 10_000] {
        let (mut asked, mut failed) = (0, Vec::new());
        for (file, cases) in files::all().unwrap_or_else(|e| panic!("{e}")) {
            let fixed = |name: &str| FIXED.iter().any(|(n, _)| *n == name);
            let timed = TIMED.contains(&file.as_str());
            for case in cases.iter().filter(|c| timed && c.is_for(TargetKind::Core) && !fixed(&c.name)) {
                asked += 1;
                let mut core = ScaledTarget::new(&case.conditions, percent);
                failed.extend(run(case, &mut core).err().map(|f| f.to_string()));
            }
        }
        assert!(asked > 100);
        assert!(
            failed.is_empty(),
            "over {percent} ms {} of {asked} cases failed:\n{}",
            failed.len(),
            failed.join("\n")
        );
    }
}
