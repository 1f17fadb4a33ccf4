//! Runs study files and writes their results: `cargo run --release -p skyhaul-study --example study -- OUT FILE...`

use skyhaul_study::cache::Cache;
use skyhaul_study::engine::Simulator;
use skyhaul_study::evaluation::evaluate;
use skyhaul_study::model::StudyFile;
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::plan;
use skyhaul_study::run::{Progress, RunOptions, run};
use skyhaul_study::{StudyError, report};
use std::path::Path;

struct Lines;

impl Progress for Lines {
    fn begin(&self, total: usize, cached: usize) {
        eprintln!("{total} cells, {cached} of them in the cache");
    }
    fn warn(&self, message: &str) {
        eprintln!("warning: {message}");
    }
}

fn one(file: &str, out: &Path, cache: &Cache) -> Result<(), StudyError> {
    let simulator = Simulator::new("1");
    let plan = plan(&simulator, StudyFile::read(Path::new(file))?)?;
    let cells = run(
        &simulator,
        &plan,
        &RunOptions { cache: Some(cache), progress: &Lines, ..RunOptions::default() },
    )?;
    let evaluation = evaluate(&plan, &cells)?;
    output::write(&evaluation, &out.join(&evaluation.name), &OutputOptions::default())?;
    println!("{}", report::text(&evaluation));
    Ok(())
}

fn main() {
    let mut args = std::env::args().skip(1);
    let out = args.next().unwrap_or_else(|| "results".to_owned());
    let cache = Cache::new(Path::new(&out).join(".cache"));
    for file in args {
        if let Err(e) = one(&file, Path::new(&out), &cache) {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}
