//! The conformance cases against the endpoint of the simulator, in virtual time.

use skyhaul_base::Duration;
use skyhaul_testkit::conformance::core::Core;
use skyhaul_testkit::conformance::{Pace, files, run};

#[test]
fn the_endpoint_of_the_simulator_conforms() {
    let (mut asked, mut failed) = (0, Vec::new());
    for (_, cases) in files::all().unwrap_or_else(|e| panic!("{e}")) {
        for case in cases.iter().filter(|c| c.is_for(Pace::Core)) {
            asked += 1;
            failed.extend(run(case, &mut Core::new(&case.given)).err().map(|f| f.to_string()));
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
