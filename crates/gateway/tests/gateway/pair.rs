//! A pair of gateways with addresses that move between them, as keepalived moves them (VRRP) by what `status --check` says.

use crate::bed::{Bed, CLIENT, FAR, NEAR, Running, SERVER, wire};
use crate::{exchange, listen, server};
use skyhaul_gateway::status::Status;
use skyhaul_net::Namespace;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const ALL: [(&str, fn()); 1] = [("the_second_gateway_takes_over", the_second_gateway_takes_over)];

/// The second box at the side of the client, and a switch on each side of the pair.
const SECOND: usize = 4;
const SWITCH: usize = 5;
/// The addresses that move, each with the interface that has it.
const MOVING: [(&str, &str); 2] = [("10.1.0.254/32", "lan0"), ("10.9.0.254/32", "sat0")];
/// The file of both boxes.
const FILE: &str = "[terrestrial]\ninterface = \"lan0\"\nnetworks = [\"10.1.0.0/24\"]\n[satellite]\ninterface = \"sat0\"\nnetworks = [\"10.2.0.0/24\"]\n";

fn sh(space: &Namespace, line: &str) {
    let run = || Command::new("sh").args(["-ec", line]).status().is_ok_and(|s| s.success());
    assert!(space.within(run).expect("enters"), "{line}");
}

/// The network: the client and both boxes at one switch, both boxes and the far gateway at another.
fn lay() -> Option<Bed> {
    let bed = Bed::bare("pair", 6)?;
    let at = |n: usize| &bed.spaces[n];
    for (space, name, address, port) in [
        (CLIENT, "c0", "10.1.0.2", "p0"),
        (NEAR, "lan0", "10.1.0.11", "p1"),
        (SECOND, "lan0", "10.1.0.12", "p2"),
        (FAR, "sat0", "10.9.0.2", "q0"),
        (NEAR, "sat0", "10.9.0.11", "q1"),
        (SECOND, "sat0", "10.9.0.12", "q2"),
    ] {
        wire([(at(space), name, &[(address, 24)]), (at(SWITCH), port, &[])]);
    }
    wire([(at(FAR), "lan0", &[("10.2.0.1", 24)]), (at(SERVER), "s0", &[("10.2.0.2", 24)])]);
    // No box answers ARP for another one: the test is about which box is asked.
    for n in 0..=SWITCH {
        sh(at(n), "for f in /proc/sys/net/ipv4/conf/*/proxy_arp; do echo 0 > $f; done");
    }
    for (bridge, ports) in [("lan", "p0 p1 p2"), ("sat", "q0 q1 q2")] {
        let join = format!("for p in {ports}; do ip link set $p master {bridge}; done");
        sh(at(SWITCH), &format!("ip link add {bridge} type bridge; {join}; ip link set {bridge} up"));
    }
    sh(at(CLIENT), "ip route add default via 10.1.0.254");
    sh(at(SERVER), "ip route add default via 10.2.0.1");
    sh(at(FAR), "ip route add 10.1.0.0/24 via 10.9.0.254");
    for n in [NEAR, SECOND] {
        sh(at(n), "ip route add 10.2.0.0/24 via 10.9.0.2");
    }
    Some(bed)
}

/// What keepalived does: the addresses go to one box, and its neighbours learn that (the gratuitous ARP of VRRP).
fn give_addresses_to(bed: &Bed, to: usize) {
    let other = NEAR + SECOND - to;
    for (address, interface) in MOVING {
        sh(&bed.spaces[other], &format!("ip addr del {address} dev {interface} 2>/dev/null || true"));
        sh(&bed.spaces[to], &format!("ip addr add {address} dev {interface}"));
    }
    sh(&bed.spaces[CLIENT], "ip neigh flush dev c0");
    sh(&bed.spaces[FAR], "ip neigh flush dev sat0");
}

/// What `status --check` says of a gateway.
fn is_healthy(bed: &Bed, name: &str) -> bool {
    let answer = skyhaul_gateway::control::ask(&bed.folder, name, "status").unwrap_or_default();
    serde_json::from_str::<Status>(&answer).is_ok_and(|s| s.works())
}

/// Waits until a condition holds; false if it does not within half a minute.
fn becomes(is: impl Fn() -> bool) -> bool {
    (0..1500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is()
    })
}

/// One transfer; the server answers with a digest of 32 bytes and the data. A timeout means that nobody has answered for at least half a
/// minute.
fn transfer() -> std::io::Result<()> {
    let mut s = TcpStream::connect(server())?;
    s.set_read_timeout(Some(Duration::from_secs(30)))?;
    s.write_all(&[7; 50_000])?;
    s.shutdown(Shutdown::Write)?;
    let mut back = Vec::new();
    s.read_to_end(&mut back)?;
    if back.len() == 32 + 50_000 { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Checks that new connections carry all data, and pass this gateway.
fn serves(bed: &Bed, gateway: &Running) {
    let before = gateway.count("from-hosts");
    bed.spaces[CLIENT].within(|| (0..8).for_each(|n| exchange(server(), n, 50_000))).expect("enters");
    assert!(gateway.count("from-hosts") >= before + 8, "they pass the box that has the addresses");
}

fn the_second_gateway_takes_over() {
    let Some(bed) = lay() else { return };
    let (near, second) = (bed.gateway_for(NEAR, FILE), bed.gateway_for(SECOND, FILE));
    let far =
        bed.gateway_for(FAR, "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n");
    let listener = listen(&bed, server());
    std::thread::spawn(move || {
        while let Ok((mut s, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut data = Vec::new();
                if s.read_to_end(&mut data).is_ok() {
                    let _ = s.write_all(&crate::digest(&data)).and_then(|()| s.write_all(&data));
                }
            });
        }
    });
    give_addresses_to(&bed, NEAR);
    assert!(becomes(|| is_healthy(&bed, "near") && is_healthy(&bed, "second")), "both are healthy");
    serves(&bed, &near);

    // The first one is killed under load. Its open connections are reset; none hangs, and new ones go on.
    let over = AtomicBool::new(false);
    let [whole, cut] = [const { AtomicUsize::new(0) }; 2];
    let steps = std::thread::scope(|s| {
        let bed = &bed;
        let load = || {
            while !over.load(Ordering::Relaxed) {
                match transfer() {
                    Ok(()) => whole.fetch_add(1, Ordering::Relaxed),
                    Err(e) => {
                        assert!(
                            !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                            "a black hole: {e}"
                        );
                        cut.fetch_add(1, Ordering::Relaxed)
                    }
                };
            }
        };
        let clients: Vec<_> =
            (0..4).map(|_| s.spawn(move || bed.spaces[CLIENT].within(load).expect("enters"))).collect();
        let loaded = becomes(|| near.count("from-hosts") >= 40);
        near.kill();
        let noticed = becomes(|| !is_healthy(bed, "near"));
        give_addresses_to(bed, SECOND);
        let before = whole.load(Ordering::Relaxed);
        let goes_on = becomes(|| whole.load(Ordering::Relaxed) >= before + 40);
        over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|c| c.join().expect("no black hole"));
        [loaded, noticed, goes_on]
    });
    assert_eq!(steps, [true; 3], "there is load, the first is noticed to be gone, and the load goes on");
    eprintln!("pair: {} transfers whole, {} cut", whole.into_inner(), cut.into_inner());
    serves(&bed, &second);

    // The first gateway comes back. Then the second one loses its link: it runs, but says that it does not work.
    let near = bed.gateway_for(NEAR, FILE);
    assert!(becomes(|| is_healthy(&bed, "near")), "the first is healthy again");
    sh(&bed.spaces[SECOND], "ip link set sat0 down");
    assert!(becomes(|| !is_healthy(&bed, "second")), "the second knows that it does not work");
    give_addresses_to(&bed, NEAR);
    serves(&bed, &near);
    near.stop();
    second.stop();
    far.stop();
}
