//! Rate-controlled datagrams on a host: the sending end carries a session, the receiving end sends reports.
//!
//! The protocol is that of the simulator (`skyhaul_rate`). Its headers are at the front of the datagrams
//! (docs/wire.md).

use super::session::Carrier;
use crate::host::{Host, HostError};
use skyhaul_apps::{Datagram, Feedback};
use skyhaul_base::Instant;
use skyhaul_rate::{Config, Counters, Data, Offered, Receiver, ReceiverStatistics, Report, Sender, State};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The sending end of a flow, on its own port.
#[derive(Debug)]
pub struct Rated {
    ends: (SocketAddr, SocketAddr),
    sender: Sender,
    offered: Offered,
    /// Headers of each datagram, bytes.
    header: u32,
    /// Buffer for the datagram being sent.
    room: Vec<u8>,
}

impl Rated {
    /// A sender that starts at a given time, from `ends.0` to `ends.1`; a local port of 0 chooses a free one and
    /// binds it. Each datagram has `header` bytes of headers.
    ///
    /// # Errors
    /// If the port is taken, or no port is free.
    pub fn bind(
        host: &mut Host,
        (mut local, remote): (SocketAddr, SocketAddr),
        begins: Instant,
        config: &Config,
        header: u32,
    ) -> Result<Self, HostError> {
        local.set_port(host.bind(local.port())?);
        let (sender, offered) = (Sender::new(begins, config), Offered::default());
        Ok(Self { ends: (local, remote), sender, offered, header, room: Vec::new() })
    }
    /// Local address and port.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.ends.0
    }
    /// Handles a datagram that arrived at our port; one that is no report is ignored.
    pub fn arrived(&mut self, now: Instant, payload: &[u8]) {
        if let Some(report) = Report::read(payload) {
            self.sender.handle_report(now, &report);
        }
    }
    /// Sends what may be sent by now.
    ///
    /// # Errors
    /// If the host refuses to send.
    pub fn turn(&mut self, now: Instant, host: &mut Host) -> Result<(), HostError> {
        self.sender.handle_timeout(now);
        while let Some((data, offered)) = self.sender.poll_numbered(now) {
            self.offered.left(data.number, offered);
            self.room.resize(data.size.saturating_sub(self.header) as usize, 0);
            // A datagram too short for the protocol header is sent anyway; its receiver cannot use it.
            let _ = data.write(&mut self.room);
            host.send_to(self.ends.0, self.ends.1, &self.room)?;
        }
        Ok(())
    }
    /// The application needs no more data sent.
    pub fn finish(&mut self) {
        self.sender.finish();
    }
    /// Latest time at which [`Self::turn`] must be called.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.sender.next_timeout()
    }
    /// Which datagrams were offered to the transport.
    #[must_use]
    pub fn offered(&self) -> &Offered {
        &self.offered
    }
    /// Its counters and its state.
    #[must_use]
    pub fn sent(&self) -> (Counters, State) {
        (self.sender.counters(), self.sender.state())
    }
}

/// Datagrams that are not sent at once wait; none of them fails.
impl Carrier for Rated {
    type Error = HostError;

    fn open(&mut self, _now: Instant, _transfer: u64) -> Result<(), HostError> {
        self.sender.greedy();
        Ok(())
    }
    fn write(&mut self, _now: Instant, _transfer: u64, _most: u64) -> u64 {
        0
    }
    fn take_back(&mut self, _now: Instant, _transfer: u64) {
        self.sender.finish();
    }
    fn finish(&mut self, _now: Instant, _transfer: u64) {
        self.sender.finish();
    }
    fn is_acknowledged(&mut self, _now: Instant, _transfer: u64) -> bool {
        self.sender.is_over()
    }
    fn feedback(&mut self, _now: Instant, _transfer: u64) -> Feedback {
        Feedback { unacknowledged: 0, allowed: self.sender.allowed(), round_trip: self.sender.state().rtt }
    }
    fn release(&mut self, _now: Instant, _transfer: u64) {}
    /// The datagram gets its number when it is sent.
    fn datagram(&mut self, now: Instant, datagram: &Datagram) -> Result<(), HostError> {
        self.sender.offer(now, datagram.len.saturating_add(self.header));
        Ok(())
    }
}

/// The receiving ends at some ports, one for each sender. Senders are never forgotten, so use it only in networks
/// whose senders are known.
#[derive(Clone, Debug, Default)]
pub struct Reporters {
    /// The configuration expected at each port, and the header bytes of each datagram.
    ports: BTreeMap<u16, (Config, u32)>,
    senders: BTreeMap<SocketAddr, (SocketAddr, Receiver)>,
}

impl Reporters {
    /// Expects senders with this configuration at this port.
    pub fn expect(&mut self, port: u16, config: Config, header: u32) {
        self.ports.insert(port, (config, header));
    }
    /// Handles a datagram that arrived at `to`. One to another port, without a header, or with a time in the future, is
    /// ignored.
    pub fn arrived(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let Some((config, header)) = self.ports.get(&to.port()) else { return };
        let Some(data) = Data::read(payload, *header).filter(|d| d.sent_at <= now) else { return };
        let (_, receiver) = self.senders.entry(from).or_insert_with(|| (to, Receiver::new(config)));
        receiver.handle(now, &data, false);
    }
    /// Sends the reports that are due.
    ///
    /// # Errors
    /// If the host refuses to send.
    pub fn turn(&mut self, now: Instant, host: &mut Host) -> Result<(), HostError> {
        for (from, (to, receiver)) in &mut self.senders {
            receiver.handle_timeout(now);
            while let Some(report) = receiver.poll() {
                host.send_to(*to, *from, &report.to_bytes())?;
            }
        }
        Ok(())
    }
    /// Latest time at which [`Self::turn`] must be called.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.senders.values().map(|(_, r)| r.next_timeout()).min().unwrap_or(Instant::MAX)
    }
    /// What was received from this sender.
    #[must_use]
    pub fn of(&self, from: SocketAddr) -> Option<ReceiverStatistics> {
        self.senders.get(&from).map(|(_, r)| r.statistics())
    }
}
