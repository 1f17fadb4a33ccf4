//! What one sender uses on a host: connections, or a port for datagrams.

use super::account::Account;
use super::session::Carrier;
use super::tally::Tally;
use crate::host::{ConnId, Endpoint, Failure, Host, HostError};
use skyhaul_apps::{Datagram, Feedback};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::PathState;
use skyhaul_tcp::State;
use std::net::SocketAddr;
use std::sync::Arc;

/// How long a connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the peer's FIN after ours was acknowledged: a host that ends earlier never acknowledges that FIN.
const LINGER: Duration = Duration::from_secs(1);
/// The content of all data sent by workloads and by the iperf3 server, repeated.
#[expect(clippy::indexing_slicing, reason = "made before the program runs")]
pub(super) static PATTERN: [u8; 1 << 16] = {
    let (mut bytes, mut i) = ([0; 1 << 16], 0);
    while i < bytes.len() {
        bytes[i] = (i ^ (i >> 8)) as u8;
        i += 1;
    }
    bytes
};

/// A connection.
#[derive(Clone, Copy, Debug)]
struct TransferConnection {
    transfer: u64,
    id: ConnId,
    /// The transfer is complete or given up; only the close is still pending.
    released: bool,
    /// When to stop waiting for the close.
    close_by: Instant,
}

/// What one sender uses on a host: a connection for each transfer, or a port for datagrams.
#[derive(Debug)]
pub struct HostTransport {
    /// The local and the remote address.
    ends: (SocketAddr, SocketAddr),
    endpoint: Arc<Endpoint>,
    /// Connections that are not over.
    open: Vec<TransferConnection>,
    /// Totals of released connections.
    released: Tally,
    /// What the last released connection knew of the path, for the next one.
    path_state: Option<PathState>,
    /// Transfers and summaries of the connections that ended since the last call of [`Self::take_summaries`].
    summaries: Vec<(u64, Account)>,
    /// Buffer for the datagram being sent.
    datagram: Vec<u8>,
}

impl HostTransport {
    /// Uses connections from `ends.0`, whose port may be 0, to `ends.1`.
    #[must_use]
    pub fn connections(ends: (SocketAddr, SocketAddr), endpoint: Arc<Endpoint>) -> Self {
        Self {
            ends,
            endpoint,
            open: Vec::new(),
            released: Tally::default(),
            path_state: None,
            summaries: Vec::new(),
            datagram: Vec::new(),
        }
    }
    /// Uses datagrams from `ends.0` to `ends.1`; a local port of 0 chooses a free one and binds it.
    ///
    /// # Errors
    /// If the port is taken, or no port is free.
    pub fn datagrams(
        host: &mut Host,
        (mut local, remote): (SocketAddr, SocketAddr),
        endpoint: Arc<Endpoint>,
    ) -> Result<Self, HostError> {
        local.set_port(host.bind(local.port())?);
        Ok(Self::connections((local, remote), endpoint))
    }

    /// Local address and port; a port of 0 means a different one for each connection.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.ends.0
    }
    /// The connection of a transfer, until it is closed.
    #[must_use]
    pub fn id(&self, transfer: u64) -> Option<ConnId> {
        self.open.iter().find(|c| c.transfer == transfer).map(|c| c.id)
    }
    /// The connections of unfinished transfers.
    pub fn open(&self) -> impl Iterator<Item = ConnId> {
        self.open.iter().filter(|c| !c.released).map(|c| c.id)
    }
    /// Why the connection of an unfinished transfer failed.
    #[must_use]
    pub fn failure(&self, host: &Host) -> Option<Failure> {
        self.open().find_map(|id| host.conn(id)?.failure())
    }
    /// Totals of all connections, including closed ones.
    #[must_use]
    pub fn tally(&self, host: &Host) -> Tally {
        let open = self.open().filter_map(|id| host.conn(id));
        open.fold(self.released, |sum, c| sum.with(&c.counters()))
    }
    /// Summaries of the connections that ended since the last call, by transfer.
    pub fn take_summaries(&mut self) -> Vec<(u64, Account)> {
        std::mem::take(&mut self.summaries)
    }
    /// The carrier of a session over these connections or datagrams of `host`.
    pub fn carrier<'a>(&'a mut self, host: &'a mut Host) -> HostCarrier<'a> {
        HostCarrier { transport: self, host }
    }

    /// Gives connections at most `timeout` to close, and aborts those whose handshake is not complete.
    pub fn hurry(&mut self, now: Instant, host: &mut Host, timeout: Duration) {
        for l in &mut self.open {
            l.close_by = l.close_by.min(now + timeout);
            if host.conn(l.id).is_some_and(|c| !c.is_connected()) {
                host.abort(now, l.id);
            }
        }
    }

    /// Releases connections that have ended or whose close has timed out.
    pub fn tend(&mut self, now: Instant, host: &mut Host) {
        let Self { open, released, summaries, .. } = self;
        open.retain_mut(|l| {
            // A peer that closes later, such as a server, may still send; its data is discarded.
            host.discard(now, l.id);
            let Some(c) = host.conn(l.id) else { return false };
            if l.released && c.tcp().state() == State::FinWait2 {
                l.close_by = l.close_by.min(now + LINGER);
            }
            let ended = c.is_over() || c.tcp().state() == State::TimeWait;
            if !ended && l.close_by > now {
                return true;
            }
            if !l.released {
                *released = released.with(&c.counters());
            }
            summaries.push((l.transfer, Account::of(c)));
            if !ended && c.tcp().state() != State::FinWait2 {
                host.abort(now, l.id);
            }
            host.release(now, l.id);
            false
        });
    }
    /// Latest time at which [`Self::tend`] must be called.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.open.iter().map(|c| c.close_by).min().unwrap_or(Instant::MAX)
    }
}

/// Carries a session over the connections or datagrams of a host.
#[derive(Debug)]
pub struct HostCarrier<'a> {
    transport: &'a mut HostTransport,
    host: &'a mut Host,
}

impl Carrier for HostCarrier<'_> {
    type Error = HostError;

    fn open(&mut self, now: Instant, transfer: u64) -> Result<(), HostError> {
        let Self { transport, host } = self;
        let id = host.connect(now, transport.ends.0, transport.ends.1, &transport.endpoint)?;
        if let Some(state) = transport.path_state {
            host.recall(now, id, state);
        }
        transport.open.push(TransferConnection { transfer, id, released: false, close_by: Instant::MAX });
        Ok(())
    }
    fn write(&mut self, now: Instant, transfer: u64, most: u64) -> u64 {
        let Some(id) = self.transport.id(transfer) else { return 0 };
        let mut written = 0;
        while written < most {
            let from = self.host.conn(id).map_or(0, |c| c.bytes_written() as usize % PATTERN.len());
            let rest = PATTERN.get(from..).unwrap_or_default();
            let wanted = (most - written).min(rest.len() as u64) as usize;
            let n = self.host.write(now, id, rest.get(..wanted).unwrap_or(rest));
            written += n as u64;
            if n < wanted {
                break;
            }
        }
        written
    }
    fn take_back(&mut self, now: Instant, transfer: u64) {
        if let Some(id) = self.transport.id(transfer) {
            self.host.take_back(now, id);
        }
    }
    /// Does nothing: [`Self::release`] sends the FIN once everything is acknowledged. Transfers of the simulator have no
    /// FIN, and a FIN in the last segment is acknowledged at once (RFC 9293 §3.10.7.4), where data alone may wait for a
    /// delayed acknowledgement (RFC 5681 §4.2).
    fn finish(&mut self, _now: Instant, _transfer: u64) {}
    fn is_acknowledged(&mut self, _now: Instant, transfer: u64) -> bool {
        let conn = self.transport.id(transfer).and_then(|id| self.host.conn(id));
        conn.is_some_and(|c| c.failure().is_none() && c.tcp().unacked() == 0)
    }
    fn feedback(&mut self, _now: Instant, transfer: u64) -> Feedback {
        let conn = self.transport.id(transfer).and_then(|id| self.host.conn(id));
        conn.map_or_else(Feedback::default, |c| {
            let sender = c.tcp().sender();
            Feedback {
                unacknowledged: sender.unacked(),
                allowed: sender.allowed(),
                round_trip: sender.srtt(),
            }
        })
    }
    fn release(&mut self, now: Instant, transfer: u64) {
        let Some(connection) = self.transport.open.iter_mut().find(|c| c.transfer == transfer) else {
            return;
        };
        (connection.released, connection.close_by) = (true, connection.close_by.min(now + CLOSE_TIMEOUT));
        self.host.shutdown(now, connection.id);
        if let Some(c) = self.host.conn(connection.id) {
            self.transport.released = self.transport.released.with(&c.counters());
            self.transport.path_state = c.tcp().path_state();
        }
    }
    fn datagram(&mut self, _now: Instant, datagram: &Datagram) -> Result<(), HostError> {
        let HostTransport { ends, datagram: bytes, .. } = &mut *self.transport;
        bytes.resize(datagram.len as usize, 0);
        // A datagram too short for a header is sent anyway; its receiver cannot measure it.
        let _ = datagram.write(bytes);
        self.host.send_to(ends.0, ends.1, bytes)
    }
}
