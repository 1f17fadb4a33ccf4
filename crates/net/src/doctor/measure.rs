//! Short measurements: the lateness of timers, and the rate of packets through TUN devices.

use crate::device::Clock;
use crate::device::Namespace;
use crate::device::tun::{Tun, TunConfig};
use crate::device::wait::Wait;
use crate::error::NetError;
use skyhaul_base::Duration;
use skyhaul_wire::{checksum::Sum, ip};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Wake-up latency of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Median.
    pub median: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub most: Duration,
}

/// Length of a wait: long enough for the processor to go idle.
const WAIT: Duration = Duration::from_millis(2);

/// Waits `n` times, at least once, for 2 ms, and measures how late each wait ends.
///
/// # Errors
/// If the system refuses to wait.
pub fn lateness(wait: &mut Wait, n: usize) -> Result<Lateness, NetError> {
    let mut late = Vec::with_capacity(n);
    while late.len() < n.max(1) {
        let due = Clock::now() + WAIT;
        let mut now = Clock::now();
        // A signal may wake us early.
        while now < due {
            wait.until(due)?;
            now = Clock::now();
        }
        late.push(now - due);
    }
    late.sort_unstable();
    let at = |share: f64| {
        let n = (late.len().saturating_sub(1) as f64 * share).round() as usize;
        late.get(n).copied().unwrap_or_default()
    };
    Ok(Lateness { median: at(0.5), p99: at(0.99), most: at(1.0) })
}

/// Packets written at a time: few enough that no queue fills.
const BATCH: usize = 64;
/// Consecutive batches of which no packet comes out, before the measurement is given up.
const MAX_IDLE: u32 = 16;
/// Size of a packet, bytes.
const SIZE: usize = 1500;

/// Packets of 1500 bytes per second that one thread can write to one device and read from another, while the kernel
/// forwards them in between in the time of the same thread. An emulator does almost the same work for each packet.
///
/// # Errors
/// If the devices cannot be created, or the kernel forwards nothing.
pub(super) fn forwarded(space: &Namespace, packets: usize) -> Result<f64, NetError> {
    let near = IpAddr::from(Ipv4Addr::new(198, 18, 0, 1));
    let far = IpAddr::from(Ipv4Addr::new(198, 19, 0, 1));
    let device = |address| {
        let config =
            TunConfig { name: None, addresses: vec![(address, 24)], mtu: SIZE as u16, offload: false };
        space.within(|| Tun::open(&config))?
    };
    let (entry, exit) = (device(near)?, device(far)?);
    let packet = datagram([198, 18, 0, 2], [198, 19, 0, 2]);
    let mut buffer = vec![0; 1 << 16];
    let lost = || NetError::os("measure the speed", io::Error::other("the kernel does not forward packets"));
    let began = Clock::now();
    let (mut got, mut idle) = (0, 0);
    while got < packets {
        for _ in 0..BATCH {
            entry.write(&packet)?;
        }
        let before = got;
        while let Some(n) = exit.read(&mut buffer)? {
            // Ignores the kernel's own packets, such as router solicitations.
            got += usize::from(n == SIZE && buffer.get(9) == packet.get(9));
        }
        idle = if got == before { idle + 1 } else { 0 };
        if idle >= MAX_IDLE {
            return Err(lost());
        }
    }
    let took = (Clock::now() - began).as_secs_f64();
    Ok(got as f64 / took.max(1e-9))
}

/// A datagram of [`SIZE`] bytes (UDP without a checksum, which IPv4 permits).
fn datagram(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let length = (SIZE as u16).to_be_bytes();
    let mut head =
        [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, skyhaul_wire::udp::PROTOCOL, 0, 0].to_vec();
    head.extend(from.iter().chain(&to));
    let sum = Sum::default().bytes(&head).finish().to_be_bytes();
    drop(head.splice(10..12, sum));
    // From port 0, which means none (RFC 768), to the discard service (RFC 863).
    let ports = [0, 9, (SIZE - ip::V4_HEADER) as u16].map(u16::to_be_bytes);
    head.extend(ports.as_flattened());
    head.resize(SIZE, 0);
    head
}
