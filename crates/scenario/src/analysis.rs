//! Closed forms of TCP over long paths: what a scenario must come out near to.
//!
//! Times in seconds, rates in packets per second unless said otherwise, `b` data packets per acknowledgement,
//! `p` loss probability of a packet. Sources: \[Peach\] Akyildiz, Morabito, Palazzo (2001); \[Mathis\] Mathis,
//! Semke, Mahdavi, Ott (CCR 27(3), 1997); \[PFTK\] Padhye, Firoiu, Towsley, Kurose (SIGCOMM 1998); \[LM\] Lakshman,
//! Madhow (ToN 1997); RFC 3449.

use skyhaul_base::math;

/// \[Mathis\] constant for periodic losses, one acknowledgement per packet: sqrt(3/2).
pub const MATHIS_PERIODIC: f64 = 1.224_744_871_391_589;
/// \[Mathis\] constant for independent random losses, one acknowledgement per packet, limit for p → 0.
pub const MATHIS_RANDOM: f64 = 1.31;

/// Duration of slow start up to `rate` bit/s from a window of one packet of `bits` bits, one acknowledgement
/// per packet (\[Peach\] Eq. 1).
#[must_use]
pub fn slow_start_time(rtt: f64, rate: f64, bits: f64) -> f64 {
    rtt * (1.0 + math::log2(rate * rtt / bits))
}

/// Round trips that a transfer of `n` packets takes without loss: windows of floor(`w1`·`growth`^i), i = 0, 1, …
///
/// # Panics
/// If the window never grows and is empty: `w1` below 1.
#[must_use]
pub fn slow_start_rounds(n: u64, w1: f64, growth: f64) -> u32 {
    assert!(w1 >= 1.0 && growth >= 1.0, "a window starts with at least one packet and does not shrink");
    let (mut sent, mut window, mut rounds) = (0.0, w1, 0);
    #[expect(clippy::cast_precision_loss, reason = "a count of packets")]
    while sent < n as f64 {
        sent += math::floor(window);
        window *= growth;
        rounds += 1;
    }
    rounds
}

/// Rate of a window that is sent once per RTT; in the unit of `window` per second.
#[must_use]
pub fn window_limit(window: f64, rtt: f64) -> f64 {
    window / rtt
}

/// \[Mathis\]: `c/(RTT sqrt(b p))`, with `c` for one acknowledgement per packet.
#[must_use]
pub fn mathis(c: f64, rtt: f64, p: f64, b: f64) -> f64 {
    c / (rtt * math::sqrt(b * p))
}

/// The approximate formula of \[PFTK\], for a largest window of `wm` packets and a timeout of `t0`.
#[must_use]
pub fn pftk_approximate(rtt: f64, t0: f64, p: f64, b: f64, wm: f64) -> f64 {
    if p <= 0.0 {
        return wm / rtt;
    }
    let timeouts = (3.0 * math::sqrt(3.0 * b * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
    (wm / rtt).min(1.0 / (rtt * math::sqrt(2.0 * b * p / 3.0) + t0 * timeouts))
}

/// The full formula of \[PFTK\]. Counts packets sent; those that arrive are about (1 − p) times as many.
#[must_use]
pub fn pftk_full(rtt: f64, t0: f64, p: f64, b: f64, wm: f64) -> f64 {
    if p <= 0.0 {
        return wm / rtt;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let c = (2.0 + b) / (3.0 * b);
    let wu = c + math::sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + c * c);
    let w = wu.min(wm);
    let f = 1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))));
    let q = timeout_share(w, p);
    let packets = (1.0 - p) / p + w + q / (1.0 - p);
    let rounds = if wu < wm { b * wu / 2.0 + 1.0 } else { b * wm / 8.0 + (1.0 - p) / (p * wm) + 2.0 };
    packets / (rtt * rounds + q * t0 * f / (1.0 - p))
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

/// Utilisation of a clean drop-tail link by flows in phase that keep `beta` of their window at a loss: product
/// of rate and RTT `bdp`, buffer `buffer`, both in packets. Flows out of phase do better.
#[must_use]
pub fn clean_utilization(bdp: f64, buffer: f64, beta: f64) -> f64 {
    let top = bdp + buffer;
    let low = beta * top;
    if low >= bdp {
        return 1.0;
    }
    let full = (top * top - bdp * bdp) / 2.0;
    ((bdp * bdp - low * low) / 2.0 + full) / (bdp * (bdp - low) + full)
}

/// Utilisation of a link of `capacity` by `flows` flows that each send at `x` and lose `p` of it.
#[must_use]
pub fn lossy_utilization(flows: f64, x: f64, p: f64, capacity: f64) -> f64 {
    (flows * x * (1.0 - p) / capacity).min(1.0)
}

/// The loss probability above which one flow cannot fill a path of `bdp` packets, for the constant `c`
/// (\[LM\]: p·B² of order 1).
#[must_use]
pub fn critical_loss(c: f64, bdp: f64) -> f64 {
    (c / bdp) * (c / bdp)
}

/// Data packets per second that a return link of `rate` bit/s can acknowledge with packets of `ack` bytes.
#[must_use]
pub fn return_cap(rate: f64, ack: f64, b: f64) -> f64 {
    rate * b / (8.0 * ack)
}

/// Normalised asymmetry of RFC 3449: above `b`, the return link limits.
#[must_use]
pub fn asymmetry(forward: f64, reverse: f64, packet: f64, ack: f64) -> f64 {
    (forward / reverse) / (packet / ack)
}

/// Shortest run that may be compared with a steady-state formula: 50 losses of a flow that sends at `x`.
#[must_use]
pub fn steady_run(p: f64, x: f64) -> f64 {
    50.0 / (p * x)
}

/// Bounds of the ratio of rates in favour of the shorter RTT at a shared drop-tail queue (\[LM\]).
#[must_use]
pub fn rtt_bias(short: f64, long: f64) -> (f64, f64) {
    (long / short, (long / short) * (long / short))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: f64 = f64::INFINITY;

    #[track_caller]
    fn near(got: f64, want: f64, tolerance: f64) {
        assert!((got / want - 1.0).abs() <= tolerance, "{got} is not {want}");
    }

    #[test]
    fn slow_start_of_the_first_table_of_peach() {
        let published = [(0.05, [0.18, 0.35, 0.55]), (0.25, [1.49, 2.32, 3.31]), (0.55, [3.91, 5.73, 7.91])];
        for (rtt, row) in published {
            for (rate, want) in [1e6, 10e6, 155e6].into_iter().zip(row) {
                let got = slow_start_time(rtt, rate, 8000.0);
                assert!((got - want).abs() <= 0.005, "{rtt} {rate}: {got}");
            }
        }
        near(slow_start_time(0.55, 155e6, 8000.0), 7.909, 1e-3);
        near(slow_start_time(0.25, 1e6, 8000.0), 1.491, 1e-3);
    }

    #[test]
    fn pages_of_fifty_segments() {
        let rounds = [(1.0, 2.0, 6), (4.0, 2.0, 4), (10.0, 2.0, 3), (1.0, 1.5, 9)];
        for (w1, growth, want) in rounds {
            assert_eq!(slow_start_rounds(50, w1, growth), want, "{w1} {growth}");
        }
        assert_eq!(slow_start_rounds(0, 1.0, 2.0), 0);
        assert_eq!(slow_start_rounds(3, 1.0, 1.0), 3);
    }

    #[test]
    fn window_limits() {
        near(8.0 * window_limit(65_535.0, 0.5), 1_048_560.0, 1e-9);
        near(8.0 * window_limit(65_536.0, 0.58), 903_900.0, 1e-3);
        for (kib, mbit) in [(64.0, 1.0321), (128.0, 2.0641), (256.0, 4.1283)] {
            near(8.0 * window_limit(kib * 1024.0, 0.508), mbit * 1e6, 1e-4);
        }
        // The knee on 4 Mbit/s, and the time that 50 MB take at least.
        near(4e6 * 0.508 / 12_000.0, 169.33, 1e-4);
        near(50e6 / window_limit(65_536.0, 0.508), 387.6, 1e-3);
    }

    #[test]
    fn throughput_equations() {
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
                mathis(MATHIS_PERIODIC, rtt, p, 1.0),
                mathis(MATHIS_PERIODIC, rtt, p, 2.0),
                pftk_approximate(rtt, t0, p, 1.0, NO_LIMIT),
                pftk_approximate(rtt, t0, p, 2.0, NO_LIMIT),
                pftk_full(rtt, t0, p, 1.0, NO_LIMIT),
                pftk_full(rtt, t0, p, 2.0, NO_LIMIT),
                pftk_full(rtt, t0, p, 1.0, 64.0),
            ];
            for (got, want) in got.into_iter().zip(row) {
                near(got, want, 1e-4);
            }
        }
        near(pftk_full(rtt, t0, 0.0, 1.0, 64.0), 64.0 / 0.55, 1e-12);
        assert_eq!(pftk_full(rtt, t0, 1.0, 1.0, 64.0), 0.0);
    }

    #[test]
    fn utilization_of_clean_links() {
        near(clean_utilization(100.0, 0.0, 0.5), 0.75, 1e-12);
        near(clean_utilization(715.0, 0.0, 0.5), 0.75, 1e-12);
        for (beta, want) in [(0.5, 0.79880), (0.75, 0.92771), (0.875, 0.98505)] {
            near(clean_utilization(715.0, 50.0, beta), want, 1e-4);
        }
        assert_eq!(clean_utilization(715.0, 715.0, 0.5), 1.0);
    }

    #[test]
    fn utilization_under_random_loss() {
        // [Peach] Fig. 13: 20 flows at 5e-3 do not exceed 620 segments/s.
        near(20.0 * mathis(MATHIS_PERIODIC, 0.55, 5e-3, 1.0), 629.8, 1e-3);
        near(20.0 * pftk_full(0.55, 1.0, 5e-3, 1.0, NO_LIMIT) * (1.0 - 5e-3), 607.5, 1e-3);
        near(pftk_full(0.55, 1.0, 1e-2, 1.0, 64.0) * 0.99, 20.9, 5e-3);
        // One flow over 333.3 packets/s at 508 ms.
        let x = |p: f64, b: f64| mathis(MATHIS_PERIODIC, 0.508, p, b);
        near(lossy_utilization(1.0, x(1e-3, 1.0), 0.0, 333.3), 0.229, 5e-3);
        near(lossy_utilization(1.0, x(1e-3, 2.0), 0.0, 333.3), 0.162, 5e-3);
        near(lossy_utilization(1.0, x(1e-4, 1.0), 0.0, 333.3), 0.72, 1e-2);
        near(lossy_utilization(1.0, x(1e-4, 2.0), 0.0, 333.3), 0.51, 1e-2);
        assert_eq!(lossy_utilization(20.0, 1e6, 0.0, 1300.0), 1.0);
        near(critical_loss(MATHIS_PERIODIC, 715.0), 2.9e-6, 2e-2);
        for (p, product) in [(1e-6, 0.51), (1e-5, 5.1), (1e-4, 51.0)] {
            near(p * 715.0 * 715.0, product, 1e-2);
        }
    }

    #[test]
    fn return_links_and_run_lengths() {
        assert_eq!(return_cap(256e3, 40.0, 1.0), 800.0);
        near(asymmetry(10e6, 50e3, 1000.0, 40.0), 8.0, 1e-12);
        near(asymmetry(10e6, 256e3, 1000.0, 40.0), 1.5625, 1e-12);
        // p = 1e-4 at 508 ms: 2700 s for two packets per acknowledgement, 1900 s (2074 s by the periodic constant) for one.
        let x = |b: f64| mathis(MATHIS_PERIODIC, 0.508, 1e-4, b);
        near(steady_run(1e-4, x(2.0)), 2933.0, 1e-2);
        near(steady_run(1e-4, mathis(MATHIS_RANDOM, 0.508, 1e-4, 1.0)), 1939.0, 1e-2);
        let (low, high) = rtt_bias(0.06, 0.58);
        near(low, 9.67, 1e-2);
        near(high, 93.4, 1e-2);
    }
}
