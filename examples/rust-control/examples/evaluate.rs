//! What RFC 9743 asks of constant-rate growth: `cargo run --release -p rust-control --example evaluate`; names of
//! cases behind `--` select some of them.

use rust_control::controls;
use skyhaul_lab::evaluate::{Request, evaluate, shown};
use skyhaul_lab::reproduce::cache;
use skyhaul_study::run::RunOptions;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let request = Request {
        control: "user:constant-rate".to_owned(),
        names: std::env::args().skip(1).collect(),
        quick: true,
        ..Request::default()
    };
    // Finished cells are kept: after Ctrl-C, the same command continues.
    let cache = cache(None)?;
    let options = RunOptions { cache: Some(&cache), ..RunOptions::default() };
    let found = evaluate(&request, controls(), &options, &mut |line| eprintln!("{line}"))?;
    println!("{}\nReport:  {}", shown(&found), found.folder.join("report.html").display());
    Ok(())
}
