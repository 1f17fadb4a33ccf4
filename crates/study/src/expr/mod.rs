//! Metric expressions: arithmetic over named quantities, nothing else.
//!
//! ```text
//! expr  = term { ("+" | "-") term }          term = unary { ("*" | "/") unary }
//! unary = "-" unary | power                  power = atom [ "^" unary ]
//! atom  = number | "(" expr ")" | function "(" expr { "," expr } ")" | name
//! name  = flow.<q> | flow[<group>].<q> | link.<link>.<q> | run.<q> | series.<s> | series[<group>].<s>
//!       | let.<constant> | metric.<earlier metric> | base.<earlier metric>
//! ```
//! `base` is the combination that the metric is compared with, with the same seed. A `flow` name has a value per
//! flow, a `series` name a curve per flow; functions aggregate these. The closed forms of
//! [`skyhaul_analysis::forms::FORMS`] are functions too, for comparing theory with simulation: `pftk(let.p, 0.55, 1,
//! 1, 64)`. Outside its domain a form is NaN, which makes a claim not evaluable. Every name is checked before the
//! first run.

mod eval;
mod parse;
mod windows;

pub(crate) use eval::aggregate;
pub use eval::{Names, Shape, Vars, evaluate, shape};
pub use parse::{Expr, Name, names_in, parse};

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// One sentence.
    pub message: String,
    /// What is accepted instead; may be empty.
    pub accepted: Vec<String>,
}

impl ExprError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), accepted: Vec::new() }
    }
    fn or(message: impl Into<String>, accepted: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { message: message.into(), accepted: accepted.into_iter().map(Into::into).collect() }
    }
}

#[cfg(test)]
mod tests;
