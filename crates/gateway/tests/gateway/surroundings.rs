//! A gateway whose surroundings change: rule sets of firewalld and Docker, a full table of connections, interfaces, addresses and routes
//! that come and go. Connections work, split or unsplit, and the status says which.

use crate::bed::{Bed, CLIENT, FAR, NEAR, Running, wire};
use crate::firewall::{AT_MOST, admits, cause, examined, rules, serve, sh, since, state, waits_for};
use crate::{calm, listen, server};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use skyhaul_net::Clock;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration as Patience;

pub(crate) const ALL: [(&str, fn()); 8] = [
    ("firewalld_is_loaded_and_reloaded", firewalld_is_loaded_and_reloaded),
    ("docker_drops_what_is_forwarded", docker_drops_what_is_forwarded),
    ("a_full_table_of_connections", a_full_table_of_connections),
    ("interfaces_vanish_and_return", interfaces_vanish_and_return),
    ("a_route_moves_to_another_link", a_route_moves_to_another_link),
    ("addresses_are_renewed", addresses_are_renewed),
    ("rules_of_routing_lead_elsewhere", rules_of_routing_lead_elsewhere),
    ("settings_and_its_own_interface_are_restored", settings_and_its_own_interface_are_restored),
];

const FIREWALLD: &str = include_str!("firewalld.nft");
const DOCKER: &str = include_str!("docker.nft");

/// One exchange of five bytes with the server at `to`.
fn exchanges(bed: &Bed, to: SocketAddr) -> std::io::Result<()> {
    let ask = || {
        let mut s = TcpStream::connect_timeout(&to, Patience::from_secs(20))?;
        s.set_read_timeout(Some(Patience::from_secs(20)))?;
        s.write_all(b"words")?;
        s.read_exact(&mut [0; 5])
    };
    bed.spaces[CLIENT].within(ask).expect("enters")
}
/// Checks that a client which tries again when it is refused gets an answer within five seconds. Returns how long that took.
fn gets_through(bed: &Bed, what: &str) -> Patience {
    let began = Clock::now();
    loop {
        let tried = exchanges(bed, server());
        let took = since(began);
        assert!(took < AT_MOST, "{what}: {took:?} {tried:?}");
        if tried.is_ok() {
            return took;
        }
        std::thread::sleep(Patience::from_millis(50));
    }
}
/// Checks that connections get through from now on, split or not, and that the status says which within five seconds.
fn passes(bed: &Bed, near: &Running, what: &str, split: bool) {
    let took = gets_through(bed, what);
    let began = Clock::now();
    loop {
        gets_through(bed, what);
        let (before, said) = (near.count("from-hosts"), admits(near));
        let next = gets_through(bed, what);
        let was = near.count("from-hosts") > before;
        let known = state(near) == if split { "works" } else { "withdrawn" };
        if was == split && said == split && admits(near) == split && known {
            let settled = since(began);
            eprintln!("note: {what}: answered after {took:?}, settled after {settled:?}, then {next:?}");
            assert!(settled < AT_MOST, "{what}: {settled:?}");
            break;
        }
        assert!(
            since(began) < Patience::from_secs(30),
            "{what}: split {was}, admits {said}, {}",
            near.ask("status")
        );
        std::thread::sleep(Patience::from_millis(100));
    }
    // The metrics and the doctor agree with the status.
    let metrics = near.ask("metrics");
    let number = u8::from(split);
    for key in ["admits", "proven"] {
        assert!(
            metrics.contains(&format!("skyhaul_gateway_{key}{{gateway=\"near\"}} {number}")),
            "{metrics}"
        );
    }
    let found = examined(bed);
    assert_eq!(found.is_ok(), split, "{found:?}");
    if !split {
        assert!(found.message.ends_with(&cause(near)) && cause(near).lines().count() == 1, "{found:?}");
    }
}
/// Runs the nft commands at the end of the cause that the status tells.
fn remedy(bed: &Bed, near: &Running) {
    let cause = cause(near);
    let (_, commands) = cause.split_once(": nft insert").unwrap_or_else(|| panic!("{cause}"));
    sh(bed, NEAR, &format!("nft insert{commands}"));
}
fn cause_or_none(gateway: &Running) -> String {
    let status = gateway.status();
    status["proof"]["cause"].as_str().unwrap_or_default().to_owned()
}
fn begin(name: &str) -> Option<(Bed, Running)> {
    let bed = Bed::new(name, calm())?;
    serve(&bed);
    let near = bed.gateway(NEAR, "");
    waits_for("its own connection", || state(&near) == "works");
    Some((bed, near))
}

fn firewalld_is_loaded_and_reloaded() {
    let Some((bed, near)) = begin("firewalld") else { return };
    passes(&bed, &near, "before", true);
    rules(&bed, NEAR, FIREWALLD);
    // Its zone `internal` rejects connections to this machine.
    passes(&bed, &near, "firewalld", false);
    assert!(
        cause(&near).contains("nft insert rule inet firewalld filter_INPUT meta mark"),
        "{}",
        cause(&near)
    );
    remedy(&bed, &near);
    // Firewalld does not forward packets from an interface without a zone either.
    let took = waits_for("another cause", || {
        gets_through(&bed, "firewalld, while it tries again");
        cause_or_none(&near).contains("filter_FORWARD")
    });
    eprintln!("note: the second cause is told after {took:?}");
    assert!(took < 2 * AT_MOST, "{took:?}");
    passes(&bed, &near, "firewalld, input accepted", false);
    assert!(
        cause(&near).contains("nft insert rule inet firewalld filter_FORWARD iifname sky-near"),
        "{}",
        cause(&near)
    );
    remedy(&bed, &near);
    passes(&bed, &near, "firewalld, both accepted", true);
    // The remedies also cover firewalld's reverse path filter for IPv6.
    let v6 = SocketAddr::new("fd02::2".parse().expect("an address"), server().port());
    let served = listen(&bed, v6);
    let serves = std::thread::spawn(move || {
        let (mut s, _) = served.accept().expect("accepts");
        let mut room = [0; 5];
        s.read_exact(&mut room).and_then(|()| s.write_all(&room)).expect("answers");
    });
    let before = near.count("from-hosts");
    exchanges(&bed, v6).expect("is answered");
    serves.join().expect("serves");
    assert_eq!(near.count("from-hosts"), before + 1, "IPv6 is split as well");
    // A reload takes the remedies away.
    rules(&bed, NEAR, &format!("delete table inet firewalld\n{FIREWALLD}"));
    passes(&bed, &near, "firewalld reloaded", false);
    rules(&bed, NEAR, "delete table inet firewalld");
    passes(&bed, &near, "firewalld stopped", true);
    near.stop();
}

fn docker_drops_what_is_forwarded() {
    let Some((bed, near)) = begin("docker") else { return };
    rules(&bed, NEAR, DOCKER);
    passes(&bed, &near, "docker", false);
    remedy(&bed, &near);
    passes(&bed, &near, "docker with the remedy", true);
    near.stop();
}

/// Fills the kernel's table of connections of the calling thread's namespace by NFNETLINK (ctnetlink). Returns whether it is full; a table for
/// more than a million entries is not filled.
fn fill_table() -> bool {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"))
            .unwrap_or_default();
        text.trim().parse::<u32>().unwrap_or(0)
    };
    let most = read("max");
    if most == 0 || most > 1_000_000 {
        return false;
    }
    let attribute = |kind: u16, content: &[u8]| {
        let mut a = ((content.len() + 4) as u16).to_ne_bytes().to_vec();
        a.extend(kind.to_ne_bytes());
        a.extend(content);
        a.resize(a.len().next_multiple_of(4), 0);
        a
    };
    const NESTED: u16 = 1 << 15;
    // CTA_TUPLE_IP and CTA_TUPLE_PROTO of UDP.
    let tuple = |kind: u16, ips: [u32; 2], ports: [u16; 2]| {
        let ip = [attribute(1, &ips[0].to_be_bytes()), attribute(2, &ips[1].to_be_bytes())].concat();
        let [from, to] = ports.map(u16::to_be_bytes);
        let proto = [attribute(1, &[17]), attribute(2, &from), attribute(3, &to)].concat();
        attribute(kind | NESTED, &[attribute(1 | NESTED, &ip), attribute(2 | NESTED, &proto)].concat())
    };
    let fd =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkNetFilter)
            .expect("a socket");
    // CTA_STATUS: replies seen, assured, confirmed, so that the kernel evicts no entry. CTA_TIMEOUT: 600 s.
    let (status, timeout) = (attribute(3, &0xe_u32.to_be_bytes()), attribute(7, &600_u32.to_be_bytes()));
    let (mut n, mut full) = (0_u32, false);
    while !full {
        let mut batch = Vec::new();
        for _ in 0..200 {
            n += 1;
            let ips = [0x0a64_0000 + (n >> 15), 0x0a65_0001];
            let ports = [(n & 0x7fff) as u16 + 1024, 9];
            let content = [
                vec![2, 0, 0, 0],
                tuple(1, ips, ports),
                tuple(2, [ips[1], ips[0]], [ports[1], ports[0]]),
                status.clone(),
                timeout.clone(),
            ]
            .concat();
            // IPCTNL_MSG_CT_NEW of NFNL_SUBSYS_CTNETLINK, with NLM_F_REQUEST, NLM_F_CREATE and NLM_F_EXCL.
            batch.extend(((content.len() + 16) as u32).to_ne_bytes());
            batch.extend((1_u16 << 8).to_ne_bytes());
            batch.extend(0x601_u16.to_ne_bytes());
            batch.extend([0; 8]);
            batch.extend(content);
        }
        sendto(fd.as_raw_fd(), &batch, &NetlinkAddr::new(0, 0), MsgFlags::empty()).expect("sends");
        // The kernel answers only requests that it refuses.
        full = recv(fd.as_raw_fd(), &mut [0; 1 << 16], MsgFlags::MSG_DONTWAIT).is_ok() || n > most + 1000;
    }
    read("count") >= most
}

fn a_full_table_of_connections() {
    let Some((bed, near)) = begin("crowded") else { return };
    passes(&bed, &near, "before", true);
    if !bed.spaces[NEAR].within(fill_table).expect("enters") {
        skyhaul_testkit::need::skip("nf_conntrack_max", "the kernel's table of connections cannot be filled");
        return;
    }
    // Nobody but the gateway uses the table, and the gateway then does without it.
    passes(&bed, &near, "a full table", true);
    // A firewall that asks for states needs the table: packets that it drops would be dropped without a gateway as well.
    rules(
        &bed,
        NEAR,
        "table inet filter { chain forward { type filter hook forward priority filter; ct state invalid drop; }; }",
    );
    let took = waits_for("the cause", || {
        cause_or_none(&near).contains("the kernel's table of connections is full (")
    });
    eprintln!("note: the cause of a full table is told after {took:?}");
    assert!(!examined(&bed).is_ok() && state(&near) != "works");
    rules(&bed, NEAR, "delete table inet filter");
    passes(&bed, &near, "without the firewall", true);
    near.stop();
}

fn interfaces_vanish_and_return() {
    let Some(bed) = Bed::fast("vanish") else { return };
    serve(&bed);
    let near = bed.gateway(NEAR, "");
    waits_for("its own connection", || state(&near) == "works");
    passes(&bed, &near, "before", true);
    for (name, address, route) in [("sat0", "10.9.0.1/24", "10.2.0.0/24"), ("lan0", "10.1.0.1/24", "")] {
        // The interface moves to another namespace, from which it returns.
        let away = "unshare -n sh -c 'echo $$; exec sleep 60' > away 2>&1 & sleep 0.5";
        let folder = bed.folder.display();
        sh(&bed, NEAR, &format!("cd {folder}; {away}; ip link set {name} netns $(cat away)"));
        let took = waits_for("the end of interception", || !admits(&near) && state(&near) == "withdrawn");
        eprintln!("note: {name} is missed after {took:?}");
        assert!(took < AT_MOST, "{took:?}");
        assert!(cause(&near).contains(name), "{}", cause(&near));
        sh(
            &bed,
            NEAR,
            &format!("cd {folder}; nsenter -t $(cat away) -n ip link set {name} netns {}", near.child.id()),
        );
        let ipv4 = "/proc/sys/net/ipv4";
        sh(
            &bed,
            NEAR,
            &format!(
                "kill $(cat {folder}/away); ip addr add {address} dev {name}; echo 1 > {ipv4}/conf/{name}/proxy_arp; echo 0 > \
                 {ipv4}/neigh/{name}/proxy_delay; ip link set {name} up"
            ),
        );
        if !route.is_empty() {
            sh(&bed, NEAR, &format!("ip route add {route} dev {name}"));
        }
        passes(&bed, &near, &format!("{name} is back"), true);
    }
    near.stop();
}

/// A second link between the routers, over which nothing is routed yet.
fn second_link(bed: &Bed) {
    wire([(&bed.spaces[NEAR], "bak0", &[("10.8.0.1", 24)]), (&bed.spaces[FAR], "bak0", &[("10.8.0.2", 24)])]);
}

fn a_route_moves_to_another_link() {
    let Some((bed, near)) = begin("moves") else { return };
    second_link(&bed);
    passes(&bed, &near, "before", true);
    for (at, network) in [(NEAR, "10.2.0.0/24"), (FAR, "10.1.0.0/24")] {
        sh(&bed, at, &format!("ip route replace {network} dev bak0"));
    }
    // Connections that leave by the other link are not split.
    gets_through(&bed, "over the other link");
    let before = near.count("from-hosts");
    gets_through(&bed, "over the other link");
    assert_eq!(near.count("from-hosts"), before);
    for (at, network) in [(NEAR, "10.2.0.0/24"), (FAR, "10.1.0.0/24")] {
        sh(&bed, at, &format!("ip route replace {network} dev sat0"));
    }
    passes(&bed, &near, "over the link again", true);
    near.stop();
}

fn addresses_are_renewed() {
    let Some((bed, near)) = begin("renewed") else { return };
    for (name, address, other, route) in [
        ("sat0", "10.9.0.1/24", "10.9.0.7/24", "ip route replace 10.2.0.0/24 dev sat0"),
        ("lan0", "10.1.0.1/24", "10.1.0.7/24", "true"),
    ] {
        // A client of DHCP whose lease has expired does this.
        sh(
            &bed,
            NEAR,
            &format!("ip addr del {address} dev {name}; sleep 1; ip addr add {address} dev {name}; {route}"),
        );
        passes(&bed, &near, &format!("the address of {name} is there again"), true);
        sh(&bed, NEAR, &format!("ip addr del {address} dev {name}; ip addr add {other} dev {name}; {route}"));
        passes(&bed, &near, &format!("another address of {name}"), true);
    }
    near.stop();
}

fn rules_of_routing_lead_elsewhere() {
    let Some((bed, near)) = begin("policy") else { return };
    second_link(&bed);
    let ip = |line: &str| sh(&bed, NEAR, line);
    // Rules that lead hosts over the link, as the main table does, at priorities before the main table and that of a VRF (1000).
    ip("ip route add 10.2.0.0/24 dev sat0 table 100; ip rule add pref 100 from 10.1.0.0/24 lookup 100");
    passes(&bed, &near, "a rule for hosts", true);
    ip("ip rule del pref 100; ip rule add pref 1000 iif lan0 lookup 100");
    passes(&bed, &near, "a rule for their interface", true);
    // A table for the legs over the link alone.
    ip("ip rule del pref 1000; ip rule add pref 100 iif sky-near lookup 100");
    passes(&bed, &near, "a rule for the legs over the link", true);
    // A table that leads those legs, and their answers, over another link.
    ip(
        "ip route add 10.2.0.0/24 dev bak0 table 101; ip rule del pref 100; ip rule add pref 100 iif sky-near lookup 101",
    );
    sh(&bed, FAR, "ip route replace 10.1.0.0/24 dev bak0");
    passes(&bed, &near, "legs that leave elsewhere", false);
    assert!(cause(&near).contains("leave by another interface than sat0"), "{}", cause(&near));
    ip("ip rule del pref 100");
    sh(&bed, FAR, "ip route replace 10.1.0.0/24 dev sat0");
    passes(&bed, &near, "without the rule", true);
    // Connections of hosts whose route by source leads over another link are not split.
    ip("ip rule add pref 100 from 10.1.0.0/24 lookup 101");
    gets_through(&bed, "hosts that are led elsewhere");
    let before = near.count("from-hosts");
    gets_through(&bed, "hosts that are led elsewhere");
    assert_eq!(near.count("from-hosts"), before);
    ip("ip rule del pref 100");
    passes(&bed, &near, "hosts that are led over the link", true);
    near.stop();
}

fn settings_and_its_own_interface_are_restored() {
    let Some((bed, near)) = begin("settings") else { return };
    passes(&bed, &near, "before", true);
    for line in [
        "echo 1 > /proc/sys/net/ipv4/tcp_early_demux",
        "echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter; echo 1 > /proc/sys/net/ipv4/conf/sky-near/rp_filter",
        "ip link del skt-near",
        "ip rule flush; ip rule add pref 32766 lookup main",
    ] {
        sh(&bed, NEAR, line);
        passes(&bed, &near, line, true);
    }
    near.stop();
}
