//! What two gateways gain on a GEO link, against none: a long download, short ones, and what a connection costs.
//!
//! ```text
//! make bench-gateway                              # all, about an hour; as root
//! make bench-gateway GATEWAY="bbr --seconds 20"   # one control over GEO
//! make bench-gateway GATEWAY="fast turnover idle" # a fast link, new connections, memory of silent ones
//! make bench-gateway GATEWAY="fast cubic"         # without the relay to compare with
//! make bench-gateway GATEWAY=begin                # the first two seconds of 100 downloads
//! make bench-gateway GATEWAY="fast --threads 2"    # gateways with several threads
//! make bench-gateway GATEWAY="turnover --clients 16" # 16 clients at a time instead of 64
//! make bench-gateway GATEWAY="packaged --seconds 20" # the file of the packages, with the rate of the link
//! make bench-gateway GATEWAY=waits                # a black hole, and an outage of 70 s
//! make bench-gateway GATEWAY=turns                # ten downloads of a client beside one of another
//! make bench-gateway GATEWAY=return               # a download whose acknowledgements return over 64 kbit/s
//! make bench-gateway GATEWAY="repair --runs 5"    # what cannot be split, repaired by two gateways and forwarded
//! make bench-gateway GATEWAY="repair --only quic,wireguard --loss 1e-3,1e-2" # some columns and losses of it
//! make bench-gateway GATEWAY="repair --only dns,rtp" # names and a telephone call, alone and beside a download
//! make bench-gateway GATEWAY="pepsal scps-like --pepsal /path/to/pepsal"
//! ```
//! The link has 10.4 Mbit/s and a delay of 275 ms each way, and a tail-drop queue of 50 packets; losses happen behind the queue.
//! Threads of this program carry the packets. "late" is the share of packets that left more than 2 ms after their time because
//! the machine was busy, and "latest" the largest such delay: a run with late packets is not a valid measurement. The gateways
//! pace to 10.38 Mbit/s, and their windows have the full size from the start, since the path is known. Clients and servers are
//! those of the kernel, with CUBIC. "kernel" is a relay by TPROXY and splice(2) with BBR in each router.

#[path = "../../tests/gateway/bed.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod bed;

mod asymmetric;
mod live;
mod relay;
mod repair;

#[path = "../../tests/gateway/quic.rs"]
mod quic;

#[path = "../../tests/gateway/tunnel.rs"]
mod tunnel;

use bed::{Bed, CLIENT, FAR, Link, NEAR, Running, SERVER};
use skyhaul_base::{Duration, Rate};
use skyhaul_net::Clock;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.first().is_some_and(|a| a == relay::WORD) {
        relay::play(&args[1]);
    } else if !bed::stands_in(&args) {
        all(&Arguments::read(&args));
    }
}

/// What runs in both routers, by name, and the keys in the file of our gateway; with "none" the routers only forward.
const BOXES: [(&str, &str); 10] = [
    ("none", ""),
    ("kernel", ""),
    ("pepsal", ""),
    (PACKAGED, ""),
    ("cubic", "cc = \"cubic\""),
    ("hybla", "cc = \"hybla\""),
    ("peach-plus", "cc = \"peach-plus\""),
    ("bbr", "cc = \"bbr\""),
    ("hark", "cc = \"hark\""),
    ("scps-like", "cc = { name = \"scps-like\", window = 1000.0 }"),
];
/// Measurements other than that of each entry of [`BOXES`] over GEO.
const WORDS: [&str; 8] = ["turns", "waits", "return", "fast", "begin", "turnover", "idle", "repair"];
/// Our gateway with the file that the packages install.
const PACKAGED: &str = "packaged";
/// Size of a short download, bytes.
const SHORT: usize = 1_000_000;
/// Port of the server.
const PORT: u16 = 7000;
/// Silence after which a download has failed.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What runs in both routers.
enum Boxes {
    None,
    /// Our gateways.
    Ours([Running; 2]),
    /// Relays through sockets of the kernel, or PEPsal: child processes, which are killed at the end.
    Others(Vec<Child>),
}

impl Boxes {
    fn of(bed: &Bed, name: &str, keys: &str, pepsal: Option<&str>) -> Self {
        let others = |command: &(dyn Fn() -> Command + Sync)| {
            let start = |at: usize| {
                let mut child = bed.spaces[at].within(|| command().spawn().expect("starts")).expect("enters");
                // A relay prints a line when it is ready; PEPsal prints none.
                match child.stdout.take() {
                    Some(out) => drop(BufReader::new(out).read_line(&mut String::new())),
                    None => std::thread::sleep(std::time::Duration::from_secs(1)),
                }
                // If the process had ended, the router would forward connections, and their times would count as those of
                // the process.
                assert_eq!(child.try_wait().expect("is a child"), None, "{name} has ended");
                child
            };
            Self::Others([NEAR, FAR].map(start).into())
        };
        match (name, pepsal) {
            ("none", _) => Self::None,
            ("kernel", _) => others(&|| {
                let mut c = Command::new(std::env::current_exe().expect("there"));
                c.args([relay::WORD, "bbr"]).stdout(Stdio::piped());
                c
            }),
            ("pepsal", Some(path)) => others(&|| pepsal_of(path)),
            _ => Self::Ours([NEAR, FAR].map(|at| bed.gateway(at, keys))),
        }
    }
}

impl Boxes {
    /// Processor time, seconds: of the processes in the routers, and of these with the clients and servers. Work that the
    /// kernel does in the background for them is not counted.
    fn spent(&self) -> [f64; 2] {
        let children: Vec<u32> = match self {
            Self::None => Vec::new(),
            Self::Ours(both) => both.iter().map(|g| g.child.id()).collect(),
            Self::Others(all) => all.iter().map(Child::id).collect(),
        };
        let ticks = |who: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{who}/stat")).unwrap_or_default();
            // The name, in parentheses, may have spaces.
            let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(11).take(2);
            fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
        };
        let boxes = children.iter().map(|c| ticks(&c.to_string())).sum::<f64>();
        [boxes, boxes + ticks("self")]
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        if let Self::Others(all) = self {
            for child in all {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Sends connections to PEPsal's port, as its own documentation does with iptables: the far leg uses the client's address, so answers
/// of the server go to PEPsal's sockets as well.
const PEPSAL_RULES: &str = "table ip pepsal {
  chain arrive {
    type filter hook prerouting priority mangle;
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    fib daddr type local accept
    meta l4proto tcp tproxy to :5000 meta mark set 1 accept
  }
}";

/// PEPsal, in the foreground; both legs use the control of the machine, here BBR as towards the link of the kernel's relay.
fn pepsal_of(path: &str) -> Command {
    let mut c = Command::new("sh");
    let line = format!(
        "nft '{PEPSAL_RULES}' && ip rule add fwmark 1 lookup 100 && ip route add local default dev lo table 100 && \
         echo bbr >/proc/sys/net/ipv4/tcp_congestion_control && echo 0 >/proc/sys/net/ipv4/tcp_early_demux && \
         exec \"$0\" -v -p 5000"
    );
    // PEPsal prints a line for every connection.
    c.args(["-c", &line, path]).stdout(Stdio::null()).stderr(Stdio::null());
    c
}

/// The arguments of the command line.
struct Arguments {
    seconds: f64,
    pepsal: Option<String>,
    threads: usize,
    /// Clients of the measurement "turnover", each with one connection at a time.
    clients: usize,
    /// Runs of each case of "repair".
    runs: usize,
    /// What "repair" measures.
    repair: repair::Choice,
    only: Vec<String>,
}

impl Arguments {
    fn read(args: &[String]) -> Self {
        let after = |word: &str| args.iter().position(|a| a == word).and_then(|i| args.get(i + 1)).cloned();
        let seconds = after("--seconds").and_then(|s| s.parse().ok()).unwrap_or(60.0);
        let known = |a: &&String| BOXES.iter().any(|(n, _)| n == a) || WORDS.contains(&a.as_str());
        let number = |word: &str| after(word).and_then(|s| s.parse().ok());
        let (threads, clients) = (number("--threads").unwrap_or(1), number("--clients").unwrap_or(64));
        Self {
            seconds,
            pepsal: after("--pepsal"),
            threads,
            clients,
            runs: number("--runs").unwrap_or(1),
            repair: repair::Choice {
                alone: args.iter().any(|a| a == "--alone"),
                keys: after("--keys").unwrap_or_default().replace(';', "\n"),
                columns: after("--only"),
                losses: after("--loss"),
            },
            only: args.iter().filter(known).cloned().collect(),
        }
    }
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == name)
    }
    /// Whether only our gateway is measured on the fast link, without the relay of the kernel.
    fn alone(&self) -> bool {
        self.only.iter().any(|o| o == "cubic") && self.is_fast()
    }
    fn is_fast(&self) -> bool {
        self.only.iter().any(|o| WORDS.contains(&o.as_str()))
    }
}

fn all(arguments: &Arguments) {
    bed::THREADS.store(arguments.threads, Ordering::Relaxed);
    println!("GEO, 10.4 Mbit/s each way, 275 ms each way, 50 packets");
    println!(
        "gateways     loss   {:.0} s download Mbit/s   1 MB: median s   p95 s   failed   late   latest ms",
        arguments.seconds
    );
    for (name, keys) in BOXES.iter().filter(|(n, _)| !arguments.is_fast() && arguments.wants(n)) {
        if *name == "pepsal" && arguments.pepsal.is_none() {
            continue;
        }
        for loss in [0.0, 1e-3, 1e-2] {
            let Some(bed) = Bed::new("bench", geo(loss)) else { return };
            let boxes = Boxes::of(&bed, name, &over_geo(name, keys), arguments.pepsal.as_deref());
            serve(&bed);
            let counters = [&bed::CARRIED, &bed::LATE, &bed::LATEST];
            counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
            let long = bed.spaces[CLIENT].within(|| download(arguments.seconds, usize::MAX)).expect("enters");
            let mut times: Vec<f64> = Vec::new();
            let mut failed = 0;
            for _ in 0..(arguments.seconds as usize / 3).max(3) {
                let (bytes, took) = bed.spaces[CLIENT].within(|| download(60.0, SHORT)).expect("enters");
                if bytes < SHORT {
                    failed += 1;
                } else {
                    times.push(took);
                }
            }
            times.sort_by(f64::total_cmp);
            let at = |q: f64| {
                times.get((times.len().saturating_sub(1) as f64 * q) as usize).copied().unwrap_or(f64::NAN)
            };
            let [carried, late, latest] = counters.map(|c| c.load(Ordering::Relaxed));
            println!(
                "{name:<12} {loss:<6} {:>20.2}   {:>14.2}   {:>5.2}   {failed:>6}   {:>6.4}   {:>6.1}",
                long.0 as f64 * 8.0 / long.1 / 1e6,
                at(0.5),
                at(0.95),
                late as f64 / carried as f64,
                latest as f64 / 1e6
            );
            drop(boxes);
        }
    }
    if arguments.wants("repair") {
        repair::tables(arguments.seconds, arguments.runs, &arguments.repair);
    }
    if arguments.wants("turns") {
        println!(
            "\nten downloads of a client beside one of another over GEO: Mbit/s in all, share of the single one"
        );
        for (name, keys) in BOXES.iter().filter(|(n, _)| [PACKAGED, "bbr", "scps-like"].contains(n)) {
            let Some([rate, share]) = turns(name, keys, arguments.seconds) else { return };
            println!("{name:<12} {rate:>6.2}   {share:.3}");
        }
    }
    if arguments.wants("return") {
        asymmetric::table(arguments.seconds);
    }
    if arguments.wants("waits") {
        println!(
            "\nover GEO: 1 MB, twice, where packets beyond 1400 bytes disappear, s; silence after an outage of 70 s, s"
        );
        for (name, keys) in BOXES.iter().filter(|(n, _)| [PACKAGED, "cubic"].contains(n)) {
            let (Some([first, second]), Some(silence)) = (hole(name, keys), outage(name, keys)) else {
                return;
            };
            println!("{name:<12} {first:>6.2} {second:>6.2}   {silence:>6.2}");
        }
    }
    // The three are measured in turn, so that other load of the machine affects all of them.
    if arguments.wants("fast") {
        println!(
            "\n100 downloads at a time over a link without delay, Gbit/s (processor seconds per gigabyte: in both routers, in all)"
        );
        in_turn(3, arguments.alone(), &|name| fast(name, arguments.seconds / 6.0));
    }
    if arguments.wants("begin") {
        println!(
            "\n100 downloads that begin at once over a link without delay, Gbit/s in each quarter of a second"
        );
        for name in ["none", "kernel", "cubic"]
            .iter()
            .cycle()
            .take(9)
            .filter(|n| !arguments.alone() || **n == "cubic")
        {
            let Some(rates) = begin(name) else { return };
            println!("{name:<7} {}", rates.map(|r| format!("{r:>6.2}")).join(" "));
        }
    }
    if arguments.wants("turnover") {
        println!(
            "\nnew connections per second, each with 100 bytes (processor seconds per thousand: in both routers, in all)"
        );
        in_turn(3, arguments.alone(), &|name| turnover(name, arguments.seconds / 6.0, arguments.clients));
    }
    if arguments.wants("idle") {
        idle(4000);
    }
}

/// The emulated link.
fn geo(loss: f64) -> Link {
    let rate = Some((Rate::from_bits_per_sec(10_400_000), 50));
    Link { delay: Duration::from_millis(275), loss, rate, ..Link::default() }
}

/// The keys about the link in the file of our gateway.
fn over_geo(name: &str, keys: &str) -> String {
    const RATE: &str = "rate = \"10.38 Mbit/s\"\n";
    if name != PACKAGED {
        return format!(
            "{RATE}endpoint = {{ receive-autotuning = false, send-autotuning = false }}\nrwnd = \"8 MiB\"\nsndbuf = \"8 MiB\"\n{keys}\n"
        );
    }
    let file = include_str!("../../../../packaging/gateway.toml");
    let section = file.split("[satellite]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let keys = section.expect("it has the section").lines().filter(|l| !l.starts_with("interface = "));
    let (rate, others): (Vec<_>, Vec<_>) = keys.partition(|l| l.starts_with("rate = "));
    assert_eq!(rate.len(), 1, "a rate is to be replaced");
    format!("{RATE}{}\n", others.join("\n"))
}

/// Ten downloads of a client beside one of another: Mbit/s together, and the share of the single one.
fn turns(name: &str, keys: &str, seconds: f64) -> Option<[f64; 2]> {
    let bed = Bed::new("turns", geo(0.0))?;
    let _boxes = Boxes::of(&bed, name, &over_geo(name, keys), None);
    serve(&bed);
    let downloads = || {
        let line = "ip addr add 10.1.0.3/24 dev c0";
        assert!(Command::new("sh").args(["-c", line]).status().is_ok_and(|s| s.success()), "{line}");
        std::thread::scope(|s| {
            let from = |n: u8| move || download_from(n, SILENCE, seconds, usize::MAX, &|_| {}).0;
            let ten: Vec<_> = (0..10).map(|_| s.spawn(from(2))).collect();
            let one = s.spawn(from(3));
            let ten: usize = ten.into_iter().map(|d| d.join().expect("downloads")).sum();
            [ten, one.join().expect("downloads")]
        })
    };
    let [ten, one] = bed.spaces[CLIENT].within(downloads).expect("enters").map(|n| n as f64);
    Some([(ten + one) * 8.0 / seconds / 1e6, one / (ten + one)])
}

/// Times of two downloads, one after the other, where long packets disappear.
fn hole(name: &str, keys: &str) -> Option<[f64; 2]> {
    let bed = Bed::new("hole", Link { hole: Some(1400), ..geo(0.0) })?;
    let _boxes = Boxes::of(&bed, name, &over_geo(name, keys), None);
    serve(&bed);
    Some([(); 2].map(|()| bed.spaces[CLIENT].within(|| download(120.0, SHORT).1).expect("enters")))
}

/// Seconds from the end of an outage until data of a download arrives again.
fn outage(name: &str, keys: &str) -> Option<f64> {
    let times = [15, 85].map(Duration::from_secs);
    let began = Clock::now();
    let bed = Bed::new("outage", Link { outage: Some(times), ..geo(0.0) })?;
    let _boxes = Boxes::of(&bed, name, &over_geo(name, keys), None);
    serve(&bed);
    let first = AtomicU64::new(u64::MAX);
    let note = |_| {
        let at = Clock::now() - began;
        if at > times[1] {
            first.fetch_min((at - times[1]).as_nanos(), Ordering::Relaxed);
        }
    };
    let patience = std::time::Duration::from_secs(160);
    let download = || download_from(2, patience, patience.as_secs_f64(), usize::MAX, &note);
    bed.spaces[CLIENT].within(download).expect("enters");
    Some(first.into_inner() as f64 / 1e9)
}

/// Result of a measurement on the fast link.
struct Measured {
    /// Gbit/s, or connections per second.
    rate: f64,
    /// Processor seconds per gigabyte, or per thousand connections: in both routers, and with clients and servers.
    cost: [f64; 2],
}

impl Measured {
    fn show(&self) -> String {
        format!("{:>8.2} ({:.2}, {:.2})", self.rate, self.cost[0], self.cost[1])
    }
}

/// Measures the path without a relay, with the relay of the kernel and with our gateways, `times` times in turn, and prints the
/// ratio of our rate to that of the kernel's relay. `alone`: our gateways only.
fn in_turn(times: usize, alone: bool, measure: &dyn Fn(&str) -> Option<Measured>) {
    let mut ratios = Vec::new();
    for _ in 0..times {
        if alone {
            let Some(ours) = measure("cubic") else { return };
            println!("ours {}", ours.show());
            continue;
        }
        let (Some(none), Some(kernel), Some(ours)) = (measure("none"), measure("kernel"), measure("cubic"))
        else {
            return;
        };
        ratios.push(ours.rate / kernel.rate);
        println!(
            "none {}   kernel {}   ours {}   ours/kernel {:.3}",
            none.show(),
            kernel.show(),
            ours.show(),
            ours.rate / kernel.rate
        );
    }
    if alone {
        return;
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of the ratios {:.3}", ratios[ratios.len() / 2]);
}

/// 100 downloads at a time over the fast link: Gbit/s.
fn fast(name: &str, seconds: f64) -> Option<Measured> {
    let bed = Bed::fast("fast")?;
    let boxes = Boxes::of(&bed, name, "cc = \"cubic\"\n", None);
    serve(&bed);
    let before = boxes.spent();
    let bytes: usize = bed.spaces[CLIENT]
        .within(|| {
            std::thread::scope(|s| {
                let all: Vec<_> = (0..100).map(|_| s.spawn(|| download(seconds, usize::MAX).0)).collect();
                all.into_iter().map(|d| d.join().expect("downloads")).sum()
            })
        })
        .expect("enters");
    let spent = boxes.spent();
    let cost = [0, 1].map(|n: usize| (spent[n] - before[n]) / (bytes as f64 / 1e9));
    Some(Measured { rate: bytes as f64 * 8.0 / seconds / 1e9, cost })
}

/// Quarters of a second that [`begin`] distinguishes.
const QUARTERS: usize = 8;

/// Gbit/s in each of the first quarters of a second of 100 downloads that begin at once.
fn begin(name: &str) -> Option<[f64; QUARTERS]> {
    let bed = Bed::fast("begin")?;
    let _boxes = Boxes::of(&bed, name, "cc = \"cubic\"\n", None);
    serve(&bed);
    let quarters: [AtomicUsize; QUARTERS] = Default::default();
    let began = Clock::now();
    let note = |n: usize| {
        let at = ((Clock::now() - began).as_secs_f64() * 4.0) as usize;
        if let Some(quarter) = quarters.get(at) {
            quarter.fetch_add(n, Ordering::Relaxed);
        }
    };
    bed.spaces[CLIENT]
        .within(|| {
            std::thread::scope(|s| {
                for _ in 0..100 {
                    s.spawn(|| download_with(QUARTERS as f64 / 4.0, usize::MAX, &note));
                }
            });
        })
        .expect("enters");
    Some(quarters.map(|n| n.into_inner() as f64 * 8.0 * 4.0 / 1e9))
}

/// New connections per second of `clients` clients, each connection with 100 bytes.
fn turnover(name: &str, seconds: f64, clients: usize) -> Option<Measured> {
    let bed = Bed::fast("turnover")?;
    let boxes = Boxes::of(&bed, name, "cc = \"cubic\"\n", None);
    serve(&bed);
    let before = boxes.spent();
    let done: usize = bed.spaces[CLIENT]
        .within(|| {
            std::thread::scope(|s| {
                let client = || {
                    let (began, mut n) = (Clock::now(), 0);
                    while (Clock::now() - began).as_secs_f64() < seconds {
                        // Half-closed by the server, reset by nobody.
                        n += usize::from(download(10.0, 100).0 == 100);
                    }
                    n
                };
                let all: Vec<_> = (0..clients).map(|_| s.spawn(client)).collect();
                all.into_iter().map(|c| c.join().expect("connects")).sum()
            })
        })
        .expect("enters");
    let spent = boxes.spent();
    let cost = [0, 1].map(|n: usize| (spent[n] - before[n]) / (done as f64 / 1e3));
    Some(Measured { rate: done as f64 / seconds, cost })
}

/// Prints the memory of our gateways per silent connection that has carried a request and a byte.
fn idle(connections: usize) {
    let Some(bed) = Bed::fast("idle") else { return };
    let boxes = Boxes::of(&bed, "cubic", "cc = \"cubic\"\n", None);
    let Boxes::Ours(gateways) = &boxes else { return };
    serve(&bed);
    let resident = |g: &Running| {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", g.child.id())).unwrap_or_default();
        statm.split(' ').nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
    };
    let open = || -> Vec<TcpStream> {
        (0..connections)
            .map_while(|_| {
                let mut s = TcpStream::connect((IpAddr::from([10, 2, 0, 2]), PORT)).ok()?;
                s.write_all(&1u64.to_be_bytes()).ok()?;
                s.read_exact(&mut [0]).ok()?;
                Some(s)
            })
            .collect()
    };
    let before = [0, 1].map(|n: usize| resident(&gateways[n]));
    let held = bed.spaces[CLIENT].within(open).expect("enters");
    std::thread::sleep(std::time::Duration::from_secs(5));
    println!("\n{} silent connections, each of which has carried a request and a byte", held.len());
    for n in 0..2 {
        let each = (resident(&gateways[n]) - before[n]) / held.len() as f64;
        println!("{} gateway: {each:.0} bytes of resident memory each", ["near", "far"][n]);
    }
}

/// A server that sends as many bytes as it is asked for.
fn serve(bed: &Bed) {
    serve_at(bed, [10, 2, 0, 2]);
}
/// As [`serve`], at this address of the server.
fn serve_at(bed: &Bed, address: [u8; 4]) {
    let at = SocketAddr::new(IpAddr::from(address), PORT);
    let listener = bed.spaces[SERVER].within(|| TcpListener::bind(at).expect("listens")).expect("enters");
    // Accepted connections inherit the congestion control of the listener.
    socket2::SockRef::from(&listener).set_tcp_congestion(b"cubic").expect("the kernel has CUBIC");
    std::thread::spawn(move || {
        for mut s in listener.incoming().map_while(Result::ok) {
            let work = move || {
                let mut asked = [0; 8];
                if s.read_exact(&mut asked).is_err() {
                    return;
                }
                let mut left = u64::from_be_bytes(asked);
                let chunk = [7; 1 << 14];
                while left > 0 {
                    let n = left.min(chunk.len() as u64);
                    if s.write_all(&chunk[..n as usize]).is_err() {
                        return;
                    }
                    left -= n;
                }
                if asked == 1u64.to_be_bytes() {
                    // A download of one byte is one of `idle`: the connection stays open until the client closes it.
                    let _ = s.read(&mut asked);
                }
            };
            let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(work);
        }
    });
}

/// Bytes, and seconds from the first packet to the last byte.
fn download(seconds: f64, bytes: usize) -> (usize, f64) {
    download_with(seconds, bytes, &|_| {})
}
/// As [`download`]; `note` gets the number of bytes of each read.
fn download_with(seconds: f64, bytes: usize, note: &dyn Fn(usize)) -> (usize, f64) {
    download_from(2, SILENCE, seconds, bytes, note)
}
/// As [`download_with`], from the address of the client with the last byte `client`; a download has failed when no byte
/// arrives for `silence`.
fn download_from(
    client: u8,
    silence: std::time::Duration,
    seconds: f64,
    bytes: usize,
    note: &dyn Fn(usize),
) -> (usize, f64) {
    download_between([[10, 1, 0, client], [10, 2, 0, 2]], silence, seconds, bytes, note)
}
/// As [`download_from`], from this address of the client to this one of the server.
fn download_between(
    [from, to]: [[u8; 4]; 2],
    silence: std::time::Duration,
    seconds: f64,
    bytes: usize,
    note: &dyn Fn(usize),
) -> (usize, f64) {
    let began = Clock::now();
    let connect = || {
        let s = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        s.bind(&SocketAddr::from((from, 0)).into())?;
        s.connect(&SocketAddr::from((to, PORT)).into())?;
        let mut s = TcpStream::from(s);
        s.write_all(&(bytes as u64).to_be_bytes())?;
        Ok::<_, std::io::Error>(s)
    };
    let mut s = match connect() {
        Ok(s) => s,
        Err(e) => {
            eprintln!("a connection failed: {e}");
            return (0, (Clock::now() - began).as_secs_f64());
        }
    };
    // A download that hangs ends with an error.
    s.set_read_timeout(Some(silence)).expect("sets");
    let mut chunk = vec![0; 1 << 16];
    let mut got = 0;
    while (Clock::now() - began).as_secs_f64() < seconds {
        match s.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => {
                got += n;
                note(n);
            }
            Err(e) => {
                eprintln!("a download failed after {got} bytes: {e}");
                break;
            }
        }
    }
    (got, (Clock::now() - began).as_secs_f64())
}
