//! Throughput of one connection beside many idle ones: prints figures, asserts nothing.
//!
//! ```sh
//! cargo run --release -p skyhaul-net --example idle_connections
//! ```
//! Client and server are hosts of ours in one thread, and packets go from one to the other in memory, in batches as a
//! driver reads them: what is measured is the work of the stack and of its server, not that of the kernel.
#![allow(clippy::unwrap_used, missing_docs, reason = "a measurement that cannot be made may end as it likes")]

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the hosts of skyhaul-net need Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use skyhaul_base::Duration;
    use skyhaul_net::Clock;
    use skyhaul_net::app::{App, Serve, Sink};
    use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig, Secret};
    use std::collections::VecDeque;
    use std::net::{IpAddr, SocketAddr};

    /// Packets that a driver reads in one turn.
    const BATCH: usize = 64;
    const BYTES: u64 = 400_000_000;
    const REPETITIONS: usize = 5;

    struct Side {
        host: Host,
        /// Packets on their way to the other side.
        leaves: VecDeque<Vec<u8>>,
    }

    impl Side {
        fn new(n: u8) -> Self {
            let config = HostConfig::new(vec![IpAddr::from([10, 84, 0, n])], Secret::fixed([n; 16]));
            Self { host: Host::new(config), leaves: VecDeque::new() }
        }
        /// One turn of a driver.
        fn turn(&mut self, from: &mut VecDeque<Vec<u8>>, app: impl FnOnce(&mut Host)) {
            let Self { host, leaves } = self;
            let now = Clock::now();
            let mut out = |p: &[u8]| leaves.push_back(p.to_vec());
            for p in from.drain(..from.len().min(BATCH)) {
                host.arrive(now, &p, &mut out);
            }
            host.handle_timeout(now, &mut out);
            app(host);
            host.flush(now, &mut out);
        }
    }

    /// Throughput of one connection beside this many idle ones, Mbit/s.
    fn measure(idle: usize) -> f64 {
        let end = |n, port| SocketAddr::from(([10, 84, 0, n], port));
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").unwrap());
        let (mut client, mut server) = (Side::new(1), Side::new(2));
        server.host.listen(80, endpoint.clone()).unwrap();
        let mut app = Serve::new(|_| Sink, Duration::from_secs(1), None);
        let mut open: Vec<ConnId> = Vec::new();
        let connected = |side: &Side, id: ConnId| side.host.conn(id).is_some_and(|c| c.is_connected());
        while open.len() <= idle {
            let port = 1024 + open.len() as u16;
            open.push(client.host.connect(Clock::now(), end(1, port), end(2, 80), &endpoint).unwrap());
            while !connected(&client, open[open.len() - 1]) {
                client.turn(&mut server.leaves, |_| {});
                server.turn(&mut client.leaves, |h| {
                    let _ = app.turn(Clock::now(), h);
                });
            }
            while client.host.next_changed().is_some() {}
        }
        let (id, data) = (open[0], vec![7; 1 << 16]);
        let (began, mut written) = (Clock::now(), 0);
        while client.host.conn(id).unwrap().counters().bytes_acked < BYTES {
            client.turn(&mut server.leaves, |h| {
                while written < BYTES {
                    let most = (BYTES - written).min(data.len() as u64) as usize;
                    match h.write(Clock::now(), id, &data[..most]) {
                        0 => break,
                        n => written += n as u64,
                    }
                }
                while h.next_changed().is_some() {}
                let _ = h.next_timeout();
            });
            server.turn(&mut client.leaves, |h| {
                let _ = app.turn(Clock::now(), h);
                let _ = h.next_timeout().min(app.next_timeout());
            });
        }
        BYTES as f64 * 8.0 / 1e6 / (Clock::now() - began).as_secs_f64()
    }

    pub(crate) fn main() {
        let idle = [0, 10_000, 20_000];
        let mut all = vec![Vec::new(); idle.len()];
        for _ in 0..REPETITIONS {
            for (n, rates) in idle.iter().zip(&mut all) {
                rates.push(measure(*n));
            }
        }
        for (n, rates) in idle.iter().zip(&mut all) {
            rates.sort_by(f64::total_cmp);
            println!(
                "{n:>6} idle connections: {:.0} Mbit/s (median of {REPETITIONS})",
                rates[REPETITIONS / 2]
            );
        }
    }
}
