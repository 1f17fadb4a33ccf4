//! Classification by delay (Tobe, Tamura, Molano, Ghosh, Tokuda, "Achieving moderate fairness for UDP flows by
//! path-status classification", LCN 2000, called *Spike* there).
//!
//! *Idea*: queues fill before they drop. A loss while the delay is high, in a *spike*, is congestion; otherwise it
//! is an error. *Read as*: a spike begins when the delay exceeds `min + start · (max - min)` and ends when it falls
//! below `min + end · (max - min)`, with the minimum and maximum delay so far, `start = 1/2` and `end = 1/3`. The
//! paper was not available: rule and constants are *confirmed* by a published program that cites Cen, Cosman,
//! Voelker ("End-to-end differentiation of congestion and wireless losses", IEEE/ACM Trans. Networking 11(5),
//! 2003). These papers use the relative one-way trip time, for which sender and receiver timestamp packets. A sender
//! alone has only the RTT, so queues on the return path count as well. The RTT used is that of the newest segment that
//! an acknowledgement reports.

use skyhaul_base::Duration;

/// The range of the RTTs seen, and whether the current RTT is high.
#[derive(Clone, Debug)]
pub(crate) struct Spike {
    start: f64,
    end: f64,
    /// Minimum and maximum RTT so far.
    range: Option<(Duration, Duration)>,
    /// The path is in a spike.
    high: bool,
}

impl Spike {
    pub(crate) fn new(start: f64, end: f64) -> Self {
        Self { start, end, range: None, high: false }
    }

    /// The RTT of the newest segment of an acknowledgement, if it was sent once.
    pub(crate) fn measured(&mut self, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        let (least, most) = self.range.map_or((rtt, rtt), |(l, m)| (l.min(rtt), m.max(rtt)));
        self.range = Some((least, most));
        let level = |share: f64| least + (most - least).mul_f64(share);
        self.high = if self.high { rtt >= level(self.end) } else { rtt > level(self.start) };
    }

    /// Whether the path is in a spike.
    pub(crate) fn is_high(&self) -> bool {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_begins_at_half_of_the_range_and_ends_at_a_third() {
        let mut s = Spike::new(0.5, 1.0 / 3.0);
        assert!(!s.is_high());
        let after = |s: &mut Spike, ms| {
            s.measured(Some(Duration::from_millis(ms)));
            s.is_high()
        };
        assert!(!after(&mut s, 100), "one value is no range");
        assert!(after(&mut s, 160), "beyond half of 100 to 160");
        assert!(after(&mut s, 130) && after(&mut s, 120), "not below a third");
        assert!(!after(&mut s, 119));
        assert!(!after(&mut s, 130), "half is not beyond half");
        assert!(after(&mut s, 131));
        s.measured(None);
        assert!(s.is_high());
    }
}
