//! Arguments of `attack`.

use super::MAX_SEED;
use clap::Args;
use skyhaul_lab::attack::{Budget, Goal};
use std::path::PathBuf;

pub(crate) const ATTACK_EXAMPLES: &str = "Examples:
  skyhaul attack newreno --goal starve --budget \"400 runs\"
  skyhaul attack \"{ name = 'newreno', max-burst = 4 }\" --goal queue --budget 10min --bounds geo.toml --out results/geo";

#[derive(Args, Debug)]
pub(crate) struct AttackArgs {
    /// The control: a name, or an inline table with options.
    #[arg(value_name = "CONTROL")]
    pub(crate) control: String,
    /// What the worst case is: most harm to neighbours (harm), least goodput beside neighbours (starve) or alone (collapse),
    /// or the longest queue (queue).
    #[arg(long, value_name = "GOAL")]
    pub(crate) goal: String,
    /// How long to search: a time such as 10min, or a number of runs such as "500 runs". Only the latter is repeatable.
    #[arg(long, value_name = "BUDGET")]
    pub(crate) budget: String,
    /// TOML file of bounds, such as rate = ["1 Mbit/s", "100 Mbit/s"], instead of the built-in ones, key by key.
    #[arg(long, value_name = "FILE")]
    pub(crate) bounds: Option<PathBuf>,
    /// Seed of the search and of its runs.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: u64,
    /// Number of concurrent cases; by default one per processor.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Folder for the worst case, the report and the journal; by default results/attack-CONTROL-GOAL.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl AttackArgs {
    /// The goal and the budget.
    pub(crate) fn parsed(&self) -> Result<(Goal, Budget), skyhaul_lab::error::AttackError> {
        Ok((self.goal.parse()?, self.budget.parse()?))
    }
}
