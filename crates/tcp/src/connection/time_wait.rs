//! State to be kept of a connection in TIME-WAIT (RFC 9293 §3.6.1): two sequence numbers, a window and timestamps.

use super::{Connection, State};
use crate::segment::{Flags, Segment, Seq};
use crate::store::Store;
use crate::timestamps::Timestamps;
use skyhaul_base::{Duration, Instant};

/// State to be kept of a connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub struct TimeWaitState {
    /// Our next sequence number: a new connection between the same ends starts beyond it.
    pub next: Seq,
    /// The peer's next sequence number.
    pub expected: Seq,
    /// The window last announced, bytes.
    pub window: u32,
    stamps: Option<Timestamps>,
}

impl<S: Store> Connection<S> {
    /// Duration of TIME-WAIT (2 MSL).
    #[must_use]
    pub fn time_wait(&self) -> Duration {
        self.config.time_wait
    }
    /// Ends TIME-WAIT early: another connection takes its addresses and ports (RFC 6191). What has arrived can still be read.
    pub fn end_time_wait(&mut self) {
        if self.state == State::TimeWait {
            self.close();
        }
    }
    /// The state to keep once the connection is in TIME-WAIT.
    #[must_use]
    pub fn remains(&self) -> TimeWaitState {
        let window = self.receiver.announced().min(65_535 << self.our_scale);
        TimeWaitState {
            next: self.acknowledged(),
            expected: self.expected(),
            window: (window >> self.our_scale << self.our_scale) as u32,
            stamps: self.timestamps.then_some(self.stamps),
        }
    }
}

impl TimeWaitState {
    /// Whether a SYN with this sequence number and timestamp starts a new connection. It is not a late duplicate if
    /// its timestamp is newer than the last one of the old connection (RFC 6191 §2) or, without timestamps or with the
    /// same one, if its sequence number is (RFC 9293 §3.10.7.4).
    #[must_use]
    pub fn admits(&self, syn: Seq, timestamp: Option<u32>) -> bool {
        let beyond = syn.diff(self.expected) > 0;
        match (&self.stamps, timestamp) {
            (Some(ours), Some(val)) if val != ours.recent => !ours.is_old(val),
            _ => beyond,
        }
    }

    /// The acknowledgement in response to a late segment.
    #[must_use]
    pub fn answer(&self, now: Instant) -> Segment {
        Segment {
            seq: self.next,
            ack: self.expected,
            window: self.window,
            ts: self.stamps.as_ref().map(|s| s.stamp(now)),
            flags: Flags::ACK,
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_newer_timestamp_or_a_higher_number_begins_anew() {
        let mut stamps = Timestamps::new(&Config::modern());
        stamps.recent = 1000;
        let old =
            TimeWaitState { next: Seq(1), expected: Seq(u32::MAX - 5), window: 0, stamps: Some(stamps) };
        let (lower, higher) = (Seq(u32::MAX - 100), Seq(50));
        for (seq, ts, admitted) in [
            (lower, Some(1001), true),
            (lower, Some(1000), false),
            (higher, Some(1000), true),
            (higher, Some(999), false),
            (higher, None, true),
            (lower, None, false),
        ] {
            assert_eq!(old.admits(seq, ts), admitted, "{seq:?} {ts:?}");
        }
        let without = TimeWaitState { stamps: None, ..old };
        assert!(without.admits(higher, Some(1)) && !without.admits(lower, Some(5000)));
    }
}
