//! RACK and the tail loss probe compared with detection by duplicate acknowledgements on the same path, in virtual time.

use crate::common;

use common::{rack, secs};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, LossDetection};
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::path::Delay;
use skyhaul_testkit::path::delay::uniform::Uniform;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const ONE_WAY: Duration = Duration::from_millis(275);
const MSS: u64 = 1448;
const BOTH: [LossDetection; 2] = [LossDetection::Rack, LossDetection::DupAcks];

fn setup(detection: LossDetection, cc: &str) -> Setup {
    // Detection alone: what it finds wrongly is not undone.
    let plain = Config {
        loss_detection: LossDetection::DupAcks,
        tail_loss_probe: false,
        dsack_undo: false,
        eifel: false,
        f_rto: false,
        ..Config::modern()
    };
    let config = if detection == LossDetection::Rack { rack(plain) } else { plain };
    Setup::new(config, &Control::by_name(cc).expect("known"), ONE_WAY)
}

/// `segments` full ones from client to server; the first `times` transmissions of the `nth` are lost. Returns the
/// pair at the end and when the server had read everything.
fn losing(setup: &Setup, segments: u64, nth: u64, times: u32) -> (Pair<Counted>, Instant) {
    let mut p: Pair<Counted> = setup.build();
    p.send(C, segments * MSS, false);
    let mut left = times;
    let seq = common::iss(C).wrapping_add(1 + (nth * MSS) as u32);
    p.faults(C, move |d| {
        if d.is_data() && d.segment.seq.0 == seq && left > 0 {
            left -= 1;
            return Verdict::Lose;
        }
        Verdict::Deliver
    });
    let mut done = Instant::MAX;
    p.run_with(secs(100.0), |p| {
        if p.end(Side::Server).received == segments * MSS {
            done = done.min(p.now());
        }
    });
    (p, done)
}

#[test]
fn a_lost_retransmission_is_repaired_without_timeout() {
    for cc in ["sack", "prr", "cubic", "peach"] {
        // A timer of a second, the standard's: Peach sends little but dummies in the first half of its recovery, and
        // what shows the loss was sent after them.
        let patient = |d| setup(d, cc).both(|c| c.rto.min = Duration::from_secs(1));
        let [(with, t_with), (without, t_without)] = BOTH.map(|d| losing(&patient(d), 300, 60, 2));
        let [with, without] = [with, without].map(|p| p.conn(C).counters());
        assert_eq!((with.timeouts, without.timeouts), (0, 1), "{cc}");
        // With Peach two acknowledgements arrive at one instant: new data leaves for the first one, the retransmission for the
        // second. RACK orders what left at one instant by sequence numbers (RFC 8985 §6.2), so it repeats the retransmission.
        let in_vain = u64::from(cc == "peach");
        assert_eq!((with.recoveries, with.retransmissions), (1, 2 + in_vain), "{cc}");
        // Peach starts suddenly after a timeout, which on an idle path beats any recovery.
        assert!(t_with < t_without || cc == "peach", "{cc}: {t_with:?} {t_without:?}");
    }
}

#[test]
fn a_lost_tail_is_repaired_after_two_rtts() {
    // RTT 50 ms, every segment acknowledged at once: SRTT 50 ms, RTO that and the margin of 200 ms. The data of 10
    // segments leave at 50 ms, after the handshake; the last one is lost, the others are acknowledged at 100 ms.
    let near = |d| {
        let mut s = setup(d, "cubic").both(|c| c.delayed_ack = DelayedAck::OFF);
        s.links.iter_mut().for_each(|l| l.delay = Delay::fixed(Duration::from_millis(25)));
        losing(&s, 10, 9, 1)
    };
    let [(with, t_with), (without, t_without)] = BOTH.map(near);
    let [with, without] = [with, without].map(|p| p.conn(C).counters());
    assert_eq!((with.timeouts, with.loss_probes, with.retransmissions), (0, 1, 1));
    assert_eq!((without.timeouts, without.loss_probes, without.retransmissions), (1, 0, 1));
    // The probe leaves 100 ms after those acknowledgements, the timer expires after 250 ms; half an RTT to arrive.
    assert_eq!([t_with, t_without], [secs(0.225), secs(0.375)]);
}

#[test]
fn where_the_rto_is_below_two_rtts_the_probe_saves_the_window_but_no_time() {
    // 550 ms: RTO = SRTT + 4 RTTVAR is below 2 SRTT, and the probe is never later than it.
    let [(with, t_with), (without, t_without)] = BOTH.map(|d| losing(&setup(d, "cubic"), 10, 9, 1));
    assert_eq!(t_with, t_without);
    assert_eq!([&with, &without].map(|p| p.conn(C).counters().timeouts), [0, 1]);
    assert!(with.conn(C).snapshot().cwnd >= 10.0 && without.conn(C).snapshot().cwnd < 3.0);
}

/// 2 Mbit/s, 275 ms and up to `jitter` more each way of the data, packets overtake each other, none is lost.
fn jittered(d: LossDetection, cc: &str, jitter: Duration) -> Pair<Counted> {
    let mut s = setup(d, cc);
    s.handshake = Handshake::Skipped(Some(ONE_WAY * 2));
    s.links[0].rate = skyhaul_base::Rate::from_bits_per_sec(2_000_000).into();
    s.links[0].delay = Uniform { base: ONE_WAY, jitter }.into();
    s.links[0].allow_reorder = true;
    s.seed = 7;
    let mut p: Pair<Counted> = s.build();
    p.send(C, u64::MAX / 8, false);
    p.run_until(secs(60.0));
    p
}

#[test]
fn reordering_costs_next_to_no_recoveries() {
    for cc in ["sack", "cubic"] {
        let jitter = Duration::from_millis(40);
        let [with, without] = BOTH.map(|d| jittered(d, cc, jitter));
        let [w, o] = [&with, &without].map(|p| (p.conn(C).counters(), p.conn(C).snapshot().una));
        assert!(w.0.recoveries <= 1 && w.0.retransmissions <= 5 && w.0.timeouts == 0, "{cc}: {:?}", w.0);
        assert!(o.0.recoveries >= 8 && o.0.dsacks == o.0.retransmissions, "{cc}: {:?}", o.0);
        assert!(w.1 > 2 * o.1, "{cc}: {} against {}", w.1, o.1);
    }
}
