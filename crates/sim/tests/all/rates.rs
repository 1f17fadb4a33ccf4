//! Datagrams that keep to a rate: TFRC and SSVP, over links and beside TCP.

use crate::text::{refusal, resolved};
use skyhaul_sim::{FlowResult, RunResult, run};
use skyhaul_trace::{Class, Null};

fn result(text: &str, seed: u64) -> RunResult {
    let scenario = resolved(text);
    // The file that a result is stored with runs again to the same result.
    assert_eq!(resolved(&scenario.to_toml()), scenario);
    run(&scenario, seed, Null).expect("a run")
}
fn group<'a>(result: &'a RunResult, name: &'a str) -> &'a FlowResult {
    result.group(name).next().expect("the group")
}
/// A geostationary link.
fn link(rate: &str, error: &str, duration: u32) -> String {
    format!(
        "schema = 1\nduration = \"{duration} s\"\nrecord = {{ sample = \"500 ms\", series = [\"acked\", \"allowed-rate\", \
         \"loss-event-rate\", \"srtt\"] }}\n[links.sat]\npacket = \"1000 B\"\nrate = \"{rate}\"\ndelay = \"275 ms\"\nqueue = \
         \"50 packets\"\nerror = {error}\nack-errors = false\n"
    )
}

#[test]
fn a_greedy_flow_fills_a_link_and_reports_once_per_round_trip_time() {
    for kind in ["tfrc", "ssvp"] {
        let r =
            result(&(link("1 Mbit/s", "\"none\"", 600) + &format!("[flows.a]\ntransport = \"{kind}\"\n")), 1);
        let f = group(&r, "a");
        let used = r.link("sat", true).unwrap().utilization;
        assert!(used > 0.7 && used <= 1.0, "{kind}: {used}");
        let rate = f.rate.expect("a rate");
        // At most one per round-trip time of 550 ms and more, one for each loss event, and some before the first.
        let most = 600.0 / 0.55 + rate.loss_events.unwrap_or(0) as f64 + 5.0;
        assert!((rate.reports as f64) < most && rate.reports > 300, "{kind}: {} {most}", rate.reports);
        assert!(f.acks <= rate.reports && f.acks + 2 >= rate.reports);
        let back = r.link("sat", false).unwrap();
        assert_eq!(back.offered_bytes, 60 * rate.reports);
        assert_eq!(back.class(Class::Ack).offered, rate.reports);
        let d = f.datagrams.expect("datagrams");
        assert_eq!(f.bytes_acked, d.delivered * 972);
        assert!(f.mean_srtt.unwrap() >= 0.55);
        assert_eq!((rate.refused, rate.expiries, f.retransmissions), (0, 0, 0), "{kind}");
        // The series.
        let s = &r.series.flows;
        let at = |name: &str| s.names.iter().position(|n| *n == name).expect(name);
        assert!(at("allowed-rate") < s.names.len() && at("loss-event-rate") < s.names.len());
    }
}

#[test]
fn the_first_report_says_the_round_trip_time_and_the_window_follows() {
    // One packet at 0; the report is back after 275 + 275 ms and transmission; then four packets per round-trip time.
    let text = link("8 Mbit/s", "\"none\"", 1).replace("duration = \"1 s\"", "duration = \"1040 ms\"")
        + "[flows.a]\ntransport = \"tfrc\"\n";
    let f = group(&result(&text, 1), "a").clone();
    assert_eq!((f.segments_sent, f.acks), (5, 1));
}

#[test]
fn applications_with_a_rate_are_carried_and_what_has_no_room_is_counted() {
    let app = "app = { kind = \"cbr\", rate = \"160 kbit/s\", packet = \"500 B\" }\n";
    for kind in ["tfrc", "ssvp"] {
        let startup = if kind == "ssvp" { ", startup = \"double\"" } else { "" };
        let flow = format!("[flows.a]\ntransport = {{ kind = \"{kind}\"{startup} }}\n{app}stop = \"90 s\"\n");
        let f = group(&result(&(link("1 Mbit/s", "\"none\"", 100) + &flow), 1), "a").clone();
        let rate = f.rate.unwrap();
        // 40 packets a second for 90 s.
        assert_eq!(f.segments_sent + rate.refused, 3600, "{kind}");
        assert!(rate.refused < 100, "{kind}: {}", rate.refused);
        assert_eq!(f.finished.map(|t| t.as_secs_f64()), Some(90.0), "{kind}");
        assert_eq!(f.datagrams.unwrap().delivered, f.segments_sent);
    }
    // More than the link carries: the sender keeps it, and the link is not overrun.
    let flow = "[flows.a]\ntransport = \"tfrc\"\napp = { kind = \"cbr\", rate = \"2 Mbit/s\" }\n";
    let f = group(&result(&(link("1 Mbit/s", "\"none\"", 300) + flow), 1), "a").clone();
    let lost: u64 = f.lost.iter().sum();
    assert!(f.rate.unwrap().refused > 30_000 && lost * 50 < f.segments_sent, "{lost} of {}", f.segments_sent);
}

#[test]
fn a_viewer_sees_what_comes_over_a_rate() {
    let seen = |transport: &str, rate: &str| {
        let flow = format!(
            "[flows.a]\ntransport = {transport}\napp = {{ kind = \"video\", rate = \"320 kbit/s\" }}\nstop = \"110 s\"\n"
        );
        let r = result(&(link(rate, "\"none\"", 120) + &flow), 1);
        let f = group(&r, "a").clone();
        let video = f.video.clone().expect("a viewer");
        (f, video)
    };
    let share = |s: skyhaul_apps::Share| s.part as f64 / s.of as f64;
    for transport in ["\"tfrc\"", "{ kind = \"ssvp\", startup = \"double\" }"] {
        // Room enough: all that leaves arrives and is seen; what the slow start refuses is missed.
        let (f, video) = seen(transport, "10 Mbit/s");
        assert_eq!(video.measured.delivered, f.segments_sent, "{transport}");
        let refused = f.rate.unwrap().refused;
        assert_eq!(video.measured.missing, refused, "{transport}");
        let good = share(video.decodable);
        assert!(good > 0.8, "{transport}: {good}, {refused} refused");
        // A third of what the film needs: the sender refuses the rest, and few frames are whole.
        let (f, video) = seen(transport, "100 kbit/s");
        let bad = share(video.decodable);
        assert!(bad < 0.5 * good && f.rate.unwrap().refused > 1000, "{transport}: {bad}");
        println!("{transport}: decodable {good:.3} and {bad:.3}");
    }
}

#[test]
fn a_stop_sends_what_waits_and_ends_data_without_end() {
    let text = link("1 Mbit/s", "\"none\"", 60) + "[flows.a]\ntransport = \"tfrc\"\nstop = \"30 s\"\n";
    let r = result(&text, 1);
    let f = group(&r, "a");
    assert_eq!(f.finished.map(|t| t.as_secs_f64()), Some(30.0));
    assert_eq!(f.rate.unwrap().expiries, 0, "silence after the end is no lack of reports");
    let all = f.datagrams.unwrap().delivered + f.lost.iter().sum::<u64>();
    assert_eq!(all, f.segments_sent);
}

#[test]
fn reports_that_stay_away_lower_the_rate() {
    let down = "[[event]]\nat = \"60 s\"\nset = { \"links.sat.reverse.up\" = false }\n";
    let at_end = |text: &str| group(&result(text, 1), "a").clone().rate.unwrap();
    let flow = "[flows.a]\ntransport = \"tfrc\"\n";
    let r = at_end(&(link("1 Mbit/s", "\"none\"", 700) + flow + down));
    // 1000 B every 64 s.
    assert!((r.allowed - 125.0).abs() < 1e-9 && r.expiries >= 10, "{r:?}");
}

/// Goodput of TFRC and of SACK TCP alone over a link that loses with probability `p`, and the equation, bit/s.
fn beside(p: f64, seeds: u64) -> (f64, f64, f64) {
    let error = format!("{{ kind = \"per\", p = {p} }}");
    let duration = (2000.0 + 2.0 / p) as u32;
    let one = |flow: &str| {
        let text = link("20 Mbit/s", &error, duration).replace("50 packets", "1000 packets") + flow;
        let all = (1..=seeds).map(|seed| group(&result(&text, seed), "a").goodput * 1000.0 / 972.0);
        all.sum::<f64>() / seeds as f64
    };
    let tfrc = one("[flows.a]\ntransport = \"tfrc\"\n");
    let sack = one(
        "[flows.a]\ncc = \"sack\"\nendpoint = { preset = \"rfc\", mss = \"972 B\", header = \"28 B\" }\nrwnd = \
                    \"1000 segments\"\n",
    );
    (tfrc, sack, 8.0 * skyhaul_rate::tfrc::allowed(1000.0, 0.551, 4.0 * 0.551, p) * (1.0 - p))
}

#[test]
fn beside_tcp_under_random_loss() {
    for p in [1e-3, 1e-2] {
        let (tfrc, sack, equation) = beside(p, 2);
        println!(
            "{p}: tfrc {tfrc:.0}, sack {sack:.0} ({:.2}), equation {equation:.0} ({:.3})",
            tfrc / sack,
            tfrc / equation
        );
        assert!((tfrc / equation - 1.0).abs() < 0.25, "{p}: {tfrc} {equation}");
        assert!((0.5..2.0).contains(&(tfrc / sack)), "{p}: {tfrc} {sack}");
    }
}

#[test]
fn tfrc_is_smoother_than_tcp_at_the_same_loss() {
    let variation = |flow: &str, step: usize| {
        let text = link("20 Mbit/s", "{ kind = \"per\", p = 1e-2 }", 1500) + flow;
        let r = result(&text, 1);
        let s = &r.series.flows;
        let column = s.names.iter().position(|n| *n == "acked").unwrap();
        let acked: Vec<f64> = s.columns[column].iter().skip(200).step_by(step).copied().collect();
        let rates: Vec<f64> = acked.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        (rates.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / rates.len() as f64).sqrt() / mean
    };
    let sack =
        "[flows.a]\ncc = \"sack\"\nendpoint = { preset = \"rfc\", mss = \"972 B\", header = \"28 B\" }\n";
    for step in [1, 4] {
        let (rate, window) = (variation("[flows.a]\ntransport = \"tfrc\"\n", step), variation(sack, step));
        println!("CoV over {} s: tfrc {rate:.3}, sack {window:.3}", 0.5 * step as f64);
        assert!(rate < window, "{step}: {rate} {window}");
    }
}

#[test]
fn like_flows_share_a_link() {
    for (kind, least) in [("tfrc", 0.95), ("ssvp", 0.9)] {
        let text = link("1 Mbit/s", "\"none\"", 600)
            + &format!(
                "[flows.a]\ntransport = \"{kind}\"\ncount = 4\nstart = {{ uniform = [\"0 s\", \"1 RTT\"] }}\n"
            );
        let r = result(&text, 1);
        assert!(r.jain() > least, "{kind}: {}", r.jain());
    }
}

#[test]
fn the_quality_of_a_film_follows_the_rate_by_layers() {
    // 700 of 1000 kbit/s are taken for half a minute: what is left carries the lower layer, and not the upper one.
    let link = link("1 Mbit/s", "\"none\"", 120).replace("275 ms", "40 ms");
    let others = "[flows.others]\ntransport = \"udp\"\nstart = \"30 s\"\nstop = \"60 s\"\n\
                  app = { kind = \"cbr\", rate = \"700 kbit/s\", packet = \"1000 B\" }\n";
    for transport in ["\"tfrc\"", "{ kind = \"ssvp\", startup = \"double\" }"] {
        let film = |coder: &str| {
            let film = format!(
                "[flows.film]\ntransport = {transport}\napp = {{ kind = \"video\", rate = \"480 kbit/s\", coder = {coder} }}\n"
            );
            let f = group(&result(&(link.clone() + others + &film), 1), "film").clone();
            (*f.video.expect("a viewer"), f.rate.expect("a rate").refused)
        };
        // Two rates, so that each switch is from one to the other; the coder falls silent for 0.4 s each time that it goes down.
        let (adapts, refused) = film("{ delay = \"0.4 s\", layers = [\"160 kbit/s\", \"480 kbit/s\"] }");
        // It never does: its only layer is the film's rate.
        let (stays, piled) = film("{ layers = [\"480 kbit/s\"] }");
        assert!(adapts.switches >= 2, "{transport}: {}", adapts.switches);
        assert!((adapts.switched_by.unwrap() - 320e3).abs() < 1.0, "{transport}: {:?}", adapts.switched_by);
        assert!(adapts.gaps >= 10, "{transport}: ten frames in 0.4 s, {}", adapts.gaps);
        assert_eq!((stays.switches, stays.gaps), (0, 0), "{transport}");
        assert!(refused < piled, "{transport}: {refused} {piled}");
        let late = |v: &skyhaul_sim::Viewed| v.late[1].value().unwrap();
        assert!(late(&adapts) < late(&stays), "{transport}: {} {}", late(&adapts), late(&stays));
    }
}

#[test]
fn a_layer_needs_a_viewer_who_holds_enough_of_the_film() {
    // The rate would carry both layers. 2 s of three times the rate are 6 s of the lower layer, which only a viewer has who
    // waits for as much before the film starts.
    let film = |transport: &str, start: &str| {
        let text = link("2 Mbit/s", "\"none\"", 120)
            + &format!(
                "[flows.film]\ntransport = {transport}\napp = {{ kind = \"video\", rate = \"480 kbit/s\", viewer = {{ start = \
                 \"{start}\" }}, coder = {{ buffer = {{}}, layers = [\"160 kbit/s\", \"480 kbit/s\"] }} }}\n"
            );
        *group(&result(&text, 1), "film").video.clone().expect("a viewer")
    };
    for transport in ["\"tfrc\"", "{ kind = \"ssvp\", startup = \"double\" }"] {
        let (holds, lives) = (film(transport, "7 s"), film(transport, "1 s"));
        assert_eq!((holds.switches, holds.switched_by), (1, Some(320e3)), "{transport}");
        assert_eq!(lives.switches, 0, "{transport}: the rate alone justifies nothing");
    }
}

#[test]
fn an_oracle_forgives_what_the_channel_loses_and_nothing_else() {
    let error = "{ kind = \"per\", p = 0.01 }";
    let run = |rate: &str, oracle: bool| {
        let flow = format!(
            "[flows.a]\ntransport = {{ kind = \"tfrc\", max-rate = \"400 kbit/s\", ignore-corruption = {oracle} }}\n"
        );
        group(&result(&(link(rate, error, 300) + &flow), 1), "a").clone()
    };
    // With room for all that is sent only the channel loses packets.
    let (blind, knowing) = (run("2 Mbit/s", false), run("2 Mbit/s", true));
    assert!(blind.rate.unwrap().loss_events > Some(20), "{:?}", blind.rate);
    let rate = knowing.rate.unwrap();
    assert_eq!((rate.loss_events, rate.loss_event_rate), (Some(0), Some(0.0)));
    assert!(knowing.lost[skyhaul_trace::LossCause::Error as usize] > 100, "they are lost all the same");
    // 50 packets a second for nearly all of 300 s.
    assert!(
        knowing.segments_sent > 14_000 && blind.segments_sent < 10_000,
        "{} {}",
        knowing.segments_sent,
        blind.segments_sent
    );
    // A queue that overflows is no error of the channel.
    let tight = run("200 kbit/s", true);
    assert!(tight.rate.unwrap().loss_events > Some(1), "{:?}", tight.rate);
}

#[test]
fn the_oracle_of_a_rate_flow_also_works_beside_a_sender_that_classifies_losses() {
    let run = |classifier: &str| {
        let more = format!(
            "[links.other]\npacket = \"1000 B\"\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\nqueue = \"50 packets\"\n\
             [flows.a]\npath = [\"sat\"]\ntransport = {{ kind = \"tfrc\", max-rate = \"400 kbit/s\", ignore-corruption = \
             true }}\n[flows.b]\npath = [\"other\"]\ncc = \"reno\"\nendpoint = {{ preset = \"modern\", loss-classifier = \
             \"{classifier}\" }}\n"
        );
        let text = link("2 Mbit/s", "{ kind = \"per\", p = 0.02 }", 60) + &more;
        group(&result(&text, 1), "a").clone()
    };
    let alone = run("none");
    assert!(alone.lost[skyhaul_trace::LossCause::Error as usize] > 10, "{:?}", alone.lost);
    assert_eq!(alone.rate.unwrap().loss_events, Some(0));
    for classifier in ["oracle", "spike"] {
        let beside = run(classifier);
        assert_eq!((beside.segments_sent, beside.rate), (alone.segments_sent, alone.rate), "{classifier}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let refused = |flow: &str| {
        let text = link("1 Mbit/s", "\"none\"", 1) + flow;
        refusal(&text)
    };
    for (flow, says) in [
        ("transport = \"dccp\"", "flows.a.transport: \"dccp\""),
        (
            "transport = \"tfrc\"\napp = { kind = \"pages\", segments = 5 }",
            "flows.a.app: transport = \"tfrc\"",
        ),
        ("transport = \"tfrc\"\ncc = \"reno\"", "flows.a.cc: only TCP uses it"),
        ("transport = { kind = \"tfrc\", packet = \"40 B\" }", "flows.a.transport.packet: \"40 B\""),
        ("transport = { kind = \"tfrc\", queue = 0 }", "flows.a.transport.queue"),
        ("transport = { kind = \"tfrc\", burst = 0 }", "flows.a.transport.burst"),
        ("transport = { kind = \"tfrc\", max-rate = \"0 bit/s\" }", "flows.a.transport.max-rate"),
        ("transport = { kind = \"tfrc\", alpha = 1 }", "alpha"),
        ("transport = { kind = \"ssvp\", beta = 1.5 }", "flows.a.transport.beta"),
        ("transport = { kind = \"ssvp\", alpha = 0.0 }", "flows.a.transport.alpha"),
        ("transport = { kind = \"ssvp\", max-rate = \"1 kbit/s\", min-rate = \"1 Mbit/s\" }", "max-rate"),
    ] {
        let e = refused(&format!("[flows.a]\n{flow}\n"));
        assert!(e.contains(says), "{flow}: {e}");
    }
}
