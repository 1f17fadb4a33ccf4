//! Measures of fairness.

use crate::Value;
use crate::domain::{not_negative, positive};

/// Jain's fairness index (Σx)² / (n Σx²); 1 if all values are zero, NaN if there are none.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    #[expect(clippy::cast_precision_loss, reason = "a number of flows")]
    let n = values.len() as f64;
    if values.is_empty() {
        f64::NAN
    } else if squares == 0.0 {
        1.0
    } else {
        sum * sum / (n * squares)
    }
}

/// Goodput ratio `x` / `y` of two classes of flows (\[Peach\] Eq. 6); 1 is fair.
///
/// # Errors
/// If `x` is negative or `y` not above 0.
pub fn goodput_ratio(x: f64, y: f64) -> Value {
    not_negative("x", x)?;
    positive("y", y)?;
    Ok(x / y)
}

/// Normalised throughput of a class of flows (\[PapTsa\] §4.2): the mean rate `x` of its flows, divided by the equal
/// share of `capacity` among all `flows`; 1 is the fair share.
///
/// `x` and `capacity` are in the same unit.
///
/// # Errors
/// If `x` is negative, or `capacity` or `flows` not above 0.
pub fn normalized_throughput(x: f64, capacity: f64, flows: f64) -> Value {
    not_negative("x", x)?;
    positive("capacity", capacity)?;
    positive("flows", flows)?;
    Ok(x * flows / capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    #[test]
    fn index_of_jain() {
        near(Ok(jain(&[1.0, 1.0, 1.0, 1.0, 0.5])), 0.95294, 1e-5);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
        assert!(jain(&[]).is_nan());
    }

    #[test]
    fn ratios_and_shares() {
        near(goodput_ratio(12.1, 100.0), 0.121, 1e-12);
        // 25 flows on 10 Mbit/s: 400 kbit/s each are fair.
        near(normalized_throughput(300e3, 10e6, 25.0), 0.75, 1e-12);
        assert_eq!(goodput_ratio(1.0, 0.0).unwrap_err().argument, "y");
    }
}
