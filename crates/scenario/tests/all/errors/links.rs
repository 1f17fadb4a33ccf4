//! Refusals of what a file says of links.

use super::refused;

#[test]
fn links() {
    refused(&[
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
            "geo.toml:6: links.sat.fec.n: 17 packets sent are fewer than the 18 data packets of the block: write n = 18 or more",
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
            "geo.toml:6: links.sat.fec.rate: 0 is not a code rate: write a number from 0.001 to 1, such as 0.75",
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
            "geo.toml:6: links.sat.rtae: unknown key, did you mean \"rate\"? (known: packet, rate, delay, orbit, allow-reorder, queue, error, duplicate, ack-errors, ack-size, reconstruct-acks, up, drop-in-flight, fade, fec, arq, reverse)",
        ),
        (
            "queue = { kind = \"strict-pushout\", limit = \"50 packets\" }",
            "queue = 50",
            "geo.toml:7: links.sat.queue: 50 has no unit: write \"50 packets\", \"50 B\" or \"50 BDP\"",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"strict-push-out\"",
            "geo.toml:7: links.sat.queue.kind: \"strict-push-out\" is unknown, did you mean \"strict-pushout\"? (known: ack-compaction, ack-decimation, ack-filter, acks-first, cake, codel, drop-tail, dual-pi2, fifo-pushout, fq-codel, gtnets, pie, plain, red, strict-pushout, threshold, two-band, wred)",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"codel\", target = \"30 ms\", interval = \"20 ms\"",
            "geo.toml:7: links.sat.queue.target: the target must lie below the interval: write some 5 to 10 % of it (RFC 8289 §3.2)",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"red\", min-threshold = \"30 packets\"",
            "geo.toml:7: links.sat.queue.min-threshold: 30 packets is not below `max-threshold`, 25: write less",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"pie\", update = \"0 s\"",
            "geo.toml:7: links.sat.queue.update: must be above 0: write a time such as \"15 ms\"",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"dual-pi2\", update = \"10 us\"",
            "geo.toml:7: links.sat.queue.update: is below 100 us: write a time such as \"15 ms\"",
        ),
        (
            "kind = \"strict-pushout\"",
            "kind = \"codel\", update = \"15 ms\"",
            "geo.toml:7: links.sat.queue.update: only the kinds \"dual-pi2\" and \"pie\" have this key",
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
            "geo.toml:7: links.sat.queue.low-below: 51 is more than the queue holds, so it never acts: write less, or raise `limit`",
        ),
        (
            "limit = \"50 packets\" }",
            "limit = \"1 packet\", ns2-limit = true, count-in-service = true }",
            "geo.toml:7: links.sat.queue.limit: with count-in-service, not even the packet in service fits: raise `limit`",
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
            "geo.toml:8: links.sat.error.loss: with bursts of 2 packets, at most 0.6666 of all packets can be lost",
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
    ]);
}

#[test]
fn a_share_of_duplicates_is_a_probability() {
    refused(&[
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nduplicate = 1.5",
            "geo.toml:6: links.sat.duplicate: 1.5 is ",
        ),
        (
            "rate = \"10.4 Mbit/s\"",
            "rate = \"10.4 Mbit/s\"\nduplicate = \"0.1 %\"",
            "geo.toml:6: links.sat.duplicate: ",
        ),
        (
            "kind = \"per\", p = 1e-3",
            "kind = \"duplicate\", p = 1e-3",
            "geo.toml:8: links.sat.error.kind: \"duplicate\" is unknown ",
        ),
    ]);
}

#[test]
fn options_of_a_dual_queue_have_bounds() {
    let queue = |options: &str| format!("kind = \"dual-pi2\", {options}");
    for (options, message) in [
        ("coupling = 0", "geo.toml:7: links.sat.queue.coupling: "),
        ("classic-share = 1", "geo.toml:7: links.sat.queue.classic-share: "),
        (
            "target = \"0 s\"",
            "geo.toml:7: links.sat.queue.target: must be above 0: write a time such as \"15 ms\"",
        ),
        ("burst = \"1 s\"", "geo.toml:7: links.sat.queue.burst: only the kind \"pie\" has this key"),
        ("range = \"400\"", "geo.toml:7: links.sat.queue.range: "),
    ] {
        refused(&[("kind = \"strict-pushout\"", &queue(options), message)]);
    }
}

#[test]
fn options_of_cake_have_bounds() {
    let queue = |options: &str| format!("kind = \"cake\", {options}");
    for (options, message) in [
        (
            "rtt = \"0 s\"",
            "geo.toml:7: links.sat.queue.rtt: must be above 0: write a time such as \"100 ms\"",
        ),
        ("flows = 100", "geo.toml:7: links.sat.queue.flows: 100 is not a multiple of 8: write 1024"),
        ("rate = \"fast\"", "geo.toml:7: links.sat.queue.rate: "),
        ("tins = \"diffserv5\"", "geo.toml:7: links.sat.queue.tins: "),
        ("overhead = \"70 kB\"", "geo.toml:7: links.sat.queue.overhead: "),
        ("target = \"5 ms\"", "geo.toml:7: links.sat.queue.target: only the kinds "),
    ] {
        refused(&[("kind = \"strict-pushout\"", &queue(options), message)]);
    }
}
