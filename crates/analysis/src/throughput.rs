//! Throughput equations of a single flow under random loss.

use crate::Value;
use crate::domain::{at_least_one, limit, not_negative, positive, probability, some_loss};
use skyhaul_base::math;

/// \[Mathis\] constant for periodic losses, one acknowledgement per packet: sqrt(3/2).
pub const MATHIS_PERIODIC: f64 = 1.224_744_871_391_589;
/// The same with one acknowledgement per two packets: sqrt(3/4).
pub const MATHIS_PERIODIC_DELAYED: f64 = 0.866_025_403_784_438_6;
/// \[Mathis\] constant for independent random losses, one acknowledgement per packet, limit for p → 0.
pub const MATHIS_RANDOM: f64 = 1.31;
/// The same with one acknowledgement per two packets.
pub const MATHIS_RANDOM_DELAYED: f64 = 0.93;

/// \[Mathis\]: `c / (rtt sqrt(p))` packets per second.
///
/// # Errors
/// If `p` is not in (0, 1], or `rtt` or `c` not above 0.
pub fn mathis(p: f64, rtt: f64, c: f64) -> Value {
    some_loss("p", p)?;
    positive("rtt", rtt)?;
    positive("c", c)?;
    Ok(c / (rtt * math::sqrt(p)))
}

fn check(p: f64, rtt: f64, t0: f64, b: f64, wm: f64) -> Result<(), crate::DomainError> {
    probability("p", p)?;
    positive("rtt", rtt)?;
    not_negative("t0", t0)?;
    at_least_one("b", b)?;
    limit("wm", wm)
}

/// The approximate formula of \[PFTK\], packets sent per second; without losses `wm / rtt`, which is infinite without a
/// maximum window.
///
/// # Errors
/// If `p` is no probability, `rtt` or `wm` not above 0, `t0` negative or `b` below 1.
pub fn pftk_approximate(p: f64, rtt: f64, t0: f64, b: f64, wm: f64) -> Value {
    check(p, rtt, t0, b, wm)?;
    if p == 0.0 {
        return Ok(wm / rtt);
    }
    let timeouts = (3.0 * math::sqrt(3.0 * b * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
    Ok((wm / rtt).min(1.0 / (rtt * math::sqrt(2.0 * b * p / 3.0) + t0 * timeouts)))
}

/// The full formula of \[PFTK\], packets sent per second; about (1 - p) times as many arrive. Without losses `wm /
/// rtt`, which is infinite without a maximum window.
///
/// # Errors
/// As [`pftk_approximate`].
pub fn pftk(p: f64, rtt: f64, t0: f64, b: f64, wm: f64) -> Value {
    check(p, rtt, t0, b, wm)?;
    if p == 0.0 {
        return Ok(wm / rtt);
    }
    if p >= 1.0 {
        return Ok(0.0);
    }
    let c = (2.0 + b) / (3.0 * b);
    let wu = c + math::sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + c * c);
    let w = wu.min(wm);
    let f = 1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))));
    let q = timeout_share(w, p);
    let packets = (1.0 - p) / p + w + q / (1.0 - p);
    let rounds = if wu < wm { b * wu / 2.0 + 1.0 } else { b * wm / 8.0 + (1.0 - p) / (p * wm) + 2.0 };
    Ok(packets / (rtt * rounds + q * t0 * f / (1.0 - p)))
}

/// Q(w) of \[PFTK\]: probability that a loss in a window of `w` packets ends in a timeout.
fn timeout_share(w: f64, p: f64) -> f64 {
    if w <= 3.0 {
        return 1.0;
    }
    let keep = |n: f64| math::pow(1.0 - p, n);
    let all = 1.0 - keep(w);
    (((1.0 - keep(3.0)) * (1.0 + keep(3.0) * (1.0 - keep(w - 3.0)))) / all).min(1.0)
}

/// The equation of TFRC (RFC 5348 §3.1), packets per second; times the packet size bytes per second. The RFC takes
/// b = 1 and `t0 = 4 rtt`. Unlike in \[PFTK\] the share of timeouts is not limited to 1.
///
/// # Errors
/// If `p` is not in (0, 1], `rtt` not above 0, `t0` negative or `b` below 1.
pub fn tfrc(p: f64, rtt: f64, t0: f64, b: f64) -> Value {
    some_loss("p", p)?;
    positive("rtt", rtt)?;
    not_negative("t0", t0)?;
    at_least_one("b", b)?;
    let timeouts = 3.0 * math::sqrt(3.0 * b * p / 8.0) * p * (1.0 + 32.0 * p * p);
    Ok(1.0 / (rtt * math::sqrt(2.0 * b * p / 3.0) + t0 * timeouts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    const NO_LIMIT: f64 = f64::INFINITY;

    #[test]
    fn the_table_of_throughput_equations() {
        // p; Mathis b 1, b 2; approximate b 1, b 2; full b 1, b 2; full b 1 with Wm 64. RTT 0.55 s, T0 1 s.
        let table = [
            (1e-5, [704.18, 497.93, 704.15, 497.91, 703.70, 497.46, 115.69]),
            (1e-4, [222.68, 157.46, 222.59, 157.40, 222.15, 156.95, 110.01]),
            (1e-3, [70.418, 49.793, 70.131, 49.590, 69.727, 49.162, 69.727]),
            (5e-3, [31.492, 22.268, 30.860, 21.821, 30.527, 21.444, 30.527]),
            (1e-2, [22.268, 15.746, 21.390, 15.125, 21.117, 14.798, 21.117]),
            (5e-2, [9.959, 7.042, 8.157, 5.768, 8.257, 5.772, 8.257]),
        ];
        let (rtt, t0) = (0.55, 1.0);
        for (p, row) in table {
            let got = [
                mathis(p, rtt, MATHIS_PERIODIC),
                mathis(p, rtt, MATHIS_PERIODIC_DELAYED),
                pftk_approximate(p, rtt, t0, 1.0, NO_LIMIT),
                pftk_approximate(p, rtt, t0, 2.0, NO_LIMIT),
                pftk(p, rtt, t0, 1.0, NO_LIMIT),
                pftk(p, rtt, t0, 2.0, NO_LIMIT),
                pftk(p, rtt, t0, 1.0, 64.0),
            ];
            for (got, want) in got.into_iter().zip(row) {
                near(got, want, 1e-4);
            }
        }
        near(pftk(0.0, rtt, t0, 1.0, 64.0), 64.0 / 0.55, 1e-12);
        assert_eq!(pftk(1.0, rtt, t0, 1.0, 64.0), Ok(0.0));
        assert_eq!(pftk(-0.1, rtt, t0, 1.0, 64.0).unwrap_err().argument, "p");
        assert_eq!(pftk(0.1, rtt, t0, 1.0, f64::NAN).unwrap_err().argument, "wm");
    }

    #[test]
    fn constants_follow_from_each_other() {
        near(Ok(MATHIS_PERIODIC * MATHIS_PERIODIC), 1.5, 1e-12);
        near(Ok(MATHIS_PERIODIC_DELAYED * MATHIS_PERIODIC_DELAYED), 0.75, 1e-12);
        near(mathis(1e-3, 0.55, MATHIS_RANDOM), 75.32, 1e-3);
        near(mathis(1e-3, 0.55, MATHIS_RANDOM_DELAYED), 53.47, 1e-3);
    }

    #[test]
    fn equation_of_tfrc() {
        // s 1000 B, R 0.55 s, t_RTO 4R: bytes per second.
        for (p, want) in [(1e-3, 69_789.8), (1e-2, 20_424.0), (5e-2, 6701.6), (0.1, 3218.4)] {
            near(tfrc(p, 0.55, 2.2, 1.0).map(|x| 1000.0 * x), want, 1e-4);
        }
        assert_eq!(tfrc(0.0, 0.55, 2.2, 1.0).unwrap_err().argument, "p");
    }

    #[test]
    fn published_rates() {
        // [Peach] Fig. 13: 20 flows at 5e-3 do not exceed 620 segments/s.
        near(mathis(5e-3, 0.55, MATHIS_PERIODIC).map(|x| 20.0 * x), 629.8, 1e-3);
        near(pftk(5e-3, 0.55, 1.0, 1.0, NO_LIMIT).map(|x| 20.0 * x * (1.0 - 5e-3)), 607.5, 1e-3);
        // Its heterogeneous flows at 1e-2: 22.3 by one law, 20.9 by the other, 19.7 reported.
        near(mathis(1e-2, 0.55, MATHIS_PERIODIC), 22.3, 5e-3);
        near(pftk(1e-2, 0.55, 1.0, 1.0, 64.0).map(|x| 0.99 * x), 20.9, 5e-3);
    }
}
