//! One connection: its two legs, and the relay between them.

use crate::far;
use crate::log;
use crate::near::{self, Near};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{ConnId, Host};
use skyhaul_relay::{Bytes, Progress, Relay};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initiator {
    /// A host on the terrestrial side.
    Hosts,
    /// A host behind the link.
    Link,
}

/// The state of a flow after a call of [`Flow::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is open.
    Open,
    /// Both directions have ended in order.
    Finished,
    /// One leg failed, so the other is reset.
    Aborted,
}

/// The leg of a flow over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLeg {
    /// A host on the terrestrial side has connected. The leg will be opened from this address, at the latest when the client's first
    /// bytes have arrived.
    Unopened(SocketAddr),
    /// A client behind the link has sent a SYN. It waits for admission or for its peer's acknowledgement: there is no connection yet.
    Requested(ConnId),
    /// There is a connection. It was not established when the flow was last processed.
    Opening(ConnId),
    /// The connection was established. From then on, [`crate::peer::Peers`] counts the flow for the gateway at its other end, if there is one.
    Established(ConnId),
}

impl LinkLeg {
    /// The identity of the connection, which exists from the SYN on.
    pub(crate) fn id(self) -> Option<ConnId> {
        match self {
            Self::Unopened(_) => None,
            Self::Requested(id) | Self::Opening(id) | Self::Established(id) => Some(id),
        }
    }
    pub(crate) fn is_established(self) -> bool {
        matches!(self, Self::Established(_))
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Its number since the gateway's start, from 1.
    pub(crate) number: u64,
    /// The congestion control of the leg over the link.
    pub(crate) control: &'static str,
    pub(crate) from: Initiator,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) near: Near,
    pub(crate) link: LinkLeg,
    /// The gateway at the other end of the link, if there is one.
    pub(crate) gateway: Option<NonZeroU32>,
    /// The relay's forward direction is from the hosts to the link.
    relay: Relay<Bytes>,
    pub(crate) began: Instant,
    /// The time of day at that time, nanoseconds: with the number, it identifies the flow in the log.
    pub(crate) began_at: u64,
    /// When the log last had a line about the flow, or when the flow began.
    pub(crate) reported: Instant,
    /// When data was last moved from one leg to the other.
    last_moved: Instant,
    /// The flow is in the gateway's list of flows to process.
    pub(crate) scheduled: bool,
}

/// Byte counts of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteCounts {
    /// Bytes that left the relay to the link.
    pub(crate) to_link: u64,
    /// Bytes that left the relay to the hosts.
    pub(crate) to_hosts: u64,
    /// Bytes that wait in the relay.
    pub(crate) waiting: u64,
    /// Bytes that were waiting in the relay when a leg failed.
    pub(crate) lost: u64,
}

impl Flow {
    pub(crate) fn new(
        now: Instant,
        from: Initiator,
        (client, server): (SocketAddr, SocketAddr),
        (near, link): (Near, LinkLeg),
        buffer: u64,
    ) -> Self {
        let relay = Relay::new(buffer);
        Self {
            number: 0,
            control: "",
            from,
            client,
            server,
            near,
            link,
            gateway: None,
            relay,
            began: now,
            began_at: log::time_of_day(),
            reported: now,
            last_moved: now,
            scheduled: false,
        }
    }

    /// Whether the flow waits for the client's first bytes, and they may have arrived.
    pub(crate) fn may_open(&self) -> bool {
        matches!(self.link, LinkLeg::Unopened(_)) && self.near.is_readable()
    }
    /// The address of the end behind the link.
    pub(crate) fn behind(&self) -> IpAddr {
        match self.from {
            Initiator::Hosts => self.server.ip(),
            Initiator::Link => self.client.ip(),
        }
    }
    pub(crate) fn passed(&self) -> ByteCounts {
        ByteCounts {
            to_link: self.relay.forward().given(),
            to_hosts: self.relay.back().given(),
            waiting: self.relay.held(),
            lost: self.relay.lost(),
        }
    }
    /// Whether nothing has moved for `stuck` with data in the relay, or for `idle` without data in it.
    pub(crate) fn is_stuck(&self, now: Instant, stuck: Duration, idle: Duration) -> bool {
        let most = if self.relay.held() > 0 { stuck } else { idle };
        now >= self.last_moved + most
    }

    /// Moves data between the legs as far as both allow.
    pub(crate) fn pump(&mut self, now: Instant, host: &mut Host, spare: &RefCell<Vec<u8>>) -> State {
        let id = match self.link {
            LinkLeg::Opening(id) | LinkLeg::Established(id) => id,
            LinkLeg::Unopened(_) | LinkLeg::Requested(_) => {
                return if self.near.has_failed() { State::Aborted } else { State::Open };
            }
        };
        let mut near = near::Side { near: &mut self.near, spare };
        let mut far = far::Side { host, id, now, spare };
        match self.relay.pump(&mut near, &mut far) {
            Progress::Some => self.last_moved = now,
            Progress::Nothing => {}
            Progress::Aborted => return State::Aborted,
        }
        if self.relay.is_over() { State::Finished } else { State::Open }
    }

    /// Closes both legs. If `in_order`, data that was written is still delivered; otherwise both legs are reset.
    pub(crate) fn close(self, now: Instant, host: &mut Host, in_order: bool) {
        if in_order {
            self.near.close();
        }
        if let Some(id) = self.link.id() {
            if !in_order {
                host.abort(now, id);
            }
            host.release(now, id);
        }
    }
}
