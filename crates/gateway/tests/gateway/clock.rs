//! Gateways whose time of day jumps by hours and days while they carry connections. The machine's own clock is left alone: a library that
//! is loaded into the gateways before all others tells them another time (`clock.c`).

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR};
use crate::operations::lines;
use crate::{listen, many, server};
use serde_json::Value;
use skyhaul_base::Duration;
use skyhaul_testkit::need;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gateway/clock.c");
const CONNECTIONS: usize = 40;
/// Silence after which the near gateway ends a connection, seconds.
const IDLE: f64 = 4.0;

/// The assignment for `env` that makes a program see a jumping time of day; `None`, with a message, if the library cannot be built.
fn preload(folder: &Path) -> Option<String> {
    let library = folder.join("clock.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args([SOURCE, "-ldl"])
        .status();
    if !built.is_ok_and(|s| s.success()) {
        need::skip("cc", "there is no C compiler that builds the library");
        return None;
    }
    Some(format!("LD_PRELOAD={}", library.display()))
}

/// A time of a log, such as "2026-11-24T09:15:02.117Z", in hours, as if every month had 31 days: exact enough to see jumps.
fn hours(time: &str) -> f64 {
    assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    let part = |at: std::ops::Range<usize>| time[at].parse::<f64>().unwrap_or_else(|_| panic!("{time}"));
    let (month, day, hour, minute, second) =
        (part(5..7), part(8..10), part(11..13), part(14..16), part(17..23));
    assert!(
        (1.0..=12.0).contains(&month)
            && (1.0..=31.0).contains(&day)
            && hour < 24.0
            && minute < 60.0
            && second < 61.0,
        "{time}"
    );
    (part(0..4) * 12.0 + month) * 31.0 * 24.0 + day * 24.0 + hour + minute / 60.0 + second / 3600.0
}

/// However the time of day jumps, no connection is cut, timers expire in time, and measured times are right.
pub(crate) fn steps_of_the_time_of_day_are_harmless() {
    let rough = Link { delay: Duration::from_millis(10), loss: 0.02, ..Link::default() };
    let Some(bed) = Bed::new("steps", rough) else { return };
    let Some(preload) = preload(&bed.folder) else { return };
    let starter = ["env", &preload];
    let log = bed.folder.join("near.jsonl");
    let common =
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"30 Mbit/s\"\n";
    // All connections but one in a thousand are split, and all are measured.
    let evidence = "[evidence]\nmode = \"ab\"\nfraction = 0.999\n";
    let near = format!(
        "{common}[limits]\nidle = \"{IDLE} s\"\n[log]\nflows = \"{}\"\nlevel = \"info\"\n{evidence}",
        log.display()
    );
    let near = bed.gateway_by(&starter, NEAR, &near);
    let far = bed.gateway_by(&starter, FAR, &format!("{common}{evidence}"));
    // A connection that stays silent, which the near gateway has to end after IDLE.
    let listener = listen(&bed, server());
    let open = || TcpStream::connect(server()).expect("connects");
    let mut silent = bed.spaces[CLIENT].within(open).expect("enters");
    silent.write_all(b"?").expect("writes");
    let (mut held, _) = listener.accept().expect("accepts");
    held.read_exact(&mut [0]).expect("reads");
    drop(listener);
    many(&bed, server(), CONNECTIONS, 300_000);
    assert!(silent.read(&mut [0]).is_err(), "it ends with a reset");
    while near.count("flows") + far.count("flows") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let unsplit = CONNECTIONS as u64 + 1 - near.count("from-hosts");
    assert!(unsplit < 10, "{unsplit} connections were not split");
    for gateway in [&near, &far] {
        assert_eq!((gateway.count("bytes-lost"), gateway.count("refused")), (0, 0));
    }
    let flows = lines(&log, CONNECTIONS + 1 - unsplit as usize);
    let retransmitted: u64 = flows.iter().filter_map(|l| l["link"]["retransmitted"].as_u64()).sum();
    assert!(retransmitted > 0, "losses were repaired meanwhile");
    let times: Vec<_> = flows.iter().map(|l| hours(l["time"].as_str().expect("a time"))).collect();
    if times.windows(2).all(|w| (w[1] - w[0]).abs() < 1.0) {
        need::skip("preload", "the preloaded library has no effect on this program's time of day");
        return;
    }
    // The smallest jump is an hour, 3600 s.
    for l in &flows {
        assert!(l["seconds"].as_f64().is_some_and(|s| (0.0..3000.0).contains(&s)), "{l}");
    }
    let ends = |how: &str| flows.iter().filter(|l| l["end"] == how).collect::<Vec<_>>();
    assert_eq!(ends("finished").len(), flows.len() - ends("idle").len(), "nothing else ends one");
    // Otherwise the silent connection may be among those that were not split, which are not in the log.
    if unsplit == 0 {
        let idle = ends("idle");
        assert!(idle.len() == 1 && idle[0]["seconds"].as_f64().is_some_and(|s| s >= IDLE), "{idle:?}");
    }
    let status: Value = serde_json::from_str(&near.ask("evidence")).expect("JSON");
    // The first arm is that of the split connections.
    let arm = &status["groups"][0]["arms"][0];
    let half = CONNECTIONS as u64 / 2;
    assert!(arm["finished"].as_u64().is_some_and(|n| n > half) && arm["silent"] == 0, "{arm:#}");
    // Means other than of the goodput are times, in seconds.
    for t in arm["typical"].as_array().expect("a list").iter().filter(|t| t["of"] != "goodput") {
        assert!(t["value"].as_f64().is_some_and(|s| s > 0.0 && s < 100.0), "{t:#}");
    }
    near.stop();
    far.stop();
}
