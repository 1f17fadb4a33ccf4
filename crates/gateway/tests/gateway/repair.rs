//! Two gateways that repair datagrams over a link that loses them.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, Noise, Running, SERVER};
use crate::firewall::{rules, sh, waits_for};
use crate::tunnel::{Missing, THERE, Tunnel};
use crate::{PORT, calm, echo, exchange, listen, many, quic, server};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use nix::sys::socket::{getsockopt, sockopt};
use sha2::Sha256;
use skyhaul_base::{Duration, Rate};
use skyhaul_gateway::{Config, doctor};
use skyhaul_testkit::need;
use std::io::Write;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub(crate) const ALL: [(&str, fn()); 20] = [
    ("datagrams_arrive_in_spite_of_losses", datagrams_arrive_in_spite_of_losses),
    ("quic_is_faster_with_repair", quic_is_faster_with_repair),
    ("pings_in_fragments_are_repaired", pings_in_fragments_are_repaired),
    ("what_is_in_wireguard_is_repaired", what_is_in_wireguard_is_repaired),
    ("what_is_in_esp_is_repaired", what_is_in_esp_is_repaired),
    ("a_peer_that_is_killed_is_bypassed", a_peer_that_is_killed_is_bypassed),
    ("a_peer_of_another_version_is_bypassed", a_peer_of_another_version_is_bypassed),
    ("a_peer_that_is_overloaded_is_bypassed", a_peer_that_is_overloaded_is_bypassed),
    ("classes_are_those_of_the_datagrams", classes_are_those_of_the_datagrams),
    ("headers_are_compressed_on_the_wire", headers_are_compressed_on_the_wire),
    ("a_firewall_that_drops_datagrams_ends_repair", a_firewall_that_drops_datagrams_ends_repair),
    ("with_another_key_datagrams_are_forwarded", with_another_key_datagrams_are_forwarded),
    ("what_arrives_twice_or_from_strangers_does_nothing", what_arrives_twice_or_from_strangers_does_nothing),
    ("repaired_paths_have_a_smaller_mtu", repaired_paths_have_a_smaller_mtu),
    ("repaired_paths_over_ipv6_have_a_smaller_mtu", repaired_paths_over_ipv6_have_a_smaller_mtu),
    ("a_peer_behind_nat_is_followed", a_peer_behind_nat_is_followed),
    ("two_gateways_that_wait_say_so", two_gateways_that_wait_say_so),
    ("connections_that_are_not_split_are_repaired", connections_that_are_not_split_are_repaired),
    ("what_passes_is_not_repaired", what_passes_is_not_repaired),
    ("split_and_repaired_traffic_share_the_rate", split_and_repaired_traffic_share_the_rate),
];

/// The key of both gateways, unless a test gives one another.
pub(crate) const KEY: &str = "a key of a test that is long enough";

/// The file of a gateway, which lacks only the name; `more` is added to the section `[repair]`.
pub(crate) fn file(at: usize, key: &str, more: &str) -> String {
    let peer = if at == NEAR { "10.9.0.2" } else { "10.9.0.1" };
    format!(
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"10 Mbit/s\"\n[split]\nexclude-ports = [{}]\n[repair]\n\
         peer = \"{peer}\"\nkey = \"{key}\"\n{more}",
        PORT + 9
    )
}
pub(crate) fn start(bed: &Bed, at: usize) -> Running {
    bed.gateway_for(at, &file(at, KEY, ""))
}
/// Starts a gateway whose file says that the other one is there.
fn start_with(bed: &Bed, at: usize, peer: &str) -> Running {
    let usual = if at == NEAR { "10.9.0.2" } else { "10.9.0.1" };
    let file = file(at, KEY, "").replace(&format!("peer = \"{usual}\""), &format!("peer = \"{peer}\""));
    bed.gateway_for(at, &file)
}
pub(crate) fn repairs(gateway: &Running) -> bool {
    gateway.status()["repair"]["repairs"] == true
}
pub(crate) fn both(bed: &Bed) -> [Running; 2] {
    both_with(bed, "")
}
fn both_with(bed: &Bed, more: &str) -> [Running; 2] {
    let both = [NEAR, FAR].map(|at| bed.gateway_for(at, &file(at, KEY, more)));
    waits_for("both repair", || both.iter().all(repairs));
    both
}
pub(crate) fn total(gateway: &Running, key: &str) -> u64 {
    let status = gateway.status();
    status["repair"]["totals"][key].as_u64().unwrap_or_else(|| panic!("{key} in {status}"))
}
/// A link with losses, on which nothing waits long.
fn lossy(loss: f64) -> Link {
    let rate = Some((Rate::from_bits_per_sec(10_100_000), 200));
    Link { delay: Duration::from_millis(40), loss, rate, ..Link::default() }
}

/// Receives numbered datagrams at the server until told to stop.
pub(crate) struct Sink {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u32>>,
}

impl Sink {
    pub(crate) fn open(bed: &Bed, at: &str) -> Self {
        let socket = bed.spaces[SERVER].within(|| UdpSocket::bind(at).expect("binds")).expect("enters");
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
        socket.set_read_timeout(Some(std::time::Duration::from_millis(50))).expect("sets");
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            let (mut got, mut room) = (Vec::new(), [0; 2000]);
            while !until.load(Ordering::Relaxed) {
                while let Ok(n) = socket.recv(&mut room) {
                    let number: [u8; 4] = room[..n].first_chunk().copied().expect("a number");
                    got.push(u32::from_be_bytes(number));
                }
            }
            got
        });
        Self { over, thread }
    }
    /// The numbers that have arrived, in order of arrival, a while after the last datagram was sent.
    pub(crate) fn close(self) -> Vec<u32> {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("receives")
    }
}

/// Sends numbered datagrams of this size from the client, one every `gap`, as long as `more` says of the next number.
pub(crate) fn send(
    bed: &Bed,
    to: &str,
    size: usize,
    gap: std::time::Duration,
    mut more: impl FnMut(u32) -> bool,
) {
    let to: SocketAddr = to.parse().expect("an address");
    let any: IpAddr = if to.is_ipv6() { "::".parse().expect("one") } else { [0, 0, 0, 0].into() };
    let socket = bed.spaces[CLIENT].within(|| UdpSocket::bind((any, 0)).expect("binds")).expect("enters");
    let mut datagram = vec![7; size];
    for n in 0_u32.. {
        if !more(n) {
            return;
        }
        datagram[..4].copy_from_slice(&n.to_be_bytes());
        socket.send_to(&datagram, to).expect("sends");
        std::thread::sleep(gap);
    }
}
const SLOWLY: std::time::Duration = std::time::Duration::from_millis(2);

fn datagrams_arrive_in_spite_of_losses() {
    let Some(bed) = Bed::new("repaired", lossy(0.05)) else { return };
    let [near, far] = both(&bed);
    let number = 2000;
    for (at, to) in [("0.0.0.0:7001", "10.2.0.2:7001"), ("[::]:7002", "[fd02::2]:7002")] {
        let sink = Sink::open(&bed, at);
        // Split connections beside them are as before.
        std::thread::scope(|s| {
            s.spawn(|| many(&bed, server(), 4, 100_000));
            send(&bed, to, 1000, SLOWLY, |n| n < number);
        });
        let got = sink.close();
        assert!(got.len() as u32 >= number - number / 200, "{} of {number}", got.len());
        assert!(got.is_sorted_by(|a, b| a < b), "in order, none twice");
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (8, 8));
    assert!(total(&near, "sources") >= 2 * u64::from(number));
    assert!(total(&near, "repairs") > 0 && total(&far, "recovered") > 50, "{}", far.status());
    assert_eq!((total(&near, "sessions"), total(&far, "sessions")), (1, 1));
    let loss = near.status()["repair"]["loss"].as_f64().expect("a share");
    assert!((0.02..0.12).contains(&loss), "{loss}");
    // The metrics and the doctor say so.
    let metrics = near.ask("metrics");
    assert!(metrics.contains("skyhaul_gateway_repair_active{gateway=\"near\"} 1"), "{metrics}");
    let found = examined(&bed, NEAR, "repair of datagrams");
    assert!(found.is_ok() && found.message.contains("works with 10.9.0.2:21321"), "{found:?}");
    // Nothing is left behind.
    near.stop();
    sh(&bed, NEAR, "! ip rule | grep -i 0x5348 && ! ip -6 rule | grep -i 0x5348 && ! ip link show skr-near");
    assert!(!bed.traces(NEAR).contains("skyhaul"));
    far.stop();
}

fn examined(bed: &Bed, at: usize, part: &str) -> doctor::Finding {
    let name = if at == NEAR { "near" } else { "far" };
    let config = Config::read(&bed.folder.join(format!("{name}.toml"))).expect("is good");
    let all = bed.spaces[at].within(|| doctor::examine(&config, &bed.folder)).expect("enters");
    all.iter().find(|f| f.what.contains(part)).unwrap_or_else(|| panic!("{part}: {all:#?}")).clone()
}

/// A real QUIC, which no gateway can split.
fn quic_is_faster_with_repair() {
    let goodput = |repair: bool| {
        let link = Link { delay: Duration::from_millis(150), ..lossy(0.02) };
        let bed = Bed::new("quic", link)?;
        let gateways = repair.then(|| both(&bed));
        let bytes = quic::download(&bed, std::time::Duration::from_secs(8));
        if let Some([near, far]) = gateways {
            assert!(total(&far, "sources") > 0 && total(&near, "delivered") > 0);
        }
        Some(bytes as f64)
    };
    let (Some(without), Some(with)) = (goodput(false), goodput(true)) else { return };
    assert!(with > 2.0 * without, "{with} bytes with repair, {without} without");
}

/// ICMP has no ports, and later fragments have none either. Of pings of three fragments each way one in nine would lose one.
fn pings_in_fragments_are_repaired() {
    let Some(bed) = Bed::new("pings", lossy(0.02)) else { return };
    if !need::program("ping") {
        return;
    }
    let [near, far] = both(&bed);
    let before = [&near, &far].map(|g| total(g, "sources"));
    sh(
        &bed,
        CLIENT,
        "ping -q -c 60 -i 0.1 -s 3000 -W 2 10.2.0.2 | awk '/received/ { ok = $4 >= 59 } END { exit !ok }'",
    );
    for (n, gateway) in [&near, &far].into_iter().enumerate() {
        assert!(total(gateway, "sources") - before[n] >= 170, "{}", gateway.status());
    }
    assert!(total(&near, "recovered") + total(&far, "recovered") > 0, "{}", near.status());
}

/// TCP in a tunnel arrives whole, and the packets of the tunnel are repaired.
fn through(bed: &Bed, open: impl Fn(&Bed) -> Result<Tunnel<'_>, Missing>) {
    let [near, far] = both(bed);
    let _tunnel = match open(bed) {
        Ok(tunnel) => tunnel,
        // WireGuard is another tunnel over the same path.
        Err(Missing { need: "esp", why }) => return need::lacks("esp", why),
        Err(Missing { need, why }) => return need::skip(need, why),
    };
    let before = [&near, &far].map(|g| total(g, "sources"));
    let at = SocketAddr::from((THERE, PORT));
    let serves = echo(listen(bed, at), 1);
    bed.spaces[CLIENT].within(|| exchange(at, 1, 2_000_000)).expect("enters");
    serves.join().expect("serves");
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (0, 0), "nothing is split");
    for (n, gateway) in [&near, &far].into_iter().enumerate() {
        assert!(total(gateway, "sources") - before[n] > 2_000_000 / 1380, "{}", gateway.status());
        assert!(total(gateway, "recovered") > 0 && repairs(gateway), "{}", gateway.status());
    }
}
fn what_is_in_wireguard_is_repaired() {
    let Some(bed) = Bed::new("wireguard", lossy(0.01)) else { return };
    through(&bed, |bed| Tunnel::wireguard(bed));
}
fn what_is_in_esp_is_repaired() {
    let Some(bed) = Bed::new("esp", lossy(0.01)) else { return };
    through(&bed, |bed| Tunnel::esp(bed));
}

/// A hello of this version of the format, as docs/repair.md describes it.
fn hello(version: u8, key: &str) -> Vec<u8> {
    let mut secret = [0; 32];
    let keys = Hkdf::<Sha256>::new(Some(b"skyhaul repair"), key.as_bytes());
    keys.expand(b"hello", &mut secret).expect("is short");
    let mut hello = vec![version << 4 | 15];
    hello.extend([5; 16]);
    hello.extend([0; 16]);
    let code = Hmac::<Sha256>::new_from_slice(&secret).expect("any length").chain_update(&hello);
    hello.extend(&code.finalize().into_bytes()[..16]);
    hello
}

fn a_peer_of_another_version_is_bypassed() {
    let Some(bed) = Bed::new("version", calm()) else { return };
    let [near, far] = both(&bed);
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    let (mut far, mut older) = (Some(far), None);
    let gap = std::time::Duration::from_millis(5);
    send(&bed, "10.2.0.2:7001", 200, gap, |n| {
        if let Some(far) = far.take_if(|_| n == 100) {
            far.kill();
            let open = || UdpSocket::bind("10.9.0.2:21321").expect("binds");
            older = Some(bed.spaces[FAR].within(open).expect("enters"));
        }
        if let (Some(older), 0) = (&older, n % 50) {
            let _ = older.send_to(&hello(1, KEY), "10.9.0.1:21321");
        }
        n < 600
    });
    // 200 datagrams are a second.
    let got = sink.close();
    let lost: Vec<u32> = (0..600).filter(|n| !got.contains(n)).collect();
    assert!(!lost.is_empty() && lost.len() <= 200, "{} lost: {lost:?}", lost.len());
    assert!(!repairs(&near));
    let says = || {
        let older = older.as_ref().expect("was opened");
        let _ = older.send_to(&hello(1, KEY), "10.9.0.1:21321");
        let status = near.status();
        let why = status["repair"]["cause"].as_str().unwrap_or_default();
        why.starts_with("10.9.0.2:21321 has version 1 of the format")
            && why.contains("install the same release")
    };
    waits_for("the version is the reason", says);
    drop(older);
    let far = start(&bed, FAR);
    waits_for("repair with the same release", || repairs(&near) && repairs(&far));
}

/// The far gateway stands still for a moment, while more arrives than the kernel keeps for it.
fn a_peer_that_is_overloaded_is_bypassed() {
    let Some(bed) = Bed::new("overload", calm()) else { return };
    let [near, far] = both(&bed);
    let says = |gateway: &Running, what: &str| {
        gateway.status()["repair"]["cause"].as_str().unwrap_or_default().contains(what)
    };
    let signal = |name: &str| sh(&bed, FAR, &format!("kill -{name} {}", far.child.id()));
    let flood = bed.spaces[SERVER].within(|| UdpSocket::bind("0.0.0.0:0").expect("binds")).expect("enters");
    // The interface keeps 10,000 packets by default. For so many the gateway would have to stand still until the other one gives it up (0.6 s).
    sh(&bed, FAR, "ip link set skr-far txqueuelen 100");
    signal("STOP");
    for _ in 0..2000 {
        flood.send_to(&[7; 100], "10.1.0.2:7001").expect("sends");
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    signal("CONT");
    waits_for("it says that it cannot keep up", || says(&far, "cannot keep up"));
    waits_for("the other one knows", || says(&near, "cannot do it at present"));
    // What is forwarded arrives without their help.
    let before = total(&near, "sources");
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    send(&bed, "10.2.0.2:7001", 200, SLOWLY, |n| n < 200);
    assert_eq!(sink.close().len(), 200);
    assert_eq!(total(&near, "sources"), before);
    waits_for("repair again", || repairs(&near) && repairs(&far));
}

/// The packet between the gateways has the DSCP of the datagram in it, and the datagram keeps its own.
fn classes_are_those_of_the_datagrams() {
    let Some(bed) = Bed::new("classes", calm()) else { return };
    let _both = both_with(&bed, "bundle = false\n");
    count(&bed, FAR, 21321);
    count(&bed, SERVER, 7001);
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    let socket = bed.spaces[CLIENT].within(|| UdpSocket::bind("0.0.0.0:0").expect("binds")).expect("enters");
    socket2::SockRef::from(&socket).set_tos_v4(46 << 2).expect("sets");
    for n in 0..50_u32 {
        socket.send_to(&n.to_be_bytes(), "10.2.0.2:7001").expect("sends");
        std::thread::sleep(SLOWLY);
    }
    assert_eq!(sink.close().len(), 50);
    for at in [FAR, SERVER] {
        assert_eq!(counted(&bed, at).0, 50);
    }
}
/// Counts packets to a port with DSCP EF.
fn count(bed: &Bed, at: usize, port: u16) {
    let chain = format!("type filter hook input priority -400;\n udp dport {port} ip dscp ef counter\n");
    rules(bed, at, &format!("table inet seen {{\n chain seen {{\n {chain} }}\n }}"));
}
/// Packets and bytes that were counted.
fn counted(bed: &Bed, at: usize) -> (u64, u64) {
    let list = || Command::new("nft").args(["list", "table", "inet", "seen"]).output().expect("runs");
    let text = bed.spaces[at].within(list).expect("enters").stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let of =
        |name: &str| words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)?.parse().ok());
    of("packets").zip(of("bytes")).unwrap_or_else(|| panic!("no counter in {text}"))
}

/// Packets between the gateways are shorter than those of gateways that carry headers as they are, and nobody notices.
fn headers_are_compressed_on_the_wire() {
    // The version that the gateway replaces took 53 bytes around each datagram.
    let before = 160 + 28 + 53;
    let mean = |more: &str| {
        let bed = Bed::new("headers", calm())?;
        let [near, far] = both_with(&bed, more);
        count(&bed, FAR, 21321);
        let sink = Sink::open(&bed, "0.0.0.0:7001");
        let socket =
            bed.spaces[CLIENT].within(|| UdpSocket::bind("0.0.0.0:0").expect("binds")).expect("enters");
        socket2::SockRef::from(&socket).set_tos_v4(46 << 2).expect("sets");
        for n in 0..1000_u32 {
            let mut datagram = [7; 160];
            datagram[..4].copy_from_slice(&n.to_be_bytes());
            socket.send_to(&datagram, "10.2.0.2:7001").expect("sends");
            std::thread::sleep(SLOWLY);
        }
        let got = sink.close();
        assert!(got.len() == 1000 && got.is_sorted(), "{} arrived", got.len());
        let (_, bytes) = counted(&bed, FAR);
        let status = near.status();
        assert_eq!(total(&far, "unreadable"), 0, "{}", far.status());
        println!("{more:?}: {} bytes a datagram of {before}; {}", bytes / 1000, status["repair"]["totals"]);
        Some((bytes / 1000, total(&near, "saved-bytes")))
    };
    let (Some(whole), Some(compressed)) = (mean("compress = false\nbundle = false\n"), mean("")) else {
        return;
    };
    assert_eq!(whole.1, 0);
    assert!(whole.0 < before, "{whole:?}");
    assert!(compressed.0 + 20 < whole.0 && compressed.1 > 20_000, "{compressed:?} {whole:?}");
}

fn a_peer_that_is_killed_is_bypassed() {
    let Some(bed) = Bed::new("gone", calm()) else { return };
    let events = bed.folder.join("events.jsonl");
    let logged = format!("[log]\nevents = \"{}\"\n", events.display());
    let near = bed.gateway_for(NEAR, &(file(NEAR, KEY, "") + &logged));
    let mut far = Some(start(&bed, FAR));
    waits_for("both repair", || repairs(&near) && far.as_ref().is_some_and(repairs));
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    // One datagram every 5 ms: of 200, which is a second of them, the first may be lost. What a busy machine sends late counts all the same.
    let gap = std::time::Duration::from_millis(5);
    send(&bed, "10.2.0.2:7001", 200, gap, |n| {
        if n == 200
            && let Some(far) = far.take()
        {
            far.kill();
        }
        n < 800
    });
    let got = sink.close();
    let lost: Vec<u32> = (0..800).filter(|n| !got.contains(n)).collect();
    assert!(!lost.is_empty() && lost.len() <= 200, "{} lost: {lost:?}", lost.len());
    assert!(lost.iter().all(|n| (150..450).contains(n)), "{lost:?}");
    assert!(!repairs(&near));
    let why = near.status()["repair"]["cause"].as_str().unwrap_or_default().to_owned();
    assert!(why.starts_with("10.9.0.2:21321 does not answer: start a gateway"), "{why}");
    assert!(!examined(&bed, NEAR, "repair of datagrams").is_ok());
    assert!(near.ask("metrics").contains("skyhaul_gateway_repair_active{gateway=\"near\"} 0"));
    let far = start(&bed, FAR);
    waits_for("repair again", || repairs(&near) && repairs(&far));
    assert_eq!((total(&near, "withdrawals"), total(&near, "sessions")), (1, 2));
    let text = std::fs::read_to_string(&events).expect("a log");
    let told: Vec<&str> = text
        .lines()
        .filter(|l| l.contains("\"event\":\"repair"))
        .map(|l| if l.contains("withdrawn") { "not" } else { "yes" })
        .collect();
    let first = told.iter().position(|t| *t == "yes");
    let told = first.map(|first| &told[first..]).unwrap_or_default();
    assert!(told.len() >= 3 && told[1] == "not" && told.last() == Some(&"yes"), "{text}");
    // An orderly stop is told to the other end, and loses nothing.
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    let mut far = Some(far);
    send(&bed, "10.2.0.2:7001", 200, gap, |n| {
        if n == 50
            && let Some(far) = far.take()
        {
            far.stop();
        }
        n < 200
    });
    let got = sink.close();
    assert!(got.len() >= 190, "{} of 200", got.len());
}

fn with_another_key_datagrams_are_forwarded() {
    let Some(bed) = Bed::new("keys", calm()) else { return };
    let near = start(&bed, NEAR);
    let far = bed.gateway_for(FAR, &file(FAR, "another key that is as long as the first", ""));
    let says = |gateway: &Running| {
        gateway.status()["repair"]["cause"].as_str().unwrap_or_default().contains("has another key")
    };
    waits_for("a reason", || says(&near) && says(&far));
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    send(&bed, "10.2.0.2:7001", 200, SLOWLY, |n| n < 200);
    assert_eq!(sink.close().len(), 200, "they are forwarded");
    for gateway in [&near, &far] {
        assert_eq!((total(gateway, "sessions"), total(gateway, "sources")), (0, 0));
        assert!(total(gateway, "forged") > 0);
    }
    let found = examined(&bed, NEAR, "repair of datagrams");
    assert!(!found.is_ok() && found.message.contains("write the same repair.key"), "{found:?}");
}

/// A firewall that knows only the two interfaces of the router, in front of each end in turn.
fn a_firewall_that_drops_datagrams_ends_repair() {
    for (at, says) in [(NEAR, "leave by skr-near"), (FAR, "arrive at skr-far")] {
        let Some(bed) = Bed::new("walls", calm()) else { return };
        rules(
            &bed,
            at,
            "table inet filter {\n chain forward {\n type filter hook forward priority filter; policy drop;\n \
             iifname lan0 oifname sat0 accept\n iifname sat0 oifname lan0 accept\n }\n}",
        );
        let [near, far] = both(&bed);
        let sink = Sink::open(&bed, "0.0.0.0:7001");
        // As long as it takes to notice it, and then 200 more.
        let mut until = u32::MAX;
        send(&bed, "10.2.0.2:7001", 200, SLOWLY, |n| {
            if until == u32::MAX && n % 10 == 0 && !repairs(&near) && !repairs(&far) {
                until = n + 200;
            }
            n < until.min(20_000)
        });
        assert!(until < u32::MAX, "it is noticed");
        let got = sink.close();
        assert!(got.len() >= 190 && got.last() == Some(&(until - 1)), "{} until {until}", got.len());
        let gateway = if at == NEAR { &near } else { &far };
        let why = gateway.status()["repair"]["cause"].as_str().unwrap_or_default().to_owned();
        assert!(why.starts_with("a firewall drops packets that ") && why.contains(says), "{why}");
    }
}

fn what_arrives_twice_or_from_strangers_does_nothing() {
    let noise = Noise { duplicate: 0.3, reorder: 0.1, corrupt: 0.02, ..Noise::default() };
    let Some(bed) = Bed::new("strangers", Link { noise, ..lossy(0.01) }) else { return };
    let [near, far] = both(&bed);
    // Others at the address of the gateway's machine, and at another one of the link.
    sh(&bed, NEAR, "ip addr add 10.9.0.77/24 dev sat0");
    let stranger =
        |from: &str| bed.spaces[NEAR].within(|| UdpSocket::bind(from).expect("binds")).expect("enters");
    let strangers = ["10.9.0.1:4000", "10.9.0.77:21321"].map(stranger);
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    send(&bed, "10.2.0.2:7001", 500, SLOWLY, |n| {
        for (socket, len) in strangers.iter().zip([49, 1400]) {
            let mut packet = vec![n as u8; len];
            packet[0] = [0x2f, 0x30, 0x28, 0x31][n as usize % 4];
            let _ = socket.send_to(&packet, "10.9.0.2:21321");
        }
        n < 2000
    });
    let got = sink.close();
    assert!(got.len() >= 1980 && got.is_sorted_by(|a, b| a < b), "{} arrived", got.len());
    assert!(repairs(&near) && repairs(&far));
    assert!(total(&far, "replayed") > 100, "{}", far.status());
    assert_eq!((total(&near, "sessions"), total(&far, "sessions")), (1, 1));
    // The kernel drops what does not come from the other gateway. A stranger gets no answer.
    for socket in &strangers {
        socket.set_nonblocking(true).expect("sets");
        assert!(socket.recv(&mut [0; 100]).is_err(), "no answer");
    }
    drop((near, strangers));
    // At the address and port of the gateway itself: nothing is authentic, nothing is answered but by hellos, as many as without.
    let impostor = bed.spaces[NEAR]
        .within(|| {
            let socket = UdpSocket::bind("10.9.0.1:21321").expect("binds");
            socket.connect("10.9.0.2:21321").expect("connects");
            socket
        })
        .expect("enters");
    waits_for("a withdrawal", || !repairs(&far));
    let before = total(&far, "forged");
    for n in 0..1000_u32 {
        let mut packet = vec![n as u8; 1 + n as usize % 200];
        packet[0] = [0x1f, 0x30, 0x28, 0x31, 0x2f, 0x40][n as usize % 6];
        let _ = impostor.send(&packet);
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    waits_for("all are refused", || total(&far, "forged") > before + 800);
    assert!(!repairs(&far));
    impostor.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("sets");
    let mut answers = 0;
    while let Ok(n) = impostor.recv(&mut [0; 100]) {
        assert!(n <= 49, "{n} bytes");
        answers += 1;
    }
    // Signs of life and hellos leave at their own rate for ten seconds, whatever arrives.
    assert!(answers < 300, "{answers} for 1000 packets");
}

fn repaired_paths_have_a_smaller_mtu() {
    let Some(bed) = Bed::new("mtu", Link { mtu: Some([1400, 1400]), ..calm() }) else { return };
    smaller_mtu(&bed, both(&bed), [1442, 1342]);
}
/// The packets between the gateways are of IPv6; a router between them answers long ones (RFC 8201).
fn repaired_paths_over_ipv6_have_a_smaller_mtu() {
    let Some(bed) = Bed::new("mtu6", Link { mtu: Some([1500, 1400]), ..calm() }) else { return };
    let both = [(NEAR, "fd09::2"), (FAR, "fd09::1")].map(|(at, peer)| start_with(&bed, at, peer));
    waits_for("both repair", || both.iter().all(repairs));
    smaller_mtu(&bed, both, [1422, 1322]);
}
/// The client learns the MTU of the repaired path from the first gateway, and then that of the link behind it.
fn smaller_mtu(bed: &Bed, [near, far]: [Running; 2], expected: [i32; 2]) {
    let sink = Sink::open(bed, "0.0.0.0:7001");
    let socket = bed.spaces[CLIENT]
        .within(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("binds");
            socket.connect("10.2.0.2:7001").expect("connects");
            socket
        })
        .expect("enters");
    let mtu = || getsockopt(&socket, sockopt::IpMtu).expect("is known");
    assert_eq!(mtu(), 1500);
    let learns = |most: i32| {
        waits_for("a smaller MTU", || {
            let size = mtu() as usize - 28;
            let _ = socket.send(&vec![0; size]);
            mtu() <= most
        });
    };
    learns(expected[0]);
    waits_for("the gateway learns that of the link", || {
        let _ = socket.send(&vec![0; mtu() as usize - 28]);
        near.status()["repair"]["mtu"].as_i64() == Some(expected[1].into())
    });
    learns(expected[1]);
    let number = 50_u32;
    for n in 1..=number {
        let mut datagram = vec![0; mtu() as usize - 28];
        datagram[..4].copy_from_slice(&n.to_be_bytes());
        socket.send(&datagram).expect("fits");
    }
    let got = sink.close();
    assert!((1..=number).all(|n| got.contains(&n)), "{got:?}");
    assert!(repairs(&near) && repairs(&far));
}

/// The near gateway is behind a router that hides its address and port; the far one learns them.
fn a_peer_behind_nat_is_followed() {
    let Some(bed) = Bed::new("nat", lossy(0.01)) else { return };
    // The mapping is that of the zone, so that another zone begins another mapping.
    let hide = |zone: u32, how: &str| {
        rules(
            &bed,
            NEAR,
            &format!(
                "table ip nat\ndelete table ip nat\ntable ip nat {{\n\
                 chain out {{\n type filter hook output priority raw;\n udp dport 21321 ct zone set {zone}\n }}\n\
                 chain in {{\n type filter hook prerouting priority raw;\n udp sport 21321 ct zone set {zone}\n }}\n\
                 chain post {{\n type nat hook postrouting priority srcnat;\n udp dport 21321 {how}\n }}\n}}"
            ),
        );
    };
    sh(&bed, NEAR, "ip addr add 10.9.0.50/24 dev sat0");
    hide(1, "masquerade to :40000-40099");
    let events = bed.folder.join("events.jsonl");
    let follows = file(FAR, KEY, "").replace("peer = \"10.9.0.1\"", "peer = \"any\"");
    let logged = format!("{follows}[log]\nevents = \"{}\"\n", events.display());
    let (near, far) = (start(&bed, NEAR), bed.gateway_for(FAR, &logged));
    waits_for("both repair", || repairs(&near) && repairs(&far));
    let at = || far.status()["repair"]["peer"].as_str().unwrap_or_default().to_owned();
    assert!(at().starts_with("10.9.0.1:400"), "{}", at());
    let carries = |number: u32| {
        let sink = Sink::open(&bed, "0.0.0.0:7001");
        send(&bed, "10.2.0.2:7001", 200, SLOWLY, |n| n < number);
        let got = sink.close();
        assert!(got.len() as u32 * 100 >= number * 99, "{} of {number}", got.len());
        got
    };
    carries(500);
    // The router has forgotten the mapping, and takes another address and port. Nothing has to begin again.
    hide(2, "snat to 10.9.0.50:50000-50099");
    waits_for("the far gateway follows", || at().starts_with("10.9.0.50:500"));
    waits_for("both repair", || repairs(&near) && repairs(&far));
    carries(500);
    // Others with the address, and without the key, move nothing.
    let stranger =
        bed.spaces[NEAR].within(|| UdpSocket::bind("10.9.0.1:4000").expect("binds")).expect("enters");
    let before = at();
    for n in 0..200_u32 {
        let mut packet = vec![n as u8; [49, 26, 1400][n as usize % 3]];
        packet[0] = [0x1f, 0x18, 0x10][n as usize % 3];
        let _ = stranger.send_to(&packet, "10.9.0.2:21321");
    }
    waits_for("they are refused", || total(&far, "forged") > 150);
    assert_eq!(at(), before);
    assert_eq!((total(&near, "sessions"), total(&far, "sessions")), (1, 1));
    assert!(repairs(&near) && repairs(&far));
    // The one move is counted and logged.
    assert_eq!(far.status()["repair"]["moves"], 1);
    assert!(far.ask("metrics").contains("skyhaul_gateway_repair_peer_moves_total{gateway=\"far\"} 1"));
    let lines = || {
        let text = std::fs::read_to_string(&events).unwrap_or_default();
        text.lines().filter(|l| l.contains("\"repair-peer-moved\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    waits_for("the move is logged", || !lines().is_empty());
    let line = format!("to {before}");
    assert!(
        lines().len() == 1 && lines()[0].contains("moved from 10.9.0.1:400") && lines()[0].contains(&line),
        "{:?}",
        lines()
    );
    // Downwards, to where the router leads.
    let before = total(&near, "delivered");
    let socket = bed.spaces[SERVER].within(|| UdpSocket::bind("0.0.0.0:0").expect("binds")).expect("enters");
    for _ in 0..200 {
        socket.send_to(&[7; 200], "10.1.0.2:7001").expect("sends");
        std::thread::sleep(SLOWLY);
    }
    waits_for("they arrive", || total(&near, "delivered") - before >= 198);
}

fn two_gateways_that_wait_say_so() {
    let Some(bed) = Bed::new("wait", calm()) else { return };
    let both = [NEAR, FAR].map(|at| start_with(&bed, at, "any"));
    let why = |g: &Running| g.status()["repair"]["cause"].as_str().unwrap_or_default().to_owned();
    for gateway in &both {
        assert!(why(gateway).contains("not both may have \"any\""), "{}", why(gateway));
    }
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    send(&bed, "10.2.0.2:7001", 200, SLOWLY, |n| n < 100);
    assert_eq!(sink.close().len(), 100, "they are forwarded");
}

fn connections_that_are_not_split_are_repaired() {
    let Some(bed) = Bed::new("inner", lossy(0.02)) else { return };
    let [near, far] = both(&bed);
    let at = SocketAddr::new(server().ip(), PORT + 9);
    let serves = echo(listen(&bed, at), 1);
    bed.spaces[CLIENT].within(|| exchange(at, 1, 2_000_000)).expect("enters");
    serves.join().expect("serves");
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (0, 0));
    let segments = 2_000_000 / 1400;
    assert!(total(&near, "sources") > segments && total(&far, "sources") > segments);
}

fn what_passes_is_not_repaired() {
    let Some(bed) = Bed::new("passes", calm()) else { return };
    let pass = "[repair.pass]\nports = [7001]\nnetworks = [\"fd02::2\"]\n";
    let both = [NEAR, FAR].map(|at| bed.gateway_for(at, &file(at, KEY, pass)));
    waits_for("both repair", || both.iter().all(repairs));
    for (at, to, repaired) in [
        ("0.0.0.0:7001", "10.2.0.2:7001", false),
        ("[::]:7002", "[fd02::2]:7002", false),
        ("0.0.0.0:7003", "10.2.0.2:7003", true),
    ] {
        let before = total(&both[0], "sources");
        let sink = Sink::open(&bed, at);
        send(&bed, to, 200, SLOWLY, |n| n < 100);
        assert_eq!(sink.close().len(), 100, "{to}");
        assert_eq!(total(&both[0], "sources") - before, if repaired { 100 } else { 0 }, "{to}");
    }
}

fn split_and_repaired_traffic_share_the_rate() {
    let Some(bed) = Bed::new("shared", lossy(0.0)) else { return };
    let [near, _far] = both(&bed);
    let rate = || near.status()["repair"]["rate"].as_f64().expect("a rate") / 1e6;
    assert!(rate() > 9.5, "{}", rate());
    // An upload without end by a split connection, beside more datagrams than the link carries.
    let listener = listen(&bed, server());
    std::thread::spawn(move || {
        let (mut s, _) = listener.accept().expect("accepts");
        let _ = std::io::copy(&mut s, &mut std::io::sink());
    });
    let mut upload =
        bed.spaces[CLIENT].within(|| TcpStream::connect(server()).expect("connects")).expect("enters");
    let another = upload.try_clone().expect("clones");
    let writes = std::thread::spawn(move || while upload.write_all(&[7; 1 << 16]).is_ok() {});
    let over = AtomicBool::new(false);
    let flood = std::time::Duration::from_micros(500);
    std::thread::scope(|s| {
        s.spawn(|| send(&bed, "10.2.0.2:7001", 1400, flood, |_| !over.load(Ordering::Relaxed)));
        waits_for("the repaired datagrams leave half to the connection", || (4.9..6.5).contains(&rate()));
        let carried = || near.status()["prefixes"][0]["to-link"].as_u64().unwrap_or(0);
        let before = carried();
        waits_for("the connection goes on", || carried() > before + 1_000_000);
        another.shutdown(Shutdown::Both).expect("ends it");
        waits_for("the datagrams have all of it", || rate() > 9.5);
        over.store(true, Ordering::Relaxed);
    });
    writes.join().expect("ends");
    assert!(total(&near, "dropped") > 0, "the gateway's own queue drops what is too much");
}
