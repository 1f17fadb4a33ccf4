//! Utilization of a link by flows.

use crate::domain::{at_least_one, fraction, not_negative, positive, probability};
use crate::{DomainError, Value};

/// Utilization of an error-free drop-tail link by synchronised flows that keep the fraction `beta` of their window at a
/// loss: bandwidth-delay product `bdp` and buffer `buffer`, both in packets. Unsynchronised flows achieve more.
///
/// # Errors
/// If `bdp` is not above 0, `buffer` negative or `beta` not between 0 and 1.
pub fn clean_utilization(bdp: f64, buffer: f64, beta: f64) -> Value {
    positive("bdp", bdp)?;
    not_negative("buffer", buffer)?;
    fraction("beta", beta)?;
    let top = bdp + buffer;
    let low = beta * top;
    if low >= bdp {
        return Ok(1.0);
    }
    let full = (top * top - bdp * bdp) / 2.0;
    Ok(((bdp * bdp - low * low) / 2.0 + full) / (bdp * (bdp - low) + full))
}

/// Seconds between losses of those flows: `flows` windows together grow by as many packets per RTT, which is `rtt` up
/// to `bdp` and longer beyond it because of the queue.
///
/// # Errors
/// As [`clean_utilization`], or if `flows` is below 1 or `rtt` not above 0.
pub fn sawtooth_period(flows: f64, rtt: f64, bdp: f64, buffer: f64, beta: f64) -> Value {
    at_least_one("flows", flows)?;
    positive("rtt", rtt)?;
    clean_utilization(bdp, buffer, beta)?;
    let top = bdp + buffer;
    let from = (beta * top).max(bdp);
    let below = (bdp - beta * top).max(0.0);
    Ok(rtt / flows * (below + (top * top - from * from) / (2.0 * bdp)))
}

/// Utilization of a link of `capacity` by `flows` flows that each send at rate `x` with loss probability `p`.
///
/// # Errors
/// If `flows` is below 1, `x` negative, `p` no probability or `capacity` not above 0.
pub fn lossy_utilization(flows: f64, x: f64, p: f64, capacity: f64) -> Value {
    at_least_one("flows", flows)?;
    not_negative("x", x)?;
    probability("p", p)?;
    positive("capacity", capacity)?;
    Ok((flows * x * (1.0 - p) / capacity).min(1.0))
}

/// The loss probability above which one flow cannot fill a path of `bdp` packets, for the constant `c` of the
/// square-root law (\[LM\]: p·B² of order 1).
///
/// # Errors
/// If an argument is not above 0.
pub fn critical_loss(c: f64, bdp: f64) -> Value {
    positive("c", c)?;
    positive("bdp", bdp)?;
    Ok((c / bdp) * (c / bdp))
}

/// Bounds of the ratio of rates in favour of the shorter RTT at a shared drop-tail queue (\[LM\]).
///
/// # Errors
/// If an RTT is not above 0, or `long` is shorter than `short`.
pub fn rtt_bias(short: f64, long: f64) -> Result<(f64, f64), DomainError> {
    positive("short", short)?;
    positive("long", long)?;
    if long < short {
        return Err(DomainError {
            argument: "long",
            value: long,
            needs: "write an RTT not shorter than the other one",
        });
    }
    Ok((long / short, (long / short) * (long / short)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;
    use crate::throughput::{MATHIS_PERIODIC, mathis};

    #[test]
    fn clean_links() {
        near(clean_utilization(100.0, 0.0, 0.5), 0.75, 1e-12);
        near(clean_utilization(715.0, 0.0, 0.5), 0.75, 1e-12);
        for (beta, want) in [(0.5, 0.79880), (0.75, 0.92771), (0.875, 0.98505)] {
            near(clean_utilization(715.0, 50.0, beta), want, 1e-4);
        }
        assert_eq!(clean_utilization(715.0, 715.0, 0.5), Ok(1.0));
        assert_eq!(clean_utilization(0.0, 50.0, 0.5).unwrap_err().argument, "bdp");
    }

    #[test]
    fn period_of_the_sawtooth() {
        // Without a buffer: half a BDP at N packets per RTT.
        near(sawtooth_period(20.0, 0.55, 700.0, 0.0, 0.5), 350.0 / 20.0 * 0.55, 1e-12);
        // With one BDP of buffer it stays above the BDP: RTTs from one to two, 1.5 on average, 700 of them.
        near(sawtooth_period(1.0, 0.55, 700.0, 700.0, 0.5), 700.0 * 1.5 * 0.55, 1e-12);
    }

    #[test]
    fn lossy_links() {
        // One flow over 333.3 packets/s at 508 ms ([Luglio] Fig. 2), acknowledgements for one and for two packets.
        let used = |p: f64, b: f64| {
            let x = mathis(p, 0.508, MATHIS_PERIODIC).unwrap() / skyhaul_base::math::sqrt(b);
            lossy_utilization(1.0, x, 0.0, 333.3)
        };
        near(used(1e-3, 1.0), 0.229, 5e-3);
        near(used(1e-3, 2.0), 0.162, 5e-3);
        near(used(1e-4, 1.0), 0.72, 1e-2);
        near(used(1e-4, 2.0), 0.51, 1e-2);
        assert_eq!(lossy_utilization(20.0, 1e6, 0.0, 1300.0), Ok(1.0));
        near(critical_loss(MATHIS_PERIODIC, 715.0), 2.9e-6, 2e-2);
        for (p, product) in [(1e-6, 0.51), (1e-5, 5.1), (1e-4, 51.0)] {
            near(Ok(p * 715.0 * 715.0), product, 1e-2);
        }
    }

    #[test]
    fn short_paths_win() {
        // [Neglia]: 60 ms against 580 ms; 200 ms of queue pull it together.
        let (low, high) = rtt_bias(0.06, 0.58).unwrap();
        near(Ok(low), 9.67, 1e-2);
        near(Ok(high), 93.4, 1e-2);
        let (low, high) = rtt_bias(0.26, 0.78).unwrap();
        near(Ok(low), 3.0, 1e-9);
        near(Ok(high), 9.0, 1e-9);
        assert_eq!(rtt_bias(0.58, 0.06).unwrap_err().argument, "long");
    }
}
