use super::*;
use crate::Document;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::error::list;
use skyhaul_path::{Link, LinkConfig, PacketView, Streams};

fn checked(sets: &[&str]) -> Check {
    let mut document = Document::preset("peach-geo").unwrap();
    for set in sets {
        document.set(set).unwrap();
    }
    check(&document.resolve().unwrap())
}

fn codes(sets: &[&str]) -> Vec<&'static str> {
    checked(sets).warnings.iter().map(|w| w.code).collect()
}

#[track_caller]
fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() <= tolerance, "{got} is not {want}");
}

#[test]
fn peach_geo_in_numbers() {
    let c = checked(&[]);
    let (link, flow) = (&c.links[0], &c.flows[0]);
    near(link.forward.rate_packets_s.unwrap(), 1300.0, 1e-12);
    near(link.forward.bdp_packets.unwrap(), 715.0, 2e-3);
    near(link.forward.queue_s.unwrap(), 50.0 / 1300.0, 1e-12);
    near(flow.base_rtt_s, 0.55 + 1.0 / 1300.0, 1e-12);
    near(flow.bounds.window.unwrap(), 116.2, 1e-3);
    near(flow.bounds.fair_share.unwrap(), 65.0, 1e-12);
    // T0: RTT + tick is below RTOmin.
    near(flow.bounds.random_loss.unwrap(), 69.7, 5e-3);
    assert_eq!(flow.bounds.return_link, None);
    assert_eq!(flow.active, Active::FairShare { link: "sat".into() });
    near(flow.rate_segments_s.unwrap(), 65.0, 1e-12);
    near(flow.goodput_bit_s.unwrap(), 1300.0 * 0.999 * 960.0 * 8.0, 1e-9);
    near(link.forward.utilization.unwrap(), 1.0, 1e-9);
    assert_eq!(c.warnings.iter().map(|w| w.code).collect::<Vec<_>>(), ["queue-short", "phase-effects"]);
}

#[test]
fn equal_flows_at_a_full_queue_are_warned_of_phase_effects() {
    let warning = |sets: &[&str]| checked(sets).warnings.into_iter().find(|w| w.code == "phase-effects");
    let found = warning(&[]).unwrap();
    assert_eq!(found.key, "links.sat.queue");
    assert!(found.message.contains("Floyd") && found.message.contains("jitter = \"3.1 ms\""), "{found:?}");
    // Windows that fit, one flow, an early drop, an application that pauses, and the remedy.
    for quiet in [
        "flows.bulk.count=11",
        "flows.bulk.count=1",
        "links.sat.queue={ kind = 'red', limit = '50 packets' }",
        "flows.bulk.stop=0 s",
        "flows.bulk.app={ kind = 'pages', segments = 50 }",
        "links.sat.delay={ kind = 'uniform', base = '275 ms', jitter = '3 ms' }",
    ] {
        assert_eq!(warning(&[quiet]), None, "{quiet}");
    }
    let said = |name: &str| {
        let scenario = Document::preset(name).unwrap().resolve().unwrap();
        check(&scenario).warnings.iter().any(|w| w.code == "phase-effects")
    };
    for name in ["peach-geo", "neglia", "papadimitriou"] {
        assert!(said(name) && !said(&format!("{name}-access")), "{name}");
    }
    // All windows of this one fit.
    assert!(!said("peach-hetero"));
}

#[test]
fn where_nothing_can_arrive_a_warning_says_so() {
    let warned = |sets: &[&str]| {
        let warnings = checked(sets).warnings.into_iter();
        let dead =
            warnings.filter(|w| ["nothing-arrives", "nothing-happens", "queue-none"].contains(&w.code));
        dead.map(|w| (w.code, w.key)).collect::<Vec<_>>()
    };
    for (sets, code, key) in [
        (&["links.sat.error.p=1"][..], "nothing-arrives", "links.sat.error"),
        (&["links.sat.reverse.up=false"], "nothing-arrives", "links.sat.reverse.up"),
        (&["links.sat.queue=500 B"], "queue-none", "links.sat.queue"),
        (&["duration=0 s"], "nothing-happens", "duration"),
        (
            &[
                "links.sat.fade={ kind = 'rain', carrier = { es-n0 = '-30 dB' } }",
                "links.sat.reverse.fade=none",
            ],
            "nothing-arrives",
            "links.sat.fade.carrier.es-n0",
        ),
    ] {
        assert_eq!(warned(sets), [(code, key.to_owned())], "{sets:?}");
    }
    // An event may bring it up; a queue of no packets is a choice.
    let later = "event=[{ at = '10 s', set = { 'links.sat.reverse.up' = true } }]";
    assert_eq!(warned(&["links.sat.reverse.up=false", later]), []);
    assert_eq!(warned(&["links.sat.queue=0 packets"]), []);
    assert_eq!(warned(&[]), []);
    // Nothing is said of Reno where there is no queue.
    assert!(!codes(&["links.sat.queue=500 B"]).contains(&"queue-short"));
}

#[test]
fn a_fade_that_changes_nothing_in_the_run_is_reported() {
    let of = |sets: &[&str]| {
        let mut document = Document::preset("geo-hts-ka").unwrap();
        sets.iter().for_each(|set| document.set(set).unwrap());
        let scenario = document.resolve().unwrap();
        let still = check(&scenario).warnings.into_iter().filter(|w| w.code == "fade-still");
        still.map(|w| (w.key, w.message)).collect::<Vec<_>>()
    };
    let keys = |sets: &[&str]| of(sets).into_iter().map(|w| w.0).collect::<Vec<_>>();
    let both = ["links.sat.fade", "links.sat.reverse.fade"];
    // It rains for 5 % of the time: with seed 1 in these three minutes, with most others not.
    assert_eq!(keys(&["duration=180 s"]), [""; 0]);
    let dry: Vec<_> = (2..=9).map(|seed| of(&["duration=180 s", &format!("seed={seed}")])).collect();
    let dry: Vec<_> = dry.into_iter().filter(|w| !w.is_empty()).collect();
    assert!(dry.len() >= 6 && dry[0].iter().map(|w| &*w.0).eq(both), "{dry:?}");
    assert!(
        dry[0][0].1.contains("the fade changes nothing within the 180 s of the run, and with "),
        "{dry:?}"
    );
    // Rain for half of the time, and another process each second.
    let wet = ["links.sat.fade.rain-probability=0.5", "links.sat.fade.beta=1 /s", "links.sat.fade.m=2"];
    let wet = [&["duration=180 s", "seed=3"], &wet[..]].concat();
    assert!(!keys(&wet).contains(&"links.sat.fade".to_owned()), "{:?}", keys(&wet));
    assert_eq!(keys(&["duration=0 s"]), [""; 0]);
}

#[test]
fn a_page_is_as_fast_as_its_rounds() {
    let of = |sets: &[&str]| {
        let base =
            ["links.sat.error=none", "flows.bulk.count=1", "flows.bulk.cc=sack", "flows.bulk.handshake=true"];
        checked(&[&base[..], sets].concat()).flows.remove(0)
    };
    // RTT 551 ms: the handshake, then windows of 10, 20, 40 segments.
    let modern = "flows.bulk.endpoint={ preset = 'modern' }";
    let pages = "flows.bulk.app={ kind = 'pages', segments = 50 }";
    let flow = of(&[modern, pages]);
    near(flow.bounds.page.unwrap(), 50.0 / (4.0 * flow.base_rtt_s), 1e-9);
    assert_eq!(flow.active, Active::Page);
    near(flow.rate_segments_s.unwrap(), flow.bounds.page.unwrap(), 1e-12);
    // The pause after each, no handshake.
    let slow = of(&[
        modern,
        "flows.bulk.handshake=false",
        "flows.bulk.app={ kind = 'pages', segments = 10, idle = '3 s' }",
    ]);
    let others = 9.0 * 8.0 * f64::from(slow.packet_bytes) / 10.4e6;
    near(slow.bounds.page.unwrap(), 10.0 / (slow.base_rtt_s + others + 3.0), 1e-9);
    // A page that takes long is bound by the link.
    let long = of(&[modern, "flows.bulk.app={ kind = 'pages', segments = 1000000 }"]);
    near(long.bounds.page.unwrap(), long.bounds.window.unwrap(), 1e-3);
    let wide = ["flows.bulk.rwnd=6 MiB", "flows.bulk.sndbuf=6 MiB"];
    let long = of(&[modern, "flows.bulk.app={ kind = 'pages', segments = 1000000 }", wide[0], wide[1]]);
    near(long.bounds.page.unwrap(), long.bounds.fair_share.unwrap(), 5e-3);
    // Peach may send all of it at once.
    let quick = of(&[modern, pages, "flows.bulk.cc=peach"]);
    assert!(
        quick.bounds.page.unwrap() > 1.5 * flow.bounds.page.unwrap()
            && quick.leaves_out.contains(&"how fast this control starts")
    );
    assert_eq!(of(&[modern]).bounds.page, None);
}

#[test]
fn small_transfers_carry_headers() {
    let used = |size: &str, handshake: bool| {
        let c = checked(&[
            "links.sat.error=none",
            "flows.bulk.count=1",
            "flows.bulk.cc=sack",
            &format!("flows.bulk.handshake={handshake}"),
            &format!("flows.bulk.app={{ kind = 'arrivals', rate = '100 /s', size = '{size}' }}"),
        ]);
        c.links[0].forward.utilization.unwrap() * 10.4e6 / 8.0
    };
    // 40 B of headers for each segment of up to 960 B, two more packets for a handshake.
    near(used("100 B", false), 100.0 * 140.0, 1e-9);
    near(used("100 B", true), 100.0 * 220.0, 1e-9);
    near(used("1920 B", false), 100.0 * 2000.0, 1e-9);
}

#[test]
fn a_return_link_that_filters_acknowledgements_is_as_busy_as_they_make_it() {
    let of = |queue: &str| {
        let mut document = Document::preset("papadimitriou").unwrap();
        document.set("links.sat.error=none").unwrap();
        document.set(queue).unwrap();
        check(&document.resolve().unwrap()).links[0].reverse.utilization.unwrap()
    };
    near(of("links.sat.reverse.queue={ kind = 'ack-filter', limit = '50 packets' }"), 1.0, 1e-9);
    near(of("links.sat.reverse.queue=50 packets"), 1.0, 1e-9);
    // More than enough for all of them.
    near(
        of("links.sat.reverse={ rate = '10 Mbit/s', queue = { kind = 'ack-filter', limit = '50 packets' } }"),
        0.04,
        0.02,
    );
}

#[test]
fn random_loss_binds_the_reno_class_only() {
    let sets = ["links.sat.error.p=1e-2", "flows.bulk.cc=sack"];
    let c = checked(&sets);
    assert_eq!(c.flows[0].active, Active::RandomLoss);
    near(c.flows[0].rate_segments_s.unwrap(), 21.1, 5e-3);
    near(c.links[0].forward.utilization.unwrap(), 20.0 * 21.1 / 1300.0, 5e-3);
    assert_eq!(checked(&sets[..1]).flows[0].active, Active::FairShare { link: "sat".into() });
}

#[test]
fn windows_bind_half_the_flows() {
    // Ten flows of 64 segments: 640 < 715, 116.4 segments/s each.
    let c = checked(&["flows.bulk.count=10"]);
    assert_eq!(c.flows[0].active, Active::Window);
    near(c.flows[0].rate_segments_s.unwrap(), 116.2, 1e-3);
    assert!(c.warnings.iter().any(|w| w.code == "window-short" && w.key == "flows.bulk.rwnd"));
}

#[test]
fn a_slow_return_link_binds_and_warns() {
    // 256 kbit/s carry 800 acknowledgements of 40 bytes per second.
    let c = checked(&["links.sat.reverse.rate=256 kbit/s"]);
    assert_eq!(c.flows[0].active, Active::ReturnLink { link: "sat".into() });
    near(c.flows[0].rate_segments_s.unwrap(), 40.0, 1e-9);
    near(c.links[0].reverse.utilization.unwrap(), 1.0, 1e-9);
    assert!(c.warnings.iter().any(|w| w.code == "return-link"));
    let delayed = "flows.bulk.endpoint.delayed-ack={ every = 2, delay = '200 ms' }";
    let c = checked(&["links.sat.reverse.rate=256 kbit/s", delayed]);
    near(c.flows[0].bounds.return_link.unwrap(), 80.0, 1e-9);
}

#[test]
fn nagles_algorithm_holds_frames_back() {
    let film = "flows.bulk.app={ kind = 'video', rate = '53 kbit/s' }";
    let rfc = "flows.bulk.endpoint=rfc";
    let held = checked(&[film, rfc]).warnings.into_iter().find(|w| w.code == "frames-held");
    let held = held.expect("a warning");
    assert_eq!(held.key, "flows.bulk.endpoint.nagle");
    assert!(held.message.contains("551 ms") && held.message.contains("nagle = false"), "{}", held.message);
    let padded = "flows.bulk.app={ kind = 'video', rate = '53 kbit/s', pad = true }";
    let off = "flows.bulk.endpoint={ preset = 'rfc', nagle = false }";
    let modern = "flows.bulk.endpoint=modern";
    for sets in [[film, off], [padded, rfc], ["flows.bulk.app=bulk", rfc], [film, modern], [film, "seed=1"]] {
        assert!(!codes(&sets).contains(&"frames-held"), "{sets:?}");
    }
}

#[test]
fn the_normalised_bandwidth_ratio() {
    // RFC 3449 §2: 10 Mbit/s, 50 kbit/s, packets of 1000 and 40 bytes.
    let with = |more: &[&str]| checked(&[&["links.sat.rate=10 Mbit/s"], more].concat());
    let rfc = "links.sat.reverse.rate=50 kbit/s";
    near(with(&[rfc]).links[0].ack_ratio.unwrap(), 8.0, 1e-12);
    let said = |c: &Check, code: &str| c.warnings.iter().find(|w| w.code == code).map(|w| w.message.clone());
    let limited = said(&with(&[rfc]), "return-link").unwrap();
    assert!(
        limited.contains("k is 8 ") && limited.contains("caps the rate of data at 1.25 Mbit/s"),
        "{limited}"
    );
    // 256 kbit/s beside 10 Mbit/s: with every packet acknowledged at most 6.4 Mbit/s, with every second no limit.
    let narrow = "links.sat.reverse.rate=256 kbit/s";
    let c = with(&[narrow]);
    near(c.links[0].ack_ratio.unwrap(), 1.5625, 1e-12);
    assert!(said(&c, "return-link").unwrap().contains("at 6.4 Mbit/s"), "{c}");
    let delayed = "flows.bulk.endpoint.delayed-ack={ every = 2, delay = '200 ms' }";
    let quiet = |c: &Check| said(c, "return-link").is_none() && said(c, "ack-ratio").is_none();
    assert!(quiet(&with(&[narrow, delayed])));
    // One flow with a small window does not meet the limit, but it is there.
    let c = with(&[narrow, "flows.bulk.count=1"]);
    assert!(said(&c, "ack-ratio").unwrap().contains("at 6.4 Mbit/s"), "{c}");
    // Thinning and compression move it.
    let filter = "links.sat.reverse.queue={ kind = 'ack-filter', limit = '50 packets' }";
    assert!(quiet(&with(&[rfc, filter])));
    let decimation =
        "links.sat.reverse.queue={ kind = 'ack-decimation', limit = '50 packets', keep-every = 4 }";
    assert!(said(&with(&[rfc, decimation]), "return-link").unwrap().contains("at 5 Mbit/s"));
    let c = with(&[rfc, "links.sat.reverse.ack-size=5 B"]);
    near(c.links[0].ack_ratio.unwrap(), 1.0, 1e-12);
    assert!(quiet(&c), "{c}");
    assert_eq!(with(&[]).links[0].ack_ratio, None);
}

#[test]
fn clean_links_and_flows_in_step() {
    let c = checked(&["links.sat.error=none", "flows.bulk.cc=sack"]);
    // 715 packets of propagation and one of serialisation.
    near(c.flows[0].in_phase_utilization.unwrap(), 0.7988, 1e-3);
    assert_eq!(checked(&["links.sat.error=none"]).flows[0].in_phase_utilization, None);
}

#[test]
fn options_of_a_queue_are_shown_as_they_are_in_force() {
    let shown = |sets: &[&str]| {
        let c = checked(sets);
        (c.links[0].forward.queue_options.clone(), c.to_string(), c.hash.clone())
    };
    let of = |queue: &str| format!("links.sat.queue={{ {queue} }}");
    let leo = "links.sat.delay=20 ms";
    let (options, text, _) = shown(&[&of("kind = 'codel', limit = '50 packets'"), leo]);
    assert_eq!((&*options["target"], &*options["interval"]), ("5 ms", "100 ms"));
    assert!(
        text.contains("options    class-aware false, ecn true, interval 100 ms, target 5 ms\n"),
        "{text}"
    );
    let (options, _, hash) = shown(&[&of("kind = 'codel', limit = '50 packets'")]);
    assert_eq!((&*options["target"], &*options["interval"]), ("27.5 ms", "550 ms"));
    // The scenario says the same as one that writes these values.
    let written = of("kind = 'codel', limit = '50 packets', target = '27.5 ms', interval = '550 ms'");
    assert_eq!(shown(&[&written]).2, hash);
    let (options, ..) = shown(&[&written, leo]);
    assert_eq!((&*options["target"], &*options["interval"]), ("27.5 ms", "550 ms"));
    let (options, ..) = shown(&[&of("kind = 'pie', limit = '50 packets', target = '20 ms'")]);
    assert_eq!(
        (&*options["target"], &*options["update"], &*options["burst"]),
        ("20 ms", "82.5 ms", "825 ms")
    );
    let (options, ..) = shown(&[&of("kind = 'red', limit = '60 packets'")]);
    assert_eq!((&*options["min-threshold"], &*options["max-threshold"]), ("10 packets", "30 packets"));
    // The thresholds are those of the capacity in force.
    let (options, ..) = shown(&[&of("kind = 'red', limit = '61 packets', ns2-limit = true")]);
    assert_eq!((&*options["min-threshold"], &*options["max-threshold"]), ("10 packets", "30 packets"));
    let (options, text, _) = shown(&[&of("kind = 'drop-tail', limit = '60 packets'")]);
    assert!(options.is_empty() && !text.contains("    options"), "{text}");
}

#[test]
fn each_mistake_has_its_warning() {
    let quiet = "links.sat.queue.limit=1 BDP";
    assert_eq!(codes(&[quiet]), [""; 0]);
    for (set, code) in [
        ("links.sat.queue.limit=5 BDP", "queue-long"),
        (
            "links.sat.queue={ kind = 'codel', limit = '50 packets', target = '5 ms', interval = '100 ms' }",
            "interval-short",
        ),
        ("flows.bulk.rwnd=20 segments", "window-short"),
        ("links.sat.error={ kind = 'ber', ber = 1e-5 }", "ber-not-per"),
        ("links.sat.queue.kind=plain", "priority-ignored"),
        ("flows.bulk.endpoint.probes=off", "probes-off"),
        ("flows.bulk.start=0 s", "same-start"),
        ("flows.bulk.start={ uniform = ['1 s', '1 s'] }", "same-start"),
        ("flows.bulk.start=600 s", "late-start"),
        ("flows.bulk.stop=0 s", "early-stop"),
        ("record.sample=1 ms", "many-samples"),
    ] {
        assert!(codes(&[quiet, set]).contains(&code), "{set}: {:?}", codes(&[quiet, set]));
    }
    // Who sends with low priority is asked of the control: its options count, not its name.
    let blind = "links.sat.queue.kind=drop-tail";
    let ignored = |sets: &[&str]| codes(sets).contains(&"priority-ignored");
    for cc in ["peach", "peach-plus", "fast-start"] {
        assert!(ignored(&[quiet, blind, &format!("flows.bulk.cc={cc}")]), "{cc}");
    }
    assert!(!ignored(&[quiet, blind, "flows.bulk.cc={ name = 'fast-start', low-priority = false }"]));
    assert!(!ignored(&[quiet, blind, "flows.bulk.endpoint.probes=off"]));
    assert!(!ignored(&[quiet, blind, "flows.bulk.cc=sack"]));
    let off = "flows.bulk.endpoint.probes=off";
    assert!(codes(&[quiet, off, "flows.bulk.cc=peach-plus"]).contains(&"probes-off"));
    assert!(!codes(&[quiet, off, "flows.bulk.cc=sack"]).contains(&"probes-off"));
    // 50/(pX) = 50/(1e-3 · 65) = 769 s.
    assert_eq!(codes(&[quiet, "flows.bulk.cc=sack"]), ["short-for-loss"]);
    let short = checked(&[quiet, "flows.bulk.cc=sack"]).warnings.remove(0);
    assert!(
        short.key == "duration"
            && short.message.ends_with("50 losses take 769 s; write duration = \"770 s\""),
        "{short:?}"
    );
    assert_eq!(codes(&[quiet, "flows.bulk.cc=sack", "duration=770 s"]), [""; 0]);
    let pages = "flows.bulk.app={ kind = 'pages', segments = 50 }";
    assert!(!codes(&[quiet, "flows.bulk.cc=sack", pages]).contains(&"short-for-loss"));
    assert_eq!(codes(&[quiet, "flows.bulk.cc=sack", "duration=800 s"]), [""; 0]);
    assert_eq!(codes(&[quiet, "flows.bulk.cc=sack", "duration=0 s"]), ["nothing-happens"]);
    let two = ["flows.bulk.count=1", "flows.more={ path = ['sat'] }", "flows.bulk.start=0 s"];
    assert!(codes(&two).contains(&"same-start"));
    assert!(codes(&["links.other={ rate = '1 Mbit/s', delay = '1 ms' }"]).contains(&"unused-link"));
}

#[test]
fn timers_and_measurements_shorter_than_the_path_are_reported() {
    let warnings = |sets: &[&str], code: &str| {
        let far = ["links.sat.delay=5 s", "flows.bulk.cc=sack", "flows.bulk.endpoint=modern"];
        let warnings = checked(&[&far, sets].concat()).warnings;
        warnings.into_iter().filter(|w| w.code == code).map(|w| (w.key, w.message)).collect::<Vec<_>>()
    };
    // 10 s of RTT. The timer of a modern SYN is 1 s; a sender that knows the RTT has it from the start.
    let [(key, message)] = warnings(&["flows.bulk.handshake=true"], "timer-short").try_into().unwrap();
    assert!(key == "flows.bulk.endpoint.initial-rto" && message.contains("each SYN"), "{key}: {message}");
    assert_eq!(warnings(&["flows.bulk.handshake=false"], "timer-short"), []);
    let patient = "flows.bulk.endpoint={ preset = 'modern', initial-rto = '21 s' }";
    assert_eq!(warnings(&["flows.bulk.handshake=true", patient], "timer-short"), []);
    // 2 min is the most that the timer waits; Mars is 3 to 22 min away.
    let [(key, message)] = warnings(&["links.sat.delay=3 min"], "timer-short").try_into().unwrap();
    assert!(key == "flows.bulk.endpoint.rto-max" && message.contains("every segment"), "{key}: {message}");
    // BBR measures the RTT each 10 s, BBR 3 each 5 s.
    for (cc, key) in [("bbr", "min-rtt-window"), ("bbr3", "probe-rtt-interval")] {
        let cc = format!("flows.bulk.cc={cc}");
        let [(found, message)] = warnings(&[&cc], "rtt-probing").try_into().unwrap();
        assert!(found.ends_with(key) && message.contains("RTTs"), "{found}: {message}");
        assert_eq!(warnings(&[&cc, "links.sat.delay=275 ms"], "rtt-probing"), []);
    }
    assert_eq!(warnings(&["flows.bulk.cc={ name = 'bbr', min-rtt-window = 200.0 }"], "rtt-probing"), []);
    assert_eq!(warnings(&[], "rtt-probing"), []);
}

#[test]
fn warnings_of_legs_name_keys_of_the_chain() {
    let chain =
        |legs: &str| format!("chain = {{ kind = 'split3', gateways = ['g', 'h'], legs = {{ {legs} }} }}");
    let warnings = |flow: &str| {
        let link = |name: &str| format!("links.{name}={{ rate = '10 Mbit/s', delay = '1 ms' }}");
        let (a, b, c) = (link("a"), link("b"), link("c"));
        let gateways = "gateways={ g = { behind = 'a' }, h = { behind = 'b' } }";
        let path = format!("path = ['a', 'b', 'c'], cc = 'peach', endpoint = 'ns2-2004', {flow}");
        let one = format!("flows.bulk={{ start = '0 s', {path} }}");
        let two = format!("flows.two={{ start = '5 s', {path} }}");
        let warnings = checked(&[&a, &b, &c, gateways, &one, &two]).warnings;
        warnings.into_iter().map(|w| (w.code, w.key)).collect::<Vec<_>>()
    };
    let keys = |all: &[(&str, String)], code: &str| {
        all.iter().filter(|w| w.0 == code).map(|w| w.1.clone()).collect::<Vec<_>>()
    };
    // Only the first leg has a control with probes, and the legs start when they are opened.
    let xtp =
        warnings(&chain("g = { transport = { kind = 'xtp-like', rate = '9 Mbit/s' } }, h = { cc = 'sack' }"));
    assert_eq!(keys(&xtp, "priority-ignored"), ["links.a.queue"; 2]);
    assert_eq!(keys(&xtp, "same-start"), [""; 0]);
    let off = warnings(&chain("g = { endpoint = { probes = 'off' } }, h = { cc = 'sack' }"));
    let want = ["bulk", "two"].map(|flow| format!("flows.{flow}.chain.legs.g.endpoint.probes"));
    assert_eq!(keys(&off, "probes-off"), want);
}

#[test]
fn text_and_json() {
    let c = checked(&[]);
    let text = c.to_string();
    let want = "\
TCP-Peach over GEO
  run          550 s, seed 1
  memory       about 0.873 MB
  hash         HASH

link sat
  forward      10.4 Mbit/s = 1300 packets/s of 1000 B, 275 ms, loss 0.1 %, predicted use 100 %
    queue      strict-pushout 50 packets = 38.46 ms = 0.0698 BDP; BDP 716 packets
    options    victim youngest
  reverse      unlimited rate, 275 ms

flows bulk
  count        20 x peach, segments of 960 B, packets of 1000 B
  base RTT     550.8 ms
  window       64 segments; BDP of sat is 716 packets, 35.8 per flow
  loss         0.1 %
  bounds       window 116, fair share 65, random loss (Reno only) 69.6 segments/s per flow
  prediction   fair share of sat: 65 segments/s per flow, goodput 9.97 Mbit/s in all
  left out     slow start; losses at full queues; random loss

warnings
  links.sat.queue: 50 packets are 0.0698 of the BDP: Reno flows that lose packets at the same time use 79.9 % of a loss-free link [queue-short]
  links.sat.queue: flows of equal RTT and packet size fill this queue, and nothing in their RTT is random: the phase of their arrivals decides which of them lose packets (Floyd and Jacobson 1991), not their congestion control; give a link of their path before sat a random delay, such as delay = { kind = \"uniform\", base = \"0 ms\", jitter = \"3.1 ms\" } [phase-effects]
";
    assert_eq!(text, want.replace("HASH", &c.hash[..16]));
    let json = serde_json::to_value(&c).unwrap();
    assert_eq!(json["flows"][0]["active"]["kind"], "fair-share");
    assert_eq!(json["links"][0]["reverse"]["rate_bit_s"], serde_json::Value::Null);
}

#[test]
fn extremes_do_not_panic() {
    for sets in [
        &["links.sat.error.p=1", "flows.bulk.cc=sack"][..],
        &["duration=0 s"],
        &["links.sat.queue.limit=0 packets"],
        &["links.sat.rate=unlimited", "links.sat.delay=0 s", "flows.bulk.handshake=true"],
        &["links.sat.rate=10 Gbit/s", "links.sat.delay=5 s"],
        &["links.sat.rate=1 bit/s"],
        &["links.sat.error={ kind = 'ber', ber = 1 }"],
    ] {
        let c = checked(sets);
        assert!(!c.to_string().contains("NaN"), "{c}");
        serde_json::to_string(&c).unwrap();
    }
}

#[test]
fn repair_in_numbers() {
    let sets = [
        "links.sat.error.p=1e-2",
        "links.sat.fec={ kind = \"block\", n = 20, k = 18 }",
        "links.sat.arq={ retries = 1 }",
        "links.sat.reverse.arq=none",
        "links.sat.reverse.fec=none",
    ];
    let plain = checked(&sets[..1]);
    let c = checked(&sets);
    assert_eq!((plain.links[0].forward.repair.as_ref(), c.links[0].reverse.repair.as_ref()), (None, None));
    let forward = &c.links[0].forward;
    let r = forward.repair.as_ref().unwrap();
    near(r.code_rate, 0.9, 1e-12);
    near(r.transmission_loss, 0.01, 1e-12);
    // Σ_{i>2} C(20,i) p^i (1−p)^(20−i) i/20.
    near(r.code_loss, 1.527e-4, 5e-4);
    near(forward.loss, r.code_loss * r.code_loss, 1e-9);
    let repeats = r.repeats.as_ref().unwrap();
    // 1300 packets/s. A block of 18 is closed after 50 ms; the packet being sent and two packets of parity follow.
    let coded = 0.05 + 3.0 / 1300.0;
    // 275 ms each way, 10 ms of guard; 1.5 products of rate and RTT.
    near(repeats.period_s, coded + 0.55 + 0.01, 1e-6);
    assert_eq!(repeats.window_packets, (1.5f64 * 1300.0 * 0.55).ceil() as u32);
    near(repeats.mean_transmissions, 1.0 + r.code_loss, 1e-9);
    near(r.worst_delay_s, coded + 0.275 + repeats.period_s, 1e-6);
    // 20 flows share what the code leaves.
    near(c.flows[0].bounds.fair_share.unwrap(), 65.0 * 0.9 / (1.0 + r.code_loss), 1e-9);
    let text = c.to_string();
    for words in [
        "block code (20, 18): 90 % of the capacity; of 1 % lost it leaves 0.0153 %",
        "repeats    up to 1, 612.3 ms apart",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

/// The time at which a packet was offered.
#[derive(Clone, Debug, Default)]
struct Sent(Instant);

impl PacketView for Sent {
    fn size(&self) -> u32 {
        1250
    }
    fn low_priority(&self) -> bool {
        false
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// The longest delay of packets of 1250 bytes that leave at these times, microseconds, if these transmissions are lost: seconds.
fn slowest(d: &Direction, departures: &[u64], lost: &[u64]) -> f64 {
    let error = list::Config::all(lost.iter().copied()).into();
    let mut link = Link::new(&LinkConfig { error, ..d.link_config() }, Streams::named(5, "links.sat"));
    let mut departures = departures.iter().map(|us| Instant::ZERO + Duration::from_micros(*us)).peekable();
    let mut longest = Duration::ZERO;
    loop {
        let [service, delivery] =
            [link.next_service(), link.next_delivery()].map(|t| t.unwrap_or(Instant::MAX));
        if let Some(now) = departures.next_if(|t| *t <= service.min(delivery)) {
            link.offer(now, Sent(now), &mut |_, why| panic!("{why:?}"));
        } else if service.min(delivery) == Instant::MAX {
            return longest.as_secs_f64();
        } else if service <= delivery {
            link.serve(service, &mut |_, why| panic!("{why:?}"));
        } else {
            let p = link.deliver(delivery).expect("due");
            longest = longest.max(delivery.since(p.0));
        }
    }
}

#[test]
fn no_packet_takes_longer_than_the_worst_delay() {
    // 1 ms for each packet. The last of those before the fill time of 50 ms still belongs to the block, and the first one comes with
    // the last parity of its block.
    let (late, arq) = (49_999, ["links.sat.arq={ retries = 1 }", "links.sat.reverse.arq=none"]);
    let spread: Vec<u64> = (0..10).map(|n| 5000 * n).chain([late]).collect();
    let parity = |n: u64| (0..n).map(|i| 11 + 10 * i);
    for (code, sets, departures, lost, slack) in [
        ("n = 20, k = 18", &[][..], vec![0, late], vec![0, 2], 2e-6),
        // Of ten blocks in turn, the parity of the first one comes nine packets before the end.
        (
            "n = 80, k = 64, interleave = 10",
            &[][..],
            spread,
            [0].into_iter().chain(parity(15)).collect(),
            9.1e-3,
        ),
        // The retransmission is alone in its block.
        ("n = 20, k = 18", &arq[..], vec![0, late], vec![0, 2, 3, 4, 5], 1.1e-3),
    ] {
        let fec = format!("links.sat.fec={{ kind = \"block\", {code} }}");
        let mut document = Document::preset("peach-geo").unwrap();
        for set in ["links.sat.rate=10 Mbit/s", fec.as_str(), "links.sat.reverse.fec=none"].iter().chain(sets)
        {
            document.set(set).unwrap();
        }
        let d = &document.resolve().unwrap().links[0].forward;
        let worst = repair::Repaired::new(d, 1250).check(d, 1250).unwrap().worst_delay_s;
        let longest = slowest(d, &departures, &lost);
        assert!(
            (worst - slack..=worst).contains(&longest),
            "{code} {sets:?}: {longest} s of at most {worst} s"
        );
    }
}

#[test]
fn repair_that_idles_or_replaces_losses_is_reported() {
    assert!(codes(&["links.sat.arq={ window = \"100 packets\" }"]).contains(&"arq-window-short"));
    assert!(!codes(&["links.sat.arq={}"]).contains(&"arq-window-short"));
    let rate = "links.sat.fec={ kind = \"rate\", rate = 0.5, residual = { kind = \"ber\", ber = 1e-9 } }";
    assert!(codes(&[rate]).contains(&"error-replaced"));
    near(checked(&[rate]).links[0].forward.loss, 8e-6, 1e-3);
    assert!(!codes(&["links.sat.fec={ kind = \"rate\", rate = 0.5 }"]).contains(&"error-replaced"));
}

#[test]
fn a_scalable_control_needs_marks_and_a_count_of_them() {
    let checked = |sets: &[&str]| {
        let mut document = Document::preset("l4s-dual-queue").unwrap();
        sets.iter().for_each(|set| document.set(set).unwrap());
        let all = check(&document.resolve().unwrap()).warnings;
        let found: Vec<_> = all.into_iter().filter(|w| w.code.starts_with("l4s")).collect();
        found.into_iter().map(|w| (w.code, w.key, w.message)).collect::<Vec<_>>()
    };
    assert_eq!(checked(&[]), []);
    let found = checked(&["links.sat.queue={ kind = 'drop-tail', limit = '1 BDP' }"]);
    let [(code, key, message)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*code, key.as_str()), ("l4s-unmarked", "links.sat.queue"));
    assert!(message.contains("this queue does not mark") && message.contains("flows.scalable"), "{message}");
    // A queue that could mark and must not, and the direction of the data.
    let off = "links.sat.queue={ kind = 'codel', limit = '1 BDP', ecn = false }";
    assert_eq!(checked(&[off]).len(), 1);
    let found = checked(&["flows.scalable.direction=reverse"]);
    assert_eq!(found[0].1, "links.sat.reverse.queue");
    for quiet in ["{ kind = 'codel', limit = '1 BDP' }", "{ kind = 'cake', limit = '1 BDP' }"] {
        assert_eq!(checked(&[&format!("links.sat.queue={quiet}")]), []);
    }
    assert_eq!(checked(&["links.sat.queue={ limit = '1 BDP' }", "flows.scalable.cc=cubic"]), []);
    for ecn in ["off", "ask", "grant"] {
        let found = checked(&[&format!("flows.scalable.endpoint.ecn={ecn}")]);
        let [(code, key, message)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*code, key.as_str()), ("l4s-feedback", "flows.scalable.endpoint.ecn"));
        assert!(message.contains("ecn = \"accurate\""), "{message}");
    }
}

#[test]
fn a_dual_queue_over_a_long_path_wants_a_longer_target() {
    let found = |sets: &[&str]| {
        let mut document = Document::preset("l4s-dual-queue").unwrap();
        sets.iter().for_each(|set| document.set(set).unwrap());
        let all = check(&document.resolve().unwrap()).warnings;
        all.into_iter().find(|w| w.code == "target-short").map(|w| (w.key, w.message))
    };
    let (rfc, geo) = ("links.sat.queue.target=15 ms", "links.sat.delay=275 ms");
    // What is left out follows from the path, and over LEO the target of the RFC is right.
    assert_eq!((found(&[]), found(&[geo]), found(&[rfc])), (None, None, None));
    let (key, message) = found(&[rfc, geo]).expect("a warning");
    assert_eq!(key, "links.sat.queue.target");
    assert!(message.starts_with("15 ms is a target for RTTs of up to 100 ms"), "{message}");
    assert!(message.contains("the longest is 55"), "{message}");
    assert_eq!(found(&["links.sat.queue.target=84 ms", geo]), None);
}
