//! Slow start, and transfers that end during it.

use crate::domain::{at_least_one, not_negative, positive, whole};
use crate::{DomainError, Value};
use skyhaul_base::math;

/// Duration of slow start, s, until `rate` bit/s are reached from a window of one packet of `bits` bits with one
/// acknowledgement per packet: `rtt (1 + log2(rate rtt / bits))` (\[Peach\] Eq. 1, \[PapTsa\] §2.1). Delayed
/// acknowledgements make it longer.
///
/// # Errors
/// If `rtt`, `rate` or `bits` is not a number above 0.
pub fn slow_start_time(rtt: f64, rate: f64, bits: f64) -> Value {
    positive("rtt", rtt)?;
    positive("rate", rate)?;
    positive("bits", bits)?;
    // Below half a packet per RTT the formula is negative.
    Ok(rtt * (1.0 + math::log2(rate * rtt / bits)).max(0.0))
}

/// Number of round trips of a transfer of `n` packets without loss and without a window limit: rounds of
/// floor(`w1`·`growth`^i) packets, i = 0, 1, … `growth` is 2 with an acknowledgement per packet, 1.5 with one per two
/// packets.
///
/// # Errors
/// If `n` is not a whole number of packets, or `w1` or `growth` is below 1.
pub fn slow_start_rounds(n: f64, w1: f64, growth: f64) -> Result<u32, DomainError> {
    whole("n", n, 0.0)?;
    at_least_one("w1", w1)?;
    at_least_one("growth", growth)?;
    if growth == 1.0 {
        let rounds = math::ceil(n / math::floor(w1));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1e9 packets")]
        return Ok(rounds as u32);
    }
    let (mut sent, mut window, mut rounds) = (0.0, w1, 0);
    while sent < n {
        sent += math::floor(window);
        window *= growth;
        rounds += 1;
    }
    Ok(rounds)
}

/// Duration of a transfer of `n` packets without loss, s: its [rounds](slow_start_rounds), plus an RTT for the handshake if there is one.
///
/// # Errors
/// As [`slow_start_rounds`], or if `rtt` is not above 0.
pub fn transfer_time(n: f64, w1: f64, growth: f64, rtt: f64, handshake: bool) -> Value {
    positive("rtt", rtt)?;
    let rounds = slow_start_rounds(n, w1, growth)?;
    Ok(f64::from(rounds + u32::from(handshake)) * rtt)
}

/// Mean rate, packets per second, over `duration` s of congestion avoidance without loss that starts with a window of
/// `w0` packets: W(t) = w0 + t/(b rtt). For runs that are too short for a steady-state formula.
///
/// # Errors
/// If `w0` is below 1, `duration` negative, `b` below 1 or `rtt` not above 0.
pub fn transient_rate(w0: f64, duration: f64, b: f64, rtt: f64) -> Value {
    at_least_one("w0", w0)?;
    not_negative("duration", duration)?;
    at_least_one("b", b)?;
    positive("rtt", rtt)?;
    Ok((w0 + duration / (2.0 * b * rtt)) / rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    #[test]
    fn slow_start_of_the_first_table_of_peach() {
        let rows = [
            (0.05, [0.18, 0.35, 0.55], [0.182, 0.348, 0.546]),
            (0.25, [1.49, 2.32, 3.31], [1.491, 2.322, 3.310]),
            (0.55, [3.91, 5.73, 7.91], [3.907, 5.734, 7.909]),
        ];
        for (rtt, printed, exact) in rows {
            for ((rate, printed), exact) in [1e6, 10e6, 155e6].into_iter().zip(printed).zip(exact) {
                let got = slow_start_time(rtt, rate, 8000.0).unwrap();
                assert!((got - printed).abs() <= 0.005, "{rtt} {rate}: {got}");
                assert!((got - exact).abs() <= 0.0006, "{rtt} {rate}: {got}");
            }
        }
        assert_eq!(slow_start_time(0.5, 100.0, 8000.0), Ok(0.0));
        assert_eq!(slow_start_time(0.0, 1e6, 8000.0).unwrap_err().argument, "rtt");
    }

    #[test]
    fn pages_of_fifty_segments() {
        for (w1, growth, rounds, time) in
            [(1.0, 2.0, 6, 3.30), (4.0, 2.0, 4, 2.20), (10.0, 2.0, 3, 1.65), (1.0, 1.5, 9, 4.95)]
        {
            assert_eq!(slow_start_rounds(50.0, w1, growth), Ok(rounds), "{w1} {growth}");
            near(transfer_time(50.0, w1, growth, 0.55, false), time, 1e-12);
        }
        near(transfer_time(50.0, 1.0, 2.0, 0.55, true), 3.85, 1e-12);
        assert_eq!(slow_start_rounds(0.0, 1.0, 2.0), Ok(0));
        assert_eq!(slow_start_rounds(3.0, 1.0, 1.0), Ok(3));
        assert_eq!(slow_start_rounds(1e9, 1.0, 1.0), Ok(1_000_000_000));
        assert_eq!(slow_start_rounds(50.0, 0.5, 2.0).unwrap_err().argument, "w1");
    }

    #[test]
    fn a_window_that_grows_undisturbed() {
        // From 20 to 20 + 55/(1·0.55) = 120 packets: 70 on average.
        near(transient_rate(20.0, 55.0, 1.0, 0.55), 70.0 / 0.55, 1e-12);
        near(transient_rate(20.0, 0.0, 2.0, 0.55), 20.0 / 0.55, 1e-12);
    }
}
