//! What two gateways gain on a GEO link, against none: a long download, short ones, and what a connection costs.
//!
//! ```text
//! make bench-gateway                          # all, about ten minutes; as root
//! make bench-gateway GATEWAY="bbr --seconds 20"   # one control
//! ```
//! The link carries 10.4 Mbit/s each way, 275 ms each way, and drops the newest beyond 50 packets; packets are lost behind the
//! queue. The gateways pace to 10.38 Mbit/s, and their windows
//! are as large as they may be from the start: the path is known. Clients and servers are the kernel's, with CUBIC.

#[path = "../tests/gateway/bed.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod bed;

use bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use skyhaul_base::{Duration, Rate};
use skyhaul_net::Clock;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if !bed::stands_in(&args) {
        all(&args);
    }
}

/// Controls over the link; "none": no gateway.
const CONTROLS: [(&str, &str); 6] = [
    ("none", ""),
    ("cubic", "cc = \"cubic\""),
    ("hybla", "cc = \"hybla\""),
    ("peach-plus", "cc = \"peach-plus\""),
    ("bbr", "cc = \"bbr\""),
    ("scps-like", "cc = { name = \"scps-like\", window = 1000.0 }"),
];
const SHORT: usize = 1_000_000;
const PORT: u16 = 7000;

fn all(args: &[String]) {
    let seconds = args.iter().position(|a| a == "--seconds").and_then(|i| args.get(i + 1)?.parse().ok());
    let seconds: f64 = seconds.unwrap_or(60.0);
    let wanted: Vec<_> = args.iter().filter(|a| CONTROLS.iter().any(|(n, _)| n == a)).collect();
    println!("control      loss   long download Mbit/s   1 MB: median s   p95 s   cut short");
    for (name, keys) in CONTROLS.iter().filter(|(n, _)| wanted.is_empty() || wanted.iter().any(|w| w == n)) {
        for loss in [0.0, 1e-3, 1e-2] {
            let rate = Some((Rate::from_bits_per_sec(10_400_000), 50));
            let geo = Link { delay: Duration::from_millis(275), loss, rate, ..Link::default() };
            let Some(bed) = Bed::new("bench", geo) else { return };
            let more = format!(
                "rate = \"10.38 Mbit/s\"\nendpoint = {{ receive-autotuning = false, send-autotuning = false }}\nrwnd = \"8 MiB\"\nsndbuf = \"8 MiB\"\n{keys}\n"
            );
            let gateways: Vec<_> = if *name == "none" {
                Vec::new()
            } else {
                [NEAR, FAR].into_iter().map(|at| bed.gateway(at, &more)).collect()
            };
            serve(&bed);
            let long = bed.spaces[CLIENT].within(|| download(seconds, usize::MAX)).expect("enters");
            let mut times: Vec<f64> = Vec::new();
            let mut short = 0;
            for _ in 0..(seconds as usize / 3).max(3) {
                let (bytes, took) = bed.spaces[CLIENT].within(|| download(60.0, SHORT)).expect("enters");
                if bytes < SHORT {
                    short += 1;
                } else {
                    times.push(took);
                }
            }
            times.sort_by(f64::total_cmp);
            let at = |q: f64| times.get(((times.len() - 1) as f64 * q) as usize).copied().unwrap_or(f64::NAN);
            println!(
                "{name:<12} {loss:<6} {:>20.2}   {:>14.2}   {:>5.2}   {short:>9}",
                long.0 as f64 * 8.0 / long.1 / 1e6,
                at(0.5),
                at(0.95)
            );
            drop(gateways);
        }
    }
}

/// A server that sends as many bytes as it is asked for.
fn serve(bed: &Bed) {
    let at = SocketAddr::new(IpAddr::from([10, 2, 0, 2]), PORT);
    let listener = bed.spaces[SERVER].within(|| TcpListener::bind(at).expect("listens")).expect("enters");
    // Children of the listener have its control.
    socket2::SockRef::from(&listener).set_tcp_congestion(b"cubic").expect("the kernel has CUBIC");
    std::thread::spawn(move || {
        for mut s in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
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
            });
        }
    });
}

/// Bytes, and seconds from the first packet to the last byte.
fn download(seconds: f64, bytes: usize) -> (usize, f64) {
    let began = Clock::now();
    let mut s = TcpStream::connect((IpAddr::from([10, 2, 0, 2]), PORT)).expect("connects");
    s.write_all(&(bytes as u64).to_be_bytes()).expect("writes");
    let mut chunk = vec![0; 1 << 16];
    let mut got = 0;
    while (Clock::now() - began).as_secs_f64() < seconds {
        match s.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(n) => got += n,
        }
    }
    (got, (Clock::now() - began).as_secs_f64())
}
