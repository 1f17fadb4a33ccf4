//! SIGTERM, as service managers send it: `wire` and `emulate` end in order, and pass the signal on to the programs that they started.
#![cfg(target_os = "linux")]

use skyhaul_net::Namespace;
use skyhaul_testkit::need;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const SKYHAUL: &str = env!("CARGO_BIN_EXE_skyhaul");
/// SIGTERM in the masks of /proc/PID/status.
const TERM: u64 = 1 << 14;

/// `None`, with a message, where the kernel does not grant a namespace.
fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}
/// Starts the command in a namespace; its standard output is read line by line.
fn start(ns: &Namespace, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut c = Command::new(SKYHAUL);
    c.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ns.within(|| c.spawn()).expect("enters").expect("starts");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    (child, out)
}
fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    line
}
fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
}
/// Status, the rest of standard output, and standard error.
fn ended(mut child: Child, mut out: BufReader<ChildStdout>) -> (Option<i32>, String, String) {
    let (mut rest, mut errors) = (String::new(), String::new());
    out.read_to_string(&mut rest).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    (child.wait().expect("ends").code(), rest, errors)
}
/// Interfaces of the namespace, loopback included.
fn interfaces(ns: &Namespace) -> usize {
    let count = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("mounted").lines().count() - 2;
    ns.within(count).expect("enters")
}
fn scenario(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("terminate-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let path = folder.join("short.toml");
    let text = "schema = 1\nduration = \"60 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
                queue = \"50 packets\"\n[flows.bulk]\ncc = \"sack\"\n";
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn a_server_closes_its_connections() {
    let Some(ns) = space() else { return };
    let (child, mut out) = start(&ns, &["wire", "serve", "--mode", "http", "--port", "80"]);
    assert!(line(&mut out).starts_with("listening at "));
    let mut s = ns.within(|| TcpStream::connect("10.84.0.2:80")).expect("enters").expect("connects");
    // More than any buffer takes: the answer is under way when the end comes.
    s.write_all(b"GET /1000000000 HTTP/1.1\r\nHost: a\r\n\r\n").expect("asks");
    let mut first = [0; 4096];
    s.read_exact(&mut first).expect("begins to answer");
    let mut idle = ns.within(|| TcpStream::connect("10.84.0.2:80")).expect("enters").expect("connects");
    terminate(&child);
    let mut got = Vec::new();
    // What was sent arrives, and then a FIN: a reset would be an error.
    s.read_to_end(&mut got).expect("a FIN");
    assert!(got.len() < 1_000_000_000);
    assert_eq!(idle.read(&mut first).expect("a FIN"), 0);
    drop((s, idle));
    let (status, rest, errors) = ended(child, out);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{rest}");
    assert!(rest.contains("packets: "), "{rest}");
    assert_eq!(interfaces(&ns), 1, "its interface is gone");
}

#[test]
fn every_role_of_a_server_ends_well_and_says_what_it_met() {
    let Some(ns) = space() else { return };
    for (mode, json) in [("sink", false), ("iperf3", false), ("sink", true)] {
        let args = ["wire", "serve", "--mode", mode, "--json"];
        let (child, mut out) = start(&ns, &args[..if json { 5 } else { 4 }]);
        let mut s = loop {
            match ns.within(|| TcpStream::connect("10.84.0.2:5201")).expect("enters") {
                Ok(s) => break s,
                Err(e) => assert_ne!(e.kind(), ErrorKind::PermissionDenied),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        if !json {
            assert!(line(&mut out).starts_with("listening at "));
        }
        // A cookie of iperf3's protocol, and the answer of its server.
        s.write_all(&[b'a'; 37]).expect("sent");
        if mode == "iperf3" {
            let mut state = [0];
            s.read_exact(&mut state).expect("asked for parameters");
            assert_eq!(state, [9]);
        }
        terminate(&child);
        let mut last = Vec::new();
        s.read_to_end(&mut last).expect("a FIN");
        assert_eq!(last, if mode == "iperf3" { vec![11] } else { vec![] }, "the server terminates");
        drop(s);
        let (status, rest, errors) = ended(child, out);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{mode}: {rest}");
        if json {
            let v: serde_json::Value = serde_json::from_str(&rest).expect("one document");
            assert_eq!(v["skyhaul"]["connections"][0]["bytes_read"], 37, "{v:#}");
        } else {
            assert!(rest.contains("packets: "), "{rest}");
        }
    }
}

#[test]
fn a_sender_takes_back_what_it_has_not_sent_and_closes() {
    let Some(ns) = space() else { return };
    let listener = ns.within(|| TcpListener::bind("0.0.0.0:7000")).expect("enters").expect("binds");
    let kernel = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().expect("somebody").0.read_to_end(&mut all).map(|_| all.len())
    });
    let args = ["wire", "send", "10.84.0.1:7000", "--time", "600s", "--interval", "100ms"];
    let (child, mut out) = start(&ns, &args);
    for _ in 0..2 {
        line(&mut out);
    }
    terminate(&child);
    let (status, rest, errors) = ended(child, out);
    assert_eq!((status, errors.as_str()), (Some(143), "skyhaul: stopped early\n"), "{rest}");
    assert!(rest.contains(": closed in order\n") && rest.contains("packets: "), "{rest}");
    assert!(kernel.join().expect("ends").expect("a FIN, no reset") > 0);
    assert_eq!(interfaces(&ns), 1);
}

#[test]
fn a_program_behind_a_link_is_told_and_has_the_last_word() {
    let Some(ns) = space() else { return };
    let path = scenario("told");
    let path = path.to_str().expect("UTF-8");
    for (say, expected) in [
        ("trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done", Some(9)),
        ("echo ready; exec sleep 600", Some(143)),
        // A program that ignores SIGTERM is killed after a grace period.
        ("trap '' TERM; echo ready; while :; do sleep 0.05; done", Some(137)),
    ] {
        let (child, mut out) = start(&ns, &["emulate", path, "--net", "6", "--", "bash", "-c", say]);
        assert_eq!(line(&mut out), "ready\n");
        terminate(&child);
        let (status, rest, report) = ended(child, out);
        assert_eq!(status, expected, "{say}: {report}");
        assert_eq!(rest, if expected == Some(9) { "told\n" } else { "" });
        assert!(report.contains("trusted"), "{report}");
        assert_eq!(interfaces(&ns), 1, "its interface is gone");
    }
}

#[test]
fn a_program_meets_signals_as_if_it_had_been_started_by_anybody() {
    let Some(ns) = space() else { return };
    let path = scenario("masks");
    let path = path.to_str().expect("UTF-8");
    let masks = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let (child, out) = start(&ns, &[&["emulate", path, "--net", "5", "--"][..], &masks].concat());
    let (status, masks, _) = ended(child, out);
    assert_eq!((status, masks.lines().count()), (Some(0), 3), "{masks}");
    for l in masks.lines() {
        let mask = u64::from_str_radix(l.split_whitespace().last().expect("a mask"), 16).expect("a number");
        assert_eq!(mask & TERM, 0, "{l}");
    }
}

#[test]
fn links_between_interfaces_end_well() {
    let Some(ns) = space() else { return };
    let path = scenario("interfaces");
    let args = ["emulate", path.to_str().expect("UTF-8"), "--interfaces", "east", "west", "--json"];
    let (child, out) = start(&ns, &args);
    for _ in 0..1000 {
        if interfaces(&ns) == 3 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(interfaces(&ns), 3, "loopback and two of ours");
    terminate(&child);
    let (status, rest, errors) = ended(child, out);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let v: serde_json::Value = serde_json::from_str(&rest).expect("a report");
    assert_eq!(v["directions"].as_array().map(Vec::len), Some(2), "{v:#}");
    assert_eq!(interfaces(&ns), 1);
}

/// The last segments of a program cross the link after the program has ended: its peer gets the FIN.
#[test]
fn the_last_fin_of_a_program_arrives() {
    let Some(ns) = space() else { return };
    let listener = ns.within(|| TcpListener::bind("0.0.0.0:7001")).expect("enters").expect("binds");
    let server = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().expect("somebody");
        s.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("set");
        let mut got = Vec::new();
        s.read_to_end(&mut got).map(|_| got)
    });
    let path = scenario("fin");
    // 300 ms each way: far longer than the program lives once it has written.
    let delay = "links.sat.delay=300 ms";
    let say = "exec 3<>/dev/tcp/10.83.4.2/7001; echo -n hello >&3";
    let args =
        ["emulate", path.to_str().expect("UTF-8"), "--set", delay, "--net", "4", "--", "bash", "-c", say];
    let (child, out) = start(&ns, &args);
    let (status, _, report) = ended(child, out);
    assert_eq!(status, Some(0), "{report}");
    assert_eq!(server.join().expect("ends").expect("a FIN"), b"hello");
}
