//! What operators use: captures, logs, the capabilities of the service, cleaning up after a kill.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, Running};
use crate::{PORT, bytes, calm, echo, exchange, listen, many, server};
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;
use skyhaul_base::Duration;
use skyhaul_gateway::capture::{self, Request, Summary};
use skyhaul_gateway::leftover::{self, CleanupResult};
use skyhaul_testkit::need;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const ALL: [(&str, fn()); 7] = [
    ("the_time_of_day_is_for_people_alone", the_time_of_day_is_for_people_alone),
    ("a_flow_is_captured_from_its_first_packet", a_flow_is_captured_from_its_first_packet),
    ("a_flow_that_is_open_is_captured_by_its_number", a_flow_that_is_open_is_captured_by_its_number),
    ("connections_are_logged", connections_are_logged),
    ("the_capabilities_of_the_unit_suffice", the_capabilities_of_the_unit_suffice),
    ("settings_come_back_after_a_kill_with_block", settings_come_back_after_a_kill_with_block),
    ("the_keeper_leaves_a_new_gateway_alone", the_keeper_leaves_a_new_gateway_alone),
];

/// A packet of a capture: its length on the link, and what was captured of it.
type Captured = (u32, Vec<u8>);

fn packets(file: &[u8]) -> (Vec<Captured>, u64) {
    let mut reader = PcapNgReader::new(file).expect("a section");
    let (mut all, mut dropped, mut last) = (Vec::new(), u64::MAX, std::time::Duration::ZERO);
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::EnhancedPacket(p) => {
                assert!(p.timestamp >= last, "in order");
                last = p.timestamp;
                all.push((p.original_len, p.data.to_vec()));
            }
            Block::InterfaceStatistics(s) => {
                use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption::IsbIfDrop;
                // The reader takes the two halves of the time in the wrong order.
                let at = std::time::Duration::from_nanos(s.timestamp.rotate_left(32));
                assert!(at >= last && (at - last).as_secs() < 3600, "{at:?} {last:?}");
                dropped = s
                    .options
                    .iter()
                    .find_map(|o| if let IsbIfDrop(n) = o { Some(*n) } else { None })
                    .expect("drops");
            }
            _ => {}
        }
    }
    (all, dropped)
}

/// What a capture has written.
struct Written {
    summary: Summary,
    pcap: Vec<u8>,
    qlog: Vec<Value>,
}

impl Written {
    fn count(&self, name: &str, matches: impl Fn(&Value) -> bool) -> u64 {
        let events = self.qlog.iter().skip(1).filter(|e| e["name"] == format!("tcp:{name}"));
        events.filter(|e| matches(&e["data"])).count() as u64
    }
}

/// Captures at the near gateway while `happens` runs, and a moment before and after.
fn during(bed: &Bed, request: &Request, happens: impl FnOnce()) -> Written {
    let over = AtomicBool::new(false);
    let (mut pcap, mut qlog) = (Vec::new(), Vec::new());
    let summary = std::thread::scope(|s| {
        let capture = s.spawn(|| {
            let stop = || over.load(Ordering::Relaxed);
            capture::run(&bed.folder, "near", request, stop, Some(&mut pcap), Some(&mut qlog))
                .expect("captures")
        });
        // The tap is attached before its first bytes can come.
        std::thread::sleep(std::time::Duration::from_millis(300));
        happens();
        std::thread::sleep(std::time::Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        capture.join().expect("captures")
    });
    let qlog = skyhaul_trace::qlog::records(std::str::from_utf8(&qlog).expect("text")).expect("records");
    Written { summary, pcap, qlog }
}

fn wait_until_idle(gateway: &Running) {
    while gateway.count("flows") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn log_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

/// Lines of a log, as soon as there are as many.
pub(crate) fn lines(path: &Path, wanted: usize) -> Vec<Value> {
    for _ in 0..500 {
        let all = log_lines(path);
        if all.len() >= wanted {
            return all;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{wanted} lines in {}: {:?}", path.display(), log_lines(path));
}

fn a_flow_is_captured_from_its_first_packet() {
    let rough = Link { delay: Duration::from_millis(10), loss: 0.02, ..Link::default() };
    let Some(bed) = Bed::new("captured", rough) else { return };
    let log = bed.folder.join("flows.jsonl");
    let logged = format!("[log]\nflows = \"{}\"\n", log.display());
    let near = bed.gateway(NEAR, &logged);
    let _far = bed.gateway(FAR, "");
    let request = Request {
        server: format!("{}", server()).parse().expect("an end"),
        pcap: true,
        qlog: true,
        ..Request::default()
    };
    let written = during(&bed, &request, || {
        // Another connection at the same time is not captured.
        many(&bed, SocketAddr::new(server().ip(), PORT + 1), 2, 10_000);
        let serves = echo(listen(&bed, server()), 1);
        bed.spaces[CLIENT].within(|| exchange(server(), 1, 400_000)).expect("enters");
        serves.join().expect("serves");
        wait_until_idle(&near);
        // A second capture at the same time is refused.
        let refused =
            capture::run(&bed.folder, "near", &request, || true, Some(Vec::new()), Some(Vec::new()));
        let e = refused.expect_err("one at a time").to_string();
        assert!(e.contains("another capture is under way"), "{e}");
    });
    assert_eq!(written.summary.ended, "stopped");
    let (all, dropped) = packets(&written.pcap);
    assert_eq!((all.len() as u64, dropped), (written.summary.packets, written.summary.dropped));
    let mut ends = BTreeSet::new();
    for (total, data) in &all {
        let headers = 20 + usize::from(data[32] >> 4) * 4;
        assert_eq!(data.len(), headers, "headers alone");
        assert!(*total as usize >= headers);
        let port = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
        ends.insert([port(20), port(22)].into_iter().find(|p| *p == PORT).expect("of this server"));
    }
    // The events agree with the gateway's own counters of the connection.
    let line = lines(&log, 3).into_iter().find(|l| l["server"] == server().to_string()).expect("is logged");
    assert_eq!(written.summary.dropped, 0, "nothing was lost");
    let of = |key: &str| line["link"][key].as_u64().unwrap_or_else(|| panic!("{key} in {line}"));
    let kind = |name: &'static str| move |d: &Value| d["header"]["packet_type"] == name;
    assert_eq!(written.count("packet_sent", kind("data")), of("segments"));
    assert_eq!(written.count("packet_sent", |d| d["is_retransmission"] == true), of("retransmitted"));
    assert_eq!(written.count("loss_timer_updated", |_| true), of("timeouts"));
    assert_eq!(written.count("congestion_state_updated", |d| d["new"] == "recovery"), of("recoveries"));
    assert!(of("retransmitted") > 0, "the link loses packets: {line}");
    for name in ["connection_started", "connection_state_updated", "connection_closed"] {
        assert_eq!(written.count(name, |_| true), 1, "{name}");
    }
    let payload = |e: &Value| e["data"]["raw"]["payload_length"].as_u64().unwrap_or(0);
    let sent: u64 = written.qlog.iter().filter(|e| e["name"] == "tcp:packet_sent").map(payload).sum();
    assert!(sent >= 400_000, "{sent}");
    // Every segment of the log is in the capture as well. Segments that arrive in TIME-WAIT are in the capture alone.
    let segments = written.count("packet_sent", |_| true) + written.count("packet_received", |_| true);
    assert!((segments..segments + 10).contains(&(all.len() as u64)), "{segments} of {}", all.len());
    let header = &written.qlog[0]["trace"];
    assert!(header["event_schemas"][0].as_str().is_some_and(|s| s.starts_with("urn:skyhaul:")), "{header}");
    tshark(&bed.folder.join("flow.pcapng"), &written.pcap, all.len());
}

/// Wireshark's own reader finds the same packets, if it is installed.
fn tshark(path: &PathBuf, pcap: &[u8], packets: usize) {
    std::fs::write(path, pcap).expect("writes");
    let read = Command::new("tshark").arg("-r").arg(path).args(["-T", "fields", "-e", "tcp.stream"]).output();
    let Ok(read) = read else { return need::skip("tshark", "it is not installed") };
    let said = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(said.lines().filter(|l| l.trim() == "0").count(), packets, "one stream");
}

pub(crate) fn a_flow_that_is_open_is_captured_by_its_number() {
    let Some(bed) = Bed::new("number", calm()) else { return };
    let (near, _far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    let serves = echo(listen(&bed, server()), 2);
    let connect = || TcpStream::connect(server()).expect("connects");
    let mut both = bed.spaces[CLIENT].within(|| [connect(), connect()]).expect("enters");
    for s in &mut both {
        s.write_all(b"before").expect("writes");
    }
    while near.count("flows") < 2 {}
    let status: Value = serde_json::from_str(&near.ask("list")).expect("JSON");
    let list = status["list"].as_array().expect("a list");
    let second = both[1].local_addr().expect("an address").to_string();
    let chosen = list.iter().find(|f| f["client"] == second).expect("is listed");
    let request = |flow| Request {
        flow,
        pcap: true,
        qlog: true,
        payload: true,
        bytes: Some(200_000),
        ..Request::default()
    };
    let secret = bytes(3, 300_000);
    let finish = |s: &mut TcpStream| {
        s.write_all(&secret).expect("writes");
        s.shutdown(Shutdown::Write).expect("half-closes");
        s.read_to_end(&mut Vec::new()).expect("reads");
    };
    let written = during(&bed, &request(chosen["number"].as_u64()), || {
        both[0].write_all(&secret[..10_000]).expect("writes");
        finish(&mut both[1]);
    });
    assert_eq!(written.summary.ended, "limit");
    assert!((200_000..204_000).contains(&written.summary.bytes), "{:?}", written.summary);
    let (all, _) = packets(&written.pcap);
    let port = both[1].local_addr().expect("an address").port().to_be_bytes();
    assert!(
        all.iter().all(|(total, d)| *total as usize == d.len() && (d[20..22] == port || d[22..24] == port))
    );
    // The payload is there, as it was asked for.
    assert!(all.iter().any(|(_, d)| d.windows(64).any(|w| w == &secret[1000..1064] || w == &secret[..64])));
    let group = chosen["number"].to_string();
    assert!(written.qlog.iter().skip(1).all(|e| e["group_id"].as_str() == Some(group.as_str())));
    // The other one is captured until it ends, and the summary names this as the cause.
    let first = both[0].local_addr().expect("an address").to_string();
    let other = list.iter().find(|f| f["client"] == first).expect("is listed");
    let ended = std::thread::scope(|s| {
        let request = Request { bytes: None, payload: false, ..request(other["number"].as_u64()) };
        let folder = &bed.folder;
        let capture = s.spawn(move || {
            capture::run(folder, "near", &request, || false, Some(Vec::new()), Some(Vec::new()))
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        finish(&mut both[0]);
        capture.join().expect("captures").expect("captures")
    });
    assert_eq!(ended.ended, "flow-ended");
    assert!(ended.packets > 100 && ended.events > 100, "{ended:?}");
    serves.join().expect("serves");
    let none =
        capture::run(&bed.folder, "near", &request(Some(77)), || true, Some(Vec::new()), Some(Vec::new()));
    assert!(none.expect_err("no such flow").to_string().contains("there is no connection 77"));
}

fn connections_are_logged() {
    let Some(bed) = Bed::new("logged", calm()) else { return };
    let log = bed.folder.join("log.jsonl");
    // A limit that every machine's descriptors suffice for: otherwise there is one more line.
    let logged = format!("[limits]\nflows = 100\n[log]\nflows = \"{0}\"\nevents = \"{0}\"\n", log.display());
    let near = bed.gateway(NEAR, &logged);
    let far = bed.gateway(FAR, &format!("[log]\nflows = \"{}\"\n", bed.folder.join("far.jsonl").display()));
    many(&bed, server(), 4, 100_000);
    wait_until_idle(&near);
    let all = lines(&log, 5);
    let flows: Vec<_> = all.iter().filter(|l| l["event"] == "flow").collect();
    assert_eq!(flows.len(), 4);
    for l in &flows {
        assert_eq!(
            (&l["end"], &l["level"], &l["from"], &l["gateway"]),
            (&"finished".into(), &"info".into(), &"hosts".into(), &"near".into())
        );
        assert!(
            l["seconds"].as_f64().is_some_and(|s| s > 0.0)
                && l["link"]["srtt-ms"].as_f64().is_some_and(|t| t >= 10.0),
            "{l}"
        );
        assert_eq!((&l["link"]["control"], &l["link"]["gateway"]), (&"cubic".into(), &true.into()));
        // The line has the kernel's state of the other leg, too.
        assert!(l["hosts"]["srtt-ms"].as_f64().is_some_and(|t| t > 0.0), "{l}");
        assert!(l["time"].as_str().is_some_and(|t| t.ends_with('Z') && t.len() == 24), "{l}");
    }
    let sum = |key: &str| flows.iter().map(|l| l["bytes"][key].as_u64().expect("a number")).sum::<u64>();
    assert_eq!(sum("to-link"), near.count("bytes-to-link"));
    assert_eq!(sum("to-hosts"), near.count("bytes-to-hosts"));
    // Both gateways log the cause of a refusal, and count it once.
    let refused =
        bed.spaces[CLIENT].within(|| TcpStream::connect(server()).and_then(|mut s| s.read(&mut [0; 1])));
    refused.expect("enters").expect_err("nobody listens");
    let last = lines(&log, 6).pop().expect("a line");
    assert_eq!((&last["end"], &last["level"]), (&"link-refused".into(), &"warning".into()), "{last}");
    wait_until_idle(&far);
    let there = lines(&bed.folder.join("far.jsonl"), 5).pop().expect("a line");
    assert_eq!((&there["end"], &there["from"]), (&"hosts-refused".into(), &"link".into()), "{there}");
    assert_eq!((near.count("refused"), far.count("refused")), (1, 1));
    // Rotation: the old file keeps its lines, and a reload opens a new one. With a higher level, connections that ended well have no line.
    let old = bed.folder.join("log.1");
    std::fs::rename(&log, &old).expect("renames");
    let file = bed.folder.join("near.toml");
    let text = std::fs::read_to_string(&file).expect("is there");
    std::fs::write(&file, text.clone() + "level = \"warning\"\n").expect("writes");
    assert_eq!(near.ask("reload"), "reloaded\n");
    many(&bed, server(), 2, 1000);
    wait_until_idle(&near);
    // A reload with a log that cannot be opened changes nothing.
    std::fs::write(&file, text.replace("log.jsonl", "none/log.jsonl")).expect("writes");
    let said = near.ask("reload");
    assert!(said.contains("as log.flows says") && said.lines().count() == 1, "{said}");
    let new = lines(&log, 1);
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!((&new[0]["event"], &new[0]["level"]), (&"reload-refused".into(), &"error".into()));
    assert_eq!(log_lines(&old).len(), 6);
    near.stop();
}

/// The capabilities that the unit of systemd grants, as setpriv writes them.
fn granted() -> String {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/skyhaul-gateway@.service");
    let unit = std::fs::read_to_string(unit).expect("is there");
    let line = |key: &str| {
        let found = unit.lines().find_map(|l| l.strip_prefix(key)).expect("is in the unit");
        found
            .split_whitespace()
            .map(|c| format!("+{}", c.trim_start_matches("CAP_").to_lowercase()))
            .collect::<Vec<_>>()
    };
    let (bounding, ambient) = (line("CapabilityBoundingSet="), line("AmbientCapabilities="));
    assert_eq!(bounding, ambient);
    assert!(unit.contains("NoNewPrivileges=yes"));
    format!("-all,{}", bounding.join(","))
}

fn the_capabilities_of_the_unit_suffice() {
    let Some(bed) = Bed::new("capabilities", calm()) else { return };
    if !need::program("setpriv") {
        return;
    }
    let granted = granted();
    let starter = [
        "setpriv",
        "--bounding-set",
        &granted,
        "--inh-caps",
        &granted,
        "--ambient-caps",
        &granted,
        "--no-new-privs",
    ];
    let gateways: Vec<_> = [NEAR, FAR]
        .into_iter()
        .map(|at| {
            let text = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"50 Mbit/s\"\n";
            bed.gateway_by(&starter, at, text)
        })
        .collect();
    let has = std::fs::read_to_string(format!("/proc/{}/status", gateways[0].child.id())).expect("runs");
    let mask = |key: &str| {
        let line = has.lines().find_map(|l| l.strip_prefix(key)).expect("is told");
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).expect("a number")
    };
    // CAP_NET_BIND_SERVICE (10) and CAP_NET_ADMIN (12), even if root runs it.
    assert_eq!((mask("CapEff"), mask("CapBnd")), (1 << 10 | 1 << 12, 1 << 10 | 1 << 12));
    many(&bed, server(), 6, 100_000);
    let v6 = SocketAddr::new("fd02::2".parse().expect("an address"), PORT);
    many(&bed, v6, 3, 10_000);
    // From a port below 1024, which the far gateway has to use as well.
    let serves = echo(listen(&bed, server()), 1);
    let low = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([10, 1, 0, 2], 700)).into())?;
        socket.connect(&server().into())?;
        let mut s = TcpStream::from(socket);
        s.write_all(b"low")?;
        s.shutdown(Shutdown::Write)?;
        let mut back = Vec::new();
        s.read_to_end(&mut back)?;
        Ok::<_, std::io::Error>(back)
    };
    let back = bed.spaces[CLIENT].within(low).expect("enters").expect("works");
    assert_eq!(&back[32..], b"low");
    serves.join().expect("serves");
    let [near, far] = <[Running; 2]>::try_from(gateways).ok().expect("two");
    assert_eq!((near.count("from-hosts"), far.count("from-link"), far.count("refused")), (10, 10, 0));
    let file = bed.folder.join("near.toml");
    let text = std::fs::read_to_string(&file).expect("is there");
    std::fs::write(&file, text + "[split]\nexclude-ports = [22]\n").expect("writes");
    assert_eq!(near.ask("reload"), "reloaded\n");
    // One is stopped, one is killed: neither leaves anything behind.
    let before = bed.traces(CLIENT);
    near.stop();
    far.kill();
    for at in [NEAR, FAR] {
        swept(&bed, at);
        assert_eq!(bed.traces(at), before);
    }
}

/// Waits until no rules of a gateway are left in a router.
fn swept(bed: &Bed, at: usize) {
    for _ in 0..500 {
        if !bed.traces(at).contains("skyhaul") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("rules are left: {}", bed.traces(at));
}

const KEYS: [&str; 2] = ["net/ipv4/tcp_early_demux", "net/ipv4/tcp_reflect_tos"];

fn settings(bed: &Bed, at: usize) -> Vec<String> {
    let read = || {
        KEYS.map(|k| std::fs::read_to_string(format!("/proc/sys/{k}")).unwrap_or_default().trim().to_owned())
    };
    bed.spaces[at].within(read).expect("enters").into()
}
fn routing(bed: &Bed, at: usize) -> String {
    let list = || {
        let out = Command::new("sh")
            .args(["-c", "ip rule; ip -6 rule; ip route show table all | grep 2132"])
            .output();
        String::from_utf8_lossy(&out.expect("runs").stdout).into_owned()
    };
    bed.spaces[at].within(list).expect("enters")
}

fn settings_come_back_after_a_kill_with_block() {
    let Some(bed) = Bed::new("restore", calm()) else { return };
    // The values are those of an operator: the opposite of what the gateway needs.
    for (key, value) in KEYS.iter().zip(["1", "0"]) {
        bed.spaces[NEAR].sysctl(key, value).expect("sets");
    }
    let before = (settings(&bed, NEAR), routing(&bed, NEAR), bed.traces(NEAR));
    let now = || (settings(&bed, NEAR), routing(&bed, NEAR), bed.traces(NEAR));
    let block = || bed.gateway_of(NEAR, "", "", "on-failure = \"block\"\n");
    let clean =
        |keep| bed.spaces[NEAR].within(|| leftover::clean(&bed.folder, "near", keep)).expect("enters");
    let gateway = block();
    // While it runs, nothing is removed.
    let e = clean(false).expect_err("runs").to_string();
    assert!(e.contains("runs already (process "), "{e}");
    gateway.kill();
    assert_eq!(settings(&bed, NEAR), ["0", "1"], "changed for the gateway");
    assert!(now().1.contains("blackhole") && now().2.contains("skyhaul_near"));
    // A service manager cleans up after a failure with `keep_block`: connections stay blocked.
    assert_eq!(clean(true).expect("may"), CleanupResult::Kept);
    assert!(now().2.contains("skyhaul_near"));
    assert_eq!(clean(false).expect("may"), CleanupResult::All);
    assert_eq!(now(), before);
    assert_eq!(clean(false).expect("may"), CleanupResult::Nothing);
    // Killed, started again and stopped: the settings are those from before the first start.
    block().kill();
    let gateway = block();
    many(&bed, server(), 1, 1000);
    gateway.stop();
    assert_eq!(now(), before);
    // In another namespace the file does not count: the settings there are its own.
    block().kill();
    let elsewhere = bed.spaces[FAR].within(|| leftover::clean(&bed.folder, "near", false)).expect("enters");
    assert_eq!(elsewhere.expect("may"), CleanupResult::Nothing);
    assert_eq!(clean(false).expect("may"), CleanupResult::All);
    assert_eq!(now(), before);
    // A gateway that ends in order leaves nothing but its configuration file.
    block().stop();
    let left = std::fs::read_dir(&bed.folder).expect("is there").map(|f| f.expect("an entry").file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["near.toml"]);
}

/// A step of the time of day has no effect. The time of day is read only for files that people read, and to compare stamps of the kernel with it;
/// everything else reads the monotonic clock.
fn the_time_of_day_is_for_people_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut asks = BTreeSet::new();
    let mut folders: Vec<_> = ["base", "cc", "gateway", "net", "relay", "tcp", "wire"]
        .iter()
        .map(|c| crates.join(c).join("src"))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("reads");
            if ["wall_nanos", "SystemTime", "CLOCK_REALTIME", "UNIX_EPOCH"].iter().any(|w| text.contains(w)) {
                let path = path.strip_prefix(&crates).expect("below it").display().to_string();
                asks.insert(path);
            }
        }
    }
    let expected = [
        // Times in capture files and logs.
        "gateway/src/capture.rs",
        "gateway/src/log.rs",
        // The kernel stamps arriving packets with the time of day; a stamp that a step of the clock made useless is replaced.
        "gateway/src/stamp.rs",
        "net/src/device/clock.rs",
        "net/src/emulator/capture.rs",
        "net/src/host/driver.rs",
    ];
    assert_eq!(asks.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// The keeper of a gateway that was killed does not remove the rules of one that starts at that moment.
fn the_keeper_leaves_a_new_gateway_alone() {
    let Some(bed) = Bed::new("keeper", calm()) else { return };
    let before = (settings(&bed, NEAR), bed.traces(NEAR));
    for _ in 0..5 {
        bed.gateway(NEAR, "").kill();
    }
    let last = bed.gateway(NEAR, "");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(bed.traces(NEAR).contains("skyhaul_near"), "its rules are there");
    many(&bed, server(), 1, 1000);
    assert_eq!(last.count("from-hosts"), 1, "and work");
    last.stop();
    assert_eq!((settings(&bed, NEAR), bed.traces(NEAR)), before);
}
