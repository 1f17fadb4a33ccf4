//! How many challenge acknowledgements a connection may send (RFC 5961 §7): blind segments must not make it send one
//! each.

use skyhaul_base::{Duration, Instant};

/// Challenge acknowledgements per [`PERIOD`]: the numbers that RFC 5961 §7 proposes, per connection.
const MOST: u8 = 10;
const PERIOD: Duration = Duration::from_secs(5);

/// Challenge acknowledgements since the present period began, and when it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Challenges {
    sent: u8,
    until: Instant,
}

impl Challenges {
    /// Whether one more may leave now; then it counts.
    #[cold]
    pub(crate) fn may_send(&mut self, now: Instant) -> bool {
        if now >= self.until {
            *self = Self { sent: 0, until: now + PERIOD };
        }
        let may = self.sent < MOST;
        self.sent += u8::from(may);
        may
    }
}
