//! The server of iperf3's protocol: both directions at once, and datagrams. The tests have a client of their own; where iperf3
//! is installed, it is a client, too.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use skyhaul_net::Namespace;
use skyhaul_testkit::need;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const SERVER: &str = "10.84.0.2:5201";
const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz0123456789\0";

/// `None`, with a message, where the kernel does not grant a namespace.
fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}
/// A server that serves one test.
fn serve(ns: &Namespace, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    c.args(["wire", "serve", "--mode", "iperf3", "--once"]).args(more);
    c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ns.within(|| c.spawn()).expect("enters").expect("starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    if !more.contains(&"--json") {
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert!(line.starts_with("listening at "), "{line:?}");
    }
    (child, out)
}
/// The rest of standard output, and standard error.
fn ended(mut child: Child, mut out: BufReader<ChildStdout>) -> (String, String) {
    let (mut rest, mut errors) = (String::new(), String::new());
    out.read_to_string(&mut rest).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    assert_eq!(child.wait().expect("ends").code(), Some(0), "{rest}{errors}");
    (rest, errors)
}

/// The control connection of a client.
struct Control(TcpStream);

impl Control {
    /// A test with these parameters, up to the creation of its streams.
    fn open(ns: &Namespace, parameters: &Value) -> Self {
        let mut s = connect(ns);
        s.write_all(COOKIE).expect("sent");
        let mut control = Self(s);
        control.expect(9);
        control.say(parameters);
        control.expect(10);
        control
    }
    fn say(&mut self, value: &Value) {
        let text = value.to_string();
        self.0.write_all(&(text.len() as u32).to_be_bytes()).expect("sent");
        self.0.write_all(text.as_bytes()).expect("sent");
    }
    fn expect(&mut self, state: u8) {
        let mut got = [0];
        self.0.read_exact(&mut got).expect("a state");
        assert_eq!(got[0], state);
    }
    /// Ends the test; the server's results.
    fn end(mut self) -> Value {
        self.0.write_all(&[4]).expect("sent");
        self.expect(13);
        self.say(&json!({ "streams": [] }));
        let mut len = [0; 4];
        self.0.read_exact(&mut len).expect("a length");
        let mut text = vec![0; u32::from_be_bytes(len) as usize];
        self.0.read_exact(&mut text).expect("results");
        self.expect(14);
        self.0.write_all(&[16]).expect("sent");
        serde_json::from_slice(&text).expect("JSON")
    }
}

fn connect(ns: &Namespace) -> TcpStream {
    for _ in 0..500 {
        if let Ok(s) = ns.within(|| TcpStream::connect(SERVER)).expect("enters") {
            s.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
            return s;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody listens");
}
fn stream(ns: &Namespace) -> TcpStream {
    let mut s = connect(ns);
    s.write_all(COOKIE).expect("sent");
    s
}
/// A stream of datagrams that the server knows.
fn datagrams(ns: &Namespace) -> UdpSocket {
    let s = ns.within(|| UdpSocket::bind("10.84.0.1:0")).expect("enters").expect("binds");
    s.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    s.connect(SERVER).expect("a peer");
    s.send(b"9876").expect("sent");
    let mut answer = [0; 4];
    assert_eq!((s.recv(&mut answer).expect("an answer"), &answer), (4, b"6789"));
    s
}
fn bytes(results: &Value, stream: usize) -> u64 {
    results["streams"][stream]["bytes"].as_u64().expect("a number")
}

#[test]
fn data_goes_both_ways_at_once() {
    let Some(ns) = space() else { return };
    let (child, out) = serve(&ns, &[]);
    let mut control =
        Control::open(&ns, &json!({ "tcp": true, "bidirectional": true, "parallel": 2, "time": 10 }));
    let mut streams: Vec<TcpStream> = (0..4).map(|_| stream(&ns)).collect();
    control.expect(1);
    control.expect(2);
    // The client sends on the first two streams.
    let mut read = vec![0; 500_000];
    for (i, s) in streams.iter_mut().enumerate() {
        if i < 2 {
            s.write_all(&vec![7; 300_000]).expect("sent")
        } else {
            s.read_exact(&mut read).expect("comes")
        }
    }
    // Time for the server to read what was sent, before the test ends.
    std::thread::sleep(Duration::from_millis(200));
    let results = control.end();
    drop(streams);
    let ids: Vec<u64> = (0..4).filter_map(|i| results["streams"][i]["id"].as_u64()).collect();
    assert_eq!(ids, [1, 3, 4, 5], "{results:#}");
    assert!((0..2).all(|i| bytes(&results, i) > 0 && bytes(&results, i) <= 300_000), "{results:#}");
    assert!((2..4).all(|i| bytes(&results, i) >= 400_000), "{results:#}");
    assert_eq!(
        (&results["sender_has_retransmits"], &results["streams"][0]["retransmits"]),
        (&json!(1), &json!(-1))
    );
    let (out, errors) = ended(child, out);
    assert_eq!(errors, "");
    assert_eq!((out.matches(" <- ").count(), out.matches(" -> ").count()), (2, 2), "{out}");
    assert_eq!(out.matches("[SUM]").count(), 2, "a sum for each direction: {out}");
}

#[test]
fn datagrams_that_do_not_come_are_counted() {
    let Some(ns) = space() else { return };
    for wide in [false, true] {
        let (child, out) = serve(&ns, &["--json"]);
        let parameters = json!({ "udp": true, "parallel": 1, "len": 1000, "bandwidth": 1_000_000, "udp_counters_64bit": i32::from(wide) });
        let mut control = Control::open(&ns, &parameters);
        let s = datagrams(&ns);
        control.expect(1);
        control.expect(2);
        // Of 100 every tenth is never sent.
        for n in (1..=100u32).filter(|n| n % 10 != 5) {
            let mut data = vec![0; 1000];
            if wide {
                data[8..16].copy_from_slice(&u64::from(n).to_be_bytes());
            } else {
                data[8..12].copy_from_slice(&n.to_be_bytes());
            }
            s.send(&data).expect("sent");
        }
        // A datagram from another socket is not counted.
        let stranger = ns.within(|| UdpSocket::bind("10.84.0.1:0")).expect("enters").expect("binds");
        stranger.send_to(&[0; 1000], SERVER).expect("sent");
        std::thread::sleep(Duration::from_millis(300));
        let results = control.end();
        let of = &results["streams"][0];
        assert_eq!(
            (&of["packets"], &of["errors"], &of["bytes"]),
            (&json!(100), &json!(10), &json!(90_000)),
            "{results:#}"
        );
        let (out, errors) = ended(child, out);
        assert_eq!(errors, "");
        let v: Value = serde_json::from_str(&out).expect("one document");
        let (sum, udp) = (&v["end"]["sum"], &v["end"]["streams"][0]["udp"]);
        assert_eq!(
            (&sum["lost_packets"], &udp["lost_packets"], &udp["packets"]),
            (&json!(10), &json!(10), &json!(100)),
            "{v:#}"
        );
        assert_eq!((&v["start"]["test_start"]["protocol"], &sum["sender"]), (&json!("UDP"), &json!(false)));
    }
}

#[test]
fn datagrams_are_sent_and_numbered() {
    let Some(ns) = space() else { return };
    let (child, out) = serve(&ns, &[]);
    let parameters = json!({
        "udp": true, "bidirectional": true, "parallel": 1, "len": 500, "bandwidth": 2_000_000, "udp_counters_64bit": 1
    });
    let mut control = Control::open(&ns, &parameters);
    let (up, down) = (datagrams(&ns), datagrams(&ns));
    control.expect(1);
    control.expect(2);
    let mut room = [0; 2000];
    for expected in 1..=100u64 {
        assert_eq!(down.recv(&mut room).expect("comes"), 500);
        assert_eq!(u64::from_be_bytes(*room[8..].first_chunk().expect("a number")), expected);
        up.send(&room[..500]).expect("sent");
    }
    std::thread::sleep(Duration::from_millis(200));
    let results = control.end();
    assert_eq!((bytes(&results, 0), &results["streams"][0]["errors"]), (50_000, &json!(0)), "{results:#}");
    assert!(results["streams"][1]["packets"].as_u64() >= Some(100), "{results:#}");
    let (out, errors) = ended(child, out);
    assert_eq!(errors, "");
    assert!(
        out.contains(": 100 datagrams, 50000 B in ") && out.contains("; 0 lost, 0 out of order, jitter "),
        "{out}"
    );
}

#[test]
fn datagrams_that_need_fragments_are_refused_in_words() {
    let Some(ns) = space() else { return };
    let (child, out) = serve(&ns, &[]);
    let mut s = connect(&ns);
    s.write_all(COOKIE).expect("sent");
    let mut control = Control(s);
    control.expect(9);
    control.say(&json!({ "udp": true, "len": 8192 }));
    let mut answer = Vec::new();
    control.0.read_to_end(&mut answer).expect("a FIN");
    assert_eq!(answer, [254, 0, 0, 0, 114, 0, 0, 0, 0]);
    drop(control);
    let (_, errors) = ended(child, out);
    assert_eq!(
        errors,
        "skyhaul: a test was refused: its datagrams have 8192 bytes (-l), but only 16 to 1452 fit into a packet without \
         fragmentation\n"
    );
}

#[test]
fn iperf3_itself_is_served() {
    let Some(ns) = space() else { return };
    if !need::program("iperf3") {
        return;
    }
    for args in [
        &["--bidir", "-t", "1"][..],
        &["--bidir", "-t", "1", "-P", "2"],
        &["-u", "-b", "5M", "-t", "1"],
        &["-u", "-b", "5M", "-t", "1", "-R", "-P", "2"],
        &["-u", "-b", "5M", "-t", "1", "--bidir", "--udp-counters-64bit"],
    ] {
        let (child, out) = serve(&ns, &[]);
        let client = || Command::new("iperf3").args(["-c", "10.84.0.2", "-J"]).args(args).output();
        let client = ns.within(client).expect("enters").expect("starts");
        let v: Value = serde_json::from_slice(&client.stdout).expect("JSON");
        assert!(client.status.success() && v["error"].is_null(), "{args:?}: {v:#}");
        let (out, errors) = ended(child, out);
        assert_eq!(errors, "", "{args:?}");
        for s in v["end"]["streams"].as_array().expect("streams") {
            if args[0] == "-u" {
                let u = &s["udp"];
                assert!(u["packets"].as_u64() > Some(300), "{args:?}: {u:#}");
                assert_eq!(
                    (&u["lost_packets"], &u["out_of_order"]),
                    (&json!(0), &json!(0)),
                    "{args:?}: {v:#}"
                );
            } else {
                assert!(s["receiver"]["bytes"].as_u64() > Some(1_000_000), "{args:?}: {v:#}");
            }
        }
        for arrow in [" <- ", " -> "] {
            let both = args.contains(&"--bidir");
            let wanted = both || (arrow == " -> ") == args.contains(&"-R");
            assert_eq!(out.contains(arrow), wanted, "{args:?}: {out}");
        }
    }
}

/// Runs short tests until one succeeds: the server is free again.
fn is_free(ns: &Namespace) {
    for _ in 0..600 {
        let next = || Command::new("iperf3").args(["-c", "10.84.0.2", "-n", "100K"]).output();
        if ns.within(next).expect("enters").expect("starts").status.success() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the server stays busy");
}

#[test]
fn a_client_that_is_killed_or_vanishes_keeps_no_server() {
    let Some(ns) = space() else { return };
    if !need::program("iperf3") || !need::program("ip") {
        return;
    }
    let mut c = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    c.args(["wire", "serve", "--mode", "iperf3", "--idle", "2s", "--tun", "sky0"]);
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = ns.within(|| c.spawn()).expect("enters").expect("starts");
    is_free(&ns);
    let link = |state: &str| {
        let set = || Command::new("ip").args(["link", "set", "sky0", state]).status();
        assert!(ns.within(set).expect("enters").expect("starts").success());
    };
    for args in [&["-u", "-R", "-b", "5M"][..], &["--bidir"], &["-u", "--bidir", "-b", "5M"]] {
        // Killed, its kernel closes its connections; behind a link that is down, nothing tells of its end.
        for vanishes in [false, true] {
            let mut client = Command::new("iperf3");
            client.args(["-c", "10.84.0.2", "-t", "600", "-i", "0.1", "--forceflush"]).args(args);
            client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut client = ns.within(|| client.spawn()).expect("enters").expect("starts");
            let rows = BufReader::new(client.stdout.take().expect("piped")).lines();
            let mut rows = rows.map(|l| l.expect("text")).filter(|l| l.contains("bits/sec"));
            assert!(rows.by_ref().nth(5).is_some(), "{args:?}: data moves");
            if vanishes {
                link("down");
            }
            client.kill().expect("is ours");
            client.wait().expect("ends");
            if vanishes {
                // Longer than --idle.
                std::thread::sleep(Duration::from_secs(3));
                link("up");
            }
            is_free(&ns);
        }
    }
    assert!(server.try_wait().expect("a child").is_none(), "it serves on");
    server.kill().expect("is ours");
    server.wait().expect("ends");
}
