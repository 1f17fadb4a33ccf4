//! What a run in another world measured: the simulator's quantities.

use super::setting::{Flow, Setting};
use crate::app::Session;
use crate::emulator::Report;
use skyhaul_apps::{Measured, Viewed};
use skyhaul_base::{Duration, Instant};

/// A sample of one TCP flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time of the scenario.
    pub at: Duration,
    /// The flow, as an index into [`Outcome::flows`].
    pub flow: u32,
    /// Congestion window, segments; `None` between two connections, and where there may be several at a time.
    pub cwnd: Option<f64>,
    /// Payload bytes acknowledged so far.
    pub acked: u64,
}

/// What one flow did until the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Name of its group.
    pub group: String,
    /// Index within the group.
    pub index: u32,
    /// When it started; `None` if the run ended before.
    pub started: Option<Duration>,
    /// When it had done all it had to do, or was stopped.
    pub finished: Option<Duration>,
    /// Payload bytes acknowledged; of datagrams, delivered.
    pub acked: u64,
    /// Payload acknowledged per second of the run, bit/s.
    pub goodput: f64,
    /// Data segments sent, retransmissions included, or datagrams; not known of the kernel's TCP.
    pub sent: Option<u64>,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer; not known of the kernel's TCP.
    pub timeouts: Option<u64>,
    /// Probes sent and answered.
    pub probes: (u64, u64),
    /// How long each page, or each transfer that arrived at random, took: until its last acknowledgement.
    pub pages: Vec<Duration>,
    /// Transfers that have arrived at random, complete or not.
    pub transfers: u64,
    /// What the receiver of datagrams measured.
    pub datagrams: Option<Measured>,
    /// What became of datagrams that keep to a rate.
    pub rate: Option<RateOutcome>,
    /// What the viewer of a film got; its `delayed_wire` is not known.
    pub video: Option<Box<Viewed>>,
}

/// What became of a flow of datagrams that keep to a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateOutcome {
    /// The rate that it may send at in the end, whole packets, bit/s.
    pub allowed: f64,
    /// Reports that the receiver sent, and those that arrived.
    pub reports: (u64, u64),
    /// Datagrams that found no room to wait at the sender.
    pub refused: u64,
    /// How often the rate was lowered because reports stayed away.
    pub expiries: u64,
    /// Loss events that the receiver told apart; SSVP has none.
    pub loss_events: Option<u64>,
    /// The loss event rate in the end; SSVP has none.
    pub loss_event_rate: Option<f64>,
}

impl FlowOutcome {
    /// What the workload of a flow tells of itself; the scenario's time began at `zero`.
    pub(super) fn of(flow: &Flow<'_>, session: &Session, zero: Instant) -> Self {
        let time = |at: Option<Instant>| at.map(|at| at - zero);
        Self {
            group: flow.group.name.clone(),
            index: flow.index,
            started: time(session.started()),
            finished: time(session.finished()),
            pages: session.pages().to_vec(),
            transfers: session.transfers(),
            ..Self::default()
        }
    }
    /// With what was sent in datagrams and what their receiver measured of them, and how many bytes that were.
    pub(super) fn with_datagrams(self, sent: u64, measured: Measured, bytes: u64) -> Self {
        Self { sent: Some(sent), timeouts: Some(0), acked: bytes, datagrams: Some(measured), ..self }
    }
    /// With what a viewer got, if there is one; packets are then those of the application, as in the simulator.
    pub(super) fn with_view(self, viewed: Option<Viewed>) -> Self {
        let Some(viewed) = viewed else { return self };
        Self { datagrams: Some(viewed.measured), video: Some(Box::new(viewed)), ..self }
    }
    /// Mean time of a page in seconds.
    #[must_use]
    pub fn mean_page(&self) -> Option<f64> {
        let total: f64 = self.pages.iter().map(|p| p.as_secs_f64()).sum();
        (!self.pages.is_empty()).then(|| total / self.pages.len() as f64)
    }
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One entry per flow: groups in the order of their names, within a group by index.
    pub flows: Vec<FlowOutcome>,
    /// Of all flows: payload acknowledged per second of the run, bit/s.
    pub goodput: f64,
    /// Segments sent again, over all flows.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer; not known of the kernel's.
    pub timeouts: Option<u64>,
    /// Probes sent and answered, over all flows.
    pub probes: (u64, u64),
    /// Samples in the order of time.
    pub samples: Vec<Sample>,
    /// How well the emulator kept to its models.
    pub emulation: Report,
}

/// What the senders and receivers did.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// How long the run lasted.
    pub(super) took: Duration,
    pub(super) flows: Vec<FlowOutcome>,
    pub(super) samples: Vec<Sample>,
}

impl Done {
    /// Per second of the run, as in the simulator, or of the part of it that was run.
    pub(super) fn with(self, s: &Setting<'_>, emulation: Report) -> Outcome {
        let secs = self.took.min(s.scenario.duration).as_secs_f64().max(f64::MIN_POSITIVE);
        let mut flows = self.flows;
        for f in &mut flows {
            f.goodput = f.acked as f64 * 8.0 / secs;
        }
        Outcome {
            goodput: flows.iter().map(|f| f.acked).sum::<u64>() as f64 * 8.0 / secs,
            retransmissions: flows.iter().map(|f| f.retransmissions).sum(),
            timeouts: flows.iter().map(|f| f.timeouts).sum(),
            probes: flows.iter().fold((0, 0), |(s, a), f| (s + f.probes.0, a + f.probes.1)),
            samples: self.samples,
            emulation,
            flows,
        }
    }
}
