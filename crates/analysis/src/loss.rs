//! Probabilities of losses and of their repair.

use crate::Value;
use crate::domain::{not_negative, positive, probability, some_loss, whole};
use skyhaul_base::math;

/// Probability that a packet of `size` bytes has at least one bit error at the residual bit error rate `ber`:
/// `1 - (1 - ber)^(8 size)`.
///
/// # Errors
/// If `ber` is no probability or `size` negative.
pub fn packet_loss(ber: f64, size: f64) -> Value {
    probability("ber", ber)?;
    not_negative("size", size)?;
    if ber == 1.0 {
        return Ok(if size > 0.0 { 1.0 } else { 0.0 });
    }
    Ok(-math::expm1(8.0 * size * math::ln_1p(-ber)))
}

/// Probability that a window of `w` packets loses two or more: how often one repair per RTT does not suffice.
///
/// # Errors
/// If `w` is not a whole number of packets, or `p` is not a probability.
pub fn two_or_more(w: f64, p: f64) -> Value {
    whole("w", w, 1.0)?;
    probability("p", p)?;
    let rest = math::pow(1.0 - p, w - 1.0);
    Ok((1.0 - (1.0 - p) * rest - w * p * rest).max(0.0))
}

/// Probability that a loss in a window of `w` packets causes fewer than three duplicate acknowledgements: each
/// of those of the other `w - 1` packets is lost with probability `q`.
///
/// # Errors
/// If `w` is not a whole number of packets, or `q` is not a probability.
pub fn no_fast_retransmit(w: f64, q: f64) -> Value {
    whole("w", w, 1.0)?;
    probability("q", q)?;
    let n = w - 1.0;
    let (mut sum, mut combinations) = (0.0, 1.0);
    for i in 0..3 {
        let i = f64::from(i);
        if i > n {
            break;
        }
        sum += combinations * math::pow(1.0 - q, i) * math::pow(q, n - i);
        combinations *= (n - i) / (i + 1.0);
    }
    Ok(sum.min(1.0))
}

/// Mean additional delay, s, due to the loss of the last packet of a transfer without a tail loss probe: with
/// probability `p` it takes a timeout `t0` instead of an RTT.
///
/// # Errors
/// If `p` is no probability, `rtt` not above 0 or `t0` shorter than `rtt`.
pub fn tail_cost(p: f64, rtt: f64, t0: f64) -> Value {
    probability("p", p)?;
    positive("rtt", rtt)?;
    positive("t0", t0)?;
    if t0 < rtt {
        return Err(crate::DomainError {
            argument: "t0",
            value: t0,
            needs: "a timeout is no shorter than the RTT",
        });
    }
    Ok(p * (t0 - rtt))
}

/// Minimum duration of a run, s, for comparison with a steady-state formula: 50 losses of a flow that sends `x`
/// packets/s and loses `p` of them, `50 / (p x)`.
///
/// # Errors
/// If `p` is not in (0, 1] or `x` not above 0.
pub fn steady_run(p: f64, x: f64) -> Value {
    some_loss("p", p)?;
    positive("x", x)?;
    Ok(50.0 / (p * x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;
    use crate::throughput::{MATHIS_RANDOM, MATHIS_RANDOM_DELAYED, mathis};

    #[test]
    fn bit_errors_and_packets() {
        // [PapTsa]: packets of 1000 bytes.
        near(packet_loss(1e-5, 1000.0), 0.0769, 1e-3);
        near(packet_loss(1e-4, 1000.0), 0.5507, 1e-3);
        assert_eq!(packet_loss(0.0, 1000.0), Ok(0.0));
        assert_eq!(packet_loss(1.0, 1000.0), Ok(1.0));
    }

    #[test]
    fn several_losses_in_a_window() {
        near(two_or_more(64.0, 1e-2), 0.1346, 1e-3);
        assert_eq!(two_or_more(1.0, 0.5), Ok(0.0));
        near(two_or_more(2.0, 0.5), 0.25, 1e-12);
        assert_eq!(two_or_more(1.5, 0.5).unwrap_err().argument, "w");
    }

    #[test]
    fn too_few_duplicates() {
        near(no_fast_retransmit(10.0, 0.5), 0.0898, 1e-3);
        near(no_fast_retransmit(4.0, 0.5), 0.875, 1e-12);
        for w in [1.0, 2.0, 3.0] {
            near(no_fast_retransmit(w, 0.5), 1.0, 1e-12);
        }
        assert_eq!(no_fast_retransmit(10.0, 0.0), Ok(0.0));
    }

    #[test]
    fn the_last_segment() {
        near(tail_cost(1e-2, 0.55, 1.0), 0.0045, 1e-9);
        assert_eq!(tail_cost(1e-2, 0.55, 0.2).unwrap_err().argument, "t0");
    }

    #[test]
    fn runs_long_enough_for_a_mean() {
        // p = 1e-4 at 508 ms: a loss every 39 s and every 55 s, hence about 1900 s and 2700 s.
        let run = |c: f64| steady_run(1e-4, mathis(1e-4, 0.508, c).unwrap());
        near(run(MATHIS_RANDOM), 1900.0, 3e-2);
        near(run(MATHIS_RANDOM_DELAYED), 2700.0, 3e-2);
        near(run(MATHIS_RANDOM).map(|t| t / 50.0), 39.0, 1e-2);
        assert_eq!(steady_run(0.0, 10.0).unwrap_err().argument, "p");
    }
}
