//! RFC 8985 §6 to the letter: every segment is looked at to answer each question.

use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::RackReport;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its first octet.
    pub from: u64,
    /// `Segment.end_seq`.
    pub to: u64,
    /// `Segment.xmit_ts`.
    pub sent: Instant,
    /// `Segment.retransmitted`.
    pub retransmitted: bool,
    /// `Segment.lost`: since it was last sent.
    pub lost: bool,
    /// It was lost at some time: its first transmission is not in the network.
    pub was_lost: bool,
    /// A retransmission is in the network.
    pub resent: bool,
    /// It is selectively acknowledged.
    pub sacked: bool,
}

/// Sender state of RFC 8985 §5.3, and the segments not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct NaiveRack {
    /// In order of sequence.
    pub segments: Vec<Sent>,
    /// `SND.UNA`.
    pub una: u64,
    /// `SND.NXT`.
    pub nxt: u64,
    /// `RACK.reordering_seen`.
    pub reordering_seen: bool,
    /// `RACK.reo_wnd`.
    pub reo_wnd: Duration,
    xmit_ts: Instant,
    end_seq: u64,
    rtt: Duration,
    min_rtt: Option<Duration>,
    srtt: Option<Duration>,
    fack: u64,
    dsack_round: Option<u64>,
    mult: u64,
    persist: i32,
    dup_thresh: usize,
    tick: Duration,
}

impl NaiveRack {
    /// Nothing sent yet. `tick` is the unit of timestamps.
    #[must_use]
    pub fn new(start: u64, dup_thresh: u32, tick: Duration) -> Self {
        Self {
            segments: Vec::new(),
            una: start,
            nxt: start,
            reordering_seen: false,
            reo_wnd: Duration::ZERO,
            xmit_ts: Instant::ZERO,
            end_seq: 0,
            rtt: Duration::ZERO,
            min_rtt: None,
            srtt: None,
            fack: 0,
            dsack_round: None,
            mult: 1,
            persist: 16,
            dup_thresh: dup_thresh as usize,
            tick,
        }
    }

    /// A new segment.
    pub fn send(&mut self, span: u32, now: Instant) {
        let from = self.nxt;
        self.nxt += u64::from(span);
        self.segments.push(Sent {
            from,
            to: self.nxt,
            sent: now,
            retransmitted: false,
            lost: false,
            was_lost: false,
            resent: false,
            sacked: false,
        });
    }

    /// The segment at `i` is sent again.
    pub fn resend(&mut self, i: usize, now: Instant) {
        let s = &mut self.segments[i];
        (s.sent, s.retransmitted, s.lost, s.resent) = (now, true, false, true);
    }

    /// Segments selectively acknowledged.
    #[must_use]
    pub fn segs_sacked(&self) -> usize {
        self.segments.iter().filter(|s| s.sacked).count()
    }

    fn reordering_window(&self, recovering: bool) -> Duration {
        if !self.reordering_seen && (recovering || self.segs_sacked() >= self.dup_thresh) {
            return Duration::ZERO;
        }
        let Some(min) = self.min_rtt else { return Duration::ZERO };
        let wide = Duration::from_nanos(min.as_nanos() * self.mult / 4);
        self.srtt.map_or(wide, |s| s.min(wide))
    }

    /// An acknowledgement: all five steps. Returns when the reordering timer is to expire.
    pub fn ack(&mut self, now: Instant, ack: u64, blocks: &[(u64, u64)], r: &RackReport) -> Option<Instant> {
        let mut delivered = Vec::new();
        for s in self.segments.iter().filter(|s| s.to <= ack && !s.sacked) {
            delivered.push((*s, true));
        }
        self.una = self.una.max(ack);
        self.segments.retain(|s| s.to > ack);
        if let Some(s) = self.segments.first_mut() {
            s.from = s.from.max(ack);
        }
        for &(from, to) in blocks {
            for s in self.segments.iter_mut().filter(|s| from <= s.from && s.to <= to && !s.sacked) {
                delivered.push((*s, false));
                s.sacked = true;
            }
        }
        self.srtt = r.srtt;
        if !r.probe {
            self.sample(now, r.echo, &delivered);
        }
        // Step 4.
        if self.dsack_round.is_some_and(|round| self.una >= round) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() && r.dsack {
            (self.dsack_round, self.persist) = (Some(self.nxt), 16);
            self.mult += 1;
        } else if r.exiting {
            self.persist -= 1;
            if self.persist <= 0 {
                self.mult = 1;
            }
        }
        self.detect(now, r.recovering)
    }

    fn sample(&mut self, now: Instant, echo: Option<Duration>, delivered: &[(Sent, bool)]) {
        // Step 1.
        for (s, _) in delivered.iter().filter(|(s, _)| !s.retransmitted) {
            let rtt = now - s.sent;
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        }
        // Step 2.
        let tick = |t: u64| t / self.tick.as_nanos();
        let mut in_time = delivered.to_vec();
        in_time.sort_by_key(|(s, _)| (s.sent, s.to));
        for (s, cumulative) in in_time {
            let rtt = now - s.sent;
            if s.retransmitted {
                let echoed = echo.map(|e| tick(now.as_nanos()) - tick(e.as_nanos()));
                if cumulative && echoed.is_some_and(|val| val < tick(s.sent.as_nanos())) {
                    continue;
                }
                if self.min_rtt.is_some_and(|m| rtt < m) {
                    continue;
                }
            }
            self.rtt = rtt;
            if (s.sent, s.to) > (self.xmit_ts, self.end_seq) {
                (self.xmit_ts, self.end_seq) = (s.sent, s.to);
            }
        }
        // Step 3.
        let mut in_sequence = delivered.to_vec();
        in_sequence.sort_by_key(|(s, _)| s.to);
        for (s, _) in in_sequence {
            if s.to > self.fack {
                self.fack = s.to;
            } else if s.to < self.fack && !s.retransmitted {
                self.reordering_seen = true;
            }
        }
    }

    /// Step 5.
    pub fn detect(&mut self, now: Instant, recovering: bool) -> Option<Instant> {
        self.reo_wnd = self.reordering_window(recovering);
        let mut timeout = None;
        for i in 0..self.segments.len() {
            let s = self.segments[i];
            let before = (s.sent, s.to) < (self.xmit_ts, self.end_seq);
            if s.sacked || s.lost || !before {
                continue;
            }
            let due = s.sent + self.rtt + self.reo_wnd;
            if due <= now {
                self.lose(i);
            } else {
                timeout = timeout.max(Some(due));
            }
        }
        timeout
    }

    fn lose(&mut self, i: usize) {
        let s = &mut self.segments[i];
        (s.lost, s.was_lost, s.resent) = (true, true, false);
    }

    /// §6.3. Without `keep`, and if the first segment is selectively acknowledged, what was acknowledged so is lost.
    pub fn timeout(&mut self, now: Instant, keep: bool, all: bool) {
        let forget = !keep || self.segments.first().is_some_and(|s| s.sacked);
        for i in 0..self.segments.len() {
            let s = self.segments[i];
            if s.sacked && forget {
                self.segments[i].sacked = false;
                self.lose(i);
            } else if !s.sacked && (i == 0 || all || s.sent + self.rtt + self.reo_wnd <= now) {
                self.lose(i);
            }
        }
    }

    /// What is to be repaired first.
    #[must_use]
    pub fn next_lost(&self) -> Option<usize> {
        self.segments.iter().position(|s| s.lost && !s.sacked)
    }

    /// Bytes in the network.
    #[must_use]
    pub fn pipe(&self) -> u64 {
        let of = |s: &Sent| (u64::from(!s.was_lost) + u64::from(s.resent)) * (s.to - s.from);
        self.segments.iter().filter(|s| !s.sacked).map(of).sum()
    }
}
