//! `reproduce` and `compare` as users meet them: one report over all studies, even after interruptions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn skyhaul(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(args).current_dir(folder).env("PATH", "").env("SKYHAUL_CACHE", folder.join("the-cache"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = skyhaul(folder, args).output().expect("the program starts");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reproduce-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("writable");
}

const STUDY: &str = r#"schema = 1
title = "Small"
seeds = { first = 1, count = 4 }
quick = { seeds = 2, set = { duration = "3 s" }, only = { loss = ["0", "1e-2"] } }
[scenario]
schema = 1
duration = "5 s"
[scenario.links.sat]
packet = "1000 B"
rate = "1300 packets/s"
delay = "275 ms"
queue = "50 packets"
error = { kind = "per", p = 1e-3 }
[scenario.flows.bulk]
count = 2
cc = "sack"
endpoint = "ns2-2001"
rwnd = "64 segments"
[scenario.record]
sample = "1 ms"
series = ["cwnd"]
[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", "peach"]
[[axis]]
name = "loss"
path = "links.sat.error.p"
values = [0, 1e-3, 1e-2]
labels = ["0", "1e-3", "1e-2"]
[[reading]]
label = "with <Reno>"
set = { "flows.bulk.cc" = "reno" }
only = { cc = "sack" }
[[metric]]
name = "goodput"
from = "flow.goodput_segments"
over = "sum"
unit = "segments/s"
[[claim]]
id = "1"
says = "Peach starts faster"
at = { loss = "0" }
check = { kind = "greater", metric = "goodput", left = { cc = "peach" }, right = { cc = "sack" } }
[[claim]]
id = "2"
says = "Loss costs at every step"
at = { cc = "sack" }
check = { kind = "monotone", metric = "goodput", along = "loss", direction = "decreasing" }
[[figure]]
file = "start"
x = "loss"
y = "goodput"
series = "cc"
x_scale = "log"
[[figure]]
file = "window"
series = "cc"
at = { loss = "0" }
time = { series = "cwnd" }
"#;

const PAPER: &str = r#"schema = 1
title = "A paper <of> 1999"
authors = ["A. Nobody"]
published = "1999"
order = ["two", "one"]
[[elsewhere]]
id = "3"
says = "Proved by a test"
test = "crates/cc/src/a.rs::t"
[[open]]
id = "4"
says = "Nobody knows"
why = "the figure is missing"
"#;

/// Two papers with three studies that take some time.
fn library(here: &Path, duration: &str) {
    let study = STUDY.replace("\"5 s\"", &format!("\"{duration}\""));
    put(here.join("studies/old/paper.toml"), PAPER);
    put(here.join("studies/old/one.toml"), &study);
    put(here.join("studies/old/two.toml"), &study.replace("1300 packets", "1200 packets"));
    put(here.join("studies/own/three.toml"), &study.replace("1300 packets", "1100 packets"));
}

/// Cells of all studies together: three studies, 2·3 combinations and 3 of the reading, 4 seeds.
const CELLS: usize = 3 * 9 * 4;

/// All files below a folder by their relative path, without the lines that have dates and durations.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).expect("below").to_string_lossy().into_owned();
            let mut bytes = fs::read(&path).unwrap_or_default();
            if name.ends_with("manifest.json") || name == "report.html" {
                let text = String::from_utf8(bytes).expect("UTF-8");
                let dated = |l: &&str| ["\"created\"", "\"wall_s\"", "<time>"].iter().any(|d| l.contains(d));
                bytes = text.lines().filter(|l| !dated(l)).collect::<Vec<_>>().join("\n").into_bytes();
            }
            all.insert(name, bytes);
        }
    }
    all
}

fn stored(cache: &Path) -> Vec<PathBuf> {
    let files = contents(cache).into_keys().filter(|n| n.ends_with(".json") && !n.ends_with(".tmp"));
    files.map(|n| cache.join(n)).collect()
}

/// Starts the program, waits until `cells` cells are stored, and kills it. Returns the number of stored cells; `None` if the program
/// was faster.
fn killed(here: &Path, args: &[&str], cells: usize) -> Option<usize> {
    let mut child = skyhaul(here, args).spawn().expect("the program starts");
    let cache = here.join("the-cache/cells");
    while stored(&cache).len() < cells {
        if child.try_wait().expect("a status").is_some() {
            break;
        }
        sleep(Duration::from_millis(1));
    }
    // SIGKILL on Unix: nothing of the program runs after it.
    let _ = child.kill();
    child.wait().expect("it ended");
    Some(stored(&cache).len()).filter(|n| *n < CELLS)
}

#[test]
fn a_killed_reproduction_goes_on_and_ends_the_same_on_any_number_of_threads() {
    let here = folder("killed");
    let mut left = None;
    for duration in ["20 s", "100 s", "500 s"] {
        let _ = fs::remove_dir_all(here.join("the-cache"));
        library(&here, duration);
        left = killed(&here, &["reproduce", "--studies", "studies", "--out", "out", "--jobs", "1"], 30);
        if left.is_some() {
            break;
        }
    }
    let left = left.expect("long runs take longer than it takes to look for them");
    assert!(left >= 30);
    let (status, _, stderr) = run(&here, &["compare", "out", "out"]);
    assert!(status == Some(2) && stderr.contains("interrupted"), "{stderr}");
    let changed = |p: &PathBuf| fs::metadata(p).and_then(|m| m.modified()).expect("a file");
    let before: Vec<_> =
        stored(&here.join("the-cache/cells")).into_iter().map(|p| (changed(&p), p)).collect();

    let resumed = ["reproduce", "--studies", "studies", "--out", "out", "--jobs", "2"];
    assert_eq!(run(&here, &resumed).0, Some(0));
    assert!(before.iter().all(|(time, path)| changed(path) == *time), "finished cells are not run again");
    assert_eq!(stored(&here.join("the-cache/cells")).len(), CELLS);

    let whole = ["reproduce", "--studies", "studies", "--out", "whole", "--jobs", "1", "--cache", "other"];
    assert_eq!(run(&here, &whole).0, Some(0));
    let (mut a, b) = (contents(&here.join("out")), contents(&here.join("whole")));
    a.retain(|name, _| !name.ends_with(".tmp"));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{name} is not the same");
    }
    for name in
        ["report.html", "summary.json", "claims.csv", "claims.parquet", "studies/old/one/cells.parquet"]
    {
        assert!(a.contains_key(name), "{name}");
    }
    let (status, stdout, _) = run(&here, &["compare", "out", "whole"]);
    assert!(status == Some(0) && stdout.contains("Identical."), "{stdout}");
}

#[test]
fn the_report_has_everything_and_needs_nothing() {
    let here = folder("report");
    library(&here, "5 s");
    put(here.join("studies/own/broken.toml"), &STUDY.replace("goodput\", along", "goodputs\", along"));
    let (status, stdout, stderr) = run(&here, &["reproduce", "--studies", "studies", "--out", "out"]);
    // The broken study does not stop the others, and is reported with file, line, key and the accepted names.
    assert_eq!(status, Some(2), "{stderr}");
    for word in ["broken.toml:", "claim[1].check", "goodputs", "accepted: goodput"] {
        assert!(stderr.lines().last().is_some_and(|l| l.contains(word)), "{word}: {stderr}");
    }
    assert!(stdout.contains("old") && stdout.contains("Report:  out/report.html"), "{stdout}");
    let page = fs::read_to_string(here.join("out/report.html")).expect("a page");
    let titles = [
        "A paper &lt;of&gt; 1999",
        "id=\"old--two\"",
        "id=\"old--one\"",
        "id=\"own--three\"",
        "id=\"claims\"",
    ];
    let places: Vec<usize> = titles.iter().map(|t| page.find(t).unwrap_or_else(|| panic!("{t}"))).collect();
    assert!(places.windows(2).all(|w| w[0] < w[1]), "in the order of the paper: {places:?}");
    for part in [
        "own/broken",
        "Proved by a test",
        "crates/cc/src/a.rs::t",
        "the figure is missing",
        "with &lt;Reno&gt;",
        "id=\"old--one--claim-0\"",
        "href=\"#old--one--claim-0\"",
        "href=\"data:text/plain;charset=utf-8,schema",
        "are thinned for the screen",
        "@media print",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["src=\"http", "href=\"http", "@import", "sourceMappingURL", "<Reno>", "<of>"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("vegaEmbed=").count().max(1), 1, "the libraries are there once");
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(here.join("out/summary.json")).expect("a summary"))
            .expect("JSON");
    assert_eq!(summary["counts"]["total"], 3 * 2 + 2);
    assert_eq!((&summary["counts"]["elsewhere"], &summary["counts"]["open"]), (&1.into(), &1.into()));
    assert!(summary["papers"][1]["studies"][0]["error"].as_str().is_some_and(|e| e.contains("goodputs")));
    assert!(
        summary["engine"].as_str().is_some_and(|e| e.starts_with(summary["version"].as_str().unwrap_or("?")))
    );
    let claims = fs::read_to_string(here.join("out/claims.csv")).expect("a table");
    // The header; two claims of three studies under the default reading and under the other one; two claims of paper.toml.
    assert_eq!(claims.lines().count(), 1 + 3 * 2 + 3 * 2 + 2, "{claims}");
    // The number behind a claim with a single case; none where there are several, or no study.
    let numbers = |head: &str| {
        let line = claims.lines().find(|l| l.starts_with(head)).unwrap_or_else(|| panic!("{head}"));
        // Behind them are three columns for a median.
        line.rsplit(',').skip(3).take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    let [ci95, mean, quantity] = &numbers("own,three,1,")[..] else { panic!("three columns") };
    assert_eq!(quantity, "lead");
    let (ci95, mean): (f64, f64) = (ci95.parse().expect("a number"), mean.parse().expect("a number"));
    assert!(ci95 >= 0.0 && mean > ci95, "Peach leads certainly: {mean} {ci95}");
    for head in ["own,three,2,", "old,,3,", "old,,4,"] {
        assert_eq!(numbers(head), ["", "", ""], "{head}");
    }
    assert!(
        claims.starts_with("paper,study,claim,kind,standing,repeats,where,says,stated,reading,ours,verdict,"),
        "{claims}"
    );
}

#[test]
fn the_quick_profile_leaves_claims_out_and_says_so() {
    let here = folder("quick");
    library(&here, "5 s");
    let quick = ["reproduce", "--quick", "--studies", "studies", "--out", "out", "--json", "own/three"];
    let (status, stdout, stderr) = run(&here, &quick);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let summary: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let counts = &summary["counts"];
    assert_eq!((&counts["not_in_profile"], &counts["total"]), (&1.into(), &2.into()), "{counts}");
    let study = &summary["papers"][0]["studies"][0];
    let provenance = &study["provenance"];
    // Two of three loss rates, two seeds, no readings.
    assert_eq!((&provenance["cells"], &provenance["seeds"]), (&8.into(), &2.into()));
    assert_eq!((&provenance["profile"], &summary["profile"]), (&"quick".into(), &"quick".into()));
    assert_eq!(study["claims"][1]["outcomes"][0]["verdict"], "not-in-profile");
    let page = fs::read_to_string(here.join("out/report.html")).expect("a page");
    assert!(page.contains("not in the quick profile") && page.contains("<dd>3 s</dd>"));
    // --seeds replaces the number of seeds of the profile.
    let more =
        ["reproduce", "--quick", "--seeds", "3", "--studies", "studies", "--out", "o3", "--json", "own"];
    let summary: serde_json::Value = serde_json::from_str(&run(&here, &more).1).expect("JSON");
    assert_eq!(summary["papers"][0]["studies"][0]["provenance"]["seeds"], 3);
    // Results of two profiles are not compared.
    run(&here, &["reproduce", "--studies", "studies", "--out", "full", "own/three"]);
    let (status, _, stderr) = run(&here, &["compare", "out", "full"]);
    assert!(status == Some(2) && stderr.contains("quick profile"), "{stderr}");
}

#[test]
fn check_is_a_status_and_wrong_names_are_refused() {
    let here = folder("check");
    let verdict = |check: &str| {
        let _ = fs::remove_dir_all(here.join("studies"));
        let at = STUDY.find("[[claim]]").expect("claims");
        let to = STUDY.find("[[figure]]").expect("figures");
        let claim =
            format!("[[claim]]\nid = \"1\"\nsays = \"s\"\nat = {{ cc = \"peach\" }}\ncheck = {check}\n");
        let extra = "[[metric]]\nname = \"none\"\nfrom = \"run.flows / (run.flows - 2)\"\n";
        put(here.join("studies/a/b.toml"), &format!("{}{extra}{claim}{}", &STUDY[..at], &STUDY[to..]));
        let all = run(&here, &["reproduce", "--check", "--studies", "studies", "--out", "out"]);
        let one = run(&here, &["study", "check", "studies/a/b.toml"]);
        let plain = run(&here, &["reproduce", "--studies", "studies", "--out", "out"]);
        assert_eq!((all.0, plain.0), (one.0, Some(0)), "{} {}", all.2, one.2);
        (all.0, all.2)
    };
    let at_most = |limit: &str| {
        format!(
            "{{ kind = \"monotone\", metric = \"{limit}\", along = \"loss\", direction = \"decreasing\" }}"
        )
    };
    assert_eq!(verdict(&at_most("goodput")), (Some(0), String::new()));
    assert_eq!(verdict(&at_most("goodput").replace("decr", "incr")), (Some(1), String::new()));
    let (status, stderr) = verdict(&at_most("none"));
    assert!(status == Some(2) && stderr.contains("could not be evaluated"), "{stderr}");
    for (args, words) in [
        (&["reproduce", "luigi"][..], &["luigi", "no such paper", "peach-2001"][..]),
        (&["reproduce", "peach-2001/fig99"], &["no such study", "peach-2001/fig11"]),
        (&["reproduce", "--studies", "nowhere"], &["nowhere", "no such file or directory"]),
        (&["reproduce", "--studies", "the-cache"], &["the-cache", "holds no studies"]),
        (&["reproduce", "--studies", "studies", "--out", "studies"], &["studies", "manifest.json"]),
        (&["compare", "out", "nowhere"], &["nowhere", "there is no such directory"]),
        (&["compare", "out", "studies"], &["studies", "not a results directory"]),
        (&["compare", "out", "out/studies/a/b"], &["a reproduction", "a study", "same kind"]),
    ] {
        let (status, stdout, stderr) = run(&here, args);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(
            words.iter().all(|w| stderr.contains(w)) && stderr.lines().count() == 1,
            "{words:?}: {stderr}"
        );
    }
}

#[test]
fn compare_tells_changes_from_chance() {
    let here = folder("compare");
    put(here.join("s.toml"), STUDY);
    let report = |out: &str, more: &[&str]| {
        let args = [&["study", "report", "s.toml", "--out", out], more].concat();
        assert_eq!(run(&here, &args).0, Some(0));
    };
    report("a", &[]);
    report("same", &["--jobs", "1"]);
    report("other-seeds", &["--seed", "101"]);
    report("slower", &["--set", "links.sat.rate='100 packets/s'"]);
    report("fewer", &["--seeds", "2"]);
    let compared = |b: &str, more: &[&str]| {
        let (status, stdout, stderr) = run(&here, &[&["compare", "a", b, "--json"], more].concat());
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap_or_default();
        (status, json, stderr)
    };
    let (status, json, _) = compared("same", &[]);
    assert_eq!((status, &json["equal"]), (Some(0), &true.into()));
    assert!(json["studies"][0]["differences"].as_array().is_some_and(Vec::is_empty));
    // The same experiment with other seeds: unpaired, and one in 20 intervals of 95 % may exclude zero.
    let (_, json, _) = compared("other-seeds", &[]);
    let differences = json["studies"][0]["differences"].as_array().expect("a list").clone();
    assert!(!differences.is_empty() && differences.iter().all(|d| d["paired"] == false), "{json}");
    let certain = differences.iter().filter(|d| d["status"] == "different").count();
    assert!(certain <= 1, "{json}");
    // Fewer seeds: pairs of those that both have are the same.
    let (status, json, _) = compared("fewer", &[]);
    let verdicts = json["studies"][0]["verdicts"].as_array().expect("a list").len();
    assert_eq!(status, Some(i32::from(verdicts > 0)), "{json}");
    let differences = json["studies"][0]["differences"].as_array().expect("a list").clone();
    assert!(
        differences.iter().all(|d| d["paired"] == true && d["difference"] == 0.0 && d["n"] == 2),
        "{json}"
    );
    let (status, json, _) = compared("slower", &[]);
    assert_eq!((status, &json["equal"]), (Some(1), &false.into()));
    let first = &json["studies"][0]["differences"][0];
    assert!(first["difference"].as_f64().is_some_and(|d| d < 0.0) && first["paired"] == true, "{first}");
    let (status, stdout, _) = run(&here, &["compare", "a", "slower"]);
    assert!(status == Some(1) && stdout.contains("B − A") && stdout.contains("Different."), "{stdout}");

    // Another engine is refused unless it is asked for.
    let manifest = fs::read_to_string(here.join("same/manifest.json")).expect("a manifest");
    let engine = json["a"]["engine"].as_str().expect("an engine");
    fs::write(here.join("same/manifest.json"), manifest.replace(engine, "9.9.9-abcdef01")).expect("writable");
    let (status, _, stderr) = compared("same", &[]);
    assert!(
        status == Some(2) && stderr.contains("9.9.9-abcdef01") && stderr.contains("--across-versions"),
        "{stderr}"
    );
    assert_eq!(compared("same", &["--across-versions"]).0, Some(0));
    // Damage is reported.
    fs::write(here.join("fewer/cells.parquet"), "no table").expect("writable");
    let (status, _, stderr) = compared("fewer", &[]);
    assert!(status == Some(2) && stderr.contains("cells.parquet") && stderr.contains("damaged"), "{stderr}");
    // Runs, one and several.
    for (out, more) in [("r1", "peach"), ("r2", "sack"), ("r3", "sack,peach")] {
        let set = format!("flows.bulk.cc={more}");
        let args = ["run", "preset:peach-geo", "--set", "duration='3 s'", "--set", &set, "--out", out];
        assert_eq!(run(&here, &args).0, Some(0));
    }
    assert_eq!(run(&here, &["compare", "r1", "r1"]).0, Some(0));
    let (status, stdout, _) = run(&here, &["compare", "r1", "r2"]);
    assert!(status == Some(1) && stdout.contains("groups.bulk.goodput_bit_s"), "{stdout}");
    assert_eq!(run(&here, &["compare", "r3", "r3"]).0, Some(0));
    let (status, _, stderr) = run(&here, &["compare", "a", "r1"]);
    assert!(status == Some(2) && stderr.contains("a study") && stderr.contains("a run"), "{stderr}");
}
