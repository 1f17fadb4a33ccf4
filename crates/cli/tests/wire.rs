//! `wire` against the kernel and real programs, in network namespaces of the tests' own.
#![cfg(target_os = "linux")]

use serde_json::Value;
use skyhaul_net::Namespace;
use skyhaul_testkit::{need, tshark};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

const SKYHAUL: &str = env!("CARGO_BIN_EXE_skyhaul");

/// `None`, with a message, where the kernel does not grant a namespace.
fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}

/// Starts a program in a namespace.
fn start(ns: &Namespace, program: &str, args: &[&str]) -> Child {
    let child = ns.within(|| {
        Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    });
    child.expect("enters").expect("starts")
}

fn run(ns: &Namespace, program: &str, args: &[&str]) -> Output {
    start(ns, program, args).wait_with_output().expect("ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `skyhaul wire ...` that ends well.
fn good(ns: &Namespace, args: &[&str]) -> String {
    let out = run(ns, SKYHAUL, &[&["wire"], args].concat());
    assert_eq!(
        (out.status.code(), text(&out.stderr).as_str()),
        (Some(0), ""),
        "{args:?}: {}",
        text(&out.stdout)
    );
    text(&out.stdout)
}

/// Checks for status 2 and this line alone on standard error.
fn bad(out: &Output, line: &str) {
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(2), format!("skyhaul: {line}\n")));
}

fn ip(ns: &Namespace, args: &str) {
    let out = run(ns, "ip", &args.split(' ').collect::<Vec<_>>());
    assert!(out.status.success(), "ip {args}: {}", text(&out.stderr));
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// A listener of the kernel at every address of the namespace; its thread returns the data of `conns` connections.
fn sink(ns: &Namespace, conns: usize) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = ns.within(|| TcpListener::bind("[::]:0").expect("binds")).expect("enters");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let streams: Vec<_> = (0..conns).map(|_| listener.accept().expect("a connection").0).collect();
        let mut all = Vec::new();
        for mut s in streams {
            // A reset is an end too.
            let _ = s.read_to_end(&mut all);
        }
        all
    });
    (port, thread)
}

/// A server that listens, and its output after the line that says so.
fn serving(ns: &Namespace, args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = start(ns, SKYHAUL, &[&["wire", "serve"], args].concat());
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert!(line.starts_with("listening at "), "{line:?}");
    (child, out)
}

fn ended(mut child: Child, mut out: BufReader<std::process::ChildStdout>) -> String {
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    let mut errors = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    let status = child.wait().expect("ends");
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""), "{rest}");
    rest
}

/// Whether the data is the pattern that senders repeat.
fn is_pattern(data: &[u8]) -> bool {
    data.iter().enumerate().all(|(i, b)| *b == pattern(i % (1 << 16)))
}
fn pattern(i: usize) -> u8 {
    (i ^ (i >> 8)) as u8
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
}

#[test]
fn what_is_sent_arrives_at_a_program_of_the_kernels() {
    let Some(ns) = space() else { return };
    // A stream of 300 pieces of 64 KiB less one byte: every byte is known.
    let size = 300 * 65_536 - 1;
    let (port, kernel) = sink(&ns, 1);
    let to = format!("10.84.0.1:{port}");
    let out = good(&ns, &["send", &to, "--bytes", &format!("{size}B"), "--interval", "20ms"]);
    let data = kernel.join().expect("ends");
    assert_eq!(data.len(), size);
    assert!(is_pattern(&data));
    assert!(out.contains("-> 10.84.0.1:") && out.contains(": closed in order\n"), "{out}");
    // The header comes first, and rows follow it.
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].contains("goodput") && lines.iter().filter(|l| l.starts_with("[  1]")).count() >= 3,
        "{out}"
    );
    assert!(
        out.contains("packets: ") && out.contains(" in, refused: ") && out.contains(" per GB)\n"),
        "{out}"
    );
    // IPv6, several connections, for a time.
    let (port, kernel) = sink(&ns, 3);
    let v6 = ["--kernel-address", "fd00:5359::1/64", "--address", "fd00:5359::2"];
    let to = format!("[fd00:5359::1]:{port}");
    let out = good(&ns, &[&["send", &to, "--time", "1s", "--streams", "3"], &v6[..]].concat());
    assert!(out.contains("[SUM]") && out.matches(": closed in order\n").count() == 3, "{out}");
    assert!(kernel.join().expect("ends").len() > 100_000);
}

#[test]
fn the_document_has_the_keys_of_iperf3() {
    let Some(ns) = space() else { return };
    let (port, kernel) = sink(&ns, 2);
    let to = format!("10.84.0.1:{port}");
    let args =
        ["send", &to, "--bytes", "20MB", "--streams", "2", "--json", "--cc", "peach", "--interval", "50ms"];
    let v: Value = serde_json::from_str(&good(&ns, &args)).expect("one document");
    assert_eq!(kernel.join().expect("ends").len(), 20_000_000);
    let mut keys = BTreeSet::new();
    collect("", &v, &mut keys);
    let theirs =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/iperf3-3.12.keys"));
    let theirs: BTreeSet<String> = theirs.expect("the file").lines().map(str::to_owned).collect();
    let more: Vec<&String> =
        keys.iter().filter(|k| !k.contains("skyhaul")).filter(|k| !theirs.contains(*k)).collect();
    assert!(more.is_empty(), "keys that iperf3 does not have: {more:?}");
    let lacking: Vec<&str> = theirs.difference(&keys).map(String::as_str).collect();
    // Keys for which a stack outside the kernel has no value.
    let none = [
        "end.cpu_utilization_percent.host_system",
        "end.cpu_utilization_percent.host_user",
        "end.cpu_utilization_percent.remote_system",
        "end.cpu_utilization_percent.remote_total",
        "end.cpu_utilization_percent.remote_user",
        "end.receiver_tcp_congestion",
        "end.streams[].sender.max_snd_wnd",
        "intervals[].streams[].pmtu",
        "intervals[].streams[].rttvar",
        "intervals[].streams[].snd_wnd",
        "start.cookie",
        "start.rcvbuf_actual",
        "start.sndbuf_actual",
        "start.sock_bufsize",
    ];
    assert_eq!(lacking, none);
    assert_eq!(v["end"]["sum_sent"]["bytes"], 20_000_000);
    let of_intervals: u64 =
        v["intervals"].as_array().expect("intervals").iter().filter_map(|i| i["sum"]["bytes"].as_u64()).sum();
    assert_eq!(of_intervals, 20_000_000);
    for c in v["skyhaul"]["connections"].as_array().expect("connections") {
        assert_eq!((c["peer_answers_probes"].as_bool(), c["in_order"].as_bool()), (Some(false), Some(true)));
        assert_eq!(c["probes"], "the peer does not answer probes: TCP-Peach runs as Reno");
    }
}

fn collect(at: &str, v: &Value, keys: &mut BTreeSet<String>) {
    match v {
        Value::Object(map) => map.iter().for_each(|(k, v)| {
            collect(&if at.is_empty() { k.clone() } else { format!("{at}.{k}") }, v, keys);
        }),
        Value::Array(all) => all.iter().for_each(|v| collect(&format!("{at}[]"), v, keys)),
        _ => drop(keys.insert(at.to_owned())),
    }
}

#[test]
fn curl_and_iperf3_are_served() {
    let Some(ns) = space() else { return };
    if !need::program("curl") || !need::program("iperf3") {
        return;
    }
    let (child, out) = serving(&ns, &["--mode", "http", "--port", "80", "--once"]);
    let curl = run(&ns, "curl", &["-sS", "http://10.84.0.2/3000000"]);
    assert_eq!((curl.status.code(), curl.stdout.len()), (Some(0), 3_000_000));
    let out = ended(child, out);
    assert!(out.contains("3 MB") && out.contains(": closed in order\n"), "{out}");
    for (extra, arrow) in [(&["-n", "20M"][..], " <- "), (&["-n", "20M", "-R", "-P", "2"], " -> ")] {
        let (child, out) = serving(&ns, &["--mode", "iperf3", "--once", "--cc", "reno"]);
        let client = run(&ns, "iperf3", &[&["-c", "10.84.0.2", "-J"], extra].concat());
        assert!(client.status.success(), "{}", text(&client.stdout));
        let v: Value = serde_json::from_slice(&client.stdout).expect("JSON");
        // When the sender has written everything, up to a send buffer (tcp_wmem) of it is still under way.
        assert!(
            v["end"]["sum_received"]["bytes"].as_u64() > Some(10_000_000),
            "{}",
            v["end"]["sum_received"]
        );
        let out = ended(child, out);
        assert!(out.contains(arrow) && out.contains("goodput"), "{out}");
    }
    // The documents of server and client agree.
    let server = start(&ns, SKYHAUL, &["wire", "serve", "--mode", "iperf3", "--once", "--json"]);
    let client = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let out = run(&ns, "iperf3", &["-c", "10.84.0.2", "-J", "-n", "5M"]);
        out.status.success().then_some(out)
    });
    let theirs: Value = serde_json::from_slice(&client.expect("a test").stdout).expect("JSON");
    let out = server.wait_with_output().expect("ends");
    let ours: Value = serde_json::from_slice(&out.stdout).expect("one document");
    assert_eq!(ours["end"]["sum_received"]["bytes"], theirs["end"]["sum_received"]["bytes"]);
    assert_eq!(ours["end"]["sum_received"]["sender"], false);
    assert_eq!(ours["skyhaul"]["connections"][0]["in_order"], true);
}

#[test]
fn two_of_our_stacks_agree_on_probes_across_two_kernels() {
    let (Some(near), Some(far)) = (space(), space()) else { return };
    if !need::program("ip") {
        return;
    }
    let mut holder = start(&far, "sleep", &["600"]);
    ip(&near, &format!("link add near0 type veth peer name far0 netns {}", holder.id()));
    for (ns, name, own, other, net) in [(&near, "near0", 1, 2, 86), (&far, "far0", 2, 1, 84)] {
        ip(ns, &format!("addr add 10.85.0.{own}/24 dev {name}"));
        ip(ns, &format!("link set {name} up"));
        ip(ns, &format!("route add 10.{net}.0.0/24 via 10.85.0.{other}"));
    }
    // A round trip in which dummies have time to go and to be answered.
    let _ = run(&far, "tc", &["qdisc", "add", "dev", "far0", "root", "netem", "delay", "50ms"]);
    for profile in ["option", "compact"] {
        let there = ["--kernel-address", "10.86.0.1/24", "--address", "10.86.0.2", "--profile", profile];
        let (child, out) = serving(&far, &[&there[..], &["--once"]].concat());
        let args = ["send", "10.86.0.2", "--bytes", "3MB", "--cc", "peach", "--profile", profile, "--json"];
        let v: Value = serde_json::from_str(&good(&near, &args)).expect("one document");
        let c = &v["skyhaul"]["connections"][0];
        assert_eq!(c["peer_answers_probes"], true, "{profile}: {c}");
        assert!(c["probes_answered"].as_u64() > Some(0), "{profile}: {c}");
        let out = ended(child, out);
        assert!(out.contains("3 MB") && out.contains(": closed in order\n"), "{out}");
    }
    holder.kill().expect("kills");
    holder.wait().expect("ends");
}

#[test]
fn a_capture_is_readable() {
    let Some(ns) = space() else { return };
    if !need::program("tshark") {
        return;
    }
    let file = folder("wire-pcap").join("a.pcapng");
    let path = file.to_str().expect("text");
    let (port, kernel) = sink(&ns, 1);
    good(&ns, &["send", &format!("10.84.0.1:{port}"), "--bytes", "1MB", "--pcap", path]);
    assert_eq!(kernel.join().expect("ends").len(), 1_000_000);
    assert!(tshark::count(&file, "tcp.len > 0") > 680);
    assert_eq!(tshark::count(&file, "tcp.flags.fin == 1"), 2);
    assert_eq!(tshark::count(&file, tshark::INVALID), 0);
}

#[test]
fn ctrl_c_ends_in_order() {
    let Some(ns) = space() else { return };
    let (port, kernel) = sink(&ns, 1);
    let to = format!("10.84.0.1:{port}");
    let mut child = start(&ns, SKYHAUL, &["wire", "send", &to, "--time", "600s", "--interval", "100ms"]);
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    for _ in 0..3 {
        out.read_line(&mut line).expect("rows");
    }
    interrupt(&child);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    let errors = child.wait_with_output().expect("ends");
    assert_eq!(errors.status.code(), Some(130), "{rest}");
    assert_eq!(text(&errors.stderr), "skyhaul: stopped early\n");
    assert!(rest.contains(": closed in order\n") && rest.contains("packets: "), "{rest}");
    assert!(is_pattern(&kernel.join().expect("ends")));
    // Ctrl-C ends a server, even while a peer sends.
    let (child, out) = serving(&ns, &[]);
    interrupt(&child);
    let rest = ended(child, out);
    assert!(rest.contains("packets: "), "{rest}");
    let (child, out) = serving(&ns, &["--interval", "50ms"]);
    let busy = ns.clone();
    let sender = std::thread::spawn(move || {
        let s = busy.within(|| std::net::TcpStream::connect("10.84.0.2:5201")).expect("enters");
        let mut s = s.expect("connects");
        let mut sent = 0_u64;
        while std::io::Write::write_all(&mut s, &[1; 4096]).is_ok() {
            sent += 4096;
        }
        sent
    });
    let mut out = out;
    for _ in 0..2 {
        out.read_line(&mut String::new()).expect("rows");
    }
    interrupt(&child);
    let rest = ended(child, out);
    assert!(rest.contains("10.84.0.2:5201 <- 10.84.0.1:"), "{rest}");
    assert!(sender.join().expect("ends") > 0);
}

/// Waits until a condition is true, at most a minute.
fn waits_for(what: &str, mut happens: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if happens() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} does not happen");
}

#[test]
fn output_that_nobody_reads_stops_nobody() {
    let Some(ns) = space() else { return };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // Another writer keeps the pipe full.
    let mut full = writer.try_clone().expect("another end");
    let filler =
        std::thread::spawn(move || while std::io::Write::write_all(&mut full, &[b'.'; 512]).is_ok() {});
    let mut c = Command::new(SKYHAUL);
    c.args(["wire", "serve", "--interval", "20ms"])
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped());
    let mut child = ns.within(|| c.spawn()).expect("enters").expect("starts");
    drop(c);
    let connect = || ns.within(|| std::net::TcpStream::connect("10.84.0.2:5201")).expect("enters");
    let mut busy = Vec::new();
    waits_for("a listener", || {
        busy.extend(connect().ok());
        !busy.is_empty()
    });
    // More than the kernel's buffers hold, on the old connection and on another one: the stack reads on.
    busy.push(connect().expect("is served"));
    for s in &mut busy {
        std::io::Write::write_all(s, &vec![2; 20_000_000]).expect("the stack reads");
        s.shutdown(std::net::Shutdown::Write).expect("half-closes");
        assert_eq!(s.read(&mut [0]).expect("a FIN"), 0);
    }
    assert!(child.try_wait().expect("a child").is_none(), "it runs");
    // The first signal ends it, although its last output finds no room.
    interrupt(&child);
    let status = child.wait().expect("ends");
    assert_eq!(status.code(), Some(0));
    drop(reader);
    filler.join().expect("ends");
}

#[test]
fn a_sender_leaves_a_peer_that_does_not_close() {
    let Some(ns) = space() else { return };
    // It accepts, and reads nothing: its kernel acknowledges what it has room for, and the FIN.
    let listener = ns.within(|| TcpListener::bind("[::]:0")).expect("enters").expect("binds");
    let to = format!("10.84.0.1:{}", listener.local_addr().expect("an address").port());
    let out = good(&ns, &["send", &to, "--time", "200ms"]);
    assert!(out.contains(": closed in order\n"), "{out}");
}

#[test]
fn a_client_of_http_that_vanishes_is_left() {
    let Some(ns) = space() else { return };
    if !need::program("curl") || !need::program("ip") {
        return;
    }
    let serve = ["--mode", "http", "--port", "80", "--idle", "1s", "--tun", "sky0", "--interval", "20ms"];
    let (child, mut out) = serving(&ns, &serve);
    let mut curl = start(&ns, "curl", &["-sS", "-o", "/dev/null", "http://10.84.0.2/1000000000000"]);
    let mut line = String::new();
    while !line.starts_with("[  1]") {
        line.clear();
        out.read_line(&mut line).expect("rows");
    }
    ip(&ns, "link set sky0 down");
    // The server ends the connection without waiting for curl.
    while !line.contains("10.84.0.2:80 -> 10.84.0.1:") {
        line.clear();
        assert!(out.read_line(&mut line).expect("rows") > 0, "it ends");
    }
    assert!(!line.contains("closed in order"), "{line}");
    curl.kill().expect("is ours");
    curl.wait().expect("ends");
    ip(&ns, "link set sky0 up");
    let next = run(&ns, "curl", &["-sS", "http://10.84.0.2/3000"]);
    assert_eq!((next.status.code(), next.stdout.len()), (Some(0), 3000), "{}", text(&next.stderr));
    interrupt(&child);
    let rest = ended(child, out);
    assert!(rest.contains(": closed in order\n"), "{rest}");
}

#[test]
fn whoever_asks_for_what_cannot_be_gets_one_line() {
    let Some(ns) = space() else { return };
    let wire = |args: &[&str]| run(&ns, SKYHAUL, &[&["wire"], args].concat());
    let send = |more: &[&str]| wire(&[&["send", "10.84.0.1", "--time", "1s"], more].concat());
    bad(
        &send(&["--tun", "sixteen-letters-"]),
        "\"sixteen-letters-\" is not an interface name: write 1 to 15 letters, digits, dots or dashes",
    );
    bad(&send(&["--tun", "lo"]), "interface \"lo\" exists already: choose another name");
    bad(
        &send(&["--kernel-address", "127.0.0.5/8", "--address", "127.0.0.6"]),
        "--kernel-address: the network of 127.0.0.5/8 is in use already, lo has 127.0.0.1: choose another one, and \
         --address in it",
    );
    bad(
        &send(&["--address", "10.84.0.1"]),
        "--address 10.84.0.1: the kernel's side has this address (/24): choose another one",
    );
    bad(
        &send(&["--address", "10.85.0.1"]),
        "--address 10.85.0.1: it is not in the network of --kernel-address (10.84.0.1/24): choose one that is",
    );
    bad(
        &wire(&["send", "fd00::1", "--time", "1s"]),
        "fd00::1: it has an IPv6 address, and the stack has none: add --kernel-address fd00:5359::1/64 --address \
         fd00:5359::2",
    );
    bad(
        &wire(&["send", "10.84.0.2", "--time", "1s"]),
        "10.84.0.2: this is the stack's own address; the kernel's side is 10.84.0.1",
    );
    bad(
        &wire(&["send", "10.84.0.1:0", "--time", "1s"]),
        "10.84.0.1:0: \"0\" is not a port: write a number from 1 to 65535",
    );
    bad(
        &wire(&["send", "10.84.0.1:9", "--time", "1s"]),
        "10.84.0.1:9: connection refused: nothing listens there",
    );
    bad(
        &wire(&["send", "10.84.0.9", "--time", "1s", "--set", "endpoint.max-retransmissions=1"]),
        "10.84.0.9:5201: no answer: are there routes in both directions?",
    );
    bad(
        &send(&["--pcap", "/no/such/folder/x"]),
        "--pcap /no/such/folder/x: the folder /no/such/folder does not exist",
    );
    bad(
        &send(&["--cc", "user:mine"]),
        "--cc: a user-defined control runs only inside the program that provides it (Python, Rust), which this \
         command does not run: choose a built-in one",
    );
    bad(
        &send(&["--set", "links.x=1"]),
        "--set links.x: write cc.KEY=VALUE, endpoint.KEY=VALUE, rwnd=SIZE or sndbuf=SIZE",
    );
    bad(
        &send(&["--set", "endpoint.loss-classifier=oracle"]),
        "--set endpoint.loss-classifier: \"oracle\" knows why each packet was lost, which only the simulator does: write \
         \"inter-arrival\", \"spike\" or \"none\"",
    );
    bad(&send(&["--set", "endpoint.mss=100 B"]), "--set endpoint.mss: it follows from --mtu and the path");
    for (args, words) in [
        (&["send", "10.84.0.1", "--time", "10"][..], &["--time", "10 has no unit", "\"10 ms\""][..]),
        (&["send", "10.84.0.1", "--bytes", "10"], &["--bytes", "10 has no unit", "\"10 B\""]),
        (&["send", "10.84.0.1"], &["--time", "--bytes"]),
        (
            &["send", "10.84.0.1", "--time", "1s", "--cc", "cubik"],
            &["--cc: ", "cubik", "did you mean \"cubic\"?"],
        ),
        (
            &["send", "10.84.0.1", "--time", "1s", "--set", "endpoint.rto-min=3"],
            &["--set endpoint.rto-min: ", "no unit"],
        ),
        (&["serve", "--kernel-address", "10.0.0.1"], &["--kernel-address", "such as 10.84.0.1/24"]),
    ] {
        let out = wire(args);
        let line = text(&out.stderr);
        assert_eq!((out.status.code(), line.matches('\n').count()), (Some(2), 1), "{args:?}: {line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is not in: {line}");
        }
    }
    if need::program("setpriv") {
        let nobody =
            ["--reuid", "65534", "--clear-groups", SKYHAUL, "wire", "send", "10.84.0.1", "--time", "1s"];
        let mut nobody = nobody.map(str::to_owned);
        // The program may lie in a folder that only its owner can read.
        let public = std::env::temp_dir().join(format!("skyhaul-{}", std::process::id()));
        fs::copy(SKYHAUL, &public).expect("a copy");
        nobody[3] = public.to_str().expect("text").to_owned();
        let out = run(&ns, "setpriv", &nobody.each_ref().map(String::as_str));
        fs::remove_file(&public).expect("there");
        bad(
            &out,
            "cannot create a TUN interface without CAP_NET_ADMIN: run it as root, or in your own user namespace (unshare -Urn)",
        );
    }
}
