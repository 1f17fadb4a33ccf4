//! Header prediction: the fast path of an established connection for what a transfer in one direction consists of, data in
//! order and acknowledgements of it (Jacobson's prediction; with timestamps RFC 7323 §5).
//!
//! | fast | slow | what cannot happen here |
//! |---|---|---|
//! | `take_plain`: state, position | `handle`, `rcv_offset`, `acceptable` (arrive) | another state, a gap, data beyond the window |
//! | `take_plain`: timestamps | `check_timestamps`, `take_timestamp` (arrive) | an old or a missing timestamp |
//! | `take_data` | `established_segment` (arrive) | news for the sending half |
//! | `take_ack` | `acknowledgement` (arrive) | blocks, ECE, an ACK ratio, an outdated window |
//! | `plain_head` | `segment`, `data_segment` (depart) | FIN, marks, ECN, an ACK ratio, wave numbers, PSH |

use super::{Connection, State};
use crate::segment::{Head, Mark};
use crate::sender::OutgoingSegment;
use crate::store::Store;
use skyhaul_base::{Duration, Instant};

impl<S: Store> Connection<S> {
    /// Handles a segment with [`Head::is_plain_data`] or [`Head::is_plain_ack`] and without extras, if it is at `RCV.NXT` and
    /// neither half of the connection has more to do than the fast path does.
    /// Otherwise declines without side effects: call [`Self::handle`].
    #[inline]
    pub fn take_plain(&mut self, now: Instant, head: &Head) -> bool {
        let nxt = self.receiver.next_expected();
        let ordinary = self.state == State::Established && !self.ecn.agreed && self.ack_ratio.is_none();
        if !ordinary || head.seq != self.irs.add(nxt as u32) {
            return false;
        }
        let stamp = head.ts().filter(|_| self.timestamps);
        let acceptable = match stamp {
            Some((val, _)) => !self.stamps.is_old(val),
            None => !self.timestamps,
        };
        if !acceptable {
            return false;
        }
        let taken = if head.len > 0 {
            self.take_data(now, head)
        } else {
            let echo = stamp.and_then(|(_, echo)| self.stamps.rtt(now, echo));
            self.take_ack(now, nxt, head, echo)
        };
        if !taken {
            return false;
        }
        if let (Some((val, _)), true) = (stamp, nxt <= self.last_ack_sent) {
            self.stamps.recent = val;
            self.stamped_at = now;
        }
        self.silence.heard = now;
        true
    }

    /// Takes the next data in order.
    #[inline]
    fn take_data(&mut self, now: Instant, head: &Head) -> bool {
        let taken = self.receiver.admits_in_order(head.len)
            && self.sender.nothing_new(self.iss, head.ack, head.window);
        if taken {
            self.receiver.take_in_order(now, head.len);
        }
        taken
    }

    /// Takes an acknowledgement at `RCV.NXT`, which is `nxt`.
    #[inline]
    fn take_ack(&mut self, now: Instant, nxt: u64, head: &Head, echo: Option<Duration>) -> bool {
        let Some(ack) = self.snd_offset(head.ack) else { return false };
        let fresh = self.wl1 < nxt || (self.wl1 == nxt && self.wl2 <= ack);
        let taken = fresh && self.sender.acknowledge_plain(now, ack, head.window.into(), echo);
        if taken {
            // SND.WL1 and SND.WL2.
            (self.wl1, self.wl2) = (nxt, ack);
        }
        taken
    }

    /// Whether segments carry nothing but data, acknowledgement, window and timestamps.
    #[inline]
    pub(super) fn sends_plain(&self) -> bool {
        !(self.ecn.agreed
            || self.ack_ratio.is_some()
            || self.marks_waves
            || self.config.segment_limit.is_some()
            || self.receiver.has_more_to_say())
    }

    /// The segment of new data, or an acknowledgement without data, if [`Self::sends_plain`].
    #[inline]
    pub(super) fn plain_head(&mut self, now: Instant, out: Option<&OutgoingSegment>) -> Head {
        self.last_ack_sent = self.receiver.next_expected();
        let (seq, len) = out.map_or((self.sender.max(), 0), |out| (out.seq, out.len));
        let mut head = Head {
            seq: self.iss.add(seq as u32),
            ack: self.irs.add(self.last_ack_sent as u32),
            len,
            window: self.window_to_announce(),
            ..Head::ACK
        };
        if let Some(out) = out {
            head.set_mark(Mark::None, None, out.low_priority);
            self.receiver.carried();
        }
        if self.timestamps {
            head.set_ts(self.stamps.stamp(now));
        }
        head
    }
}
