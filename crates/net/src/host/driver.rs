//! Runs a host on a TUN device, in real time.

use super::app::{App, AppStatus};
use super::shaper::Shaper;
use super::tap::{Socket, Tap};
use super::transparent::exchange::Exchange;
use crate::device::Clock;
use crate::device::offload::{Arrivals, Departures};
use crate::device::tun::Tun;
use crate::device::wait::{Wait, Waker};
use crate::error::NetError;
use crate::host::{Host, Merge, Outlet};
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_wire::Checksum;
use skyhaul_wire::pcapng::Capture;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Packets read at a time before departures are handled.
const BATCH: usize = 64;
/// Room for the longest packet.
const ROOM: usize = (1 << 16) + skyhaul_wire::MAX_HEADER;

/// A host on a TUN device.
pub struct Driver {
    tun: Tun,
    wait: Wait,
    host: Host,
    capture: Option<Recording>,
    /// Where a tap is attached, how many changes of it this driver has noticed, and the tap.
    socket: Arc<Socket>,
    changes: u32,
    tap: Option<Tap>,
    /// Buffers for reading and writing.
    arriving: Vec<u8>,
    departing: Vec<u8>,
    /// Used with a device that has super-packets.
    merged: Option<(Arrivals, Departures)>,
    shaper: Option<Shaper>,
    /// The rate of the shaper as others set it, bit/s, and as it is.
    rate: Option<(Arc<AtomicU64>, u64)>,
    /// Used if there are several hosts on the device.
    exchange: Option<Arc<Exchange>>,
    /// Packets that other hosts have passed on.
    passed: Vec<Box<[u8]>>,
    /// Packets that the device refused.
    refused: Arc<AtomicU64>,
    /// CPU time used within [`Self::run`].
    cpu: Duration,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("tun", &self.tun).field("host", &self.host).finish_non_exhaustive()
    }
}

/// A capture in progress.
#[derive(Debug)]
struct Recording {
    capture: Capture<BufWriter<File>>,
    interface: u32,
    failure: Option<io::Error>,
}

impl Recording {
    fn packet(&mut self, now: Instant, packet: &[u8], comment: Option<&str>) {
        if self.failure.is_none() {
            let (nanos, total) = (wall_nanos(now), packet.len());
            let done = self.capture.packet(nanos, self.interface, packet, total, false, comment);
            self.failure = done.err();
        }
    }
}

/// Time of day, as captures need it.
fn wall_nanos(now: Instant) -> u64 {
    let (mono, wall) = (Clock::now(), Clock::wall_nanos());
    wall.saturating_sub(mono.as_nanos()).saturating_add(now.as_nanos())
}

/// The observers of packets: a capture and a tap.
struct PacketObservers<'a> {
    capture: Option<&'a mut Recording>,
    tap: &'a mut Option<Tap>,
}

impl PacketObservers<'_> {
    /// Whether an observer needs each packet separately.
    fn is_watched(&self) -> bool {
        self.capture.is_some() || self.tap.is_some()
    }
    fn packet(&mut self, now: Instant, arrived: bool, packet: &[u8], comment: Option<&str>) {
        if let Some(c) = &mut self.capture {
            c.packet(now, packet, comment);
        }
        // The reader of the tap has gone.
        if self.tap.as_ref().is_some_and(|tap| !tap.packet(now, arrived, packet)) {
            *self.tap = None;
        }
    }
}

/// Writes packets to the device.
struct PacketWriter<'a> {
    tun: &'a Tun,
    merged: Option<&'a mut Departures>,
    shaper: Option<&'a mut Shaper>,
    exchange: Option<&'a Exchange>,
    /// Room for one packet.
    packet: &'a mut [u8],
    now: Instant,
    observers: PacketObservers<'a>,
    refused: &'a AtomicU64,
    failure: &'a mut Option<NetError>,
}

impl Outlet for PacketWriter<'_> {
    fn checksum(&self) -> Checksum {
        self.merged.as_ref().map_or(Checksum::Written, |d| d.checksum())
    }

    fn allowance(&self) -> usize {
        self.shaper.as_ref().map_or(usize::MAX, |s| s.allowance(self.now))
    }

    fn send<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let Self { tun, merged, shaper, packet, now, observers, refused, failure, .. } = self;
        if let Some(departures) = merged {
            // A super-packet is refused as a whole, and later: captures do not show that it was refused.
            let device = |p: &[u8]| {
                give(tun, p, refused, failure);
            };
            return departures.push(most, merge, write, device, |p| observers.packet(*now, false, p, None));
        }
        // Without room, `write` fails.
        let room = packet.get_mut(..most).unwrap_or_default();
        let n = write(room)?;
        let packet = room.get(..n).unwrap_or_default();
        if let Some(shaper) = shaper {
            if merge == Merge::Low {
                shaper.wait(packet);
                return Ok(());
            }
            shaper.spend(*now, n);
        }
        let taken = give(tun, packet, refused, failure);
        observers.packet(*now, false, packet, (!taken).then_some("refused by the interface"));
        Ok(())
    }
}

/// Writes a packet to the device; false if the device refused it.
fn give(tun: &Tun, packet: &[u8], refused: &AtomicU64, failure: &mut Option<NetError>) -> bool {
    let taken = tun.write(packet).unwrap_or_else(|e| {
        failure.get_or_insert(e);
        false
    });
    if !taken {
        refused.fetch_add(1, Ordering::Relaxed);
    }
    taken
}

impl PacketWriter<'_> {
    /// Handles a packet read from the device, which may be for another host.
    fn route(&mut self, host: &mut Host, packet: &[u8]) {
        if let Some(exchange) = self.exchange {
            let addressee = host.config().addressee(packet);
            if addressee != host.config().share.number {
                exchange.pass(addressee, packet);
                return;
            }
        }
        self.deliver(host, packet);
    }
    /// Handles a packet for this host.
    fn deliver(&mut self, host: &mut Host, packet: &[u8]) {
        let now = self.now;
        self.observers.packet(now, true, packet, None);
        host.arrive(now, packet, self);
    }
    /// Handles what was read from a device with super-packets.
    fn route_merged(&mut self, host: &mut Host, arrivals: &mut Arrivals) {
        let merged = arrivals.whole().filter(|(_, packets)| *packets > 1 && !self.observers.is_watched());
        if merged.is_some_and(|(packet, packets)| host.arrive_merged(self.now, packet, packets, self)) {
            return;
        }
        arrivals.packets().for_each(|p| self.route(host, p));
    }
    /// Sends waiting probes if nothing else is to be sent.
    fn send_probes(&mut self) {
        let Self { tun, shaper, now, observers, refused, failure, .. } = self;
        let Some(shaper) = shaper else { return };
        while let Some(probe) = shaper.next_probe(*now) {
            shaper.spend(*now, probe.len());
            let taken = give(tun, &probe, refused, failure);
            observers.packet(*now, false, &probe, (!taken).then_some("refused by the interface"));
        }
    }
    fn flush(&mut self) {
        let Self { tun, merged, refused, failure, .. } = self;
        if let Some(departures) = merged {
            departures.flush(|p| {
                give(tun, p, refused, failure);
            });
        }
    }
}

impl Driver {
    /// A driver for a host on this device.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new(tun: Tun, host: Host) -> Result<Self, NetError> {
        let wait = Wait::on(&[&tun])?;
        let merged = tun.offloads().then(|| (Arrivals::default(), Departures::default()));
        let (arriving, departing) = (vec![0; 1 << 16], vec![0; ROOM]);
        let cpu = Duration::ZERO;
        Ok(Self {
            tun,
            wait,
            host,
            capture: None,
            socket: Arc::default(),
            changes: 0,
            tap: None,
            arriving,
            departing,
            merged,
            shaper: None,
            rate: None,
            exchange: None,
            passed: Vec::new(),
            refused: Arc::default(),
            cpu,
        })
    }

    /// Limits the sending rate, and sends low-priority probes only when nothing else is waiting.
    ///
    /// # Panics
    /// If the rate is zero, or the device has super-packets, whose packets cannot be counted.
    pub fn shape(&mut self, rate: Rate) {
        assert!(!self.tun.offloads(), "super-packets cannot be paced");
        self.shaper = Some(Shaper::new(rate));
    }
    /// As [`Self::shape`]; others may change the rate, in bit/s, while it runs.
    ///
    /// # Panics
    /// As [`Self::shape`].
    pub fn shape_as(&mut self, rate: Arc<AtomicU64>) {
        let now = rate.load(Ordering::Relaxed);
        self.shape(Rate::from_bits_per_sec(now));
        self.rate = Some((rate, now));
    }
    /// Also runs the application when this descriptor is readable.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub fn also_wait_for(&mut self, descriptor: &dyn AsFd) -> Result<(), NetError> {
        self.wait.replace(1, descriptor)
    }

    /// Moves the host to another device after the old one has disappeared. Connections notice nothing but a time without packets.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn renew(&mut self, tun: Tun) -> Result<(), NetError> {
        self.merged = tun.offloads().then(|| (Arrivals::default(), Departures::default()));
        // This closes the old device.
        self.tun = tun;
        self.wait.replace(0, &self.tun)
    }

    /// Writes all packets, in both directions, to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn capture(&mut self, to: File) -> io::Result<()> {
        let mut capture = Capture::new(BufWriter::new(to), 1 << 16)?;
        let interface = capture.interface(self.tun.name(), "between the stack and the kernel")?;
        self.capture = Some(Recording { capture, interface, failure: None });
        Ok(())
    }
    /// Ends the capture; returns the number of packets.
    ///
    /// # Errors
    /// If writing failed.
    pub fn finish_capture(&mut self) -> io::Result<u64> {
        match self.capture.take() {
            Some(Recording { failure: Some(e), .. }) => Err(e),
            Some(r) => r.capture.finish().map(|(packets, _)| packets),
            None => Ok(0),
        }
    }

    /// Passes packets of connections that other hosts have to them. The number of this host is that of its share.
    pub fn exchange(&mut self, exchange: Arc<Exchange>) {
        exchange.set_waker(self.host.config().share.number, self.wait.waker());
        self.exchange = Some(exchange);
    }
    /// Uses the taps that are attached to another driver.
    pub fn tap_with(&mut self, socket: Arc<Socket>) {
        (self.socket, self.changes) = (socket, 0);
    }

    /// Where a tap can be attached while it runs.
    #[must_use]
    pub fn socket(&self) -> Arc<Socket> {
        self.socket.clone()
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// The host.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }
    /// The device.
    #[must_use]
    pub fn tun(&self) -> &Tun {
        &self.tun
    }
    /// Packets that the device refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
    /// The same counter, for observers while the driver runs.
    #[must_use]
    pub fn refusals(&self) -> Arc<AtomicU64> {
        self.refused.clone()
    }
    /// CPU time used within [`Self::run`].
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.cpu
    }
    /// Wakes [`Self::run`] from another thread, so that `each` is called.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.wait.waker()
    }

    /// Runs an application until it is done. `each` is called on every turn and says whether the user wants to
    /// stop.
    ///
    /// # Errors
    /// If the device disappears.
    pub fn run<A: App>(
        &mut self,
        app: &mut A,
        mut each: impl FnMut(Instant, &mut A, &mut Host) -> bool,
    ) -> Result<(), NetError> {
        let began = Clock::thread_cpu();
        let mut stopped = false;
        let outcome = loop {
            let now = Clock::now();
            let mut failure = None;
            if let Some(tap) = self.socket.look(&mut self.changes) {
                self.tap = tap;
            }
            if let (Some((wanted, set)), Some(shaper)) = (&mut self.rate, &mut self.shaper) {
                let wanted = wanted.load(Ordering::Relaxed);
                if wanted != *set && wanted > 0 {
                    *set = wanted;
                    shaper.set_rate(Rate::from_bits_per_sec(wanted));
                }
            }
            let Self {
                tun,
                host,
                capture,
                tap,
                arriving,
                departing,
                merged,
                shaper,
                exchange,
                passed,
                refused,
                ..
            } = self;
            let exchange = exchange.as_deref();
            let (mut arrivals, departures) = match merged {
                Some((a, d)) => {
                    // A capture shows complete packets.
                    d.set_checksum(if capture.is_some() || tap.is_some() {
                        Checksum::Written
                    } else {
                        Checksum::Left
                    });
                    (Some(a), Some(d))
                }
                None => (None, None),
            };
            let mut out = PacketWriter {
                tun,
                merged: departures,
                shaper: shaper.as_mut(),
                exchange,
                packet: departing,
                now,
                observers: PacketObservers { capture: capture.as_mut(), tap },
                refused,
                failure: &mut failure,
            };
            let mut read = 0;
            if let Some(exchange) = exchange {
                exchange.take(host.config().share.number, passed);
                read += usize::from(!passed.is_empty());
                passed.drain(..).for_each(|p| out.deliver(host, &p));
            }
            while read < BATCH {
                let more = match &mut arrivals {
                    Some(a) => a.read(tun).map(|more| more.then(|| out.route_merged(host, a))),
                    None => tun
                        .read(arriving)
                        .map(|n| n.and_then(|n| arriving.get(..n)).map(|packet| out.route(host, packet))),
                };
                match more {
                    Ok(Some(())) => read += 1,
                    Ok(None) => break,
                    Err(e) => {
                        out.failure.get_or_insert(e);
                        break;
                    }
                }
            }
            host.handle_timeout(now, &mut out);
            let turn = app.turn(now, host);
            // An application that must stop may have nothing left to wait for.
            let mut again = false;
            if each(now, app, host) && !stopped {
                (stopped, again) = (true, true);
                app.stop(now, host);
            }
            host.flush(now, &mut out);
            let waits = host.ready() > 0;
            if let Some(shaper) = &mut out.shaper {
                shaper.note_waiting(waits);
                host.counts.probes_dropped = shaper.dropped;
            }
            if !waits {
                out.send_probes();
            }
            out.flush();
            if let Some(e) = failure {
                break Err(e);
            }
            if turn == AppStatus::Done {
                break Ok(());
            }
            let paced = shaper.as_ref().map_or(Instant::MAX, |s| s.next_timeout(host.ready() > 0));
            let next = host.next_timeout().min(app.next_timeout()).min(paced);
            // If something arrived, our answers may have been answered by now: checking costs less than waiting.
            if read == 0 {
                // Applications that wrote may have room again immediately.
                let until = if again || self.host.has_news() { now } else { next };
                if let Err(e) = self.wait.until(until) {
                    break Err(e);
                }
            }
        };
        self.cpu = self.cpu + (Clock::thread_cpu() - began);
        outcome
    }
}
