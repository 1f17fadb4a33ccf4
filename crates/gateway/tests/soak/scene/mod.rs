//! The scenes of the soak test.

mod clocks;
mod flood;
mod hostile;
mod killed;
mod memory;
mod pressure;
mod slow;
mod steady;
mod strangers;
mod transfers;

pub use crate::program::Run;
pub use crate::record::Outcome;

use crate::bed::{Bed, FAR, Link, NEAR, Noise, Running};
use crate::finding::Finding;
use crate::machine;
use crate::program::Scene;
use crate::transfer::{Server, Tally};
use skyhaul_base::Duration;
use std::sync::atomic::{AtomicBool, Ordering};

/// All scenes, in the order of their runs. Their results share a folder with those of the host's scenes.
pub const ALL: &[Scene] = &[
    (
        "gateway-transfers",
        "transfers over a link that loses, repeats, delays, mangles and stalls, some given up by an end",
        transfers::play,
    ),
    ("gateway-killed", "a gateway that is killed while transfers go on, again and again", killed::play),
    (
        "gateway-strangers",
        "transfers while somebody who does not see them forges their packets",
        strangers::play,
    ),
    ("gateway-flood", "SYNs from both sides beside genuine clients", flood::play),
    ("gateway-slow", "clients that hardly read, within a limit of memory", slow::play),
    ("gateway-pressure", "more connections to a server than there are ports", pressure::play),
    ("gateway-memory", "slow readers of far more than the gateways may allocate", memory::play),
    ("gateway-hostile", "servers and clients beyond the link that send nonsense", hostile::play),
    ("gateway-clocks", "gateways that are halted now and then, up for thirty years", clocks::play),
    ("gateway-steady", "everything at once, for a while: memory and descriptors do not grow", steady::play),
];

/// A link with an RTT of 20 ms and every kind of disturbance but forged packets.
fn rough() -> Link {
    let noise = Noise { duplicate: 0.01, reorder: 0.02, corrupt: 0.01, forge: 0.0, stall: 5e-5 };
    Link { delay: Duration::from_millis(10), loss: 0.01, noise, ..Link::default() }
}

/// Keys of the gateways' `[satellite]`: in the short form, keepalives start after 1 s instead of a minute, so that a gateway
/// soon notices that its peer is gone.
fn patience(run: &Run) -> &'static str {
    run.choose("", "endpoint = { keepalive-idle = \"1 s\", keepalive-interval = \"1 s\" }\n")
}

/// A network with two gateways and a server.
struct Stage {
    server: Server,
    gateways: Vec<Running>,
    bed: Bed,
}

impl Stage {
    fn new(name: &str, link: Link, more: &str) -> Result<Self, String> {
        Self::started_by(&[], name, link, more)
    }
    /// The same with gateways that a command starts, which runs the program that is appended to it.
    fn started_by(starter: &[&str], name: &str, link: Link, more: &str) -> Result<Self, String> {
        let bed = Bed::new(name, link).ok_or("there are no namespaces, or no nft")?;
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        let gateways = [NEAR, FAR].into_iter().map(|at| bed.gateway_by(starter, at, &text)).collect();
        Ok(Self { server: Server::new(&bed)?, gateways, bed })
    }
    /// How many of the gateways have ended.
    fn ended(&mut self) -> f64 {
        let over = |g: &mut Running| g.child.try_wait().is_ok_and(|s| s.is_some());
        self.gateways.iter_mut().map(|g| f64::from(u8::from(over(g)))).sum()
    }
    /// Until `over`: the maximum of a gateway's count `key`, and the maximum resident memory of one, bytes.
    fn watch(&self, key: &str, over: &AtomicBool) -> [f64; 2] {
        let [mut most, mut resident] = [0.0_f64; 2];
        while !over.load(Ordering::Relaxed) {
            for g in &self.gateways {
                most = most.max(g.count(key) as f64);
                resident = resident.max(machine::resident_of(g.child.id()));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        [most, resident]
    }
    /// Waits until the gateways have no connections, for at most `patience`; returns how many they have then.
    fn left(&self, patience: std::time::Duration) -> f64 {
        let began = std::time::Instant::now();
        loop {
            let left: u64 = self.gateways.iter().map(|g| g.count("flows")).sum();
            if left == 0 || began.elapsed() > patience {
                for g in self.gateways.iter().filter(|_| left > 0) {
                    println!("  {}", g.ask("list").trim());
                }
                return left as f64;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Findings that apply to all transfers; `broken`: transfers may break.
fn judged(tally: &Tally, server: &Server, broken: bool) -> Vec<Finding> {
    let cut = tally.of(|t| &t.cut) + server.cut.load(Ordering::Relaxed) as f64;
    let mut all = vec![
        Finding::recorded("transfers that arrived whole, equal by SHA-256", tally.of(|t| &t.whole), ""),
        Finding::recorded(
            "given up by an end, and seen by the other as an error",
            tally.of(|t| &t.aborted),
            "",
        ),
        Finding::at_most("cut short by an end of stream that looks in order", cut, 0.0, ""),
        Finding::at_most("with other bytes than were sent", tally.of(|t| &t.wrong), 0.0, ""),
        Finding::recorded("bytes carried", tally.of(|t| &t.bytes) / 1e6, "MB"),
    ];
    let b = tally.of(|t| &t.broken);
    all.push(if broken {
        Finding::recorded("broken with an error", b, "")
    } else {
        Finding::at_most("broken though no end gave up", b, 0.0, "")
    });
    all
}
