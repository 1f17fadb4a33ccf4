//! `skyhaul compare --worlds`: real packets in namespaces of the program's own.
#![cfg(target_os = "linux")]

use serde_json::Value;
use skyhaul_testkit::need;
use std::process::{Command, Output};

const SHORT: &str = "duration = \"4 s\"\nseed = 3\n[links.sat]\nrate = \"5 Mbit/s\"\ndelay = \"50 ms\"\n\
                     queue = \"100 packets\"\nreverse = { error = \"none\" }\n\
                     [flows.bulk]\npath = [\"sat\"]\ncc = \"sack\"\nendpoint = \"modern\"\n";

fn skyhaul(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skyhaul")).args(args).output().expect("starts")
}

#[test]
fn a_scenario_runs_in_three_worlds_and_is_drawn() {
    if need::granted(skyhaul_net::Namespace::new()).is_none() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("skyhaul-worlds-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("short.toml");
    std::fs::write(&file, SHORT).unwrap();
    let (file, out) = (file.to_str().unwrap(), dir.join("out"));
    let r = skyhaul(&[
        "compare",
        file,
        "--worlds",
        "sim,wire,kernel:reno",
        "--repeat",
        "2",
        "--jobs",
        "6",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(r.status.success(), "{}", String::from_utf8_lossy(&r.stderr));
    let v: Value = serde_json::from_slice(&r.stdout).unwrap();
    let worlds = v["worlds"].as_array().unwrap();
    assert_eq!(worlds.len(), 3);
    assert_eq!(worlds[0]["world"], "sim sack");
    for w in worlds {
        for g in w["goodput_bit_s"].as_array().unwrap() {
            let g = g.as_f64().unwrap();
            assert!((1e6..5e6).contains(&g), "{w}");
        }
    }
    assert!(worlds[1]["difference_percent"]["mean"].is_number());
    let page = std::fs::read_to_string(out.join("worlds.html")).unwrap();
    assert!(page.contains("kernel:reno") && page.contains("Congestion window"));
    let samples = std::fs::read_to_string(out.join("samples.csv")).unwrap();
    assert!(samples.starts_with("world,seed,time_s,flow,cwnd_segments,acked_bytes\n"));
    for world in ["sim sack", "wire sack", "kernel:reno"] {
        assert!(samples.lines().filter(|l| l.starts_with(world)).count() > 20, "{world}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// Pages, and calls with a path of their own.
const MIXED: &str = "duration = \"4 s\"\nseed = 3\n[links.sat]\nrate = \"5 Mbit/s\"\ndelay = \"50 ms\"\n\
                     [links.far]\nrate = \"unlimited\"\ndelay = \"20 ms\"\n\
                     [flows.call]\npath = [\"far\", \"sat\"]\ntransport = \"udp\"\nstop = \"3 s\"\n\
                     app = { kind = \"cbr\", rate = \"64 kbit/s\", packet = \"200 B\" }\n\
                     [flows.page]\npath = [\"sat\"]\nendpoint = \"modern\"\n\
                     app = { kind = \"pages\", segments = 10, count = 3 }\n";

#[test]
fn groups_of_flows_with_workloads_of_their_own_are_told_apart() {
    if need::granted(skyhaul_net::Namespace::new()).is_none() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("skyhaul-mixed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("mixed.toml");
    std::fs::write(&file, MIXED).unwrap();
    let file = file.to_str().unwrap();
    let all = ["compare", file, "--worlds", "sim,wire,wire-to-kernel,kernel:cubic"];
    let r = skyhaul(&[&all[..], &["--json"]].concat());
    assert!(r.status.success(), "{}", String::from_utf8_lossy(&r.stderr));
    let v: Value = serde_json::from_slice(&r.stdout).unwrap();
    for w in v["worlds"].as_array().unwrap() {
        let (call, page) = (&w["groups"][0], &w["groups"][1]);
        assert_eq!((&call["group"], &page["group"]), (&"call".into(), &"page".into()), "{w}");
        assert_eq!(
            (&call["datagrams_sent"][0], &call["datagrams_delivered"][0]),
            (&120.into(), &120.into()),
            "{w}"
        );
        assert!((0.07..0.17).contains(&call["delay_mean_s"][0].as_f64().unwrap()), "{w}");
        assert_eq!(page["pages"][0], 3, "{w}");
        assert!((0.2..1.0).contains(&page["page_time_mean_s"][0].as_f64().unwrap()), "{w}");
    }
    let r = skyhaul(&["compare", file, "--worlds", "sim,wire"]);
    let text = String::from_utf8_lossy(&r.stdout).into_owned();
    let head = text.lines().next().unwrap();
    for column in
        ["flows", "time of a page, s", "datagrams delivered / sent", "one-way delay, ms", "jitter, ms"]
    {
        assert!(head.contains(column), "{column}: {text}");
    }
    let rows: Vec<Vec<&str>> =
        text.lines().skip(1).take(4).map(|l| l.split_whitespace().take(2).collect()).collect();
    assert_eq!(rows, [["sim", "call"], ["sim", "page"], ["wire", "call"], ["wire", "page"]], "{text}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_is_no_world_is_refused_in_one_line() {
    let dir = std::env::temp_dir().join(format!("skyhaul-no-world-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("short.toml");
    std::fs::write(&file, SHORT).unwrap();
    let file = file.to_str().unwrap();
    for (args, says) in [
        (
            vec!["--worlds", "moon"],
            "\"moon\" is not a world; write sim, wire, wire-to-kernel, or kernel:NAME",
        ),
        (vec!["--worlds", "kernel:nothing"], "no congestion control \"nothing\""),
        (
            vec!["--worlds", "wire", "--set", "flows.bulk.cc=user:mine"],
            "the control \"mine\" is user-defined",
        ),
        (vec![], "<B>"),
    ] {
        let r = skyhaul(&[&["compare", file], &args[..]].concat());
        let text = String::from_utf8_lossy(&r.stderr).into_owned();
        assert_eq!(r.status.code(), Some(2), "{text}");
        let privileges = text.contains("CAP_NET_ADMIN");
        assert!(text.contains(says) || privileges, "{says}: {text}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}
