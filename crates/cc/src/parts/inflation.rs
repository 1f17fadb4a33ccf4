//! Artificial inflation of the window during Reno and NewReno fast recovery (RFC 5681 §3.2, RFC 6582 §3.2).

/// The part of cwnd that is inflation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inflation(f64);

impl Inflation {
    /// Adds `n` segments to `cwnd`, for segments that have left the network.
    pub fn add(&mut self, cwnd: &mut f64, n: f64) {
        *cwnd += n;
        self.0 += n;
    }
    /// Removes up to `n` segments (those covered by a partial acknowledgement) and adds one for the retransmission
    /// it clocks out. Never removes more than was added.
    pub fn partial(&mut self, cwnd: &mut f64, n: f64) {
        let back = n.min(self.0);
        *cwnd -= back;
        self.0 -= back;
        self.add(cwnd, 1.0);
    }
    /// Removes all inflation.
    pub fn end(&mut self, cwnd: &mut f64) {
        *cwnd = self.without(*cwnd);
        self.0 = 0.0;
    }
    /// The window `cwnd` without its inflation, which is no capacity of the path: what a timeout within a recovery halves, and what
    /// an undo restores. At least one segment, also where the sum of both was rounded.
    #[must_use]
    pub fn without(self, cwnd: f64) -> f64 {
        (cwnd - self.0).max(1.0)
    }
    /// Forgets the inflation without changing a window that was set anew.
    pub fn clear(&mut self) {
        self.0 = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_taken_back() {
        let (mut cwnd, mut infl) = (15.0, Inflation::default());
        infl.add(&mut cwnd, 3.0);
        (0..8).for_each(|_| infl.add(&mut cwnd, 1.0));
        assert_eq!(cwnd, 26.0);
        // RFC 6582 §3.2 step 3: minus what is covered, plus one for the retransmission.
        infl.partial(&mut cwnd, 4.0);
        assert_eq!(cwnd, 23.0);
        infl.partial(&mut cwnd, 20.0);
        assert_eq!(cwnd, 16.0, "never below the window proper");
        infl.end(&mut cwnd);
        assert_eq!(cwnd, 15.0);
        infl.end(&mut cwnd);
        assert_eq!(cwnd, 15.0);
    }

    #[test]
    fn a_window_set_anew_keeps_its_value() {
        let (mut cwnd, mut infl) = (15.0, Inflation::default());
        infl.add(&mut cwnd, 5.0);
        cwnd = 1.0;
        infl.clear();
        infl.end(&mut cwnd);
        assert_eq!(cwnd, 1.0);
    }
}
