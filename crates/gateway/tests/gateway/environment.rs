//! Trouble around a gateway: others remove its rules, there is no IPv6, descriptors run out, peers vanish.

use crate::bed::{Bed, CLIENT, FAR, NEAR, Running, SERVER};
use crate::firewall::{sh, waits_for};
use crate::{PORT, calm, echo, exchange, listen, many, server};
use serde_json::Value;
use skyhaul_gateway::doctor::{self, Finding, Outcome};
use skyhaul_gateway::{Config, leftover};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) const ALL: [(&str, fn()); 6] = [
    ("connections_whose_peers_vanish_end", connections_whose_peers_vanish_end),
    ("rules_that_others_remove_are_restored", rules_that_others_remove_are_restored),
    ("rules_that_cannot_be_restored_are_reported", rules_that_cannot_be_restored_are_reported),
    ("without_ipv6_connections_of_ipv4_are_split", without_ipv6_connections_of_ipv4_are_split),
    ("without_descriptors_connections_are_refused", without_descriptors_connections_are_refused),
    ("a_keeper_that_does_not_start_is_an_error", a_keeper_that_does_not_start_is_an_error),
];

const GOOD: &str = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";

fn examined(bed: &Bed, at: usize, part: &str) -> Finding {
    let config = Config::parse("near.toml", &format!("name = \"near\"\n{GOOD}")).expect("is good");
    let all = bed.spaces[at].within(|| doctor::examine(&config, &bed.folder)).expect("enters");
    all.iter().find(|f| f.what.contains(part)).unwrap_or_else(|| panic!("{part}: {all:#?}")).clone()
}
fn events(bed: &Bed, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bed.folder.join("events.jsonl")).unwrap_or_default();
    let all = text.lines().map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    all.filter(|l| l["event"] == name).collect()
}
fn logged(bed: &Bed) -> String {
    format!("[log]\nevents = \"{}\"\n", bed.folder.join("events.jsonl").display())
}

/// A server that sends back at once what it receives, and closes when its client does.
fn replies(listener: TcpListener, connections: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let served: Vec<_> = (0..connections)
            .map(|_| {
                let (mut s, _) = listener.accept().expect("accepts");
                std::thread::spawn(move || {
                    let mut room = vec![0; 1 << 16];
                    loop {
                        match s.read(&mut room).expect("comes") {
                            0 => return,
                            n => s.write_all(&room[..n]).expect("goes back"),
                        }
                    }
                })
            })
            .collect();
        served.into_iter().for_each(|s| s.join().expect("serves"));
    })
}

fn rules_that_others_remove_are_restored() {
    let Some(bed) = Bed::new("flushed", calm()) else { return };
    let near = bed.gateway(NEAR, &logged(&bed));
    let far = bed.gateway(FAR, "");
    // One connection is silent all the time, and one carries data all the time. Packets that pass while the rules are missing reach hosts and
    // gateways with sequence numbers of the other leg, and are refused.
    let serves = replies(listen(&bed, server()), 2);
    let connect = || TcpStream::connect(server()).expect("connects");
    let mut quiet = bed.spaces[CLIENT].within(connect).expect("enters");
    quiet.write_all(b"before").expect("writes");
    let busy = bed.spaces[CLIENT].within(connect).expect("enters");
    waits_for("both are split", || near.count("flows") == 2 && far.count("flows") == 2);
    let over = Arc::new(AtomicBool::new(false));
    let carried = Arc::new(AtomicU64::new(0));
    let carrier = std::thread::spawn({
        let (over, carried, mut busy) = (over.clone(), carried.clone(), busy);
        move || {
            while !over.load(Ordering::Relaxed) {
                busy.write_all(&[7; 10_000]).expect("goes on");
                busy.read_exact(&mut [0; 10_000]).expect("comes back");
                carried.fetch_add(10_000, Ordering::Relaxed);
            }
            busy
        }
    });
    let goes_on = || {
        let before = carried.load(Ordering::Relaxed);
        waits_for("data", || carried.load(Ordering::Relaxed) > before + 10_000);
    };
    goes_on();
    for (n, by) in ["nft flush ruleset", "nft delete table inet skyhaul_near"].iter().enumerate() {
        sh(&bed, NEAR, by);
        waits_for("the repair", || near.count_of("rules", "restored") == n as u64 + 1);
        assert!(bed.traces(NEAR).contains("skyhaul_near"), "the table is there");
        goes_on();
    }
    // At the other end, where connections come from the link.
    sh(&bed, FAR, "nft flush ruleset");
    waits_for("the repair", || far.count_of("rules", "restored") == 1);
    goes_on();
    // Single rules, too: one is removed, and one of somebody else is added.
    sh(&bed, NEAR, "nft flush chain inet skyhaul_near from_hosts");
    waits_for("the repair", || near.count_of("rules", "restored") == 3);
    sh(&bed, NEAR, "nft insert rule inet skyhaul_near arrive accept");
    waits_for("the repair", || near.count_of("rules", "restored") == 4);
    goes_on();
    over.store(true, Ordering::Relaxed);
    let busy = carrier.join().expect("carries");
    // Open connections go on, and arrive whole.
    quiet.write_all(b"after").expect("writes");
    for (mut s, left) in [(busy, 0), (quiet, 11)] {
        s.shutdown(Shutdown::Write).expect("half-closes");
        let mut back = Vec::new();
        s.read_to_end(&mut back).expect("reads");
        assert_eq!(back.len(), left, "after {carried:?}");
    }
    serves.join().expect("serves");
    assert_eq!((near.count("aborted"), far.count("aborted")), (0, 0));
    // New ones are split again.
    many(&bed, server(), 4, 10_000);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (6, 6));
    // The status, the metrics, the log and the doctor say so.
    let s = near.status();
    assert_eq!((&s["admits"], &s["rules"]["in-place"]), (&true.into(), &true.into()));
    assert!(s["rules"]["last-restored"].as_f64().is_some_and(|t| t >= 0.0), "{s}");
    assert!(s["rules"]["changed-by"].as_str().is_some_and(|by| by.starts_with("nft (process ")), "{s}");
    let metrics = near.ask("metrics");
    assert!(metrics.contains("skyhaul_gateway_rules_restored_total{gateway=\"near\"} 4"), "{metrics}");
    assert!(metrics.contains("skyhaul_gateway_rules_in_place{gateway=\"near\"} 1"), "{metrics}");
    let all = events(&bed, "rules-restored");
    assert!(all.len() == 4 && all[0]["level"] == "warning", "{all:?}");
    let found = examined(&bed, NEAR, "table skyhaul_near");
    assert!(
        found.outcome == Outcome::Doubtful && found.message.contains("has restored its rules 4 times"),
        "{found:?}"
    );
    // The gateway does not mind what others do with tables of their own.
    sh(&bed, NEAR, "nft add table inet theirs");
    assert_eq!(near.ask("reload"), "reloaded\n");
    assert_eq!(near.count_of("rules", "restored"), 4);
    // The gateway may be asked to reload or to stop at the moment of a flush.
    let file = bed.folder.join("near.toml");
    let text = std::fs::read_to_string(&file).expect("is there");
    std::fs::write(&file, text + "[split]\nexclude-ports = [22]\n").expect("writes");
    sh(&bed, NEAR, "nft flush ruleset");
    assert_eq!(near.ask("reload"), "reloaded\n");
    many(&bed, server(), 1, 1000);
    assert_eq!(near.count("from-hosts"), 7, "is split");
    sh(&bed, NEAR, "nft flush ruleset");
    near.stop();
    sh(&bed, FAR, "nft flush ruleset");
    far.stop();
}

fn rules_that_cannot_be_restored_are_reported() {
    let Some(bed) = Bed::new("lost", calm()) else { return };
    // A program called nft, which the test replaces by one that refuses.
    let folder = bed.folder.join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let find = Command::new("sh").args(["-c", "command -v nft"]).output().expect("runs").stdout;
    let real = String::from_utf8(find).expect("a path");
    let nft = folder.join("nft");
    let put = || std::os::unix::fs::symlink(real.trim(), &nft).expect("a link");
    put();
    let path = format!("PATH={}", folder.display());
    let near = bed.gateway_by(&["/usr/bin/env", &path], NEAR, &format!("{GOOD}{}", logged(&bed)));
    assert!(examined(&bed, NEAR, "table skyhaul_near").message.ends_with("a gateway of this name runs"));
    let refuses = folder.join("refuses");
    std::fs::write(
        &refuses,
        format!(
            "#!/bin/sh\ncase \"$*\" in *list*) exec {} \"$@\";; esac\necho 'no more rules' >&2\nexit 1\n",
            real.trim()
        ),
    )
    .expect("writes");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&refuses, mode).expect("sets");
    std::fs::rename(&refuses, &nft).expect("replaces");
    sh(&bed, NEAR, "nft flush ruleset");
    waits_for("a report", || near.status()["rules"]["in-place"] == false);
    let s = near.status();
    assert_eq!(s["admits"], false, "{s}");
    assert_eq!(s["rules"]["message"], "nft refuses the rules: no more rules");
    assert!(near.ask("metrics").contains("skyhaul_gateway_admits{gateway=\"near\"} 0"));
    assert!(near.ask("metrics").contains("skyhaul_gateway_rules_in_place{gateway=\"near\"} 0"));
    let found = examined(&bed, NEAR, "table skyhaul_near");
    assert!(
        !found.is_ok() && found.message.contains("cannot restore them: nft refuses the rules"),
        "{found:?}"
    );
    let all = events(&bed, "rules-lost");
    assert!(all.len() == 1 && all[0]["level"] == "error", "{all:?}");
    // A reload that nft refuses leaves the log as it was.
    let file = bed.folder.join("near.toml");
    let text = std::fs::read_to_string(&file).expect("is there");
    std::fs::write(&file, text.replace("events.jsonl", "other.jsonl")).expect("writes");
    assert!(near.ask("reload").contains("no more rules"));
    waits_for("a line in the old log", || events(&bed, "reload-refused").len() == 1);
    std::fs::write(&file, text).expect("writes");
    // As soon as nft works again, the rules are restored.
    std::fs::remove_file(&nft).expect("removes");
    put();
    waits_for("the repair", || near.status()["rules"]["in-place"] == true);
    assert_eq!(near.ask("reload"), "reloaded\n");
    many(&bed, server(), 1, 1000);
    assert_eq!((near.count("from-hosts"), events(&bed, "rules-restored").len()), (1, 1));
    near.stop();
}

fn without_ipv6_connections_of_ipv4_are_split() {
    let Some(bed) = Bed::new("ipv4", calm()) else { return };
    // Docker disables IPv6 in its containers in this way.
    for at in [NEAR, FAR] {
        bed.spaces[at].sysctl("net/ipv6/conf/all/disable_ipv6", "1").expect("sets");
    }
    let found = examined(&bed, NEAR, "IPv6");
    assert!(
        found.outcome == Outcome::Doubtful && found.message.contains("only connections of IPv4 are split"),
        "{found:?}"
    );
    let near = bed.gateway(NEAR, &logged(&bed));
    let far = bed.gateway(FAR, "");
    many(&bed, server(), 3, 10_000);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (3, 3));
    let logged = events(&bed, "no-ipv6");
    assert_eq!(logged.len(), 1);
    let line = logged[0]["message"].as_str().expect("a line");
    assert!(line.starts_with("IPv6 is off (net.ipv6.conf.default.disable_ipv6 is 1)"), "{line}");
    near.stop();
    far.stop();
    let clean = || leftover::clean(&bed.folder, "near", false).expect("may");
    assert_eq!(bed.spaces[NEAR].within(clean).expect("enters"), leftover::CleanupResult::Nothing);
}

fn without_descriptors_connections_are_refused() {
    let Some(bed) = Bed::new("descriptors", calm()) else { return };
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: there is no prlimit");
        return;
    }
    let open = |g: &Running| {
        let all = std::fs::read_dir(format!("/proc/{}/fd", g.child.id())).expect("runs");
        let names = all.map(|f| f.expect("an entry").file_name().into_string().expect("a number"));
        names.map(|n| n.parse::<u64>().expect("a number")).collect::<std::collections::BTreeSet<_>>()
    };
    // How many descriptors a gateway has open while nothing happens, once those that it opens for its start are closed again.
    let idle = |g: &Running| {
        let mut before = open(g);
        loop {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let now = open(g);
            if before == now {
                return now.len();
            }
            before = now;
        }
    };
    // Limits a gateway to the descriptors that it has open, of which there are as many as `wanted`: descriptors of requests about its
    // state, which it may close late, do not count.
    let exhaust = |g: &Running, wanted: usize| loop {
        waits_for("the end of requests", || open(g).len() == wanted);
        let before = open(g);
        let free = (0..).find(|n| !before.contains(n)).expect("a number");
        sh(&bed, NEAR, &format!("prlimit --pid {} --nofile={free}:200", g.child.id()));
        if before.len() == wanted && open(g) == before {
            break;
        }
        sh(&bed, NEAR, &format!("prlimit --pid {} --nofile=200:200", g.child.id()));
    };
    let relieve = |g: &Running| sh(&bed, NEAR, &format!("prlimit --pid {} --nofile=200:200", g.child.id()));
    let limit = |g: &Running| {
        let text = std::fs::read_to_string(format!("/proc/{}/limits", g.child.id())).expect("runs");
        let line = text.lines().find_map(|l| l.strip_prefix("Max open files")).expect("is told").to_owned();
        line.split_whitespace().next().expect("the soft one").parse::<u64>().expect("a number")
    };
    // The soft limit is raised, and the hard one limits connections.
    let near = bed.gateway_by(&["prlimit", "--nofile=64:200"], NEAR, &format!("{GOOD}{}", logged(&bed)));
    assert_eq!(limit(&near), 200);
    waits_for("the event", || !events(&bed, "few-descriptors").is_empty());
    let line = events(&bed, "few-descriptors")[0]["message"].as_str().expect("a line").to_owned();
    assert!(line.contains("this process may open 200: at most 96 connections are split"), "{line}");
    let without = idle(&near);
    let served = echo(listen(&bed, server()), 1);
    let ends = bed.spaces[CLIENT].within(|| {
        let mut first = TcpStream::connect(server()).expect("connects");
        first.write_all(b"first").expect("writes");
        waits_for("it is split", || near.count("flows") == 1);
        // One is that of the connection.
        exhaust(&near, without + 1);
        // No other connection hangs: each is reset.
        let others = (0..20).map(|_| {
            let reset = TcpStream::connect(server()).and_then(|mut s| s.read(&mut [0; 1]));
            reset.map_or_else(|e| e.kind(), |_| std::io::ErrorKind::Other)
        });
        let others: Vec<_> = others.collect();
        first.shutdown(Shutdown::Write).expect("half-closes");
        let mut back = Vec::new();
        first.read_to_end(&mut back).expect("reads");
        assert_eq!(back.len(), 37);
        others
    });
    served.join().expect("serves");
    relieve(&near);
    let ends = ends.expect("enters");
    assert!(ends.iter().all(|e| *e == std::io::ErrorKind::ConnectionReset), "{ends:?}");
    assert_eq!(near.count("turned-away"), 20);
    assert!(near.ask("metrics").contains("skyhaul_gateway_turned_away_total{gateway=\"near\"} 20"));
    waits_for("a line", || !events(&bed, "no-descriptor").is_empty());
    let logged = events(&bed, "no-descriptor");
    assert!(logged.len() < 20 && logged[0]["level"] == "error", "rationed: {logged:?}");
    // With room again, connections are split again.
    let served = echo(listen(&bed, server()), 1);
    bed.spaces[CLIENT].within(|| exchange(server(), 1, 1000)).expect("enters");
    served.join().expect("serves");
    assert_eq!(near.count("from-hosts"), 22);
    near.stop();
    // A connection from the link is refused as well.
    let near = bed.gateway_by(&["prlimit", "--nofile=200:200"], NEAR, GOOD);
    let _there = bed.spaces[CLIENT]
        .within(|| std::net::TcpListener::bind(SocketAddr::from(([10, 1, 0, 2], PORT))).expect("listens"))
        .expect("enters");
    exhaust(&near, idle(&near));
    let called = bed.spaces[SERVER].within(|| TcpStream::connect(SocketAddr::from(([10, 1, 0, 2], PORT))));
    called.expect("enters").expect_err("is refused");
    relieve(&near);
    assert_eq!(near.count("turned-away"), 1);
    near.stop();
}

/// The number of descriptors that a gateway has open.
fn descriptors(gateway: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", gateway.child.id())).expect("runs").count()
}

fn connections_whose_peers_vanish_end() {
    let Some(bed) = Bed::new("vanished", calm()) else { return };
    // Most connections are idle, and one stands still with data under way.
    let limits = "[limits]\nidle = \"3 s\"\nstuck = \"2 s\"\n";
    let (near, far) = (bed.gateway(NEAR, limits), bed.gateway(FAR, limits));
    let before = [descriptors(&near), descriptors(&far)];
    let listener = listen(&bed, server());
    let connect = || TcpStream::connect(server()).expect("connects");
    let mut held = Vec::new();
    for n in 0..5 {
        let mut client = bed.spaces[CLIENT].within(connect).expect("enters");
        let (mut served, _) = listener.accept().expect("accepts");
        client.write_all(b"words").expect("writes");
        served.read_exact(&mut [0; 5]).expect("come");
        if n == 0 {
            served.set_nonblocking(true).expect("sets");
            while served.write(&[7; 1 << 16]).is_ok() {}
        }
        held.push((client, served));
    }
    waits_for("all are split", || near.count("flows") == 5 && far.count("flows") == 5);
    // From here on neither host receives or sends anything, not even a FIN.
    for at in [CLIENT, SERVER] {
        for line in [
            "add table inet gone",
            "add chain inet gone in { type filter hook input priority 0; policy drop; }",
            "add chain inet gone out { type filter hook output priority 0; policy drop; }",
        ] {
            sh(&bed, at, &format!("nft '{line}'"));
        }
    }
    waits_for("the end of all", || near.count("flows") == 0 && far.count("flows") == 0);
    for (gateway, before) in [(&near, before[0]), (&far, before[1])] {
        waits_for("the return of descriptors", || descriptors(gateway) <= before);
        // 64 KiB is a fraction of what the connection with data has held.
        waits_for("the return of memory", || gateway.count("memory") < 65_536);
        // A connection may have been reset by the other gateway before this one gave it up.
        assert_eq!(gateway.count("finished"), 0);
        assert_eq!(gateway.count("aborted"), 5);
    }
    drop(held);
    near.stop();
    far.stop();
}

fn a_keeper_that_does_not_start_is_an_error() {
    let Some(bed) = Bed::new("keeperless", calm()) else { return };
    let before = bed.traces(NEAR);
    let file = bed.folder.join("near.toml");
    let config = Config::parse("near.toml", &format!("name = \"near\"\n{GOOD}")).expect("is good");
    let around = skyhaul_gateway::Environment {
        folder: bed.folder.clone(),
        file,
        keeper: vec!["false".into()],
        metrics: None,
    };
    let ran = bed.spaces[NEAR].within(|| skyhaul_gateway::run(&config, &around, &mut crate::bed::Ready));
    let e = ran.expect("enters").expect_err("no keeper").to_string();
    assert!(e.starts_with("the keeper did not start: false ended at once"), "{e}");
    assert_eq!(bed.traces(NEAR), before);
}
