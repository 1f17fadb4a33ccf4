//! The path priority test between namespaces.

use crate::bed::{Bed, FAR, Link, NEAR, Running};
use crate::{many, server};
use serde_json::Value;
use skyhaul_base::{Duration, Rate};
use std::net::SocketAddr;

/// The path of a gateway once it was tested with a result.
fn path(of: &Running) -> Value {
    loop {
        let status: Value = serde_json::from_str(&of.ask("status")).expect("JSON");
        let paths = status["priority"]["paths"].as_array().expect("paths").clone();
        if let [path] = &paths[..]
            && path["verdict"] != "unknown"
        {
            return path.clone();
        }
        assert!(paths.len() < 2, "there is one path: {paths:#?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Both gateways use a control with probes where these are treated as low priority, and another one where they are not.
pub(crate) fn probes_need_a_path_that_honours_priority() {
    let v6 = SocketAddr::new("fd02::2".parse().expect("an address"), crate::PORT);
    for (priority, verdict, to) in [
        (true, "honoured", server()),
        (false, "ignored", server()),
        (true, "honoured", v6),
        (false, "ignored", v6),
    ] {
        let rate = Rate::from_bits_per_sec(5_000_000);
        let link =
            Link { delay: Duration::from_millis(20), rate: Some((rate, 300)), priority, ..Link::default() };
        let Some(bed) = Bed::new("priority", link) else { return };
        let more = "cc = \"peach\"\nfallback-cc = \"hybla\"\n";
        let (near, far) = (bed.gateway(NEAR, more), bed.gateway(FAR, more));
        many(&bed, to, 1, 1000);
        for gateway in [&near, &far] {
            assert_eq!(gateway.count("fallback"), 1, "the path is not known");
        }
        for gateway in [&near, &far] {
            let p = path(gateway);
            assert_eq!(
                (&p["verdict"], &p["trusted"]),
                (&Value::from(verdict), &Value::from(priority)),
                "{p:#}"
            );
            assert_eq!(p["last"]["counts"]["remarked"], 0, "{p:#}");
        }
        many(&bed, to, 10, 1000);
        for gateway in [&near, &far] {
            assert_eq!(gateway.count("fallback"), if priority { 1 } else { 11 });
            let trusted = format!("peer=\"{:08x}\"}} {}", peer(gateway), u8::from(priority));
            assert!(gateway.ask("metrics").contains(&trusted), "{trusted}");
        }
    }
}

fn peer(of: &Running) -> u64 {
    let status: Value = serde_json::from_str(&of.ask("status")).expect("JSON");
    status["priority"]["paths"][0]["gateway"].as_u64().expect("a number")
}

/// The path to a far gateway that does not answer is not trusted, and the status says why.
pub(crate) fn without_an_answer_nothing_is_trusted() {
    let Some(bed) = Bed::new("unanswered", crate::calm()) else { return };
    let near = bed.gateway(NEAR, "cc = \"peach\"\n");
    let far = bed.gateway(FAR, "cc = \"cubic\"\n");
    many(&bed, server(), 2, 1000);
    assert!(!far.ask("status").contains("\"priority\""), "it has nothing to test");
    let why = loop {
        let status: Value = serde_json::from_str(&near.ask("status")).expect("JSON");
        if let Some(why) = status["priority"]["paths"][0]["last"]["why"].as_str() {
            break why.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(why, "nobody answers at its port");
    many(&bed, server(), 3, 1000);
    assert_eq!(near.count("fallback"), 5);
}
