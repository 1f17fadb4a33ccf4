//! The throughput equation (RFC 5348 §3.1), and its inverse.

use skyhaul_analysis::throughput;
use skyhaul_base::math;

/// Loss event rates above 0 and below this count as this.
const LEAST: f64 = 1e-12;

/// The rate of a TCP at loss event rate `p`, bytes per second, with segments of `segment` bytes, an RTT of `rtt`
/// and a timeout of `rto` seconds. b = 1; the fraction of timeouts is not limited to 1.
#[must_use]
pub fn allowed(segment: f64, rtt: f64, rto: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return f64::INFINITY;
    }
    throughput::tfrc(p.clamp(LEAST, 1.0), rtt, rto, 1.0).map_or(0.0, |packets| packets * segment)
}

/// The loss event rate at which [`allowed`] equals `target`; 1 if it is larger even then.
#[must_use]
pub fn loss_at(target: f64, segment: f64, rtt: f64, rto: f64) -> f64 {
    let (mut low, mut high) = (LEAST, 1.0);
    // 60 bisections of twelve decades: to the last digit of an f64.
    for _ in 0..60 {
        let middle = math::sqrt(low * high);
        if allowed(segment, rtt, rto, middle) > target { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_points() {
        for (p, x) in [(1e-3, 69_789.8), (1e-2, 20_424.0), (5e-2, 6_701.6), (0.1, 3_218.4)] {
            let got = allowed(1000.0, 0.55, 2.2, p);
            assert!((got - x).abs() < 0.06, "{p}: {got}");
            // X = s / (R f(p))
            let f = 1000.0 / (0.55 * got);
            let expected = match p {
                1e-3 => 0.026_052_3,
                1e-2 => 0.089_021_6,
                5e-2 => 0.271_305_2,
                _ => 0.564_939_2,
            };
            assert!((f - expected).abs() < 1e-7, "{p}: {f}");
        }
    }

    #[test]
    fn the_inverse_finds_its_way_back() {
        let p = loss_at(40_000.0, 1000.0, 0.55, 2.2);
        assert!((p - 2.9413e-3).abs() < 1e-7, "{p}");
        assert_eq!((1.0 / p).round(), 340.0);
        for p in [1e-8, 1e-3, 0.02, 0.9] {
            let x = allowed(1000.0, 0.55, 2.2, p);
            assert!((loss_at(x, 1000.0, 0.55, 2.2) / p - 1.0).abs() < 1e-9, "{p}");
        }
        assert_eq!(loss_at(0.0, 1000.0, 0.55, 2.2), 1.0);
    }
}
