//! SYNs from addresses that nobody has, and clients over a path of 40 ms that want to be served meanwhile.

use super::{Outcome, Run};
use crate::bed::{self, Path, Server, Stranger};
use crate::client::{self, Answer};
use crate::finding::Finding;
use crate::stop;
use crate::syn::syn;
use skyhaul_base::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LINKS: &str = "[links.sat]\nrate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"1000 packets\"";
/// SYNs per second: few enough that the interface's queue, which is not the stack's, drops none of them.
const RATE: f64 = 50_000.0;
/// Time between two genuine clients.
const GAP: Duration = Duration::from_millis(50);
const BYTES: usize = 20_000;

pub fn play(run: &Run) -> Outcome {
    let wanted: u32 = run.choose(1_000_000, 30_000);
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |_| {})?;
    let path = Path::new(&ns, LINKS)?;
    let stranger = Stranger::new(&ns)?;
    let clients = &path.clients;
    let over = AtomicBool::new(false);
    let calm = genuine(clients, run.choose(50, 10), &over)?;
    let (sent, answers, most_half, most_bytes, flooded) = std::thread::scope(|scope| -> Result<_, String> {
        let attack = scope.spawn(|| {
            let done = attack(&stranger, wanted);
            over.store(true, Ordering::Relaxed);
            done
        });
        let asks = scope.spawn(|| genuine(clients, usize::MAX, &over));
        let (mut half, mut bytes) = (0, 0);
        while !over.load(Ordering::Relaxed) {
            let s = server.snapshot()?;
            (half, bytes) = (half.max(s.half_open), bytes.max(s.table_bytes[0]));
            bed::sleep(Duration::from_millis(100));
        }
        let (sent, answers) = attack.join().map_err(|_| "the flood failed")?;
        Ok((sent, answers, half, bytes, asks.join().map_err(|_| "a client failed")??))
    })?;
    let snapshot = server.snapshot()?;
    let after = if run.long {
        // Half-open connections leave after a minute.
        bed::sleep(Duration::from_secs(65));
        let s = server.snapshot()?;
        vec![
            Finding::at_most("half-open connections a minute later", s.half_open as f64, 0.0, ""),
            Finding::at_most(
                "memory of half-open connections a minute later",
                s.table_bytes[0] as f64,
                65_536.0,
                "bytes",
            ),
        ]
    } else {
        Vec::new()
    };
    server.end()?;
    path.end();
    let [calm_half, flooded_half] = [median(&calm), median(&flooded)];
    let worst = quantile(&flooded, 0.95);
    let c = &snapshot.counts;
    let mut findings = vec![
        Finding::at_least("SYNs from random addresses", f64::from(sent), f64::from(wanted), ""),
        Finding::recorded("answers to these SYNs", answers as f64, ""),
        Finding::recorded("cookies sent", c.cookies_sent as f64, ""),
        Finding::recorded("cookies accepted", c.cookies_taken as f64, ""),
        Finding::at_most("half-open connections, maximum", most_half as f64, 4096.0, ""),
        Finding::at_most(
            "memory of half-open connections, maximum",
            most_bytes as f64,
            4096.0 * 200.0,
            "bytes",
        ),
        Finding::at_most("SYNs dropped because of full tables", c.syns_dropped as f64, 0.0, ""),
        Finding::at_least("genuine clients", flooded.len() as f64, run.choose(50.0, 2.0), ""),
        Finding::at_most(
            "genuine clients not served",
            flooded.iter().filter(|t| t.is_none()).count() as f64,
            0.0,
            "",
        ),
        Finding::recorded("time to first byte without a flood, median", calm_half * 1e3, "ms"),
        Finding::recorded("time to first byte during the flood, median", flooded_half * 1e3, "ms"),
        Finding::at_most(
            "during the flood relative to without, median",
            flooded_half / calm_half,
            2.0,
            "times",
        )
        .timed(),
        Finding::at_most(
            "during the flood, 95th percentile, relative to the median without",
            worst / calm_half,
            2.0,
            "times",
        )
        .timed(),
    ];
    findings.extend(after);
    Ok(findings)
}

/// Times to first byte, seconds, of clients one after the other; `None` for one that was not served.
fn genuine(
    clients: &skyhaul_net::Namespace,
    most: usize,
    over: &AtomicBool,
) -> Result<Vec<Option<f64>>, String> {
    let ask = || {
        let mut all = Vec::new();
        while all.len() < most && !over.load(Ordering::Relaxed) && !stop::requested() {
            all.push(first_byte(all.len() as u32).ok());
            std::thread::sleep(GAP);
        }
        all
    };
    clients.within(ask).map_err(|e| e.to_string())
}
fn first_byte(n: u32) -> io::Result<f64> {
    let began = Instant::now();
    let mut s = client::connect(bed::at(n, bed::HTTP))?;
    client::ask(&mut s, BYTES, true)?;
    let (mut answer, mut room, mut took) = (Answer::to(BYTES), [0; 4096], None);
    while !answer.is_whole() {
        answer.read(&mut s, &mut room)?;
        took.get_or_insert(began.elapsed().as_secs_f64());
    }
    Ok(took.unwrap_or(f64::MAX))
}

/// Sends SYNs at a steady rate; returns how many, and how many answers came.
fn attack(stranger: &Stranger, wanted: u32) -> (u32, u64) {
    let mut rng = Rng::stream(11, "flood");
    let (began, mut sent, mut answers) = (Instant::now(), 0, 0);
    while sent < wanted && !stop::requested() {
        let due = (began.elapsed().as_secs_f64() * RATE) as u32;
        // At most a burst at once, however late the thread is.
        for _ in 0..due.saturating_sub(sent).min(500).min(wanted - sent) {
            // Of 32.0.0.0/3: all of it global unicast.
            let address = 0x2000_0000 + rng.below(0x2000_0000) as u32;
            let from = SocketAddr::from((address.to_be_bytes(), 1 + rng.below(65_000) as u16));
            stranger.say(&syn(from, bed::at(sent, bed::HTTP), rng.next_u64() as u32, sent % 2 == 0));
            sent += 1;
        }
        answers += stranger.hear();
        std::thread::sleep(Duration::from_millis(1));
    }
    (sent, answers + stranger.hear())
}
fn median(times: &[Option<f64>]) -> f64 {
    quantile(times, 0.5)
}
fn quantile(times: &[Option<f64>], q: f64) -> f64 {
    let mut all: Vec<f64> = times.iter().map(|t| t.unwrap_or(f64::MAX)).collect();
    all.sort_by(f64::total_cmp);
    all.get(((all.len() as f64 * q) as usize).min(all.len().saturating_sub(1))).copied().unwrap_or(f64::MAX)
}
