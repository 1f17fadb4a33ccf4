//! Results of a run in real time, in the quantities of the simulator.

use super::setting::{Flow, Setting};
use crate::app::Session;
use crate::emulator::Report;
use skyhaul_apps::{Measured, Viewed};
use skyhaul_base::{Duration, Instant};

/// A sample of one TCP flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time since the start of the scenario.
    pub at: Duration,
    /// The flow, as an index into [`Outcome::flows`].
    pub flow: u32,
    /// Congestion window, segments; `None` between two connections, and for flows with possibly several at a time.
    pub cwnd: Option<f64>,
    /// Payload bytes acknowledged so far.
    pub acked: u64,
}

/// Results of one flow until the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Name of its group.
    pub group: String,
    /// Index within the group.
    pub index: u32,
    /// When it started; `None` if the run ended before that.
    pub started: Option<Duration>,
    /// When it finished its work, or was stopped.
    pub finished: Option<Duration>,
    /// Payload bytes acknowledged, or for datagrams, delivered.
    pub acked: u64,
    /// Payload acknowledged per second of the run, bit/s.
    pub goodput: f64,
    /// Data segments sent, including retransmissions, or datagrams; unknown for the kernel's TCP.
    pub sent: Option<u64>,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer; unknown for the kernel's TCP.
    pub timeouts: Option<u64>,
    /// Probes sent and answered.
    pub probes: (u64, u64),
    /// Duration of each page or randomly arriving transfer, until its last acknowledgement.
    pub pages: Vec<Duration>,
    /// Transfers that have arrived at random, complete or not.
    pub transfers: u64,
    /// Measurements of the datagram receiver.
    pub datagrams: Option<Measured>,
    /// Results of rate-controlled datagrams.
    pub rate: Option<RateOutcome>,
    /// Results of the video's viewer; its `delayed_wire` is unknown.
    pub video: Option<Box<Viewed>>,
}

/// Results of a flow of rate-controlled datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateOutcome {
    /// The allowed rate at the end, headers included, bit/s.
    pub allowed: f64,
    /// Reports sent by the receiver, and reports that arrived.
    pub reports: (u64, u64),
    /// Datagrams dropped because the sender's queue was full.
    pub refused: u64,
    /// How often the rate was reduced because reports were missing.
    pub expiries: u64,
    /// Loss events counted by the receiver; SSVP has none.
    pub loss_events: Option<u64>,
    /// The loss event rate at the end; SSVP has none.
    pub loss_event_rate: Option<f64>,
}

impl FlowOutcome {
    /// The results that a flow's workload reports; the scenario's time began at `zero`.
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
    /// Adds the number of datagrams sent, their receiver's measurements, and the bytes delivered.
    pub(super) fn with_datagrams(self, sent: u64, measured: Measured, bytes: u64) -> Self {
        Self { sent: Some(sent), timeouts: Some(0), acked: bytes, datagrams: Some(measured), ..self }
    }
    /// Adds the results of a viewer, if there is one; the measurements of datagrams are then those of its packets, as in
    /// the simulator.
    pub(super) fn with_view(self, viewed: Option<Viewed>) -> Self {
        let Some(viewed) = viewed else { return self };
        Self { datagrams: Some(viewed.measured), video: Some(Box::new(viewed)), ..self }
    }
    /// Mean page time, seconds.
    #[must_use]
    pub fn mean_page(&self) -> Option<f64> {
        let total: f64 = self.pages.iter().map(|p| p.as_secs_f64()).sum();
        (!self.pages.is_empty()).then(|| total / self.pages.len() as f64)
    }
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One entry per flow: groups in the order of their names, within a group by index.
    pub flows: Vec<FlowOutcome>,
    /// Payload acknowledged by all flows per second of the run, bit/s.
    pub goodput: f64,
    /// Segments retransmitted, over all flows.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer; unknown for the kernel's TCP.
    pub timeouts: Option<u64>,
    /// Probes sent and answered, over all flows.
    pub probes: (u64, u64),
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// Accuracy of the emulation.
    pub emulation: Report,
}

/// Results of senders and receivers.
#[derive(Debug, Default)]
pub(super) struct RunOutcome {
    /// How long the run lasted.
    pub(super) took: Duration,
    pub(super) flows: Vec<FlowOutcome>,
    pub(super) samples: Vec<Sample>,
}

impl RunOutcome {
    /// The outcome; rates refer to the duration of the run, as in the simulator, or to the part of it that was run.
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
