//! The scripted peer's side of an interface: packets that a case sends are written into it, what the TCP under test sends is
//! read from it.

use skyhaul_base::Instant;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::wait::Wait;
use skyhaul_net::{Clock, Namespace};
use skyhaul_testkit::conformance::packet::{Damage, Packet};
use std::net::IpAddr;

pub(crate) struct ScriptSide {
    tun: Tun,
    wait: Wait,
    begin: Instant,
    buffer: Vec<u8>,
    peer: IpAddr,
}

impl ScriptSide {
    /// An interface of the calling thread's namespace with this address.
    pub(crate) fn open(address: (IpAddr, u8), mtu: u16, peer: IpAddr) -> Result<Self, String> {
        let config = TunConfig { name: None, addresses: vec![address], mtu, offload: false };
        let tun = Tun::open(&config).map_err(|e| e.to_string())?;
        let wait = Wait::on(&[&tun]).map_err(|e| e.to_string())?;
        Ok(Self { tun, wait, begin: Clock::now(), buffer: vec![0; 1 << 16], peer })
    }
    /// Time since it was opened.
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + (Clock::now() - self.begin)
    }
    pub(crate) fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String> {
        for bytes in packet.encode(damage) {
            if !self.tun.write(&bytes).map_err(|e| e.to_string())? {
                return Err("the interface did not take the packet".into());
            }
        }
        Ok(())
    }
    pub(crate) fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        loop {
            while let Some(n) = self.tun.read(&mut self.buffer).map_err(|e| e.to_string())? {
                // The kernel has things of its own to say on an interface.
                let packet = Packet::decode(&self.buffer[..n]).filter(|p| p.dst.ip() == self.peer);
                if let Some(p) = packet {
                    return Ok(Some((self.now(), p)));
                }
            }
            if self.now() >= until {
                return Ok(None);
            }
            let at = self.begin + (until - Instant::ZERO);
            self.wait.until(at).map_err(|e| e.to_string())?;
        }
    }
}

/// A namespace of a case's own.
pub(crate) fn space() -> Result<Namespace, String> {
    Namespace::new().map_err(|e| e.to_string())
}
