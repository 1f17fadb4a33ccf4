//! Packets sent and not yet acknowledged, as far as a controller of quinn can know: by their send times.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{Lost, RateSample};
use std::collections::VecDeque;

/// Records are forgotten after this time: packets that were lost are never acknowledged.
const RECORD_LIFETIME: Duration = Duration::from_secs(60);

/// The packets of one transmission, and the state of the flight at that time (draft-ietf-ccwg-bbr).
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

/// The flight of a connection. Sizes are bytes.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    sent: VecDeque<Sent>,
    pub(crate) in_flight: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    delivered_at: Instant,
    /// Send time of the newest packet known to have arrived.
    first_sent: Instant,
    pub(crate) app_limited: bool,
    pub(crate) srtt: Option<Duration>,
    pub(crate) rttvar: Duration,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) round: u64,
    round_began: Instant,
    /// Time of the last transmission or acknowledgement.
    pub(crate) active: Instant,
    batch: Batch,
}

/// Packets covered by one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    bytes: u64,
    newest: Option<Instant>,
}

/// Measurements of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) bytes: u64,
    pub(crate) newest: Instant,
    pub(crate) rtt: Duration,
    pub(crate) rate: Option<RateSample>,
}

impl Flight {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            sent: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            lost: 0,
            delivered_at: now,
            first_sent: now,
            app_limited: true,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: None,
            round: 0,
            round_began: now,
            active: now,
            batch: Batch::default(),
        }
    }

    /// The retransmission timeout of RFC 6298, at least a second. QUIC has no such timer; here it defines idleness.
    fn rto(&self) -> Duration {
        let srtt = self.srtt.unwrap_or(Duration::from_secs(1));
        (srtt + self.rttvar.mul_f64(4.0)).max(Duration::from_secs(1))
    }
    /// Whether nothing has been in flight for longer than the retransmission timeout.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.in_flight == 0 && self.srtt.is_some() && now > self.active + self.rto()
    }

    pub(crate) fn send(&mut self, now: Instant, bytes: u64) {
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.in_flight += bytes;
        self.active = now;
        self.sent.push_back(Sent {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited,
        });
        while self.sent.front().is_some_and(|s| s.at + RECORD_LIFETIME < now) {
            self.sent.pop_front();
        }
    }

    /// The record of a send time.
    fn record(&self, sent: Instant) -> Option<&Sent> {
        let n = self.sent.partition_point(|s| s.at < sent);
        self.sent.get(n).filter(|s| s.at == sent)
    }

    /// Counts a packet that an acknowledgement covers.
    pub(crate) fn acknowledge(&mut self, sent: Instant, bytes: u64) {
        self.batch.bytes += bytes;
        self.batch.newest = self.batch.newest.max(Some(sent));
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.delivered += bytes;
    }

    /// The acknowledgement is complete; `in_flight` bytes remain in flight.
    pub(crate) fn end(&mut self, now: Instant, in_flight: u64, app_limited: bool) -> Option<Acked> {
        self.in_flight = in_flight;
        self.app_limited = app_limited;
        let Batch { bytes, newest } = core::mem::take(&mut self.batch);
        let newest = newest?;
        self.active = now;
        self.delivered_at = now;
        let rtt = now.since(newest);
        self.measure(rtt);
        if newest >= self.round_began {
            self.round += 1;
            self.round_began = now;
        }
        let rate = self.record(newest).copied().map(|s| {
            let interval = newest.since(s.first_sent).max(now.since(s.delivered_at));
            let delivered = self.delivered - s.delivered;
            let long_enough = self.min_rtt.is_some_and(|least| interval >= least);
            let rate = Rate::from_bytes_over(delivered as f64, interval).filter(|_| long_enough);
            RateSample {
                delivered,
                interval,
                rate,
                app_limited: s.app_limited,
                prior_delivered: s.delivered,
                lost: self.lost - s.lost,
                in_flight: s.in_flight,
            }
        });
        self.first_sent = self.first_sent.max(newest);
        // Older ones are acknowledged or lost: quinn allows little reordering.
        let settled = self.sent.partition_point(|s| s.at + self.rto() < newest);
        self.sent.drain(..settled);
        Some(Acked { bytes, newest, rtt, rate })
    }

    /// RFC 6298 §2.
    fn measure(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        match self.srtt {
            None => (self.srtt, self.rttvar) = (Some(rtt), rtt.mul_f64(0.5)),
            Some(srtt) => {
                self.rttvar = self.rttvar.mul_f64(0.75) + srtt.abs_diff(rtt).mul_f64(0.25);
                self.srtt = Some(srtt.mul_f64(0.875) + rtt.mul_f64(0.125));
            }
        }
    }

    /// This many bytes are lost; the newest of the packets was sent at `sent`. Returns the loss in segments of `smss`,
    /// as if all had been sent then.
    pub(crate) fn lose(
        &mut self,
        sent: Instant,
        bytes: u64,
        smss: u32,
    ) -> impl Iterator<Item = Lost> + use<> {
        let (in_flight, before, app_limited) = self
            .record(sent)
            .map_or((self.in_flight, self.lost, self.app_limited), |s| (s.in_flight, s.lost, s.app_limited));
        let earlier = self.lost - before;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.lost += bytes;
        let step = u64::from(smss);
        (0..bytes.div_ceil(step)).map(move |n| {
            let upto = ((n + 1) * step).min(bytes);
            let len = (upto - n * step) as u32;
            Lost { len, in_flight, lost: earlier + upto, app_limited, same_gap: n > 0 }
        })
    }
}
