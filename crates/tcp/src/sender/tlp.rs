//! Tail loss probe (RFC 8985 §7): when nothing comes back for two round trips, one segment is sent to provoke an
//! answer, so that RACK finds what is lost before the retransmission timer does.

use super::{Arrival, Out, Phase, Sender, Sign};
use crate::store::Store;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{CongestionControl, Signal};

/// No offset: beyond every acknowledgement.
const NONE: u64 = u64::MAX;

/// State of the tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tlp {
    /// `TLP.end_seq`: `SND.NXT` after the probe whose fate is open; [`NONE`] without one.
    end_seq: u64,
    /// `TLP.is_retrans`: it repeated a segment.
    is_retrans: bool,
    /// The RTT was measured since the last probe, or there was none yet. At most one probe per measurement.
    pub(super) measured: bool,
    /// To be sent now, before anything else is forced.
    pub(super) due: bool,
}

impl Tlp {
    pub(super) const NEW: Self = Self { end_seq: NONE, is_retrans: false, measured: true, due: false };

    /// §7.1: a recovery begins; what became of the probe is its business.
    pub(super) fn reset(&mut self) {
        (self.end_seq, self.is_retrans, self.due) = (NONE, false, false);
    }

    /// §7.4.2: whether the acknowledgement proves that the probe repaired a loss.
    fn repaired(&mut self, ack: u64, duplicate: Option<(u64, u64)>, bare: bool) -> bool {
        let end = self.end_seq;
        if ack < end {
            return false;
        }
        // The probe was new data, or both copies arrived: the receiver says so by DSACK, or, without it, by one
        // acknowledgement too many.
        let harmless = !self.is_retrans || duplicate.is_some_and(|d| d.1 == end);
        let beyond = ack > end;
        if harmless || beyond || bare {
            self.end_seq = NONE;
        }
        beyond && !harmless
    }
}

impl<S: Store> Sender<S> {
    /// A probe may be sent, now or later (§7.2, §7.3).
    fn may_probe(&self) -> bool {
        self.config.tail_loss_probe
            && self.rack.is_some()
            && self.phase == Phase::Open
            && self.tlp.end_seq == NONE
            && self.tlp.measured
            && self.sb.sacked() == 0
            && !self.sb.is_empty()
    }

    /// §7.2: new data left or was acknowledged, so the probe timer starts anew.
    #[inline(never)]
    pub(super) fn arm_probe(&mut self, now: Instant) {
        if self.settling() || !self.may_probe() {
            return;
        }
        let wait = match self.rtt.srtt() {
            Some(srtt) if self.sb.len() == 1 => srtt * 2 + self.max_ack_delay(),
            Some(srtt) => srtt * 2,
            None => Duration::from_secs(1),
        };
        self.rack_at = (now + wait).min(self.rto_at);
        self.rack_probes = true;
    }

    /// `TLP.max_ack_delay`: how long the peer may hold back the acknowledgement of a lone segment. Nothing tells; both
    /// ends of a flow are configured alike.
    fn max_ack_delay(&self) -> Duration {
        if self.config.delayed_ack.every > 1 { self.config.delayed_ack.delay } else { Duration::ZERO }
    }

    /// The probe timer expired (§7.3). Whether or not a probe leaves, the retransmission timer starts anew.
    pub(super) fn on_probe_timer(&mut self, now: Instant) {
        if !self.sb.is_empty() {
            self.rto_at = now + self.rtt.rto();
        }
        self.tlp.due = self.may_probe();
        self.force_head |= self.tlp.due;
    }

    /// New data if there is some and the peer has room, whatever the congestion window says; otherwise the last
    /// segment again.
    #[cold]
    pub(super) fn send_probe(&mut self, now: Instant) -> Option<Out> {
        self.tlp.due = false;
        if !self.may_probe() {
            return None;
        }
        self.tlp.measured = false;
        self.counters.loss_probes += 1;
        let out = match self.new_len() {
            Ok(len) => {
                self.tlp.is_retrans = false;
                self.send_new_by_time(now, len)
            }
            Err(_) => {
                self.tlp.is_retrans = true;
                self.resend(now, self.sb.len() - 1)
            }
        };
        self.tlp.end_seq = self.sb.max();
        Some(out)
    }

    /// §7.4: what the acknowledgement says about the probe; `acked` is what it acknowledged, bytes.
    pub(super) fn probe_acked(&mut self, now: Instant, a: &Arrival<'_>, dsack: bool, bare: bool, acked: u64) {
        let duplicate = if dsack { a.blocks.first().copied() } else { None };
        // The probe repeated the segment that ends here, and the copy sent before it was lost.
        let repaired = (self.tlp.end_seq.saturating_sub(1), 1);
        if !self.tlp.repaired(a.ack, duplicate, bare) {
            return;
        }
        // The loss left no trace but this, and the answer is that of a fast recovery which is over at once.
        self.counters.recoveries += 1;
        self.refresh(now);
        // FlightSize as the acknowledgement found it.
        self.path.in_flight += acked as f64 / self.smss_f();
        self.judge_segment(now, Sign::Acks, repaired, |cc, cx| cc.on_congestion(cx, Signal::Loss));
        self.undo.forget();
        self.prober.begin_epoch();
        self.call(now, |cc, cx| cc.on_recovered(cx));
    }
}
