//! Transfers over a GEO link in virtual time.

use crate::bed::{Outcome, Transfer, geo};
use crate::supported::supported;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use skyhaul_cc::{Config, Rules};
use skyhaul_quic::Factory;
use std::sync::Arc;

fn ours(name: &str) -> Arc<dyn ControllerFactory + Send + Sync> {
    Arc::new(Factory::new(Config::by_name(name).expect("built in")).expect("it fits"))
}

fn transfer(control: Arc<dyn ControllerFactory + Send + Sync>, length: u64, loss: f64, seed: u64) -> Outcome {
    Transfer { control, length, link: geo(loss), seed }.run()
}

/// Mean goodput over five seeds, Mbit/s.
fn goodput(control: &Arc<dyn ControllerFactory + Send + Sync>, length: u64, loss: f64) -> f64 {
    (1..=5).map(|seed| transfer(Arc::clone(control), length, loss, seed).goodput(length)).sum::<f64>() / 5.0
}

#[test]
fn every_control_delivers_over_a_lossy_link() {
    for name in supported() {
        let outcome = transfer(ours(name), 1_000_000, 1e-2, 1);
        let (least, most) = outcome.window;
        assert!(least >= 2 * 1200, "{name}: {outcome:?}");
        assert!(most > 12_000, "{name}: the window never grew: {outcome:?}");
        assert!(outcome.lost_packets > 0, "{name}: {outcome:?}");
    }
}

#[test]
fn a_transfer_repeats_itself() {
    for name in supported() {
        let runs = [(); 2].map(|()| transfer(ours(name), 300_000, 2e-2, 7));
        assert_eq!(runs[0], runs[1], "{name}");
    }
}

/// The same algorithm, twice implemented: RFC 9002 §7.
#[test]
fn new_reno_is_as_fast_as_that_of_quinn() {
    for loss in [0.0, 1e-3, 1e-2] {
        let length = 8_000_000;
        let theirs = goodput(&(Arc::new(NewRenoConfig::default()) as _), length, loss);
        let own = goodput(&ours("newreno"), length, loss);
        assert!((own / theirs - 1.0).abs() < 0.1, "loss {loss}: {own:.3} against {theirs:.3} Mbit/s");
    }
}

#[test]
fn cubic_is_as_fast_as_that_of_quinn() {
    for loss in [0.0, 1e-2] {
        let length = 8_000_000;
        let theirs = goodput(&(Arc::new(CubicConfig::default()) as _), length, loss);
        let own = goodput(&ours("cubic"), length, loss);
        assert!((own / theirs - 1.0).abs() < 0.15, "loss {loss}: {own:.3} against {theirs:.3} Mbit/s");
    }
}

/// Controls that ask for delivery rates get them: random losses do not slow them down as they do NewReno.
#[test]
fn rate_samples_reach_the_control() {
    let length = 8_000_000;
    let reno = goodput(&ours("newreno"), length, 1e-2);
    let asks = |name: &&str| {
        let policy = Config::by_name(name).and_then(|control| control.policy(&Rules::MODERN));
        policy.is_some_and(|policy| policy.rate_samples)
    };
    let asking: Vec<_> = supported().filter(asks).collect();
    assert!(asking.len() >= 3, "{asking:?}");
    for name in asking {
        let rate = goodput(&ours(name), length, 1e-2);
        assert!(rate > 10.0 * reno, "{name}: {rate:.3} against {reno:.3} Mbit/s");
    }
}
