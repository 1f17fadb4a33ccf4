//! What two gateways that repair datagrams do for what somebody waits for: a telephone call (RTP, RFC 3550) and names (DNS, RFC 1035), alone
//! and beside a download.

use crate::bed::{Bed, CARRIED, CLIENT, LATE, SERVER};
use crate::repair::{Choice, Column, cells, gateways, goodput};
use crate::{geo, serve};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets of G.711 (RFC 3551): 20 ms at 8,000 bytes per second.
const VOICE: usize = 160;
const BETWEEN: Duration = Duration::from_millis(20);
/// The RTP header (RFC 3550 §5.1) without contributing sources.
const HEADER: usize = 12;
/// Interval between queries.
const QUERIES: Duration = Duration::from_millis(100);
/// How long a query waits for its answer: the default of resolv.conf(5).
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Where the server answers queries, and where the client hears the call.
const NAMES: &str = "10.2.0.2:53";
const CALL: &str = "10.1.0.2:5004";

/// A name server, dnsmasq, that knows every name below bench.example.
struct Resolver(Child);

impl Resolver {
    /// `None` if dnsmasq is not installed.
    fn start(bed: &Bed) -> Option<Self> {
        let start = || {
            Command::new("dnsmasq")
                .args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root"])
                .args(["--no-resolv", "--no-hosts", "--bind-interfaces", "--listen-address=10.2.0.2"])
                .args(["--log-facility=/dev/null", "--address=/bench.example/192.0.2.7"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        };
        bed.spaces[SERVER].within(start).expect("enters").ok().map(Self)
    }
}
impl Drop for Resolver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A query for the address of a name that nobody has asked for before.
fn query(id: u16) -> Vec<u8> {
    let mut q = id.to_be_bytes().to_vec();
    // Recursion is desired; one question.
    q.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in [&format!("q{id}"), "bench", "example"] {
        q.push(label.len() as u8);
        q.extend(label.bytes());
    }
    // The end of the name; type A, class IN.
    q.extend([0, 0, 1, 0, 1]);
    q
}
/// The identifier of an answer without an error that has an address.
fn answered(a: &[u8]) -> Option<u16> {
    let header: &[u8; 12] = a.first_chunk()?;
    let good = header[2] & 0x80 != 0 && header[3] & 15 == 0 && header[6..8] != [0, 0];
    good.then(|| u16::from_be_bytes([header[0], header[1]]))
}

fn socket(bed: &Bed, at: usize, bind: &str) -> UdpSocket {
    let socket = bed.spaces[at].within(|| UdpSocket::bind(bind).expect("binds")).expect("enters");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("sets");
    socket
}
/// Calls `send` with 0, 1, 2, … at constant intervals for so many seconds.
fn paced(seconds: f64, interval: Duration, mut send: impl FnMut(u32)) -> u32 {
    let (began, number) = (Clock::now(), (seconds / interval.as_secs_f64()) as u32);
    for n in 0..number {
        let at: Instant = began + interval * n.into();
        std::thread::sleep(std::time::Duration::from_nanos(at.since(Clock::now()).as_nanos()));
        send(n);
    }
    number
}
/// What arrives while `send` runs, and for some time after it: each packet with its time.
fn heard<T: Send>(
    to: &UdpSocket,
    after: std::time::Duration,
    read: impl Fn(Instant, &[u8]) -> Option<T> + Sync,
    send: impl FnOnce() -> u32,
) -> (Vec<T>, u32) {
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        let hears = s.spawn(|| {
            let (mut got, mut room) = (Vec::new(), [0; 2000]);
            while !over.load(Ordering::Relaxed) {
                while let Ok(n) = to.recv(&mut room) {
                    got.extend(read(Clock::now(), &room[..n]));
                }
            }
            got
        });
        let sent = send();
        std::thread::sleep(after);
        over.store(true, Ordering::Relaxed);
        (hears.join().expect("receives"), sent)
    })
}
/// The value below which this share of sorted values is.
fn quantile(of: &[f64], share: f64) -> f64 {
    of.get((of.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// Time to the answer, ms: median and 99th percentile; and the share of queries without an answer.
fn names(bed: &Bed, seconds: f64) -> [f64; 3] {
    let client = socket(bed, CLIENT, "10.1.0.2:0");
    let mut asked = Vec::new();
    let read = |now: Instant, a: &[u8]| answered(a).map(|id| (id, now));
    let (answers, sent) = heard(&client, PATIENCE, read, || {
        paced(seconds, QUERIES, |n| {
            asked.push(Clock::now());
            let _ = client.send_to(&query(n as u16), NAMES);
        })
    });
    let mut first: Vec<Option<f64>> = vec![None; asked.len()];
    for (id, now) in answers {
        let (began, took) = (asked[usize::from(id)], &mut first[usize::from(id)]);
        let wait = now - began;
        if took.is_none() && wait.as_secs_f64() <= PATIENCE.as_secs_f64() {
            *took = Some(wait.as_secs_f64() * 1e3);
        }
    }
    let mut times: Vec<f64> = first.into_iter().flatten().collect();
    times.sort_by(f64::total_cmp);
    [quantile(&times, 0.5), quantile(&times, 0.99), 1.0 - times.len() as f64 / f64::from(sent)]
}

/// A call from the server to the client: the share of packets lost, and of those out of order (RFC 4737); one-way delay, ms: median and
/// 99th percentile; and interarrival jitter (RFC 3550 §6.4.1), ms, the mean of the estimates after each packet.
fn call(bed: &Bed, seconds: f64) -> [f64; 5] {
    let (from, to) = (socket(bed, SERVER, "10.2.0.2:5004"), socket(bed, CLIENT, CALL));
    let read = |now: Instant, p: &[u8]| {
        let (sent, rest) = p.get(HEADER..)?.split_first_chunk()?;
        let number = u32::from_be_bytes(*rest.first_chunk()?);
        Some((number, (now.as_nanos() - u64::from_be_bytes(*sent)) as f64 / 1e6))
    };
    let mut packet = [0xd5; HEADER + VOICE];
    let (got, sent) = heard(&to, std::time::Duration::from_secs(3), read, || {
        paced(seconds, BETWEEN, |n| {
            // Version 2, payload type 0 (PCMU), sequence number, timestamp at 8 kHz, source.
            packet[..2].copy_from_slice(&[0x80, 0]);
            packet[2..4].copy_from_slice(&(n as u16).to_be_bytes());
            packet[4..8].copy_from_slice(&(n * VOICE as u32).to_be_bytes());
            packet[8..12].copy_from_slice(&[1, 2, 3, 4]);
            packet[HEADER + 8..HEADER + 12].copy_from_slice(&n.to_be_bytes());
            packet[HEADER..HEADER + 8].copy_from_slice(&Clock::now().as_nanos().to_be_bytes());
            let _ = from.send_to(&packet, CALL);
        })
    });
    let (mut next, mut reordered) = (0, 0);
    for (number, _) in &got {
        reordered += u32::from(*number < next);
        next = next.max(number + 1);
    }
    // The transit time is the delay, since both ends have one clock.
    let (mut jitter, mut jitters) = (0.0, 0.0);
    for pair in got.windows(2) {
        jitter += ((pair[1].1 - pair[0].1).abs() - jitter) / 16.0;
        jitters += jitter;
    }
    let mut delays: Vec<f64> = got.iter().map(|(_, delay)| *delay).collect();
    delays.sort_by(f64::total_cmp);
    let share = |n: f64| n / f64::from(sent);
    [
        1.0 - share(got.len() as f64),
        share(reordered.into()),
        quantile(&delays, 0.5),
        quantile(&delays, 0.99),
        jitters / got.len().saturating_sub(1) as f64,
    ]
}

/// Prints the table; each value is the median of `runs` runs, and "–" where nothing was measured.
pub(crate) fn table(seconds: f64, runs: usize, choice: &Choice, chosen: &[Column], losses: &[f64]) {
    let wants = |column| chosen.contains(&column);
    println!(
        "\nDNS and RTP over GEO, with two gateways that repair them and with routers that forward them, alone and beside a download; median of {runs}"
    );
    println!(
        "gateways  loss   beside     DNS, ms: median     p99   unanswered   RTP: lost   out of order   delay, ms: median     p99   jitter   download, Mbit/s     late"
    );
    let mut lacks = false;
    for loss in losses {
        for (repair, beside) in [(false, false), (true, false), (false, true), (true, true)] {
            if choice.alone && !repair {
                continue;
            }
            let counters = [&CARRIED, &LATE];
            counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
            let mut columns: [Vec<f64>; 9] = Default::default();
            for _ in 0..runs {
                let Some(bed) = Bed::new("live", geo(*loss)) else { return };
                let _both = repair.then(|| gateways(&bed, &choice.keys));
                let resolver = wants(Column::Dns).then(|| Resolver::start(&bed)).flatten();
                lacks |= wants(Column::Dns) && resolver.is_none();
                serve(&bed);
                std::thread::scope(|s| {
                    let bulk =
                        beside.then(|| s.spawn(|| goodput(&bed, [[10, 1, 0, 2], [10, 2, 0, 2]], seconds)));
                    let names = resolver.is_some().then(|| s.spawn(|| names(&bed, seconds)));
                    let call = wants(Column::Rtp).then(|| s.spawn(|| call(&bed, seconds)));
                    let mut add = |at: usize, values: &[f64]| {
                        values.iter().enumerate().for_each(|(n, v)| columns[at + n].push(*v));
                    };
                    if let Some(names) = names {
                        add(0, &names.join().expect("asks"));
                    }
                    if let Some(call) = call {
                        add(3, &call.join().expect("calls"));
                    }
                    if let Some(bulk) = bulk {
                        add(8, &[bulk.join().expect("downloads")]);
                    }
                });
            }
            let [carried, late] = counters.map(|c| c.load(Ordering::Relaxed) as f64);
            let widths = [(19, 0), (7, 0), (12, 4), (11, 4), (14, 4), (19, 0), (7, 0), (8, 1), (18, 2)];
            let values = cells(columns, widths);
            println!(
                "{:<9} {loss:<6} {:<8} {values} {:>8.4}",
                if repair { "repair" } else { "none" },
                if beside { "download" } else { "nothing" },
                late / carried
            );
        }
    }
    if lacks {
        println!("no DNS: dnsmasq: it is not installed");
    }
}
