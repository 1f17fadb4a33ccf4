//! What two gateways that repair datagrams gain for what they cannot split.

use crate::bed::{Bed, CLIENT, NEAR, Running, SERVER};
use crate::{SILENCE, download_from, geo, quic, serve};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file of a gateway, which splits nothing; `keys` are added to `[repair]`.
fn file(at: usize, keys: &str) -> String {
    let peer = if at == NEAR { "10.9.0.2" } else { "10.9.0.1" };
    format!(
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"10.38 Mbit/s\"\n[split]\nports = [1]\n[repair]\n\
         peer = \"{peer}\"\nkey = \"the key of a measurement between two gateways\"\n{keys}"
    )
}

fn gateways(bed: &Bed, keys: &str) -> [Running; 2] {
    let both = [NEAR, crate::FAR].map(|at| bed.gateway_for(at, &file(at, keys)));
    while !both.iter().all(|g| g.status()["repair"]["repairs"] == true) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    both
}

/// The median of runs.
fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Shares of the bytes that the far gateway has sent: symbols and repeats, and headers.
fn overhead(far: &Running) -> [f64; 2] {
    let totals = far.status()["repair"]["totals"].clone();
    let of = |key: &str| totals[key].as_f64().unwrap_or(f64::NAN);
    [of("repair-bytes") / of("source-bytes"), of("header-bytes") / of("source-bytes")]
}

/// One-way delays of datagrams of 1 Mbit/s from the client, seconds: 99th percentile above the least; and the share that is lost.
fn datagrams(bed: &Bed, seconds: f64) -> [f64; 2] {
    const SIZE: usize = 1000;
    let socket = |at: usize, bind: &str| {
        bed.spaces[at].within(|| UdpSocket::bind(bind).expect("binds")).expect("enters")
    };
    let (from, to) = (socket(CLIENT, "0.0.0.0:0"), socket(SERVER, "10.2.0.2:7009"));
    to.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("sets");
    let over = AtomicBool::new(false);
    let number = (seconds * 1e6 / (SIZE as f64 * 8.0)) as u32;
    let mut delays: Vec<f64> = std::thread::scope(|s| {
        let sink = s.spawn(|| {
            let (mut got, mut room) = (Vec::new(), [0; 2 * SIZE]);
            while !over.load(Ordering::Relaxed) {
                while to.recv(&mut room).is_ok() {
                    let sent = u64::from_be_bytes(room[..8].try_into().expect("eight"));
                    got.push((Clock::now().as_nanos() - sent) as f64 / 1e9);
                }
            }
            got
        });
        let began = Clock::now();
        let mut datagram = [7; SIZE];
        for n in 0..number {
            let at: Instant = began + Duration::from_secs_f64(f64::from(n) * seconds / f64::from(number));
            let wait = at.since(Clock::now()).as_nanos();
            std::thread::sleep(std::time::Duration::from_nanos(wait));
            datagram[..8].copy_from_slice(&Clock::now().as_nanos().to_be_bytes());
            let _ = from.send_to(&datagram, "10.2.0.2:7009");
        }
        std::thread::sleep(std::time::Duration::from_secs(3));
        over.store(true, Ordering::Relaxed);
        sink.join().expect("receives")
    });
    delays.sort_by(f64::total_cmp);
    let least = delays.first().copied().unwrap_or(f64::NAN);
    let p99 = delays.get(delays.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    [p99 - least, 1.0 - delays.len() as f64 / f64::from(number)]
}

/// Prints the table; each value is the median of `runs` runs. `alone`: without the routers that only forward.
pub(crate) fn table(seconds: f64, runs: usize, alone: bool, keys: &str) {
    println!(
        "\ndatagrams over GEO, with two gateways that repair them and with routers that forward them; median of {runs}"
    );
    println!(
        "gateways  loss     kernel CUBIC Mbit/s   QUIC (CUBIC) Mbit/s   datagrams: p99 above least ms   lost     symbols and repeats   headers   late"
    );
    let time = std::time::Duration::from_secs_f64(seconds);
    for loss in [0.0, 1e-3, 1e-2] {
        for repair in [false, true].into_iter().filter(|repair| *repair || !alone) {
            let counters = [&crate::bed::CARRIED, &crate::bed::LATE];
            counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
            let mut columns: [Vec<f64>; 6] = Default::default();
            for _ in 0..runs {
                let Some(bed) = Bed::new("repair", geo(loss)) else { return };
                let both = repair.then(|| gateways(&bed, keys));
                serve(&bed);
                let download = || download_from(2, SILENCE, seconds, usize::MAX, &|_| {});
                let (bytes, took) = bed.spaces[CLIENT].within(download).expect("enters");
                let mbit = |bytes: f64, seconds: f64| bytes * 8.0 / seconds / 1e6;
                columns[0].push(mbit(bytes as f64, took));
                columns[1].push(mbit(quic::download(&bed, time) as f64, seconds));
                let [symbols, headers] = both.as_ref().map_or([0.0; 2], |[_, far]| overhead(far));
                let [p99, lost] = datagrams(&bed, seconds);
                for (column, value) in columns[2..].iter_mut().zip([p99 * 1e3, lost, symbols, headers]) {
                    column.push(value);
                }
            }
            let [tcp, quic, p99, lost, symbols, headers] = columns.map(median);
            let [carried, late] = counters.map(|c| c.load(Ordering::Relaxed) as f64);
            println!(
                "{:<9} {loss:<6} {tcp:>20.2} {quic:>21.2} {p99:>31.0} {lost:>7.4} {symbols:>21.4} {headers:>9.4} {:>6.4}",
                if repair { "repair" } else { "none" },
                late / carried
            );
        }
    }
}
