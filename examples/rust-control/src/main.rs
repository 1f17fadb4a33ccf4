//! Constant-rate growth against NewReno over a geostationary link: `cargo run --release -p rust-control`.

use rust_control::controls;
use skyhaul_cc::Controls;
use skyhaul_scenario::Document;
use skyhaul_sim::{RunResult, run_with};
use skyhaul_trace::Null;
use std::error::Error;

const CONTROLS: [&str; 2] = ["newreno", "user:constant-rate"];
const LOSS: [&str; 4] = ["0", "1e-4", "1e-3", "1e-2"];
const SEEDS: u64 = 3;

fn run(cc: &str, loss: &str, seed: u64, controls: &Controls) -> Result<RunResult, Box<dyn Error>> {
    let mut document = Document::preset("peach-geo")?;
    let changes = [
        ("duration", "100 s"),
        ("flows.bulk.count", "5"),
        ("flows.bulk.rwnd", "256 segments"),
        ("flows.bulk.cc", cc),
        ("links.sat.error.p", loss),
    ];
    for (key, value) in changes {
        document.set(&format!("{key}={value}"))?;
    }
    Ok(run_with(&document.resolve()?, seed, Null, controls)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let controls = controls();
    println!("Goodput in segments/s of 5 flows over a GEO link of 1300 segments/s, mean of {SEEDS} seeds\n");
    println!("{:>6}  {:>20}  {:>20}", "loss", CONTROLS[0], CONTROLS[1]);
    for loss in LOSS {
        let mut row = format!("{loss:>6}");
        for cc in CONTROLS {
            let mut sum = 0.0;
            for seed in 1..=SEEDS {
                let result = run(cc, loss, seed, &controls)?;
                sum += result.segments_acked() / result.duration.as_secs_f64();
            }
            row += &format!("  {:>20.1}", sum / SEEDS as f64);
        }
        println!("{row}");
    }
    Ok(())
}
