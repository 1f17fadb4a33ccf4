//! Our host in virtual time.

use super::ours::{Ours, host};
use skyhaul_base::Instant;
use skyhaul_net::host::{Host, Secret};
use skyhaul_net::offload::{Device, Exit};
use skyhaul_testkit::conformance::packet::{Damage, Packet};
use skyhaul_testkit::conformance::target::TcpInfo;
use skyhaul_testkit::conformance::{Answer, Call, Conditions, SocketStatus, Target, TargetKind};
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(crate) struct Virtual {
    host: Host,
    ours: Ours,
    now: Instant,
    out: VecDeque<(Instant, Packet)>,
    device: Option<Device>,
}

impl Virtual {
    /// With `offload`, packets leave as super-packets, and are split before they are looked at.
    pub(crate) fn new(conditions: &Conditions, offload: bool) -> Result<Self, String> {
        let host = host(conditions, Secret::fixed([7; 16]));
        Ok(Self {
            host,
            ours: Ours::new(conditions)?,
            now: Instant::ZERO,
            out: VecDeque::new(),
            device: offload.then(Device::default),
        })
    }
    fn drive(&mut self, what: impl FnOnce(&mut Host, Instant, &mut Exit<'_>)) {
        let Self { host, now, out, device, .. } = self;
        let mut take = |bytes: &[u8]| out.extend(Packet::decode(bytes).map(|p| (*now, p)));
        let mut exit = Exit::new(device.as_mut(), &mut take);
        what(host, *now, &mut exit);
        exit.flush();
    }
}

impl Target for Virtual {
    fn kind(&self) -> TargetKind {
        TargetKind::Host
    }
    fn now(&self) -> Instant {
        self.now
    }
    fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String> {
        for bytes in packet.encode(damage) {
            self.drive(|host, now, out| host.arrive(now, &bytes, out));
        }
        Ok(())
    }
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        loop {
            if let Some(next) = self.out.pop_front() {
                return Ok(Some(next));
            }
            let due = self.host.next_timeout();
            if due > until {
                self.now = self.now.max(until);
                return Ok(None);
            }
            self.now = self.now.max(due);
            self.drive(|host, now, out| host.handle_timeout(now, out));
        }
    }
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String> {
        let answer = self.ours.call(&mut self.host, self.now, peer, call, data);
        self.drive(|host, now, out| host.flush(now, out));
        answer
    }
    fn socket_status(&mut self, peer: SocketAddr) -> Result<SocketStatus, String> {
        self.ours.socket_status(&mut self.host, peer)
    }
    fn tcp_info(&mut self, peer: SocketAddr) -> Result<TcpInfo, String> {
        self.ours.tcp_info(&mut self.host, peer)
    }
}
