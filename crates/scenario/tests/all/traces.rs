//! Rates and delays that follow files.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::rate;
use skyhaul_scenario::resolved::{Change, Delay};
use skyhaul_scenario::{Document, LoadError, Resolved, ScenarioError, no_files};
use std::collections::BTreeMap;

const HEAD: &str = "schema = 1\nduration = \"100 s\"\n[flows.bulk]\n[links.sat]\nqueue = \"50 packets\"\n";

/// Resolves `a/geo.toml` with these lines of its link, and these files.
fn resolve(link: &str, files: &[(&str, &str)]) -> Result<Resolved, ScenarioError> {
    document(link, files).and_then(|d| d.resolve())
}

fn missing() -> LoadError {
    LoadError::System("no such file".into())
}

fn document(link: &str, files: &[(&str, &str)]) -> Result<Document, ScenarioError> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let load = move |path: &str| files.get(path).map(|t| (*t).to_owned()).ok_or_else(missing);
    Document::parse("a/geo.toml", &format!("{HEAD}{link}"), &load)
}

fn refused(link: &str, files: &[(&str, &str)]) -> String {
    resolve(link, files).expect_err("a refusal").to_string()
}

const MAHIMAHI: &str = "rate = { mahimahi = \"t.trace\" }\ndelay = \"250 ms\"\n";
const RATE: &str = "rate = { trace = \"t.csv\" }\ndelay = \"250 ms\"\n";
const DELAY: &str =
    "rate = \"8 Mbit/s\"\ndelay = { trace = \"t.csv\", interpolation = \"linear\", end = \"loop\" }\n";

#[test]
fn the_content_of_files_is_part_of_the_scenario() {
    for (link, name, text, other) in [
        (MAHIMAHI, "a/t.trace", "0\n5\n5\n12\n", "0\n5\n6\n12\n"),
        (RATE, "a/t.csv", "time_s,rate_mbit_s\n0,8\n10,2.5\n", "time_s,rate_mbit_s\n0,8\n10,2.6\n"),
        (DELAY, "a/t.csv", "time_s,delay_ms\n0,20\n10,25.5\n", "time_s,delay_ms\n0,20\n10.5,25.5\n"),
    ] {
        let resolved = resolve(link, &[(name, text)]).expect("good");
        // It stands alone, and says the same whatever the file was called.
        let alone = skyhaul_scenario::resolve_text("r.toml", &resolved.to_toml(), &[], &no_files);
        let alone = alone.expect("the canonical text resolves");
        assert_eq!((&alone, alone.hash()), (&resolved, resolved.hash()));
        let renamed = resolve(
            &link.replace("t.csv", "u.csv").replace("t.trace", "u.trace"),
            &[(&name.replace("/t.", "/u."), text)],
        );
        assert_eq!(renamed.expect("good").hash(), resolved.hash());
        let changed = resolve(link, &[(name, other)]).expect("good");
        assert_ne!(changed.hash(), resolved.hash());
    }
}

#[test]
fn units_are_those_of_the_header() {
    let files =
        [("a/t.csv", "# measured\n\ndelay_us, time_ms ,rate_kbit_s,loss\n20000,0,8000,0\n30000,500,2.5,0\n")];
    let both = "rate = { trace = \"t.csv\" }\ndelay = { trace = \"t.csv\" }\nreverse = { rate = \"1 Mbit/s\", delay = \"1 ms\" }\n";
    let s = resolve(both, &files).expect("good");
    let rate::Config::Steps(steps) = &s.links[0].forward.rate else { panic!("steps") };
    let points: Vec<(u64, u64)> = steps.points().map(|(t, r)| (t.as_nanos(), r.bits_per_sec())).collect();
    assert_eq!(points, [(0, 8_000_000), (500_000_000, 2_500)]);
    // The mean up to the last time stands for the rate where one number is needed.
    assert_eq!(s.links[0].forward.rate.mean().map(|r| r.bits_per_sec()), Some(8_000_000));
    let Delay::Trace(trace) = &s.links[0].forward.delay else { panic!("a trace") };
    assert_eq!(trace.at(Instant::from_secs_f64(0.4)), Duration::from_millis(20));
    assert_eq!(trace.at(Instant::from_secs_f64(0.5)), Duration::from_millis(30));
    assert_eq!(
        (&s.links[0].reverse.rate, &s.links[0].reverse.delay),
        (&Rate::from_bits_per_sec(1_000_000).into(), &Delay::fixed(Duration::from_millis(1)))
    );
}

#[test]
fn the_reverse_direction_overrides_and_events_may_name_files() {
    let text = "rate = \"8 Mbit/s\"\ndelay = \"250 ms\"\nreverse = { rate = { mahimahi = \"t.trace\" } }\n\
                [[event]]\nat = \"10 s\"\nset = { \"links.sat.rate\" = { trace = \"t.csv\" } }\n\
                [[event]]\nat = \"20 s\"\nset = { \"links.sat.rate\" = \"1 Mbit/s\", \"links.sat.delay\" = { trace = \"d.csv\" } }\n";
    let files = [
        ("a/t.trace", "1\n2\n"),
        ("a/t.csv", "time_s,rate_bit_s\n0,1000\n"),
        ("a/d.csv", "time_s,delay_s\n0,0.1\n"),
    ];
    let s = resolve(text, &files).expect("good");
    let rate::Config::Opportunities(o) = &s.links[0].reverse.rate else { panic!("a schedule") };
    assert_eq!((o.times(), !s.links[0].forward.rate.varies()), (&[1, 2][..], true));
    let what: Vec<bool> =
        s.events.iter().map(|e| matches!(&e.change, Change::Rate(rate) if rate.varies())).collect();
    // The rate; the rate again; the delays of both directions.
    assert_eq!(what, [true, false, false, false]);
    let again = skyhaul_scenario::resolve_text("r.toml", &s.to_toml(), &[], &no_files);
    assert_eq!(again.expect("canonical"), s);
}

#[test]
fn overrides_read_files_from_where_the_command_stands() {
    let mut d = document("rate = \"8 Mbit/s\"\ndelay = \"250 ms\"\n", &[]).expect("good");
    d.set("links.sat.rate={ mahimahi = \"t.trace\" }").expect("an override");
    let e = d.resolve().expect_err("not read yet").to_string();
    assert!(e.starts_with("--set: links.sat.rate.mahimahi: \"t.trace\" cannot be read from here"), "{e}");
    let missing = d.clone().read_traces(&|_| Err(missing())).expect_err("missing").to_string();
    assert_eq!(missing, "--set: links.sat.rate.mahimahi: cannot read t.trace: no such file");
    d.read_traces(&|path| if path == "t.trace" { Ok("7\n".into()) } else { Err(LoadError::NoFiles) })
        .expect("read");
    assert!(d.resolve().expect("good").links[0].forward.rate.varies());
    // A rate of its own takes the place of the whole table.
    d.set("links.sat.rate=1 Mbit/s").expect("an override");
    assert!(!d.resolve().expect("good").links[0].forward.rate.varies());
}

/// The content of the previous file does not stay beside the name of another one.
#[test]
fn another_file_replaces_the_content_of_the_previous_one() {
    let load = |path: &str| match path.trim_start_matches("b/../") {
        "a/t.csv" => Ok("time_s,rate_mbit_s,delay_ms\n0,8,20\n1,8,20\n".to_owned()),
        "new.csv" | "b/new.csv" => Ok("time_s,rate_mbit_s\n0,2\n".to_owned()),
        "a/base.toml" => {
            let both = "rate = { trace = \"t.csv\" }\ndelay = { trace = \"t.csv\", end = \"loop\" }\n";
            Ok(format!("{HEAD}{both}"))
        }
        _ => Err(missing()),
    };
    let of = |d: &Document| {
        let forward = d.resolve().expect("good").links[0].forward.clone();
        (forward.rate.mean().map(Rate::bits_per_sec), forward.delay.base())
    };
    let open = || Document::open("a/base.toml", &load).expect("good");
    let mut d = open();
    assert_eq!(of(&d), (Some(8_000_000), Duration::from_millis(20)));
    d.set("links.sat.rate.trace=new.csv").expect("an override");
    let e = d.resolve().expect_err("not read yet").to_string();
    assert!(e.starts_with("--set: links.sat.rate.trace: \"new.csv\" cannot be read from here"), "{e}");
    d.read_traces(&load).expect("read");
    assert_eq!(of(&d), (Some(2_000_000), Duration::from_millis(20)));
    d.set("links.sat.delay.trace=gone.csv").expect("an override");
    let e = d.read_traces(&load).expect_err("missing").to_string();
    assert_eq!(e, "--set: links.sat.delay.trace: cannot read gone.csv: no such file");
    // An override may give the content itself, before or after the name.
    let (name, text) = ("links.sat.delay.trace=x", "links.sat.delay.text=\"time_s,delay_s\\n0,1\\n9,1\\n\"");
    for sets in [[text, name], [name, text]] {
        let mut d = open();
        sets.iter().for_each(|set| d.set(set).expect("an override"));
        d.read_traces(&load).expect("nothing to read");
        assert_eq!(of(&d).1, Duration::from_secs(1));
    }
    // A file that extends another names files of its own folder; a table without a file changes keys beside the name.
    let above = |rate: &str| {
        let text = format!("extends = \"../a/base.toml\"\n[links.sat]\n{rate}");
        Document::parse("b/top.toml", &text, &load).expect("good")
    };
    assert_eq!(of(&above("rate = { trace = \"new.csv\" }")).0, Some(2_000_000));
    let rate = |d: &Document| d.resolve().expect("good").links[0].forward.rate.clone();
    let (held, repeated) = (rate(&open()), rate(&above("rate.end = \"loop\"")));
    assert!(held.mean() == repeated.mean() && held != repeated);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    for (link, text, want) in [
        (MAHIMAHI, "", "a/t.trace: empty: it needs at least one line"),
        (
            MAHIMAHI,
            "5\n-1\n",
            "a/t.trace:2: \"-1\" is not a time: write a whole number of milliseconds, from 0 to 4294967295, in each line",
        ),
        (MAHIMAHI, "5\n\n", "a/t.trace:2: \"\" is not a time: write a whole"),
        (MAHIMAHI, "5\n1.5\n", "a/t.trace:2: \"1.5\" is not a time"),
        (MAHIMAHI, "5\n7\n6\n", "a/t.trace:3: 6 follows 7: times must not descend"),
        (MAHIMAHI, "0\n0\n", "a/t.trace:2: the last time is 0, which is not a period: end with a later time"),
        (RATE, "", "a/t.csv: empty: begin with a header such as time_s,rate_bit_s"),
        (
            RATE,
            "0,5\n",
            "a/t.csv:1: the header has no column of time: write one of time_s, time_ms, time_us, time_ns, as in time_s,rate_bit_s",
        ),
        (
            RATE,
            "time_s,rate\n",
            "a/t.csv:1: the header has no column of rate: write one of rate_bit_s, rate_kbit_s, rate_mbit_s, rate_gbit_s",
        ),
        (RATE, "time_s,time_ms,rate_bit_s\n", "a/t.csv:1: the header has two columns of time: leave one out"),
        (RATE, "time_s,rate_bit_s\n", "a/t.csv:1: there is no line after the header"),
        (RATE, "time_s,rate_bit_s\n0,5\n1\n", "a/t.csv:3: 1 values, but the header has 2 columns"),
        (
            RATE,
            "time_s,rate_bit_s\n0,5\n1,-4\n",
            "a/t.csv:3: rate_bit_s is \"-4\", which is negative: write a number ≥ 0",
        ),
        (RATE, "time_s,rate_bit_s\n0,NaN\n", "a/t.csv:2: rate_bit_s is \"NaN\", which is not a valid number"),
        (RATE, "time_s,rate_bit_s\n5,1\n\n5,2\n", "a/t.csv:4: times must ascend"),
        (RATE, "time_s,rate_bit_s\n0,1\n5,0\n", "a/t.csv:3: nothing is ever sent after the last time"),
        (DELAY, "time_s,delay_ms\n0,1\n", "a/t.csv:2: the last time is 0, which is not a period to repeat"),
        (DELAY, "time_s,delay_s\n0,1\n1,3601\n", "a/t.csv:3: a delay of more than an hour"),
    ] {
        let name = if link == MAHIMAHI { "a/t.trace" } else { "a/t.csv" };
        let got = refused(link, &[(name, text)]);
        assert!(got.starts_with(want), "\n got {got}\nwant {want}");
    }
}

#[test]
fn what_makes_no_sense_around_a_file_is_refused_with_its_key() {
    let csv = [("a/t.csv", "time_s,rate_bit_s,delay_s\n0,5,1\n50,5,1\n"), ("a/t.trace", "5\n")];
    for (from, to, want) in [
        ("t.csv", "gone.csv", "a/geo.toml:6: links.sat.rate.trace: cannot read a/gone.csv: no such file"),
        (
            "{ trace = \"t.csv\" }",
            "{ trace = \"t.csv\", mahimahi = \"t.trace\" }",
            "a/geo.toml:6: links.sat.rate: write one of mahimahi = \"FILE\", trace = \"FILE\"",
        ),
        (
            "{ trace = \"t.csv\" }",
            "{ trace = \"t.csv\", interpolation = \"linear\" }",
            "a/geo.toml:6: links.sat.rate.interpolation: rates are steps",
        ),
        (
            "{ trace = \"t.csv\" }",
            "{ trace = \"t.csv\", end = \"error\" }",
            "a/geo.toml:6: links.sat.rate.trace: the trace ends at 50 s, but the run at 100 s",
        ),
        (
            "{ trace = \"t.csv\" }",
            "{ trace = \"t.csv\", loop = true }",
            "a/geo.toml:6: links.sat.rate.loop: unknown key",
        ),
        (
            "{ trace = \"t.csv\" }",
            "{ mahimahi = \"t.trace\", end = \"hold\" }",
            "a/geo.toml:6: links.sat.rate.end: a Mahimahi trace always repeats",
        ),
        (
            "\"250 ms\"",
            "{ mahimahi = \"t.trace\" }",
            "a/geo.toml:7: links.sat.delay.mahimahi: this file gives a rate, not a delay: write trace =",
        ),
        (
            "{ trace = \"t.csv\" }",
            "{ trace = 5 }",
            "a/geo.toml:6: links.sat.rate.trace: 5 is not accepted here: write a string in quotes",
        ),
    ] {
        let got = refused(&RATE.replace(from, to), &csv);
        assert!(got.starts_with(want), "\n got {got}\nwant {want}");
    }
}
