//! Refusals of what a file says of flows.

use super::refused;

#[test]
fn flows() {
    refused(&[
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
            "endpoint = { loss-classifier = { kind = \"none\", end = 0.3 } }",
            "geo.toml:15: flows.bulk.endpoint.loss-classifier.end: unknown key: this table takes no other keys",
        ),
        (
            "rwnd = \"64 segments\"",
            "chain = { legs = { ship = {} } }",
            "geo.toml:16: flows.bulk.chain.legs.ship: no leg starts at \"ship\": write the name of a gateway of this chain",
        ),
        (
            "rwnd = \"64 segments\"",
            "chain = { gateways = [\"ship\"] }",
            "geo.toml:16: flows.bulk.chain.gateways: there is no gateway \"ship\": add a table such as [gateways.near]",
        ),
        (
            "rwnd = \"64 segments\"",
            "transport = { kind = \"tcp\", packet = \"900 B\" }",
            "geo.toml:16: flows.bulk.transport.packet: unknown key: this table takes no other keys",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { initial-ssthresh = \"1e400 segments\" }",
            "geo.toml:15: flows.bulk.endpoint.initial-ssthresh: \"1e400 segments\" is not accepted here: write \"64 segments\", \"rwnd\" or \"infinite\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { keepalive-interval = \"0 s\" }",
            "geo.toml:15: flows.bulk.endpoint.keepalive-interval: no peer answers in no time: write a time such as \"75 s\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { keepalive-idle = \"1 s\", keepalive-probes = 0 }",
            "geo.toml:15: flows.bulk.endpoint.keepalive-probes: write at least 1",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { initial-ssthresh = \"0 segments\" }",
            "geo.toml:15: flows.bulk.endpoint.initial-ssthresh: 0 segments are too few: write at least \"1 segment\"",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { sack-blocks = 5 }",
            "geo.toml:15: flows.bulk.endpoint.sack-blocks: 5 is not accepted here: write a whole number from 1 to 4",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { sack-blocks = 300 }",
            "geo.toml:15: flows.bulk.endpoint.sack-blocks: 300 is not accepted here: write a whole number from 1 to 4",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { sack-blocks = \"3\" }",
            "geo.toml:15: flows.bulk.endpoint.sack-blocks: \"3\" is not accepted here: write a whole number from 1 to 4",
        ),
        (
            "endpoint = \"ns2-2001\"",
            "endpoint = { dup-thresh = 5000000000 }",
            "geo.toml:15: flows.bulk.endpoint.dup-thresh: 5000000000 is not accepted here: write a whole number from 0 to 4294967295",
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
    ]);
}
