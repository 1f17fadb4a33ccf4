//! RACK (RFC 8985 §6): a segment is lost when one sent later has been delivered and enough time has passed for
//! reordering to settle.
//!
//! The state machine knows sequence offsets, times and the scoreboard, but neither windows nor timers. Its caller
//! reports transmissions and acknowledgements, and learns when to call again.

use super::scoreboard::{Order, Scoreboard};
use crate::config::Config;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use skyhaul_base::{Duration, Instant};

/// Recoveries without a DSACK after which the reordering window returns to a quarter of the minimum RTT (§6.2 step
/// 4).
const PERSIST: u32 = 16;

/// Length of the minimum RTT filter. §6.2 step 1 asks for a window, so that a longer path after a handover is
/// noticed; Linux uses five minutes.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The minimum RTT of about the last [`MIN_RTT_WINDOW`]: of its current half and the half before.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    current: Duration,
    previous: Duration,
    since: Instant,
}

impl MinRtt {
    const NEVER: Duration = Duration::from_nanos(u64::MAX);

    fn sample(&mut self, now: Instant, rtt: Duration) {
        if now - self.since >= MIN_RTT_WINDOW / 2 {
            // After a pause of a whole window, old values are discarded.
            let stale = now - self.since >= MIN_RTT_WINDOW;
            self.previous = if stale { Self::NEVER } else { self.current };
            self.current = Self::NEVER;
            self.since = now;
        }
        self.current = self.current.min(rtt);
    }

    fn get(&self) -> Option<Duration> {
        let min = self.current.min(self.previous);
        (min < Self::NEVER).then_some(min)
    }
}

/// A segment delivered by the current acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    end: u64,
    sent: Instant,
    retransmitted: bool,
    cumulative: bool,
}

/// Facts about an acknowledgement beyond the data it covers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RackReport {
    /// The acknowledgement reports a duplicate (RFC 2883).
    pub dsack: bool,
    /// RTT from the echoed timestamp.
    pub echo: Option<Duration>,
    /// The acknowledgement answers a low-priority probe, so it gives no RTT sample.
    pub probe: bool,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// A fast recovery or the repair after a timeout continues after the acknowledgement.
    pub recovering: bool,
    /// The acknowledgement ends a recovery.
    pub exiting: bool,
}

/// Time-based loss detection (RFC 8985).
#[derive(Clone, Debug)]
pub struct Rack {
    order: Order,
    /// Declared lost and not retransmitted: absolute indices, lowest first; some may be outdated.
    awaiting: BinaryHeap<Reverse<u64>>,
    /// Delivered by the current acknowledgement.
    fresh: Vec<Delivered>,
    /// Indices newly SACKed by the current acknowledgement.
    newly_sacked: Vec<usize>,
    /// `RACK.xmit_ts` and `RACK.end_seq`: send time and end of the segment sent last among those delivered.
    latest: (Instant, u64),
    rtt: Duration,
    min_rtt: MinRtt,
    srtt: Option<Duration>,
    fack: u64,
    segs_sacked: u32,
    reordering_seen: bool,
    reo_wnd: Duration,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    dsack_round: Option<u64>,
    /// Bytes of retransmissions declared lost and not yet taken.
    lost_again: u64,
    /// Losses declared and not yet taken: index, bytes, and total bytes ever lost at that time.
    pub(crate) losses: Vec<(usize, u32, u64)>,
    dup_thresh: u32,
    /// Unit of the timestamp option, the resolution of [`RackReport::echo`]; never zero.
    tick: Duration,
}

impl Rack {
    /// Initial state, before anything is sent.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            order: Order::new(),
            awaiting: BinaryHeap::new(),
            fresh: Vec::new(),
            newly_sacked: Vec::new(),
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            min_rtt: MinRtt { current: MinRtt::NEVER, previous: MinRtt::NEVER, since: Instant::ZERO },
            srtt: None,
            fack: 0,
            segs_sacked: 0,
            reordering_seen: false,
            reo_wnd: Duration::ZERO,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            dsack_round: None,
            lost_again: 0,
            losses: Vec::new(),
            dup_thresh: config.dup_thresh,
            tick: config.tick(),
        }
    }

    /// The outstanding segments were cut anew: what is known of single segments is forgotten, what is known of the path stays.
    pub(crate) fn restart(&mut self, board: Option<&Scoreboard>) {
        self.order = Order::new();
        self.awaiting.clear();
        self.fresh.clear();
        self.newly_sacked.clear();
        self.losses.clear();
        self.latest = (Instant::ZERO, 0);
        (self.fack, self.segs_sacked, self.lost_again) = (0, 0, 0);
        if let Some(board) = board {
            self.watch(board);
        }
    }

    /// The smallest recent RTT, of segments sent once and of the handshake. If the peer delayed every acknowledgement,
    /// the RTT contains that delay.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// Whether reordering was seen: a segment, never retransmitted, was delivered out of order.
    #[must_use]
    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }
    /// The reordering window as last computed.
    #[must_use]
    pub fn reo_wnd(&self) -> Duration {
        self.reo_wnd
    }
    /// Segments selectively acknowledged.
    #[must_use]
    pub fn segs_sacked(&self) -> u32 {
        self.segs_sacked
    }
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.order.steps
    }
    /// Segments in flight, in the order of transmission.
    #[cfg(test)]
    pub(crate) fn in_order(&self) -> impl Iterator<Item = u64> + '_ {
        core::iter::successors(self.order.head(), |s| self.order.after(*s))
    }
    /// Bytes of retransmissions declared lost since the last call.
    pub(crate) fn take_lost_again(&mut self) -> u64 {
        core::mem::take(&mut self.lost_again)
    }

    /// Memory use that grows with the outstanding data, bytes.
    pub(crate) fn held(&self) -> usize {
        self.order.held()
            + self.awaiting.capacity() * size_of::<Reverse<u64>>()
            + self.fresh.capacity() * size_of::<Delivered>()
            + self.newly_sacked.capacity() * size_of::<usize>()
            + self.losses.capacity() * size_of::<(usize, u32, u64)>()
    }
    /// Releases unused memory and outdated entries of `board`.
    pub(crate) fn trim(&mut self, board: &Scoreboard) {
        self.awaiting.retain(|&Reverse(segment)| board.awaits_repair(segment));
        self.awaiting.shrink_to_fit();
        self.order.trim();
        self.fresh.shrink_to_fit();
        self.newly_sacked.shrink_to_fit();
        self.losses.shrink_to_fit();
    }

    // ----- §6.1 ---------------------------------------------------------------------------------------------

    /// The segment at `index` was sent, for the first time or again.
    #[inline(never)]
    pub(crate) fn sent(&mut self, board: &Scoreboard, index: usize) {
        self.order.sent(board, board.base() + index as u64);
    }

    /// Adds an RTT from another source, such as the handshake (§6.2 step 1: of all measurements).
    pub(crate) fn measured(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt.sample(now, rtt);
    }

    /// Starts on an existing scoreboard: all its segments are in flight.
    pub(crate) fn watch(&mut self, board: &Scoreboard) {
        self.order = Order::beginning_at(board.base());
        (0..board.len()).for_each(|i| self.sent(board, i));
    }

    /// Sends a new segment (for tests and tools that drive a scoreboard alone).
    pub fn send(&mut self, board: &mut Scoreboard, span: u32, now: Instant) {
        board.push(span, false, now);
        self.sent(board, board.len() - 1);
    }

    /// Retransmits the segment at `index` (for tests and tools).
    pub fn resend(&mut self, board: &mut Scoreboard, index: usize, now: Instant) {
        board.retransmit(index, now);
        self.sent(board, index);
    }

    // ----- §6.2 ---------------------------------------------------------------------------------------------

    /// Processes the segments that the cumulative acknowledgement `ack` is about to remove from the scoreboard.
    #[inline(never)]
    pub(crate) fn cumulative(&mut self, board: &Scoreboard, ack: u64) {
        let mut n = 0;
        while let Some(s) = board.item(n).filter(|s| s.end() <= ack) {
            if s.sacked {
                self.segs_sacked -= 1;
            } else {
                self.fresh.push(Delivered {
                    end: s.end(),
                    sent: s.last_sent,
                    retransmitted: s.rtx_count > 0,
                    cumulative: true,
                });
            }
            n += 1;
        }
        self.order.popped(n);
    }

    /// The segment at `index` was selectively acknowledged.
    #[inline(never)]
    pub(crate) fn selective(&mut self, index: usize) {
        self.newly_sacked.push(index);
    }

    /// To be called when an acknowledgement has been entered into the scoreboard: steps 1 to 5. Returns when to
    /// call [`Self::detect`] again.
    pub(crate) fn acknowledged(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        r: &RackReport,
    ) -> Option<Instant> {
        self.enter(board, now, r);
        self.detect(board, now, r.recovering)
    }

    /// [`Self::acknowledged`] for loss detection by SNACK alone: the receiver reports `hole` as missing. The data is lost
    /// unless its retransmission may still be in flight: one sent less than an RTT ago, or after everything that has
    /// arrived.
    pub(crate) fn report_missing(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        r: &RackReport,
        hole: Option<(u64, u64)>,
    ) {
        self.enter(board, now, r);
        let Some((from, to)) = hole else { return };
        let patience = r.srtt.unwrap_or(self.rtt);
        let mut index = board.index_of(from);
        while let Some(s) = board.item(index).filter(|s| s.seq < to) {
            let sent = (s.last_sent, s.end());
            let under_way = s.rtx_count > 0 && (s.last_sent + patience > now || sent > self.latest);
            if !s.sacked && !under_way && !board.awaits_repair(board.base() + index as u64) {
                self.lose(board, index);
            }
            index += 1;
        }
    }

    /// Steps 1 to 4.
    fn enter(&mut self, board: &mut Scoreboard, now: Instant, r: &RackReport) {
        for i in 0..self.newly_sacked.len() {
            let index = self.newly_sacked[i];
            self.segs_sacked += 1;
            self.order.remove(board.base() + index as u64);
            if let Some(s) = board.item(index) {
                self.fresh.push(Delivered {
                    end: s.end(),
                    sent: s.last_sent,
                    retransmitted: s.rtx_count > 0,
                    cumulative: false,
                });
            }
        }
        self.newly_sacked.clear();
        self.srtt = r.srtt;
        if !r.probe {
            self.update(now, r.echo);
            self.detect_reordering();
        }
        self.fresh.clear();
        self.adapt(board.una(), board.max(), r);
    }

    /// Enters an acknowledgement and its blocks (for tests and tools that drive a scoreboard alone).
    pub fn apply(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        ack: u64,
        blocks: &[(u64, u64)],
        r: &RackReport,
    ) -> Option<Instant> {
        self.cumulative(board, ack);
        board.ack(ack);
        for &(from, to) in blocks {
            board.sack(from, to, |i| self.selective(i));
        }
        self.acknowledged(board, now, r)
    }

    /// Steps 1 and 2: the minimum RTT, and the segment sent last among those delivered.
    fn update(&mut self, now: Instant, echo: Option<Duration>) {
        for s in self.fresh.iter().filter(|s| !s.retransmitted) {
            self.min_rtt.sample(now, now - s.sent);
        }
        let min_rtt = self.min_rtt.get();
        let ticks = |t: Instant| t.as_nanos() / self.tick.as_nanos();
        let newest = self.fresh.iter().filter(|s| {
            if !s.retransmitted {
                return true;
            }
            // Was the original delivered, not the retransmission? The echo is that of the segment that advanced `RCV.NXT`
            // (RFC 7323 §4.3). For a SACKed segment the echo says nothing, and the RTT alone decides.
            let before = |e: Duration| e.as_nanos() / self.tick.as_nanos() > ticks(now) - ticks(s.sent);
            !(s.cumulative && echo.is_some_and(before)) && min_rtt.is_none_or(|m| now - s.sent >= m)
        });
        if let Some(newest) = newest.map(|s| (s.sent, s.end)).max() {
            self.rtt = now - newest.0;
            self.latest = self.latest.max(newest);
        }
    }

    /// Step 3.
    fn detect_reordering(&mut self) {
        self.fresh.sort_unstable_by_key(|s| s.end);
        for s in &self.fresh {
            if s.end > self.fack {
                self.fack = s.end;
            } else if s.end < self.fack && !s.retransmitted {
                self.reordering_seen = true;
            }
        }
    }

    /// Step 4, first part: the reordering window grows in every round trip with a DSACK.
    fn adapt(&mut self, una: u64, nxt: u64, r: &RackReport) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() && r.dsack {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        } else if r.exiting {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    /// Step 4, second part: the reordering window. Without any sign of reordering, a recovery does not wait, and
    /// `DupThresh` SACKed segments are sufficient proof of a loss, as in RFC 6675.
    fn window(&self, recovering: bool) -> Duration {
        if !self.reordering_seen && (recovering || self.segs_sacked >= self.dup_thresh) {
            return Duration::ZERO;
        }
        let Some(min) = self.min_rtt.get() else { return Duration::ZERO };
        let wide = u128::from(min.as_nanos()) * u128::from(self.reo_wnd_mult) / 4;
        let wide = Duration::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX));
        self.srtt.map_or(wide, |srtt| wide.min(srtt))
    }

    /// Step 5: declares overdue segments lost. Returns when all segments sent before the latest delivered one will be
    /// overdue.
    pub fn detect(&mut self, board: &mut Scoreboard, now: Instant, recovering: bool) -> Option<Instant> {
        // If the clock of the caller went back, new segments would seem older than delivered ones, and would be
        // declared lost again and again.
        self.latest.0 = self.latest.0.min(now);
        self.reo_wnd = self.window(recovering);
        let patience = self.rtt + self.reo_wnd;
        while let Some(segment) = self.order.head() {
            let sent = board.sent_at(segment);
            if sent >= self.latest || sent.0 + patience > now {
                break;
            }
            self.lose(board, (segment - board.base()) as usize);
        }
        let last = self.order.last_before(board, self.latest)?;
        Some(board.sent_at(last).0 + patience)
    }

    /// Declares the segment at `index` lost.
    pub(crate) fn lose(&mut self, board: &mut Scoreboard, index: usize) {
        let segment = board.base() + index as u64;
        self.order.remove(segment);
        self.lost_again += board.mark_lost(index);
        if let Some(s) = board.item(index) {
            self.losses.push((index, (s.end() - s.seq) as u32, board.total_lost()));
        }
        self.awaiting.push(Reverse(segment));
    }

    /// Withdraws all losses: everything not SACKed is in flight again.
    pub(crate) fn withdraw(&mut self, board: &mut Scoreboard) {
        let (base, order) = (board.base(), &mut self.order);
        let mut revived = Vec::new();
        // Segments already retransmitted are in flight.
        board.withdraw_lost(|i| revived.push(base + i as u64));
        revived.retain(|s| !order.holds(*s));
        order.revive(board, &mut revived);
    }

    /// The lowest lost segment that was not retransmitted.
    pub fn next_lost(&mut self, board: &Scoreboard) -> Option<usize> {
        while let Some(&Reverse(segment)) = self.awaiting.peek() {
            if board.awaits_repair(segment) {
                return Some((segment - board.base()) as usize);
            }
            self.awaiting.pop();
        }
        None
    }

    // ----- §6.3 ---------------------------------------------------------------------------------------------

    /// The retransmission timer expired: the first segment and overdue ones are lost, or everything with `all`.
    /// Without `keep`, or if the receiver reneged (it SACKed the first segment but did not acknowledge it
    /// cumulatively), SACK information is discarded and the SACKed data counts as lost.
    pub fn timeout(&mut self, board: &mut Scoreboard, now: Instant, keep: bool, all: bool) {
        if !keep || board.item(0).is_some_and(|s| s.sacked) {
            let forgotten = &mut self.newly_sacked;
            board.forget_sacked(|i| forgotten.push(i));
            self.segs_sacked = 0;
            for i in 0..self.newly_sacked.len() {
                self.lose(board, self.newly_sacked[i]);
            }
            self.newly_sacked.clear();
        }
        let patience = self.rtt + self.reo_wnd;
        for i in 0..board.len() {
            let Some(s) = board.item(i) else { break };
            let overdue = all || i == 0 || s.last_sent + patience <= now;
            if overdue && !s.sacked && !board.awaits_repair(board.base() + i as u64) {
                self.lose(board, i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_are_cut_anew_leave_what_is_known_of_the_path() {
        let mut rack = Rack::new(&Config::modern());
        rack.min_rtt.sample(Instant::ZERO, Duration::from_millis(50));
        (rack.reordering_seen, rack.reo_wnd_mult, rack.latest) =
            (true, 3, (Instant::from_secs_f64(1.0), 1000));
        rack.restart(None);
        assert_eq!((rack.min_rtt(), rack.reordering_seen()), (Some(Duration::from_millis(50)), true));
        assert_eq!((rack.reo_wnd_mult, rack.latest), (3, (Instant::ZERO, 0)));
    }

    #[test]
    fn the_minimum_rtt_is_that_of_the_last_minutes() {
        let (ms, at) = (Duration::from_millis, |s| Instant::ZERO + Duration::from_secs(s));
        let mut min = Rack::new(&Config::modern()).min_rtt;
        assert_eq!(min.get(), None);
        min.sample(at(1), ms(50));
        min.sample(at(100), ms(60));
        assert_eq!(min.get(), Some(ms(50)));
        // A handover to a longer path: the old minimum is forgotten within the window.
        for s in (110..=320).step_by(10) {
            min.sample(at(s), ms(90));
        }
        assert_eq!(min.get(), Some(ms(90)));
        // After a pause of more than a window no earlier sample counts.
        min.sample(at(1000), ms(120));
        assert_eq!(min.get(), Some(ms(120)));
    }
}
