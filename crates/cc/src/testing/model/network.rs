//! The network and the sender driven by the operations: acknowledgements, losses, transmissions.

use super::{Episode, Model};
use crate::event::{
    Ack, AckKind, Blocked, Clock, Lost, Phase, ProbeEvent, ProbeSupport, RateSample, Sent, Signal, Transmit,
};
use crate::testing::ack;
use crate::{CongestionControl, Cx, RecoveryEnd, RecoveryMode};
use skyhaul_base::{Duration, Rate};

impl<C: CongestionControl> Model<C> {
    /// Answers to probes: at most as many as were sent. False if there were none.
    pub(super) fn answer(&mut self, count: u32, stale: bool) -> bool {
        let count = count.min(self.credit);
        if count == 0 || self.stage.path.probes == ProbeSupport::No {
            return false;
        }
        self.credit -= count;
        self.stage.path.probes = ProbeSupport::Yes;
        let event = ProbeEvent::Acked { count, stale, newly_acked: 0 };
        self.call("on_probe", |cc, cx| cc.on_probe(cx, event));
        true
    }

    pub(super) fn sample(&self, newly: u32, after: u8) -> Option<RateSample> {
        let interval = Duration::from_millis(u64::from(after) + 20);
        let delivered = (u64::from(newly) + u64::from(after) / 8) * self.smss();
        self.policy.rate_samples.then_some(())?;
        Some(RateSample {
            delivered,
            interval,
            rate: Rate::from_bytes_over(delivered as f64, interval).filter(|_| after % 16 != 9),
            app_limited: self.stage.path.queued() == 0.0,
            prior_delivered: self.stage.path.delivered.saturating_sub(delivered).max(self.round_delivered),
            lost: u64::from(after % 3) * u64::from(self.lost) * self.smss(),
            in_flight: u64::from(self.outstanding + newly) * self.smss(),
        })
    }

    /// `n` segments are marked lost.
    pub(super) fn lose(&mut self, n: u32) {
        for i in 0..n {
            self.stage.path.lost += self.smss();
            if self.policy.loss_events {
                let lost = Lost {
                    len: self.stage.path.smss,
                    in_flight: u64::from(self.outstanding) * self.smss(),
                    lost: u64::from(i + 1) * self.smss(),
                    app_limited: self.stage.path.queued() == 0.0,
                    same_gap: i % 3 > 0,
                };
                self.call("on_lost", |cc, cx| cc.on_lost(cx, &lost));
            }
        }
    }

    /// The receiver's rate report: any rate, and sometimes none.
    pub(super) fn receiver_rate(&self, n: u32, after: u8) -> Option<Rate> {
        let reports = self.policy.receiver_rate && after % 5 != 0;
        reports.then(|| Rate::from_bits_per_sec(u64::from(n) * (u64::from(after) << (after % 31))))
    }

    pub(super) fn advance(&mut self, n: u32, probes: u32, ece: bool, after: u8) {
        let had_sack = self.sacked.min(n);
        self.outstanding -= n;
        self.next = self.next.max(n) - n;
        self.sacked = (self.sacked - had_sack).min(self.outstanding);
        self.lost = self.lost.saturating_sub(n).min(self.outstanding - self.sacked);
        self.dupacks = 0;
        self.guard = self.guard.saturating_sub(n);
        self.recovery = self.recovery.saturating_sub(n);
        let valid = self.head_again == 0;
        (self.head_sent, self.head_again) = (self.stage.now - Duration::from_millis(u64::from(after)), 0);
        self.stage.path.delivered += u64::from(n - had_sack) * self.smss();
        self.round = self.round.saturating_sub(n);
        if self.round == 0 {
            self.stage.path.round += 1;
            self.round = self.outstanding.max(1);
            self.round_delivered = self.stage.path.delivered;
        }
        let rtt = Duration::from_millis(100 + u64::from(after) * 2);
        let rtt = (valid && self.stage.path.phase != Phase::Loss).then_some(rtt);
        if let Some(r) = rtt {
            let p = &mut self.stage.path;
            p.srtt = Some(p.srtt.map_or(r, |s| (s * 7 + r) / 8));
            p.min_rtt = Some(p.min_rtt.map_or(r, |m| m.min(r)));
            self.backoff = 0;
        }
        let recovering = self.stage.path.phase == Phase::Recovery;
        let ends = recovering && self.recovery == 0;
        let kind = match (recovering, ends) {
            (false, _) => AckKind::New,
            (true, false) => AckKind::Partial,
            (true, true) => AckKind::Full,
        };
        let rate = self.sample(n, after);
        let receiver_rate = self.receiver_rate(n, after);
        let cwnd_limited = after % 7 != 0;
        let event = Ack { rtt, rate, receiver_rate, ece, cwnd_limited, ..ack(kind, f64::from(n)) };
        let spared = Ack { rtt: rtt.filter(|_| self.policy.rtt_samples), ..event.clone() };
        self.call_with("on_ack", |cc, cx| cc.on_ack(cx, &event), |cc, cx| cc.on_ack(cx, &spared));
        self.stage.path.after_timeout &= self.stage.cwnd() < self.stage.ssthresh();
        self.answer(probes, false);
        if ends {
            self.recovered();
        } else if recovering && self.policy.recovery == RecoveryMode::NewReno {
            (self.head_sent, self.head_again) = (self.stage.now, 1);
        }
        if self.stage.path.phase == Phase::Loss && self.guard == 0 {
            self.stage.path.phase = Phase::Open;
        }
        let open = self.stage.path.phase == Phase::Open;
        if core::mem::take(&mut self.retransmit_head) && self.outstanding > 0 && self.guard == 0 {
            self.judge_head(Signal::Loss);
        } else if ece && open && self.guard == 0 {
            self.guard = self.outstanding;
            self.call("on_congestion", |cc, cx| cc.on_congestion(cx, Signal::Ecn));
        }
        self.transmit(if probes > 0 { Clock::Probe } else { Clock::Ack });
    }

    pub(super) fn duplicate(&mut self, sack: bool, corruption: bool) {
        self.dupacks += 1;
        let new_sack = sack && self.sacked + 1 < self.outstanding;
        let mut newly = 0;
        if new_sack {
            self.sacked += 1;
            newly = 1;
            self.stage.path.delivered += self.smss();
        }
        let mut lost = 0;
        if self.sacked >= 3 && self.lost == 0 {
            lost = 1;
            self.lost = 1;
            self.lose(1);
        }
        let event = Ack {
            sacked: f64::from(newly),
            lost: f64::from(lost),
            rate: if newly > 0 { self.sample(1, 3) } else { None },
            ..ack(AckKind::Duplicate { count: self.dupacks, new_sack, dsack: false }, 0.0)
        };
        self.call("on_ack", |cc, cx| cc.on_ack(cx, &event));
        let open = self.stage.path.phase == Phase::Open && self.guard == 0;
        let asked = core::mem::take(&mut self.retransmit_head);
        if open && (self.dupacks >= 3 || asked) {
            self.judge_head(if corruption { Signal::Corruption } else { Signal::Loss });
        } else if asked {
            (self.head_sent, self.head_again) = (self.stage.now, self.head_again + 1);
        }
        self.transmit(Clock::Ack);
    }

    /// The head is lost: this begins a recovery, unless one is in progress.
    pub(super) fn judge_head(&mut self, signal: Signal) {
        let again = self.head_again + 1;
        if self.stage.path.phase != Phase::Open {
            (self.head_sent, self.head_again) = (self.stage.now, again);
            return;
        }
        let capable = self.stage.path.probes == ProbeSupport::Yes;
        self.report.recoveries.push(Episode { ssthresh: 0.0, probes: 0, capable });
        self.train = 0;
        self.call("on_congestion", |cc, cx| cc.on_congestion(cx, signal));
        let ssthresh = self.stage.ssthresh();
        if let Some(last) = self.report.recoveries.last_mut() {
            last.ssthresh = ssthresh;
        }
        (self.head_sent, self.head_again) = (self.stage.now, again);
        if self.policy.recovery == RecoveryMode::Tahoe {
            self.guard = self.outstanding;
            self.go_back();
            return;
        }
        self.stage.path.phase = Phase::Recovery;
        let one = self.policy.recovery == RecoveryMode::Reno
            || self.policy.recovery_end == RecoveryEnd::TriggeringSegment;
        self.recovery = if one { 1 } else { self.outstanding };
    }

    pub(super) fn timeout(&mut self) {
        self.stage.now += Duration::from_secs(1);
        self.backoff += 1;
        let backoff = self.backoff;
        self.report.recoveries.push(Episode { ssthresh: 0.0, probes: 0, capable: false });
        self.call("on_timeout", |cc, cx| cc.on_timeout(cx, backoff));
        self.stage.path.phase = Phase::Loss;
        self.stage.path.after_timeout = true;
        self.guard = self.outstanding;
        self.lose(self.outstanding - self.sacked - self.lost.min(self.outstanding - self.sacked));
        (self.head_sent, self.head_again) = (self.stage.now, self.head_again + 1);
        self.go_back();
        self.transmit(Clock::Timer);
    }

    pub(super) fn go_back(&mut self) {
        (self.next, self.sacked, self.lost, self.dupacks, self.recovery) = (0, 0, 0, 0, 0);
    }

    pub(super) fn transmit(&mut self, clock: Clock) {
        self.sent = 0;
        let blocked = loop {
            if self.policy.max_burst > 0 && self.sent >= u32::from(self.policy.max_burst) {
                break Blocked::Burst;
            }
            self.refresh();
            let by_pipe = self.stage.path.phase == Phase::Recovery
                && self.policy.recovery.uses_pipe()
                && !self.policy.gate_on_flight;
            let used = if by_pipe { self.stage.path.pipe() } else { f64::from(self.next) };
            if used + 1.0 > self.stage.cwnd() {
                break Blocked::Cwnd;
            }
            let again = self.next < self.outstanding;
            if again {
                self.next += 1;
            } else if f64::from(self.outstanding) + 1.0 > self.stage.path.rwnd {
                break Blocked::Rwnd;
            } else if self.stage.path.queued() < 1.0 {
                break Blocked::App;
            } else {
                if self.outstanding == 0 {
                    (self.head_sent, self.head_again) = (self.stage.now, 0);
                }
                self.stage.path.set_queued(self.stage.path.queued() - 1.0);
                self.outstanding += 1;
                self.next += 1;
            }
            self.sent += 1;
            if self.policy.sent_events {
                let sent = Sent { len: self.stage.path.smss, retransmission: again };
                self.call("on_sent", |cc, cx| cc.on_sent(cx, &sent));
            }
        };
        let transmit = Transmit { sent: self.sent, clock, blocked };
        let spared = |cc: &mut C, cx: &mut Cx<'_>| {
            if cc.wants_transmit() {
                cc.on_transmit(cx, &transmit);
            }
        };
        self.call_with("on_transmit", |cc, cx| cc.on_transmit(cx, &transmit), spared);
        if core::mem::take(&mut self.rewind) && self.outstanding > 0 {
            self.stage.path.phase = Phase::Loss;
            self.guard = self.outstanding;
            self.go_back();
        }
        self.retransmit_head = false;
    }
}
