//! The residual loss follows closed forms.

use crate::world::{Numbered, World, config};
use skyhaul_base::{Duration, Rng};
use skyhaul_path::fec;
use skyhaul_repair::Config;
use skyhaul_repair::code::Counted;

const SENT: u32 = 60_000;

fn residual(config: &Config, p: f64, seed: u64) -> (f64, f64) {
    let mut rng = Rng::stream(seed, "closed forms");
    let mut world = World::<Counted<Numbered>>::new(config, Duration::from_millis(20));
    let make = |number| Numbered { number, size: 1500 };
    // Reports arrive: only the direction of data loses.
    let mut fate = |side, _| {
        let gone = side == 0 && (rng.below(1 << 30) as f64) < p * f64::from(1 << 30);
        if gone { vec![] } else { vec![Duration::ZERO] }
    };
    world.stream(SENT, Duration::from_micros(1800), make, &|_| (), &mut fate);
    let (near, far) = (world.ends[0].counters(), world.ends[1].counters());
    (1.0 - far.delivered as f64 / f64::from(SENT), near.symbols as f64 / f64::from(SENT))
}

/// The code alone: the residual loss of a block code with as many symbols as were sent.
#[test]
fn of_a_block_code_remains_the_tail_of_the_binomial() {
    for (p, block, share) in [(0.05, 20, 0.05), (0.03, 50, 0.04), (0.1, 10, 0.1)] {
        let base = config();
        // The share of the rate limits the code, so that something remains to be measured.
        let config = Config { retries: 0, block, share, fill_time: Duration::from_secs(1), ..base };
        let (left, overhead) = residual(&config, p, 7);
        // The mean lies between two whole numbers of symbols, and so does the residual loss.
        let mean = overhead * f64::from(block);
        let (low, high) = (mean.floor(), mean.ceil());
        let of = |r: f64| {
            let n = u64::from(block) + r as u64;
            let code = fec::block::Config { n, k: block.into(), ..Default::default() };
            fec::Config::from(code).code().residual_loss(p)
        };
        let expected = if high > low { of(low) * (high - mean) + of(high) * (mean - low) } else { of(low) };
        // Five standard deviations: losses of a block come together.
        let sigma = (expected * f64::from(block) / f64::from(SENT)).sqrt();
        assert!((left - expected).abs() < 5.0 * sigma + 0.02 * expected, "{p} {block}: {left} {expected}");
    }
}

/// Repeats alone: a residual loss of p^(retries + 1).
#[test]
fn of_selective_repeat_remains_a_power() {
    for (p, retries) in [(0.1, 1), (0.2, 2), (0.3, 1), (0.05, 0)] {
        let resequence = Duration::from_secs(3);
        let config = Config { fec: false, retries, share: 0.5, resequence, ..config() };
        let (left, overhead) = residual(&config, p, 11);
        assert_eq!(overhead, 0.0);
        let expected = p.powi(retries as i32 + 1);
        let sigma = (expected * (1.0 - expected) / f64::from(SENT)).sqrt();
        assert!((left - expected).abs() < 5.0 * sigma, "{p} {retries}: {left} {expected}");
    }
}

/// The chosen code meets its target: with a residual probability of a block of 1e-3, far less is left.
#[test]
fn the_chosen_code_meets_its_target() {
    for p in [1e-3, 1e-2, 3e-2] {
        let config = Config { retries: 0, ..config() };
        let (left, overhead) = residual(&config, p, 13);
        // A block is open for 100 ms, and a datagram comes every 1.8 ms.
        let block = 56.0;
        // At most one block in a thousand fails, and then lacks the mean number of losses and about four more. Twice that while the
        // estimate settles.
        let lacking = (block * p + 4.0) / block;
        assert!(left <= 2e-3 * lacking.min(1.0) + 2.0 / f64::from(SENT), "{p}: {left}");
        assert!(overhead < 0.035 + 4.0 * p, "{p}: {overhead}");
    }
}
