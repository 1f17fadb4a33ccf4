//! Path MTU black holes: paths that drop long packets without notice (RFC 8899 §4.3, RFC 4821 §7.7; Linux:
//! `tcp_mtu_probing` = 1).
//!
//! When a segment longer than 1024 bytes has timed out four times in a row, segments become shorter: first 1024
//! bytes, then 512, the minimum that we accept from ICMP messages. Since an outage looks the same, the full size is
//! soon tried again. The first acknowledged full segment ends the suspicion; a timeout before that returns to the
//! shorter size at once, and the next trial waits twice as long.

use skyhaul_base::{Duration, Instant};

/// Consecutive timeouts after which a black hole is suspected, as in Linux with `tcp_retries1` = 3.
const TIMEOUTS: u32 = 4;
/// Payload of the first shorter segments, bytes, and of those with which a path MTU search begins (RFC 4821 §7.2;
/// Linux: `tcp_base_mss`).
pub(crate) const BASE: u32 = 1024;
/// Payload of the shortest segments, bytes: those of a packet of 552 bytes, the smallest size accepted from an ICMP message.
/// Every outage leads to this size, so even smaller segments would be expensive.
const LEAST: u32 = 512;
/// Time before the first trial of the full size (*our choice*: an outage of the link is then usually over).
const FIRST_TRIAL: Duration = Duration::from_secs(10);
/// Maximum time between trials (RFC 8899 §5.1.1, `PMTU_RAISE_TIMER`).
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A suspected black hole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Payload of a full segment as negotiated, bytes, and of the shorter ones used instead.
    pub(crate) full: u32,
    pub(crate) short: u32,
    /// Time of the next trial of the full size, and the wait before it.
    trial_at: Instant,
    wait: Duration,
    trial: Option<Trial>,
}

/// A trial in progress: everything from a stream offset is sent in full size, as far as the application fills segments.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: u64,
    /// End of the first full segment that was sent. Shorter ones prove nothing, however many arrive.
    full_end: Option<u64>,
}

impl Hole {
    /// The retransmission timer has expired for the `backoff`-th time in a row; the oldest outstanding segment has `len`
    /// bytes, full ones have `smss`. Returns what replaces the suspicion `known`; `None` if there is no reason to shorten
    /// segments.
    pub(crate) fn suspect(
        known: Option<Self>,
        now: Instant,
        backoff: u32,
        len: u32,
        smss: u32,
    ) -> Option<Self> {
        let fresh = Self { full: smss, short: smss, trial_at: now, wait: FIRST_TRIAL, trial: None };
        let mut hole = known.unwrap_or(fresh);
        if hole.trial.take().is_some() {
            hole.wait = (hole.wait * 2).min(LONGEST_WAIT);
        } else if backoff >= TIMEOUTS && (known.is_some() || smss > BASE) {
            hole.short = if smss > BASE { BASE } else { LEAST };
        } else {
            return None;
        }
        hole.trial_at = now + hole.wait;
        (len > hole.short && hole.short < smss).then_some(hole)
    }
    /// The shorter size with which a path MTU search starts again, which keeps no suspicion: as in [`Self::suspect`], but
    /// without trials. `None` if there is no reason to shorten segments.
    pub(crate) fn shorter(backoff: u32, len: u32, smss: u32) -> Option<u32> {
        let short = if smss > BASE { BASE } else { LEAST };
        (backoff >= TIMEOUTS && len > short && short < smss).then_some(short)
    }
    /// A segment leaves.
    pub(crate) fn sent(&mut self, seq: u64, len: u32) {
        if let Some(trial) = &mut self.trial
            && trial.full_end.is_none()
            && seq >= trial.from
            && len >= self.full
        {
            trial.full_end = Some(seq + u64::from(len));
        }
    }
    /// Whether the acknowledgement of everything before `una` disproves the black hole: a full segment that was sent since
    /// the trial began has arrived.
    pub(crate) fn is_disproved(&self, una: u64) -> bool {
        self.trial.and_then(|trial| trial.full_end).is_some_and(|end| una >= end)
    }
    /// Whether it is time to try the full size again.
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        self.trial.is_none() && now >= self.trial_at
    }
    /// Everything from the stream offset `from` is sent in full size.
    pub(crate) fn begin_trial(&mut self, from: u64) {
        self.trial = Some(Trial { from, full_end: None });
    }
}
