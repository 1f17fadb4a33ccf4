//! The memory of a run: what a scenario asks for without bound is bounded where it is produced, or the run ends with what was
//! reached.

use super::text::{bulk, ran, resolve};
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_sim::{RunResult, Sim, Status, run};
use skyhaul_trace::{Digest, Memory, Null};

const HEAD: &str = r#"
    duration = "20 s"
    [links.sat]
    rate = "1 Mbit/s"
    delay = "100 ms"
    queue = { limit = "100 packets" }
    [flows.bulk]
    path = ["sat"]
    handshake = false
    endpoint = "modern"
"#;

/// The scenario, with a limit that its estimate exceeds: what comes is not always what was foreseen.
fn limited(app: &str, memory: u64) -> Resolved {
    Resolved { memory, ..resolve(&format!("{HEAD}app = {app}"), &[]) }
}

#[test]
fn a_source_of_transfers_opens_so_many_connections_and_lets_the_others_wait() {
    let app = |options: &str| {
        format!("{HEAD}app = {{ kind = \"arrivals\", rate = \"100 /s\", size = \"4 kB\"{options} }}")
    };
    // Less than a third of them fit the link. Those that are open share it, those that wait come one after the other.
    let few = ran(&app(", connections = 5"), &[], 1);
    let f = bulk(&few);
    let done = f.pages.len() as u64;
    assert!(f.transfers - done <= 5, "{} of {}", done, f.transfers);
    assert!((300..650).contains(&done), "{done}");
    // The time of one that waited begins with its arrival.
    let (first, last) = (f.pages[0].took, f.pages[f.pages.len() - 1].took);
    assert!(first < Duration::from_secs(1) && last > Duration::from_secs(10), "{first:?} {last:?}");
    // More connections than are ever needed change nothing.
    let usual = ran(&app(""), &[], 1);
    assert_eq!(format!("{usual:?}"), format!("{:?}", ran(&app(", connections = 4000"), &[], 1)));
    assert!(bulk(&usual).transfers > 1900, "{}", bulk(&usual).transfers);
}

#[test]
fn a_million_transfers_a_second_hold_as_many_connections_as_there_are_ports() {
    // A tenth of a second of them is more than all ports.
    let app = r#"{ kind = "arrivals", rate = "1000000 /s", size = "1 B" }"#;
    let s = Resolved { duration: Duration::from_millis(150), ..limited(app, u64::MAX) };
    let r = run(&s, 1, Null).expect("a world");
    assert_eq!(bulk(&r).transfers - bulk(&r).pages.len() as u64, 65_535);
}

#[test]
fn a_run_that_reaches_its_memory_ends_there_with_what_was_reached() {
    let app = r#"{ kind = "arrivals", rate = "500 /s", size = "10 kB" }"#;
    let s = limited(app, 10_000_000);
    let result = run(&s, 1, Null).expect("a world");
    let why = result.ended.expect("it ends early");
    assert!(why.memory > why.limit && why.limit == 10_000_000, "{why:?}");
    assert!(why.to_string().starts_with("max-memory: the run ended at "), "{why}");
    // Measures are those of the time until then.
    assert_eq!(result.duration, why.at - Instant::ZERO);
    let seconds = result.duration.as_secs_f64();
    assert!((1.0..10.0).contains(&seconds), "{seconds}");
    let f = bulk(&result);
    assert!(!f.pages.is_empty() && f.bytes_acked > 0 && result.goodput() > 500_000.0, "{f:?}");
    // It ends at the same event with another recorder, and in steps.
    let digested = run(&s, 1, Digest::default()).expect("a world");
    assert_eq!(RunResult { digest: None, ..digested }, result);
    let mut sim = Sim::new(&s, 1, Null).expect("a world");
    let mut t = Instant::ZERO;
    while sim.run_until(t) == Status::Running {
        t += Duration::from_millis(37);
    }
    assert!(sim.now() < sim.end());
    assert_eq!(sim.finish(), result);
    // With all that it may use it goes on to its end.
    assert_eq!(run(&Resolved { memory: u64::MAX, ..s }, 1, Null).expect("a world").ended, None);
}

#[test]
fn packets_rows_and_recorded_events_count() {
    // Ten times the rate of the link waits in a queue without end.
    let text = HEAD.replace("handshake = false", "transport = \"udp\"").replace("endpoint = \"modern\"", "");
    let text = format!("{text}app = {{ kind = \"cbr\", rate = \"10 Mbit/s\", packet = \"200 B\" }}");
    let mut s = Resolved { memory: 2_000_000, ..resolve(&text, &[]) };
    s.links[0].forward.queue.limit = skyhaul_path::Limit::Unlimited;
    assert!(run(&s, 1, Null).expect("a world").ended.is_some());
    s.links[0].forward.queue.limit = skyhaul_path::Limit::Packets(100);
    assert_eq!(run(&s, 1, Null).expect("a world").ended, None);
    // A recorder that keeps every event.
    assert!(run(&s, 1, Memory::default()).expect("a world").ended.is_some());
    // Many rows.
    s.record.sample = Some(Duration::from_micros(100));
    s.record.series = vec![skyhaul_scenario::resolved::Series::Queue];
    assert!(run(&s, 1, Null).expect("a world").ended.is_some());
}

#[test]
fn frames_and_packets_that_a_viewer_waits_for_count() {
    // Twenty times the rate of the link: most of the film waits at the sender, where it is a number, and the viewer waits
    // for each of its packets. Memory is counted every few thousand events.
    let long = |app| Resolved { duration: Duration::from_secs(60), ..limited(app, 1_500_000) };
    let film = long(r#"{ kind = "video", rate = "20 Mbit/s" }"#);
    let ended = run(&film, 1, Null).expect("a world").ended.expect("it ends early");
    assert!(ended.at < Instant::ZERO + Duration::from_secs(60), "{ended:?}");
    assert_eq!(run(&long("\"bulk\""), 1, Null).expect("a world").ended, None);
}
