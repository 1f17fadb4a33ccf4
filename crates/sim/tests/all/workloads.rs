//! Sources, transfers that arrive at random, and changes during a run.

use crate::text::{refusal, resolved};
use skyhaul_base::{Duration, Instant};
use skyhaul_sim::quantity::FLOW;
use skyhaul_sim::{FlowResult, Opened, Place, RunResult, Sighting, Sim, Tap, run};
use skyhaul_tcp::Flags;
use skyhaul_trace::{Class, Digest, Event, LinkChange, LossCause, Memory, Null, Recorder};
use std::collections::{BTreeMap, BTreeSet};

fn refused(text: &str) -> String {
    refusal(&format!("{LINK}{text}"))
}

/// 1000 packets/s of 1000 bytes, 250 ms.
const LINK: &str = r#"
schema = 1
duration = "100 s"
[links.sat]
packet = "1000 B"
rate = "8 Mbit/s"
delay = "250 ms"
queue = "50 packets"
reverse = { rate = "unlimited" }
"#;

fn result(text: &str) -> RunResult {
    let scenario = resolved(&format!("{LINK}{text}"));
    // The file that a result is stored with runs again to the same result.
    let again = resolved(&scenario.to_toml());
    assert_eq!(again, scenario);
    run(&scenario, 1, Null).expect("a run")
}

fn group<'a>(result: &'a RunResult, name: &'a str) -> &'a FlowResult {
    result.group(name).next().expect("the group")
}

#[test]
fn a_constant_rate_is_carried_as_it_is() {
    let r = result(
        r#"
[flows.udp]
transport = "udp"
app = { kind = "cbr", rate = "1 Mbit/s", packet = "1000 B" }
"#,
    );
    let f = group(&r, "udp");
    // One every 8 ms, at 0 as well as at 100 s.
    assert_eq!(f.segments_sent, 12_501);
    // The last to arrive left 251 ms before the end: 1 ms to transmit, 250 to propagate.
    let d = f.datagrams.expect("datagrams");
    assert_eq!(d.delivered, 12_469);
    assert_eq!(f.bytes_acked, d.delivered * 972);
    assert_eq!(f.lost, [0; LossCause::COUNT]);
    assert_eq!((d.delay_mean, d.delay_max, d.jitter), (Some(0.251), Some(0.251), Some(0.0)));
    assert!((d.delay_p95.unwrap() - 0.251).abs() < 3e-4);
    assert_eq!(f.last_ack, None);
}

#[test]
fn what_a_link_cannot_carry_is_lost() {
    let r = result(
        r#"
[flows.udp]
count = 2
transport = "udp"
app = { kind = "cbr", rate = "6 Mbit/s" }
start = { uniform = ["0 s", "1 s"] }
"#,
    );
    let link = r.link("sat", true).unwrap();
    let mut starts: Vec<f64> = r.flows.iter().map(|f| f.started.expect("it sends").as_secs_f64()).collect();
    starts.sort_by(f64::total_cmp);
    // Three quarters busy while one sends, then without a pause.
    let busy = 0.75 * (starts[1] - starts[0]) + (100.0 - starts[1]);
    assert!((link.utilization - busy / 100.0).abs() < 2e-5, "{} {busy}", link.utilization);
    for f in &r.flows {
        assert_eq!(f.lost.iter().sum::<u64>(), f.lost[LossCause::Full as usize]);
    }
    let sent: u64 = r.flows.iter().map(|f| f.segments_sent).sum();
    let lost: u64 = r.flows.iter().map(|f| f.lost.iter().sum::<u64>()).sum();
    let delivered: u64 = r.flows.iter().map(|f| f.datagrams.unwrap().delivered).sum();
    // At the end 50 wait, one is transmitted, and one per millisecond propagates.
    assert!((sent - lost - delivered).abs_diff(50 + 1 + 250) <= 1, "{}", sent - lost - delivered);
    // 12 Mbit/s into 8: of 1500 packets per second 500 are lost, but for those that fill the queue.
    let full = 500.0 * (100.0 - starts[1]) - 51.0;
    assert!((lost as f64 - full).abs() <= 2.0, "{lost} {full}");
    assert_eq!(lost, link.class(Class::Data).lost());
    // A full queue: one is transmitted, in part, and 49 wait before the one that comes.
    let d = r.flows[0].datagrams.unwrap();
    assert!(d.delay_max.is_some_and(|d| d > 0.300 && d <= 0.301), "{:?}", d.delay_max);
    assert!((d.delay_p95.unwrap() - 0.3005).abs() < 1e-3, "{:?}", d.delay_p95);
}

#[test]
fn a_source_with_pauses_has_its_mean_rate() {
    let text = format!(
        "{LINK}{}",
        r#"
[flows.udp]
count = 40
transport = "udp"
app = { kind = "on-off", rate = "400 kbit/s", on = { exponential = "500 ms" }, off = { exponential = "1.5 s" } }
start = "0 s"
"#
    );
    let scenario = resolved(&text);
    // 40 · 50/4 packets per second. Of exponential phases with the means a and b the time that a flow is on has the
    // variance 2 (a b)² / (a + b)³ per second: 3.75 s of 25 s in a run, 0.75 % over 400 of them. Four times that.
    let sent = |seed| run(&scenario, seed, Null).unwrap().flows.iter().map(|f| f.segments_sent).sum::<u64>();
    let mean = (1..=10).map(sent).sum::<u64>() as f64 / 10.0;
    assert!((mean / 50_000.0 - 1.0).abs() < 0.03, "{mean}");
    let heavy = r#"
[flows.udp]
transport = "udp"
app = { kind = "on-off", rate = "400 kbit/s", on = { pareto = { mean = "500 ms", shape = 1.5 } }, off = "500 ms" }
"#;
    // A phase on lasts 1/6 s at least, 8 packets, and one off 1/2 s: 8 packets in 2/3 s at least, and 50 per second at most.
    let sent = group(&result(heavy), "udp").segments_sent;
    assert!((1200..=5001).contains(&sent), "{sent}");
}

#[test]
fn a_connection_that_its_application_limits_carries_what_there_is() {
    let r = result(
        r#"
[flows.slow]
app = { kind = "cbr", rate = "53 kbit/s" }
endpoint = "modern"
rwnd = "1 MiB"
cc = "newreno"
[record]
sample = "1 s"
series = ["cwnd"]
"#,
    );
    let f = group(&r, "slow");
    // 53 kbit/s for 100 s less what is on its way for 501 ms, to within two segments.
    let carried = 53_000.0 * (100.0 - 0.501);
    assert!((f.goodput * 100.0 - carried).abs() < 2.0 * 8000.0, "{} {carried}", f.goodput * 100.0);
    assert_eq!((f.timeouts, f.retransmissions), (0, 0));
    // Two or three segments per RTT never fill the initial window of ten, so it has no reason to grow (RFC 7661).
    let cwnd = r.series.flows.of(0, "cwnd").map(|(_, v)| v).fold(0.0, f64::max);
    assert_eq!(cwnd, 10.0);
}

#[test]
fn transfers_arrive_at_random_and_complete() {
    let text = r#"
[flows.web]
count = 2
cc = "sack"
endpoint = "modern"
app = { kind = "arrivals", rate = "2 /s", size = { pareto = { min = "4 kB", max = "400 kB", shape = 1.2 } } }
start = "0 s"
stop = "80 s"
"#;
    let r = result(text);
    let scenario = resolved(&format!("{LINK}{text}"));
    let runs = (1..=10).map(|seed| run(&scenario, seed, Null).unwrap());
    let all: Vec<FlowResult> = runs.flat_map(|r| r.flows).collect();
    let (transfers, bytes) =
        all.iter().fold((0.0, 0.0), |(t, b), f| (t + f.transfers as f64, b + f.bytes_acked as f64));
    // 160 per flow, as variance too: four deviations.
    let expected = 160.0 * all.len() as f64;
    assert!((transfers - expected).abs() < 4.0 * expected.sqrt(), "{transfers} {expected}");
    // Mean and second moment of this bounded Pareto size.
    let (least, most, shape) = (4e3_f64, 4e5_f64, 1.2);
    let moment = |k: f64| {
        let part = most.powf(k - shape) - least.powf(k - shape);
        shape * least.powf(shape) * part / ((k - shape) * (1.0 - (least / most).powf(shape)))
    };
    let deviation = ((moment(2.0) - moment(1.0).powi(2)) / transfers).sqrt();
    assert!((bytes / transfers - moment(1.0)).abs() < 4.0 * deviation, "{} {deviation}", bytes / transfers);
    for f in &r.flows {
        // All that came by 80 s are complete 20 s later.
        assert_eq!(f.pages.len() as u64, f.transfers);
        assert_eq!(f.unfinished, []);
        assert!(f.finished.is_some() && f.last_ack.is_some());
        // A handshake, and at least one more round trip.
        assert!(f.pages.iter().all(|p| p.took > Duration::from_secs(1)));
        // Each has its number, its beginning and its size.
        let mut rows = f.pages.clone();
        rows.sort_by_key(|p| p.number);
        assert!(rows.iter().map(|p| p.number).eq(0..f.transfers));
        assert!(rows.windows(2).all(|two| two[0].began <= two[1].began));
        assert_eq!(rows.iter().map(|p| p.bytes).sum::<u64>(), f.bytes_acked);
        assert!(f.page_quantile(0.5) <= f.page_quantile(0.95));
    }
    assert_ne!(r.flows[0].transfers, r.flows[1].transfers);
}

#[test]
fn losses_and_open_transfers_count_for_their_flow() {
    let r = result(
        r#"
error = { kind = "per", p = 0.02 }
[flows.web]
endpoint = "modern"
app = { kind = "arrivals", rate = "1 /s", size = "100 kB" }
"#,
    );
    let f = group(&r, "web");
    let data = r.link("sat", true).unwrap().class(Class::Data).dropped;
    assert_eq!(f.lost, data);
    // Two in a hundred of what was sent, each by its own draw: four deviations.
    let (sent, lost) = (f.segments_sent as f64, f.lost[LossCause::Error as usize] as f64);
    assert!((lost - 0.02 * sent).abs() < 4.0 * (0.02 * 0.98 * sent).sqrt(), "{lost} of {sent}");
    assert!(sent > f.bytes_acked as f64 / 1460.0, "{sent}");
    assert!(f.retransmissions > 0 && f.cuts.total() > 0);
    // Some are under way at the end, and what they have delivered is there.
    assert!((f.pages.len() as u64) < f.transfers);
    assert_eq!((f.pages.len() + f.unfinished.len()) as u64, f.transfers);
    assert!(f.bytes_acked > f.pages.len() as u64 * 100_000);
    for page in f.pages.iter().chain(&f.unfinished) {
        assert_eq!(page.bytes, 100_000);
        assert!(page.began + page.took <= Instant::ZERO + r.duration, "{page:?}");
    }
}

#[test]
fn late_packets_and_open_transfers_count_for_their_flow() {
    // The links reorder: acknowledgements, and segments that were sent again in vain, reach connections that are complete.
    let delay =
        "delay = { kind = \"uniform\", base = \"200 ms\", jitter = \"100 ms\" }\nallow-reorder = true";
    let text = LINK.replace("delay = \"250 ms\"", delay)
        + r#"error = { kind = "per", p = 0.05 }
[flows.few]
endpoint = "modern"
app = { kind = "arrivals", rate = "1 /s", size = "50 kB" }
[flows.many]
endpoint = "modern"
app = { kind = "arrivals", rate = "8 /s", size = "4 kB" }
"#;
    let mut memory = Memory::default();
    let r = run(&resolved(&text), 1, &mut memory).expect("a run");
    let discarded = memory.events.iter().filter(|(_, e)| matches!(e, Event::Discarded { .. })).count() as u64;
    assert!(discarded > 10, "{discarded}");
    assert_eq!(r.flows.iter().map(|f| f.discarded).sum::<u64>(), discarded);
    let lost = |f: &FlowResult| f.lost.iter().sum::<u64>();
    assert_eq!(
        r.flows.iter().map(lost).sum::<u64>(),
        r.link("sat", true).expect("a link").class(Class::Data).lost()
    );
    let acks = memory.events.iter().filter(|(_, e)| matches!(e, Event::AckArrived { .. }));
    assert_eq!(r.flows.iter().filter_map(|f| f.last_ack).max(), acks.map(|(at, _)| *at).max());
    assert!(r.flows.iter().any(|f| !f.unfinished.is_empty()), "some are open at the end");
}

/// Data of transfers that was lost, by flow.
#[derive(Default)]
struct Fates {
    /// The flow of each transfer, by connection and generation.
    owners: BTreeMap<(u32, u16), u32>,
    /// The generation of the last transfer of each connection.
    last: BTreeMap<u32, u16>,
    lost: BTreeMap<u32, u64>,
    /// What was lost while its connection carried a transfer of the other flow.
    late: u64,
}
impl Recorder for Fates {
    const ENABLED: bool = false;
    fn record(&mut self, _: Instant, _: &Event) {}
}
impl Tap for Fates {
    const PACKETS: bool = true;
    fn packet(&mut self, _: Instant, seen: &Sighting<'_>) {
        // A result counts segments with data, SYN or FIN towards the receiver.
        let segment = seen.segment;
        let is_data = segment.len > 0 || segment.flags.has(Flags::SYN) || segment.flags.has(Flags::FIN);
        let is_lost = matches!(seen.place, Place::Lost { .. }) && is_data && !seen.backward;
        if let (true, Some(owner)) = (is_lost, self.owners.get(&(seen.flow, seen.generation))) {
            *self.lost.entry(*owner).or_default() += 1;
            self.late += u64::from(self.owners[&(seen.flow, self.last[&seen.flow])] != *owner);
        }
    }
    fn transfer(&mut self, opened: &Opened) {
        self.owners.insert((opened.flow, opened.generation), opened.owner);
        self.last.insert(opened.flow, opened.generation);
    }
}

#[test]
fn late_packets_count_for_the_flow_of_their_transfer_after_the_connection_is_used_again() {
    // Few connections, which both flows use in turn, and copies that are lost long after their transfer is complete.
    let delay = "delay = { kind = \"uniform\", base = \"10 ms\", jitter = \"900 ms\" }\nallow-reorder = true\ndrop-in-flight = true";
    let mut text = LINK.replace("delay = \"250 ms\"", delay)
        + r#"error = { kind = "per", p = 0.2 }
[flows.few]
endpoint = "modern"
app = { kind = "arrivals", rate = "20 /s", size = "9 kB" }
[flows.many]
endpoint = "modern"
app = { kind = "arrivals", rate = "30 /s", size = "9 kB" }
"#;
    for n in 1..60 {
        let (down, up) = (n * 300, n * 300 + 20);
        text += &format!(
            "[[event]]\nat = \"{down} ms\"\nset = {{ \"links.sat.up\" = false }}\n[[event]]\nat = \"{up} ms\"\nset = {{ \"links.sat.up\" = true }}\n"
        );
    }
    let mut sim = Sim::new(&resolved(&text), 1, Fates::default()).expect("a world");
    sim.run_until(Instant::MAX);
    let result = sim.result();
    let fates = sim.recorder();
    let connections: BTreeSet<u32> = fates.owners.keys().map(|(flow, _)| *flow).collect();
    assert!(connections.len() * 2 < fates.owners.len(), "connections are used again");
    assert!(fates.late > 0, "something is lost late");
    let lost: Vec<u64> = result.flows.iter().map(|f| f.lost.iter().sum()).collect();
    let expected: Vec<u64> = (0..2).map(|n| fates.lost.get(&n).copied().unwrap_or(0)).collect();
    assert!(expected.iter().all(|n| *n > 20), "{expected:?}");
    assert_eq!(lost, expected);
}

#[test]
fn pages_in_progress_at_the_end_count_with_the_time_they_have_taken() {
    let column = |f: &FlowResult, name: &str| {
        let quantity = FLOW.iter().find(|q| q.name == name).expect("the quantity");
        quantity.value(f, Duration::from_secs(100)).real()
    };
    // 1000 segments a second: of 150000 none finishes in 100 s.
    let r = result(
        r#"
[flows.starved]
start = "40 s"
endpoint = "modern"
app = { kind = "pages", segments = 150000 }
[flows.stopped]
endpoint = "modern"
app = { kind = "pages", segments = 150000 }
stop = "30 s"
[flows.small]
endpoint = "modern"
app = { kind = "pages", segments = 10, count = 2, idle = "1 s" }
[flows.bulk]
endpoint = "modern"
"#,
    );
    let starved = group(&r, "starved");
    let started = starved.unfinished.iter().map(|p| p.took).collect::<Vec<_>>();
    assert_eq!((starved.pages.len(), &*started), (0, &[Duration::from_secs(60)][..]));
    assert!(column(starved, "page_time_mean").is_nan());
    assert_eq!(column(starved, "pages_unfinished"), 1.0);
    assert!((column(starved, "page_time_least") - 60.0).abs() < 1e-9);
    // A page taken back when its flow stops took until the flow was over.
    let stopped = group(&r, "stopped");
    let took = stopped.unfinished.iter().map(|t| t.took.as_secs_f64()).collect::<Vec<_>>();
    assert!(stopped.pages.is_empty() && took.len() == 1 && took[0] >= 30.0 && took[0] < 40.0, "{took:?}");
    // Complete ones, and data that are no pages, leave nothing open.
    let small = group(&r, "small");
    assert_eq!((small.pages.len(), small.unfinished.len()), (2, 0));
    assert_eq!(column(small, "page_time_least"), column(small, "page_time_mean"));
    assert_eq!(column(group(&r, "bulk"), "pages_unfinished"), 0.0);
}

#[test]
fn connections_that_are_over_are_used_again() {
    let text = r#"
[flows.web]
endpoint = "modern"
app = { kind = "arrivals", rate = "20 /s", size = "1 kB" }
"#;
    let scenario = resolved(&format!("{LINK}{text}"));
    let digest = || run(&scenario, 3, Digest::default()).unwrap();
    let r = digest();
    let f = group(&r, "web");
    // 2000 expected, as variance too: four deviations.
    assert!(f.transfers.abs_diff(2000) < 179, "{}", f.transfers);
    assert_eq!(f.discarded, 0);
    assert_eq!((r.digest, &r.flows), (digest().digest, &digest().flows));
}

#[test]
fn a_change_of_rate_holds_from_its_instant() {
    let r = result(
        r#"
[flows.udp]
transport = "udp"
app = { kind = "cbr", rate = "4 Mbit/s" }
[[event]]
at = "60 s"
set = { "links.sat.rate" = "8 Mbit/s" }
[[event]]
at = "20 s"
set = { "links.sat.rate" = "2 Mbit/s", "links.sat.queue.limit" = "10 packets" }
"#,
    );
    let f = group(&r, "udp");
    let full = f.lost[LossCause::Full as usize] as f64;
    // For 40 s 250 of 500 packets per second find no room, but for the 10 that fill the queue.
    assert_eq!(full, 10_000.0 - 10.0);
    assert_eq!(r.link("sat", true).unwrap().max_queue, 10);
}

#[test]
fn series_and_events_show_when_a_link_changed() {
    let text = r#"
[flows.udp]
transport = "udp"
app = { kind = "cbr", rate = "100 kbit/s" }
[[event]]
at = "20.5 s"
set = { "links.sat.rate" = "2 Mbit/s", "links.sat.delay" = "100 ms" }
[[event]]
at = "30.5 s"
set = { "links.sat.up" = false }
[[event]]
at = "40.5 s"
set = { "links.sat.up" = true }
[record]
sample = "1 s"
series = ["delay", "rate", "up"]
"#;
    let s = resolved(&format!("{LINK}{text}"));
    let mut memory = Memory::default();
    let r = run(&s, 1, &mut memory).expect("a run");
    let before = |name: &str| r.series.links.of(0, name).next().expect("a sample").1;
    let (rate, delay) = (before("rate"), before("delay"));
    for (t, value) in r.series.links.of(0, "rate") {
        let down = t > 30.5 && t < 40.5;
        assert_eq!(
            value,
            if t < 20.5 {
                rate
            } else if down {
                0.0
            } else {
                2e6
            },
            "{t}"
        );
    }
    for (t, value) in r.series.links.of(0, "delay") {
        assert_eq!(value, if t < 20.5 { delay } else { 0.1 }, "{t}");
    }
    let down = r.series.links.of(0, "up").filter(|(_, up)| *up == 0.0).count();
    assert_eq!(down, 10);
    // The reverse direction has a rate of its own: infinitely fast, which is a gap.
    assert!(r.series.links.of(1, "rate").filter(|(t, _)| *t < 30.5).all(|(_, v)| v.is_nan()));
    let changes: Vec<(f64, LinkChange, u64)> = memory
        .events
        .iter()
        .filter_map(|(at, e)| match e {
            Event::LinkChanged { link: 0, what, value } => Some((at.as_secs_f64(), *what, *value)),
            _ => None,
        })
        .collect();
    let want = [
        (20.5, LinkChange::Rate, 2_000_000),
        (20.5, LinkChange::Delay, 100_000_000),
        (30.5, LinkChange::Up, 0),
        (40.5, LinkChange::Up, 1),
    ];
    assert_eq!(changes, want);
}

#[test]
fn a_link_that_is_down_keeps_what_waits_and_says_why_it_loses() {
    let text = |drop: bool| {
        format!(
            r#"
drop-in-flight = {drop}
[flows.udp]
transport = "udp"
app = {{ kind = "cbr", rate = "1 Mbit/s" }}
[[event]]
at = "50 s"
set = {{ "links.sat.up" = false }}
[[event]]
at = "50.2 s"
set = {{ links.sat.up = true }}
"#
        )
        // Keys of the link come before the next table.
    };
    let with = |drop| {
        let (link, rest) = (LINK.replace("reverse = { rate = \"unlimited\" }", ""), text(drop));
        run(&resolved(&format!("{link}{rest}")), 1, Null).expect("a run")
    };
    let kept = with(false);
    let f = group(&kept, "udp");
    assert_eq!(f.lost, [0; LossCause::COUNT]);
    // The one of 50 s still left: a change follows what else happens at its instant. That of 50.008 s waits.
    assert_eq!(f.datagrams.unwrap().delay_max, Some(0.443));
    let dropped = with(true);
    let f = group(&dropped, "udp");
    // In flight were those of 49.752 to 49.992 s, and that of 50 s was being transmitted.
    let down = f.lost[LossCause::LinkDown as usize];
    assert_eq!(down, 31 + 1);
    assert_eq!(f.lost.iter().sum::<u64>(), down);
}

#[test]
fn other_losses_and_delays_hold_from_their_instant() {
    let r = result(
        r#"
[flows.udp]
transport = "udp"
app = { kind = "cbr", rate = "1 Mbit/s" }
[[event]]
at = "10 s"
set.links.sat.error = { kind = "per", p = 1.0 }
[[event]]
at = "20 s"
set.links.sat = { error = "none", delay = "100 ms" }
"#,
    );
    let f = group(&r, "udp");
    // Those that left after 10 s, up to 20 s: a change follows what else happens at its instant.
    assert_eq!(f.lost[LossCause::Error as usize], 1250);
    let d = f.datagrams.unwrap();
    assert!((d.delay_p50.unwrap() - 0.101).abs() < 2e-4);
    assert_eq!(d.delay_max, Some(0.251));
}

#[test]
fn two_classes_with_links_of_their_own_share_a_bottleneck() {
    // Scenario S1 of the paper of TCP-Peach in small: X over a lossy access, Y over a clean one.
    let scenario = resolved(
        r#"
schema = 1
duration = "100 s"
[links.access-x]
rate = "unlimited"
delay = "225 ms"
error = { kind = "per", p = 1e-2 }
reverse = { error = "none" }
[links.access-y]
rate = "unlimited"
delay = "50 ms"
[links.core]
packet = "1000 B"
rate = "1300 packets/s"
delay = "50 ms"
queue = "50 packets"
[flows.x]
count = 5
path = ["access-x", "core"]
endpoint = "ns2-2001"
[flows.y]
count = 5
path = ["access-y", "core"]
endpoint = "ns2-2001"
"#,
    );
    let r = run(&scenario, 1, Null).unwrap();
    let goodput = |g| r.group(g).map(|f| f.goodput).sum::<f64>();
    assert!(goodput("y") > 3.0 * goodput("x") && goodput("x") > 0.0);
    // What one link delivers is offered to the next, at the same instant.
    let of = |g| r.link(g, true).unwrap().class(Class::Data);
    assert_eq!(of("access-x").delivered + of("access-y").delivered, of("core").offered);
    // Acknowledgements take the reverse directions of the same links.
    let acks = |g| r.link(g, false).unwrap().class(Class::Ack);
    assert_eq!(acks("core").delivered, acks("access-x").offered + acks("access-y").offered);
    assert!(acks("access-x").delivered > 0 && acks("access-y").delivered > acks("access-x").delivered);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let cases = [
        (
            "[flows.a]\ntransport = 'udp'",
            "flows.a.app: transport = \"udp\" needs an app that sets its own rate",
        ),
        (
            "[flows.a]\ntransport = 'udp'\ncc = 'reno'\napp = { kind = 'cbr', rate = '1 Mbit/s' }",
            "flows.a.cc: only TCP uses it",
        ),
        (
            "[flows.a]\ntransport = 'udp'\napp = { kind = 'cbr', rate = '1 Mbit/s', packet = '20 B' }",
            "flows.a.app.packet: \"20 B\": write a size from 29 B",
        ),
        ("[flows.a]\napp = { kind = 'cbr', rate = 'unlimited' }", "flows.a.app.rate: a source needs a rate"),
        ("[flows.a]\napp = { kind = 'cbr', rate = 1 }", "has no unit"),
        (
            "[flows.a]\napp = { kind = 'on-off', rate = '1 Mbit/s', on = '0 s', off = '1 s' }",
            "flows.a.app.on: a source that is never on",
        ),
        (
            "[flows.a]\napp = { kind = 'on-off', rate = '1 Mbit/s', on = { pareto = { mean = '1 s', shape = 1 } }, off = '1 s' }",
            "shape: a shape of 1 has no mean",
        ),
        ("[flows.a]\napp = { kind = 'arrivals', rate = 2, size = '1 kB' }", "write \"2 /s\""),
        ("[flows.a]\napp = { kind = 'arrivals', rate = '0 /s', size = '1 kB' }", "never happens"),
        (
            "[flows.a]\napp = { kind = 'arrivals', rate = '1 /s', size = { pareto = { min = '2 kB', max = '1 kB', shape = 1.1 } } }",
            "pareto.max: must be above min",
        ),
        (
            "[flows.a]\n[[event]]\nat = '1 s'\nset = { 'links.sat.queue.kind' = 'plain' }",
            "event[0].set.links.sat.queue.kind: cannot change during a run (what can: links.NAME.rate",
        ),
        (
            "[flows.a]\n[[event]]\nat = '1 s'\nset = { 'flows.a.cc' = 'reno' }",
            "event[0].set.flows.a.cc: cannot change",
        ),
        (
            "[flows.a]\n[[event]]\nat = '1 s'\nset = { 'links.sta.rate' = '1 Mbit/s' }",
            "there is no links.sta, did you mean \"sat\"",
        ),
        (
            "[flows.a]\n[[event]]\nat = '1 s'\nset = { 'links.sat.rate' = 5 }",
            "event[0].set.links.sat.rate: 5 has no unit",
        ),
        ("[flows.a]\n[[event]]\nat = '1 s'\nset = {}", "event[0].set: empty"),
    ];
    for (text, words) in cases {
        let found = refused(text);
        assert!(found.contains(words), "{text}\n  says: {found}\n  not:  {words}");
    }
}
