//! Scenarios for tests and benchmarks, built in code.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "shared by several test crates")]

use skyhaul_base::{Duration, Rate};
use skyhaul_cc::Config as Cc;
use skyhaul_path::error::{self, per};
use skyhaul_path::{Limit, QueueConfig};
use skyhaul_scenario::resolved::*;
use skyhaul_tcp::Config;

/// One direction of a link: bit/s (0 is infinite), one-way delay in seconds, buffer in packets, loss.
pub fn direction(rate: u64, delay: f64, buffer: Option<u32>, loss: f64) -> Direction {
    let rate = (rate > 0).then(|| Rate::from_bits_per_sec(rate)).into();
    let limit = buffer.map_or(Limit::Unlimited, Limit::Packets);
    Direction {
        queue: QueueConfig { limit, ..QueueConfig::default() },
        error: if loss > 0.0 { per::Config { p: loss }.into() } else { error::Config::NONE },
        ..Direction::new(rate, Delay::fixed(Duration::from_secs_f64(delay)))
    }
}

/// The classical path: a bottleneck forward, an unlimited and loss-free way back. `rate` in 1000-byte packets/s.
pub fn geo(rate: f64, rtt: f64, buffer: u32, loss: f64) -> Link {
    Link {
        name: "sat".into(),
        forward: direction((rate * 8000.0) as u64, rtt / 2.0, Some(buffer), loss),
        reverse: direction(0, rtt / 2.0, None, 0.0),
    }
}

/// `count` bulk flows with SACK over link 0, as in ns-2 of 2001, starting at times uniform on one RTT.
pub fn bulk(name: &str, count: u32, cc: &str, rwnd: u64, rtt: f64) -> FlowGroup {
    let mut endpoint = Config::ns2_2001();
    endpoint.receive_buffer = rwnd * u64::from(endpoint.mss);
    FlowGroup {
        name: name.into(),
        count,
        path: vec![0],
        direction: FlowDirection::Forward,
        extra_delay: Duration::ZERO,
        dscp: 0,
        cc: Cc::by_name(cc).expect("a known algorithm"),
        endpoint,
        transport: Transport::Tcp,
        app: App::BULK,
        start: Start::Uniform { from: Duration::ZERO, to: Duration::from_secs_f64(rtt) },
        stop: None,
        handshake: false,
        close: false,
        known_rtt: Some(Duration::from_secs_f64(rtt)),
        role: None,
    }
}

pub fn scenario(seconds: f64, links: Vec<Link>, flows: Vec<FlowGroup>) -> Resolved {
    Resolved {
        title: String::new(),
        duration: Duration::from_secs_f64(seconds),
        seed: 1,
        memory: skyhaul_scenario::memory::USUAL_LIMIT,
        links,
        flows,
        gateways: Vec::new(),
        repair: Vec::new(),
        gateway_events: Vec::new(),
        record: Record::default(),
        events: Vec::new(),
    }
}

/// The usual scenario of these tests: flows over one GEO channel of 1300 packets/s with 50 packets of buffer.
pub fn s0(flows: u32, cc: &str, loss: f64, seconds: f64) -> Resolved {
    scenario(seconds, vec![geo(1300.0, 0.55, 50, loss)], vec![bulk("bulk", flows, cc, 64, 0.55)])
}

/// The same with capacity and buffer in proportion to the number of flows (20 flows have those of [`s0`]).
pub fn scaled(flows: u32, loss: f64, seconds: f64) -> Resolved {
    let k = f64::from(flows) / 20.0;
    let link = geo(1300.0 * k, 0.55, (50.0 * k) as u32, loss);
    scenario(seconds, vec![link], vec![bulk("bulk", flows, "sack", 64, 0.55)])
}

/// The scenario of a text.
pub fn resolved(text: &str) -> Resolved {
    let scenario = skyhaul_scenario::resolve_text("test.toml", text, &[], &skyhaul_scenario::no_files);
    scenario.unwrap_or_else(|e| panic!("{e}"))
}
