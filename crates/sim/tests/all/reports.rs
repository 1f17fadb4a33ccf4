//! Public reports of other projects, tried here (docs/reports.md): those that concern a whole run, and that no other test
//! holds.

use crate::text::resolved;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::Null;

fn result(text: &str) -> RunResult {
    run(&resolved(text), 1, Null).expect("a run")
}

/// Mbit/s of the first flow.
fn goodput(text: &str) -> f64 {
    result(text).flows[0].goodput / 1e6
}

/// Payload bytes of a segment of the preset "modern".
const SEGMENT: f64 = 1448.0;

/// Mbit/s of the first flow from `from` to `to`, seconds.
fn between(r: &RunResult, from: f64, to: f64) -> f64 {
    let acked: Vec<(f64, f64)> = r.series.flows.of(0, "acked").collect();
    let at = |time: f64| acked.iter().rev().find(|(t, _)| *t <= time).expect("a sample").1;
    (at(to) - at(from)) * SEGMENT * 8e-6 / (to - from)
}

/// A change of the link `sat`.
fn event(at: u32, set: &str) -> String {
    format!("[[event]]\nat = \"{at} s\"\nset = {{ {set} }}\n")
}

const RECORD: &str = "[record]\nsample = \"1 s\"\nseries = [\"acked\", \"cwnd\"]\n";

/// One flow over `rate` and `delay` one way; what else `link` and `flow` say.
fn one(seconds: u32, rate: &str, delay: &str, link: &str, flow: &str) -> String {
    format!(
        "duration = \"{seconds} s\"\n[links.sat]\nrate = \"{rate}\"\ndelay = {delay}\npacket = \"1500 B\"\n{link}\n\
         [flows.a]\n{flow}\n{RECORD}"
    )
}

/// smoltcp#949: the timer of a long path expires again before the answer to a repetition can come, and the window stays at
/// its minimum.
#[test]
fn after_an_outage_over_a_long_path_the_rate_comes_back() {
    let link = "queue = { kind = \"strict-pushout\", limit = \"1 BDP\" }\nreverse = { error = \"none\" }";
    let outage = event(30, "\"links.sat.error\" = { kind = \"per\", p = 1.0 }")
        + &event(40, "\"links.sat.error\" = \"none\"");
    for f_rto in [true, false] {
        let flow = format!("cc = \"cubic\"\nrwnd = \"460 segments\"\nendpoint = {{ f-rto = {f_rto} }}\n");
        let r = result(&(one(150, "10 Mbit/s", "\"275 ms\"", link, &flow) + &outage));
        let rate = between(&r, 60.0, 150.0);
        assert!(rate > 9.0, "F-RTO {f_rto}: {rate} Mbit/s");
    }
}

/// s2n-quic#1326, ngtcp2#1372: a sender that waits for its pacer is taken for one that its application limits, and its window
/// does not grow.
#[test]
fn waiting_for_the_pacer_is_no_want_of_data() {
    let link = "queue = \"1 BDP\"\nerror = { kind = \"per\", p = 1e-3 }\nreverse = { error = \"none\" }";
    let mean = |pacing: bool| {
        let flow = format!("cc = {{ name = \"hybla\", pacing = {pacing} }}");
        let scenario = resolved(&one(300, "10 Mbit/s", "\"275 ms\"", link, &flow));
        (1..=4).map(|seed| run(&scenario, seed, Null).expect("a run").flows[0].goodput / 4e6).sum::<f64>()
    };
    // Paced at cwnd/SRTT it may be somewhat slower than in bursts; the fault left a quarter.
    let (paced, plain) = (mean(true), mean(false));
    assert!(paced > 0.6 * plain && plain > 5.0, "{paced} {plain}");
}

/// picoquic#1485, quicly#109: the window grows without end while the application sends little.
#[test]
fn an_application_that_sends_little_does_not_open_the_window() {
    for cc in ["sack", "cubic", "vegas", "westwood", "peach"] {
        // 25 segments in a round trip of 500 ms, of 1000 or more that the path has room for.
        let flow = format!("cc = \"{cc}\"\napp = {{ kind = \"cbr\", rate = \"579200 bit/s\" }}");
        let r = result(&one(120, "100 Mbit/s", "\"250 ms\"", "queue = \"1 BDP\"", &flow));
        let most = r.series.flows.of(0, "cwnd").map(|(_, cwnd)| cwnd).fold(0.0, f64::max);
        assert!((25.0..64.0).contains(&most), "{cc}: {most}");
    }
}

/// picoquic#885, #1267, #1268: with an RTT of 10 s BBR measures the RTT nearly all the time, unless it is told to do so less
/// often.
#[test]
fn bbr_fills_the_longest_paths_if_it_seldom_measures_the_rtt() {
    let with = |cc: &str| {
        let flow = format!("cc = {cc}\nendpoint = {{ initial-rto = \"30 s\" }}");
        goodput(&one(3000, "1 Mbit/s", "\"5 s\"", "queue = \"1 BDP\"", &flow))
    };
    let sack = with("\"sack\"");
    let seldom = "min-rtt-window = 200.0";
    for (cc, options) in
        [("bbr", seldom.to_owned()), ("bbr3", format!("{seldom}, probe-rtt-interval = 100.0"))]
    {
        let (usual, seldom) =
            (with(&format!("\"{cc}\"")), with(&format!("{{ name = \"{cc}\", {options} }}")));
        assert!(sack > 0.9 && usual < 0.6 && seldom > 0.8, "{cc}: {sack} {usual} {seldom}");
    }
}

/// ngtcp2#333: BBR is far behind CUBIC over 600 ms with jitter. picoquic#1694: HyStart takes jitter for a queue.
#[test]
fn jitter_on_a_long_path_costs_bbr_and_hystart_little() {
    let [cubic, without, bbr, bbr3] =
        ["\"cubic\"", "{ name = \"cubic\", hystart = false }", "\"bbr\"", "\"bbr3\""].map(|cc| {
            let delay = "{ kind = \"uniform\", base = \"300 ms\", jitter = \"30 ms\" }";
            goodput(&one(
                120,
                "20 Mbit/s",
                delay,
                "queue = \"1 BDP\"",
                &format!("cc = {cc}\nrwnd = \"8 MB\""),
            ))
        });
    assert!(cubic > 17.0 && (cubic / without - 1.0).abs() < 0.05, "{cubic} {without}");
    assert!(bbr > 0.85 * cubic && bbr3 > 0.85 * cubic, "{bbr} {bbr3} {cubic}");
}

/// Acknowledgements that wait and come together: too little room in BBR's window (Linux since 2019), too much bandwidth in the
/// estimate of Westwood (Grieco and Mascolo 2004).
#[test]
fn acknowledgements_in_bursts_mislead_bbr_and_westwood_and_not_their_successors() {
    let flow = |cc: &str| {
        let link = "queue = \"200 packets\"\nreverse = { rate = \"unlimited\", delay = { kind = \"uniform\", base = \"10 ms\", \
                    jitter = \"100 ms\" } }";
        result(&one(60, "20 Mbit/s", "\"10 ms\"", link, &format!("cc = {cc}"))).flows[0].clone()
    };
    let rate = |cc: &str| flow(cc).goodput / 1e6;
    let (plain, roomy) = (rate("\"bbr\""), rate("{ name = \"bbr\", extra-acked = true }"));
    assert!(plain < 7.0 && roomy > 11.0, "{plain} {roomy}");
    let (cubic, bbr3) = (rate("\"cubic\""), rate("\"bbr3\""));
    assert!(cubic > 18.0 && bbr3 > 15.0, "{cubic} {bbr3}");
    let estimate = |cc: &str| flow(&format!("\"{cc}\"")).bwe.expect("an estimate").mean / 1e6;
    assert!(estimate("westwood") > 40.0);
    for cc in ["westwood-plus", "westwood-abse", "tibet"] {
        let estimate = estimate(cc);
        assert!((10.0..20.0).contains(&estimate), "{cc}: {estimate}");
    }
}

/// La, Walrand and Anantharam 1999: Vegas takes the delay of a longer route for a queue that it makes itself.
#[test]
fn a_longer_route_starves_vegas_alone() {
    for cc in ["vegas", "bbr", "bbr3", "cubic", "hark"] {
        let longer = event(60, "\"links.sat.delay\" = \"200 ms\", \"links.sat.reverse.delay\" = \"200 ms\"");
        let link = "queue = \"100 packets\"";
        let r = result(&(one(180, "10 Mbit/s", "\"25 ms\"", link, &format!("cc = \"{cc}\"")) + &longer));
        let (before, behind) = (between(&r, 20.0, 60.0), between(&r, 120.0, 180.0));
        assert!(
            before > 9.0 && if cc == "vegas" { behind < 1.0 } else { behind > 6.0 },
            "{cc}: {before} {behind}"
        );
    }
}

/// picoquic#720: a fade to a tenth of the rate and back.
#[test]
fn the_rate_follows_a_fade_down_and_up() {
    for cc in ["cubic", "bbr", "bbr3"] {
        let fade = event(40, "\"links.sat.rate\" = \"10 Mbit/s\"")
            + &event(80, "\"links.sat.rate\" = \"100 Mbit/s\"");
        let flow = format!("cc = \"{cc}\"\nrwnd = \"8 MB\"");
        let r = result(&(one(120, "100 Mbit/s", "\"25 ms\"", "queue = \"400 packets\"", &flow) + &fade));
        let rates = [20.0, 60.0, 100.0].map(|from| between(&r, from, from + 20.0));
        assert!(rates[0] > 90.0 && rates[1] > 9.0 && rates[2] > 90.0, "{cc}: {rates:?}");
    }
}

/// gvisor#6113: nothing moves when the RTT is tiny.
#[test]
fn paths_of_nanoseconds_carry_what_others_do() {
    for delay in ["1 ns", "1 us", "10 us"] {
        let delay = format!("\"{delay}\"");
        let rate = goodput(&one(10, "10 Mbit/s", &delay, "queue = \"50 packets\"", "cc = \"cubic\""));
        assert!(rate > 9.6, "{delay}: {rate}");
    }
}

/// gvisor#7406: with RACK a bottleneck with a short queue is used less.
#[test]
fn rack_costs_nothing_at_a_short_queue() {
    for cc in ["sack", "cubic"] {
        let [rack, duplicates] = ["rack", "dup-acks"].map(|detection| {
            let flow = format!("cc = \"{cc}\"\nendpoint = {{ loss-detection = \"{detection}\" }}");
            goodput(&one(120, "10 Mbit/s", "\"20 ms\"", "queue = \"20 packets\"", &flow))
        });
        assert!(rack > 0.97 * duplicates && duplicates > 9.0, "{cc}: {rack} {duplicates}");
    }
}

/// pensieve#39: a trace in which nothing is sent for a long time.
#[test]
fn a_trace_with_a_long_gap_goes_on_after_it() {
    let trace = "rate = { trace = \"r\", text = \"time_s,rate_mbit_s\\n0,10\\n60,0\\n160,10\" }";
    let text = one(400, "RATE", "\"20 ms\"", "queue = \"50 packets\"", "cc = \"cubic\"");
    let r = result(&text.replace("rate = \"RATE\"", trace));
    let rates = [(30.0, 60.0), (61.0, 160.0), (300.0, 400.0)].map(|(from, to)| between(&r, from, to));
    assert!(rates[0] > 9.5 && rates[1] == 0.0 && rates[2] > 9.5, "{rates:?}");
}

/// Streams of random numbers that overlap: what two links lose is independent, and so are two seeds.
#[test]
fn losses_of_two_links_are_independent() {
    let link = |name: &str| {
        format!(
            "[links.{name}]\nrate = \"unlimited\"\ndelay = \"1 ms\"\nerror = {{ kind = \"per\", p = 0.5 }}\n"
        )
    };
    let text = format!(
        "duration = \"100 s\"\n{}{}[flows.a]\ntransport = \"udp\"\npath = [\"one\", \"two\"]\n\
         app = {{ kind = \"cbr\", rate = \"1.2 Mbit/s\", packet = \"1500 B\" }}\n",
        link("one"),
        link("two")
    );
    let scenario = resolved(&text);
    let delivered = |seed: u64| {
        let r = run(&scenario, seed, Null).expect("a run");
        assert_eq!(r.flows[0].segments_sent, 10_001);
        r.flows[0].datagrams.expect("datagrams").delivered as f64
    };
    // A quarter of 10,001; the deviation is 43.3. Links that lost the same would deliver a half, those that lost what the
    // other lets pass nothing.
    let all: Vec<f64> = (1..=10).map(delivered).collect();
    assert!(all.iter().all(|n| (n - 2500.0).abs() < 4.0 * 43.3), "{all:?}");
    let mean = all.iter().sum::<f64>() / 10.0;
    let deviation = (all.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 9.0).sqrt();
    assert!((mean - 2500.0).abs() < 4.0 * 13.7 && (10.0..100.0).contains(&deviation), "{mean} {deviation}");
}

/// Floyd and Jacobson 1992: where nothing is random, the phase of two flows decides whose packets find a full queue. ns-2 has
/// `overhead_` against it, real paths have jitter.
#[test]
fn phase_effects_at_a_drop_tail_queue_end_with_jitter() {
    let shares = |delay: &str| {
        let flow = "handshake = false\ncc = \"reno\"\nendpoint = \"ns2-2001\"\nrwnd = \"1000 segments\"\nstart = \"0 s\"";
        let r = result(&format!(
            "duration = \"200 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = {delay}\npacket = \"1000 B\"\n\
             queue = \"20 packets\"\n[flows.a]\n{flow}\n[flows.b]\n{flow}\nextra-delay = \"5 ms\"\n"
        ));
        r.flows[0].goodput / r.flows[1].goodput
    };
    // The second flow has 110 ms of round trip instead of 100.
    let (still, jittered) =
        (shares("\"50 ms\""), shares("{ kind = \"uniform\", base = \"50 ms\", jitter = \"5 ms\" }"));
    assert!(still > 3.0 && (0.5..2.0).contains(&jittered), "{still} {jittered}");
}
