//! State of a chain of connections (split path).

use crate::split::tunnel::{Ahead, Tunnel};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_relay::{Count, Relay};
use skyhaul_scenario::resolved;
use skyhaul_tcp::{Segment, Seq};
use std::collections::VecDeque;

/// A chain of connections: legs, with relays between them.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The flows of its legs.
    pub(crate) legs: Vec<u32>,
    /// Number of legs in use: one if the flow passes unsplit.
    pub(crate) in_use: usize,
    /// The gateways between them.
    pub(crate) gateways: Vec<usize>,
    /// Buffer of each gateway per direction, bytes.
    pub(crate) buffers: Vec<u64>,
    pub(crate) relays: Vec<Relay<Count>>,
    /// Acknowledgements held back by each gateway.
    pub(crate) held: Vec<VecDeque<Segment>>,
    /// For each gateway, whether it has lost the state of the current connection, by a crash or a change of the route.
    pub(crate) severed: Vec<bool>,
    /// Number of legs opened for the current transfer, established or not.
    pub(crate) opened: usize,
    /// The transfer it carries.
    pub(crate) transfer: u64,
    /// Routes that bypass all gateways.
    pub(crate) bypass: (u16, u16),
    /// Routes of the first leg.
    pub(crate) own: (u16, u16),
    /// Its gateway spoofs the receiver.
    pub(crate) spoofs: bool,
    /// Share of the acknowledgements that bypass a spoofing gateway.
    pub(crate) asym: f64,
    /// Draws which acknowledgements do.
    pub(crate) rng: Rng,
    /// Encrypted, so that no gateway can process it.
    pub(crate) encrypted: bool,
    /// Its packets take the route that bypasses all gateways.
    pub(crate) rerouted: bool,
    /// The next leg is opened when a SYN has arrived, not only when the connection is established.
    pub(crate) early: bool,
    /// A gateway forwards an acknowledgement only when the next leg has acknowledged the same data.
    pub(crate) late_acks: bool,
    /// It is counted among the connections of its gateways.
    pub(crate) counted: bool,
    /// Routes of its connections after each future handover.
    pub(crate) ahead: VecDeque<Ahead>,
    /// For each gateway, the tunnel from its predecessor.
    pub(crate) tunnels: Vec<Option<Box<Tunnel>>>,
    /// The sender's FIN has been acknowledged to it.
    pub(crate) end_acked_to_sender: bool,
    /// The sender's connection is lost: the sender gave up or was reset.
    pub(crate) dead: bool,
    /// When the first leg was requested.
    pub(crate) began: Instant,
    pub(crate) measures: Measures,
    /// Bytes that the receiver received over earlier connections.
    pub(crate) delivered: u64,
    /// Bytes that the receiver acknowledged over earlier connections.
    pub(crate) acked: u64,
}

/// Results of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measures {
    /// Maximum bytes acknowledged to the sender but not by the receiver.
    pub(crate) custody: u64,
    /// The same when the sender's FIN was acknowledged to it.
    pub(crate) custody_at_close: u64,
    /// Time from the request of the first leg until all legs were established.
    pub(crate) setup: Option<Duration>,
    /// Time from the request of the first leg until the first byte arrived.
    pub(crate) first_byte: Option<Duration>,
    /// Connections that passed the gateways unsplit.
    pub(crate) bypassed: u64,
    /// Connections that a full gateway refused.
    pub(crate) refused: u64,
    /// Times that a gateway lost the state of a connection, by a crash or a change of the route.
    pub(crate) state_losses: u64,
    /// Bytes that gateways handed over.
    pub(crate) moved: u64,
    /// How long the legs behind the gateways were silent during handovers.
    pub(crate) silent: Duration,
    /// A gateway has handed it over.
    pub(crate) handed_over: bool,
}

impl Chain {
    /// A chain over these legs, not yet open.
    pub(crate) fn new(
        chain: &resolved::Chain,
        legs: Vec<u32>,
        own: (u16, u16),
        bypass: (u16, u16),
        rng: Rng,
    ) -> Self {
        let spoofs = chain.kind == resolved::ChainKind::Spoof;
        let n = chain.gateways.len();
        Self {
            in_use: legs.len(),
            legs,
            gateways: chain.gateways.clone(),
            buffers: chain.buffers.clone(),
            relays: Vec::new(),
            held: vec![VecDeque::new(); n],
            severed: vec![false; n],
            opened: 0,
            transfer: 0,
            bypass,
            own,
            spoofs,
            asym: chain.asym,
            rng,
            encrypted: chain.encrypted,
            rerouted: false,
            // A gateway that answers a SYN only after the next leg has answered must open that leg early.
            early: chain.open == resolved::Open::Early || chain.ack_mode == resolved::AckMode::Late,
            late_acks: chain.ack_mode == resolved::AckMode::Late && !spoofs,
            counted: false,
            ahead: VecDeque::new(),
            tunnels: core::iter::repeat_with(|| None).take(n).collect(),
            end_acked_to_sender: false,
            dead: false,
            began: Instant::ZERO,
            measures: Measures::default(),
            delivered: 0,
            acked: 0,
        }
    }

    /// Whether a gateway has handed it over.
    #[inline]
    pub(crate) fn has_handed_over(&self) -> bool {
        self.measures.handed_over
    }

    /// Resets everything for a new connection, except the results.
    pub(crate) fn begin(&mut self, now: Instant, transfer: u64) {
        self.relays = self.buffers.iter().map(|&b| Relay::new(b)).collect();
        self.held.iter_mut().for_each(VecDeque::clear);
        self.severed.iter_mut().for_each(|severed| *severed = false);
        self.in_use = self.legs.len();
        self.opened = 0;
        (self.dead, self.end_acked_to_sender) = (false, false);
        self.transfer = transfer;
        self.began = now;
    }

    /// Whether a gateway may forward an acknowledgement, if the next leg has acknowledged up to `confirmed`; `None`
    /// before it is established. The answer to a SYN waits as well.
    pub(crate) fn may_pass(segment: &Segment, confirmed: Option<Seq>) -> bool {
        use skyhaul_tcp::Flags;
        segment.flags.has(Flags::RST) || confirmed.is_some_and(|c| segment.ack.diff(c) <= 0)
    }
}
