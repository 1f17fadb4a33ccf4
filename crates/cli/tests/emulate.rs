//! `doctor` and `emulate` as users meet them, with a real kernel. Each test has a network namespace of its own; where
//! the kernel grants none, a test reports that and is skipped.
#![cfg(target_os = "linux")]

mod prometheus;

use skyhaul_net::Namespace;
use skyhaul_testkit::need;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}

/// A scenario in a folder of the test's own.
fn scenario(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emulate-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let text = r#"schema = 1
duration = "60 s"
[links.sat]
packet = "1500 B"
rate = "10 Mbit/s"
delay = "20 ms"
queue = "50 packets"
[flows.bulk]
cc = "sack"
[flows.other]
cc = "sack"
"#;
    let path = folder.join("short.toml");
    std::fs::write(&path, text).expect("written");
    path
}

fn skyhaul(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    c.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c
}

fn within(ns: &Namespace, mut command: Command) -> Output {
    ns.within(|| command.spawn().expect("starts")).expect("enters").wait_with_output().expect("ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn doctor_says_what_it_found() {
    let out = skyhaul(&["doctor", "--json"]).output().expect("starts");
    let v: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let fails = v["checks"].as_array().expect("a list").iter().any(|c| c["state"] == "fail");
    assert_eq!(out.status.code(), Some(i32::from(fails)), "{v:#}");
    assert_eq!(v["state"] == "fail", fails);
    let lines = text(&skyhaul(&["doctor"]).output().expect("starts").stdout);
    for c in v["checks"].as_array().expect("a list") {
        assert!(lines.contains(c["name"].as_str().expect("a name")), "{c} is not in {lines}");
    }
}

#[test]
fn a_program_crosses_the_link_and_its_status_is_ours() {
    let Some(ns) = space() else { return };
    let listener = ns.within(|| TcpListener::bind("0.0.0.0:7001").expect("binds")).expect("enters");
    let server = std::thread::spawn(move || {
        let (mut s, from) = listener.accept().expect("somebody");
        s.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
        let mut got = [0; 5];
        s.read_exact(&mut got).expect("five bytes");
        s.write_all(b"out\n").expect("written");
        (text(&got), from.ip())
    });
    let path = scenario("status");
    let say = "exec 3<>/dev/tcp/10.83.7.2/7001; echo -n hello >&3; read -u 3 answer; echo $answer; exit 5";
    let args = ["emulate", path.to_str().expect("UTF-8"), "--net", "7", "--json", "--", "bash", "-c", say];
    let out = within(&ns, skyhaul(&args));
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(5), "out\n"), "{}", text(&out.stderr));
    let (got, from) = server.join().expect("served");
    assert_eq!((got.as_str(), from.to_string().as_str()), ("hello", "10.83.7.1"));
    let v: serde_json::Value = serde_json::from_slice(&out.stderr).expect("JSON");
    let directions = v["directions"].as_array().expect("both");
    assert_eq!(directions.len(), 2);
    // Of the program at least SYN, acknowledgement and data; of the listener at least its SYN.
    for (d, packets) in directions.iter().zip([3, 1]) {
        let high = &d["links"][0]["high"];
        assert!(high["delivered_packets"].as_u64().expect("a number") >= packets, "{d:#}");
        assert_eq!(high["drops"]["error"], 0);
    }
}

#[test]
fn two_namespaces_are_joined_for_a_time() {
    let Some(ns) = space() else { return };
    // A namespace of which only a process id is known.
    let keep = ns.within(|| Command::new("sleep").arg("60").spawn().expect("starts")).expect("enters");
    let path = scenario("joined");
    let id = keep.id().to_string();
    let args =
        ["emulate", path.to_str().expect("UTF-8"), "--ns-client", &id, "--duration", "200ms", "--json"];
    let outer = Namespace::new().expect("another one");
    let out = within(&outer, skyhaul(&args));
    let (mut keep, status) = (keep, out.status.code());
    let _ = keep.kill();
    let _ = keep.wait();
    assert_eq!(status, Some(0), "{}", text(&out.stderr));
    let v: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert!(v["duration_s"].as_f64().expect("a number") >= 0.2);
}

#[test]
fn nothing_stays_when_the_command_is_killed() {
    let Some(ns) = space() else { return };
    let path = scenario("killed");
    let mark = format!("77{}", std::process::id());
    let say = format!("(setsid sleep {mark} >/dev/null 2>&1 &); echo ready; sleep {mark}");
    let args = ["emulate", path.to_str().expect("UTF-8"), "--", "bash", "-c", &say];
    let mut command = skyhaul(&args);
    let mut child = ns.within(|| command.spawn().expect("starts")).expect("enters");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    assert!(soon(|| sleeping(&mark) == 2), "both sleep before the test");
    assert!(soon(|| interfaces(&ns) > 1), "loopback and the device");
    child.kill().expect("ours");
    assert_eq!(child.wait().expect("ends").signal(), Some(9));
    assert!(soon(|| sleeping(&mark) == 0), "processes stayed");
    assert!(soon(|| interfaces(&ns) == 1), "the device stayed");
}

#[test]
fn a_program_whose_time_is_over_is_asked_to_end() {
    let Some(ns) = space() else { return };
    let path = scenario("over");
    let out = within(
        &ns,
        skyhaul(&["emulate", path.to_str().expect("UTF-8"), "--duration", "100ms", "--", "sleep", "100"]),
    );
    // 143: SIGTERM; it was not necessary to kill it (137).
    assert_eq!(out.status.code(), Some(143), "{}", text(&out.stderr));
}

/// Processes `sleep MARK`.
fn sleeping(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("mounted").flatten();
    let line = format!("sleep\0{mark}\0");
    all.filter(|e| std::fs::read(e.path().join("cmdline")).is_ok_and(|l| l == line.as_bytes())).count()
}

fn interfaces(ns: &Namespace) -> usize {
    let count = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("mounted").lines().count() - 2;
    ns.within(count).expect("enters")
}

/// Whether a condition becomes true within ten seconds.
fn soon(done: impl Fn() -> bool) -> bool {
    (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        done()
    })
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let Some(ns) = space() else { return };
    let path = scenario("refused");
    let path = path.to_str().expect("UTF-8");
    for (args, words) in [
        (&["--flow", "nope", "--", "true"][..], &["--flow", "nope", "bulk, other"][..]),
        (&["--ns-client", "no-such-namespace"], &["no-such-namespace", "ip netns list"]),
        (&[], &["nothing to connect", "-- CMD"]),
        (
            &["--interfaces", "sky1", "much-too-long-a-name"],
            &["\"much-too-long-a-name\" is not an interface name"],
        ),
        (&["--interfaces", "sky1", "sky1"], &["\"sky1\" exists already"]),
        (
            &["--strict", "--set", "links.sat.rate=40 Gbit/s", "--", "true"],
            &["forward: 40.0 Gbit/s are", "skyhaul doctor"],
        ),
        (&["--metrics", "nowhere", "--", "true"], &["--metrics", "nowhere"]),
        (&["--duration", "7 weeks", "--", "true"], &["60s"]),
        (&["--ns-client", "a", "--", "true"], &["--ns-client"]),
        (&["--set", "flows.bulk.cc=sack,reno", "--", "true"], &["emulate runs one scenario"]),
    ] {
        let out = within(&ns, skyhaul(&[&["emulate", path], args].concat()));
        let line = text(&out.stderr);
        assert_eq!((out.status.code(), line.matches('\n').count()), (Some(2), 1), "{args:?}: {line}");
        for word in words {
            assert!(line.contains(word), "{args:?}: {word:?} is not in: {line}");
        }
    }
}

#[test]
fn without_privileges_it_says_what_to_do() {
    let Some(ns) = space() else { return };
    let path = scenario("privileges");
    // Another user might not reach the program: only the capabilities are dropped.
    let mut c = Command::new("setpriv");
    c.args([
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--no-new-privs",
        env!("CARGO_BIN_EXE_skyhaul"),
        "emulate",
    ]);
    c.arg(&path).args(["--", "true"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = within(&ns, c);
    let line = text(&out.stderr);
    assert_eq!((out.status.code(), line.matches('\n').count()), (Some(2), 1), "{line}");
    assert!(line.contains("run it as root"), "{line}");
    std::io::stderr().write_all(line.as_bytes()).expect("open");
}

#[test]
fn interfaces_carry_and_metrics_tell() {
    use std::io::{BufRead, BufReader, Read};
    let Some(ns) = space() else { return };
    let path = scenario("interfaces");
    let mut c = skyhaul(&["emulate", path.to_str().expect("UTF-8"), "--interfaces", "east", "west"]);
    c.args(["--metrics", "127.0.0.1:0", "--duration", "60s"]);
    let mut child = ns.within(|| c.spawn()).expect("enters").expect("starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("says where");
    let address = line.trim().strip_prefix("metrics at http://").and_then(|l| l.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    // The page is empty until the first counts.
    let page = || {
        let mut s = ns.within(|| std::net::TcpStream::connect(&address)).expect("enters").expect("listens");
        s.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("writes");
        let mut text = String::new();
        s.read_to_string(&mut text).expect("answers");
        text
    };
    assert!(soon(|| page().contains("skyhaul_packets_offered_total{direction=\"forward\"")), "{}", page());
    assert!(page().starts_with("HTTP/1.1 200"));
    let families = prometheus::in_order(page().split_once("\r\n\r\n").expect("a head").1);
    assert_eq!(families, 10);
    assert_eq!(interfaces(&ns), 3, "loopback and two of ours");
    child.kill().expect("runs");
    child.wait().expect("ends");
    assert!(soon(|| interfaces(&ns) == 1), "they vanish with the command");
}

#[test]
fn a_second_emulation_on_the_same_net_is_refused() {
    let Some(ns) = space() else { return };
    let path = scenario("twice");
    let path = path.to_str().expect("UTF-8");
    let mut first = skyhaul(&["emulate", path, "--net", "8", "--", "sleep", "30"]);
    let mut first = ns.within(|| first.spawn()).expect("enters").expect("starts");
    assert!(soon(|| interfaces(&ns) == 2), "the first one has its interface");
    let second = |net: &str| within(&ns, skyhaul(&["emulate", path, "--net", net, "--", "true"]));
    let out = second("8");
    let line = text(&out.stderr);
    assert_eq!((out.status.code(), line.matches('\n').count()), (Some(2), 1), "{line}");
    assert!(line.contains("--net 8") && line.contains("10.83.8.2"), "{line}");
    assert_eq!(second("9").status.code(), Some(0), "another one is free");
    first.kill().expect("runs");
    first.wait().expect("ends");
}

#[test]
fn a_standard_error_that_nobody_reads_changes_no_status() {
    let Some(ns) = space() else { return };
    let path = scenario("unread");
    // A rate that makes a warning, and a report at the end.
    let fast = ["--set", "links.sat.rate=40 Gbit/s", "--", "sh", "-c", "exit 5"];
    let mut command = skyhaul(&[&["emulate", path.to_str().expect("UTF-8")], &fast[..]].concat());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    command.stderr(writer);
    assert_eq!(within(&ns, command).status.code(), Some(5));
}

#[test]
fn a_program_that_does_not_start_has_no_report() {
    let Some(ns) = space() else { return };
    let path = scenario("absent");
    let out = within(&ns, skyhaul(&["emulate", path.to_str().expect("UTF-8"), "--", "/no/such/program"]));
    let line = "skyhaul: cannot start /no/such/program: no such program\n";
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(127), line));
}

#[test]
fn without_ipv6_the_path_carries_ipv4() {
    let Some(ns) = space() else { return };
    // Docker disables IPv6 in this way.
    ns.sysctl("net/ipv6/conf/all/disable_ipv6", "1").expect("sets");
    let path = scenario("ipv4");
    let path = path.to_str().expect("UTF-8");
    let _listener = ns.within(|| TcpListener::bind("0.0.0.0:7002").expect("binds")).expect("enters");
    let say = "exec 3<>/dev/tcp/10.83.7.2/7002 && exit 6";
    let out = within(&ns, skyhaul(&["emulate", path, "--net", "7", "--", "bash", "-c", say]));
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(6), "{stderr}");
    let first = stderr.lines().next().expect("a line");
    assert!(first.starts_with("warning: IPv6 is off (") && first.contains("IPv4 alone"), "{stderr}");
    let found = text(&within(&ns, skyhaul(&["doctor"])).stdout);
    assert!(found.contains("ipv6") && found.contains("go on with IPv4 alone"), "{found}");
    // Missing privileges are still reported as such.
    let Ok(true) = Command::new("setpriv").arg("--version").status().map(|s| s.success()) else { return };
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        "--no-new-privs",
        env!("CARGO_BIN_EXE_skyhaul"),
    ]);
    command
        .args(["emulate", path, "--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let out = within(&ns, command);
    assert!(text(&out.stderr).contains("CAP_NET_ADMIN"), "{}", text(&out.stderr));
}
