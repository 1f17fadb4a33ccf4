//! How much the emulator forwards, and how late packets leave: prints figures, asserts nothing. As root:
//!
//! ```sh
//! cargo run --release -p skyhaul-net --example emulator_speed
//! ```
#![allow(clippy::unwrap_used, missing_docs, reason = "a measurement that cannot be made may end as it likes")]

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the emulator needs Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use skyhaul_base::Duration;
    use skyhaul_net::emulator::{Emulation, End, Options, Report, addresses};
    use skyhaul_net::tun::TunConfig;
    use skyhaul_net::{Clock, Namespace};
    use skyhaul_scenario::Document;
    use std::net::UdpSocket;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Payload of a packet of 1500 bytes.
    const PAYLOAD: usize = 1472;

    /// Offers packets over a link of this rate for some seconds; without `packets_per_second`, as many as possible.
    fn run(rate: &str, packets_per_second: Option<u64>, secs: u64) -> Report {
        let text = format!(
            "duration = \"60 s\"\n[links.sat]\nrate = \"{rate}\"\ndelay = \"5 ms\"\nqueue = \"10000 packets\"\n\
             [flows.f]\npath = [\"sat\"]\n"
        );
        let scenario =
            Document::parse("bench.toml", &text, &skyhaul_scenario::no_files).unwrap().resolve().unwrap();
        let spaces = [Namespace::new().unwrap_or_else(|e| panic!("{e}")), Namespace::new().unwrap()];
        let end = |client: bool| {
            let config = TunConfig { name: None, addresses: addresses(client), mtu: 1500, offload: false };
            End::open(&spaces[usize::from(!client)], &config).unwrap()
        };
        let ends = [end(true), end(false)];
        let emulation = Emulation::start(&scenario, &scenario.flows[0], ends, &Options::default()).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|s| {
            let sink = spaces[1].within(|| UdpSocket::bind("10.83.0.2:9").unwrap()).unwrap();
            sink.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
            s.spawn(|| {
                let (sink, mut buf) = (sink, [0; 2000]);
                while !over.load(Ordering::Relaxed) {
                    let _ = sink.recv(&mut buf);
                }
            });
            let source = spaces[0].within(|| UdpSocket::bind("10.83.0.1:0").unwrap()).unwrap();
            source.connect("10.83.0.2:9").unwrap();
            let (began, mut sent) = (Clock::now(), 0u64);
            let ends = began + Duration::from_secs(secs);
            loop {
                let now = Clock::now();
                if now >= ends {
                    break;
                }
                let due =
                    packets_per_second.map_or(u64::MAX, |r| ((now - began).as_secs_f64() * r as f64) as u64);
                let mut burst = 0;
                while sent < due && burst < 64 {
                    let _ = source.send(&[0; PAYLOAD]);
                    sent += 1;
                    burst += 1;
                }
                if packets_per_second.is_some() {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        emulation.finish().unwrap()
    }

    fn show(words: &str, r: &Report) {
        let lane = &r.lanes[0];
        let bits = lane.links[0].counters.total().delivered_bytes as f64 * 8.0;
        let us = |d: Duration| d.as_secs_f64() * 1e6;
        println!(
            "{words}: {:.0} Mbit/s, {:.0} Mbit per second of processor time; releases late p50 {:.0} us, p99 {:.0} us, max {:.0} us; dropped before they were read: {}",
            bits / r.duration.as_secs_f64() / 1e6,
            bits / lane.cpu.as_secs_f64() / 1e6,
            us(lane.p50),
            us(lane.p99),
            us(lane.max),
            lane.tun_drops
        );
    }

    pub(super) fn main() {
        show("as fast as they come, 1500-byte packets", &run("40 Gbit/s", None, 5));
        show("50 Mbit/s", &run("50 Mbit/s", Some(4000), 10));
    }
}
