//! A short outage takes the acknowledgements of what has arrived and the segments behind it. The receiver reports the copy of the head as
//! a duplicate.

use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::LossDetection;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::script::Script;

#[test]
fn explore() {
    for (name, config) in [
        ("dsack", Config { dsack_undo: true, ..Config::rfc() }),
        ("dsack frto", Config { dsack_undo: true, f_rto: true, ..Config::rfc() }),
        ("dsack frto rack", Config { dsack_undo: true, f_rto: true, loss_detection: LossDetection::Rack, ..Config::rfc() }),
        (
            "dsack frto rack tlp",
            Config { dsack_undo: true, f_rto: true, tail_loss_probe: true, loss_detection: LossDetection::Rack, ..Config::rfc() },
        ),
    ] {
        for more in [0, 1000, 20_000] {
            let config = Config { mss: 1000, receive_buffer: 100_000, ..config.clone() };
            let mut s = Script::<Counted>::established(&config, &Control::by_name("sack").expect("known"));
            s.write(1000);
            s.drain();
            s.at(0.1).accept(". 1:1 ack 1001 win 90000");
            s.write(4000 + more);
            s.drain();
            // P0 has arrived; its acknowledgement and P1 to P3 are lost.
            let copy = s.at(1.6).drain();
            let first = s.conn.counters();
            s.at(1.7).accept(". 1:1 ack 2001 win 90000 <sack 1001:2001>");
            let mut said = vec![];
            let mut acked = false;
            for n in 0..40 {
                let t = 1.7 + 0.05 * n as f64;
                s.at(t);
                let out = s.drain();
                if !out.is_empty() {
                    said.push(format!("{t:.2}: {out:?}"));
                }
                if n == 4 && !acked && more > 0 {
                    acked = true;
                    let end = if more > 1000 { 7001 } else { 6001 };
                    s.accept(&format!(". 1:1 ack 2001 win 90000 <sack 5001:{end}>"));
                }
            }
            println!("{name} {more}: copy {copy:?} {first:?}\n   {said:#?}\n   {:?} {:?}", s.conn.counters(), s.conn.snapshot());
        }
    }
}
