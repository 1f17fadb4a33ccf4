//! What a scene measured, and what it should have.

use std::fmt;

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// No bound: the value is recorded.
    None,
}

/// A value with its bound.
#[derive(Clone, Debug)]
pub struct Finding {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub bound: Bound,
    /// It depends on how fast the machine is: the short form gives no verdict.
    pub timed: bool,
}

/// Whether a value is what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Fails,
    /// There is no bound, or the value depends on the machine and the form is the short one.
    NotJudged,
}

impl Finding {
    fn new(what: impl Into<String>, value: f64, unit: &'static str, bound: Bound) -> Self {
        Self { what: what.into(), value, unit, bound, timed: false }
    }
    pub fn at_most(what: impl Into<String>, value: f64, most: f64, unit: &'static str) -> Self {
        Self::new(what, value, unit, Bound::AtMost(most))
    }
    pub fn at_least(what: impl Into<String>, value: f64, least: f64, unit: &'static str) -> Self {
        Self::new(what, value, unit, Bound::AtLeast(least))
    }
    pub fn recorded(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self::new(what, value, unit, Bound::None)
    }
    /// It depends on how fast the machine is.
    pub fn timed(mut self) -> Self {
        self.timed = true;
        self
    }
    pub fn verdict(&self, long: bool) -> Verdict {
        let holds = match self.bound {
            Bound::AtMost(most) => self.value <= most,
            Bound::AtLeast(least) => self.value >= least,
            Bound::None => return Verdict::NotJudged,
        };
        match holds {
            _ if self.timed && !long => Verdict::NotJudged,
            true => Verdict::Holds,
            false => Verdict::Fails,
        }
    }
    /// The bound in words.
    pub fn bound_words(&self) -> String {
        match self.bound {
            Bound::AtMost(n) => format!("at most {}", amount(n, self.unit)),
            Bound::AtLeast(n) => format!("at least {}", amount(n, self.unit)),
            Bound::None => "-".into(),
        }
    }
    /// The value in words.
    pub fn value_words(&self) -> String {
        amount(self.value, self.unit)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::NotJudged => "-",
        })
    }
}

/// A number with its significant decimal places, and its unit.
fn amount(n: f64, unit: &str) -> String {
    let number = match n.abs() {
        a if a >= 100.0 || n.fract() == 0.0 => format!("{n:.0}"),
        a if a >= 1.0 => format!("{n:.2}"),
        _ => format!("{n:.4}"),
    };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}
