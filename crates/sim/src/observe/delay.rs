//! Delays of data packets, measured by the simulator and not by the ends, where a scenario asks for it
//! (`record.packet-delay`).
//!
//! While they are measured every packet towards a receiver has a body, as with a capture: its key finds the time at which
//! the packet left. Such packets take the slow path, which gives the same results.

use crate::packet::parcel::Parcel;
use crate::result::{PacketDelays, Percentiles};
use skyhaul_apps::Spans;
use skyhaul_base::{Duration, Instant};
use skyhaul_trace::Class;

/// The packets under way, and the delays of those that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Departure of each packet under way, and the least delay that its path could give, by the key of its body.
    under_way: Vec<(Instant, Duration)>,
    /// Delays by flow of the result.
    flows: Vec<Measured>,
}

/// The delays of a flow.
#[derive(Clone, Debug, Default)]
struct Measured {
    one_way: Spans,
    queueing: Spans,
}

/// Whether the delay of a packet counts.
fn counts(parcel: Parcel) -> bool {
    !parcel.backward() && parcel.class() == Class::Data && !parcel.is_bare()
}

impl Delays {
    /// For this many flows.
    pub(crate) fn new(flows: usize) -> Self {
        Self { under_way: Vec::new(), flows: vec![Measured::default(); flows] }
    }

    /// A packet leaves its end.
    pub(crate) fn left(&mut self, now: Instant, parcel: Parcel, least: Duration) {
        let key = parcel.key() as usize;
        if key >= self.under_way.len() {
            self.under_way.resize(key + 1, (Instant::ZERO, Duration::ZERO));
        }
        self.under_way[key] = (now, least);
    }

    /// A packet has reached its end; `flow` is that of the result to which it belongs.
    pub(crate) fn arrived(&mut self, now: Instant, parcel: Parcel, flow: u32) {
        let (Some(measured), true) = (self.flows.get_mut(flow as usize), counts(parcel)) else { return };
        let Some(&(sent_at, least)) = self.under_way.get(parcel.key() as usize) else { return };
        let delay = now - sent_at;
        measured.one_way.record(delay);
        // A path that became shorter or faster under way gives less than the least at departure.
        measured.queueing.record(delay.saturating_sub(least));
    }

    /// The percentiles of a flow.
    pub(crate) fn of(&self, flow: usize) -> Option<PacketDelays> {
        let measured = self.flows.get(flow)?;
        Some(PacketDelays {
            one_way: percentiles(&measured.one_way)?,
            queueing: percentiles(&measured.queueing)?,
        })
    }

    /// Memory that it holds, bytes.
    pub(crate) fn held(&self) -> usize {
        let spans = self.flows.iter().map(|m| m.one_way.held() + m.queueing.held());
        spans.sum::<usize>() + self.under_way.len() * size_of::<(Instant, Duration)>()
    }
}

/// The percentiles of some time spans; `None` without any.
fn percentiles(spans: &Spans) -> Option<Percentiles> {
    Some(Percentiles { p50: spans.quantile(0.5)?, p95: spans.quantile(0.95)?, p99: spans.quantile(0.99)? })
}
