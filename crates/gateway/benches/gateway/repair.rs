//! What two gateways that repair datagrams gain for what they cannot split.

use crate::bed::{Bed, CLIENT, NEAR, Running, SERVER};
use crate::tunnel::{HERE, Missing, THERE, Tunnel};
use crate::{SILENCE, download_between, geo, live, quic, serve, serve_at};
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

pub(crate) fn gateways(bed: &Bed, keys: &str) -> [Running; 2] {
    let both = [NEAR, crate::FAR].map(|at| bed.gateway_for(at, &file(at, keys)));
    while !both.iter().all(|g| g.status()["repair"]["repairs"] == true) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    both
}

/// The median of each column, as wide and with as many digits as said, and "–" where nothing was measured.
pub(crate) fn cells<const N: usize>(columns: [Vec<f64>; N], widths: [(usize, usize); N]) -> String {
    let cell = |(column, (width, digits))| match median(column) {
        Some(value) => format!("{value:>width$.digits$}"),
        None => format!("{:>width$}", "–"),
    };
    columns.into_iter().zip(widths).map(cell).collect()
}
/// The median of runs; `None` without any.
fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
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

/// What is measured of each case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// TCP of the kernel, which the gateways do not split.
    Kernel,
    Quic,
    /// TCP of the kernel in a tunnel of WireGuard.
    WireGuard,
    /// TCP of the kernel in ESP.
    Ipsec,
    Datagrams,
    /// Queries and answers of DNS.
    Dns,
    /// A telephone call.
    Rtp,
}

/// The columns by the names that `--only` takes.
const COLUMNS: [(&str, Column); 7] = [
    ("kernel", Column::Kernel),
    ("quic", Column::Quic),
    ("wireguard", Column::WireGuard),
    ("ipsec", Column::Ipsec),
    ("datagrams", Column::Datagrams),
    ("dns", Column::Dns),
    ("rtp", Column::Rtp),
];

/// What is measured.
#[derive(Default)]
pub(crate) struct Choice {
    /// No routers that only forward.
    pub(crate) alone: bool,
    /// Keys of `[repair]` in addition.
    pub(crate) keys: String,
    /// Names of columns, separated by commas; `None` for all.
    pub(crate) columns: Option<String>,
    /// Losses, separated by commas.
    pub(crate) losses: Option<String>,
}

impl Choice {
    fn columns(&self) -> Result<Vec<Column>, String> {
        let Some(text) = &self.columns else { return Ok(COLUMNS.map(|(_, c)| c).into()) };
        let of = |name: &str| COLUMNS.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
        let known = || COLUMNS.map(|(n, _)| n).join(", ");
        text.split(',')
            .map(|n| of(n).ok_or_else(|| format!("--only: {n:?} is no column: write some of {}", known())))
            .collect()
    }
    fn losses(&self) -> Result<Vec<f64>, String> {
        let Some(text) = &self.losses else { return Ok(vec![0.0, 1e-3, 1e-2]) };
        let of = |t: &str| t.parse().ok().filter(|p| (0.0..1.0).contains(p));
        text.split(',')
            .map(|t| of(t).ok_or_else(|| format!("--loss: {t:?} is no probability: write such as 1e-3,1e-2")))
            .collect()
    }
}

/// Goodput of a download through the gateways, Mbit/s, between these addresses of the client and the server.
pub(crate) fn goodput(bed: &Bed, between: [[u8; 4]; 2], seconds: f64) -> f64 {
    let download = || download_between(between, SILENCE, seconds, usize::MAX, &|_| {});
    let (bytes, took) = bed.spaces[CLIENT].within(download).expect("enters");
    bytes as f64 * 8.0 / took / 1e6
}
/// As [`goodput`], in a tunnel.
fn inside(bed: &Bed, tunnel: Result<Tunnel<'_>, Missing>, seconds: f64) -> Result<f64, Missing> {
    let _tunnel = tunnel?;
    serve_at(bed, THERE);
    Ok(goodput(bed, [HERE, THERE], seconds))
}

/// Prints the tables that are wanted.
pub(crate) fn tables(seconds: f64, runs: usize, choice: &Choice) {
    let (chosen, losses) = match (choice.columns(), choice.losses()) {
        (Ok(columns), Ok(losses)) => (columns, losses),
        (Err(e), _) | (_, Err(e)) => {
            eprintln!("{e}");
            std::process::exit(2);
        }
    };
    let is_live = |c: &&Column| matches!(c, Column::Dns | Column::Rtp);
    if !chosen.iter().all(|c| is_live(&c)) {
        table(seconds, runs, choice, &chosen, &losses);
    }
    if chosen.iter().any(|c| is_live(&c)) {
        live::table(seconds, runs, choice, &chosen, &losses);
    }
}

/// Prints the table; each value is the median of `runs` runs, and "–" where nothing was measured.
fn table(seconds: f64, runs: usize, choice: &Choice, chosen: &[Column], losses: &[f64]) {
    let wants = |column| chosen.contains(&column);
    println!(
        "\ndatagrams over GEO, with two gateways that repair them and with routers that forward them; median of {runs}"
    );
    println!(
        "gateways  loss     CUBIC, Mbit/s: kernel    QUIC   in WireGuard   in ESP   datagrams: p99 above least ms    lost   symbols and repeats   headers   late"
    );
    let time = std::time::Duration::from_secs_f64(seconds);
    let mut lacks: Vec<String> = Vec::new();
    for &loss in losses {
        for repair in [false, true].into_iter().filter(|repair| *repair || !choice.alone) {
            let counters = [&crate::bed::CARRIED, &crate::bed::LATE];
            counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
            let mut columns: [Vec<f64>; 8] = Default::default();
            for _ in 0..runs {
                let Some(bed) = Bed::new("repair", geo(loss)) else { return };
                let both = repair.then(|| gateways(&bed, &choice.keys));
                if wants(Column::Kernel) {
                    serve(&bed);
                    columns[0].push(goodput(&bed, [[10, 1, 0, 2], [10, 2, 0, 2]], seconds));
                }
                if wants(Column::Quic) {
                    columns[1].push(quic::download(&bed, time) as f64 * 8.0 / seconds / 1e6);
                }
                for (n, column, name) in [(2, Column::WireGuard, "WireGuard"), (3, Column::Ipsec, "ESP")] {
                    if !wants(column) {
                        continue;
                    }
                    let tunnel = if n == 2 { Tunnel::wireguard(&bed) } else { Tunnel::esp(&bed) };
                    match inside(&bed, tunnel, seconds) {
                        Ok(rate) => columns[n].push(rate),
                        Err(Missing { need, why }) => {
                            let line = format!("no {name}: {need}: {why}");
                            if !lacks.contains(&line) {
                                lacks.push(line);
                            }
                        }
                    }
                }
                if let Some([_, far]) = &both
                    && columns[..4].iter().any(|c| !c.is_empty())
                {
                    let [symbols, headers] = overhead(far);
                    columns[6].push(symbols);
                    columns[7].push(headers);
                }
                if wants(Column::Datagrams) {
                    let [p99, lost] = datagrams(&bed, seconds);
                    columns[4].push(p99 * 1e3);
                    columns[5].push(lost);
                }
            }
            let [carried, late] = counters.map(|c| c.load(Ordering::Relaxed) as f64);
            let widths = [(18, 2), (8, 2), (15, 2), (9, 2), (34, 0), (8, 4), (22, 4), (10, 4)];
            let values = cells(columns, widths);
            println!(
                "{:<9} {loss:<13} {values} {:>6.4}",
                if repair { "repair" } else { "none" },
                late / carried
            );
        }
    }
    lacks.iter().for_each(|line| println!("{line}"));
}
