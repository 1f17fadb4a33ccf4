//! The emulator between two namespaces: real kernels cross the links of a scenario.
#![cfg(target_os = "linux")]

mod common;
mod kernel_side;

use common::hash_of;
use kernel_side::{kernel_party, space};
use skyhaul_base::Duration;
use skyhaul_net::emulator::{Emulation, End, Options, Report, addresses};
use skyhaul_net::tun::TunConfig;
use skyhaul_net::{Namespace, NetError};
use skyhaul_path::DropReason;
use skyhaul_scenario::Document;
use skyhaul_testkit::{need, tshark};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

struct Path {
    client: Namespace,
    server: Namespace,
    emulation: Emulation,
}

/// A path with these links, `None` where the kernel grants no namespaces.
fn path(links: &str, options: &Options) -> Option<Path> {
    let (client, server) = (space()?, space()?);
    let text = format!("duration = \"60 s\"\n{links}\n[flows.bulk]\npath = [\"sat\"]\n");
    let scenario = Document::parse("test.toml", &text, &skyhaul_scenario::no_files).unwrap();
    let scenario = scenario.resolve().unwrap_or_else(|e| panic!("{e}"));
    let end = |ns: &Namespace, is_client| {
        let config = TunConfig { name: None, addresses: addresses(is_client), mtu: 1500, offload: false };
        End::open(ns, &config).expect("a device")
    };
    let ends = [end(&client, true), end(&server, false)];
    let emulation = Emulation::start(&scenario, &scenario.flows[0], ends, options).expect("starts");
    Some(Path { client, server, emulation })
}

fn forward(r: &Report) -> &skyhaul_path::Counters {
    &r.lanes[0].links[0].counters
}

#[test]
fn a_ping_takes_the_time_of_both_links() {
    if !need::program("ping") {
        return;
    }
    let links = "[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"60 ms\"\nreverse = { delay = \"40 ms\" }";
    let Some(p) = path(links, &Options::default()) else { return };
    for to in ["10.83.0.2", "fd00:5348::2"] {
        let ping = || Command::new("ping").args(["-c", "3", "-i", "0.2", "-q", to]).output().unwrap();
        let out = p.client.within(ping).unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.contains("3 received"), "{to}: {text}");
        // rtt min/avg/max/mdev = 100.2/...
        let min =
            text.rsplit("= ").next().and_then(|t| t.split('/').next()).and_then(|t| t.parse::<f64>().ok());
        assert!(min.is_some_and(|ms| ms >= 100.0), "{text}");
    }
    let r = p.emulation.finish().unwrap();
    assert_eq!(forward(&r).total().lost(), 0);
    assert!(r.lanes.iter().all(|l| l.releases >= 6));
}

/// Sends datagrams with this type of service; returns the numbers of those that arrived.
fn datagrams(
    p: &Path,
    count: u32,
    size: usize,
    tos: impl Fn(u32) -> u32,
    gap: std::time::Duration,
) -> Vec<u32> {
    let server = p.server.within(|| UdpSocket::bind("10.83.0.2:9000").unwrap()).unwrap();
    server.set_read_timeout(Some(std::time::Duration::from_millis(1500))).unwrap();
    let client = p.client.within(|| UdpSocket::bind("10.83.0.1:0").unwrap()).unwrap();
    let receiving = std::thread::spawn(move || {
        let (mut got, mut buf) = (Vec::new(), [0; 2000]);
        while let Ok(n) = server.recv(&mut buf) {
            assert_eq!(n, size);
            got.push(u32::from_be_bytes([buf[0], buf[1], buf[2], buf[3]]));
        }
        got
    });
    let mut data = vec![0; size];
    for n in 0..count {
        data[..4].copy_from_slice(&n.to_be_bytes());
        nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::Ipv4Tos, &(tos(n) as i32)).unwrap();
        client.send_to(&data, "10.83.0.2:9000").unwrap();
        std::thread::sleep(gap);
    }
    receiving.join().unwrap()
}

#[test]
fn exactly_the_listed_packets_are_lost_and_the_rest_arrives_in_order() {
    let links = "[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
                 error = { kind = \"list\", indices = [0, 3, 4, 50] }";
    let Some(p) = path(links, &Options::default()) else { return };
    let got = datagrams(&p, 100, 500, |_| 0, std::time::Duration::from_millis(1));
    let expected: Vec<u32> = (0..100).filter(|n| ![0, 3, 4, 50].contains(n)).collect();
    // Packets of the kernels for their own link, such as neighbour discovery, do not enter the model and are not counted.
    assert_eq!(got, expected);
    let r = p.emulation.finish().unwrap();
    assert_eq!(forward(&r).total().dropped(DropReason::Error), 4);
}

#[test]
fn low_priority_makes_room_first() {
    let links = "[links.sat]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n\
                 queue = { kind = \"strict-pushout\", limit = \"20 packets\" }";
    let Some(p) = path(links, &Options::default()) else { return };
    // Every other one of lower effort (RFC 8622), at twice the rate of the link.
    let got =
        datagrams(&p, 400, 500, |n| if n % 2 == 1 { 0x04 } else { 0 }, std::time::Duration::from_micros(900));
    let r = p.emulation.finish().unwrap();
    let c = forward(&r);
    assert_eq!(c.high().lost(), 0, "{c:?}");
    assert_eq!(got.iter().filter(|n| *n % 2 == 0).count(), 200);
    assert!(c.low().lost() > 0, "{c:?}");
}

#[test]
fn links_change_at_their_time() {
    let links = "[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
                 [[event]]\nat = \"1 s\"\nset = { links.sat.up = false }\n\
                 [[event]]\nat = \"1.5 s\"\nset = { links.sat.up = true, links.sat.error = { kind = \"per\", p = 1.0 } }";
    let Some(p) = path(links, &Options::default()) else { return };
    let got = datagrams(&p, 200, 200, |_| 0, std::time::Duration::from_millis(10));
    let r = p.emulation.finish().unwrap();
    let c = forward(&r).total();
    // Packets that waited while the link was down are lost by the channel that is up again.
    assert!(!got.is_empty() && c.dropped(DropReason::Error) > 10, "{got:?} {c:?}");
    assert_eq!(got.len() as u64 + c.lost(), 200);
    assert!(got.windows(2).all(|w| w[1] == w[0] + 1), "in order and without holes until it went down");
}

#[test]
fn a_kernel_transfer_over_geo_is_whole_and_captured_with_the_causes_of_its_losses() {
    let links = "[links.sat]\nrate = \"20 Mbit/s\"\ndelay = \"100 ms\"\nqueue = \"200 packets\"\n\
                 error = { kind = \"per\", p = 0.002 }";
    let dir = std::env::temp_dir().join(format!("skyhaul-emulation-{}", std::process::id()));
    let options = Options { capture: Some(dir.clone()), ..Options::default() };
    let Some(p) = path(links, &options) else { return };
    let bytes = 5_000_000;
    let listener = p.server.within(|| TcpListener::bind("10.83.0.2:0").unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let receiving = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, 0));
    let s = p.client.within(|| TcpStream::connect(to).unwrap()).unwrap();
    assert_eq!(kernel_party(s, bytes).0, 0);
    assert_eq!(receiving.join().unwrap(), (bytes, hash_of(bytes)));
    let r = p.emulation.finish().unwrap();
    let c = forward(&r).total();
    assert!(c.dropped(DropReason::Error) > 0, "{c:?}");
    if need::program("tshark") {
        let count = |filter: &str| tshark::count(&dir.join("forward.pcapng"), filter);
        assert_eq!(count("frame.interface_id == 0"), c.offered);
        assert_eq!(count("frame.interface_id == 1"), c.delivered);
        assert_eq!(
            count("frame.comment contains \"lost on sat.forward: error\""),
            c.dropped(DropReason::Error)
        );
        assert_eq!(count(tshark::INVALID), 0);
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// How many packets of each interface (before and behind the links) a capture shows with each value of the ECN field (RFC 3168
/// §5). Blocks of packets have type 6; the interface, the length and the packet itself stand at bytes 8, 20 and 28.
fn ecn_fields(file: &std::path::Path) -> [[u32; 4]; 2] {
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut counts, mut at) = ([[0; 4]; 2], 0);
    while at < bytes.len() {
        if word(at) == 6 {
            let packet = &bytes[at + 28..at + 28 + word(at + 20) as usize];
            let ecn = skyhaul_wire::Packet::parse(packet).expect("a packet with the right checksums").ip.ecn;
            counts[word(at + 8) as usize][usize::from(ecn)] += 1;
        }
        at += word(at + 4) as usize;
    }
    counts
}

#[test]
fn a_kernel_learns_of_marks_and_captures_show_them_behind_the_link_only() {
    let links = "[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
                 queue = { kind = \"codel\", limit = \"2000 packets\", target = \"2 ms\", interval = \"40 ms\" }";
    let dir = std::env::temp_dir().join(format!("skyhaul-marks-{}", std::process::id()));
    let options = Options { capture: Some(dir.clone()), ..Options::default() };
    let Some(p) = path(links, &options) else { return };
    for ns in [&p.client, &p.server] {
        ns.sysctl("net/ipv4/tcp_ecn", "1").unwrap();
    }
    let bytes = 3_000_000;
    let listener = p.server.within(|| TcpListener::bind("10.83.0.2:0").unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let receiving = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, 0));
    let s = p.client.within(|| TcpStream::connect(to).unwrap()).unwrap();
    assert_eq!(kernel_party(s, bytes).0, 0);
    assert_eq!(receiving.join().unwrap(), (bytes, hash_of(bytes)));
    let r = p.emulation.finish().unwrap();
    let c = forward(&r).total();
    assert!(c.marked > 3 && c.lost() == 0, "{c:?}");
    let [before, behind] = ecn_fields(&dir.join("forward.pcapng"));
    // ECT(0) goes in; what was marked is the only thing that comes out with another field.
    assert_eq!((before[3], u64::from(behind[3])), (0, c.marked));
    assert_eq!((before[0], before[1], before[2]), (behind[0], behind[1], behind[2] + behind[3]));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_run_in_which_nothing_crosses_is_not_trusted() {
    let Some(p) = path("[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"", &Options::default()) else {
        return;
    };
    let r = p.emulation.finish().unwrap();
    // On a busy machine the kernel may have dropped packets of its own meanwhile, which is another doubt.
    let nothing = "no packet entered the links in either direction, so nothing was measured";
    assert!(r.doubts().iter().any(|doubt| doubt == nothing), "{:?}", r.doubts());
}

#[test]
fn a_device_that_goes_away_ends_the_emulation_with_an_error() {
    if !need::program("ip") {
        return;
    }
    let Some(p) = path("[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"", &Options::default()) else {
        return;
    };
    let name = p.emulation.ends()[1].device.name().to_owned();
    p.server.within(|| Command::new("ip").args(["link", "del", &name]).status().unwrap()).unwrap();
    while !p.emulation.has_ended() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(matches!(p.emulation.finish(), Err(NetError::DeviceGone(n)) if n == name));
}

#[test]
fn names_that_are_taken_and_namespaces_that_are_not_there_are_refused() {
    let Some(ns) = space() else { return };
    let config =
        TunConfig { name: Some("sky7".into()), addresses: addresses(true), mtu: 1500, offload: false };
    let first = End::open(&ns, &config).unwrap();
    let e = End::open(&ns, &config).unwrap_err().to_string();
    assert_eq!(e, "interface \"sky7\" exists already: choose another name");
    drop(first);
    // It vanished with its last user.
    End::open(&ns, &config).unwrap();
    let e = Namespace::find("no-such-namespace").unwrap_err().to_string();
    assert!(e.contains("there is no network namespace \"no-such-namespace\""), "{e}");
    assert!(Namespace::find("4000000").is_err());
    assert!(Namespace::find(&std::process::id().to_string()).is_ok());
    let late = NetError::TooLate { by: Duration::from_millis(3), limit: Duration::from_millis(1) };
    assert!(late.to_string().starts_with("a packet left 3.000 ms late"));
}
