//! Gateways with several threads.

use crate::bed::{Bed, FAR, Link, NEAR, Running, THREADS};
use crate::{PORT, many, server};
use skyhaul_base::Duration;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

pub(crate) const ALL: [(&str, fn()); 2] = [
    ("threads_share_the_connections", threads_share_the_connections),
    ("everything_works_with_threads", everything_works_with_threads),
];

/// How often each thread other than the first has waited for something.
fn waits(gateway: &Running) -> Vec<u64> {
    let folder = format!("/proc/{}/task", gateway.child.id());
    let tasks = std::fs::read_dir(folder).expect("runs").map(|t| t.expect("a thread").path());
    let read = |t: &std::path::Path, file: &str| std::fs::read_to_string(t.join(file)).unwrap_or_default();
    tasks
        .filter(|t| read(t, "comm").trim().strip_prefix("gateway-").is_some_and(|n| n.parse::<u8>().is_ok()))
        .map(|t| {
            let status = read(&t, "status");
            let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|n| n.trim().parse().ok()).expect("a number")
        })
        .collect()
}

fn threads_share_the_connections() {
    let rough = Link { delay: Duration::from_millis(5), loss: 0.01, ..Link::default() };
    let Some(bed) = Bed::new("threads", rough) else { return };
    let near = bed.gateway(NEAR, "[limits]\nthreads = 3\n");
    let far = bed.gateway(FAR, "[limits]\nthreads = 2\n");
    many(&bed, server(), 80, 200_000);
    many(&bed, SocketAddr::new("fd02::2".parse().expect("an address"), PORT), 40, 50_000);
    for (gateway, key, others) in [(&near, "from-hosts", 2), (&far, "from-link", 1)] {
        // The last acknowledgement of a connection may still be on its way.
        while gateway.count("flows") > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!((gateway.count(key), gateway.count("finished"), gateway.count("aborted")), (120, 120, 0));
        assert_eq!((gateway.count("peers"), gateway.count("bytes-lost")), (1, 0));
        let waits = waits(gateway);
        assert_eq!(waits.len(), others, "threads beside the first");
        // A thread waits several times for each of its connections, and once without any.
        assert!(waits.iter().all(|n| *n > 20), "{waits:?}");
    }
    assert_eq!(near.count("bytes-to-link"), far.count("bytes-to-hosts"));
    assert!(near.count("early-sent") > 0, "what one thread has learnt, all know");
    near.stop();
    far.stop();
}

/// With threads, the first one does for all what does not concern a single connection: commands, listeners, reloads, captures.
fn everything_works_with_threads() {
    THREADS.store(3, Ordering::Relaxed);
    for test in [
        crate::half_closes_and_refusals_pass,
        crate::without_room_connections_are_forwarded,
        crate::a_reload_keeps_connections,
        crate::ports_are_forwarded_without_routes,
        crate::stack::first_data_travels_with_the_syn,
        crate::stack::long_packets_are_reported_and_shortened,
        crate::stack::unreachable_hosts_are_reported,
        crate::operations::a_flow_that_is_open_is_captured_by_its_number,
    ] {
        test();
    }
    THREADS.store(1, Ordering::Relaxed);
}
