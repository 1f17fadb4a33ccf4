//! Packet-timed rounds: a round ends with the first acknowledgement of what was sent after it began.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{
    Ack, Algorithm, Config as Control, CongestionControl, Cx, InitialSsthresh, Rules, Signal, Window,
};
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::{Pair, Setup, Side};
use std::sync::{Arc, Mutex};

const C: Side = Side::Client;
const RTT: Duration = Duration::from_millis(500);

/// A constant window that writes down the round of each acknowledgement.
#[derive(Debug)]
struct Rounds(f64, Arc<Mutex<Vec<u64>>>);

impl CongestionControl for Rounds {
    fn window(&self) -> Window {
        Window { cwnd: self.0, ssthresh: 2.0 }
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, _: &Ack) {
        self.1.lock().expect("a list").push(cx.path.round);
    }
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

fn setup(cc: &str, ssthresh: f64) -> Setup {
    let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(ssthresh), ..Rules::NS2_2004 };
    // 100 segments of 960 bytes: the receive window limits no test.
    let config = Config { receive_buffer: 100 * 960, rules, ..Config::ns2_2004() };
    let mut setup = Setup::new(config, &Control::by_name(cc).expect("known"), RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    setup
}

#[test]
fn a_round_is_a_window_of_acknowledgements() {
    for window in [1u32, 2, 5, 16] {
        let list = Arc::new(Mutex::new(Vec::new()));
        let mut p: Pair<Counted> =
            setup("sack", 64.0).build_with(|_, _| Algorithm::custom(Rounds(f64::from(window), list.clone())));
        p.send(C, 960_000, false);
        p.run_until(Instant::ZERO + RTT * 8 + Duration::from_millis(1));
        let rounds = list.lock().expect("a list").clone();
        assert_eq!(rounds.len(), 8 * window as usize);
        let expected: Vec<_> = (0..rounds.len() as u64).map(|k| k / u64::from(window) + 1).collect();
        assert_eq!(rounds, expected, "window {window}");
    }
}

#[test]
fn vegas_grows_by_a_segment_per_round_on_a_path_without_queues() {
    // Growth per acknowledgement is fixed when a round begins: 1 / cwnd. A round has an acknowledgement for each whole
    // segment of the window, so a window with a fraction grows by a little less than a segment. Windows below 6
    // segments are left out, since there the fraction weighs more. The initial window of two segments grows from the
    // second round on.
    let mut p: Pair<Counted> = setup("vegas", 2.0).build();
    p.send(C, 9_600_000, false);
    let mut last = 0.0;
    for k in 3..30u64 {
        p.run_until(Instant::ZERO + RTT * k + Duration::from_millis(1));
        let cwnd = p.conn(C).snapshot().cwnd;
        assert!(
            last == 0.0 || (0.85..=1.1).contains(&(cwnd - last)) || cwnd < 6.0,
            "round {k}: {last} to {cwnd}"
        );
        last = cwnd;
    }
    assert!(last > 25.0, "{last}");
}
