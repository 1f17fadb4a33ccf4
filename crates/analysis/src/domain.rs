//! Domains of the formulas.

/// An argument outside of the domain of a formula.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{argument} is {value}: {needs}")]
pub struct DomainError {
    /// Name of the argument.
    pub argument: &'static str,
    /// The given value.
    pub value: f64,
    /// What to write instead.
    pub needs: &'static str,
}

fn need(ok: bool, argument: &'static str, value: f64, needs: &'static str) -> Result<(), DomainError> {
    if ok { Ok(()) } else { Err(DomainError { argument, value, needs }) }
}

/// Upper bound of arguments: no quantity of a network comes near it, and no formula overflows below it.
const LARGEST: f64 = 1e100;

/// A number above 0.
pub(crate) fn positive(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need(x > 0.0 && x <= LARGEST, argument, x, "write a number above 0, at most 1e100")
}

/// A number above 0 that may be infinite.
pub(crate) fn limit(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need(
        x > 0.0 && (x <= LARGEST || x.is_infinite()),
        argument,
        x,
        "write a number above 0, or infinity for no limit",
    )
}

/// A finite number from 0.
pub(crate) fn not_negative(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need((0.0..=LARGEST).contains(&x), argument, x, "write a number from 0 to 1e100")
}

/// A finite number from 1.
pub(crate) fn at_least_one(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need((1.0..=LARGEST).contains(&x), argument, x, "write a number from 1 to 1e100")
}

/// A probability.
pub(crate) fn probability(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need((0.0..=1.0).contains(&x), argument, x, "a probability lies from 0 to 1")
}

/// A probability above 0.
pub(crate) fn some_loss(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need(x > 0.0 && x <= 1.0, argument, x, "the formula needs losses: above 0, up to 1")
}

/// A fraction strictly between 0 and 1.
pub(crate) fn fraction(argument: &'static str, x: f64) -> Result<(), DomainError> {
    need(x > 0.0 && x < 1.0, argument, x, "write a number between 0 and 1, both excluded")
}

/// A whole number of packets from `least`.
pub(crate) fn whole(argument: &'static str, x: f64, least: f64) -> Result<(), DomainError> {
    need(
        x.is_finite() && x >= least && skyhaul_base::math::floor(x) == x && x <= 1e9,
        argument,
        x,
        "write a whole number of packets, at most 1e9 and at least the formula's minimum",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn errors_say_which_argument_and_what_it_needs() {
        let e = probability("p", 1.5).unwrap_err();
        assert_eq!(e.to_string(), "p is 1.5: a probability lies from 0 to 1");
        assert!(probability("p", f64::NAN).is_err() && positive("rtt", f64::INFINITY).is_err());
        assert!(limit("wm", f64::INFINITY).is_ok() && limit("wm", f64::NAN).is_err());
        assert!(
            whole("w", 2.5, 1.0).is_err() && whole("w", 0.0, 1.0).is_err() && whole("w", 3.0, 1.0).is_ok()
        );
    }
}
