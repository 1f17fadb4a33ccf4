//! Delays of data packets, measured by the simulator and not by the ends, where a scenario asks for them
//! (`record.packet-delay`).
//!
//! While delays are measured, every packet towards a receiver has a body, as with a capture: the key of the body finds the time
//! at which the packet left. Packets with a body take the slow path, which gives the same results.

use crate::packet::parcel::Parcel;
use crate::result::{PacketDelays, Percentiles};
use skyhaul_apps::Spans;
use skyhaul_base::{Duration, Instant};
use skyhaul_trace::Class;

/// The packets under way, and the delays of those that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Departure of each packet under way, and the least delay of its path at the departure, by the key of the packet's body.
    under_way: Vec<(Instant, Duration)>,
    /// Delays of each flow of the result.
    flows: Vec<Measured>,
}

/// The delays of a flow.
#[derive(Clone, Debug, Default)]
struct Measured {
    one_way: Spans,
    queueing: Spans,
}

/// Whether the delay of a packet is measured: segments with data, SYN, FIN or RST towards the receiver.
fn counts(parcel: Parcel) -> bool {
    !parcel.backward() && parcel.class() == Class::Data && !parcel.is_bare()
}

impl Delays {
    /// A measurement for this many flows.
    pub(crate) fn new(flows: usize) -> Self {
        Self { under_way: Vec::new(), flows: vec![Measured::default(); flows] }
    }

    /// A packet leaves its sender; `least` is the delay of its path without queues.
    pub(crate) fn left(&mut self, now: Instant, parcel: Parcel, least: Duration) {
        let key = parcel.key() as usize;
        if key >= self.under_way.len() {
            self.under_way.resize(key + 1, (Instant::ZERO, Duration::ZERO));
        }
        self.under_way[key] = (now, least);
    }

    /// A packet has arrived; `flow` is the number of its flow in the result.
    pub(crate) fn arrived(&mut self, now: Instant, parcel: Parcel, flow: u32) {
        let (Some(measured), true) = (self.flows.get_mut(flow as usize), counts(parcel)) else { return };
        let Some(&(sent_at, least)) = self.under_way.get(parcel.key() as usize) else { return };
        let delay = now - sent_at;
        measured.one_way.record(delay);
        // A path that became shorter or faster since the departure can give less than `least`.
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

    /// Memory in use, bytes.
    pub(crate) fn held(&self) -> usize {
        let spans = self.flows.iter().map(|m| m.one_way.held() + m.queueing.held());
        spans.sum::<usize>() + self.under_way.len() * size_of::<(Instant, Duration)>()
    }
}

/// The percentiles of some time spans; `None` without any.
fn percentiles(spans: &Spans) -> Option<Percentiles> {
    Some(Percentiles { p50: spans.quantile(0.5)?, p95: spans.quantile(0.95)?, p99: spans.quantile(0.99)? })
}
