//! Slow start and congestion avoidance of the Reno family (RFC 5681 §3.1, RFC 3465), and its reduction.

use crate::event::{Path, Phase};
use crate::rules::{CaGrowth, HalvingBase, InitialSsthresh, Rules};

/// The window after `acked` segments were acknowledged.
#[inline(always)]
#[must_use]
pub fn grown(rules: &Rules, path: &Path, cwnd: f64, ssthresh: f64, acked: f64) -> f64 {
    let grown = match rules.growth {
        CaGrowth::PerAck => per_ack(cwnd, ssthresh),
        // RFC 3465 §2.2.
        CaGrowth::Abc if cwnd < ssthresh => {
            cwnd + acked.min(abc_limit(rules, path)).min((ssthresh - cwnd).max(1.0))
        }
        // RFC 3465 §2.1, without its byte counter: each acknowledgement adds its share of the segment added per
        // window. Since the window grows meanwhile, the sum is less than a segment by at most 1/cwnd.
        CaGrowth::Abc => cwnd + acked.min(cwnd) / cwnd,
    };
    capped(rules, path, grown, cwnd)
}

/// One segment per acknowledgement in slow start, one per window of them afterwards.
#[inline(always)]
#[must_use]
pub fn per_ack(cwnd: f64, ssthresh: f64) -> f64 {
    if cwnd < ssthresh { cwnd + 1.0 } else { cwnd + 1.0 / cwnd }
}

/// Maximum segments that one acknowledgement adds in slow start with byte counting (RFC 3465 §2.3): one in the slow
/// start after a timeout, when an acknowledgement may cover data that arrived long before.
#[inline(always)]
#[must_use]
pub fn abc_limit(rules: &Rules, path: &Path) -> f64 {
    if path.after_timeout || path.phase == Phase::Loss { 1.0 } else { rules.abc_limit }
}

/// Applies the receive-window cap if the preset has one.
#[inline(always)]
#[must_use]
pub fn capped(rules: &Rules, path: &Path, grown: f64, before: f64) -> f64 {
    if rules.cap_at_rwnd { within_rwnd(path, grown, before) } else { grown }
}

/// Growth stops at the receive window, but a window already above it is not reduced.
#[inline(always)]
#[must_use]
pub fn within_rwnd(path: &Path, grown: f64, before: f64) -> f64 {
    grown.min(path.rwnd.max(before)).max(1.0)
}

/// Half of the window at the time of the loss, at least two segments (RFC 5681 eq. 4).
#[must_use]
pub fn half(rules: &Rules, path: &Path, cwnd: f64) -> f64 {
    kept(rules, path, cwnd, 0.5)
}

/// The fraction `keep` of the window at the time of the loss, at least two segments.
#[must_use]
pub fn kept(rules: &Rules, path: &Path, cwnd: f64, keep: f64) -> f64 {
    fraction(rules.halving_base, rules.integer_halving, path, cwnd, keep)
}

/// The fraction `keep` of the quantity `base`, at least two segments; `whole` rounds down to whole segments.
///
/// If some of the data in flight was SACKed or found lost, the fraction is never more than the window: FlightSize includes
/// that data, and RFC 5681 eq. 4 is an upper limit. After a timeout this does not hold, since the window is then that of a
/// slow start and does not reflect the data on the path.
#[must_use]
pub fn fraction(base: HalvingBase, whole: bool, path: &Path, cwnd: f64, keep: f64) -> f64 {
    let base = match base {
        HalvingBase::Window => cwnd.min(path.rwnd),
        HalvingBase::FlightSize => path.in_flight(),
    };
    let kept = if whole { skyhaul_base::math::floor(base * keep) } else { base * keep };
    let fast = path.phase != Phase::Loss && !path.after_timeout;
    let most = if fast && path.pipe_bytes < path.in_flight_bytes { cwnd } else { f64::INFINITY };
    kept.min(most).max(2.0)
}

/// The peer's window as a slow start threshold. A closed window sets no limit.
#[must_use]
pub fn peers_window(path: &Path) -> f64 {
    if path.rwnd < 1.0 { f64::INFINITY } else { path.rwnd }
}

/// Initial slow start threshold.
#[must_use]
pub fn initial_ssthresh(rules: &Rules, path: &Path) -> f64 {
    match rules.initial_ssthresh {
        InitialSsthresh::Infinite => f64::INFINITY,
        InitialSsthresh::Rwnd => peers_window(path),
        InitialSsthresh::Segments(n) => n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    fn grow(rules: &Rules, cwnd: f64, ssthresh: f64, acked: f64) -> f64 {
        grown(rules, &path(64.0), cwnd, ssthresh, acked)
    }

    #[test]
    fn per_ack_growth_does_not_look_at_what_is_acknowledged() {
        let r = &Rules::NS2_2001;
        assert_eq!(grow(r, 4.0, 8.0, 1.0), 5.0);
        assert_eq!(grow(r, 4.0, 8.0, 3.0), 5.0);
        assert_eq!(grow(r, 8.0, 8.0, 2.0), 8.125);
    }

    #[test]
    fn byte_counting_follows_rfc_3465() {
        let r = &Rules::RFC;
        assert_eq!(grow(r, 4.0, 80.0, 0.5), 4.5);
        assert_eq!(grow(r, 4.0, 80.0, 2.0), 6.0);
        assert_eq!(grow(r, 4.0, 80.0, 7.0), 6.0, "L = 2");
        assert_eq!(grow(r, 7.5, 8.0, 2.0), 8.5, "beyond ssthresh slowly");
        assert_eq!(grow(r, 8.0, 8.0, 2.0), 8.25);
        assert_eq!(grow(r, 8.0, 8.0, 80.0), 9.0, "one segment per window at most");
        let repairing = Path { phase: Phase::Loss, ..path(64.0) };
        assert_eq!(grown(r, &repairing, 4.0, 80.0, 7.0), 5.0, "L = 1");
        let after = Path { after_timeout: true, ..path(64.0) };
        assert_eq!(grown(r, &after, 4.0, 80.0, 7.0), 5.0, "L = 1 until the threshold");
        assert_eq!(grown(r, &after, 8.0, 8.0, 2.0), 8.25, "avoidance as ever");
        let one = &Rules { abc_limit: 1.0, ..*r };
        assert_eq!(grow(one, 4.0, 80.0, 2.0), 5.0);
        assert_eq!(grow(one, 4.0, 80.0, 0.5), 4.5, "less than counting acknowledgements");
        assert_eq!(grow(one, 8.0, 8.0, 2.0), 8.25);
    }

    #[test]
    fn the_cap_stops_growth_and_cuts_nothing() {
        let capped = Rules { cap_at_rwnd: true, ..Rules::NS2_2001 };
        assert_eq!(grow(&capped, 63.5, 100.0, 1.0), 64.0);
        assert_eq!(grow(&capped, 64.0, 100.0, 1.0), 64.0);
        assert_eq!(grow(&capped, 70.0, 100.0, 1.0), 70.0, "the peer's window shrank meanwhile");
        assert_eq!(grow(&Rules::NS2_2001, 64.0, 100.0, 1.0), 65.0);
    }

    #[test]
    fn half_of_what() {
        let mut p = path(64.0);
        p.set_in_flight(21.0);
        p.set_pipe(21.0);
        let of = |halving_base, integer_halving, cwnd| {
            half(&Rules { halving_base, integer_halving, ..Rules::RFC }, &p, cwnd)
        };
        assert_eq!(of(HalvingBase::Window, true, 31.0), 15.0);
        assert_eq!(of(HalvingBase::Window, false, 31.0), 15.5);
        assert_eq!(of(HalvingBase::Window, true, 100.0), 32.0, "the peer's window limits");
        assert_eq!(of(HalvingBase::FlightSize, true, 31.0), 10.0);
        assert_eq!(of(HalvingBase::FlightSize, false, 31.0), 10.5);
        assert_eq!(of(HalvingBase::Window, true, 3.0), 2.0, "at least two segments");
        assert_eq!(of(HalvingBase::FlightSize, true, 7.0), 10.0, "nothing says that some of it arrived");
        p.set_pipe(7.0);
        let of =
            |p: &Path, cwnd| half(&Rules { halving_base: HalvingBase::FlightSize, ..Rules::RFC }, p, cwnd);
        assert_eq!(of(&p, 7.0), 7.0, "a reduction is no raise");
        assert_eq!(of(&p, 1.0), 2.0, "at least two segments");
        assert_eq!(of(&Path { after_timeout: true, ..p }, 7.0), 10.5, "slow start");
    }

    #[test]
    fn initial_thresholds() {
        let of = |initial_ssthresh| {
            super::initial_ssthresh(&Rules { initial_ssthresh, ..Rules::RFC }, &path(64.0))
        };
        assert_eq!(of(InitialSsthresh::Infinite), f64::INFINITY);
        assert_eq!(of(InitialSsthresh::Rwnd), 64.0);
        assert_eq!(peers_window(&path(0.0)), f64::INFINITY);
        assert_eq!(of(InitialSsthresh::Segments(20.0)), 20.0);
    }
}
