//! Datagrams of a host: those waiting to be sent, and those waiting to be read.

use super::{Host, HostError};
use crate::outlet::{Merge, Outlet};
use skyhaul_base::Instant;
use skyhaul_wire::udp::{self, Udp};
use skyhaul_wire::{Agreement, Envelope, Payload, encode_udp, ip};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Maximum datagrams waiting for applications: any sender on the network may send more than applications read.
const MOST_WAITING: usize = 4096;

/// A datagram that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Arrival time.
    pub at: Instant,
    /// Sender's address.
    pub from: SocketAddr,
    /// Local address; its port is bound.
    pub to: SocketAddr,
    /// Payload.
    pub payload: Vec<u8>,
}

#[derive(Debug)]
struct Leaving {
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

/// Bound ports, and queues in both directions.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    bound: BTreeSet<u16>,
    arrived: VecDeque<Arrived>,
    leaving: VecDeque<Leaving>,
}

impl Host {
    /// Receives datagrams to `port` at every address; a port of 0 chooses a free one. Returns the port. TCP ports
    /// are separate.
    ///
    /// # Errors
    /// If the port is bound already, or no port is free.
    pub fn bind(&mut self, port: u16) -> Result<u16, HostError> {
        let bound = &mut self.datagrams.bound;
        let port = match port {
            0 => {
                let free = (super::FIRST_PORT..=u16::MAX).find(|p| !bound.contains(p));
                free.ok_or(HostError::NoDatagramPort)?
            }
            port => port,
        };
        if bound.insert(port) { Ok(port) } else { Err(HostError::PortInUse(port)) }
    }
    /// Stops receiving datagrams to `port`; datagrams that have arrived stay.
    pub fn unbind(&mut self, port: u16) {
        self.datagrams.bound.remove(&port);
    }
    /// Sends a datagram. It leaves with the next [`Self::flush`].
    ///
    /// # Errors
    /// If the local address is not ours, the addresses are of different families, or the packet exceeds the MTU of the device.
    pub fn send_to(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Result<(), HostError> {
        self.check_ends(from.ip(), to.ip())?;
        let most = self.config.mtu as usize - headers(to.ip()).min(self.config.mtu as usize);
        if payload.len() > most {
            return Err(HostError::TooLong { bytes: payload.len(), most });
        }
        self.datagrams.leaving.push_back(Leaving { from, to, payload: payload.to_vec() });
        Ok(())
    }
    /// The oldest waiting datagram.
    pub fn receive(&mut self) -> Option<Arrived> {
        self.datagrams.arrived.pop_front()
    }

    /// Handles an arriving datagram.
    pub(super) fn datagram(&mut self, now: Instant, ip: &ip::Header, udp: &Udp<'_>) {
        let Self { datagrams, counts, .. } = self;
        if !datagrams.bound.contains(&udp.dst_port) {
            counts.not_tcp += 1;
        } else if datagrams.arrived.len() >= MOST_WAITING {
            counts.datagrams_dropped += 1;
        } else {
            counts.datagrams_in += 1;
            datagrams.arrived.push_back(Arrived {
                at: now,
                from: SocketAddr::new(ip.src, udp.src_port),
                to: SocketAddr::new(ip.dst, udp.dst_port),
                payload: udp.payload.to_vec(),
            });
        }
    }

    /// Sends the waiting datagrams.
    pub(super) fn flush_datagrams(&mut self, out: &mut impl Outlet) {
        let agreed = Agreement { plan: self.config.plan, ..Agreement::default() };
        while let Some(Leaving { from, to, payload }) = self.datagrams.leaving.pop_front() {
            let (envelope, len) = (Envelope::new(from, to), payload.len());
            let write = |room: &mut [u8]| {
                let data = Payload::Bytes(&payload);
                encode_udp(room, &envelope, &agreed, false, len, data).map(|e| e.written)
            };
            // Merged with others it would become one datagram.
            match out.send(headers(to.ip()) + len, Merge::Alone, write) {
                Ok(()) => {
                    self.counts.datagrams_out += 1;
                    self.counts.packets_out += 1;
                }
                Err(e) => {
                    debug_assert!(false, "{e}: {len} bytes");
                    self.counts.unwritable += 1;
                }
            }
        }
    }
}

/// Header bytes of a datagram to this address.
fn headers(to: IpAddr) -> usize {
    udp::HEADER + if to.is_ipv4() { ip::V4_HEADER } else { ip::V6_HEADER }
}
