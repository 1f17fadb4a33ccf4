//! Our endpoint on a path that is longer or shorter than the one of a case. A case is written for a round-trip time of 100 ms;
//! what the documents say in round trips and timeouts has to happen on any other path at the same multiples of its
//! round-trip time. The constants of the endpoint (shortest timeout, delay of acknowledgements and so on) are scaled as the
//! path is, so that all times scale alike.

use super::conditions::Conditions;
use super::core::Core;
use super::option::Opt;
use super::packet::{Damage, Packet, Transport};
use super::target::{Answer, Call, SocketStatus, Target, TargetKind, TcpInfo};
use skyhaul_base::{Duration, Instant};
use std::net::SocketAddr;

/// The endpoint, whose clock is that of its path; the case sees its times as on a path of 100 ms.
#[derive(Debug)]
pub struct ScaledTarget {
    core: Core,
    percent: u64,
    /// The newest timestamp that has left.
    stamp: u32,
}

impl ScaledTarget {
    /// An endpoint as the case wants it, on a path of `percent` of the length.
    #[must_use]
    pub fn new(conditions: &Conditions, percent: u64) -> Self {
        Self { core: Core::scaled(conditions, percent), percent, stamp: 0 }
    }
    /// A time of the case as a time of the endpoint.
    fn inside(&self, at: Instant) -> Instant {
        Instant::from_nanos((u128::from(at.as_nanos()) * u128::from(self.percent) / 100) as u64)
    }
    /// A time of the endpoint as a time of the case.
    fn outside(&self, at: Instant) -> Instant {
        // Rounded up, so that `inside` of the result is not before `at`.
        Instant::from_nanos((u128::from(at.as_nanos()) * 100).div_ceil(u128::from(self.percent)) as u64)
    }
}

impl Target for ScaledTarget {
    fn kind(&self) -> TargetKind {
        TargetKind::Core
    }
    fn now(&self) -> Instant {
        self.outside(self.core.now())
    }
    fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String> {
        let mut packet = packet.clone();
        if let Transport::Tcp(tcp) = &mut packet.transport {
            for o in &mut tcp.options {
                // The age of an echo is a time, too.
                if let Opt::Stamps(_, echo) = o {
                    let age = i64::from(self.stamp.wrapping_sub(*echo) as i32);
                    if *echo != 0 && age > 0 {
                        *echo = self.stamp.wrapping_sub((age * self.percent as i64 / 100) as u32);
                    }
                }
            }
        }
        self.core.arrives(&packet, damage)
    }
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        let left = self.core.leaves(self.inside(until))?;
        if let Some((_, Packet { transport: Transport::Tcp(tcp), .. })) = &left {
            for o in &tcp.options {
                if let Opt::Stamps(value, _) = o {
                    self.stamp = self.stamp.max(*value);
                }
            }
        }
        Ok(left.map(|(at, p)| (self.outside(at), p)))
    }
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String> {
        self.core.call(peer, call, data)
    }
    fn socket_status(&mut self, peer: SocketAddr) -> Result<SocketStatus, String> {
        self.core.socket_status(peer)
    }
    fn tcp_info(&mut self, peer: SocketAddr) -> Result<TcpInfo, String> {
        let tcp_info = self.core.tcp_info(peer)?;
        let rto = Duration::from_nanos(
            (u128::from(tcp_info.rto.as_nanos()) * 100 / u128::from(self.percent)) as u64,
        );
        Ok(TcpInfo { rto, ..tcp_info })
    }
}
