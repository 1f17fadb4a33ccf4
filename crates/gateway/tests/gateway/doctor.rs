//! The doctor finds each reason for which a gateway would not work.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use crate::firewall::sh;
use crate::{PORT, calm, listen, server};
use skyhaul_base::Duration;
use skyhaul_gateway::doctor::{self, Finding, Outcome};
use skyhaul_gateway::{Config, Environment};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration as Patience;

pub(crate) const ALL: [(&str, fn()); 4] = [
    ("the_doctor_finds_what_is_wrong", the_doctor_finds_what_is_wrong),
    ("the_doctor_says_where_syns_arrive", the_doctor_says_where_syns_arrive),
    ("the_doctor_proves_the_path", the_doctor_proves_the_path),
    ("the_doctor_proves_as_a_neighbour", the_doctor_proves_as_a_neighbour),
];

const GOOD: &str =
    "name = \"near\"\n[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";

fn config(text: &str) -> Config {
    Config::parse("near.toml", text).expect("is good")
}
fn examine(bed: &Bed, text: &str) -> Vec<Finding> {
    bed.spaces[NEAR].within(|| doctor::examine(&config(text), &bed.folder)).expect("enters")
}
fn wrong(all: &[Finding]) -> Vec<String> {
    all.iter().filter(|f| !f.is_ok()).map(|f| format!("{}: {}", f.what, f.message)).collect()
}

fn the_doctor_finds_what_is_wrong() {
    let Some(bed) = Bed::new("doctor", calm()) else { return };
    assert_eq!(wrong(&examine(&bed, GOOD)), [""; 0]);
    let finds = |text: &str, break_it: &str, mend: &str, part: &str| {
        sh(&bed, NEAR, break_it);
        let all = examine(&bed, text);
        sh(&bed, NEAR, mend);
        let found = all.iter().find(|f| format!("{}: {}", f.what, f.message).contains(part));
        let found = found.unwrap_or_else(|| panic!("{part}: {all:#?}"));
        assert!(found.outcome != Outcome::Good, "{found:?}");
        // Once that is mended, nothing is wrong.
        assert_eq!(wrong(&examine(&bed, GOOD)), [""; 0]);
    };
    let v4 = "name = \"near\"\n[terrestrial]\ninterface = \"lan0\"\nnetworks = [\"10.1.0.0/24\"]\n[satellite]\ninterface = \"sat0\"\nnetworks = [\"10.2.0.0/24\"]\n";
    finds(
        GOOD,
        "sysctl -qw net.ipv4.ip_forward=0",
        "sysctl -qw net.ipv4.ip_forward=1",
        "IPv4 forwarding: is off: sysctl -w net.ipv4.ip_forward=1",
    );
    finds(
        &GOOD.replace("lan0", "lan7"),
        "true",
        "true",
        "terrestrial.interface lan7: there is none of this name",
    );
    finds(
        v4,
        "ip route del 10.2.0.0/24",
        "ip route add 10.2.0.0/24 dev sat0",
        "there is no route to 10.2.0.3",
    );
    finds(
        v4,
        "ip route replace 10.2.0.0/24 dev lan0",
        "ip route replace 10.2.0.0/24 dev sat0",
        "leads over lan0 instead of sat0",
    );
    // The way back to servers is not the way on which they answer, and the source check is strict.
    finds(
        v4,
        "sysctl -qw net.ipv4.conf.sat0.rp_filter=1; ip route replace 10.2.0.0/24 dev lan0",
        "sysctl -qw net.ipv4.conf.sat0.rp_filter=0; ip route replace 10.2.0.0/24 dev sat0",
        "packets from 10.2.0.3 that arrive at sat0 are dropped by the source check",
    );
    finds(
        GOOD,
        "nft 'add table ip theirs; add chain ip theirs FORWARD { type filter hook forward priority 0; policy drop; }'",
        "nft delete table ip theirs",
        "chain ip theirs FORWARD: drops forwarded packets by default",
    );
    let all = bed.spaces[NEAR]
        .within(|| doctor::examine(&config(&GOOD.replace("sat0", "sat7")), &bed.folder))
        .expect("enters");
    assert!(wrong(&all).iter().any(|f| f.contains("satellite.interface sat7")));
}

fn the_doctor_says_where_syns_arrive() {
    let Some(bed) = Bed::new("syns", calm()) else { return };
    let watch = |text: &str, connects: bool| {
        std::thread::scope(|s| {
            let watching = s.spawn(|| {
                let look = || doctor::watch(&config(text), Duration::from_millis(1500));
                bed.spaces[NEAR].within(look).expect("enters")
            });
            std::thread::sleep(Patience::from_millis(500));
            if connects {
                let connect = || TcpStream::connect_timeout(&server(), Patience::from_millis(500)).is_ok();
                bed.spaces[CLIENT].within(connect).expect("enters");
            }
            watching.join().expect("watches")
        })
    };
    let _listener = listen(&bed, server());
    let all = watch(GOOD, true);
    assert_eq!(wrong(&all), [""; 0]);
    assert!(all[0].message.starts_with("1 arrived, 1 of them between"), "{all:?}");
    let all = watch(GOOD, false);
    assert!(wrong(&all)[0].contains("the hosts send nothing through this machine"), "{all:?}");
    // An interface that the file does not name, and networks that it does not name.
    let all = watch(&GOOD.replace("lan0", "sky0"), true);
    assert!(
        wrong(&all)[0]
            .contains("others did at lan0 (1): are the interfaces of [terrestrial] the right ones?"),
        "{all:?}"
    );
    let other = GOOD.replace("\"lan0\"\n", "\"lan0\"\nnetworks = [\"172.16.0.0/12\"]\n");
    let all = watch(&other, true);
    assert!(
        wrong(&all)[0]
            .contains("none is between the networks and ports of the file (0 were for this machine"),
        "{all:?}"
    );
    assert!(!bed.traces(NEAR).contains("skyhaul"), "the table is gone");
}

fn the_doctor_proves_the_path() {
    let Some(bed) = Bed::new("prove", Link { delay: Duration::from_millis(20), ..calm() }) else { return };
    let host: IpAddr = [10, 1, 0, 2].into();
    let environment = Environment {
        folder: bed.folder.clone(),
        file: bed.folder.join("near.toml"),
        keeper: Vec::new(),
        metrics: None,
    };
    let prove = |to: SocketAddr| {
        let prove = || doctor::prove(&config(GOOD), &environment, Some(host), to);
        bed.spaces[NEAR].within(prove).expect("enters")
    };
    let before = bed.traces(NEAR);
    let listener = listen(&bed, server());
    // No gateway runs: one is started for the probe, and splits no connection of hosts.
    let found = prove(server());
    assert!(found.is_ok() && found.message.starts_with("it answered over the link after 0.0"), "{found:?}");
    assert_eq!(listener.accept().expect("accepts").1.ip(), host, "it comes from the host's address");
    assert_eq!(bed.traces(NEAR), before);
    let refused = prove(SocketAddr::new(server().ip(), 9));
    assert!(
        refused.is_ok() && refused.message.contains("nothing listens at port 9, but the path works"),
        "{refused:?}"
    );
    // A gateway that runs sends the probe. If there is another gateway across the link, that one answers.
    let near = bed.gateway(NEAR, "");
    let far = bed.gateway(FAR, "");
    let found = prove(server());
    assert!(found.is_ok() && found.message.starts_with("another gateway answered for it"), "{found:?}");
    assert_eq!(
        (near.count("flows"), near.count("from-hosts")),
        (0, 0),
        "no connection of its own is counted"
    );
    far.stop();
    // Answers take a route that does not lead through this machine.
    sh(&bed, FAR, "ip route replace 10.1.0.2/32 dev lan0");
    let found = prove(server());
    assert!(
        !found.is_ok() && found.message.contains("but the machine itself reaches 10.2.0.2:7000"),
        "{found:?}"
    );
    sh(&bed, FAR, "ip route del 10.1.0.2/32 dev lan0");
    // A chain of another program drops forwarded packets.
    sh(
        &bed,
        NEAR,
        "nft 'add table ip theirs; add chain ip theirs FORWARD { type filter hook forward priority 0; policy drop; }'",
    );
    let found = prove(server());
    assert!(
        !found.is_ok() && found.message.contains("a chain drops forwarded packets of sky-near"),
        "{found:?}"
    );
    sh(&bed, NEAR, "nft 'flush chain ip theirs FORWARD; add rule ip theirs FORWARD iifname sky-near accept'");
    let found = prove(server());
    assert!(
        !found.is_ok() && found.message.contains("answers arrive at sat0 but do not reach sky-near"),
        "{found:?}"
    );
    sh(&bed, NEAR, "nft delete table ip theirs");
    assert!(prove(server()).is_ok());
    // The link carries nothing.
    sh(&bed, FAR, "ip link set sat0 down");
    let found = prove(server());
    assert!(!found.is_ok() && found.message.contains("nothing came back"), "{found:?}");
}

/// Without `--from`, the probe has the address of a host that the kernel has lately found by ARP or by neighbour discovery (RFC 4861).
fn the_doctor_proves_as_a_neighbour() {
    let Some(bed) = Bed::fast("neighbour") else { return };
    // Routes of IPv6 name their routers, since no machine answers neighbour solicitations for others.
    sh(&bed, NEAR, "ip -6 route replace fd02::/64 via fd09::2 dev sat0");
    sh(&bed, FAR, "ip -6 route replace fd01::/64 via fd09::1 dev sat0");
    sh(&bed, SERVER, "ip -6 route replace default via fd02::1 dev s0");
    let environment = Environment {
        folder: bed.folder.clone(),
        file: bed.folder.join("near.toml"),
        keeper: Vec::new(),
        metrics: None,
    };
    for (host, to) in
        [("10.1.0.2", server()), ("fd01::2", SocketAddr::new("fd02::2".parse().expect("an address"), PORT))]
    {
        let prove = || {
            let prove = || doctor::prove(&config(GOOD), &environment, None, to);
            bed.spaces[NEAR].within(prove).expect("enters")
        };
        let host: IpAddr = host.parse().expect("an address");
        let listener = listen(&bed, to);
        let found = prove();
        assert!(!found.is_ok() && found.message.contains("name the address of one with --from"), "{found:?}");
        // Nobody listens there; its address is known afterwards.
        let ask = || TcpStream::connect_timeout(&SocketAddr::new(host, 9), Patience::from_secs(20)).is_err();
        assert!(bed.spaces[NEAR].within(ask).expect("enters"));
        let found = prove();
        assert!(found.is_ok() && found.message.starts_with("it answered over the link"), "{found:?}");
        assert_eq!(listener.accept().expect("accepts").1.ip(), host, "it comes from the host's address");
    }
}
