//! Rain, shadowing and capacity on demand in scenario files.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::{Agenda, Change, fade, rate};
use skyhaul_scenario::{Document, LoadError, Resolved, ScenarioError, no_files};
use std::collections::BTreeMap;

const HEAD: &str = "schema = 1\nduration = \"100 s\"\n[flows.bulk]\n[links.sat]\nqueue = \"50 packets\"\ndelay = \"275 ms\"\n";

fn resolve(link: &str, files: &[(&str, &str)]) -> Result<Resolved, ScenarioError> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let load = move |path: &str| {
        let missing = || LoadError::System("no such file".into());
        files.get(path).map(|t| (*t).to_owned()).ok_or_else(missing)
    };
    Document::parse("a/geo.toml", &format!("{HEAD}{link}"), &load).and_then(|d| d.resolve())
}
fn refused(link: &str) -> String {
    resolve(link, &[]).expect_err("a refusal").to_string()
}

const RAIN: &str = "rate = \"11.14062 Mbit/s\"\n\
    fade = { kind = \"rain\", carrier = { es-n0 = \"9 dB\", margin = \"1 dB\", noise-rise = false } }\n";
const FILE: &str = "rate = \"11.14062 Mbit/s\"\n\
    fade = { trace = \"t.csv\", carrier = { es-n0 = \"9 dB\", noise-rise = false } }\nreverse = { fade = \"none\" }\n";
const SHADOW: &str = "rate = \"1 Mbit/s\"\n\
    fade = { kind = \"shadowing\", shared = false, states = [ { name = \"good\", mean = \"3 s\" }, \
    { name = \"bad\", mean = \"1 s\", loss = 0.5, then = { good = 1 } } ] }\n";
const DAMA: &str = "rate = \"10 Mbit/s\"\nreverse = { rate = { kind = \"dama\", rate = \"1 Mbit/s\", \
    carrier-rate = \"8 Mbit/s\", frame = \"20 ms\", request = \"540 ms\", hold = \"500 ms\" } }\n";
const CSV: (&str, &str) = ("a/t.csv", "time_s,attenuation_dB\n0,0\n10,5\n20,0\n");

#[test]
fn what_is_resolved_reads_back_to_the_same() {
    for link in [RAIN, FILE, SHADOW, DAMA] {
        let resolved = resolve(link, &[CSV]).expect("good");
        let alone = skyhaul_scenario::resolve_text("r.toml", &resolved.to_toml(), &[], &no_files);
        let alone = alone.unwrap_or_else(|e| panic!("{link}: {e}"));
        assert_eq!((&alone, alone.hash()), (&resolved, resolved.hash()), "{link}");
    }
}

#[test]
fn symbols_follow_from_the_rate_and_the_reaction_from_the_rtt() {
    let s = resolve(RAIN, &[]).expect("good");
    let fade = s.links[0].forward.fade.as_ref().expect("a fade");
    let carrier = fade.carrier().expect("a carrier");
    // 9 dB suffice for 8PSK 3/4 with its margin: 2.228124 bits per symbol.
    assert!((carrier.symbol_rate.expect("symbols") - 5e6).abs() < 1.0);
    assert_eq!(carrier.reaction, Some(Duration::from_millis(550)));
    assert_eq!(s.links[0].reverse.fade.as_ref(), Some(fade));
    assert!(s.links[0].forward.moves() && fade.sets_rate());
}

/// All changes of a directed link up to a time.
fn changes(agenda: (Agenda, Vec<(u32, Change)>), until: u64) -> Vec<(u64, u32, Change)> {
    let (mut agenda, first) = agenda;
    let mut seen: Vec<_> = first.into_iter().map(|(link, c)| (0, link, c)).collect();
    while agenda.next() < Instant::ZERO + Duration::from_secs(until) {
        let at = agenda.next();
        while let Some((link, change)) = agenda.take(at) {
            seen.push((at.as_nanos() / 1_000_000, link, change));
        }
    }
    seen
}

#[test]
fn the_agenda_has_the_changes_of_both_directions() {
    let s = resolve(FILE, &[CSV]).expect("good");
    let rate = |bits| Change::Rate(rate::Config::Constant(Rate::from_bits_per_sec(bits)));
    let seen = changes(s.agenda(1, |_, _| true), 100);
    let expected = [
        (0, 0, rate(11_140_620)),
        (0, 0, Change::Fade(1e-7)),
        (10_000, 0, Change::Fade(1.0)),
        (10_550, 0, rate(5_941_520)),
        (10_550, 0, Change::Fade(1e-7)),
        (20_550, 0, rate(11_140_620)),
    ];
    assert_eq!(seen, expected);
    // One rain over both directions, and two of shadowing.
    let of = |link: &str, number: u32| {
        let all = changes(resolve(link, &[]).expect("good").agenda(1, |_, _| true), 100_000);
        all.into_iter().filter(|c| c.1 == number).map(|c| (c.0, c.2)).collect::<Vec<_>>()
    };
    assert!(of(RAIN, 0).len() > 2 && of(RAIN, 0) == of(RAIN, 1));
    assert!(of(SHADOW, 0).len() > 2 && of(SHADOW, 0) != of(SHADOW, 1));
}

#[test]
fn capacity_on_demand_is_a_rate() {
    let s = resolve(DAMA, &[]).expect("good");
    let rate = &s.links[0].reverse.rate;
    assert_eq!(rate.mean(), Some(Rate::from_bits_per_sec(1_000_000)));
    assert_eq!(rate.kind().map(|k| k.name()), Some("dama"));
    assert!(!s.links[0].reverse.moves());
}

#[test]
fn the_check_says_what_a_fade_costs() {
    let check = skyhaul_scenario::check(&resolve(RAIN, &[]).expect("good"));
    let fade = check.links[0].forward.fade.as_ref().expect("a fade");
    // 11.35 dB to the threshold of QPSK 1/4, exceeded with the probability of the default rain.
    let rain = fade::rain::Config::temperate(fade::carrier::Config::default());
    let expected = fade::Config::from(rain).exceeded(11.35);
    assert!((fade.outage / expected - 1.0).abs() < 1e-9, "{}", fade.outage);
    // Of the 14 up to 8PSK 3/4 that the standard has, QPSK 8/9 carries less than 8PSK 3/5 and needs more.
    assert_eq!((fade.modcods[0].name.as_str(), fade.modcods.len()), ("8PSK 3/4", 13));
    assert!((fade.modcods.iter().map(|m| m.share).sum::<f64>() + fade.outage - 1.0).abs() < 1e-12);
    let mean = fade.mean_rate_bit_s.expect("a rate");
    assert!(mean < 11_140_620.0 && mean > 0.95 * 11_140_620.0, "{mean}");
    let text = check.to_string();
    assert!(
        text.contains(
            "fade       rain, 8PSK 3/4 at 11.1 Mbit/s under a clear sky to QPSK 1/4 at 2.45 Mbit/s"
        ),
        "{text}"
    );
    let check = skyhaul_scenario::check(&resolve(SHADOW, &[]).expect("good"));
    let fade = check.links[0].forward.fade.as_ref().expect("a fade");
    // 1 s of 4 s with half of the packets lost.
    assert!((fade.loss - 0.125).abs() < 1e-12 && fade.modcods.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    for (link, expected) in [
        ("rate = \"1 Mbit/s\"\nfade = \"rain\"\n", "write \"none\", or a table such as"),
        (
            "rate = \"1 Mbit/s\"\nfade = { kind = \"rain\", carrier = { es-n0 = \"9 dB\", modcod = \"QPSK\" } }\n",
            "links.sat.fade.carrier.modcod: \"QPSK\" is not a ModCod",
        ),
        (
            "rate = \"unlimited\"\nfade = { kind = \"rain\", carrier = { es-n0 = \"9 dB\" } }\n",
            "links.sat.fade.carrier.modcod: a carrier cannot set the rate",
        ),
        (
            "rate = \"9 Mbit/s\"\nfade = { kind = \"rain\", carrier = { es-n0 = \"9 dB\", symbol-rate = \"5 MBd\" } }\n",
            "links.sat.fade.carrier.symbol-rate: 5000000 symbols per second",
        ),
        (
            "rate = { kind = \"dama\", rate = \"1 Mbit/s\", frame = \"0 s\", request = \"1 s\" }\n",
            "links.sat.rate.frame: write from 10 us",
        ),
        (
            "rate = \"1 Mbit/s\"\nerror = { kind = \"ber\", ber = 1e-4, ber-is = \"channel\" }\n",
            "links.sat.error.code: missing",
        ),
        (
            "rate = \"11.14062 Mbit/s\"\nfade = { kind = \"rain\", carrier = { es-n0 = \"9 dB\" } }\n\
             [[event]]\nat = \"5 s\"\nset = { links.sat.rate = \"2 Mbit/s\" }\n",
            "the carrier of links.sat.fade sets the rate",
        ),
    ] {
        let message = refused(link);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_coded_channel_is_read() {
    let code = "{ kind = \"bch\", n = 255, k = 247, t = 1 }";
    let link = format!(
        "rate = \"1 Mbit/s\"\nerror = {{ kind = \"ber\", ber = 1e-4, ber-is = \"channel\", code = {code} }}\n"
    );
    let s = resolve(&link, &[]).expect("good");
    // The example of the literature: more than 1 % of packets of 1000 bytes.
    let loss = s.links[0].forward.error.mean_loss(1000);
    assert!(loss > 0.01 && loss < 0.0106, "{loss}");
    let alone = skyhaul_scenario::resolve_text("r.toml", &s.to_toml(), &[], &no_files).expect("good");
    assert_eq!(alone, s);
}

/// Presets with a fade or capacity on demand: what their heads say.
#[test]
fn presets_are_what_they_say() {
    let of = |name| Document::preset(name).and_then(|d| d.resolve()).unwrap_or_else(|e| panic!("{e}"));
    let hts = of("geo-hts-ka");
    let (down, up) =
        (hts.links[0].forward.fade.clone().expect("rain"), hts.links[0].reverse.fade.clone().expect("rain"));
    assert!(down.shared() && up.shared());
    // Twice the attenuation: 6 dB on the way up are exceeded as often as 3 dB on the way down, 0.236 % of time.
    assert!(
        (up.exceeded(6.0) - down.exceeded(3.0)).abs() < 1e-12 && (down.exceeded(3.0) - 2.36e-3).abs() < 5e-6
    );
    // 13 dB less the margin of 1 dB: 16APSK 5/6 needs 11.61 dB.
    assert_eq!(down.carrier().expect("a carrier").clear_sky().name, "16APSK 5/6");
    let dama = of("geo-bent-pipe-dama");
    assert_eq!(dama.links[0].reverse.rate.mean(), Some(Rate::from_bits_per_sec(2_000_000)));
    let ship = of("maritime-vsat").links[0].forward.fade.clone().expect("shadowing");
    // 4 s of 304 s, and half of the stays have more than 12 dB.
    assert!((ship.exceeded(12.0) - 0.5 * 4.0 / 304.0).abs() < 1e-9);
    let aircraft = of("in-flight-geo").links[0].forward.fade.clone().expect("shadowing");
    // For each turn of 40 s one level flight of 900 s comes before or after it, and in a quarter of them 10 s of blockage.
    let all = 900.0 + 40.0 + 0.25 * 10.0;
    assert!((aircraft.exceeded(20.0) - 2.5 / all).abs() < 1e-6, "{}", aircraft.exceeded(20.0));
}
