//! Fast Start from page to page: what one connection learns of the path, the next one begins with.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Cc, InitialWindow, alg::fast_start};
use skyhaul_path::queue::{Victim, pushout};
use skyhaul_scenario::resolved::{App, FlowGroup, Resolved, Start};
use skyhaul_sim::{RunResult, Sim, run};
use skyhaul_trace::{Class, Event, LossCause, Memory, Null};

const RTT: f64 = 0.55;
/// Service time of a packet.
const T: f64 = 1.0 / 1300.0;

fn web(cc: Cc, count: u64) -> FlowGroup {
    let mut flow = bulk("web", 1, "sack", 64, RTT);
    flow.cc = cc;
    flow.app = App::Pages(Pages { segments: 50, count: Some(count), idle: None });
    flow.start = Start::At(Duration::ZERO);
    flow
}
fn fast(config: fast_start::Config) -> Cc {
    Cc::FastStart(config)
}
fn clean(flow: FlowGroup) -> Resolved {
    scenario(60.0, vec![geo(1300.0, RTT, 200, 0.0)], vec![flow])
}
fn pages(s: &Resolved) -> Vec<f64> {
    run(s, 1, Null).expect("a world").flows[0].pages.iter().map(|d| d.took.as_secs_f64()).collect()
}
fn close(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-4, "{a}, by hand {b}");
}

#[test]
fn pages_on_a_clean_path_by_hand() {
    let p = pages(&clean(web(fast(fast_start::Config::default()), 4)));
    // An RTT with the service of its packet.
    let r = RTT + T;
    // Page 1: slow start, 1 + 2 + 4 + 8 + 16 segments and 19 in the sixth round.
    close(p[0], 6.0 * r + 18.0 * T);
    // It leaves a window of 51 below the threshold of 64: half of that, 25.5, paced over an RTT. 25 segments leave in
    // the first RTT, 25 more with its acknowledgements, at the same pace.
    close(p[1], 2.0 * r + 24.0 * r / 25.5);
    // That one leaves 25.5 + 39 in slow start and 11 acknowledgements more: 64.67, past the threshold. One less, and
    // the page fits.
    let mut window: f64 = 64.5;
    (0..11).for_each(|_| window += 1.0 / window);
    close(p[2], r + 49.0 * r / (window - 1.0));
    assert!(p[3] < p[2]);
    // Without the cache all pages are like the first.
    let slow = pages(&clean(web(Cc::by_name("sack").expect("known"), 3)));
    assert!(slow.iter().all(|x| (x - p[0]).abs() < 1e-9), "{slow:?}");
}

#[test]
fn the_option_comes_before_what_is_remembered() {
    let own = fast_start::Config { cached_window: Some(63.0), ..Default::default() };
    let p = pages(&clean(web(fast(own), 3)));
    // One less than the option says, at the threshold, although the first page leaves more than that. The first has no
    // RTT yet but the known one, which lacks the service time.
    let r = RTT + T;
    close(p[0], r + 49.0 * RTT / 62.0);
    close(p[1], r + 49.0 * r / 62.0);
    close(p[2], p[1]);
}

#[test]
fn with_a_handshake_a_page_takes_an_rtt_more() {
    let mut flow = web(fast(fast_start::Config::default()), 2);
    (flow.handshake, flow.known_rtt) = (true, None);
    let with = pages(&clean(flow));
    let without = pages(&clean(web(fast(fast_start::Config::default()), 2)));
    assert!((with[1] - without[1] - RTT).abs() < 0.01, "{with:?}, {without:?}");
}

#[test]
fn what_the_cache_lets_out_beyond_the_first_segment_has_low_priority() {
    let s = clean(web(fast(fast_start::Config::default()), 2));
    let mut sim = Sim::new(&s, 1, Memory::default()).expect("a world");
    sim.run_until(Instant::ZERO + s.duration);
    let sent = |page: u32| {
        let mut done = 0;
        let mut low = Vec::new();
        for (_, event) in &sim.recorder().events {
            match event {
                Event::PageDone { .. } => done += 1,
                Event::Sent { packet, .. } if done == page && packet.class == Class::Data => {
                    low.push(packet.low_priority);
                }
                _ => {}
            }
        }
        low
    };
    assert_eq!(sent(0), [false; 50]);
    // A segment is low if it begins within the 25.5 that the cache stands for.
    let expected: Vec<_> = (0..50).map(|i| (1..=25).contains(&i)).collect();
    assert_eq!(sent(1), expected);
}

/// Pages for 10 s. During the second one, which ends at 4.938 s, 76 flows come whose windows fit into the channel
/// and its buffer, and nothing besides: what the third page remembers holds no longer.
fn crowded(low_priority: bool) -> RunResult {
    let flow = web(fast(fast_start::Config { low_priority, ..Default::default() }), 1000);
    let mut others = bulk("bulk", 76, "sack", 10, RTT);
    others.endpoint.rules.initial_window = InitialWindow::Segments(10.0);
    others.start =
        Start::Uniform { from: Duration::from_secs_f64(4.5), to: Duration::from_secs_f64(4.5 + RTT) };
    let mut link = geo(1300.0, RTT, 50, 0.0);
    link.forward.queue.discipline = pushout::Fifo { victim: Victim::Youngest }.into();
    run(&scenario(10.0, vec![link], vec![others, flow]), 1, Null).expect("a world")
}

#[test]
fn a_stale_cache_hurts_nobody_else() {
    let (low, normal) = (crowded(true), crowded(false));
    let others = |r: &RunResult| -> u64 {
        r.flows.iter().filter(|f| f.group == "bulk").map(|f| f.retransmissions).sum()
    };
    let (web, hurting) = (&low.flows[76], &normal.flows[76]);
    assert_eq!((&*web.group, &*hurting.group), ("web", "web"));
    // The pages up to then are those of the clean path; the third one falls back, without a timeout.
    close(web.pages[1].took.as_secs_f64(), 2.0 * (RTT + T) + 24.0 * (RTT + T) / 25.5);
    assert!(web.pages[2].took > hurting.pages[2].took && web.retransmissions > 0, "{:?}", web.pages);
    assert_eq!(web.timeouts, 0);
    // Its segments make room for others, who with normal priority lose in its place.
    let pushed_out =
        |r: &RunResult| r.links[0].classes[Class::Data as usize].dropped[LossCause::PushedOut as usize];
    assert!(pushed_out(&low) > 0);
    assert_eq!((pushed_out(&normal), hurting.retransmissions), (0, 0));
    assert!(others(&low) < others(&normal), "{} and {}", others(&low), others(&normal));
}
