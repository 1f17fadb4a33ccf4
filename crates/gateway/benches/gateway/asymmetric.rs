//! A download whose acknowledgements return over a narrow link: what thins them, and what that gains.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR};
use crate::{download, geo, over_geo, serve};
use skyhaul_base::Rate;
use std::time::Duration;

/// Rate of the return link, bit/s, and its queue, packets.
const RETURN: (u64, usize) = (64_000, 50);

/// Packets and bytes that the near router has sent to the link, and packets from there.
fn passed(bed: &Bed) -> [u64; 3] {
    let count = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("reads");
        let line = text.lines().find_map(|l| l.trim().strip_prefix("sat0:")).expect("the interface");
        let of: Vec<u64> = line.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        [of[9], of[8], of[1]]
    };
    bed.spaces[NEAR].within(count).expect("enters")
}

/// Measures each case once.
pub(crate) fn table(seconds: f64) {
    let (rate, queue) = RETURN;
    println!(
        "\nover GEO, whose return link has {} kbit/s and a queue of {queue} packets: Mbit/s, packets from the link per packet to it, kbit/s \
         offered to the return link, RTT of the connection, s",
        rate as f64 / 1e3
    );
    let far = over_geo(crate::PACKAGED, "");
    let known = format!("profile = \"geo\"\nrate = \"{} kbit/s\"\n", rate as f64 * 0.998 / 1e3);
    let thinned = "endpoint = { ack-cc = \"rfc5690\" }\n";
    for (name, near, far) in [
        ("no rate at the near gateway", String::new(), far.clone()),
        ("its rate", known.clone(), far.clone()),
        ("ack-cc at both", thinned.to_owned(), format!("{far}{thinned}")),
        ("its rate and ack-cc", format!("{known}{thinned}"), format!("{far}{thinned}")),
    ] {
        let narrow = Some((Rate::from_bits_per_sec(rate), queue));
        let Some(bed) = Bed::new("asymmetric", Link { narrow, ..geo(0.0) }) else { return };
        let _near = bed.gateway(NEAR, &near);
        let far = bed.gateway(FAR, &far);
        serve(&bed);
        let before = passed(&bed);
        let ((bytes, took), rtt) = std::thread::scope(|s| {
            let load =
                s.spawn(|| bed.spaces[CLIENT].within(|| download(seconds, usize::MAX)).expect("enters"));
            std::thread::sleep(Duration::from_secs_f64(seconds * 0.8));
            let status: serde_json::Value = serde_json::from_str(&far.ask("list")).expect("JSON");
            (load.join().expect("downloads"), status["list"][0]["srtt"].as_f64().unwrap_or(f64::NAN))
        });
        let after = passed(&bed);
        let [sent, sent_bytes, came] = [0, 1, 2].map(|n| (after[n] - before[n]) as f64);
        println!(
            "{name:<28} {:>6.2}   {:>6.1}   {:>7.1}   {rtt:>6.3}",
            bytes as f64 * 8.0 / took / 1e6,
            came / sent,
            sent_bytes * 8.0 / took / 1e3
        );
    }
}
