//! SYN floods from unused addresses, from the terrestrial side and from the link.

use super::{Outcome, Run, Stage, judged};
use crate::bed::{CLIENT, Link, NEAR};
use crate::finding::Finding;
use crate::stop;
use crate::syn::syn;
use crate::transfer::{Aborts, PORT, Tally, TransferSpec, crowd};
use skyhaul_base::{Duration, Rng};
use skyhaul_net::tun::{Tun, TunConfig};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// SYNs per second from each side.
const RATE: u64 = 5000;

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(200_000, 5000);
    let link = Link { delay: Duration::from_millis(10), ..Link::default() };
    let stage = Stage::new("flood", link, "[limits]\nflows = 2000\n")?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let [flows, resident] = std::thread::scope(|s| -> Result<[f64; 2], String> {
        let clients = s.spawn(|| {
            crowd(&stage.bed, 4, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed))
                    .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 50_000.0) })
            })
        });
        // One attacker among the hosts, and one on the machine of the near gateway, which forwards its packets over the link to the far one.
        let attack = s.spawn(|| {
            let done = std::thread::scope(|s| {
                let hosts = s.spawn(|| attack(&stage, CLIENT, 1, wanted / 2));
                let done = attack(&stage, NEAR, 2, wanted / 2);
                hosts.join().map_err(|_| "the flood failed".to_owned()).and_then(|d| d).and(done)
            });
            over.store(true, Ordering::Relaxed);
            done
        });
        let most = stage.watch("flows", &over);
        attack.join().map_err(|_| "the flood failed")??;
        clients.join().map_err(|_| "a client failed")??;
        Ok(most)
    })?;
    let mut findings = vec![
        Finding::recorded("SYNs from nobody", wanted as f64, ""),
        // 2000, and the 256 that one turn accepts before the rules change.
        Finding::at_most("most connections of a gateway, of 2000", flows, 2256.0, ""),
        Finding::at_most("most resident memory of a gateway", resident / 1e6, 200.0, "MB"),
        Finding::at_least("transfers of genuine clients that arrived whole", tally.of(|t| &t.whole), 1.0, ""),
    ];
    findings.extend(judged(&tally, &stage.server, false));
    Ok(findings)
}

/// Sends SYNs to the server from an interface of a namespace.
fn attack(stage: &Stage, at: usize, seed: u64, wanted: u64) -> Result<(), String> {
    let config = TunConfig {
        name: Some("evil0".into()),
        addresses: vec![(IpAddr::from([10, 66, seed as u8, 1]), 24)],
        mtu: 1500,
        offload: false,
    };
    let tun = stage.bed.spaces[at]
        .within(|| Tun::open(&config))
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())?;
    for interface in ["all", "evil0"] {
        let key = format!("net/ipv4/conf/{interface}/rp_filter");
        stage.bed.spaces[at].sysctl(&key, "0").map_err(|e| e.to_string())?;
    }
    let mut rng = Rng::stream(seed, "flood");
    for n in 0..wanted {
        if stop::requested() {
            break;
        }
        let from = IpAddr::from([10, 66, seed as u8, 2 + rng.below(250) as u8]);
        let to = IpAddr::from([10, 2, 0, 2]);
        let client = SocketAddr::new(from, 1024 + rng.below(60_000) as u16);
        let _ = tun.write(&syn(client, SocketAddr::new(to, PORT), rng.next_u64() as u32, n % 2 == 0));
        if n % (RATE / 100) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    Ok(())
}
