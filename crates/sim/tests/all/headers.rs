//! Legs with compressed headers: the gain without loss follows from the sizes of headers; what a loss costs depends on the
//! compression.

use crate::text::{self, chained as bulk, split_path};
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{FlowResult, RunResult};
use skyhaul_trace::{Class, LossCause};

/// 10 Mbit/s over the satellite, small segments, nothing that repairs a tail but the timer.
const PATH: &str = split_path!(
    duration: "60 s",
    delay: "120 ms",
    queue: "9000 packets",
    r#"[gateways.g1]
behind = "near"
[gateways.g2]
behind = "sat"
[flows.bulk]
path = ["near", "sat", "far"]
cc = "sack"
endpoint = { preset = "modern", receive-autotuning = false }
rwnd = "512 KiB"
[flows.bulk.chain]
kind = "split3"
gateways = ["g1", "g2"]
[flows.bulk.chain.legs.g1]
rwnd = "1 MiB"
sndbuf = "2 MiB"
endpoint = { preset = "modern", receive-autotuning = false, timestamps = false, rtt-source = "every-ack", rescue-retransmission = false, mss = "256 B", header = "40 B", loss-detection = "dup-acks", tail-loss-probe = false }
"#
);

fn ran(sets: &[&str]) -> RunResult {
    text::ran(PATH, sets, 1)
}
fn leg(result: &RunResult) -> &FlowResult {
    result.group("bulk-g1").next().expect("a leg")
}
const SCPS: &str = "flows.bulk.chain.legs.g1.header-compression=scps";
const VJ: &str = "flows.bulk.chain.legs.g1.header-compression=vj";

#[test]
fn without_loss_the_gain_is_the_ratio_of_the_sizes() {
    let plain = bulk(&ran(&[])).0.goodput;
    let shorter =
        "flows.bulk.chain.legs.g1.header-compression={ kind = \"scps\", data = \"20 B\", acks = \"8 B\" }";
    for (set, data, ack) in [(SCPS, 16, 12), (VJ, 5, 5), (shorter, 20, 8)] {
        let result = ran(&[set]);
        let gain = bulk(&result).0.goodput / plain;
        let expected = f64::from(256 + 40) / f64::from(256 + data);
        assert!((gain / expected - 1.0).abs() < 0.005, "{set}: {gain} and not {expected}");
        assert_eq!((leg(&result).unread, leg(&result).timeouts), (0, 0), "{set}");
        // On the wire: the SYN and what RFC 1144 has to begin with are whole, and nothing else.
        let (there, back) =
            (result.link("sat", true).expect("a link"), result.link("sat", false).expect("a link"));
        let acks = back.classes[Class::Ack as usize].offered;
        let saved = 40 * (acks + 1) - back.offered_bytes;
        let most = u64::from(40 - ack as u32) * acks;
        assert!((most.saturating_sub(2 * 40)..=most).contains(&saved), "{set}: {saved} of {most}");
        let packets = there.classes[Class::Data as usize].offered;
        let mean = there.offered_bytes as f64 / packets as f64;
        assert!((mean - f64::from(256 + data)).abs() < 0.1, "{set}: {mean}");
    }
}

/// A window of 20 segments over the satellite, and one packet of it is lost.
const WINDOW: u64 = 20;
const ONE_LOST: [&str; 3] = [
    "flows.bulk.chain.legs.g1.rwnd=20 segments",
    "links.sat.error={ kind = \"list\", indices = [200] }",
    "links.sat.reverse.error={ kind = \"none\" }",
];

#[test]
fn a_loss_hides_the_rest_of_the_window_from_rfc_1144_and_nothing_from_scps() {
    let with = |set: &str| {
        let mut sets = ONE_LOST.to_vec();
        sets.push(set);
        let result = ran(&sets);
        let counts = (leg(&result).unread, leg(&result).timeouts, leg(&result).retransmissions);
        (counts, bulk(&result).0.bytes_acked)
    };
    // Nothing is read that left after it, so that there are no duplicates: the timer expires, and its repetitions are whole.
    let (counts, vj) = with(VJ);
    assert_eq!(counts, (WINDOW - 1, 1, WINDOW));
    let (counts, scps) = with(SCPS);
    assert_eq!(counts, (0, 0, 1));
    assert!(scps > vj);
}

#[test]
fn random_losses_turn_the_gain_of_rfc_1144_into_a_loss() {
    let noisy = [ONE_LOST[0], "links.sat.error={ kind = \"per\", p = 5e-3 }", ONE_LOST[2]];
    let with = |set: Option<&str>| {
        let sets: Vec<&str> = noisy.iter().copied().chain(set).collect();
        ran(&sets)
    };
    let (plain, scps, vj) = (with(None), with(Some(SCPS)), with(Some(VJ)));
    let goodput = |r: &RunResult| bulk(r).0.goodput;
    assert!(goodput(&vj) < 0.9 * goodput(&plain), "{} against {}", goodput(&vj), goodput(&plain));
    assert_eq!(leg(&scps).unread, 0);
    // A window per loss, less where one loss follows another.
    let lost = vj.link("sat", true).expect("a link").dropped(LossCause::Error);
    let each = leg(&vj).unread as f64 / lost as f64;
    assert!(
        lost > 10 && each > 0.7 * (WINDOW - 1) as f64 && each <= (WINDOW - 1) as f64,
        "{each}, {lost} lost"
    );
    assert!(goodput(&scps) > 0.98 * goodput(&plain));
}

#[test]
fn compressed_headers_survive_a_handover_of_the_chain_in_both_ack_modes() {
    let text = format!(
        "{PATH}[gateways.g3]\nbehind = \"near\"\n[[event]]\nat = \"4 s\"\nhandover = {{ from = \"g1\", to = \"g3\" }}\n"
    );
    let app = "flows.bulk.app={ kind = \"pages\", segments = 5000, count = 2 }";
    for set in [SCPS, VJ] {
        for mode in ["early", "late"] {
            let ack_mode = format!("flows.bulk.chain.ack-mode={mode}");
            let result = text::ran(&text, &[set, app, &ack_mode], 1);
            let (flow, chain) = bulk(&result);
            assert_eq!(
                (flow.bytes_acked, chain.lost, leg(&result).unread),
                (2 * 5000 * 1448, 0, 0),
                "{set} {mode}"
            );
        }
    }
}

#[test]
fn rules_for_headers_come_back_and_mistakes_are_named() {
    for set in [SCPS, VJ] {
        let s = text::resolve(PATH, &[set]);
        text::assert_comes_back_from_its_file(&s);
    }
    let key = "flows.bulk.chain.legs.g1";
    let cases = [
        (vec!["header-compression=rohc"], "write \"scps\", \"vj\""),
        (
            vec!["header-compression={ kind = \"scps\", data = \"40 B\" }"],
            "legs.g1.header-compression.data: 40 B",
        ),
        (
            vec!["header-compression={ kind = \"vj\", acks = \"0 B\" }"],
            "legs.g1.header-compression.acks: 0 B",
        ),
        (vec!["header-compression=vj", "endpoint.timestamps=true"], "endpoint = { timestamps = false"),
    ];
    for (sets, says) in cases {
        let mut d = Document::parse("t.toml", PATH, &no_files).expect("TOML");
        for set in sets {
            d.set(&format!("{key}.{set}")).unwrap_or_else(|e| panic!("{e}"));
        }
        let error = d.resolve().expect_err(says).to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
