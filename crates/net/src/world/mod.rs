//! One scenario in other worlds than the simulator: our transport, and the kernel's, over its links in real time.
//!
//! ```text
//! ours    stack ─ TUN ─ kernel A ─ TUN ═ emulator ═ TUN ─ kernel B ─ TUN ─ stack
//! kernel          socket in A    ─ TUN ═ emulator ═ TUN ─ socket in B
//! ```
//! Real packets cross real devices and real kernels that forward them; the links between are those of the scenario.
//! What is measured is what the simulator measures: bytes that the receiver has acknowledged until the run ends.

mod kernel;
mod ours;

use crate::device::Namespace;
use crate::device::tun::TunConfig;
use crate::emulator::{self, Emulation, End, Options, Report};
use crate::error::NetError;
use skyhaul_base::{Duration, Rng};
use skyhaul_scenario::resolved::{App, FlowGroup, Resolved, Start, Transport};
use thiserror::Error;

/// Who carries the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum World {
    /// Our transport on both sides.
    Ours,
    /// The kernel's on both sides, with this congestion control.
    Kernel(String),
    /// Ours sends, the kernel receives.
    OursToKernel,
}

impl World {
    /// `wire`, `wire-to-kernel`, or `kernel:NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "wire" => Some(Self::Ours),
            "wire-to-kernel" => Some(Self::OursToKernel),
            _ => text.strip_prefix("kernel:").filter(|n| !n.is_empty()).map(|n| Self::Kernel(n.to_owned())),
        }
    }
    /// As it is written.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Ours => "wire".into(),
            Self::OursToKernel => "wire-to-kernel".into(),
            Self::Kernel(name) => format!("kernel:{name}"),
        }
    }
}

/// A sample of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time of the scenario.
    pub at: Duration,
    /// The flow.
    pub flow: u32,
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Payload bytes acknowledged so far.
    pub acked: u64,
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Payload bytes acknowledged by the end of the run, for each flow.
    pub acked: Vec<u64>,
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

/// Why a scenario cannot run in another world.
#[derive(Debug, Error)]
pub enum WorldError {
    /// The system refuses.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The host refuses.
    #[error(transparent)]
    Host(#[from] crate::host::HostError),
    /// What the scenario asks for exists in the simulator only.
    #[error("flows.{flow}: {what}")]
    Unsupported {
        /// The flow group.
        flow: String,
        /// What, and what to do.
        what: String,
    },
    /// The kernel lacks the congestion control.
    #[error("this kernel has no congestion control {name:?}; it has: {known}")]
    NoSuchControl {
        /// The name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// A connection failed.
    #[error("a connection failed: {0}")]
    Failed(String),
}

/// What a run in another world needs.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) scenario: &'a Resolved,
    pub(crate) group: &'a FlowGroup,
    pub(crate) seed: u64,
    /// Namespaces of the sender and of the receiver.
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    /// Longest packet: that of the simulation.
    pub(crate) mtu: u16,
    /// When each flow starts, the first one first.
    pub(crate) starts: Vec<Duration>,
    pub(crate) every: Duration,
}

/// Smallest MTU that IPv4 hosts must take (RFC 791), and largest of a TUN device.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;

impl<'a> Setting<'a> {
    fn new(scenario: &'a Resolved, group: &'a FlowGroup, seed: u64) -> Result<Self, WorldError> {
        let refuse = |what: &str| WorldError::Unsupported { flow: group.name.clone(), what: what.to_owned() };
        if group.transport != Transport::Tcp || group.app != App::BULK {
            return Err(refuse("only bulk transfers over TCP leave the simulator: write app = \"bulk\""));
        }
        if scenario.flows.len() > 1 {
            return Err(refuse("other groups of flows would not be there: keep one group in the scenario"));
        }
        let mtu = group.endpoint.mss + group.endpoint.header;
        if !MTUS.contains(&mtu) {
            return Err(refuse("a packet (mss and header) has 68 to 65535 bytes on a wire"));
        }
        // As the simulator draws them.
        let start = |i: u32| match group.start {
            Start::At(at) => at,
            Start::Uniform { from, to } => {
                let mut rng = Rng::stream(seed, &format!("flows.{}[{i}].start", group.name));
                from + rng.uniform(to.saturating_sub(from))
            }
        };
        let mut starts: Vec<Duration> = (0..group.count).map(start).collect();
        starts.sort_unstable();
        Ok(Self {
            scenario,
            group,
            seed,
            client: Namespace::new()?,
            server: Namespace::new()?,
            mtu: mtu as u16,
            starts,
            every: scenario.record.sample.unwrap_or(Duration::from_millis(100)),
        })
    }

    /// The links between the two namespaces.
    fn emulate(&self) -> Result<Emulation, NetError> {
        let end = |ns: &Namespace, client| {
            // The links' own devices take whatever the stacks send.
            let config = TunConfig {
                name: Some("link".into()),
                addresses: emulator::addresses(client),
                mtu: self.mtu.max(1280),
                offload: false,
            };
            End::open(ns, &config)
        };
        let ends = [end(&self.client, true)?, end(&self.server, false)?];
        let options = Options { seed: self.seed, ..Options::default() };
        Emulation::start(self.scenario, self.group, ends, &options)
    }
}

/// What the senders did.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) took: Duration,
    pub(crate) acked: Vec<u64>,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: Option<u64>,
    pub(crate) probes: (u64, u64),
    pub(crate) samples: Vec<Sample>,
}

impl Sent {
    /// Per second of the run, as in the simulator, or of the part of it that was run.
    fn with(self, s: &Setting<'_>, emulation: Report) -> Outcome {
        let secs = self.took.min(s.scenario.duration).as_secs_f64().max(f64::MIN_POSITIVE);
        Outcome {
            goodput: self.acked.iter().sum::<u64>() as f64 * 8.0 / secs,
            acked: self.acked,
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            probes: self.probes,
            samples: self.samples,
            emulation,
        }
    }
}

/// Runs a scenario of one bulk group in another world, in real time: it takes as long as the scenario lasts. The seed
/// draws the same losses as in the simulator for the same order of packets.
///
/// # Errors
/// If the scenario asks for what a wire cannot do, privileges are missing, or a connection fails.
pub fn run(
    scenario: &Resolved,
    world: &World,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let group = &scenario.flows[0];
    let setting = Setting::new(scenario, group, seed)?;
    match world {
        World::Ours => ours::run(&setting, true, stop),
        World::OursToKernel => ours::run(&setting, false, stop),
        World::Kernel(name) => kernel::run(&setting, name, stop),
    }
}
