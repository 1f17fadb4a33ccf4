//! Links that fade, and return capacity that is asked for, over TCP from end to end.

use crate::text::resolved;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::{LossCause, Null};

fn result(link: &str, flow: &str) -> RunResult {
    let text = format!(
        "schema = 1\nduration = \"40 s\"\n[links.sat]\npacket = \"1000 B\"\ndelay = \"275 ms\"\nqueue = \"1 BDP\"\n{link}\n\
         [flows.bulk]\npath = [\"sat\"]\ncc = \"newreno\"\nendpoint = {{ preset = \"ns2-2004\" }}\n\
         rwnd = \"2000 segments\"\nhandshake = false\n{flow}\n"
    );
    run(&resolved(&text), 1, Null).expect("a run")
}

/// 9 dB under a clear sky; 5 dB less from 20 s on.
fn faded(modcod: &str) -> RunResult {
    let fade = format!(
        "{{ trace = \"t.csv\", text = \"time_s,attenuation_dB\\n0,0\\n20,5\\n\", \
         carrier = {{ es-n0 = \"9 dB\", noise-rise = false, modcod = \"{modcod}\" }} }}"
    );
    let link = format!("rate = \"11.14062 Mbit/s\"\nfade = {fade}\nreverse = {{ fade = \"none\" }}");
    result(&link, "app = \"bulk\"")
}

#[test]
fn an_adaptive_link_goes_on_where_a_fixed_one_falls_off_its_cliff() {
    let bytes = |r: &RunResult| r.flows[0].bytes_acked as f64;
    let lost = |r: &RunResult| r.link("sat", true).expect("the link").dropped(LossCause::Error);
    // 20 s of 8PSK 3/4, 0.55 s without reception, and the rest with QPSK 3/5.
    let adaptive = faded("adaptive");
    let most = (20.0 * 11.140_62e6 + 19.45 * 5.941_52e6) / 8.0;
    assert!(bytes(&adaptive) < most, "{} of {most}", bytes(&adaptive));
    assert!(lost(&adaptive) > 0);
    // Nothing of what a fixed ModCod sends after 20 s arrives.
    let fixed = faded("8PSK 3/4");
    assert!(bytes(&fixed) <= 20.0 * 11.140_62e6 / 8.0, "{}", bytes(&fixed));
    assert!(bytes(&adaptive) > bytes(&fixed) && lost(&fixed) > 0);
}

#[test]
fn the_first_acknowledgement_after_idleness_waits_for_its_capacity() {
    let took = |rate: &str| {
        let link = format!("rate = \"10 Mbit/s\"\nreverse = {{ rate = {rate} }}");
        let r = result(&link, "app = { kind = \"pages\", segments = 1, count = 1 }");
        assert_eq!(r.flows[0].pages.len(), 1);
        r.flows[0].pages[0].took.as_secs_f64()
    };
    let constant = took("\"2 Mbit/s\"");
    let asked = took("{ kind = \"dama\", rate = \"2 Mbit/s\", frame = \"25 ms\", request = \"600 ms\" }");
    // A request, and up to a frame until its slot.
    let more = asked - constant;
    assert!((0.6..=0.625).contains(&more), "{more}");
}

/// Values of a series of the link, forward and reverse, at a time.
fn values(r: &RunResult, series: &str, at: f64) -> [f64; 2] {
    [0, 1].map(|link| {
        let of = r.series.links.of(link, series);
        of.filter(|(t, _)| *t == at).map(|(_, v)| v).next().expect("a row")
    })
}

#[test]
fn series_show_attenuation_signal_and_modcod() {
    let link = "rate = \"11.14062 Mbit/s\"\nfade = { trace = \"t.csv\", text = \"time_s,attenuation_dB\\n0,0\\n20,5\\n\", \
                carrier = { es-n0 = \"9 dB\", noise-rise = false } }\nreverse = { fade = \"none\" }";
    let record = "app = \"bulk\"\n[record]\nsample = \"500 ms\"\nseries = [\"attenuation\", \"es-n0\", \"modcod\", \"rate\"]";
    let r = result(link, record);
    for (at, attenuation, es_n0, modcod, rate) in [
        (0.0, 0.0, 9.0, 2.228_124, 11_140_620.0),
        (19.5, 0.0, 9.0, 2.228_124, 11_140_620.0),
        // The choice takes effect 550 ms after the change.
        (20.5, 5.0, 4.0, 2.228_124, 11_140_620.0),
        (21.0, 5.0, 4.0, 1.188_304, 5_941_520.0),
    ] {
        for (series, expected) in
            [("attenuation", attenuation), ("es-n0", es_n0), ("modcod", modcod), ("rate", rate)]
        {
            let [forward, reverse] = values(&r, series, at);
            assert!((forward - expected).abs() < 1e-6, "{series} at {at} s: {forward}, not {expected}");
            assert!(series == "rate" || reverse.is_nan(), "{series} in reverse: {reverse}");
        }
    }
    // Looking at the signal changes nothing.
    let unseen = result(link, "app = \"bulk\"");
    assert_eq!((r.flows[0].bytes_acked, r.links.len()), (unseen.flows[0].bytes_acked, unseen.links.len()));
}

#[test]
fn series_show_the_satellite_and_its_elevation() {
    let orbit = "orbit = { from = \"Palermo\", to = \"Rome\", constellation = \"leo1200\" }";
    let text = format!(
        "schema = 1\nduration = \"600 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\nqueue = \"50 packets\"\n{orbit}\n[flows.f]\npath = [\"sat\"]\n\
         app = {{ kind = \"cbr\", rate = \"53 kbit/s\" }}\n[record]\nsample = \"10 s\"\nseries = [\"satellite\", \"elevation\", \"delay\", \"attenuation\"]\n"
    );
    let r = run(&resolved(&text), 1, Null).expect("a run");
    let seen: Vec<f64> = r.series.links.of(0, "satellite").map(|(_, v)| v).collect();
    let elevations: Vec<f64> = r.series.links.of(0, "elevation").map(|(_, v)| v).collect();
    assert_eq!((seen.len(), elevations.len()), (61, 61));
    assert!(seen.iter().all(|s| *s >= 0.0 && s.fract() == 0.0));
    assert!(seen.windows(2).filter(|w| w[0] != w[1]).count() >= 2, "{seen:?}");
    assert!(elevations.iter().all(|e| (0.0..=90.0).contains(e)), "{elevations:?}");
    assert!(values(&r, "attenuation", 10.0)[0].is_nan());
}
