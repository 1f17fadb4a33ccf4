//! Runs over links that follow traces.

use crate::text::resolved;
use skyhaul_scenario::Resolved;
use skyhaul_sim::run;
use skyhaul_trace::{Digest, Null};

fn scenario(rate: &str, delay: &str, flows: &str) -> Resolved {
    resolved(&format!(
        "schema = 1\nduration = \"40 s\"\n[links.sat]\npacket = \"1504 B\"\nrate = {rate}\ndelay = {delay}\n\
         queue = \"60 packets\"\nreverse = {{ rate = \"unlimited\", delay = \"250 ms\" }}\n{flows}\n\
         [record]\nsample = \"1 s\"\nseries = [\"acked\", \"delay\", \"rate\"]\n"
    ))
}

const UDP: &str =
    "[flows.f]\ntransport = \"udp\"\napp = { kind = \"cbr\", rate = \"20 Mbit/s\", packet = \"1504 B\" }";
const TCP: &str = "[flows.f]\ncount = 2";

/// One opportunity per millisecond is 12.032 Mbit/s.
fn every_millisecond() -> String {
    "{ mahimahi = \"all\", text = \"1\" }".to_owned()
}

#[test]
fn a_saturated_link_uses_every_opportunity() {
    // Three in the first 10 ms of 100, seven in the last: 10 packets of 1504 bytes per 100 ms.
    let trace = "{ mahimahi = \"burst\", text = \"\"\"\n2\n2\n9\n91\n92\n93\n94\n95\n96\n100\n\"\"\" }";
    let r = run(&scenario(trace, "\"250 ms\"", UDP), 1, Null).expect("a run");
    // 39.75 s of arrivals: 397 periods and those until 50 ms.
    let delivered = r.flows[0].datagrams.expect("datagrams").delivered;
    assert_eq!(delivered, 397 * 10 + 3);
    let rates: Vec<f64> = r.series.links.of(0, "rate").map(|(_, v)| v).collect();
    assert!(rates[0].is_nan() && rates[1..].iter().all(|v| *v == 100.0 * 1504.0 * 8.0), "{rates:?}");
}

#[test]
fn dense_opportunities_come_near_a_constant_rate() {
    let traced = run(&scenario(&every_millisecond(), "\"250 ms\"", TCP), 1, Null).expect("a run");
    let constant = run(&scenario("\"12.032 Mbit/s\"", "\"250 ms\"", TCP), 1, Null).expect("a run");
    let ratio = traced.segments_acked() / constant.segments_acked();
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn one_step_is_a_constant_rate_and_one_point_a_constant_delay() {
    let one = scenario(
        "{ trace = \"r\", text = \"time_s,rate_mbit_s\\n0,2.7\" }",
        "{ trace = \"d\", text = \"time_s,delay_ms\\n0,250\" }",
        TCP,
    );
    let plain = scenario("\"2.7 Mbit/s\"", "\"250 ms\"", TCP);
    let digest = |s: &Resolved| run(s, 7, Digest::default()).expect("a run").digest;
    assert_eq!(digest(&one), digest(&plain));
}

#[test]
fn a_step_of_the_rate_is_a_change_of_the_rate() {
    let trace = "{ trace = \"r\", text = \"\"\"\ntime_s,rate_mbit_s\n0,4\n20,1\n\"\"\" }";
    let r = run(&scenario(trace, "\"250 ms\"", UDP), 1, Null).expect("a run");
    let bits = r.links[0].delivered_bytes as f64 * 8.0;
    // 19.75 s at 4 Mbit/s and 20 s at 1 have arrived, to two packets.
    let want = 4e6 * 20.0 + 1e6 * 19.75;
    assert!((bits - want).abs() <= 2.0 * 1504.0 * 8.0, "{bits} {want}");
    let rates: Vec<f64> = r.series.links.of(0, "rate").map(|(_, v)| v).collect();
    assert_eq!((rates[1], rates[20], rates[21], rates[40]), (4e6, 4e6, 1e6, 1e6));
}

#[test]
fn a_delay_that_follows_a_trace_reaches_the_receiver() {
    let trace = "{ trace = \"d\", text = \"\"\"\ntime_s,delay_ms\n0,20\n10,40\n20,20\n\"\"\", interpolation = \"linear\", end = \"loop\" }";
    let flow = UDP.replace("20 Mbit/s", "100 kbit/s");
    let r = run(&scenario("\"unlimited\"", trace, &flow), 1, Null).expect("a run");
    let d = r.flows[0].datagrams.expect("datagrams");
    // It runs straight from 20 to 40 ms and back: 30 ms in the mean.
    let (mean, most) = (d.delay_mean.expect("a mean"), d.delay_max.expect("a delay"));
    assert!((mean - 0.030).abs() < 2e-4 && (0.0398..=0.040).contains(&most), "{mean} {most}");
    let delays: Vec<f64> = r.series.links.of(0, "delay").map(|(_, v)| v).collect();
    assert_eq!((delays[0], delays[5], delays[10], delays[25]), (0.020, 0.030, 0.040, 0.030));
}

#[test]
fn runs_over_traces_are_reproducible() {
    let s = scenario(&every_millisecond(), "\"250 ms\"", TCP);
    let digest = || run(&s, 3, Digest::default()).expect("a run").digest;
    assert_eq!(digest(), digest());
}
