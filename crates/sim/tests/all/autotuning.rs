//! A receive buffer that grows by itself does not limit a transfer, and does not announce more than it needs to.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::{Resolved, Start};
use skyhaul_sim::Sim;
use skyhaul_tcp::Config;
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

/// One flow of today's stack over a clean channel of about 10 Mbit/s with more buffer than the largest window.
fn today(window: u64, autotuning: bool, handshake: bool) -> Resolved {
    let mut flow = bulk("bulk", 1, "cubic", 64, RTT);
    flow.endpoint = Config { receive_buffer: window, receive_autotuning: autotuning, ..Config::modern() };
    flow.start = Start::At(Duration::ZERO);
    flow.handshake = handshake;
    scenario(60.0, vec![geo(1300.0, RTT, 8000, 0.0)], vec![flow])
}

/// Bit/s from 30 s on.
fn settled(s: &Resolved) -> f64 {
    let mut sim = Sim::new(s, 1, Null).expect("a world");
    sim.run_until(Instant::ZERO + Duration::from_secs(30));
    let before = sim.result().flows[0].bytes_acked;
    (sim.finish().flows[0].bytes_acked - before) as f64 * 8.0 / 30.0
}

#[test]
fn it_grows_to_what_the_path_needs() {
    for handshake in [false, true] {
        let fixed = settled(&today(64 << 10, false, handshake));
        let tuned = settled(&today(6 << 20, true, handshake));
        let ample = settled(&today(6 << 20, false, handshake));
        // 64 KiB per round trip; the packets of a window add at most its own serialisation.
        assert!(fixed <= 65_536.0 * 8.0 / RTT && fixed > 0.9 * 65_536.0 * 8.0 / RTT, "{fixed}");
        assert!(tuned > 0.98 * ample, "{tuned} of {ample}");
        assert!(ample > 9e6, "{ample}");
    }
}

#[test]
fn it_stops_at_the_limit() {
    let limited = settled(&today(200_000, true, false));
    assert!(limited <= 200_000.0 * 8.0 / RTT, "{limited}");
    assert!(limited > 0.9 * 200_000.0 * 8.0 / RTT, "{limited}");
}

#[test]
fn the_first_window_is_64_kib_whatever_the_limit() {
    // A window beyond 64 KiB cannot be in use before data of the first round trips was read.
    let mut s = today(6 << 20, true, false);
    s.flows[0].endpoint.rules.initial_window = skyhaul_cc::InitialWindow::Segments(1000.0);
    let mut sim = Sim::new(&s, 1, Null).expect("a world");
    sim.run_until(Instant::ZERO + Duration::from_millis(500));
    assert_eq!(sim.result().flows[0].segments_sent, 65_536 / 1448);
}
