//! Several links and interfaces of hosts at one box: gateways side by side, lists of interfaces, VLANs.

use crate::bed::{Bed, Running, wire};
use crate::evidence::evidence;
use crate::firewall::waits_for;
use crate::{echo, exchange};
use skyhaul_gateway::doctor::{self, Finding};
use skyhaul_gateway::{Config, place};
use skyhaul_testkit::need;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

pub(crate) const ALL: [(&str, fn()); 2] = [
    ("two_gateways_carry_two_links", two_gateways_carry_two_links),
    ("interfaces_may_be_those_of_vlans", interfaces_may_be_those_of_vlans),
];

/// The namespaces: two hosts on networks of their own, the box, the routers at the other ends of its two links, and the server, which has an
/// address behind each.
const HOST: usize = 0;
const OTHER: usize = 1;
const BOX: usize = 2;
const END: usize = 3;
const SECOND: usize = 4;
const SERVER: usize = 5;
/// The addresses of both hosts, and those of the server behind the first and the second link.
const HOSTS: [[u8; 4]; 2] = [[10, 1, 0, 2], [10, 4, 0, 2]];
const SERVERS: [[u8; 4]; 2] = [[10, 2, 0, 2], [10, 3, 0, 2]];

fn said(bed: &Bed, at: usize, line: &str) -> String {
    let run = || Command::new("sh").args(["-c", line]).output().expect("runs");
    let done = bed.spaces[at].within(run).expect("enters");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn lay() -> Option<Bed> {
    let bed = Bed::bare("several", 6)?;
    let at = |n: usize| &bed.spaces[n];
    for (a, one, b, other) in [
        (HOST, ("c0", "10.1.0.2"), BOX, ("lan0", "10.1.0.1")),
        (OTHER, ("c0", "10.4.0.2"), BOX, ("lan1", "10.4.0.1")),
        (BOX, ("sat0", "10.9.0.1"), END, ("sat0", "10.9.0.2")),
        (BOX, ("sat1", "10.8.0.1"), SECOND, ("sat0", "10.8.0.2")),
        (END, ("lan0", "10.2.0.1"), SERVER, ("s0", "10.2.0.2")),
        (SECOND, ("lan0", "10.3.0.1"), SERVER, ("s1", "10.3.0.2")),
    ] {
        wire([(at(a), one.0, &[(one.1, 24)]), (at(b), other.0, &[(other.1, 24)])]);
    }
    for (n, line) in [
        (HOST, "ip route add default dev c0"),
        (OTHER, "ip route add default dev c0"),
        (BOX, "ip route add 10.2.0.0/24 dev sat0; ip route add 10.3.0.0/24 dev sat1"),
        (END, "ip route add 10.1.0.0/24 dev sat0; ip route add 10.4.0.0/24 dev sat0"),
        (SECOND, "ip route add 10.1.0.0/24 dev sat0; ip route add 10.4.0.0/24 dev sat0"),
        // Answers of the server leave by the interface of their address.
        (
            SERVER,
            "ip route add default dev s0; ip rule add from 10.3.0.2 lookup 9; ip route add default dev s1 table 9",
        ),
    ] {
        said(&bed, n, line);
    }
    Some(bed)
}

fn end(address: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from(address), port)
}

/// A host in the namespace `from` exchanges data with a server at `to`, which listens in the namespace `there` for this one connection.
fn once(bed: &Bed, from: usize, there: usize, to: SocketAddr) {
    let listener = bed.spaces[there].within(|| TcpListener::bind(to).expect("listens")).expect("enters");
    let serves = echo(listener, 1);
    bed.spaces[from].within(|| exchange(to, 3, 200_000)).expect("enters");
    serves.join().expect("serves");
}

/// The number of connections that a gateway has split so far.
fn split(gateway: &Running) -> [u64; 2] {
    [gateway.count("from-hosts"), gateway.count("from-link")]
}

/// Each host exchanges with each address of the server. Returns how many connections each gateway has split.
fn all_ways(bed: &Bed, gateways: &[&Running]) -> Vec<[u64; 2]> {
    let before: Vec<_> = gateways.iter().map(|g| split(g)).collect();
    for server in SERVERS {
        for host in [HOST, OTHER] {
            once(bed, host, SERVER, end(server, 7000));
        }
    }
    // And the server connects to each host, from each of its addresses.
    for (host, address) in [HOST, OTHER].into_iter().zip(HOSTS) {
        for server in SERVERS {
            let listener =
                bed.spaces[host].within(|| TcpListener::bind(end(address, 7001)).expect("listens"));
            let serves = echo(listener.expect("enters"), 1);
            let ask = || {
                let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
                let socket = socket.expect("a socket");
                socket.bind(&end(server, 0).into()).expect("binds");
                socket.connect(&end(address, 7001).into()).expect("connects");
                let mut s = TcpStream::from(socket);
                s.write_all(&[5; 100_000]).expect("writes");
                s.shutdown(Shutdown::Write).expect("half-closes");
                let mut back = Vec::new();
                s.read_to_end(&mut back).expect("reads");
                // The echo begins with a hash of 32 bytes.
                assert_eq!(back.len(), 100_032);
            };
            bed.spaces[SERVER].within(ask).expect("enters");
            serves.join().expect("serves");
        }
    }
    let after = gateways.iter().map(|g| split(g));
    before.iter().zip(after).map(|(b, a)| [a[0] - b[0], a[1] - b[1]]).collect()
}

fn works(gateway: &Running) {
    waits_for("its own connection", || gateway.status()["proof"]["state"] == "works");
}

fn found(bed: &Bed, name: &str, text: &str) -> Vec<Finding> {
    let config = Config::parse("g.toml", &format!("name = \"{name}\"\n{text}")).expect("is good");
    bed.spaces[BOX].within(|| doctor::examine(&config, &bed.folder)).expect("enters")
}

fn two_gateways_carry_two_links() {
    let Some(bed) = lay() else { return };
    let state = || {
        said(
            &bed,
            BOX,
            "ip rule; ip -6 rule; nft list tables; cat /proc/sys/net/ipv4/tcp_early_demux /proc/sys/net/ipv4/tcp_reflect_tos",
        )
    };
    let before = state();
    let files = [
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n",
        "[terrestrial]\ninterfaces = [\"lan0\", \"lan1\"]\n[satellite]\ninterface = \"sat1\"\nrate = \"200 Mbit/s\"\n",
    ];
    let start = |n: usize| bed.gateway_named(["first", "second"][n], &[], BOX, files[n]);
    let (first, second) = (start(0), start(1));
    [&first, &second].into_iter().for_each(works);
    let rules = said(&bed, BOX, "ip rule");
    for words in
        ["fwmark 0x53480001 lookup 21320", "fwmark 0x53480002 lookup 21321", "fwmark 0x53480012 lookup 21331"]
    {
        assert_eq!(rules.matches(words).count(), 1, "{rules}");
    }
    // The first one splits connections between lan0 and sat0. The second one those between both networks of hosts and sat1.
    assert_eq!(all_ways(&bed, &[&first, &second]), [[1, 1], [2, 2]]);
    // Connections between the networks of hosts, which one gateway knows both of, are forwarded.
    let counts = [split(&first), split(&second)];
    once(&bed, HOST, OTHER, end(HOSTS[1], 7000));
    assert_eq!([split(&first), split(&second)], counts);
    // Everything names all interfaces.
    let status = second.status();
    assert_eq!((&status["hosts"], &status["link"]), (&serde_json::json!(["lan0", "lan1"]), &"sat1".into()));
    let label = "skyhaul_gateway_info{gateway=\"second\",version=\"";
    assert!(
        second
            .ask("metrics")
            .lines()
            .any(|l| l.starts_with(label) && l.contains("hosts=\"lan0,lan1\",link=\"sat1\""))
    );
    let findings = found(&bed, "second", files[1]);
    let about = |what: &str| {
        findings.iter().find(|f| f.what == what).unwrap_or_else(|| panic!("{what} in {findings:#?}"))
    };
    for what in [
        "terrestrial.interface lan0",
        "terrestrial.interface lan1",
        "satellite.interface sat1",
        "way back to 10.4.0.3",
    ] {
        assert!(about(what).is_ok(), "{findings:#?}");
    }
    assert_eq!(about("gateway first").message, "runs beside this one, with lan0 and sat0");
    assert!(findings.iter().all(Finding::is_ok), "{findings:#?}");
    let third = found(&bed, "third", &files[1].replace("sat1", "sat0"));
    let refusal = third.iter().find(|f| f.what == "beside other gateways").expect("a finding");
    assert!(
        !refusal.is_ok()
            && refusal
                .message
                .starts_with("satellite.interface sat0 is satellite.interface of the gateway \"first\"")
    );
    assert_eq!(bed.spaces[BOX].within(|| place::running(&bed.folder)).expect("enters"), ["first", "second"]);
    // One interface of hosts goes: the others go on.
    said(&bed, BOX, "ip link set lan1 down");
    std::thread::sleep(Duration::from_secs(3));
    assert!(
        second.status()["admits"] == true && second.status()["proof"]["state"] == "works",
        "{}",
        second.status()
    );
    once(&bed, HOST, SERVER, end(SERVERS[1], 7000));
    let down = found(&bed, "second", files[1]);
    assert!(down.iter().any(|f| f.what == "terrestrial.interface lan1" && !f.is_ok()), "{down:#?}");
    said(
        &bed,
        BOX,
        "ip link set lan1 up; for n in $(seq 500); do ip -o link show dev lan1 | grep -q 'state UP' && exit 0; sleep 0.01; done",
    );
    // The first one stops while connections of the second one are open: they go on, and new ones are split.
    let to = end(SERVERS[1], 7002);
    let listener = bed.spaces[SERVER].within(|| TcpListener::bind(to).expect("listens")).expect("enters");
    let serves = echo(listener, 1);
    let open = bed.spaces[OTHER].within(|| TcpStream::connect(to).expect("connects"));
    let mut open = open.expect("enters");
    open.write_all(&[1; 100_000]).expect("writes");
    waits_for("it is split", || second.count("flows") == 1);
    first.stop();
    let demux = || said(&bed, BOX, "cat /proc/sys/net/ipv4/tcp_early_demux").trim().to_owned();
    assert_eq!(demux(), "0", "the second one needs it");
    let rules = said(&bed, BOX, "ip rule");
    assert!(
        rules.contains("0x53480001") && !rules.contains("0x53480002") && rules.contains("0x53480012"),
        "{rules}"
    );
    assert_eq!(all_ways(&bed, &[&second]), [[2, 2]]);
    open.write_all(&[2; 100_000]).expect("writes");
    open.shutdown(Shutdown::Write).expect("half-closes");
    let mut back = Vec::new();
    open.read_to_end(&mut back).expect("reads");
    assert_eq!(back.len(), 200_032);
    serves.join().expect("serves");
    works(&second);
    // It starts again and is killed: the other one goes on again.
    let first = start(0);
    works(&first);
    assert_eq!(all_ways(&bed, &[&first, &second]), [[1, 1], [2, 2]]);
    first.kill();
    waits_for("the keeper of the first one", || !state().contains("skyhaul_first"));
    waits_for("its rules are gone", || !said(&bed, BOX, "ip rule").contains("0x53480002"));
    assert_eq!(demux(), "0");
    assert_eq!(all_ways(&bed, &[&second]), [[2, 2]]);
    // Both end at the same time, one of them by a kill: nothing is left.
    let first = start(0);
    std::thread::scope(|s| {
        s.spawn(|| first.kill());
        s.spawn(|| second.stop());
    });
    waits_for("everything is as before", || state() == before);
    // Without any of them, the same connections are forwarded.
    assert_eq!(all_ways(&bed, &[]), Vec::<[u64; 2]>::new());
}

fn interfaces_may_be_those_of_vlans() {
    // The box has one cable to a switch: the networks of two hosts and the link are VLANs of it.
    let Some(bed) = Bed::bare("vlans", 6) else { return };
    const SWITCH: usize = SECOND;
    let at = |n: usize| &bed.spaces[n];
    for (n, name, port) in
        [(BOX, "eth0", "trunk"), (HOST, "c0", "p0"), (OTHER, "c0", "p1"), (END, "sat0", "p2")]
    {
        wire([(at(n), name, &[]), (at(SWITCH), port, &[])]);
    }
    wire([(at(END), "lan0", &[("10.2.0.1", 24)]), (at(SERVER), "s0", &[("10.2.0.2", 24)])]);
    for n in [HOST, OTHER, BOX, END, SERVER] {
        said(
            &bed,
            n,
            "cd /proc/sys/net/ipv4/conf; for f in */proxy_arp; do echo 0 > $f; done; for f in */arp_ignore; do echo 1 > $f; done",
        );
    }
    let vlans = [100, 101, 200];
    let tagged = |n: usize, parent: &str| {
        let add = vlans.map(|v| format!("ip link add link {parent} name {parent}.{v} type vlan id {v}"));
        let run = || Command::new("sh").args(["-ec", &add.join("; ")]).output().expect("runs");
        let done = bed.spaces[n].within(run).expect("enters");
        done.status.success()
    };
    let (first, second, link) = ("eth0.100", "eth0.101", "eth0.200");
    if tagged(BOX, "eth0") && tagged(SWITCH, "trunk") {
        for (v, port) in vlans.into_iter().zip(["p0", "p1", "p2"]) {
            said(
                &bed,
                SWITCH,
                &format!(
                    "ip link add br{v} type bridge; ip link set {port} master br{v}; ip link set trunk.{v} master br{v} up; ip link set br{v} up"
                ),
            );
        }
    } else {
        // Interfaces on another one, without tags: above the tags, nothing differs.
        need::lacks("vlan", "this kernel has none (8021q): the interfaces are of another kind (macvlan)");
        for name in [first, second, link] {
            said(&bed, BOX, &format!("ip link add link eth0 name {name} type macvlan mode bridge"));
        }
        said(
            &bed,
            SWITCH,
            "ip link add br0 type bridge; for p in trunk p0 p1 p2; do ip link set $p master br0; done; ip link set br0 up",
        );
    }
    for (n, line) in [
        (BOX, "ip addr add 10.1.0.1/24 dev eth0.100; ip addr add 10.4.0.1/24 dev eth0.101; ip addr add 10.9.0.1/24 dev eth0.200".to_owned()),
        (BOX, "cd /proc/sys/net/ipv4/conf; for v in 100 101 200; do echo 1 > eth0.$v/arp_ignore; ip link set eth0.$v up; done".into()),
        (BOX, "ip route add 10.2.0.0/24 via 10.9.0.2".into()),
        (HOST, "ip addr add 10.1.0.2/24 dev c0; ip route add default via 10.1.0.1".into()),
        (OTHER, "ip addr add 10.4.0.2/24 dev c0; ip route add default via 10.4.0.1".into()),
        (END, "ip addr add 10.9.0.2/24 dev sat0; ip route add 10.1.0.0/24 via 10.9.0.1; ip route add 10.4.0.0/24 via 10.9.0.1".into()),
        (SERVER, "ip route add default via 10.2.0.1".into()),
    ] {
        said(&bed, n, &line);
    }
    let text = format!(
        "[terrestrial]\ninterfaces = [\"{first}\", \"{second}\"]\nnetworks = [\"10.1.0.0/24\", \"10.4.0.0/24\"]\n[satellite]\ninterface = \"{link}\"\n\
         networks = [\"10.2.0.0/24\"]\n[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"bbr\"\n"
    );
    let gateway = bed.gateway_named("vlan", &[], BOX, &text);
    let far = bed.gateway_named(
        "end",
        &[],
        END,
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n",
    );
    [&gateway, &far].into_iter().for_each(works);
    for host in [HOST, OTHER] {
        once(&bed, host, SERVER, end(SERVERS[0], 7000));
        // From behind the link, too: the other gateway hands the connection on.
        once(&bed, SERVER, host, end(HOSTS[usize::from(host == OTHER)], 7001));
    }
    assert_eq!((split(&gateway), split(&far)), ([2, 2], [2, 2]));
    let counts = split(&gateway);
    once(&bed, HOST, OTHER, end(HOSTS[1], 7000));
    assert_eq!(split(&gateway), counts, "between two networks of hosts");
    // Connections are observed at both interfaces: the four that were split, and not the one between them.
    let observed = evidence(&gateway, 4);
    let arms = observed["groups"][0]["arms"].as_array().expect("arms");
    let sum = |key: &str| arms.iter().map(|a| a[key].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum("finished"), sum("reset"), &observed["open"]), (4, 0, &0.into()), "{observed:#}");
    assert_eq!((sum("bytes-to-link"), sum("bytes-to-hosts")), (800_064, 800_064), "{observed:#}");
    let metrics = gateway.ask("metrics");
    assert!(metrics.contains("hosts=\"eth0.100,eth0.101\",link=\"eth0.200\"} 1\n"), "{metrics}");
    let findings = found(&bed, "vlan", &text);
    assert!(findings.iter().all(Finding::is_ok), "{findings:#?}");
    for what in [
        format!("terrestrial.interface {first}"),
        format!("rp_filter of {second}"),
        format!("satellite.interface {link}"),
        "way back to 10.4.0.3".into(),
    ] {
        assert!(findings.iter().any(|f| f.what == what), "{what} in {findings:#?}");
    }
    // The doctor counts at all of them while connections arrive.
    let config = Config::parse("g.toml", &format!("name = \"vlan\"\n{text}")).expect("is good");
    let watched = std::thread::scope(|s| {
        let watch = s.spawn(|| {
            bed.spaces[BOX]
                .within(|| doctor::watch(&config, skyhaul_base::Duration::from_secs(2)))
                .expect("enters")
        });
        std::thread::sleep(Duration::from_millis(700));
        [HOST, OTHER].into_iter().for_each(|host| once(&bed, host, SERVER, end(SERVERS[0], 7000)));
        watch.join().expect("counts")
    });
    let seen = watched.iter().find(|f| f.what == format!("SYNs at {first}, {second}")).expect("a finding");
    assert!(seen.message.starts_with("2 arrived, 2 of them between the networks"), "{watched:#?}");
    // An interface that goes and comes back.
    said(
        &bed,
        BOX,
        &format!("ip link set {second} down; sleep 1; ip link set {second} up; ip route show dev {second}"),
    );
    once(&bed, OTHER, SERVER, end(SERVERS[0], 7000));
    assert_eq!(split(&gateway), [5, 2]);
    gateway.stop();
    far.stop();
}
