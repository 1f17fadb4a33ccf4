//! Artificial inflation of the window during Reno and NewReno fast recovery (RFC 5681 §3.2, RFC 6582 §3.2).

/// How much of cwnd is inflation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inflation(f64);

impl Inflation {
    /// Adds `n` segments to `cwnd` for segments that left the network.
    pub fn add(&mut self, cwnd: &mut f64, n: f64) {
        *cwnd += n;
        self.0 += n;
    }
    /// Takes back at most `n` segments (what a partial acknowledgement covers), adds one back for the
    /// retransmission it clocks out. `n` above what was added takes back only that.
    pub fn partial(&mut self, cwnd: &mut f64, n: f64) {
        let back = n.min(self.0);
        *cwnd -= back;
        self.0 -= back;
        self.add(cwnd, 1.0);
    }
    /// Takes everything back.
    pub fn end(&mut self, cwnd: &mut f64) {
        *cwnd -= self.0;
        self.0 = 0.0;
    }
    /// Forgets the inflation without touching a window that was set anew.
    pub fn clear(&mut self) {
        self.0 = 0.0;
    }
}
