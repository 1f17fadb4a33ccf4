//! The engine itself: determinism, independence of random streams, extremes, closed forms of a fixed window.

use crate::common;

use common::{bulk, direction, geo, s0, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::InitialWindow;
use skyhaul_scenario::resolved::{App, Link, Record, Resolved, Series, Start, Times};
use skyhaul_sim::{Agents, BuildError, Page, RunResult, Sim, Status, run};
use skyhaul_trace::{Class, Digest, Event, LossCause, Memory, Null};

fn digest(s: &Resolved, seed: u64) -> u64 {
    run(s, seed, Digest::default()).expect("a world").digest.expect("a digest")
}

fn fixed(s: &Resolved, window: u32) -> RunResult {
    Sim::with_agents(s, 1, Null, Agents::FixedWindow(window)).expect("a world").finish()
}

#[test]
fn a_run_is_a_function_of_scenario_and_seed() {
    for cc in ["sack", "peach"] {
        let s = s0(5, cc, 1e-2, 30.0);
        let first = digest(&s, 7);
        assert_eq!(first, digest(&s, 7), "{cc}");
        assert_ne!(first, digest(&s, 8), "{cc}");
    }
}

#[test]
fn threads_and_recorders_do_not_matter() {
    let s = s0(5, "peach", 1e-2, 30.0);
    let here = digest(&s, 7);
    let threads: Vec<u64> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..2).map(|_| scope.spawn(|| digest(&s, 7))).collect();
        handles.into_iter().map(|h| h.join().expect("a digest")).collect()
    });
    assert_eq!(threads, [here, here]);
    // Recording changes nothing but the digest.
    let silent = run(&s, 7, Null).expect("a world");
    let recorded = run(&s, 7, Digest::default()).expect("a world");
    assert_eq!(RunResult { digest: None, ..recorded }, silent);
}

#[test]
fn steps_do_not_matter() {
    let s = s0(5, "sack", 1e-2, 30.0);
    let mut sim = Sim::new(&s, 7, Digest::default()).expect("a world");
    let mut t = Instant::ZERO;
    while sim.run_until(t) == Status::Running {
        t += Duration::from_millis(37);
        assert!(sim.now() <= sim.end());
    }
    assert_eq!(sim.finish().digest, Some(digest(&s, 7)));
}

#[test]
fn what_is_added_does_not_shift_the_random_numbers_of_the_rest() {
    let alone = s0(3, "sack", 1e-2, 60.0);
    let before = run(&alone, 3, Null).expect("a world");
    // A second link and a second group of flows, both sorted before the first.
    let mut more = alone.clone();
    more.links.insert(0, Link { name: "other".into(), ..geo(500.0, 0.3, 20, 1e-2) });
    more.flows[0].path = vec![1];
    more.flows.insert(0, bulk("another", 4, "reno", 32, 0.3));
    let after = run(&more, 3, Null).expect("a world");
    let flows: Vec<_> = after.group("bulk").cloned().collect();
    assert_eq!(flows, before.flows);
    assert_eq!(after.link("sat", true), before.link("sat", true));
}

#[test]
fn a_fixed_window_has_the_throughput_of_the_closed_form() {
    // A packet leaves the transmitter every 100 ms; RTT 1 s + 100 ms of transmission.
    let world =
        |flows| scenario(1000.0, vec![geo(10.0, 1.0, 1000, 0.0)], vec![bulk("f", flows, "reno", 64, 0.0)]);
    let one = fixed(&world(1), 5);
    // Window-limited: W / RTT, to within one window.
    let expected = 5.0 * 1000.0 / 1.1;
    assert!((one.segments_acked() - expected).abs() <= 5.0, "{}", one.segments_acked());
    assert_eq!(one.links[0].max_queue, 4, "the first burst, less the one in service");
    // Saturated: rate times time, less the first RTT; utilization 1; queue = window - bandwidth-delay product.
    let many = fixed(&world(4), 10);
    assert!((many.segments_acked() - 10.0 * (1000.0 - 1.1)).abs() <= 11.0, "{}", many.segments_acked());
    assert!(many.links[0].utilization > 0.9999, "{}", many.links[0].utilization);
    assert!((many.links[0].mean_queue - 29.0).abs() < 0.5, "{}", many.links[0].mean_queue);
    assert!(many.jain() > 0.9999);
}

#[test]
fn access_delay_lengthens_the_round_trip() {
    let mut s = scenario(1000.0, vec![geo(1e6, 0.6, 1000, 0.0)], vec![bulk("f", 1, "reno", 64, 0.0)]);
    s.flows[0].extra_delay = Duration::from_millis(200);
    let r = fixed(&s, 5);
    assert!((r.segments_acked() - 5.0 * 1000.0).abs() <= 5.0, "{}", r.segments_acked());
    assert_eq!(r.links.len(), 2, "the access is not a link of the scenario");
    // Two groups of different delay share a link; neither waits for the other.
    s.flows.push(bulk("g", 1, "reno", 64, 0.0));
    let r = fixed(&s, 5);
    assert!(
        (r.flows[0].segments_acked - 5000.0).abs() <= 5.0
            && (r.flows[1].segments_acked - 8333.0).abs() <= 5.0
    );
    // Without any link.
    s.flows.truncate(1);
    s.flows[0].path.clear();
    let r = fixed(&s, 5);
    assert!((r.segments_acked() - 5.0 * 2500.0).abs() <= 5.0, "{}", r.segments_acked());
}

#[test]
fn a_path_of_two_links_is_crossed_in_order_and_back() {
    let mut s = scenario(100.0, vec![geo(100.0, 0.2, 50, 0.0), geo(50.0, 0.4, 50, 0.0)], vec![]);
    s.links[1].name = "second".into();
    s.flows.push(bulk("f", 1, "reno", 64, 0.0));
    s.flows[0].path = vec![0, 1];
    let mut sim = Sim::with_agents(&s, 1, Memory::default(), Agents::FixedWindow(1)).expect("a world");
    sim.run_until(Instant::from_secs_f64(1.0));
    let times: Vec<f64> = sim
        .recorder()
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::Delivered { .. }))
        .map(|(t, _)| t.as_secs_f64())
        .collect();
    // 10 ms + 100 ms, 20 ms + 200 ms; back 200 ms and 100 ms.
    assert_eq!(times, [0.33, 0.63, 0.96]);
}

#[test]
fn nothing_happens_in_no_time() {
    let mut s = s0(5, "sack", 1e-2, 0.0);
    s.flows[0].start = Start::At(Duration::ZERO);
    s.record =
        Record { sample: Some(Duration::from_secs(1)), series: vec![Series::Cwnd], ..Record::default() };
    let r = run(&s, 1, Null).expect("a world");
    assert_eq!((r.events, r.segments_acked(), r.goodput(), r.jain()), (0, 0.0, 0.0, 1.0));
    assert_eq!((r.links[0].utilization, r.links[0].mean_queue), (0.0, 0.0));
    assert!(r.flows.iter().all(|f| f.started.is_none()));
}

#[test]
fn a_link_without_flows_may_go_down() {
    let mut s = scenario(10.0, vec![geo(10.0, 0.5, 10, 0.0)], vec![]);
    s.events = vec![skyhaul_scenario::resolved::Event {
        at: Duration::from_secs(1),
        link: 0,
        forward: true,
        change: skyhaul_path::Change::Up(false),
    }];
    let r = run(&s, 1, Null).expect("a world");
    assert_eq!((r.events, r.flows.len()), (1, 0));
}

#[test]
fn nothing_arrives_when_everything_is_lost() {
    for cc in ["sack", "peach", "reno"] {
        let r = run(&s0(2, cc, 1.0, 300.0), 1, Null).expect("a world");
        assert_eq!(
            (r.segments_acked(), r.link("sat", true).map(|l| l.class(Class::Data).delivered)),
            (0.0, Some(0))
        );
        let lost = r.links[0].dropped(LossCause::Error);
        let sent: u64 = r.flows.iter().map(|f| f.segments_sent + f.probes_sent).sum();
        assert_eq!(lost, sent);
        assert!(
            r.flows.iter().all(|f| f.timeouts >= 5 && f.timeouts <= 12),
            "backoff up to 64 s: {:?}",
            r.flows[0]
        );
    }
}

#[test]
fn a_queue_of_one_packet_works() {
    let r =
        run(&scenario(200.0, vec![geo(100.0, 0.1, 1, 0.0)], vec![bulk("f", 3, "sack", 64, 0.1)]), 1, Null);
    let r = r.expect("a world");
    assert_eq!(r.links[0].max_queue, 1);
    assert!(r.links[0].dropped(LossCause::Full) > 0);
    // One flow needs a window of 11 to fill the path; three share it with losses.
    assert!(r.segments_acked() > 0.5 * 100.0 * 200.0, "{}", r.segments_acked());
}

#[test]
fn ten_gigabits_times_ten_seconds_are_bounded_by_the_window() {
    let s = scenario(120.0, vec![geo(1.25e6, 10.0, 100_000, 0.0)], vec![bulk("f", 1, "sack", 1000, 10.0)]);
    let mut sim = Sim::new(&s, 1, Null).expect("a world");
    for t in 1..120 {
        sim.run_until(Instant::from_secs_f64(f64::from(t)));
        assert!(sim.in_network() <= 2000, "data and acknowledgements of one window");
    }
    let r = sim.finish();
    // Slow start from one segment: 1, 2, ..., 512, then 1000 per 10 s.
    assert!((r.segments_acked() - 1023.0).abs() <= 1000.0, "{}", r.segments_acked());
}

#[test]
fn packets_are_conserved_and_bodies_freed() {
    for cc in ["sack", "peach", "reno"] {
        let s = s0(5, cc, 2e-2, 60.0);
        let mut sim = Sim::new(&s, 5, Memory::default()).expect("a world");
        sim.run_until(sim.end());
        let on_the_way = sim.in_network();
        let mut balance = 0i64;
        for (_, e) in &sim.recorder().events {
            match e {
                Event::Sent { .. } => balance += 1,
                Event::Delivered { .. } | Event::Discarded { .. } | Event::Dropped { .. } => balance -= 1,
                _ => {}
            }
        }
        assert_eq!(balance, on_the_way as i64, "{cc}");
        assert!(sim.stored_bodies() <= on_the_way, "{cc}");
    }
}

#[test]
fn acknowledgements_can_be_spared() {
    let mut s = s0(2, "sack", 0.0, 60.0);
    s.links[0].reverse = direction(0, 0.275, None, 0.5);
    let lossy = run(&s, 1, Null).expect("a world");
    s.links[0].reverse.ack_errors = false;
    let spared = run(&s, 1, Null).expect("a world");
    assert!(lossy.links[1].class(Class::Ack).lost() > 0);
    assert_eq!(spared.links[1].class(Class::Ack).lost(), 0);
}

#[test]
fn a_stopped_source_sends_what_it_has_sent_until_it_is_acknowledged() {
    let mut s = s0(2, "sack", 1e-2, 60.0);
    s.flows[0].stop = Some(Duration::from_secs(30));
    let r = run(&s, 1, Null).expect("a world");
    for f in &r.flows {
        let finished = f.finished.expect("finished").as_secs_f64();
        assert!(finished > 30.0 && finished < 40.0, "{finished}");
        assert_eq!(f.segments_sent - f.retransmissions, f.segments_acked as u64, "everything arrived");
    }
}

#[test]
fn a_source_that_stops_before_it_starts_says_nothing() {
    let mut s = s0(2, "sack", 0.0, 10.0);
    s.flows[0].start = Start::At(Duration::from_secs(5));
    for stop in [0, 3, 5] {
        s.flows[0].stop = Some(Duration::from_secs(stop));
        let r = run(&s, 1, Null).expect("a world");
        assert_eq!((r.segments_acked(), r.flows[0].started, r.flows[0].segments_sent), (0.0, None, 0));
        assert_eq!(r.flows[0].finished, Some(Instant::from_secs_f64(5.0)));
    }
}

#[test]
fn series_have_a_row_per_sample_and_entity() {
    let mut s = s0(2, "peach", 1e-2, 10.0);
    let series = vec![
        Series::Acked,
        Series::Cwnd,
        Series::Queue,
        Series::Srtt,
        Series::Telemetry,
        Series::Utilization,
    ];
    s.record = Record { sample: Some(Duration::from_secs(1)), series, ..Record::default() };
    let r = run(&s, 1, Null).expect("a world");
    assert_eq!((r.series.flows.len(), r.series.links.len()), (2 * 11, 2 * 11));
    assert_eq!(r.series.flows.names, ["acked", "cwnd", "srtt"]);
    assert_eq!(r.series.links.names, ["queue", "utilization"]);
    let acked: Vec<f64> = r.series.flows.of(1, "acked").map(|(_, v)| v).collect();
    assert!(acked.is_sorted() && acked[10] > 0.0 && acked[10] <= r.flows[1].segments_acked);
    let mean: f64 = r.series.links.of(0, "utilization").map(|(_, v)| v).sum::<f64>() / 10.0;
    assert!((mean - r.links[0].utilization).abs() < 1e-9);
    let t = &r.series.telemetry;
    assert!(t.time.len() == t.name.len() && t.name.len() == t.value.len() && t.flow.len() == t.name.len());
}

#[test]
fn paths_without_delay_and_unknown_links_are_refused() {
    let mut s = scenario(1.0, vec![geo(0.0, 0.0, 1, 0.0)], vec![bulk("f", 1, "reno", 64, 0.0)]);
    assert_eq!(run(&s, 1, Null).map(|_| ()), Err(BuildError::NoDelay { flow: "f".into() }));
    s.flows[0].path = vec![3];
    assert_eq!(run(&s, 1, Null).map(|_| ()), Err(BuildError::NoSuchLink { flow: "f".into(), link: 3 }));
}

/// Pages of two segments on a fast path: with one segment as initial window each takes two RTTs.
fn pausing(idle: Option<Times>, count: Option<u64>) -> Resolved {
    let mut s = scenario(100.0, vec![geo(0.0, 0.5, 50, 0.0)], vec![bulk("web", 3, "sack", 64, 0.5)]);
    let flow = &mut s.flows[0];
    flow.app = App::Pages(Pages { segments: 2, count, idle });
    flow.start = Start::At(Duration::ZERO);
    flow.endpoint.rules.initial_window = InitialWindow::Segments(1.0);
    s
}

#[test]
fn a_fixed_pause_separates_pages_and_is_no_part_of_their_time() {
    let s = pausing(Some(Times::Constant(Duration::from_secs(2))), Some(4));
    for f in &run(&s, 1, Null).expect("a world").flows {
        let page = |number: u64| Page {
            number,
            began: Instant::from_secs_f64(3.0 * number as f64),
            bytes: 2 * 960,
            took: Duration::from_secs(1),
        };
        assert_eq!(f.pages, [0, 1, 2, 3].map(page));
        assert_eq!(f.finished, Some(Instant::from_secs_f64(4.0 + 3.0 * 2.0)));
    }
}

#[test]
fn exponential_pauses_have_their_mean_and_are_not_those_of_the_neighbour() {
    let mut s = pausing(Some(Times::Exponential(Duration::from_secs(3))), None);
    s.duration = Duration::from_secs(40_000);
    let flows = run(&s, 1, Null).expect("a world").flows;
    for f in &flows {
        // A page and its pause take 4 s on average; the mean of 10 000 pauses is known to 1 %.
        let cycle = 40_000.0 / f.pages.len() as f64;
        assert!((cycle / 4.0 - 1.0).abs() < 0.03, "{cycle}");
    }
    assert_ne!(flows[0].pages.len(), flows[1].pages.len());
}

#[test]
fn a_source_that_stops_during_a_pause_is_over_then() {
    let mut s = pausing(Some(Times::Constant(Duration::from_secs(20))), None);
    s.flows[0].stop = Some(Duration::from_secs(30));
    for f in &run(&s, 1, Null).expect("a world").flows {
        // Pages from 0 to 1 s and from 21 to 22 s.
        assert_eq!((f.pages.len(), f.finished), (2, Some(Instant::from_secs_f64(30.0))));
    }
}

#[test]
fn pages_follow_each_other_on_new_connections() {
    for handshake in [false, true] {
        let mut s = scenario(60.0, vec![geo(1300.0, 0.55, 50, 0.0)], vec![bulk("web", 1, "sack", 64, 0.55)]);
        let flow = &mut s.flows[0];
        flow.app = App::Pages(Pages { segments: 50, count: Some(10), idle: None });
        flow.start = Start::At(Duration::ZERO);
        flow.handshake = handshake;
        flow.known_rtt = (!handshake).then(|| Duration::from_millis(550));
        let mut events = Memory::default();
        let r = run(&s, 1, &mut events).expect("a world");
        let f = &r.flows[0];
        assert_eq!((f.pages.len(), f.segments_acked), (10, 500.0));
        let total: f64 = f.pages.iter().map(|p| p.took.as_secs_f64()).sum();
        assert!((f.finished.expect("finished").as_secs_f64() - total).abs() < 1e-9);
        let done = events.events.iter().filter(|(_, e)| matches!(e, Event::PageDone { .. })).count();
        assert_eq!(done, 10);
        assert_eq!(f.rejected, 0);
    }
}
