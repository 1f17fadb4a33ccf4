//! Every refusal is one line that names the file, the line if there is one, the key, and what to write.

mod flows;
mod links;

use skyhaul_scenario::{Document, ScenarioError, no_files, resolve_text};

/// A small valid scenario. The line numbers in the expected refusals refer to it.
const GEO: &str = r#"schema = 1
duration = "550 s"

[links.sat]
rate = "10.4 Mbit/s"
delay = "275 ms"
queue = { kind = "strict-pushout", limit = "50 packets" }
error = { kind = "per", p = 1e-3 }
reverse = { error = "none" }

[flows.bulk]
count = 20
path = ["sat"]
cc = { name = "peach", recovery = "sack" }
endpoint = "ns2-2001"
rwnd = "64 segments"
app = { kind = "bulk" }
start = { uniform = ["0 s", "1 s"] }

[record]
sample = "100 ms"
series = ["cwnd", "srtt", "queue"]
"#;

fn check(text: &str) -> Result<(), ScenarioError> {
    resolve_text("geo.toml", text, &[], &no_files).map(|_| ())
}

/// `GEO` with one passage replaced.
fn with(passage: &str, by: &str) -> String {
    assert_eq!(GEO.matches(passage).count(), 1, "{passage}");
    GEO.replace(passage, by)
}

/// Each case: a passage of `GEO`, what replaces it, and the expected refusal; a text that ends with a space is only the beginning of one.
fn refused(cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for &(passage, by, want) in cases {
        let got = check(&with(passage, by)).map_or_else(|e| e.to_string(), |()| "accepted".into());
        let partial = want.ends_with(' ');
        if got.contains('\n') || !(got == want || partial && got.starts_with(want)) {
            wrong.push(format!("{by}\n   got {got}\n  want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_base_is_valid() {
    check(GEO).unwrap();
}

#[test]
fn files() {
    refused(&[
        (
            "schema = 1",
            "schema = 2",
            "geo.toml:1: schema: this program reads version 1 of the format: write schema = 1",
        ),
        (
            "duration = \"550 s\"",
            "duration = \"-550 s\"",
            "geo.toml:2: duration: \"-550 s\" is negative: write a time with a unit, such as \"550 ms\"",
        ),
        (
            "duration = \"550 s\"",
            "",
            "geo.toml: duration: missing: write how long the run lasts, such as duration = \"550 s\"",
        ),
        (
            "duration = \"550 s\"",
            "duration = \"550 s\"\nseed = -1",
            "geo.toml:3: seed: -1 is not accepted here: write a whole number ≥ 0",
        ),
        (
            "sample = \"100 ms\"",
            "sample = \"0 s\"",
            "geo.toml:21: record.sample: the interval between samples is zero: write a time such as \"100 ms\"",
        ),
        (
            "sample = \"100 ms\"",
            "",
            "geo.toml:20: record.sample: missing: write how often to sample, such as sample = \"100 ms\"",
        ),
        (
            "[\"cwnd\", \"srtt\", \"queue\"]",
            "[\"cwnd\", \"rtt\"]",
            "geo.toml:22: record.series[1]: \"rtt\" is unknown, did you mean \"srtt\"? (known: acked, allowed-rate, attenuation, buffered, bwe, custody, cwnd, delay, elevation, es-n0, in-flight, loss-event-rate, marked, modcod, pipe, queue, rate, retransmissions, rto, satellite, srtt, ssthresh, stalled, telemetry, up, utilization)",
        ),
        (
            "[\"cwnd\", \"srtt\", \"queue\"]",
            "[\"cwnd\", \"cwnd\"]",
            "geo.toml:22: record.series: \"cwnd\" is listed twice",
        ),
        (
            "[flows.bulk]",
            "[flow.bulk]",
            "geo.toml:11: flow: unknown key, did you mean \"flows\"? (known: schema, extends, title, duration, seed, max-memory, record, links, gateways, repair, flows, event)",
        ),
        (
            "schema = 1",
            "schema = 1\nextends = \"preset:peach-gso\"",
            "geo.toml:2: extends: there is no preset \"peach-gso\", did you mean \"peach-geo\"? (known: geo-bent-pipe-dama, geo-hts-ka, geo-today, geo-today-access, in-flight-geo, l4s-dual-queue, leo-1200-polar, leo-780-polar, leo-walker-550, luglio, maritime-vsat, meo-8062, neglia, neglia-access, papadimitriou, papadimitriou-access, peach-geo, peach-geo-access, peach-hetero, peach-hetero-access, peach-leo, peach-meo, satcom-fading, satcom-interop, satcom-large, satcom-large-jitter, satcom-large-loss, satcom-medium, satcom-small, satcom-small-up, satcom-wifi)",
        ),
        (
            "schema = 1",
            "schema = 1\nextends = \"base.toml\"",
            "geo.toml:2: extends: cannot read base.toml: files cannot be read here, only presets",
        ),
        ("schema = 1", "schema = ", "geo.toml:1: not TOML: "),
        ("count = 20", "count = 20\ncount = 20", "geo.toml:13: not TOML: duplicate key (column 1)"),
    ]);
}

/// Refusals name the line of an `[[event]]` or of a key in it, quoted or not.
#[test]
fn events_have_lines_of_their_own() {
    let events = "[[event]]\nat = \"1 s\"\nset = { \"links.sat.rate\" = \"1 Mbit/s\" }\n\n\
                  [[event]]\nat = \"2 s\"\n\"set\" = { \"links.sat.error\" = { kind = \"per\", p = 0.5 } }\n";
    assert_eq!(GEO.lines().count(), 22);
    for (right, wrong, want) in [
        ("\"2 s\"", "2", "geo.toml:28: event[1].at: 2 has no unit"),
        ("at = \"2 s\"\n", "", "geo.toml:27: event[1].at: missing"),
        ("p = 0.5", "p = 5", "geo.toml:29: event[1].set.links.sat.error.p: 5 is not a probability"),
        ("\"1 Mbit/s\"", "\"0 bit/s\"", "geo.toml:25: event[0].set.links.sat.rate: "),
        ("links.sat.error", "links.sat.queue", "geo.toml:29: event[1].set.links.sat.queue: cannot change"),
        (
            "p = 0.5 } }",
            "p = 0.5 } }\ncrash = \"g\"",
            "geo.toml:30: event[1].crash: there is no gateway \"g\"",
        ),
    ] {
        assert_eq!(events.matches(right).count(), 1, "{right}");
        let got = check(&format!("{GEO}{}", events.replace(right, wrong))).unwrap_err().to_string();
        assert!(got.starts_with(want), "\n got {got}\nwant {want}");
    }
    // An array in a file replaces that of the file it extends; an override replaces both.
    let load = |path: &str| match path {
        "base.toml" => Ok(format!("{GEO}{events}")),
        _ => no_files(path),
    };
    let above = "extends = \"base.toml\"\n[[event]]\nat = \"1 s\"\ncrash = \"g\"\n[[event]]\ncrash = \"g\"\n";
    let e = resolve_text("top.toml", above, &[], &load).unwrap_err().to_string();
    assert!(e.starts_with("top.toml:5: event[1].at: missing"), "{e}");
    let set = "event=[{ at = '1 s', crash = 'g' }]";
    let e = resolve_text("top.toml", above, &[set], &load).unwrap_err().to_string();
    assert!(e.starts_with("--set: event[0].crash: there is no gateway \"g\""), "{e}");
}

#[test]
fn an_empty_list_of_names_is_not_shown() {
    let e = resolve_text("a.toml", "duration = \"1 s\"", &["flows.bulk.cc=sack"], &no_files).unwrap_err();
    assert_eq!(e.to_string(), "--set: flows.bulk.cc: there is no flows.bulk");
}

#[test]
fn nothing_to_run() {
    let e = check("duration = \"1 s\"").unwrap_err().to_string();
    assert_eq!(e, "geo.toml: links: there is no link: add a table such as [links.sat] with rate and delay");
    let e = check(&GEO[..GEO.find("[flows").unwrap()]).unwrap_err().to_string();
    assert_eq!(e, "geo.toml: flows: there is no flow: add a table such as [flows.bulk]");
    let e = check(&format!("{GEO}\n[links.b]\nrate='1 Mbit/s'\ndelay='1 ms'\n[flows.other]")).unwrap_err();
    assert_eq!(
        e.to_string(),
        "geo.toml:27: flows.other.path: missing: name the links of the path, in order (known: b, sat)"
    );
    let text = "duration='1 s'\n[links.a]\nrate='1 Mbit/s'\ndelay='0 s'\n[flows.a]\nhandshake=false";
    assert_eq!(
        check(text).unwrap_err().to_string(),
        "geo.toml:5: flows.a.known-rtt: the known RTT is zero: write a time such as \"10 ms\""
    );
}

#[test]
fn overrides() {
    let cases = [
        (
            "links.sat.error.p=1.2",
            "--set: links.sat.error.p: 1.2 is not a probability: write a number from 0 to 1",
        ),
        (
            "links.sta.error.p=0.1",
            "--set: links.sta.error.p: there is no links.sta, did you mean \"sat\"? (known: sat)",
        ),
        (
            "links.sat.eror.p=0.1",
            "--set: links.sat.eror: unknown key, did you mean \"error\"? (known: packet, rate, delay, orbit, allow-reorder, queue, error, duplicate, ack-errors, ack-size, reconstruct-acks, up, drop-in-flight, fade, fec, arq, reverse)",
        ),
        (
            "links.sat.rate.x=1",
            "--set: links.sat.rate.x: links.sat.rate is \"10.4 Mbit/s\", which has no keys",
        ),
        (
            "flow.bulk.cc=sack",
            "--set: flow: unknown key, did you mean \"flows\"? (known: schema, extends, title, duration, seed, max-memory, record, links, gateways, repair, flows, event)",
        ),
        ("flows.bulk.cc", "--set: flows.bulk.cc: write KEY=VALUE, such as links.sat.error.p=1e-2"),
        ("flows..cc=sack", "--set: flows..cc: write a path of keys with dots, such as links.sat.error.p"),
        ("flows.bulk.cc={name", "--set: flows.bulk.cc: {name is not TOML: "),
        (
            "flows.bulk.cc=pech",
            "--set: flows.bulk.cc: \"pech\" is not a congestion control, did you mean \"peach\"? (known: ",
        ),
        (
            "flows.bulk.cc.recovery=sak",
            "--set: flows.bulk.cc.recovery: \"sak\" is unknown, did you mean \"sack\"? (known: tahoe, reno, newreno, sack, prr)",
        ),
        ("flows.bulk.rwnd=64", "--set: flows.bulk.rwnd: 64 has no unit: write \"64 segments\" or \"64 B\""),
        // An override can also uncover a problem of the file.
        (
            "links.sat.error.kind=ber",
            "geo.toml:8: links.sat.error.p: unknown key (known: ber, ber-unit, ber-is, code)",
        ),
    ];
    let mut wrong = Vec::new();
    for (set, want) in cases {
        let got = resolve_text("geo.toml", GEO, &[set], &no_files);
        let got = got.map_or_else(|e| e.to_string(), |_| "accepted".into());
        if got.contains('\n') || !(got == want || want.ends_with(' ') && got.starts_with(want)) {
            wrong.push(format!("{set}\n   got {got}\n  want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_problem_is_placed_in_the_file_that_holds_the_key() {
    let load = |path: &str| match path {
        "dir/base.toml" => Ok(with("p = 1e-3", "p = 7")),
        "dir/loop.toml" => Ok("extends = \"top.toml\"".into()),
        _ => no_files(path),
    };
    let e = resolve_text("dir/top.toml", "extends = \"base.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/base.toml:8: links.sat.error.p: 7 is not a probability: write a number from 0 to 1"
    );
    let text = "extends = \"base.toml\"\n[links.sat.error]\np = 8";
    let e = resolve_text("dir/top.toml", text, &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/top.toml:3: links.sat.error.p: 8 is not a probability: write a number from 0 to 1"
    );
    let e = resolve_text("dir/top.toml", "extends = \"loop.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/loop.toml:1: extends: \"top.toml\" extends this file: the files form a loop"
    );
    let load = |path: &str| {
        let n: u32 = path.trim_start_matches("dir/").trim_end_matches(".toml").parse().expect("a number");
        Ok(format!("extends = \"{}.toml\"", n + 1))
    };
    let e = resolve_text("dir/0.toml", "extends = \"1.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/15.toml:1: extends: the chain of `extends` is longer than 16 files: merge some of them"
    );
    let study = "schema = 1\nscenario = \"preset:peach-geo\"";
    let e = resolve_text("fig.toml", study, &[], &no_files).unwrap_err();
    assert_eq!(
        e.to_string(),
        "fig.toml:2: scenario: this is a study, not a scenario: run it with skyhaul study run"
    );
    let e = Document::open("preset:peach", &no_files).unwrap_err();
    assert!(
        e.to_string().starts_with("preset:peach: there is no such preset (known: geo-bent-pipe-dama"),
        "{e}"
    );
    let e = Document::open("nowhere.toml", &no_files).unwrap_err();
    assert_eq!(e.to_string(), "nowhere.toml: cannot read: files cannot be read here, only presets");
}

#[test]
fn legal_extremes() {
    for (passage, by) in [
        ("count = 20", "count = 1"),
        ("limit = \"50 packets\"", "limit = \"1 packet\""),
        ("limit = \"50 packets\"", "limit = \"0 packets\""),
        ("p = 1e-3", "p = 1"),
        ("p = 1e-3", "p = 0"),
        ("duration = \"550 s\"", "duration = \"0 s\""),
        ("rwnd = \"64 segments\"", "rwnd = \"1 segment\""),
        ("rwnd = \"64 segments\"", "rwnd = \"1 GB\"\nsndbuf = \"unlimited\""),
        ("rate = \"10.4 Mbit/s\"\ndelay = \"275 ms\"", "rate = \"10 Gbit/s\"\ndelay = \"5 s\""),
        ("queue = { kind = \"strict-pushout\", limit = \"50 packets\" }", "queue = \"1 BDP\""),
        ("delay = \"275 ms\"", "delay = \"0 s\""),
        ("[\"0 s\", \"1 s\"]", "[\"1 s\", \"1 s\"]"),
    ] {
        check(&with(passage, by)).unwrap_or_else(|e| panic!("{by}: {e}"));
    }
}

#[test]
fn rack_is_accepted_exactly_where_losses_are_repaired_with_sack() {
    for (cc, fits) in [("sack", true), ("prr", true), ("cubic", true), ("bbr", true), ("peach", true)]
        .into_iter()
        .chain([("peach-plus", true), ("tahoe", false), ("reno", false), ("newreno", false)])
    {
        for preset in ["ns2-2001", "ns2-2004", "rfc", "modern"] {
            let by = format!(
                "cc = \"{cc}\"\nendpoint = {{ preset = \"{preset}\", loss-detection = \"rack\", tail-loss-probe = true }}"
            );
            let old = "cc = { name = \"peach\", recovery = \"sack\" }\nendpoint = \"ns2-2001\"";
            assert_eq!(check(&with(old, &by)).is_ok(), fits, "{cc} on {preset}");
        }
    }
}
