//! TCP-Real in the simulator: the report end to end, and what telling link errors from congestion is worth.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_base::Instant;
use skyhaul_cc::{Config as Cc, InitialSsthresh, RecoveryMode, alg::tcp_real};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_sim::{RunResult, Sim, run};
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

fn real(classify: bool) -> Cc {
    Cc::TcpReal(tcp_real::Config { classify, recovery: RecoveryMode::Sack, ..Default::default() })
}

/// One flow alone on a GEO channel of 1300 packets per second that corrupts. The window fits into the channel and
/// its buffer: nothing is lost by congestion.
fn lossy(cc: Cc, loss: f64) -> Resolved {
    let mut flow = bulk("f", 1, "sack", 740, RTT);
    flow.cc = cc;
    scenario(300.0, vec![geo(1300.0, RTT, 800, loss)], vec![flow])
}

/// Mean over seeds, segments per second.
fn rate(cc: &Cc, loss: f64) -> f64 {
    let one = |seed| run(&lossy(cc.clone(), loss), seed, Null).expect("a world");
    (1..=5).map(|s| one(s).segments_acked() / 300.0).sum::<f64>() / 5.0
}

#[test]
fn link_errors_told_from_congestion_cost_less() {
    let sack = Cc::by_name("sack").expect("known");
    for (loss, factor) in [(1e-3, 5.0), (5e-3, 5.0)] {
        let (reno, plain, classify) = (rate(&sack, loss), rate(&real(false), loss), rate(&real(true), loss));
        let all =
            format!("{loss}: Reno {reno:.1}, TCP-Real {plain:.1}, with classify {classify:.1} segments/s");
        assert!(classify > factor * reno && classify < 1300.0, "{all}");
        // Where it cuts as Reno does, holding the window now and then costs a little.
        assert!((0.7..1.0).contains(&(plain / reno)), "{all}");
    }
}

#[test]
fn with_a_handshake() {
    let mut s = lossy(real(true), 0.0);
    s.flows[0].handshake = true;
    s.flows[0].known_rtt = None;
    // The window of a SYN is not scaled, and would be the threshold.
    s.flows[0].endpoint.rules.initial_ssthresh = InitialSsthresh::Segments(740.0);
    let with: RunResult = run(&s, 1, Null).expect("a world");
    // Alone on a clean path it fills the link after the slow start, and nothing is lost.
    let (rate, flow) = (with.segments_acked() / 300.0, &with.flows[0]);
    assert!(rate > 0.97 * 1300.0, "{rate}");
    assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
}

#[test]
fn only_its_own_segments_take_memory() {
    for (cc, stores) in [("newreno", false), ("tcp-real", true)] {
        let s = lossy(Cc::by_name(cc).expect("known"), 0.0);
        let mut sim = Sim::new(&s, 1, Null).expect("a world");
        sim.run_until(Instant::from_secs_f64(20.0));
        let (bodies, packets) = (sim.stored_bodies(), sim.in_network());
        assert!(packets > 50, "{packets}");
        assert_eq!(bodies, if stores { packets } else { 0 }, "{cc}");
    }
}
