//! A narrow return link: acknowledgements are thinned by the rate of the gateway that sends them, and by an agreement between two gateways.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use crate::{bytes, calm, digest, server};
use skyhaul_base::{Duration, Rate};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

pub(crate) const ALL: [(&str, fn()); 1] =
    [("acknowledgements_are_thinned_on_a_narrow_link", acknowledgements_are_thinned_on_a_narrow_link)];

/// Packets that the near router has sent to the link, and packets from there.
fn passed(bed: &Bed) -> [u64; 2] {
    let count = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("reads");
        let line = text.lines().find_map(|l| l.trim().strip_prefix("sat0:")).expect("the interface");
        let of: Vec<u64> = line.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        [of[9], of[1]]
    };
    bed.spaces[NEAR].within(count).expect("enters")
}

/// Packets from the link for each packet to the link, while a client downloads.
fn thinned(name: &str, near: &str, far: &str) -> f64 {
    let rate = Some((Rate::from_bits_per_sec(20_000_000), 100));
    let narrow = Some((Rate::from_bits_per_sec(100_000), 30));
    let link = Link { delay: Duration::from_millis(20), rate, narrow, ..calm() };
    let Some(bed) = Bed::new(name, link) else { return f64::NAN };
    let _gateways = [bed.gateway(NEAR, near), bed.gateway(FAR, far)];
    let data = bytes(5, 6_000_000);
    let listener =
        bed.spaces[SERVER].within(|| TcpListener::bind(server()).expect("listens")).expect("enters");
    std::thread::scope(|s| {
        s.spawn(|| {
            let (mut stream, _) = listener.accept().expect("accepts");
            stream.write_all(&data).expect("writes");
        });
        let before = passed(&bed);
        let load = || {
            let mut all = Vec::new();
            let mut stream = TcpStream::connect(server()).expect("connects");
            stream.read_to_end(&mut all).expect("reads");
            all
        };
        let loaded = bed.spaces[CLIENT].within(load).expect("enters");
        let after = passed(&bed);
        assert!(loaded.len() == data.len() && digest(&loaded) == digest(&data), "{name}: whole");
        (after[1] - before[1]) as f64 / (after[0] - before[0]) as f64
    })
}

fn acknowledgements_are_thinned_on_a_narrow_link() {
    let far = "rate = \"19.9 Mbit/s\"\n";
    let agreed = "endpoint = { ack-cc = \"rfc5690\" }\n";
    let plain = thinned("narrow-plain", "", far);
    if plain.is_nan() {
        return;
    }
    let by_rate = thinned("narrow-rate", "rate = \"99 kbit/s\"\n", far);
    let by_agreement = thinned("narrow-agreed", agreed, &format!("{far}{agreed}"));
    // One gateway alone cannot agree on anything.
    let alone = thinned("narrow-alone", agreed, far);
    eprintln!(
        "note: packets per acknowledgement: {plain:.1}, {by_rate:.1} by rate, {by_agreement:.1} agreed, {alone:.1} alone"
    );
    assert!(by_rate > 2.0 * plain && by_agreement > 1.4 * plain, "{plain} {by_rate} {by_agreement}");
    assert!(alone < 1.4 * plain, "{plain} {alone}");
}
