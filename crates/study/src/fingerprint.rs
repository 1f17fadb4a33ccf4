//! Fingerprints: what the key of a cell says of the code that computes it.
//!
//! A fingerprint is the hash of the events of a reference run over a lossy satellite link with one control. The hashes are
//! recorded in `fingerprints.txt`, and a test compares them with the runs. The key of a cell contains those of the controls
//! that the cell uses, so that a new or changed control leaves the cells of all others valid.

/// A line for each control: its name and its hash.
const RECORDED: &str = include_str!("fingerprints.txt");

/// The control whose hash stands for the code that all controls share.
const REFERENCE: &str = "sack";

/// The fingerprint of the code that all controls share.
#[must_use]
pub fn shared() -> &'static str {
    of(REFERENCE).unwrap_or_default()
}

/// The fingerprint of a built-in control.
#[must_use]
pub fn of(control: &str) -> Option<&'static str> {
    RECORDED
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == control)
        .map(|(_, hash)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_scenario::{Document, no_files};
    use skyhaul_trace::Digest;

    const LINK: &str = r#"
        schema = 1
        duration = "25 s"
        [links.sat]
        packet = "1000 B"
        rate = "40 packets/s"
        delay = "125 ms"
        queue = { kind = "strict-pushout", limit = "10 packets" }
        error = { kind = "per", p = 5e-3 }
    "#;

    fn hash(control: &str) -> String {
        let flows = "[flows.a]\npath = [\"sat\"]\ncount = 2\nrwnd = \"64 segments\"\n";
        let text = format!("{LINK}\n{flows}cc = \"{control}\"\n");
        let scenario = Document::parse("reference", &text, &no_files).and_then(|d| d.resolve());
        let scenario = scenario.expect("the reference is a scenario");
        let result = skyhaul_sim::run(&scenario, 1, Digest::default()).expect("it can be simulated");
        format!("{:08x}", result.digest.expect("a digest is recorded") >> 32)
    }

    #[test]
    fn the_recorded_fingerprints_are_those_of_this_engine() {
        let now: String = skyhaul_cc::NAMES.iter().map(|name| format!("{name} {}\n", hash(name))).collect();
        if std::env::var_os("SKYHAUL_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fingerprints.txt");
            std::fs::write(file, &now).expect("fingerprints.txt can be written");
        } else {
            assert_eq!(
                RECORDED, now,
                "results changed, so cached cells must not be used: record the new fingerprints with \
                 SKYHAUL_BLESS=1 cargo test -p skyhaul-study fingerprint"
            );
        }
    }
}
