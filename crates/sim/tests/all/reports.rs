//! Public reports of other projects, tried here (docs/reports.md): those that concern a whole run, and that no other test
//! holds.

use skyhaul_scenario::Resolved;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::{LossCause, Null};

fn resolve(text: &str) -> Resolved {
    let text = format!("schema = 1\n{text}");
    skyhaul_scenario::resolve_text("test.toml", &text, &[], &skyhaul_scenario::no_files).expect("a scenario")
}

fn result(text: &str) -> RunResult {
    run(&resolve(text), 1, Null).expect("a run")
}

/// Mbit/s of the first flow.
fn goodput(text: &str) -> f64 {
    result(text).flows[0].goodput / 1e6
}

/// Mbit/s of the first flow from `from` to `to`, seconds; the scenario records `acked` each second.
fn between(r: &RunResult, from: f64, to: f64) -> f64 {
    let acked: Vec<(f64, f64)> = r.series.flows.of(0, "acked").collect();
    let at = |time: f64| acked.iter().rev().find(|(t, _)| *t <= time).expect("a sample").1;
    (at(to) - at(from)) * 8e-6 / (to - from)
}

const RECORD: &str = "[record]\nsample = \"1 s\"\nseries = [\"acked\", \"cwnd\", \"bwe\"]\n";

/// One flow over `rate` and `delay` one way; what else `link` and `flow` say.
fn one(seconds: u32, rate: &str, delay: &str, link: &str, flow: &str) -> String {
    format!(
        "duration = \"{seconds} s\"\n[links.sat]\nrate = \"{rate}\"\ndelay = {delay}\npacket = \"1500 B\"\n{link}\n\
         [flows.a]\n{flow}\n{RECORD}"
    )
}

/// smoltcp#949: the timer of a long path expires again before the answer to a repetition can come.
#[test]
fn after_an_outage_over_a_long_path_the_rate_comes_back() {
    let outage = "[[event]]\nat = \"30 s\"\nset = { \"links.sat.error\" = { kind = \"per\", p = 1.0 } }\n\
                  [[event]]\nat = \"40 s\"\nset = { \"links.sat.error\" = \"none\" }\n";
    let link = "queue = { kind = \"strict-pushout\", limit = \"1 BDP\" }\nreverse = { error = \"none\" }";
    for f_rto in [true, false] {
        let flow =
            format!("cc = \"cubic\"\nrwnd = \"460 segments\"\nendpoint = {{ f-rto = {f_rto} }}\n");
        let r = result(&(one(150, "10 Mbit/s", "\"275 ms\"", link, &flow) + outage));
        let rate = between(&r, 90.0, 150.0);
        assert!(rate > 8.5, "F-RTO {f_rto}: {rate} Mbit/s");
    }
}

/// s2n-quic#1326: a sender that waits for its pacer is taken for one that its application limits, and does not grow.
#[test]
fn waiting_for_the_pacer_is_no_want_of_data() {
    let link = "queue = \"1 BDP\"\nerror = { kind = \"per\", p = 1e-3 }\nreverse = { error = \"none\" }";
    let with = |pacing: bool| {
        let flow = format!("cc = {{ name = \"hybla\", pacing = {pacing} }}");
        goodput(&one(300, "10 Mbit/s", "\"275 ms\"", link, &flow))
    };
    let (paced, plain) = (with(true), with(false));
    assert!(paced > 0.9 * plain && plain > 5.0, "{paced} {plain}");
}

/// picoquic#1485, quicly#109: the window grows while the application sends little.
#[test]
fn an_application_that_sends_little_does_not_open_the_window() {
    for cc in ["sack", "cubic", "vegas", "westwood", "hybla", "peach"] {
        // 25 segments in a round trip of 500 ms.
        let flow = format!("cc = \"{cc}\"\napp = {{ kind = \"cbr\", rate = \"579200 bit/s\" }}");
        let r = result(&one(120, "100 Mbit/s", "\"250 ms\"", "queue = \"1 BDP\"", &flow));
        let cwnd = r.series.flows.of(0, "cwnd").last().expect("a sample").1;
        println!("{cc} {cwnd}");
    }
}

/// picoquic#1267: with an RTT of 10 s BBR measures the RTT all the time, unless it is told to do so less often.
#[test]
fn bbr_fills_the_longest_paths_where_it_measures_the_rtt_rarely_enough() {
    for cc in ["{ name = \"bbr\" }", "{ name = \"bbr\", min-rtt-window = 200.0 }", "\"cubic\"", "\"sack\"", "{name=\"bbr\",min-rtt-window=50.0}", "{name=\"bbr\",min-rtt-window=100.0}"] {
        let flow = format!("cc = {cc}\nendpoint = {{ initial-rto = \"30 s\" }}");
        println!("{cc} {}", goodput(&one(3000, "1 Mbit/s", "\"5 s\"", "queue = \"1 BDP\"", &flow)));
    }
    for d in ["1000 ms", "1500 ms", "2000 ms"] {
      for cc in ["bbr", "bbr3"] {
        let flow = format!("cc = \"{cc}\"\nendpoint = {{ initial-rto = \"30 s\" }}");
        println!("{d} {cc} {}", goodput(&one(1000, "1 Mbit/s", &format!("\"{d}\""), "queue = \"1 BDP\"", &flow)));
      }
    }
}

/// ngtcp2#333: BBR far behind CUBIC over 600 ms with jitter. picoquic#1694: HyStart leaves slow start at jitter.
#[test]
fn jitter_on_a_long_path_costs_bbr_and_hystart_little() {
    for cc in ["\"cubic\"", "{ name = \"cubic\", hystart = false }", "\"bbr\"", "\"bbr3\""] {
        let delay = "{ kind = \"uniform\", base = \"300 ms\", jitter = \"30 ms\" }";
        println!("{cc} {}", goodput(&one(120, "20 Mbit/s", delay, "queue = \"1 BDP\"", &format!("cc = {cc}\nrwnd = \"8 MB\""))));
    }
}

/// Acknowledgements that come in bursts: BBR and Linux of 2019, Westwood and its successors (Grieco, Mascolo 2004).
#[test]
fn acknowledgements_in_bursts() {
    for cc in ["\"bbr\"", "{ name = \"bbr\", extra-acked = true }", "\"bbr3\"", "\"cubic\"", "\"westwood\"", "\"westwood-plus\"", "\"westwood-abse\"", "\"tibet\""] {
        let link = "queue = \"200 packets\"\nreverse = { rate = \"unlimited\", delay = { kind = \"uniform\", base = \"10 ms\", jitter = \"100 ms\" } }";
        let r = result(&one(60, "20 Mbit/s", "\"10 ms\"", link, &format!("cc = {cc}")));
        println!("{cc} {} {:?}", r.flows[0].goodput/1e6, r.flows[0].bwe.map(|b| b.mean/1e6));
    }
}

/// La, Walrand and Anantharam 1999: Vegas after a change to a longer route.
#[test]
fn longer_route() {
    for cc in ["vegas", "bbr", "bbr3", "cubic", "hark"] {
        let events = "[[event]]\nat = \"60 s\"\nset = { \"links.sat.delay\" = \"200 ms\", \"links.sat.reverse.delay\" = \"200 ms\" }\n";
        let r = result(&(one(180, "10 Mbit/s", "\"25 ms\"", "queue = \"100 packets\"", &format!("cc = \"{cc}\"")) + events));
        println!("{cc} {} {}", between(&r, 20.0, 60.0), between(&r, 120.0, 180.0));
    }
}

/// picoquic#720
#[test]
fn fade() {
    for cc in ["cubic", "bbr", "bbr3"] {
        let events = "[[event]]\nat = \"40 s\"\nset = { \"links.sat.rate\" = \"10 Mbit/s\" }\n[[event]]\nat = \"80 s\"\nset = { \"links.sat.rate\" = \"100 Mbit/s\" }\n";
        let r = result(&(one(120, "100 Mbit/s", "\"25 ms\"", "queue = \"400 packets\"", &format!("cc = \"{cc}\"\nrwnd = \"8 MB\"")) + events));
        println!("{cc} {} {} {}", between(&r, 20.0, 40.0), between(&r, 60.0, 80.0), between(&r, 100.0, 120.0));
    }
}

/// gvisor#6113
#[test]
fn tiny() {
    for d in ["1 ns", "1 us", "10 us"] {
        let r = result(&one(10, "10 Mbit/s", &format!("\"{d}\""), "queue = \"50 packets\"", "cc = \"cubic\""));
        println!("{d} {}", r.flows[0].goodput/1e6);
    }
}

/// gvisor#7406
#[test]
fn shaper() {
    for cc in ["sack", "cubic"] { for d in ["rack", "dup-acks"] {
        let r = result(&one(120, "10 Mbit/s", "\"20 ms\"", "queue = \"20 packets\"", &format!("cc = \"{cc}\"\nendpoint = {{ loss-detection = \"{d}\" }}")));
        println!("{cc} {d} {}", r.flows[0].goodput/1e6);
    }}
}

/// Floyd and Jacobson 1992
#[test]
fn phase() {
    for jitter in [None, Some("5 ms")] {
    for extra in ["0 ms", "1 ms", "2 ms", "3 ms", "5 ms", "10 ms", "20 ms"] {
        let delay = jitter.map_or("\"50 ms\"".to_owned(), |j| format!("{{ kind = \"uniform\", base = \"50 ms\", jitter = \"{j}\" }}"));
        let text = format!("duration = \"200 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = {delay}\npacket = \"1000 B\"\nqueue = \"20 packets\"\n\
        [flows.a]\nhandshake = false\ncc = \"reno\"\nendpoint = \"ns2-2001\"\nrwnd=\"1000 segments\"\n[flows.b]\nhandshake=false\ncc = \"reno\"\nendpoint = \"ns2-2001\"\nrwnd=\"1000 segments\"\nextra-delay = \"{extra}\"\n");
        let r = result(&text);
        println!("{jitter:?} {extra} {} {}", r.flows[0].goodput/1e6, r.flows[1].goodput/1e6);
    }}
}

/// Streams
#[test]
fn streams() {
    let text = "duration = \"100 s\"\n[links.one]\nrate = \"unlimited\"\ndelay = \"1 ms\"\nerror = { kind = \"per\", p = 0.5 }\n\
       [links.two]\nrate = \"unlimited\"\ndelay = \"1 ms\"\nerror = { kind = \"per\", p = 0.5 }\n\
       [flows.a]\ntransport = \"udp\"\npath = [\"one\", \"two\"]\napp = { kind = \"cbr\", rate = \"1.2 Mbit/s\", packet = \"1500 B\" }\n";
    let r = result(text);
    println!("{} {:?} {:?}", r.flows[0].segments_sent, r.flows[0].datagrams.unwrap().delivered, r.flows[0].lost[LossCause::Error as usize]);
}

/// pensieve#39
#[test]
fn gaps() {
    let text = one(400, "x", "\"20 ms\"", "queue = \"50 packets\"", "cc = \"cubic\"").replace("\"x\"", "{ trace = \"r\", text = \"time_s,rate_mbit_s\\n0,10\\n60,0\\n160,10\" }");
    let r = result(&text);
    println!("{} {} {}", between(&r, 30.0, 60.0), between(&r, 61.0, 160.0), between(&r, 300.0, 400.0));
}
