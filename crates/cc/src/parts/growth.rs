//! Slow start and congestion avoidance of the Reno family (RFC 5681 §3.1, RFC 3465), and its reduction.

use crate::event::{Path, Phase};
use crate::rules::{CaGrowth, HalvingBase, InitialSsthresh, Rules};

/// The window after `acked` segments were acknowledged.
#[must_use]
pub fn grown(rules: &Rules, path: &Path, cwnd: f64, ssthresh: f64, acked: f64) -> f64 {
    let grown = match rules.growth {
        CaGrowth::PerAck if cwnd < ssthresh => cwnd + 1.0,
        CaGrowth::PerAck => cwnd + 1.0 / cwnd,
        // RFC 3465 §2.2, §2.3: at most L = 2 segments per acknowledgement in slow start, L = 1 after a timeout,
        // when one acknowledgement may cover what arrived long before.
        CaGrowth::ByteCounting if cwnd < ssthresh => {
            let most = if path.phase == Phase::Loss { 1.0 } else { 2.0 };
            cwnd + acked.min(most).min((ssthresh - cwnd).max(1.0))
        }
        CaGrowth::ByteCounting => cwnd + acked.min(cwnd) / cwnd,
    };
    capped(rules, path, grown, cwnd)
}

/// Applies the receiver-window cap: growth stops there, but a window already above is not cut.
#[must_use]
pub fn capped(rules: &Rules, path: &Path, grown: f64, before: f64) -> f64 {
    if rules.cap_at_rwnd { grown.min(path.rwnd.max(before)).max(1.0) } else { grown }
}

/// Half of the window that a loss is attributed to, at least two segments (RFC 5681 eq. 4).
#[must_use]
pub fn half(rules: &Rules, path: &Path, cwnd: f64) -> f64 {
    let base = match rules.halving_base {
        HalvingBase::Window => cwnd.min(path.rwnd),
        HalvingBase::FlightSize => path.in_flight,
    };
    let half = if rules.integer_halving { skyhaul_base::math::floor(base / 2.0) } else { base / 2.0 };
    half.max(2.0)
}

/// Initial slow start threshold.
#[must_use]
pub fn initial_ssthresh(rules: &Rules, path: &Path) -> f64 {
    match rules.initial_ssthresh {
        InitialSsthresh::Infinite => f64::INFINITY,
        InitialSsthresh::Rwnd => path.rwnd,
        InitialSsthresh::Segments(n) => n,
    }
}
