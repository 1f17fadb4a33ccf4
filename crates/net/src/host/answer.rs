//! Answers to segments without a connection and to ICMP messages, and the effects of ICMP messages.

use super::ends::Ends;
use super::place::segment_limit;
use super::{Conn, Host};
use crate::outlet::{Merge, Outlet};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::{Flags, Segment, Seq, State};
use skyhaul_wire::icmp::{self, Icmp, Quoted};
use skyhaul_wire::tcp::Tcp;
use skyhaul_wire::{Agreement, Checksum, EncodeError, Envelope, ip};
use std::net::{IpAddr, SocketAddr};

/// How long the MTU of a route is not looked up again.
const ROUTE_AGE: Duration = Duration::from_secs(1);
/// Maximum number of destinations whose route's MTU is remembered.
const ROUTES: usize = 4096;

/// Lowest first byte of reserved addresses (RFC 1112 §4), among them the limited broadcast address.
const CLASS_E: u8 = 240;

impl Host {
    /// Handles a segment without a connection (RFC 9293 §3.10.7.1).
    pub(super) fn stranger(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        tcp: &Tcp<'_>,
        out: &mut impl Outlet,
    ) {
        self.counts.strangers += 1;
        if tcp.flags.has(Flags::RST) || !self.may_answer(now, remote.ip()) {
            return;
        }
        let mut rst = Segment { seq: tcp.ack, flags: Flags::RST, ..Segment::default() };
        if !tcp.flags.has(Flags::ACK) {
            rst.seq = Seq(0);
            let span = tcp.payload.len() as u32
                + u32::from(tcp.flags.has(Flags::SYN))
                + u32::from(tcp.flags.has(Flags::FIN));
            rst.ack = tcp.seq.add(span);
            rst.flags = Flags::RST.with(Flags::ACK);
        }
        self.reset(local, remote, &rst, out);
    }
    /// Refuses a connection whose SYN had this sequence number (RFC 9293 §3.10.7.1).
    pub(super) fn reset_syn(&mut self, ends: &Ends, syn: Seq, out: &mut impl Outlet) {
        let flags = Flags::RST.with(Flags::ACK);
        let rst = Segment { seq: Seq(0), ack: syn.add(1), flags, ..Segment::default() };
        self.reset(ends.local(), ends.remote(), &rst, out);
    }
    pub(super) fn reset(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        rst: &Segment,
        out: &mut impl Outlet,
    ) {
        let envelope = Envelope::new(local, remote);
        let agreed = Agreement { plan: self.config.plan, ..Agreement::default() };
        let write = |room: &mut [u8]| {
            skyhaul_wire::encode_with(room, &envelope, &agreed, rst, Checksum::Written, |_| {})
        };
        if out.send(skyhaul_wire::MAX_HEADER, Merge::Alone, write).is_ok() {
            self.counts.resets_out += 1;
            self.counts.packets_out += 1;
        }
    }

    /// Handles an ICMP message: an echo request, or one about a connection of ours. False if it is neither.
    pub(super) fn message(
        &mut self,
        now: Instant,
        ip: &ip::Header,
        message: &Icmp<'_>,
        out: &mut impl Outlet,
    ) -> bool {
        match *message {
            Icmp::EchoRequest(echo) if self.may_answer(now, ip.src) => {
                let write = |room: &mut [u8]| icmp::encode_echo_reply(room, ip, echo);
                if out.send(ip::V6_HEADER + 4 + echo.len(), Merge::Alone, write).is_ok() {
                    self.counts.packets_out += 1;
                }
                true
            }
            Icmp::EchoRequest(_) => true,
            Icmp::TooBig { mtu, quoted } => self.too_big(now, mtu, &quoted, out),
            Icmp::Unreachable { hard, quoted } => {
                let Some(slot) = self.genuine(&quoted) else { return false };
                // RFC 5927 §5.2: hard errors abort only connections that are not established. A host that stands in for another
                // one passes every error on: the other host decides what to do next (RFC 5461 §4.1).
                let ends = hard || self.config.transparent;
                if let Some(c) = self.at_mut(slot).filter(|c| ends && c.tcp().state() == State::SynSent) {
                    c.unreachable(now);
                    self.pump(now, slot, out);
                }
                true
            }
            Icmp::Other => false,
        }
    }

    /// Gives back a packet that was not for us: the kernel forwards it to its destination.
    pub(super) fn pass_on(&mut self, packet: &[u8], out: &mut impl Outlet) {
        let write = |room: &mut [u8]| {
            let room = room.get_mut(..packet.len()).ok_or(EncodeError::Buffer)?;
            room.copy_from_slice(packet);
            Ok::<_, EncodeError>(packet.len())
        };
        if out.send(packet.len(), Merge::Alone, write).is_ok() {
            self.counts.passed_on += 1;
            self.counts.packets_out += 1;
        }
    }

    /// Whether this is not a valid source address: an answer would go to many hosts, to this one or to none (RFC
    /// 1122 §3.2.1.3, RFC 6890).
    pub(super) fn is_martian(&self, src: IpAddr) -> bool {
        let nobody = match src {
            IpAddr::V4(a) => {
                a.is_multicast() || a.is_loopback() || a.octets()[0] == 0 || a.octets()[0] >= CLASS_E
            }
            IpAddr::V6(a) => {
                a.is_multicast() || a.is_loopback() || a.is_unspecified() || a.to_ipv4_mapped().is_some()
            }
        };
        nobody || self.config.addresses.contains(&src)
    }

    /// The connection of an ICMP message, if the segment that it quotes is outstanding (RFC 5927 §4).
    fn genuine(&mut self, quoted: &Quoted) -> Option<u32> {
        let slot = self.demux.get(&Ends::new(quoted.src, quoted.dst));
        let slot = slot.filter(|&s| self.at(s).is_some_and(|c| c.tcp().is_outstanding(quoted.seq)));
        if slot.is_none() {
            self.counts.messages_refused += 1;
        }
        slot
    }

    fn too_big(&mut self, now: Instant, mtu: u32, quoted: &Quoted, out: &mut impl Outlet) -> bool {
        let Some(slot) = self.genuine(quoted) else { return false };
        // Initially only packets that every path can carry are sent: such a report may be a guess.
        if !self.at(slot).is_some_and(Conn::is_connected) {
            self.counts.messages_refused += 1;
            return true;
        }
        if quoted.dst.is_ipv6() && mtu < icmp::LEAST_MTU_V6 {
            // The minimum MTU of IPv6 is larger (RFC 8201 §4).
            self.counts.messages_refused += 1;
            return true;
        }
        let mtu = mtu.max(icmp::LEAST_MTU_V4);
        if mtu >= self.config.mtu {
            return true;
        }
        self.counts.paths_narrowed += 1;
        self.paths.note(now, quoted.dst.ip(), mtu);
        let limit = segment_limit(mtu, quoted.dst.ip());
        if let Some(c) = self.at_mut(slot) {
            c.narrow(now, limit);
            self.pump(now, slot, out);
        }
        true
    }

    /// Looks up the MTU of the route to an address, unless that was done a moment ago. New connections to it then use packets
    /// of at most this size.
    pub fn look_up_route(&mut self, now: Instant, to: IpAddr, look: impl FnOnce(IpAddr) -> Option<u32>) {
        if self.routes.get(&to).is_some_and(|(_, at)| now < *at + ROUTE_AGE) {
            return;
        }
        if self.routes.len() >= ROUTES {
            self.routes.clear();
        }
        self.routes.insert(to, (look(to), now));
    }

    /// Whether this address without a connection may be answered; if so, the answer counts.
    pub(super) fn may_answer(&mut self, now: Instant, to: IpAddr) -> bool {
        let may = self.answers.take(&self.config.secret, now, to);
        self.counts.answers_withheld += u64::from(!may);
        may
    }
}
