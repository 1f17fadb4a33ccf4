//! Every refusal is one line that names file, line, key and what to write.

use skyhaul_scenario::{Document, ScenarioError, no_files, resolve_text};

/// A small valid scenario. The line numbers of the tests below refer to it.
const GEO: &str = r#"schema = 1
duration = "550 s"

[links.sat]
rate = "10.4 Mbit/s"
delay = "275 ms"
queue = { kind = "strict-pushout", limit = "50 packets" }
error = { kind = "per", p = 1e-3 }
reverse = { error = "none" }

[flows.bulk]
count = 20
path = ["sat"]
cc = { name = "peach", recovery = "sack" }
endpoint = "ns2-2001"
rwnd = "64 segments"
app = { kind = "bulk" }
start = { uniform = ["0 s", "1 s"] }

[record]
sample = "100 ms"
series = ["cwnd", "srtt", "queue"]
"#;

fn check(text: &str) -> Result<(), ScenarioError> {
    resolve_text("geo.toml", text, &[], &no_files).map(|_| ())
}

/// `GEO` with one line replaced.
fn with(line: &str, by: &str) -> String {
    assert_eq!(GEO.matches(line).count(), 1, "{line}");
    GEO.replace(line, by)
}

#[test]
fn the_base_is_valid() {
    check(GEO).unwrap();
}

#[test]
fn files() {
    let cases = [
        // Links.
        (
            "delay = \"275 ms\"",
            "delay = 275",
            "geo.toml:6: links.sat.delay: 275 has no unit: write a time with a unit, such as \"275 ms\"",
        ),
        (
            "delay = \"275 ms\"",
            "delay = \"-1 ms\"",
            "geo.toml:6: links.sat.delay: \"-1 ms\" is negative: write a time with a unit, such as \"550 ms\"",
        ),
        ("delay = \"275 ms\"", "delay = \"2 h\"", "geo.toml:6: links.sat.delay: longer than an hour one way"),
        (
            "delay = \"275 ms\"",
            "",
            "geo.toml:4: links.sat.delay: missing: write the propagation delay, such as delay = \"275 ms\", or the satellites in a table orbit",
        ),
        (
            "delay = \"275 ms\"",
            "delay = { kind = \"uniform\", base = \"275 ms\" }",
            "geo.toml:6: links.sat.delay.jitter: missing: this table needs it",
        ),
        (
            "delay = \"275 ms\"",
            "delay = { kind = \"uniform\", base = \"275 ms\", jitter = 3 }",
            "geo.toml:6: links.sat.delay.jitter: 3 has no unit: write a time with a unit, such as \"3 ms\"",
        ),
        (
            "delay = \"275 ms\"",
            "delay = true",
            "geo.toml:6: links.sat.delay: true is not accepted here: write a time with a unit, such as \"275 ms\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10 mb/s\"",
            "geo.toml:5: links.sat.rate: \"mb/s\" may mean bits or bytes: write \"10 Mbit/s\" or \"10 MB/s\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = 0",
            "geo.toml:5: links.sat.rate: 0 has no unit: write a rate with a unit, such as \"0 Mbit/s\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"0 Mbit/s\"",
            "geo.toml:5: links.sat.rate: \"0 Mbit/s\" never sends anything: write a rate with a unit, such as \"10.4 Mbit/s\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"-3 Mbit/s\"",
            "geo.toml:5: links.sat.rate: \"-3 Mbit/s\" is negative: write a rate with a unit, such as \"10.4 Mbit/s\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"1300 segments/s\"",
            "geo.toml:5: links.sat.rate: \"1300 packets/s\" depends on the packet size: add packet = \"1000 B\" to links.sat, or write the rate in bit/s",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "",
            "geo.toml:4: links.sat.rate: missing: write a rate with a unit, such as rate = \"10.4 Mbit/s\", or \"unlimited\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\npacket = \"0 B\"",
            "geo.toml:6: links.sat.packet: a packet needs at least 1 byte",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = { kind = \"block\", n = 17, k = 18 }",
            "geo.toml:6: links.sat.fec.n: 17 packets sent is less than the 18 of the block: write n = 18 or more",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = { kind = \"block\", n = 17, k = 0 }",
            "geo.toml:6: links.sat.fec.k: a block needs at least one packet: write k = 1 or more",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = { kind = \"block\", n = 20, k = 18, fill-time = \"0 s\" }",
            "geo.toml:6: links.sat.fec.fill-time: no block can be filled in zero time: write a time above 0, such as \"50 ms\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = { kind = \"rate\", rate = 0 }",
            "geo.toml:6: links.sat.fec.rate: 0 is not a code rate: write a number above 0 and up to 1, such as 0.75",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = { kind = \"repeat\", times = 0 }",
            "geo.toml:6: links.sat.fec.times: a packet that is sent 0 times never arrives: write 1 or more",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = 0.75",
            "geo.toml:6: links.sat.fec: 0.75 is ambiguous: write { kind = \"rate\", rate = 0.75 } for the code rate of the modem",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nfec = \"on\"",
            "geo.toml:6: links.sat.fec: \"on\" is not accepted here: write \"none\", or a table such as { kind = \"block\", n = 20, k = 18 }",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\narq = { window = \"0 packets\" }",
            "geo.toml:6: links.sat.arq.window: nothing could be sent: write a window of at least 1 packet",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\narq = { window = \"64 KiB\" }",
            "geo.toml:6: links.sat.arq.window: a window counts packets: write \"100 packets\" or \"1.5 BDP\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\narq = { feedback = 12 }",
            "geo.toml:6: links.sat.arq.feedback: 12 has no unit: write a time such as \"12 ms\", or the size of an acknowledgement such as \"12 B\"",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\narq = { guard = \"2 h\" }",
            "geo.toml:6: links.sat.arq.guard: longer than an hour: write a shorter time",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\narq = 3",
            "geo.toml:6: links.sat.arq: 3 is ambiguous: write { retries = 3 } for the retransmission limit of a packet",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nrtae = \"1 Mbit/s\"",
            "geo.toml:6: links.sat.rtae: unknown key, did you mean \"rate\"? (known: packet, rate, delay, orbit, allow-reorder, queue, error, ack-errors, ack-size, reconstruct-acks, up, drop-in-flight, fade, fec, arq, reverse)",
        ),
        (
            "queue = { kind = \"strict-pushout\", limit = \"50 packets\" }",
            "queue = 50",
            "geo.toml:7: links.sat.queue: 50 has no unit: write \"50 packets\", \"50 B\" or \"50 BDP\"",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"strict-push-out\"",
            "geo.toml:7: links.sat.queue.kind: \"strict-push-out\" is unknown, did you mean \"strict-pushout\"? (known: ack-compaction, ack-decimation, ack-filter, acks-first, codel, drop-tail, fifo-pushout, fq-codel, gtnets, pie, plain, red, strict-pushout, threshold, two-band, wred)",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"codel\", interval = \"20 ms\"",
            "geo.toml:7: links.sat.queue.target: the target must lie below the interval: write some 5 to 10 % of it (RFC 8289 §3.2)",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"red\", min-threshold = \"30 packets\"",
            "geo.toml:7: links.sat.queue.min-threshold: 30 packets is not below `max-threshold`, 25: write a number between 0 and that",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"pie\", update = \"0 s\"",
            "geo.toml:7: links.sat.queue.update: must be above 0: write a time such as \"15 ms\"",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"codel\", update = \"15 ms\"",
            "geo.toml:7: links.sat.queue.update: only the kind \"pie\" has this key",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"fq-codel\", flows = 0",
            "geo.toml:7: links.sat.queue.flows: `flows` is 0, but must lie in [1, 65536]",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"plain\", victim = \"oldest\"",
            "geo.toml:7: links.sat.queue.victim: only the kinds \"strict-pushout\" and \"fifo-pushout\" have the key victim",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"threshold\"",
            "geo.toml:7: links.sat.queue.low-below: missing: a threshold queue needs it, such as low-below = 25",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"threshold\", low-below = 51",
            "geo.toml:7: links.sat.queue.low-below: 51 is more than the queue holds",
        ),
        (
            "limit = \"50 packets\" }",
            "limit = \"1 packet\", ns2-limit = true, count-in-service = true }",
            "geo.toml:7: links.sat.queue.limit: with count-in-service, not even the packet in service fits",
        ),
        (
            "limit = \"50 packets\"",
            "limit = \"99999999999 packets\"",
            "geo.toml:7: links.sat.queue.limit: 99999999999 packets are too many: write \"unlimited\"",
        ),
        (
            "limit = \"50 packets\"",
            "limit = \"1e9 BDP\"",
            "geo.toml:7: links.sat.queue.limit: 1000000000 BDP are too many packets: write \"unlimited\"",
        ),
        (
            "p = 1e-3",
            "p = 1.2",
            "geo.toml:8: links.sat.error.p: 1.2 is not a probability: write a number from 0 to 1",
        ),
        (
            "p = 1e-3",
            "p = -0.1",
            "geo.toml:8: links.sat.error.p: -0.1 is not a probability: write a number from 0 to 1",
        ),
        (
            "p = 1e-3",
            "p = nan",
            "geo.toml:8: links.sat.error.p: NaN is not a probability: write a number from 0 to 1",
        ),
        (
            "p = 1e-3",
            "p = \"1%\"",
            "geo.toml:8: links.sat.error.p: \"1%\" is a string: write a number from 0 to 1 without quotes",
        ),
        (
            "p = 1e-3",
            "q = 1e-3",
            "geo.toml:8: links.sat.error.q: unknown key, did you mean \"p\"? (known: p)",
        ),
        (
            "kind = \"per\", p = 1e-3",
            "kind = \"none\", p = 1",
            "geo.toml:8: links.sat.error.p: unknown key: this table takes no other keys",
        ),
        ("kind = \"per\", ", "", "geo.toml:8: links.sat.error.kind: missing: this table needs it"),
        (
            "error = { kind = \"per\", p = 1e-3 }",
            "error = 1e-3",
            "geo.toml:8: links.sat.error: 0.001 is ambiguous: write { kind = \"per\", p = 0.001 } for a packet loss rate, or { kind = \"ber\", ber = 0.001 } for a bit error rate",
        ),
        (
            "kind = \"per\", p = 1e-3",
            "kind = \"bursts\", loss = 0.9, burst = 2",
            "geo.toml:8: links.sat.error.loss: with bursts of 2 packets, at most 0.6667 of all packets can be lost",
        ),
        (
            "kind = \"per\", p = 1e-3",
            "kind = \"bursts\", loss = 0.1, burst = 0.5",
            "geo.toml:8: links.sat.error.burst: 0.5 is not a burst length: write a number ≥ 1",
        ),
        (
            "reverse = { error = \"none\" }",
            "reverse = { rate = \"0 B/s\" }",
            "geo.toml:9: links.sat.reverse.rate: \"0 B/s\" never sends anything: write a rate with a unit, such as \"10.4 Mbit/s\"",
        ),
        (
            "[links.sat]",
            "[links.\"s.t\"]",
            "geo.toml:4: links.s.t: the name \"s.t\" has other characters than letters, digits, - and _",
        ),
        // Flows.
        ("count = 20", "count = 0", "geo.toml:12: flows.bulk.count: 0 flows do nothing: write at least 1"),
        (
            "count = 20",
            "count = -1",
            "geo.toml:12: flows.bulk.count: -1 is not a count: write a whole number, such as 50",
        ),
        (
            "count = 20",
            "count = 2.5",
            "geo.toml:12: flows.bulk.count: 2.5 is not a count: write a whole number, such as 50",
        ),
        (
            "count = 20",
            "count = 2000000",
            "geo.toml:12: flows.bulk.count: 2000000 is more than 1000000 flows",
        ),
        (
            "path = [\"sat\"]",
            "path = [\"sta\"]",
            "geo.toml:13: flows.bulk.path: there is no link \"sta\", did you mean \"sat\"? (known: sat)",
        ),
        (
            "path = [\"sat\"]",
            "path = [\"sat\", \"sat\"]",
            "geo.toml:13: flows.bulk.path: \"sat\" is on the path twice",
        ),
        (
            "path = [\"sat\"]",
            "path = []",
            "geo.toml:13: flows.bulk.path: empty: name at least one link (known: sat)",
        ),
        (
            "path = [\"sat\"]",
            "path = \"sat\"",
            "geo.toml:13: flows.bulk.path: \"sat\" is not accepted here: write a list in brackets",
        ),
        (
            "name = \"peach\", recovery",
            "name = \"peach\", recovry",
            "geo.toml:14: flows.bulk.cc.recovry: unknown key, did you mean \"recovery\"? (known: ",
        ),
        (
            "recovery = \"sack\"",
            "recovery = \"sak\"",
            "geo.toml:14: flows.bulk.cc.recovery: \"sak\" is unknown, did you mean \"sack\"? (known: tahoe, reno, newreno, sack, prr)",
        ),
        (
            "recovery = \"sack\"",
            "recovery = \"prr\"",
            "geo.toml:14: flows.bulk.cc: recovery: TCP-Peach is defined with \"reno\", \"newreno\" or \"sack\"",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }",
            "cc = \"user:my aimd\"",
            "geo.toml:14: flows.bulk.cc: control is the name of a user's own control: letters, digits, - and _",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }",
            "cc = { name = \"user\", control = \"mine\", gain = 2 }",
            "geo.toml:14: flows.bulk.cc.gain: unknown key (known: control, options)",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }",
            "cc = { name = \"user\" }",
            "geo.toml:14: flows.bulk.cc.control: missing: this table needs it",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }",
            "cc = { name = \"user\", control = \"mine\", options = { gain = inf } }",
            "geo.toml:14: flows.bulk.cc: options: nan and inf are no options: write a finite number, or leave the option out",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }",
            "cc = \"peech\"",
            "geo.toml:14: flows.bulk.cc: \"peech\" is not a congestion control, did you mean \"peach\"? (known: ",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = \"ns2\"",
            "geo.toml:15: flows.bulk.endpoint.preset: \"ns2\" is not an endpoint preset (known: ns2-2001, ns2-2004, rfc, modern, host)",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { preset = \"ns2-2001\", rto_min = \"1 s\" }",
            "geo.toml:15: flows.bulk.endpoint.rto_min: unknown key, did you mean \"rto-min\"? ",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { mss = \"0 B\" }",
            "geo.toml:15: flows.bulk.endpoint.mss: a segment needs at least 1 byte of payload",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { mss = \"65535 B\" }",
            "geo.toml:15: flows.bulk.endpoint.mss: 65587 B with headers is more than the largest packet (65535 B)",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { mss = \"9 GB\" }",
            "geo.toml:15: flows.bulk.endpoint.mss: \"9000000000 B\" is more than the largest packet (65535 B)",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { initial-window = \"0 segments\" }",
            "geo.toml:15: flows.bulk.endpoint.initial-window: 0 segments are too few: write at least \"1 segment\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { initial-window = 4 }",
            "geo.toml:15: flows.bulk.endpoint.initial-window: not accepted here: write \"4 segments\", \"rfc3390\" or \"rfc6928\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { delayed-ack = { every = 2, delay = \"0 s\" } }",
            "geo.toml:15: flows.bulk.endpoint.delayed-ack.delay: delayed acknowledgements need a time such as \"200 ms\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { loss-classifier = { kind = \"oracle\", false-error = 1.5 } }",
            "geo.toml:15: flows.bulk.endpoint.loss-classifier.false-error: 1.5 is not a share: write a number from 0 to 1",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { loss-classifier = { kind = \"spike\", end = 0.6 } }",
            "geo.toml:15: flows.bulk.endpoint.loss-classifier.end: a spike that begins at 0.5 cannot end at 0.6: write an end not above start",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { sack-blocks = 5 }",
            "geo.toml:15: flows.bulk.endpoint.sack-blocks: 5 is not possible: write a number from 1 to 4",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { growth = \"abc\", abc-limit = 4 }",
            "geo.toml:15: flows.bulk.endpoint.abc-limit: write a number of segments from 1 to 2 (RFC 3465 §2.3)",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { preset = \"rfc\", rtt-source = \"timestamps\" }",
            "geo.toml:15: flows.bulk.endpoint.rtt-source: \"timestamps\" also needs timestamps = true",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { loss-detection = \"time\" }",
            "geo.toml:15: flows.bulk.endpoint.loss-detection: \"time\" is unknown (known: dup-acks, rack, snack)",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { loss-detection = \"rack\", sack = false }",
            "geo.toml:15: flows.bulk.endpoint.loss-detection: \"rack\" needs SACK: write sack = true, or leave sack out",
        ),
        (
            "cc = { name = \"peach\", recovery = \"sack\" }\nendpoint = \"ns2-2001\"",
            "cc = \"newreno\"\nendpoint = { loss-detection = \"rack\" }",
            "geo.toml:15: flows.bulk.endpoint.loss-detection: \"rack\" needs a congestion control that repairs losses with SACK, and \"newreno\" does not (so sack = \"auto\" is off): write another one, such as cc = \"sack\", or loss-detection = \"dup-acks\"",
        ),
        (
            "recovery = \"sack\" }\nendpoint = \"ns2-2001\"",
            "recovery = \"reno\" }\nendpoint = { loss-detection = \"rack\", sack = true }",
            "geo.toml:15: flows.bulk.endpoint.loss-detection: \"rack\" needs a congestion control that repairs losses with SACK, and \"peach\" with these options does not: write another one, such as cc = \"sack\", or loss-detection = \"dup-acks\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { tail-loss-probe = true }",
            "geo.toml:15: flows.bulk.endpoint.tail-loss-probe: only \"rack\" can evaluate the answer to a tail loss probe: also write loss-detection = \"rack\"",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = 64",
            "geo.toml:16: flows.bulk.rwnd: 64 has no unit: write \"64 segments\" or \"64 B\"",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = \"100 B\"",
            "geo.toml:16: flows.bulk.rwnd: \"100 B\" is less than a segment of 960 B",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = \"0 segments\"",
            "geo.toml:16: flows.bulk.rwnd: \"0 B\" is less than a segment of 960 B",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = \"2 GB\"",
            "geo.toml:16: flows.bulk.rwnd: more than window scaling can advertise (1073725440 B)",
        ),
        (
            "endpoint = \"ns2-2001\"\nrwnd = \"64 segments\"",
            "endpoint = { window-scaling = false }\nrwnd = \"64 KiB\"",
            "geo.toml:16: flows.bulk.rwnd: 65536 B cannot be advertised without window scaling: write at most \"65535 B\"",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = \"unlimited\"",
            "geo.toml:16: flows.bulk.rwnd: more than the largest TCP window: write at most \"1073725440 B\"",
        ),
        (
            "rwnd = \"64 segments\"",
            "rwnd = \"64 segments\"\nsndbuf = \"1 B\"",
            "geo.toml:17: flows.bulk.sndbuf: \"1 B\" is less than a segment of 960 B",
        ),
        (
            "app = { kind = \"bulk\" }",
            "app = { kind = \"pages\", segments = 0 }",
            "geo.toml:17: flows.bulk.app.segments: a page needs at least 1 segment",
        ),
        (
            "app = { kind = \"bulk\" }",
            "app = \"bulky\"",
            "geo.toml:17: flows.bulk.app: \"bulky\" is not accepted here: write \"bulk\", or a table such as { kind = \"pages\", segments = 50 }",
        ),
        (
            "[\"0 s\", \"1 s\"]",
            "[\"2 s\", \"1 s\"]",
            "geo.toml:18: flows.bulk.start: uniform takes the earlier time first",
        ),
        ("[\"0 s\", \"1 s\"]", "[\"0 s\"]", "geo.toml:18: flows.bulk.start.uniform: "),
        (
            "start = { uniform = [\"0 s\", \"1 s\"] }",
            "known-rtt = \"1 s\"",
            "geo.toml:18: flows.bulk.known-rtt: the handshake measures the RTT: also write handshake = false, or leave this out",
        ),
        // The rest.
        (
            "schema = 1",
            "schema = 2",
            "geo.toml:1: schema: this program reads version 1 of the format: write schema = 1",
        ),
        (
            "duration = \"550 s\"",
            "duration = \"-550 s\"",
            "geo.toml:2: duration: \"-550 s\" is negative: write a time with a unit, such as \"550 ms\"",
        ),
        (
            "duration = \"550 s\"",
            "",
            "geo.toml: duration: missing: write how long the run lasts, such as duration = \"550 s\"",
        ),
        (
            "duration = \"550 s\"",
            "duration = \"550 s\"\nseed = -1",
            "geo.toml:3: seed: -1 is not accepted here: write a whole number ≥ 0",
        ),
        (
            "sample = \"100 ms\"",
            "sample = \"0 s\"",
            "geo.toml:21: record.sample: the interval between samples is zero: write a time such as \"100 ms\"",
        ),
        (
            "sample = \"100 ms\"",
            "",
            "geo.toml:20: record.sample: missing: write how often to sample, such as sample = \"100 ms\"",
        ),
        (
            "[\"cwnd\", \"srtt\", \"queue\"]",
            "[\"cwnd\", \"rtt\"]",
            "geo.toml:22: record.series[1]: \"rtt\" is unknown, did you mean \"srtt\"? (known: acked, allowed-rate, buffered, bwe, custody, cwnd, delay, in-flight, loss-event-rate, marked, pipe, queue, rate, retransmissions, rto, srtt, ssthresh, stalled, telemetry, up, utilization)",
        ),
        (
            "[\"cwnd\", \"srtt\", \"queue\"]",
            "[\"cwnd\", \"cwnd\"]",
            "geo.toml:22: record.series: \"cwnd\" is listed twice",
        ),
        (
            "[flows.bulk]",
            "[flow.bulk]",
            "geo.toml:11: flow: unknown key, did you mean \"flows\"? (known: schema, extends, title, duration, seed, max-memory, record, links, gateways, flows, event)",
        ),
        (
            "schema = 1",
            "schema = 1\nextends = \"preset:peach-gso\"",
            "geo.toml:2: extends: there is no preset \"peach-gso\", did you mean \"peach-geo\"? (known: geo-bent-pipe-dama, geo-hts-ka, geo-today, in-flight-geo, leo-1200-polar, leo-780-polar, leo-walker-550, luglio, maritime-vsat, meo-8062, neglia, papadimitriou, peach-geo, peach-hetero, peach-leo, peach-meo, satcom-fading, satcom-interop, satcom-large, satcom-large-jitter, satcom-large-loss, satcom-medium, satcom-small, satcom-small-up, satcom-wifi)",
        ),
        (
            "schema = 1",
            "schema = 1\nextends = \"base.toml\"",
            "geo.toml:2: extends: cannot read base.toml: files cannot be read here, only presets",
        ),
        ("schema = 1", "schema = ", "geo.toml:1: not TOML: "),
        ("count = 20", "count = 20\ncount = 20", "geo.toml:13: not TOML: duplicate key (column 1)"),
    ];
    let mut wrong = Vec::new();
    for (line, by, want) in cases {
        let got = check(&with(line, by)).map_or_else(|e| e.to_string(), |()| "accepted".into());
        let partial = want.ends_with(' ');
        if got.contains('\n') || !(got == want || partial && got.starts_with(want)) {
            wrong.push(format!("{by}\n   got {got}\n  want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_to_run() {
    let e = check("duration = \"1 s\"").unwrap_err().to_string();
    assert_eq!(e, "geo.toml: links: there is no link: add a table such as [links.sat] with rate and delay");
    let e = check(&GEO[..GEO.find("[flows").unwrap()]).unwrap_err().to_string();
    assert_eq!(e, "geo.toml: flows: there is no flow: add a table such as [flows.bulk]");
    let e = check(&format!("{GEO}\n[links.b]\nrate='1 Mbit/s'\ndelay='1 ms'\n[flows.other]")).unwrap_err();
    assert_eq!(
        e.to_string(),
        "geo.toml:27: flows.other.path: missing: name the links of the path, in order (known: b, sat)"
    );
    let text = "duration='1 s'\n[links.a]\nrate='1 Mbit/s'\ndelay='0 s'\n[flows.a]\nhandshake=false";
    assert_eq!(
        check(text).unwrap_err().to_string(),
        "geo.toml:5: flows.a.known-rtt: the known RTT is zero: write a time such as \"10 ms\""
    );
}

#[test]
fn overrides() {
    let cases = [
        (
            "links.sat.error.p=1.2",
            "--set: links.sat.error.p: 1.2 is not a probability: write a number from 0 to 1",
        ),
        (
            "links.sta.error.p=0.1",
            "--set: links.sta.error.p: there is no links.sta, did you mean \"sat\"? (known: sat)",
        ),
        (
            "links.sat.eror.p=0.1",
            "--set: links.sat.eror: unknown key, did you mean \"error\"? (known: packet, rate, delay, orbit, allow-reorder, queue, error, ack-errors, ack-size, reconstruct-acks, up, drop-in-flight, fade, fec, arq, reverse)",
        ),
        (
            "links.sat.rate.x=1",
            "--set: links.sat.rate.x: links.sat.rate is \"10.4 Mbit/s\", which has no keys",
        ),
        (
            "flow.bulk.cc=sack",
            "--set: flow: unknown key, did you mean \"flows\"? (known: schema, extends, title, duration, seed, max-memory, record, links, gateways, flows, event)",
        ),
        ("flows.bulk.cc", "--set: flows.bulk.cc: write KEY=VALUE, such as links.sat.error.p=1e-2"),
        ("flows..cc=sack", "--set: flows..cc: write a path of keys with dots, such as links.sat.error.p"),
        ("flows.bulk.cc={name", "--set: flows.bulk.cc: {name is not TOML: "),
        (
            "flows.bulk.cc=pech",
            "--set: flows.bulk.cc: \"pech\" is not a congestion control, did you mean \"peach\"? (known: ",
        ),
        (
            "flows.bulk.cc.recovery=sak",
            "--set: flows.bulk.cc.recovery: \"sak\" is unknown, did you mean \"sack\"? (known: tahoe, reno, newreno, sack, prr)",
        ),
        ("flows.bulk.rwnd=64", "--set: flows.bulk.rwnd: 64 has no unit: write \"64 segments\" or \"64 B\""),
        // An override can also uncover a problem of the file.
        ("links.sat.error.kind=ber", "geo.toml:8: links.sat.error.p: unknown key (known: ber, ber-is, code)"),
    ];
    let mut wrong = Vec::new();
    for (set, want) in cases {
        let got = resolve_text("geo.toml", GEO, &[set], &no_files);
        let got = got.map_or_else(|e| e.to_string(), |_| "accepted".into());
        if got.contains('\n') || !(got == want || want.ends_with(' ') && got.starts_with(want)) {
            wrong.push(format!("{set}\n   got {got}\n  want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_problem_is_placed_in_the_file_that_holds_the_key() {
    let load = |path: &str| match path {
        "dir/base.toml" => Ok(with("p = 1e-3", "p = 7")),
        "dir/loop.toml" => Ok("extends = \"top.toml\"".into()),
        _ => no_files(path),
    };
    let e = resolve_text("dir/top.toml", "extends = \"base.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/base.toml:8: links.sat.error.p: 7 is not a probability: write a number from 0 to 1"
    );
    let text = "extends = \"base.toml\"\n[links.sat.error]\np = 8";
    let e = resolve_text("dir/top.toml", text, &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/top.toml:3: links.sat.error.p: 8 is not a probability: write a number from 0 to 1"
    );
    let e = resolve_text("dir/top.toml", "extends = \"loop.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/loop.toml:1: extends: \"top.toml\" extends this file: the files form a loop"
    );
    let load = |path: &str| {
        let n: u32 = path.trim_start_matches("dir/").trim_end_matches(".toml").parse().expect("a number");
        Ok(format!("extends = \"{}.toml\"", n + 1))
    };
    let e = resolve_text("dir/0.toml", "extends = \"1.toml\"", &[], &load).unwrap_err();
    assert_eq!(
        e.to_string(),
        "dir/15.toml:1: extends: the chain of `extends` is longer than 16 files: merge some of them"
    );
    let study = "schema = 1\nscenario = \"preset:peach-geo\"";
    let e = resolve_text("fig.toml", study, &[], &no_files).unwrap_err();
    assert_eq!(
        e.to_string(),
        "fig.toml:2: scenario: this is a study, not a scenario: run it with skyhaul study run"
    );
    let e = Document::open("preset:peach", &no_files).unwrap_err();
    assert!(
        e.to_string().starts_with("preset:peach: there is no such preset (known: geo-bent-pipe-dama"),
        "{e}"
    );
    let e = Document::open("nowhere.toml", &no_files).unwrap_err();
    assert_eq!(e.to_string(), "nowhere.toml: cannot read: files cannot be read here, only presets");
}

#[test]
fn legal_extremes() {
    for (line, by) in [
        ("count = 20", "count = 1"),
        ("limit = \"50 packets\"", "limit = \"1 packet\""),
        ("limit = \"50 packets\"", "limit = \"0 packets\""),
        ("p = 1e-3", "p = 1"),
        ("p = 1e-3", "p = 0"),
        ("duration = \"550 s\"", "duration = \"0 s\""),
        ("rwnd = \"64 segments\"", "rwnd = \"1 segment\""),
        ("rwnd = \"64 segments\"", "rwnd = \"1 GB\"\nsndbuf = \"unlimited\""),
        ("rate = \"10.4 Mbit/s\"\ndelay = \"275 ms\"", "rate = \"10 Gbit/s\"\ndelay = \"5 s\""),
        ("queue = { kind = \"strict-pushout\", limit = \"50 packets\" }", "queue = \"1 BDP\""),
        ("delay = \"275 ms\"", "delay = \"0 s\""),
        ("[\"0 s\", \"1 s\"]", "[\"1 s\", \"1 s\"]"),
    ] {
        check(&with(line, by)).unwrap_or_else(|e| panic!("{by}: {e}"));
    }
}

#[test]
fn rack_is_accepted_exactly_where_losses_are_repaired_with_sack() {
    for (cc, fits) in [("sack", true), ("prr", true), ("cubic", true), ("bbr", true), ("peach", true)]
        .into_iter()
        .chain([("peach-plus", true), ("tahoe", false), ("reno", false), ("newreno", false)])
    {
        for preset in ["ns2-2001", "ns2-2004", "rfc", "modern"] {
            let by = format!(
                "cc = \"{cc}\"\nendpoint = {{ preset = \"{preset}\", loss-detection = \"rack\", tail-loss-probe = true }}"
            );
            let old = "cc = { name = \"peach\", recovery = \"sack\" }\nendpoint = \"ns2-2001\"";
            assert_eq!(check(&with(old, &by)).is_ok(), fits, "{cc} on {preset}");
        }
    }
}
