//! Path state that one connection leaves to the next one on the path, passed on by a driver outside of the simulator.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{
    Ack, Algorithm, Config as Control, CongestionControl, Cx, PathCache, PathState, Policy, Signal, Start,
    Window,
};
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const MSS: u64 = 960;
const RTT: Duration = Duration::from_millis(500);

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}
fn setup(cc: &str) -> Setup {
    let config = Config { receive_buffer: 64 * MSS, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, &Control::by_name(cc).expect("known"), RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    setup
}
/// After a transfer of 31 segments.
fn left() -> PathState {
    let mut p: Pair<Counted> = setup("fast-start").build();
    p.send(C, 31 * MSS, false);
    p.run_until(secs(10.0));
    p.conn(C).path_state().expect("Fast Start asks for it")
}
/// Departures of a transfer of 12 segments: seconds, low priority.
fn departures(p: &Pair<Counted>) -> Vec<(f64, bool)> {
    p.data_sent(C).map(|e| ((e.at - Instant::ZERO).as_secs_f64(), e.segment.low_priority)).collect()
}

#[test]
fn the_next_connection_begins_where_the_last_one_ended() {
    let state = left();
    assert_eq!((state.cwnd, state.ssthresh, state.srtt), (32.0, 64.0, Some(RTT)));
    // Five samples of 0.5 s: 0.25 s times (3/4)^4, in whole nanoseconds.
    assert_eq!(state.rttvar, Duration::from_nanos(79_101_562));
    let mut p: Pair<Counted> = setup("fast-start").build();
    p.end_mut(C).conn.recall(state);
    assert_eq!(p.conn(C).snapshot().srtt, Some(RTT), "before any sample of its own");
    p.send(C, 12 * MSS, false);
    p.run_until(secs(1.4));
    // Half of 32 in an RTT.
    let sent = departures(&p);
    assert_eq!(sent.len(), 12);
    for (k, &(at, low)) in sent.iter().enumerate() {
        assert!((at - k as f64 * 0.5 / 16.0).abs() < 1e-6 && low == (k > 0), "{k} at {at}, {low}");
    }
    assert_eq!(p.conn(C).unacked(), 0);
}

#[test]
fn it_may_be_told_before_a_handshake_and_is_forgotten_if_a_syn_is_lost() {
    for lost in [false, true] {
        let mut setup = setup("fast-start");
        setup.handshake = Handshake::Modelled;
        let mut p: Pair<Counted> = setup.build();
        p.end_mut(C).conn.recall(left());
        p.faults(C, move |d| if lost && d.index == 0 { Verdict::Lose } else { Verdict::Deliver });
        p.send(C, 12 * MSS, false);
        p.run_until(secs(20.0));
        let low = departures(&p).iter().filter(|d| d.1).count();
        assert_eq!(low, if lost { 0 } else { 11 });
        assert_eq!(p.conn(C).unacked(), 0);
    }
}

#[test]
fn who_does_not_ask_is_not_told() {
    let state = left();
    for cc in ["sack", "cubic", "peach"] {
        let mut p: Pair<Counted> = setup(cc).build();
        assert_eq!(p.conn(C).path_state(), None);
        p.end_mut(C).conn.recall(state);
        assert_eq!(p.conn(C).snapshot().srtt, None);
        p.send(C, 12 * MSS, false);
        p.run_until(secs(0.1));
        assert_eq!((p.data_sent(C).count(), p.conn(C).snapshot().cwnd), (1, 1.0), "{cc}");
    }
}

#[test]
fn what_makes_no_sense_is_not_taken_over() {
    let good = left();
    for (cwnd, ssthresh) in
        [(f64::NAN, 64.0), (f64::INFINITY, 64.0), (0.5, 64.0), (20.0, f64::NAN), (20.0, 0.0)]
    {
        let mut p: Pair<Counted> = setup("fast-start").build();
        p.end_mut(C).conn.recall(PathState { cwnd, ssthresh, ..good });
        p.send(C, 12 * MSS, false);
        p.run_until(secs(0.1));
        assert_eq!(p.conn(C).snapshot().cwnd, 1.0, "{cwnd}, {ssthresh}");
    }
}

/// A control that asks for the cached window without the RTT, and begins with this window.
#[derive(Debug)]
struct Own(f64);

impl CongestionControl for Own {
    fn window(&self) -> Window {
        Window { cwnd: self.0, ssthresh: 64.0 }
    }
    fn policy(&self) -> Policy {
        Policy { path_cache: PathCache::Window, ..Policy::default() }
    }
    fn on_start(&mut self, _: &mut Cx<'_>, start: &Start) {
        if let Start::Established { cached: Some(state), .. } = start {
            self.0 = state.cwnd;
        }
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

#[test]
fn the_rtt_is_taken_over_only_by_who_asks_for_it() {
    let own = |_, _| Algorithm::custom(Own(2.0));
    let mut p: Pair<Counted> = setup("sack").build_with(own);
    p.end_mut(C).conn.recall(left());
    assert_eq!(p.conn(C).snapshot().srtt, None);
    p.send(C, 50 * MSS, false);
    p.run_until(secs(0.1));
    assert_eq!((p.data_sent(C).count(), p.conn(C).snapshot().cwnd), (32, 32.0));
}
