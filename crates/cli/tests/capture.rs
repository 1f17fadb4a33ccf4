//! `run --pcap`: the file against the run that made it, read by independent parsers.

use pcap_file::pcapng::{Block, PcapNgReader, blocks::enhanced_packet::EnhancedPacketOption};
use skyhaul_testkit::{need, tshark};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(args).current_dir(folder).output().expect("the program starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Runs TCP-Peach's path with these changes and captures; returns what the run measured.
fn captured(folder: &Path, more: &[&str]) -> serde_json::Value {
    let common = [
        "run",
        "preset:peach-geo",
        "--json",
        "--digest",
        "--pcap",
        "t.pcapng",
        "--set",
        "duration='40 s'",
        "--set",
        "links.sat.error.p=3e-3",
    ];
    let out = run(folder, &[&common[..], more].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// A packet of the file.
struct Record {
    interface: String,
    /// Bytes of payload.
    len: u32,
    forward: bool,
    /// Port of the sender.
    port: u16,
    dscp: u8,
    comment: String,
}

/// All packets; checks order and checksums on the way.
fn records(path: &Path) -> Vec<Record> {
    let mut file = PcapNgReader::new(File::open(path).expect("a file")).expect("a section");
    let (mut names, mut last, mut records) = (Vec::new(), None, Vec::new());
    while let Some(block) = file.next_block() {
        match block.expect("a whole block") {
            Block::InterfaceDescription(i) => {
                use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption as O;
                let name = i.options.iter().find_map(|o| match o {
                    O::IfName(n) => Some(n.to_string()),
                    _ => None,
                });
                assert!(i.options.contains(&O::IfTsResol(9)), "nanoseconds");
                names.push(name.expect("a name"));
            }
            Block::EnhancedPacket(p) => {
                assert!(last.is_none_or(|l| l <= p.timestamp), "in the order of time");
                last = Some(p.timestamp);
                // The bytes that were left out are zeros.
                let mut bytes = p.data.to_vec();
                bytes.resize(p.original_len as usize, 0);
                let packet = etherparse::SlicedPacket::from_ip(&bytes).expect("well-formed");
                let Some(etherparse::NetSlice::Ipv4(ip)) = packet.net else { panic!("IPv4") };
                let head = ip.header();
                assert_eq!(head.to_header().calc_header_checksum(), head.header_checksum());
                let (len, ports, sums) = match packet.transport {
                    Some(etherparse::TransportSlice::Tcp(tcp)) => {
                        let sum = tcp.calc_checksum_ipv4(head.source(), head.destination()).expect("short");
                        (
                            tcp.payload().len(),
                            [tcp.source_port(), tcp.destination_port()],
                            (sum, tcp.checksum()),
                        )
                    }
                    Some(etherparse::TransportSlice::Udp(udp)) => {
                        let (header, payload) = (udp.to_header(), udp.payload());
                        let (src, dst) = (head.source(), head.destination());
                        let sum = header.calc_checksum_ipv4_raw(src, dst, payload).expect("short");
                        (payload.len(), [udp.source_port(), udp.destination_port()], (sum, udp.checksum()))
                    }
                    _ => panic!("TCP or UDP"),
                };
                assert_eq!(sums.0, sums.1);
                let comment = p.options.iter().find_map(|o| match o {
                    EnhancedPacketOption::Comment(c) => Some(c.to_string()),
                    _ => None,
                });
                records.push(Record {
                    interface: names[p.interface_id as usize].clone(),
                    len: len as u32,
                    forward: ports[1] == 5001,
                    port: if ports[1] == 5001 { ports[0] } else { ports[1] },
                    dscp: head.dcp().value(),
                    comment: comment.unwrap_or_default(),
                });
            }
            _ => {}
        }
    }
    records
}

fn sum(run: &serde_json::Value, key: &str) -> u64 {
    run["flows"].as_array().expect("flows").iter().map(|f| f[key].as_u64().expect("a count")).sum()
}

#[test]
fn the_senders_view_counts_as_the_run_does() {
    let folder = folder("capture-sender");
    for cc in ["newreno", "peach"] {
        let set = format!("flows.bulk.cc={cc}");
        let run = captured(&folder, &["--set", &set, "--set", "flows.bulk.count=3"]);
        let plain = [
            "run",
            "preset:peach-geo",
            "--json",
            "--digest",
            "--set",
            "duration='40 s'",
            "--set",
            "links.sat.error.p=3e-3",
            "--set",
            &set,
            "--set",
            "flows.bulk.count=3",
        ];
        let plain = self::run(&folder, &plain);
        let plain: serde_json::Value = serde_json::from_slice(&plain.stdout).expect("JSON");
        assert_eq!(run["digest"], plain["digest"], "a capture changes nothing");

        let records = records(&folder.join("t.pcapng"));
        let data = records.iter().filter(|r| r.forward && r.len > 0 && r.dscp == 0).count() as u64;
        let probes = records.iter().filter(|r| r.forward && r.dscp == 1).count() as u64;
        assert_eq!((data, probes), (sum(&run, "segments_sent"), sum(&run, "probes_sent")), "{cc}");
        assert_eq!(probes > 0, cc == "peach");
        // Every loss in the forward direction is a comment at the packet that was lost.
        let link = &run["links"][0];
        for cause in ["error", "full", "pushed-out", "link-down"] {
            let lost: u64 = ["data", "probe", "ack"]
                .iter()
                .map(|c| link[format!("{c}_dropped_{}", cause.replace('-', "_"))].as_u64().expect("a count"))
                .sum();
            let words = format!("lost on links.sat.forward: {cause} ");
            let noted = records.iter().filter(|r| r.forward && r.comment.starts_with(&words)).count() as u64;
            assert_eq!(noted, lost, "{cc}: {cause}");
            assert!(cause != "error" || lost > 0, "the test needs losses");
        }
    }
}

#[test]
fn a_link_shows_what_goes_in_and_what_comes_out() {
    let folder = folder("capture-link");
    let run = captured(
        &folder,
        &["--set", "flows.bulk.count=2", "--pcap-at", "links.sat", "--pcap-at", "receiver"],
    );
    let records = records(&folder.join("t.pcapng"));
    let at = |name: &str| records.iter().filter(|r| r.interface == name).count() as u64;
    for (i, direction) in ["forward", "reverse"].iter().enumerate() {
        let link = &run["links"][i];
        let count = |key: &str| -> u64 {
            ["data", "probe", "ack"]
                .iter()
                .map(|c| link[format!("{c}_{key}")].as_u64().expect("a count"))
                .sum()
        };
        assert_eq!(at(&format!("links.sat.{direction}.in")), count("offered"));
        assert_eq!(at(&format!("links.sat.{direction}.out")), count("delivered"));
    }
    assert!(at("flows.bulk[0].receiver") > 0 && at("flows.bulk[0].sender") == 0);
    let one = captured(&folder, &["--pcap-flow", "bulk[1]", "--set", "flows.bulk.count=2"]);
    let records = self::records(&folder.join("t.pcapng"));
    assert!(records.iter().all(|r| r.interface == "flows.bulk[1].sender"));
    let sent = one["flows"][1]["segments_sent"].as_u64().expect("a count");
    let probes = one["flows"][1]["probes_sent"].as_u64().expect("a count");
    assert_eq!(records.iter().filter(|r| r.forward && r.len > 0).count() as u64, sent + probes);
}

#[test]
fn wireshark_finds_nothing_wrong_and_as_many_retransmissions() {
    if !need::program("tshark") {
        return;
    }
    let folder = folder("capture-tshark");
    let run = captured(
        &folder,
        &["--set", "flows.bulk.cc=newreno", "--set", "flows.bulk.count=1", "--pcap-snaplen", "65535"],
    );
    let count = |filter: &str| tshark::count(&folder.join("t.pcapng"), filter);
    assert_eq!(count("_ws.malformed or tcp.checksum.status != 1 or ip.checksum.status != 1"), 0);
    assert_eq!(
        count("tcp.analysis.retransmission or tcp.analysis.out_of_order"),
        sum(&run, "retransmissions")
    );
    assert!(sum(&run, "retransmissions") > 0);
}

/// Datagrams, and transfers that arrive at random.
const MIXED: &str = r#"
schema = 1
duration = "10 s"
[links.sat]
packet = "1000 B"
rate = "1 Mbit/s"
delay = "250 ms"
queue = "10 packets"
[flows.voice]
transport = "udp"
app = { kind = "cbr", rate = "1.2 Mbit/s" }
[flows.web]
app = { kind = "arrivals", rate = "1 /s", size = "3 kB" }
"#;

#[test]
fn datagrams_are_captured_as_such() {
    let folder = folder("capture-udp");
    fs::write(folder.join("mixed.toml"), MIXED).expect("written");
    let args = ["run", "mixed.toml", "--json", "--pcap", "t.pcapng", "--pcap-flow", "voice"];
    let out = run(&folder, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let result: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let voice = &result["flows"][0];
    let found = records(&folder.join("t.pcapng"));
    assert_eq!(found.len() as u64, voice["segments_sent"].as_u64().expect("a count"));
    assert!(found.iter().all(|r| r.forward && r.len == 972));
    let lost = found.iter().filter(|r| r.comment.starts_with("lost on links.sat.forward: full")).count();
    assert!(lost > 100);
    assert_eq!(lost as u64, voice["lost_full"].as_u64().expect("a count"));
}

/// Every transfer is a connection of its own, with ports of its own.
#[test]
fn transfers_that_arrive_at_random_are_whole_connections() {
    let folder = folder("capture-arrivals");
    let text = MIXED.replace("1.2 Mbit/s", "100 kbit/s").replace("rate = \"1 /s\"", "rate = \"5 /s\"");
    fs::write(folder.join("mixed.toml"), text).expect("written");
    let args = [
        "run",
        "mixed.toml",
        "--json",
        "--pcap",
        "t.pcapng",
        "--pcap-flow",
        "web",
        "--pcap-snaplen",
        "65535",
    ];
    let out = run(&folder, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let result: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let web = &result["flows"][1];
    let begun = web["transfers"].as_u64().expect("a count");
    assert!(begun > 30);
    // Payload by the sender's port; order and checksums are checked on the way.
    let mut connections: std::collections::BTreeMap<u16, u32> = std::collections::BTreeMap::new();
    for r in records(&folder.join("t.pcapng")) {
        let (bytes, forward) = (connections.entry(r.port).or_default(), r.forward);
        *bytes += if forward { r.len } else { 0 };
    }
    assert_eq!(connections.len() as u64, begun);
    let ports: Vec<u16> = connections.keys().copied().collect();
    assert!(ports.windows(2).all(|w| w[1] == w[0] + 1), "one after the other: {ports:?}");
    // A transfer is 3 kB, and more where something was sent again.
    let done = connections.values().filter(|b| **b >= 3000).count() as u64;
    assert!(done >= web["pages"].as_u64().expect("a count") && done > 20, "{done}");
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("tshark is not installed: connections were checked by our own reader only");
        return;
    }
    let count = |filter: &str| {
        let mut command = Command::new("tshark");
        command.args([
            "-r",
            "t.pcapng",
            "-o",
            "tcp.check_checksum:TRUE",
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "tcp.stream",
        ]);
        let out = command.current_dir(&folder).output().expect("tshark");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout)
            .lines()
            .map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
            .len() as u64
    };
    assert_eq!(count("tcp.flags.syn == 1 and tcp.flags.ack == 0"), begun);
    assert_eq!(count("tcp"), begun);
    assert_eq!(count("tcp.checksum.status == 0 or tcp.analysis.reused_ports"), 0);
}

#[test]
fn what_cannot_be_captured_is_refused_in_one_line() {
    let folder = folder("capture-refused");
    for (more, words) in [
        (&["--pcap-at", "links.moon"][..], "no such capture point"),
        (&["--pcap-flow", "bulk[99]"], "no such flow"),
        (&["--set", "flows.bulk.cc=sack,peach"], "captures one run"),
    ] {
        let args = [&["run", "preset:peach-geo", "--pcap", "t.pcapng"][..], more].concat();
        let out = run(&folder, &args);
        let line = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(words), "{line}");
    }
    let out = run(&folder, &["run", "preset:peach-geo", "--pcap", "nowhere/t.pcapng"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("does not exist"));
}

#[test]
fn only_captures_are_overwritten() {
    let here = folder("overwrite");
    captured(&here, &[]);
    let first = fs::metadata(here.join("t.pcapng")).expect("a file").len();
    captured(&here, &["--set", "flows.bulk.cc=sack"]);
    assert_ne!(fs::metadata(here.join("t.pcapng")).expect("a file").len(), first, "captured anew");
    fs::write(here.join("t.pcapng"), "the only copy of my thesis").expect("written");
    let args = ["run", "preset:peach-geo", "--set", "duration='2 s'", "--pcap", "t.pcapng"];
    let out = run(&here, &args);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        out.status.code() == Some(2) && stderr.contains("t.pcapng") && stderr.contains("--force"),
        "{stderr}"
    );
    assert_eq!(fs::read(here.join("t.pcapng")).expect("there"), b"the only copy of my thesis");
    assert!(run(&here, &[&args[..], &["--force"]].concat()).status.success());
    assert!(!records(&here.join("t.pcapng")).is_empty());
}
