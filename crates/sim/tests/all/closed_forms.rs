//! Simulated throughput and transfer times against the closed forms of the literature.
//!
//! [Peach] Akyildiz, Morabito, Palazzo, IEEE/ACM ToN 9(3), 2001. [Mathis] CCR 27(3), 1997. [PFTK] Padhye,
//! Firoiu, Towsley, Kurose, SIGCOMM 1998.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{InitialSsthresh, InitialWindow};
use skyhaul_scenario::resolved::{App, FlowGroup, Resolved, Start};
use skyhaul_sim::{Sim, run};
use skyhaul_tcp::Config;
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

/// Mean over seeds of segments acknowledged and of segments sent, per second, after the start-up.
fn throughput(s: &Resolved, seeds: u64) -> (f64, f64) {
    let skip = s.duration / 10;
    let (mut acked, mut sent) = (0.0, 0.0);
    for seed in 0..seeds {
        let mut sim = Sim::new(s, seed, Null).expect("a world");
        sim.run_until(Instant::ZERO + skip);
        let before = sim.result();
        let after = sim.finish();
        let sum = |r: &skyhaul_sim::RunResult| r.flows.iter().map(|f| f.segments_sent).sum::<u64>() as f64;
        let seconds = (after.duration - before.duration).as_secs_f64() * seeds as f64;
        acked += (after.segments_acked() - before.segments_acked()) / seconds;
        sent += (sum(&after) - sum(&before)) / seconds;
    }
    (acked, sent)
}

/// Discrete slow start: rounds until `n` segments are sent, the window growing by `growth` per round.
fn rounds(n: u32, first: f64, growth: f64) -> u32 {
    let (mut sent, mut window, mut r) = (0.0, first, 0);
    while sent < f64::from(n) {
        sent += window.floor();
        window *= growth;
        r += 1;
    }
    r
}

#[test]
fn a_page_takes_the_rounds_of_slow_start() {
    assert_eq!([rounds(50, 1.0, 2.0), rounds(50, 4.0, 2.0), rounds(50, 10.0, 2.0)], [6, 4, 3]);
    for (window, handshake) in
        [(1.0, false), (1.0, true), (4.0, false), (4.0, true), (10.0, false), (10.0, true)]
    {
        let mut flow = bulk("web", 1, "sack", 64, RTT);
        flow.app = App::Pages(Pages { segments: 50, count: Some(3), idle: None });
        flow.start = Start::At(Duration::ZERO);
        flow.handshake = handshake;
        flow.endpoint.rules.initial_window = InitialWindow::Segments(window);
        let r = run(&scenario(60.0, vec![geo(1300.0, RTT, 50, 0.0)], vec![flow]), 1, Null).expect("a world");
        let least = f64::from(rounds(50, window, 2.0) + u32::from(handshake)) * RTT;
        assert_eq!(r.flows[0].pages.len(), 3);
        for page in &r.flows[0].pages {
            let took = page.took.as_secs_f64();
            assert!(took >= least && took <= least + 50.0 / 1300.0 + RTT, "{took} for {least}, IW {window}");
        }
    }
}

#[test]
fn the_window_limits_the_throughput_up_to_the_knee() {
    // 4 Mbit/s, 1500-byte packets, RTT 508 ms with the transmission of one packet: the knee is at 169.33 packets.
    let per_packet = 12_000.0 / 0.508;
    for window in [20, 43, 87, 160, 175, 240] {
        let mut link = geo(500.0, 0.505, 300, 0.0);
        link.name = "sat".into();
        let mut flow = bulk("f", 1, "sack", 0, 0.505);
        flow.endpoint.mss = 1460;
        flow.endpoint.receive_buffer = window * 1460;
        let (x, _) = throughput(&scenario(1000.0, vec![link], vec![flow]), 1);
        let expected = (window as f64 * per_packet).min(4e6);
        let ratio = x * 12_000.0 / expected;
        assert!((0.97..=1.03).contains(&ratio), "{window}: {ratio}");
    }
}

/// One flow on a path without congestion, starting near its mean window.
fn lossy(cc: &str, endpoint: Config, loss: f64, expected: f64, losses: f64) -> Resolved {
    let mut flow = FlowGroup { endpoint, ..bulk("f", 1, cc, 0, RTT) };
    flow.endpoint.receive_buffer = 20_000 * u64::from(endpoint.mss);
    flow.endpoint.rules.initial_ssthresh = InitialSsthresh::Segments((expected * RTT).max(2.0));
    // Long enough for that many losses.
    scenario(losses / (loss * expected), vec![geo(1e6, RTT, 1_000_000, loss)], vec![flow])
}

#[test]
fn sack_follows_the_square_root_law() {
    // [Mathis] with the constant for independent losses, and at high loss that for periodic ones, which allows
    // for what the limit neglects.
    for (p, c) in [(1e-4f64, 1.31), (1e-3, 1.31), (5e-3, 1.2247), (1e-2, 1.2247)] {
        let expected = c / (RTT * p.sqrt());
        let (x, _) = throughput(&lossy("sack", Config::ns2_2004(), p, expected, 100.0), 3);
        let ratio = x / expected;
        assert!(
            (0.85..=1.15).contains(&ratio),
            "p = {p}: {x:.2}/s, expected {expected:.2}/s, ratio {ratio:.3}"
        );
    }
}

/// [PFTK], full model without window limit; packets sent per second.
fn pftk(p: f64, rtt: f64, t0: f64) -> f64 {
    let (b, q1) = (1.0, 1.0 - p);
    let k = (2.0 + b) / (3.0 * b);
    let w = k + (8.0 * q1 / (3.0 * b * p) + k * k).sqrt();
    let f =
        1.0 + p + 2.0 * p.powi(2) + 4.0 * p.powi(3) + 8.0 * p.powi(4) + 16.0 * p.powi(5) + 32.0 * p.powi(6);
    let q = if w <= 3.0 {
        1.0
    } else {
        let c = q1.powi(3);
        ((1.0 - c) * (1.0 + c * (1.0 - q1.powf(w - 3.0))) / (1.0 - q1.powf(w))).min(1.0)
    };
    (q1 / p + w + q / q1) / (rtt * (b * w / 2.0 + 1.0) + q * t0 * f / q1)
}

#[test]
fn reno_without_sack_follows_the_full_model() {
    assert!((pftk(1e-2, RTT, 1.0) - 21.117).abs() < 1e-2 && (pftk(5e-2, RTT, 1.0) - 8.257).abs() < 1e-2);
    for p in [1e-3, 5e-3, 1e-2, 5e-2] {
        let expected = pftk(p, RTT, 1.0);
        let (_, x) = throughput(&lossy("reno", Config::ns2_2001(), p, expected, 600.0), 3);
        let ratio = x / expected;
        assert!(
            (0.7..=1.1).contains(&ratio),
            "p = {p}: {x:.2}/s, expected {expected:.2}/s, ratio {ratio:.3}"
        );
    }
}

/// Utilization of a clean drop-tail link by flows in phase: bandwidth-delay product and buffer in packets.
fn utilization(bdp: f64, buffer: f64) -> f64 {
    let (most, least) = (bdp + buffer, (bdp + buffer) / 2.0);
    if least >= bdp {
        return 1.0;
    }
    let above = (most * most - bdp * bdp) / 2.0;
    ((bdp * bdp - least * least) / 2.0 + above) / (bdp * (bdp - least) + above)
}

#[test]
fn drop_tail_is_used_as_much_as_the_sawtooth_says() {
    let bdp = 715.0;
    assert!((utilization(bdp, 0.0) - 0.75).abs() < 1e-9 && (utilization(bdp, 50.0) - 0.7988).abs() < 1e-4);
    // At least 20 periods each.
    for (flows, buffer, seconds) in [(5, 50, 800.0), (20, 50, 250.0), (20, 715, 900.0)] {
        let link = geo(1300.0, RTT, buffer, 0.0);
        let mut flow = bulk("f", flows, "sack", 2000, RTT);
        flow.endpoint.rules.initial_ssthresh = InitialSsthresh::Segments(bdp / f64::from(flows));
        let s = scenario(50.0 + seconds, vec![link], vec![flow]);
        let mut sim = Sim::new(&s, 1, Null).expect("a world");
        sim.run_until(Instant::from_secs_f64(50.0));
        let busy = |r: &skyhaul_sim::RunResult| r.links[0].utilization * r.duration.as_secs_f64();
        let before = busy(&sim.result());
        let used = (busy(&sim.finish()) - before) / seconds;
        let expected = utilization(bdp, f64::from(buffer));
        assert!(
            used >= expected - 0.03 && used <= 1.0,
            "{flows} flows, {buffer}: {used:.4}, expected {expected:.4}"
        );
    }
}
