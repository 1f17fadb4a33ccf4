//! How much a search may spend.

use crate::error::AttackError;
use skyhaul_scenario::amount::Time;
use std::str::FromStr;
use std::time::Duration;

/// The limit of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Time on the clock. Runs that have begun are completed, and what follows the search takes its own time.
    Time(Duration),
    /// Simulated runs. With this limit a search is repeatable.
    Runs(u64),
}

impl FromStr for Budget {
    type Err = AttackError;

    /// Reads `10min`, `90 s` or `500 runs`.
    fn from_str(text: &str) -> Result<Self, AttackError> {
        let refuse = |why| AttackError::Budget { text: text.to_owned(), why };
        let word = text.trim();
        let runs = word.strip_suffix("runs").or_else(|| word.strip_suffix("run"));
        let budget = match runs {
            Some(number) => {
                number.trim().parse().map(Self::Runs).map_err(|_| refuse("not a whole number"))?
            }
            None => {
                let time = word.parse::<Time>().map_err(|_| refuse("neither a time nor a number of runs"))?;
                Self::Time(Duration::from_nanos(time.0.as_nanos()))
            }
        };
        match budget {
            Self::Runs(0) | Self::Time(Duration::ZERO) => Err(refuse("nothing would be searched")),
            _ => Ok(budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_time_or_a_number_of_runs() {
        for (text, want) in [
            ("10min", Budget::Time(Duration::from_secs(600))),
            ("1.5 s", Budget::Time(Duration::from_millis(1500))),
            ("500 runs", Budget::Runs(500)),
            ("1run", Budget::Runs(1)),
        ] {
            assert_eq!(text.parse::<Budget>().expect(text), want);
        }
        for text in ["", "0", "0 runs", "0 s", "10", "-3 runs", "many runs", "10 apples", "1e3 runs"] {
            let line = text.parse::<Budget>().expect_err(text).to_string();
            assert!(
                line.starts_with("budget ") && line.contains("500 runs") && !line.contains('\n'),
                "{line}"
            );
        }
    }
}
