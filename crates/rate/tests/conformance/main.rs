//! Requirements of any rate control, on a path in virtual time.

mod path;

use path::{Link, World};
use skyhaul_base::amount::RateSpec;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_rate::{Config, ssvp, tfrc};

const RTT: f64 = 0.55;

fn at(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}
fn bits(n: u64) -> Option<RateSpec> {
    Some(RateSpec::Bits(Rate::from_bits_per_sec(n)))
}
fn protocols(max_rate: Option<RateSpec>) -> [Config; 2] {
    let ssvp = ssvp::Config { startup: ssvp::Startup::Double, max_rate, ..ssvp::Config::default() };
    [Config::Tfrc(tfrc::Config { max_rate, ..tfrc::Config::default() }), Config::Ssvp(ssvp)]
}
fn jain(x: &[f64]) -> f64 {
    let sum: f64 = x.iter().sum();
    sum * sum / (x.len() as f64 * x.iter().map(|x| x * x).sum::<f64>())
}

#[test]
fn without_losses_the_ceiling_is_reached_and_held() {
    for config in protocols(bits(320_000)) {
        let mut w = World::new(Link::new(10e6, 275));
        w.flow(config, at(0.0), None);
        w.run(at(120.0));
        let f = &w.flows[0];
        assert!((f.rate(at(20.0), at(120.0)) / 40_000.0 - 1.0).abs() < 1e-3, "{}", config.label());
        // The gaps between packets at the receiver.
        let times: Vec<f64> =
            f.arrived.iter().map(|a| a.0.as_secs_f64()).filter(|t| (20.0..120.0).contains(t)).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        assert!(square.sqrt() / mean < 0.01, "{}: {}", config.label(), square.sqrt() / mean);
        assert_eq!(f.sender.counters().expiries, 0);
    }
}

#[test]
fn slow_start_takes_a_round_trip_time_per_doubling() {
    let mut w = World::new(Link::new(100e6, 275));
    w.flow(Config::Tfrc(tfrc::Config::default()), at(0.0), None);
    w.run(at(0.56));
    assert!((w.flows[0].sender.state().rate / (4000.0 / RTT) - 1.0).abs() < 0.01);
    // The rate at most doubles per round-trip time. A report covers what was sent a round-trip time before, so that twice the receive
    // rate delays some doublings: 320 kbit/s are reached after 3.3 s, not after the 2.2 s of four perfect rounds.
    let (mut rates, mut t) = (Vec::new(), 0.56);
    while w.flows[0].sender.state().rate < 40_000.0 {
        t += 0.01;
        w.run(at(t));
        rates.push(w.flows[0].sender.state().rate);
    }
    for pair in rates.windows(54) {
        assert!(pair[53] <= 2.0 * pair[0] * (1.0 + 1e-9), "{pair:?}");
    }
    assert!((2.2..4.0).contains(&t), "{t} s");
}

#[test]
fn one_loss_changes_the_rate_as_the_rule_says() {
    // SSVP: by beta, once. The loss comes when the rate is steady at its ceiling.
    let [tfrc, ssvp] = protocols(bits(320_000));
    let lossy = |n: u64| {
        let mut link = Link::new(10e6, 275);
        link.loses = Box::new(move |i| i == n);
        World::new(link)
    };
    let mut w = lossy(3000);
    w.flow(ssvp, at(0.0), None);
    let (mut before, mut lowest, mut t) = (0.0, f64::INFINITY, 60.0);
    while t < 110.0 {
        w.run(at(t));
        let rate = w.flows[0].sender.state().rate;
        if t < 70.0 {
            before = rate;
        }
        lowest = f64::min(lowest, rate);
        t += 0.05;
    }
    assert!((before - 40_000.0).abs() < 1e-6);
    assert!((lowest / before - 0.875).abs() < 1e-9, "{lowest} {before}");

    // TFRC: the first loss interval is chosen so that the equation gives the receive rate (RFC 5348 §6.3.1).
    let mut w = lossy(3000);
    w.flow(tfrc, at(0.0), None);
    let mut t = 60.0;
    while w.flows[0].sender.state().loss == Some(0.0) {
        t += 0.01;
        w.run(at(t));
    }
    let f = &w.flows[0];
    let statistics = f.receiver.statistics();
    assert_eq!((statistics.loss_events, statistics.lost), (Some(1), 1));
    let state = f.sender.state();
    let (rtt, p) = (state.rtt.unwrap().as_secs_f64(), state.loss.unwrap());
    // `max-rate` counts as a limit of the application: a loss then allows 0.85 of the receive rate for a while (RFC 5348 §4.3).
    assert!((state.rate / (0.85 * 40_000.0) - 1.0).abs() < 0.01, "{}", state.rate);
    // To a packet per round-trip time.
    let by_equation = tfrc::allowed(1000.0, rtt, 4.0 * rtt, p);
    assert!((by_equation / 40_000.0 - 1.0).abs() < 0.05, "p = {p}: {by_equation}");
}

#[test]
fn without_reports_rates_fall_on_schedule_to_their_floors() {
    for config in protocols(bits(320_000)) {
        let mut link = Link::new(10e6, 275);
        link.reports_lost_from = at(60.0);
        let mut w = World::new(link);
        w.flow(config, at(0.0), None);
        w.run(at(60.0));
        let mut rate = w.flows[0].sender.state().rate;
        let (mut falls, mut t) = (Vec::new(), 60.0);
        while t < 700.0 {
            w.run(at(t));
            let now = w.flows[0].sender.state().rate;
            if now < rate {
                falls.push((t, now / rate));
                rate = now;
            }
            t += 0.01;
        }
        let floor = if config.label() == "tfrc" { 1000.0 / 64.0 } else { 1000.0 };
        assert!((rate - floor).abs() < 1e-6, "{}: {rate}", config.label());
        // Each fall is by half, except the last one, to the floor.
        let (last, halves) = falls.split_last().unwrap();
        for fall in halves.iter().skip(1) {
            assert!((fall.1 - 0.5).abs() < 1e-6, "{}: {falls:?}", config.label());
        }
        assert!(last.1 >= 0.5 - 1e-9);
        // The first timers are four round-trip times apart; later ones would be two packet intervals.
        let apart = falls[2].0 - falls[1].0;
        assert!((apart - 4.0 * RTT).abs() < 0.05, "{}: {apart}", config.label());
    }
}

#[test]
fn an_application_below_the_rate_is_served_at_once() {
    for config in protocols(None) {
        let mut w = World::new(Link::new(10e6, 275));
        // 160 kbit/s from the first second on.
        w.flow(config, at(0.0), Some((Duration::from_millis(50), 1000)));
        w.run(at(120.0));
        let f = &w.flows[0];
        assert_eq!(f.rate(at(20.0), at(120.0)), 20_000.0, "{}", config.label());
        let late = f.sent.iter().filter(|t| **t > at(20.0) && t.as_nanos() % 50_000_000 != 0).count();
        assert_eq!(late, 0, "{}: each leaves when it is offered", config.label());
        // Datagrams refused at the beginning, while the rate was low, are counted.
        let c = f.sender.counters();
        assert_eq!(c.sent + c.refused, 2401, "{}", config.label());
    }
}

#[test]
fn like_flows_share_alike() {
    for (config, least) in protocols(None).into_iter().zip([0.95, 0.9]) {
        let mut w = World::new(Link::new(1e6, 275));
        w.flow(config, at(0.0), None);
        w.flow(config, at(0.3), None);
        w.run(at(600.0));
        let rates: Vec<f64> = w.flows.iter().map(|f| f.rate(at(0.0), at(600.0))).collect();
        assert!(jain(&rates) > least, "{}: {rates:?}", config.label());
        assert!(rates.iter().sum::<f64>() > 0.7 * 125_000.0, "{}: {rates:?}", config.label());
    }
}

#[test]
fn the_rate_under_random_loss_is_that_of_the_equation() {
    for p in [1e-3, 5e-3, 1e-2, 3e-2, 5e-2] {
        let mut rng = Rng::stream(1, "loss");
        let mut link = Link::new(100e6, 275);
        link.loses = Box::new(move |_| rng.unit() < p);
        let mut w = World::new(link);
        w.flow(Config::Tfrc(tfrc::Config::default()), at(0.0), None);
        let end = 60.0 + 400.0 * RTT / p.sqrt() + 4000.0;
        w.run(at(end));
        let f = &w.flows[0];
        let sent = f.sent.iter().filter(|t| **t >= at(60.0)).count() as f64 * 1000.0 / (end - 60.0);
        let statistics = f.receiver.statistics();
        // Losses within a round-trip time are one event, so the loss event rate is below the loss rate of packets.
        let events = statistics.loss_events.unwrap() as f64 / f.sent.len() as f64;
        let (by_loss, by_events) =
            (tfrc::allowed(1000.0, RTT, 4.0 * RTT, p), tfrc::allowed(1000.0, RTT, 4.0 * RTT, events));
        assert!((sent / by_loss - 1.0).abs() < 0.15, "{p}: {sent} {by_loss}");
        assert!((sent / by_events - 1.0).abs() < 0.03, "{p}: {sent} {by_events}");
    }
}
