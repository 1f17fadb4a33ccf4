//! Shadow mode and A/B tests between namespaces.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, Running};
use crate::{calm, listen, many, server};
use serde_json::Value;
use skyhaul_base::{Duration, Rate};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a gateway has observed, once `over` connections have ended.
pub(crate) fn evidence(of: &Running, over: u64) -> Value {
    loop {
        let found: Value = serde_json::from_str(&of.ask("evidence")).expect("JSON");
        let arms = found["groups"][0]["arms"].as_array().expect("arms").clone();
        let ended =
            |a: &Value| ["finished", "reset"].iter().map(|k| a[*k].as_u64().expect("a count")).sum::<u64>();
        if arms.iter().map(ended).sum::<u64>() >= over {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

pub(crate) fn shadow_touches_nothing() {
    let Some(bed) = Bed::new("shadow", calm()) else { return };
    let near = bed.gateway(NEAR, "[evidence]\nmode = \"shadow\"\nprefix-v4 = 30\n");
    let far = bed.gateway(FAR, "[evidence]\nmode = \"shadow\"\n");
    many(&bed, server(), 20, 100_000);
    many(&bed, std::net::SocketAddr::new("fd02::2".parse().expect("an address"), 7000), 5, 100_000);
    // The server's bytes arrive from the link at the client's side. Each connection carries as much back as it carried forth, and
    // a digest.
    let sum = |n: u64| (0..n).map(|k| 100_000 * k / n).sum::<u64>();
    let bytes = sum(20) + sum(5);
    for (gateway, to_hosts, to_link) in [(&near, bytes + 25 * 32, bytes), (&far, bytes, bytes + 25 * 32)] {
        assert_eq!(
            (gateway.count("from-hosts"), gateway.count("from-link"), gateway.count("flows")),
            (0, 0, 0)
        );
        assert!(gateway.ask("status").contains("\"admits\":false"));
        let e = evidence(gateway, 25);
        let all = &e["groups"][0]["arms"][0];
        for (key, expected) in [
            ("finished", 25),
            ("reset", 0),
            ("crossed", 0),
            ("bytes-to-hosts", to_hosts),
            ("bytes-to-link", to_link),
        ] {
            assert_eq!(all[key], expected, "{key} of {e:#}");
        }
        assert_eq!((&e["missed"], &e["unobserved"]), (&Value::from(0), &Value::from(0)));
    }
    let e = evidence(&near, 25);
    let groups = e["groups"].as_array().expect("groups");
    let names: Vec<_> = groups.iter().map(|g| g["of"].as_str().expect("a name")).collect();
    assert_eq!(names, ["all", "10.2.0.0/30", "fd02::/48"]);
    // Nobody answers in the place of the server: the handshake crosses the link, 5 ms each way.
    let typical = groups[0]["arms"][0]["typical"].as_array().expect("means");
    let handshake = typical.iter().find(|t| t["of"] == "handshake").expect("there");
    assert!(handshake["low"].as_f64().expect("a number") >= 0.01, "{handshake}");
    assert!(
        near.ask("metrics")
            .contains("evidence_connections_total{gateway=\"near\",arm=\"unsplit\",end=\"finished\"} 25")
    );
}

/// Downloads `size` bytes over each of this many connections, 16 at a time.
fn downloads(bed: &Bed, connections: usize, size: usize) {
    let listener = listen(bed, server());
    let serves = std::thread::spawn(move || {
        let served: Vec<_> = (0..connections)
            .map(|_| {
                let (mut s, _) = listener.accept().expect("accepts");
                std::thread::spawn(move || {
                    s.read_exact(&mut [0; 100]).expect("reads");
                    s.write_all(&vec![7; size]).expect("writes");
                })
            })
            .collect();
        served.into_iter().for_each(|s| s.join().expect("serves"));
    });
    let next = AtomicUsize::new(0);
    let download = || {
        while next.fetch_add(1, Ordering::Relaxed) < connections {
            let mut s = TcpStream::connect(server()).expect("connects");
            s.write_all(&[1; 100]).expect("writes");
            let mut all = Vec::new();
            s.read_to_end(&mut all).expect("reads");
            assert_eq!(all.len(), size);
        }
    };
    bed.spaces[CLIENT]
        .within(|| std::thread::scope(|s| (0..16).for_each(|_| drop(s.spawn(download)))))
        .expect("enters");
    serves.join().expect("serves");
}

/// The comparison of transfer times over all size classes.
fn compared(e: &Value) -> &Value {
    let all = e["groups"][0]["comparisons"].as_array().expect("comparisons");
    all.iter().find(|c| c["of"] == "transfer time" && c["class"] == "all").expect("there")
}
fn total(e: &Value, key: &str) -> u64 {
    let arms = e["groups"][0]["arms"].as_array().expect("arms");
    arms.iter().map(|a| a[key].as_u64().expect("a count")).sum()
}

/// A link with losses, so long that the machine's own delays do not matter.
fn lossy(loss: f64) -> Link {
    let rate = Rate::from_bits_per_sec(40_000_000);
    Link { delay: Duration::from_millis(160), loss, rate: Some((rate, 400)), ..Link::default() }
}

pub(crate) fn a_b_tests_find_what_helps() {
    let Some(bed) = Bed::new("ab", lossy(0.02)) else { return };
    let more = "cc = { name = \"scps-like\", window = 200.0 }\nrate = \"36 Mbit/s\"\n[evidence]\nmode = \"ab\"\nseed = 77\n";
    let (near, far) = (bed.gateway(NEAR, more), bed.gateway(FAR, more));
    downloads(&bed, 120, 300_000);
    let e = evidence(&near, 120);
    let split = e["groups"][0]["arms"][0]["finished"].as_u64().expect("a count");
    // The kernel, the observer and both gateways agree which ones are split.
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (split, split));
    assert!((30..90).contains(&split), "{split}");
    assert_eq!((total(&e, "crossed"), total(&e, "finished")), (0, 120), "{e:#}");
    let c = compared(&e);
    assert_eq!(c["verdict"], "better", "{c:#}");
    assert!(c["lasting"][0].as_f64().expect("a number") > 1.0);
    assert!(
        near.ask("metrics").contains("skyhaul_gateway_evidence_ratio{gateway=\"near\",of=\"transfer time\"")
    );
}

pub(crate) fn equal_arms_stay_undecided() {
    let Some(bed) = Bed::new("aa", lossy(0.001)) else { return };
    let more = "cc = \"cubic\"\n[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"cubic\"\n";
    let (near, far) = (bed.gateway(NEAR, more), bed.gateway(FAR, more));
    downloads(&bed, 80, 150_000);
    let e = evidence(&near, 80);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (80, 80), "both arms are split");
    assert_eq!((total(&e, "crossed"), total(&e, "finished")), (0, 80));
    let c = compared(&e);
    let [low, high] = [0, 1].map(|n: usize| c["lasting"][n].as_f64().expect("a number"));
    assert!(low < 1.0 && 1.0 < high && c["verdict"] == "undecided", "{c:#}");
    assert!(c["n"].as_array().expect("counts").iter().all(|n| n.as_u64() >= Some(20)), "{c:#}");
}

/// The kernel's hash is ours, for both families and both ways of assigning: a gateway that splits one arm splits just those
/// connections.
pub(crate) fn arms_are_those_of_the_kernel() {
    let Some(bed) = Bed::new("arms", calm()) else { return };
    for by in ["connection", "client"] {
        let near = bed
            .gateway(NEAR, &format!("[evidence]\nmode = \"ab\"\nby = \"{by}\"\nfraction = 0.4\nseed = 5\n"));
        for at in ["10.2.0.2:7000", "[fd02::2]:7000"] {
            many(&bed, at.parse().expect("an address"), 30, 1000);
        }
        let e = evidence(&near, 60);
        assert_eq!((total(&e, "crossed"), total(&e, "finished")), (0, 60), "{by}: {e:#}");
        let split = e["groups"][0]["arms"][0]["finished"].as_u64().expect("a count");
        assert_eq!(near.count("from-hosts"), split);
        if by == "client" {
            assert!([0, 30, 60].contains(&split), "there are two clients: {split}");
        } else {
            assert!((5..50).contains(&split), "{split}");
        }
        near.stop();
    }
}
