//! Counters of a host.

use skyhaul_tcp::Rejected;
use skyhaul_wire::Refusals;
use std::collections::BTreeMap;

/// Counters of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Well-formed segments received.
    pub segments_in: u64,
    /// Invalid packets, by reason.
    pub refusals: Refusals,
    /// Segments dropped by their connection, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Packets with invalid source addresses: multicast, loopback, reserved, our own.
    pub martians: u64,
    /// Packets to other addresses.
    pub not_ours: u64,
    /// UDP datagrams to unbound ports.
    pub not_tcp: u64,
    /// UDP datagrams delivered to applications.
    pub datagrams_in: u64,
    /// UDP datagrams sent.
    pub datagrams_out: u64,
    /// Low-priority probes dropped because too many of them waited until nothing else was to be sent; counted in [`Self::packets_out`].
    pub probes_dropped: u64,
    /// UDP datagrams dropped because applications did not read earlier ones.
    pub datagrams_dropped: u64,
    /// Segments without a connection.
    pub strangers: u64,
    /// SYNs and handshake-completing acknowledgements dropped because the connection table was full.
    pub syns_dropped: u64,
    /// SYNs answered with a cookie because the table of half-open connections was full.
    pub cookies_sent: u64,
    /// SYN-ACKs and their retransmissions not sent because of the rate limit.
    pub syn_acks_withheld: u64,
    /// Connections established through a cookie of ours.
    pub cookies_taken: u64,
    /// SYNs whose data was not taken: a token that is wrong or expired, or too many gateways.
    pub early_refused: u64,
    /// SYNs whose serial number was seen before: late copies, and those of connections that have ended. They were reset.
    pub early_repeated: u64,
    /// Half-open connections that were never completed.
    pub half_open_expired: u64,
    /// Connections that left TIME-WAIT early because too many were in it.
    pub time_waits_cut: u64,
    /// Resets sent for segments of unknown connections.
    pub resets_out: u64,
    /// Resets, echo replies, challenge ACKs and answers in TIME-WAIT not sent because of a rate limit.
    pub answers_withheld: u64,
    /// ICMP messages that concern no connection of ours and were given back.
    pub passed_on: u64,
    /// ICMP messages about segments that are not outstanding.
    pub messages_refused: u64,
    /// Reductions of a path MTU.
    pub paths_narrowed: u64,
    /// Panics that were contained: a defect of ours, never of a peer's. Each has cost one connection, or the half-open ones.
    pub defects: u64,
    /// Segments that could not be encoded: a defect of ours, never of a peer's.
    pub unwritable: u64,
}

/// Reasons for which a connection drops a segment: all that [`name`] knows.
const REASONS: [Rejected; 12] = [
    Rejected::AckOfUnsent,
    Rejected::AckTooOld,
    Rejected::Duplicate,
    Rejected::OutOfWindow,
    Rejected::Paws,
    Rejected::Unstamped,
    Rejected::Challenged,
    Rejected::ResetInTimeWait,
    Rejected::BeyondFin,
    Rejected::Rationed,
    Rejected::Flags,
    Rejected::Closed,
];

/// The name of a reason.
pub(super) const fn name(why: Rejected) -> &'static str {
    match why {
        Rejected::AckOfUnsent => "ack-of-unsent",
        Rejected::AckTooOld => "ack-too-old",
        Rejected::Duplicate => "duplicate",
        Rejected::OutOfWindow => "out-of-window",
        Rejected::Paws => "paws",
        Rejected::Unstamped => "no-timestamps",
        Rejected::Challenged => "challenged",
        Rejected::ResetInTimeWait => "reset-in-time-wait",
        Rejected::BeyondFin => "beyond-fin",
        Rejected::Rationed => "rationed",
        Rejected::Flags => "flags",
        Rejected::Closed => "closed",
    }
}

impl Counts {
    /// The names of all reasons for which connections drop segments.
    pub fn reasons() -> impl Iterator<Item = &'static str> {
        REASONS.into_iter().map(name)
    }
    /// Segments dropped for the reason of this name ("paws", "challenged" and so on).
    #[must_use]
    pub fn rejected_as(&self, reason: &str) -> u64 {
        self.rejected.get(reason).copied().unwrap_or(0)
    }
}
