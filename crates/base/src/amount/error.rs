//! Why a text is not an amount, and what to write instead.

use alloc::string::String;

/// A text or number that is not an amount of the expected kind. Displays as one sentence that says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the parts of the sentence")]
pub enum AmountError {
    /// An ambiguous unit.
    #[error("\"{unit}\" may mean {meanings}: write \"{one}\" or \"{other}\"")]
    Ambiguous { unit: String, meanings: &'static str, one: String, other: String },
    /// A comma instead of a decimal point.
    #[error("\"{text}\" has a comma: write decimals with a point, such as \"10.4\"")]
    Comma { text: String },
    /// A frequency of zero.
    #[error("\"{text}\" never happens: {advice}")]
    NeverHappens { text: String, advice: String },
    /// A rate of zero.
    #[error("\"{text}\" never sends anything: {advice}")]
    NeverSends { text: String, advice: String },
    /// Below zero.
    #[error("\"{text}\" is negative: {advice}")]
    Negative { text: String, advice: String },
    /// Invalid digits, or too many of them.
    #[error("\"{number}\" is not a number: {advice}")]
    NoNumber { number: String, advice: String },
    /// A number without a unit.
    #[error("{number} has no unit: {advice}")]
    NoUnit { number: String, advice: String },
    /// Something else; `what` is the expected kind, with its article.
    #[error("\"{text}\" is not {what}: {advice}")]
    NotA { text: String, what: &'static str, advice: String },
    /// A number that is not a count.
    #[error("{number} is not a count: {advice}")]
    NotACount { number: String, advice: String },
    /// A number outside [0, 1], or NaN.
    #[error("{0} is not a probability: write a number from 0 to 1")]
    NotAProbability(String),
    /// A fraction of an indivisible unit.
    #[error("\"{text}\" is not a whole number of {unit}s")]
    NotWhole { text: String, unit: &'static str },
    /// A probability in quotes.
    #[error("\"{text}\" is a string: write a number from 0 to 1 without quotes")]
    Quoted { text: String },
    /// Beyond 64 bits in the base unit, or a real number of 1e30 or more.
    #[error("\"{text}\" is too large")]
    TooLarge { text: String },
    /// Above zero, but below the resolution of the base unit.
    #[error("\"{text}\" is too small to be distinguished from zero")]
    TooSmall { text: String },
    /// A fraction, or a number beyond 64 bits, of something counted.
    #[error("\"{text}\" is not a whole number of {unit}s that can be counted")]
    Uncountable { text: String, unit: String },
    /// A unit of another dimension, or of none.
    #[error("\"{unit}\" is not a unit of {of}{hint} (known: {known})")]
    UnknownUnit { unit: String, of: &'static str, hint: String, known: String },
    /// An unknown unit where bytes or a count are expected.
    #[error("\"{unit}\" is not a unit of a size here: {advice}")]
    UnknownUnitHere { unit: String, advice: String },
}

impl AmountError {
    /// The same error with other advice, for amounts with units of several dimensions, such as "64 segments" or "64 KiB".
    pub(super) fn advising(mut self, better: &str) -> Self {
        match &mut self {
            Self::Negative { advice, .. }
            | Self::NoNumber { advice, .. }
            | Self::NoUnit { advice, .. }
            | Self::NotA { advice, .. } => *advice = better.into(),
            _ => {}
        }
        self
    }
}
