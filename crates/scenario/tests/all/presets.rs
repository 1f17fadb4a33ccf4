//! Presets, defaults, overrides and the canonical form.

use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::CaGrowth;
use skyhaul_path::error::{self, per};
use skyhaul_path::queue::{Kind, Victim, pushout};
use skyhaul_path::{Limit, QueueConfig};
use skyhaul_scenario::resolved::{
    App, Delay, Direction, FlowDirection, FlowGroup, Record, Resolved, Series, Start, Times, Transport,
};
use skyhaul_scenario::{Document, no_files, preset, resolve_text};

use proptest::prelude::*;

fn with(sets: &[&str]) -> Resolved {
    let mut document = Document::preset("peach-geo").unwrap();
    for set in sets {
        document.set(set).unwrap_or_else(|e| panic!("{e}"));
    }
    document.resolve().unwrap_or_else(|e| panic!("{e}"))
}

fn of(name: &str) -> Resolved {
    Document::preset(name).unwrap().resolve().unwrap_or_else(|e| panic!("{e}"))
}
fn mbit(rate: u64) -> skyhaul_path::rate::Config {
    Some(Rate::from_bits_per_sec(rate * 1_000_000)).into()
}
/// Bytes of a full packet of this group.
fn packet(resolved: &Resolved, group: usize) -> u32 {
    resolved.flows[group].endpoint.mss + resolved.flows[group].endpoint.header
}

/// [Neglia §5, Fig. 1]: fifteen transfers over GEO from the start, fifteen on the ground from 2000 s on, a UDP flow from 4000 s
/// on, 6000 s in all; channels of 20 Mbit/s, and a link of 2 Mbit/s and 10 ms for all.
#[test]
fn neglia_has_the_setting_of_the_paper() {
    let n = of("neglia");
    assert_eq!(n.duration, Duration::from_secs(6000));
    let groups: Vec<_> = n.flows.iter().map(|f| (f.name.as_str(), f.count)).collect();
    assert_eq!(groups, [("satellite", 15), ("terrestrial", 15), ("udp", 1)]);
    let s = Duration::from_secs;
    let at = |from, to| Start::Uniform { from: s(from), to: s(to) };
    assert_eq!(n.flows[0].start, at(0, 1));
    assert_eq!(n.flows[1].start, at(2000, 2001));
    assert_eq!(n.flows[2].start, Start::At(s(4000)));
    for link in &n.links {
        let narrow = link.name == "bottleneck";
        assert_eq!(link.forward.rate, mbit(if narrow { 2 } else { 20 }), "{}", link.name);
    }
    let shared = n.links.iter().position(|l| l.name == "bottleneck").unwrap();
    assert_eq!(n.links[shared].forward.delay, Delay::fixed(Duration::from_millis(10)));
    assert!(n.flows.iter().all(|f| f.path.contains(&shared)));
}

/// [Papadimitriou §4.1, Fig. 5]: 10 Mbit/s forward and 256 kbit/s back, windows of 240 KB, packets of 1000 bytes, a bit error
/// rate of 1e-5 (read as a packet in a thousand) both ways, 200 s, beside transfers over Reno.
#[test]
fn papadimitriou_has_the_setting_of_the_paper() {
    let p = of("papadimitriou");
    assert_eq!(p.duration, Duration::from_secs(200));
    let sat = &p.links[0];
    assert_eq!((p.links.len(), &sat.forward.rate), (1, &mbit(10)));
    assert_eq!(sat.reverse.rate, Some(Rate::from_bits_per_sec(256_000)).into());
    let errors = error::Config::from(per::Config { p: 1e-3 });
    assert_eq!((&sat.forward.error, &sat.reverse.error), (&errors, &errors));
    for (group, flows) in p.flows.iter().enumerate() {
        assert_eq!(packet(&p, group), 1000);
        assert_eq!(flows.endpoint.receive_buffer, 240 * u64::from(flows.endpoint.mss), "{}", flows.name);
    }
    let beside = p.flows.iter().find(|f| f.name == "ftp").unwrap();
    assert_eq!((beside.cc.name(), beside.count), ("reno", 5));
}

/// [Luglio §5, Fig. 1]: one transfer over a repeater of 4 Mbit/s, a least RTT of 508 ms, packets of 1500 bytes.
#[test]
fn luglio_has_the_setting_of_the_paper() {
    let l = of("luglio");
    assert_eq!((l.flows.len(), l.flows[0].count, packet(&l, 0)), (1, 1, 1500));
    let up = l.links.iter().find(|link| link.name == "up").unwrap();
    assert_eq!(up.forward.rate, mbit(4));
    let one_way = Delay::fixed(Duration::from_millis(127));
    for link in &l.links {
        assert_eq!((&link.forward.delay, &link.reverse.delay), (&one_way, &one_way), "{}", link.name);
    }
    assert_eq!(l.flows[0].path.len(), 2, "up and down: 4 times 127 ms");
    assert_eq!(l.flows[0].cc.name(), "newreno");
}

#[test]
fn peach_geo_is_the_setting_of_the_paper() {
    let direction = |rate: Option<Rate>, error| Direction {
        queue: QueueConfig {
            discipline: pushout::Strict { victim: Victim::Youngest }.into(),
            limit: Limit::Packets(50),
            ..QueueConfig::default()
        },
        error,
        ..Direction::new(rate.into(), Delay::fixed(Duration::from_millis(275)))
    };
    let geo = with(&[]);
    assert_eq!((geo.duration, geo.seed), (Duration::from_secs(550), 1));
    assert_eq!(geo.links.len(), 1);
    assert_eq!(geo.links[0].name, "sat");
    assert_eq!(
        geo.links[0].forward,
        direction(Some(Rate::from_bits_per_sec(10_400_000)), per::Config { p: 1e-3 }.into())
    );
    assert_eq!(geo.links[0].reverse, direction(None, error::Config::NONE));
    let endpoint = skyhaul_tcp::Config { receive_buffer: 64 * 960, ..skyhaul_tcp::Config::ns2_2001() };
    assert_eq!(
        geo.flows,
        [FlowGroup {
            name: "bulk".into(),
            count: 20,
            path: vec![0],
            direction: FlowDirection::Forward,
            extra_delay: Duration::ZERO,
            dscp: 0,
            cc: skyhaul_cc::Config::by_name("peach").unwrap(),
            endpoint,
            transport: Transport::Tcp,
            app: App::BULK,
            start: Start::Uniform { from: Duration::ZERO, to: Duration::from_millis(550) },
            stop: None,
            handshake: false,
            close: false,
            known_rtt: Some(Duration::from_millis(550)),
            role: None,
        }]
    );
    assert_eq!(endpoint.rules.initial_window.segments(endpoint.mss), 1.0);
    assert_eq!(endpoint.mss + endpoint.header, 1000);
    let series = vec![Series::Acked, Series::Cwnd, Series::Queue];
    assert_eq!(geo.record, Record { sample: Some(Duration::from_secs(1)), series, packet_delay: false });
}

#[test]
fn the_other_orbits_differ_in_time_only() {
    for (name, rtt) in [("peach-meo", 250), ("peach-leo", 50)] {
        let mut orbit = Document::preset(name).unwrap().resolve().unwrap();
        let rtt = Duration::from_millis(rtt);
        assert_eq!(orbit.propagation_rtt(&orbit.flows[0]), rtt);
        assert_eq!(orbit.duration, rtt * 1000);
        assert_eq!(orbit.flows[0].known_rtt, Some(rtt));
        assert_eq!(orbit.flows[0].start, Start::Uniform { from: Duration::ZERO, to: rtt });
        let geo = with(&[]);
        for link in &mut orbit.links {
            link.forward.delay = geo.links[0].forward.delay.clone();
            link.reverse.delay = geo.links[0].reverse.delay.clone();
        }
        orbit.flows[0].start = geo.flows[0].start;
        orbit.flows[0].known_rtt = geo.flows[0].known_rtt;
        orbit.title.clone_from(&geo.title);
        orbit.duration = geo.duration;
        assert_eq!(orbit, geo);
    }
}

/// The presets with a random access delay differ from those of the papers in this delay alone: at least a packet time at the
/// bottleneck, and nothing on average beyond it.
#[test]
fn a_random_access_delay_is_all_that_is_added() {
    for name in ["geo-today", "neglia", "papadimitriou", "peach-geo", "peach-hetero"] {
        let (plain, access) = (of(name), of(&format!("{name}-access")));
        let rates = plain.links.iter().filter_map(|l| l.forward.rate.mean()).map(Rate::bytes_per_sec);
        let packet_time = 1000.0 / rates.fold(f64::INFINITY, f64::min);
        for (a, b) in plain.flows.iter().zip(&access.flows) {
            assert_eq!(plain.propagation_rtt(a), access.propagation_rtt(b), "{name}: {}", a.name);
            let random: Vec<f64> = b
                .path
                .iter()
                .filter_map(|&link| match &access.links[link].forward.delay {
                    Delay::Uniform(delay) => Some(delay.jitter.as_secs_f64()),
                    _ => None,
                })
                .collect();
            assert!(random.len() == 1 && random[0] >= packet_time, "{name}: {}: {random:?}", a.name);
            assert!(
                b.path.iter().all(|&link| access.links[link].reverse.delay.constant().is_some()),
                "{name}"
            );
            let FlowGroup { path, .. } = a.clone();
            assert_eq!(FlowGroup { path, ..b.clone() }, *a, "{name}");
        }
        for link in &plain.links {
            let same = access.links.iter().find(|l| l.name == link.name).unwrap();
            let delay = |d: &Direction| Direction { delay: Delay::default(), ..d.clone() };
            assert_eq!(
                (delay(&same.forward), delay(&same.reverse)),
                (delay(&link.forward), delay(&link.reverse))
            );
        }
    }
}

#[test]
fn pauses_between_pages_survive_the_canonical_form() {
    for (idle, expected) in [
        ("", None),
        (", idle = '2 s'", Some(Times::Constant(Duration::from_secs(2)))),
        (", idle = { exponential = '500 ms' }", Some(Times::Exponential(Duration::from_millis(500)))),
    ] {
        let pages = with(&[&format!("flows.bulk.app={{ kind = 'pages', segments = 50{idle} }}")]);
        assert_eq!(pages.flows[0].app, App::Pages(Pages { segments: 50, count: None, idle: expected }));
        round_trip(&pages);
    }
}

#[test]
fn every_preset_resolves_and_survives_its_canonical_form() {
    for name in preset::names() {
        let resolved = Document::preset(name).unwrap().resolve().unwrap_or_else(|e| panic!("{e}"));
        round_trip(&resolved);
    }
}

#[track_caller]
fn round_trip(resolved: &Resolved) {
    let text = resolved.to_toml();
    let again = resolve_text("scenario.resolved.toml", &text, &[], &no_files);
    let again = again.unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(&again, resolved, "{text}");
    assert_eq!(again.hash(), resolved.hash());
    assert_eq!(again.to_toml(), text);
}

/// Overrides that change one thing each.
const CHANGES: &[&str] = &[
    "title=Other",
    "duration=551 s",
    "seed=2",
    "links.sat.rate=20 Mbit/s",
    "links.sat.delay=275.000001 ms",
    "links.sat.delay={ kind = 'uniform', base = '275 ms', jitter = '1 ms' }",
    "links.sat.delay={ kind = 'normal', base = '275 ms', sigma = '1 ms' }",
    "links.sat.allow-reorder=true",
    "links.sat.ack-errors=false",
    "links.sat.duplicate=1e-3",
    "links.sat.queue.kind=plain",
    "links.sat.queue.kind=drop-tail",
    "links.sat.queue.kind=gtnets",
    "links.sat.queue.kind=fifo-pushout",
    "links.sat.queue={ kind = 'threshold', limit = '50 packets', low-below = 25 }",
    "links.sat.queue={ kind = 'threshold', limit = '50 packets', low-below = 24 }",
    "links.sat.queue={ kind = 'red', limit = '50 packets' }",
    "links.sat.queue={ kind = 'red', limit = '50 packets', min-threshold = '5 packets', max-threshold = '15 packets' }",
    "links.sat.queue={ kind = 'wred', limit = '50 packets', low-max-threshold = 10, weight = 0.01 }",
    "links.sat.queue={ kind = 'codel', limit = '50 packets', target = '5 ms', interval = '100 ms' }",
    "links.sat.queue={ kind = 'fq-codel', limit = '50 packets', quantum = '300 B', class-aware = true }",
    "links.sat.queue={ kind = 'cake', limit = '50 packets' }",
    "links.sat.queue={ kind = 'cake', limit = '50 packets', rate = '5 Mbit/s', tins = 'diffserv4', overhead = '14 B', framing = 'atm' }",
    "flows.bulk.dscp=EF",
    "links.sat.queue={ kind = 'dual-pi2', limit = '50 packets', coupling = 3 }",
    "links.sat.queue={ kind = 'pie', limit = '50 packets', alpha = '0.02 /s', ecn = false }",
    "links.sat.queue={ kind = 'two-band', limit = '50 packets', low-rate = 0.1 }",
    "links.sat.queue.limit=51 packets",
    "links.sat.queue.limit=50 kB",
    "links.sat.queue.limit=1.2 BDP",
    "links.sat.queue.limit=unlimited",
    "links.sat.queue.ns2-limit=true",
    "links.sat.queue.count-in-service=true",
    "links.sat.queue.victim=oldest",
    "links.sat.error.p=1e-2",
    "links.sat.error=none",
    "links.sat.error={ kind = 'ber', ber = 1e-7 }",
    "links.sat.error={ kind = 'bursts', loss = 0.01, burst = 5 }",
    "links.sat.error={ kind = 'gilbert-elliott', p-gb = 0.01, p-bg = 0.5, k-g = 1e-6 }",
    "links.sat.error={ kind = 'list', indices = [100, 7, 7] }",
    "links.sat.error={ kind = 'list', indices = [7, 100], class = 'low' }",
    "links.sat.reverse.rate=256 kbit/s",
    "links.sat.reverse.delay=270 ms",
    "links.sat.reverse.error={ kind = 'per', p = 1e-4 }",
    "flows.bulk.count=21",
    "flows.bulk.extra-delay=10 ms",
    "flows.bulk.cc=sack",
    "flows.bulk.cc.recovery=reno",
    "flows.bulk.cc.probe-cap=10",
    "flows.bulk.endpoint=rfc",
    "flows.bulk.endpoint.rto-min=0.2 s",
    "flows.bulk.endpoint.initial-window=2 segments",
    "flows.bulk.endpoint.initial-window=rfc3390",
    "flows.bulk.endpoint.initial-ssthresh=infinite",
    "flows.bulk.endpoint.delayed-ack={ every = 2, delay = '200 ms' }",
    "flows.bulk.endpoint.sack=true",
    "flows.bulk={ cc = { name = 'peach', recovery = 'newreno' }, endpoint = { sack = false } }",
    "flows.bulk.endpoint.loss-detection=rack",
    "flows.bulk.endpoint={ preset = 'ns2-2001', loss-detection = 'rack', tail-loss-probe = true }",
    "flows.bulk.endpoint.probes=off",
    "flows.bulk.endpoint.halving-base=flight-size",
    "flows.bulk.endpoint.growth=abc",
    "flows.bulk.endpoint.abc-limit=1",
    "flows.bulk.endpoint.receiver-rate=false",
    "flows.bulk.rwnd=65 segments",
    "flows.bulk.rwnd=64 KiB",
    "flows.bulk.sndbuf=1 MB",
    "flows.bulk.app={ kind = 'pages', segments = 50 }",
    "flows.bulk.app={ kind = 'pages', segments = 50, count = 3 }",
    "flows.bulk.start=0 s",
    "flows.bulk.start={ uniform = ['0 s', '1 s'] }",
    "flows.bulk.stop=100 s",
    "flows.bulk.known-rtt=500 ms",
    "flows.bulk={ rwnd = '64 segments' }",
    "record.sample=100 ms",
    "record.series=['acked', 'cwnd', 'in-flight', 'pipe', 'queue', 'rto', 'srtt', 'ssthresh', 'telemetry', 'utilization']",
];

#[test]
fn the_hash_changes_with_every_value() {
    let base = with(&[]);
    let mut hashes = vec![base.hash()];
    for change in CHANGES {
        let resolved = with(&[change]);
        round_trip(&resolved);
        let hash = resolved.hash();
        assert!(!hashes.contains(&hash), "{change}");
        hashes.push(hash);
    }
}

#[test]
fn byte_counting_by_both_names() {
    let growth = |sets: &[&str]| with(sets).flows[0].endpoint.rules;
    let abc = growth(&["flows.bulk.endpoint={ preset = 'ns2-2001', growth = 'abc' }"]);
    assert_eq!((abc.growth, abc.abc_limit), (CaGrowth::Abc, 2.0));
    assert_eq!(growth(&["flows.bulk.endpoint={ preset = 'ns2-2001', growth = 'byte-counting' }"]), abc);
    let one = growth(&["flows.bulk.endpoint={ preset = 'rfc', abc-limit = 1 }"]);
    assert_eq!((one.growth, one.abc_limit), (CaGrowth::Abc, 1.0));
}

#[test]
fn the_hash_is_stable() {
    // A different hash invalidates every cached result: change it only together with the meaning of a file.
    let hash = Document::preset("peach-leo").unwrap().resolve().unwrap().hash();
    assert_eq!(hash, "17326e23edd7084b34ac232a533590dbe51c38ed00d1d6d81cc2f14297fb4957");
}

#[test]
fn the_order_in_the_file_does_not_matter() {
    let text = with(&[]).to_toml();
    let (links, flows) = (text.find("[links").unwrap(), text.find("[flows").unwrap());
    assert!(links < flows);
    let swapped = format!("{}{}\n{}", &text[..links], &text[flows..], &text[links..flows]);
    assert_eq!(resolve_text("x", &swapped, &[], &no_files).unwrap().hash(), with(&[]).hash());
}

#[test]
fn short_forms_open_up_and_replace() {
    let cc = |sets: &[&str]| with(sets).flows[0].cc.clone();
    assert_eq!(cc(&["flows.bulk.cc=sack"]).name(), "sack");
    let opened = cc(&["flows.bulk.cc.recovery=\"reno\""]);
    assert_eq!(opened.name(), "peach");
    assert_ne!(opened, cc(&[]));
    // A user's own, whose options are opened up like those of a built-in one, and survive as a file.
    let own = with(&["flows.bulk.cc=user:mine", "flows.bulk.cc.options.gain=0.5"]);
    assert_eq!(own.flows[0].cc.label(), "user:mine");
    assert!(own.to_toml().contains("gain = 0.5"), "{}", own.to_toml());
    let again = Document::parse("again", &own.to_toml(), &no_files).unwrap().resolve().unwrap();
    assert_eq!((again.hash(), &again.flows[0].cc), (own.hash(), &own.flows[0].cc));
    assert_ne!(own.hash(), with(&["flows.bulk.cc=user:mine"]).hash());
    // Replacing forgets the options.
    assert_eq!(cc(&["flows.bulk.cc.recovery=reno", "flows.bulk.cc=peach"]), cc(&[]));
    // Inside a key that is not there.
    assert_eq!(
        with(&["flows.bulk={}", "flows.bulk.endpoint.mss=500 B"]).flows[0].endpoint,
        skyhaul_tcp::Config { mss: 500, ..skyhaul_tcp::Config::modern() }
    );
    // A limit alone is drop-tail; within the table the kind stays.
    let queue = |set: &str| with(&[set]).links[0].forward.queue.discipline.kind();
    assert_eq!(queue("links.sat.queue=100 packets"), Kind::DropTail);
    assert_eq!(queue("links.sat.queue.limit=100 packets"), Kind::StrictPushout);
    // What the reverse direction does not say, it takes from the forward one.
    assert_eq!(with(&["links.sat.delay=1 ms"]).links[0].reverse.delay.base(), Duration::from_millis(1));
    assert_eq!(with(&["links.sat.error.p=0.5"]).links[0].reverse.error, error::Config::NONE);
}

#[test]
fn defaults() {
    let text =
        "duration = '1 s'\n[links.a]\nrate = '8 Mbit/s'\ndelay = '50 ms'\n[flows.x]\n[flows.y]\ncount = 2";
    let r = resolve_text("x", text, &[], &no_files).unwrap();
    assert_eq!((r.seed, r.title.as_str()), (1, ""));
    // 8 Mbit/s in 100 ms are 100 kB: 67 packets of 1500 bytes.
    let queue = r.links[0].forward.queue;
    assert_eq!((queue.discipline.kind(), queue.limit), (Kind::DropTail, Limit::Packets(67)));
    assert_eq!(r.links[0].forward, r.links[0].reverse);
    assert_eq!(r.flows[0].start, Start::At(Duration::ZERO));
    assert_eq!(r.flows[1].start, Start::Uniform { from: Duration::ZERO, to: Duration::from_millis(100) });
    assert_eq!(r.flows[0].cc.name(), "sack");
    assert_eq!(r.flows[0].endpoint, skyhaul_tcp::Config::modern());
    assert!(r.flows[0].handshake && r.flows[0].known_rtt.is_none());
    round_trip(&r);
}

#[test]
fn a_queue_in_bdp_follows_the_longest_rtt_that_crosses_it() {
    let text = "duration = '1 s'\n[links.a]\npacket = '1000 B'\nrate = '1000 packets/s'\ndelay = '50 ms'\n\
                queue = '1.5 BDP'\n[flows.x]\n[flows.y]\nextra-delay = '100 ms'";
    let r = resolve_text("x", text, &[], &no_files).unwrap();
    assert_eq!(r.links[0].forward.queue.limit, Limit::Packets(450));
    assert_eq!(r.propagation_rtt(&r.flows[1]), Duration::from_millis(300));
}

#[test]
fn the_link_model_takes_every_variant() {
    for change in CHANGES {
        let r = with(&[change]);
        for link in &r.links {
            let _ = (link.forward.link_config(), link.reverse.link_config());
        }
    }
    let loss = |set: &str| with(&[set]).links[0].forward.error.mean_loss(1000);
    assert!((loss("links.sat.error={ kind = 'ber', ber = 1e-5 }") - 7.688e-2).abs() < 1e-5);
    assert!((loss("links.sat.error={ kind = 'bursts', loss = 0.01, burst = 5 }") - 0.01).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn combinations_survive_the_canonical_form(
        changes in proptest::sample::subsequence(CHANGES, 0..12),
        rate in 1u64..100_000_000_000,
        delay in 0u64..3_600_000_000_000,
        p in 0.0..=1.0f64,
    ) {
        let mut document = Document::preset("peach-geo").unwrap();
        let more = [
            format!("links.sat.rate={rate} bit/s"),
            format!("links.sat.reverse.delay={delay} ns"),
            format!("links.sat.reverse.error={{ kind = 'per', p = {p:?} }}"),
        ];
        for set in changes.iter().copied().chain(more.iter().map(String::as_str)) {
            document.set(set).unwrap();
        }
        // Some combinations are refused, such as the victim of a plain queue.
        if let Ok(resolved) = document.resolve() {
            round_trip(&resolved);
        }
    }
}

#[test]
fn repair_is_kept_and_belongs_to_a_direction() {
    let s = with(&[
        "links.sat.rate=8 Mbit/s",
        "links.sat.reverse.rate=96 kbit/s",
        "links.sat.fec={ kind = \"block\", n = 12, k = 10, interleave = 2 }",
        "links.sat.arq={ retries = 1, feedback = \"12 B\" }",
        "links.sat.reverse.fec={ kind = \"rate\", rate = 0.5, residual = { kind = \"per\", p = 0.1 } }",
        "links.sat.reverse.arq=none",
    ]);
    round_trip(&s);
    let (forward, reverse) = (&s.links[0].forward, &s.links[0].reverse);
    // An answer of 12 bytes takes 275 ms and 1 ms on the transmitter; 1000 packets/s, 1.5 times that product.
    let answer = Duration::from_millis(276);
    let arq = skyhaul_path::arq::Config {
        retries: 1,
        feedback: skyhaul_path::arq::Feedback::After(answer),
        ..skyhaul_path::arq::Config::new((1.5f64 * 551.0).ceil() as u32)
    };
    assert_eq!((forward.arq, reverse.arq), (Some(arq), None));
    let words = |d: &Direction| d.fec.as_ref().map(|fec| fec.words(&|x| x.to_string()));
    assert_eq!(words(forward).as_deref(), Some("block code (12, 10), 2 blocks in turn"));
    let left = "code of rate 0.5, which leaves independent losses with probability 0.1";
    assert_eq!(words(reverse).as_deref(), Some(left));
    // What is usual in one direction only.
    round_trip(&with(&["links.sat.up=false", "links.sat.reverse.up=true"]));
    // Both directions, if nothing else is said, and answers as long as packets take where both are alike.
    let s = with(&["links.sat.arq={}"]);
    round_trip(&s);
    assert_eq!(s.links[0].reverse.arq.map(|arq| arq.feedback), Some(skyhaul_path::arq::Feedback::Ideal));
    assert!(!with(&[]).to_toml().contains("arq"), "what is not there leaves no trace in the hash");
}
