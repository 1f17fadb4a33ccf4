//! The counters of `wire`, as Prometheus scrapes them and as JSON has them.
#![cfg(target_os = "linux")]

mod prometheus;

use serde_json::Value;
use skyhaul_net::Namespace;
use skyhaul_testkit::need;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

/// `None`, with a message, where the kernel does not grant a namespace.
fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}

/// A running command and the address of its metrics.
struct Running {
    ns: Namespace,
    child: Child,
    at: String,
    /// Standard error, kept open for later messages.
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn start(ns: &Namespace, args: &[&str]) -> Self {
        let mut c = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
        c.arg("wire").args(args).args(["--metrics", "127.0.0.1:0"]);
        c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ns.within(|| c.spawn()).expect("enters").expect("starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("says where");
        let at = line.trim().strip_prefix("metrics at http://").and_then(|l| l.strip_suffix("/metrics"));
        Self { ns: ns.clone(), child, at: at.unwrap_or_else(|| panic!("{line}")).to_owned(), stderr }
    }
    fn connect(&self, to: &str) -> TcpStream {
        self.ns.within(|| TcpStream::connect(to)).expect("enters").expect("connects")
    }
    /// The page, read strictly, and its samples.
    fn scrape(&self) -> (String, BTreeMap<String, f64>) {
        let mut s = self.connect(&self.at);
        s.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("writes");
        let mut text = String::new();
        s.read_to_string(&mut text).expect("answers");
        let (head, page) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("version=0.0.4"), "{head}");
        assert!(prometheus::in_order(page) > 30, "{page}");
        let sample = |l: &str| {
            let (name, value) = l.rsplit_once(' ').expect("a value");
            (name.strip_prefix("skyhaul_").expect("ours").to_owned(), value.parse().expect("a number"))
        };
        (page.to_owned(), page.lines().filter(|l| !l.starts_with('#')).map(sample).collect())
    }
    /// Scrapes until a sample has this value.
    fn until(&self, name: &str, value: f64) -> BTreeMap<String, f64> {
        for _ in 0..500 {
            let (_, all) = self.scrape();
            if all.get(name) == Some(&value) {
                return all;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{name} does not become {value}: {}", self.scrape().0);
    }
    fn terminate(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        let mut out = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        let mut errors = String::new();
        self.stderr.read_to_string(&mut errors).expect("text");
        let stopped = "skyhaul: stopped early\n";
        assert!(errors.is_empty() || errors == stopped, "{errors}");
        (self.child.wait().expect("ends").code(), out)
    }
}

/// Requests `n` bytes, and reads the whole answer.
fn fetch(s: &mut TcpStream, n: usize) {
    s.write_all(format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).expect("asks");
    let (mut got, mut room) = (Vec::new(), [0; 4096]);
    let whole =
        |got: &[u8]| got.windows(4).position(|w| w == b"\r\n\r\n").is_some_and(|at| got.len() == at + 4 + n);
    while !whole(&got) {
        let n = s.read(&mut room).expect("an answer");
        assert!(n > 0, "an early end");
        got.extend_from_slice(&room[..n]);
    }
}

#[test]
fn a_server_tells_what_it_has_met() {
    let Some(ns) = space() else { return };
    let server = Running::start(&ns, &["serve", "--mode", "http", "--port", "80", "--memory", "64MB"]);
    let before = server.scrape().1;
    assert_eq!(
        (before["connections{state=\"established\"}"], before["connections_accepted_total"]),
        (0.0, 0.0)
    );
    assert_eq!(before["memory_limit_bytes"], 64e6);
    let mut one = server.connect("10.84.0.2:80");
    let mut two = server.connect("10.84.0.2:80");
    fetch(&mut one, 100_000);
    fetch(&mut two, 1);
    let now = server.until("connections{state=\"established\"}", 2.0);
    assert_eq!(now["connections_accepted_total"], 2.0);
    assert!(now["bytes_acknowledged_total"] > 100_000.0 && now["bytes_received_total"] > 30.0, "{now:?}");
    assert!(now["segments_sent_total"] > 60.0 && now["packets_received_total"] > 10.0, "{now:?}");
    assert!(now["memory_bytes{kind=\"records\"}"] > 1000.0 && now["timers"] > 0.0, "{now:?}");
    // One is closed in order; the other one, which has more to read than it wants, is reset by its kernel.
    drop(one);
    two.write_all(b"GET /10000000 HTTP/1.1\r\nHost: a\r\n\r\n").expect("asks");
    two.read_exact(&mut [0; 1000]).expect("begins");
    drop(two);
    let now = server.until("connections_ended_total{how=\"reset\"}", 1.0);
    assert_eq!(
        (now["connections_ended_total{how=\"closed\"}"], now["connections{state=\"established\"}"]),
        (1.0, 0.0)
    );
    // Nobody listens there: a segment of no connection, answered with a reset.
    let refused = ns.within(|| TcpStream::connect("10.84.0.2:81")).expect("enters");
    assert_eq!(refused.expect_err("refused").kind(), std::io::ErrorKind::ConnectionRefused);
    let now = server.until("resets_sent_total", 1.0);
    assert!(now["refusals_total{reason=\"no-connection\"}"] >= 1.0, "{now:?}");
    // Counters of events that never happened are present, too, so that a rate can be computed from the beginning.
    for name in [
        "refusals_total{reason=\"paws\"}",
        "cookies_sent_total",
        "answers_withheld_total",
        "half_open_connections",
    ] {
        assert_eq!(now.get(name), Some(&0.0), "{name}");
    }
    let status = server.terminate().0;
    assert_eq!(status, Some(0));
}

#[test]
fn whoever_asks_and_does_not_listen_keeps_nobody() {
    let Some(ns) = space() else { return };
    let server = Running::start(&ns, &["serve"]);
    // Half a request, and requests whose answers nobody reads.
    let mut half = server.connect(&server.at);
    half.write_all(b"GET /met").expect("writes");
    let mut deaf = server.connect(&server.at);
    for _ in 0..50 {
        deaf.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("writes");
    }
    let mut s = server.connect("10.84.0.2:5201");
    s.write_all(&[1; 1000]).expect("writes");
    let now = server.until("bytes_received_total", 1000.0);
    assert_eq!(now["connections{state=\"established\"}"], 1.0);
    drop((half, deaf, s));
    assert_eq!(server.terminate().0, Some(0));
}

#[test]
fn a_sender_counts_the_same_in_its_document() {
    let Some(ns) = space() else { return };
    let listener = ns.within(|| TcpListener::bind("0.0.0.0:7000")).expect("enters").expect("binds");
    let kernel = std::thread::spawn(move || {
        let mut s = listener.accept().expect("somebody").0;
        let mut all = Vec::new();
        s.read_to_end(&mut all).map(|_| all.len())
    });
    let sender =
        Running::start(&ns, &["send", "10.84.0.1:7000", "--time", "600s", "--json", "--interval", "100ms"]);
    let now = sender.until("connections{state=\"established\"}", 1.0);
    assert_eq!(now["connections_opened_total"], 1.0);
    let (status, out) = sender.terminate();
    let v: Value = serde_json::from_str(&out).expect("one document");
    let counters = &v["skyhaul"]["host"]["counters"];
    assert_eq!(
        (status, counters["connections_ended_total"]["closed"].as_f64()),
        (Some(143), Some(1.0)),
        "{counters:#}"
    );
    let got = kernel.join().expect("ends").expect("a FIN") as f64;
    assert_eq!(counters["bytes_acknowledged_total"].as_f64(), Some(got));
    // The same names in both, but for the prefix.
    let flat = |v: &Value| v.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let names: std::collections::BTreeSet<String> =
        now.keys().map(|k| k.split('{').next().expect("a name").to_owned()).collect();
    assert_eq!(flat(counters), names.into_iter().collect::<Vec<_>>());
}
