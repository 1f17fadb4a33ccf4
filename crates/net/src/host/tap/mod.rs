//! A tap on a running host: copies of the packets of chosen connections, and what happens to these connections, for a
//! capture or an event log.
//!
//! The data path never waits for the reader: what does not fit into the queue is dropped and counted.

mod traced;
mod tracer;

pub use traced::{End, Head, Kind, Metrics, Traced};
pub(super) use tracer::Tracer;

use super::glance::{TCP, TcpEnds, about, network};
use skyhaul_base::Instant;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Address and port of one end; what is missing matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndFilter {
    /// Address.
    pub ip: Option<IpAddr>,
    /// Port.
    pub port: Option<u16>,
}

impl EndFilter {
    fn matches(&self, end: SocketAddr) -> bool {
        self.ip.is_none_or(|ip| ip == end.ip()) && self.port.is_none_or(|port| port == end.port())
    }
}

impl From<SocketAddr> for EndFilter {
    fn from(end: SocketAddr) -> Self {
        Self { ip: Some(end.ip()), port: Some(end.port()) }
    }
}

/// Which connections are meant. The default matches all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The end that opened the connection.
    pub client: EndFilter,
    /// The other end.
    pub server: EndFilter,
}

impl Filter {
    /// Whether a connection with these ends is meant.
    #[must_use]
    pub fn matches(&self, client: SocketAddr, server: SocketAddr) -> bool {
        self.client.matches(client) && self.server.matches(server)
    }
    /// Whether a packet belongs to a connection that is meant, in either direction. An ICMP message belongs to the
    /// connection of the packet that it quotes.
    #[must_use]
    pub fn takes(&self, packet: &[u8]) -> bool {
        let Some(TcpEnds::Itself(a, b) | TcpEnds::Quoted(a, b)) = about(packet) else { return false };
        self.matches(a, b) || self.matches(b, a)
    }
}

/// Length of the headers of a packet; of one that is not TCP, its whole length.
fn headers(packet: &[u8]) -> usize {
    let of = || {
        let (protocol, _, _, tcp) = network(packet)?;
        (protocol == TCP).then_some(packet.len() - tcp.len() + usize::from(tcp.get(12)? >> 4) * 4)
    };
    of().unwrap_or(packet.len()).min(packet.len())
}

/// What a tap delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum Tapped {
    /// A packet between the host and the kernel.
    Packet {
        /// When.
        at: Instant,
        /// It arrived at the host; otherwise the host has sent it.
        arrived: bool,
        /// Its headers, or all of it.
        bytes: Box<[u8]>,
        /// Length of the packet, bytes.
        total: usize,
    },
    /// Something that happened to a connection.
    Event {
        /// When.
        at: Instant,
        /// The number under which the connection is traced.
        flow: u64,
        /// What.
        what: Traced,
    },
}

/// The end of a tap at the host. Copies deliver to the same reader.
#[derive(Clone, Debug)]
pub struct Tap {
    filter: Filter,
    payload: bool,
    to: SyncSender<Tapped>,
    shared: Arc<Shared>,
}

/// What both ends of a tap know.
#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicU64,
    closed: AtomicBool,
}

impl Tap {
    /// A tap for connections that match, and its reader. `payload`: packets are delivered whole, otherwise their headers.
    /// `queue`: maximum number of things that wait for the reader.
    #[must_use]
    pub fn new(filter: Filter, payload: bool, queue: usize) -> (Self, Reader) {
        let (to, from) = sync_channel(queue);
        let shared = Arc::<Shared>::default();
        (Self { filter, payload, to, shared: shared.clone() }, Reader { from, shared })
    }
    /// Which connections it is for.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
    /// Whether the reader still exists.
    #[must_use]
    pub fn is_read(&self) -> bool {
        !self.shared.closed.load(Ordering::Relaxed)
    }
    /// Delivers an item; false if the reader has gone.
    pub(super) fn deliver(&self, what: Tapped) -> bool {
        match self.to.try_send(what) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
    /// Delivers a packet if it matches; false if the reader has gone.
    pub(super) fn packet(&self, at: Instant, arrived: bool, packet: &[u8]) -> bool {
        if !self.filter.takes(packet) {
            return true;
        }
        let kept = if self.payload { packet.len() } else { headers(packet) };
        self.deliver(Tapped::Packet {
            at,
            arrived,
            bytes: packet.get(..kept).unwrap_or(packet).into(),
            total: packet.len(),
        })
    }
}

/// The other end of a tap. The tap ends when this is dropped.
#[derive(Debug)]
pub struct Reader {
    /// What was delivered.
    pub from: Receiver<Tapped>,
    shared: Arc<Shared>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
    }
}

impl Reader {
    /// How much was not delivered because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

/// Where a tap is attached to running drivers, from any thread.
#[derive(Debug, Default)]
pub struct Socket {
    changes: AtomicU32,
    tap: Mutex<Option<Tap>>,
}

impl Socket {
    /// Attaches a tap, in place of an earlier one.
    pub fn attach(&self, tap: Tap) {
        *self.tap.lock().unwrap_or_else(PoisonError::into_inner) = Some(tap);
        self.changes.fetch_add(1, Ordering::Release);
    }
    /// Removes the tap.
    pub fn detach(&self) {
        *self.tap.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changes.fetch_add(1, Ordering::Release);
    }
    /// Whether a tap is attached whose reader still exists.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.tap.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(Tap::is_read)
    }
    /// The tap, if it differs from the one after `changes` changes.
    pub(super) fn look(&self, changes: &mut u32) -> Option<Option<Tap>> {
        let now = self.changes.load(Ordering::Acquire);
        if now == *changes {
            return None;
        }
        *changes = now;
        Some(self.tap.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::glance::{ICMP, v4};
    use super::*;

    fn tcp(src: u16, dst: u16, options: usize, data: &[u8]) -> Vec<u8> {
        let mut t = Vec::new();
        t.extend(src.to_be_bytes());
        t.extend(dst.to_be_bytes());
        t.extend([0; 8]);
        t.extend([(((20 + options) / 4) << 4) as u8, 0x10, 0, 0, 0, 0, 0, 0]);
        t.extend(vec![1; options]);
        t.extend(data);
        t
    }
    const CLIENT: [u8; 4] = [10, 1, 0, 2];
    const SERVER: [u8; 4] = [10, 2, 0, 2];

    #[test]
    fn packets_of_both_directions_and_icmp_about_them_match() {
        let filter = Filter {
            client: EndFilter { ip: Some(CLIENT.into()), port: None },
            server: SocketAddr::from((SERVER, 80)).into(),
        };
        let there = v4(TCP, CLIENT, SERVER, &tcp(5000, 80, 0, b"x"));
        assert!(filter.takes(&there));
        assert!(filter.takes(&v4(TCP, SERVER, CLIENT, &tcp(80, 5000, 0, b""))));
        assert!(!filter.takes(&v4(TCP, SERVER, CLIENT, &tcp(81, 5000, 0, b""))));
        // The client's port is not the server's.
        assert!(!filter.takes(&v4(TCP, CLIENT, SERVER, &tcp(80, 5000, 0, b""))));
        let mut message = vec![3, 4, 0, 0, 0, 0, 5, 0];
        message.extend(&there);
        assert!(filter.takes(&v4(ICMP, [10, 9, 0, 9], CLIENT, &message)));
        assert!(!filter.takes(&v4(17, CLIENT, SERVER, &tcp(5000, 80, 0, b""))));
        for short in 0..there.len() {
            let _ = filter.takes(&there[..short]);
            assert!(headers(&there[..short]) <= short);
        }
    }

    #[test]
    fn headers_alone_unless_the_payload_is_asked_for() {
        let packet = v4(TCP, CLIENT, SERVER, &tcp(5000, 80, 12, b"a secret"));
        for (payload, expected) in [(false, 52), (true, 60)] {
            let (tap, reader) = Tap::new(Filter::default(), payload, 4);
            assert!(tap.packet(Instant::ZERO, true, &packet));
            let Ok(Tapped::Packet { bytes, total, .. }) = reader.from.try_recv() else { panic!("a packet") };
            assert_eq!((bytes.len(), total), (expected, 60));
        }
    }

    #[test]
    fn a_slow_reader_costs_packets_and_a_gone_one_ends_the_tap() {
        let packet = v4(TCP, CLIENT, SERVER, &tcp(5000, 80, 0, b""));
        let (tap, reader) = Tap::new(Filter::default(), false, 3);
        for _ in 0..10 {
            assert!(tap.packet(Instant::ZERO, false, &packet));
        }
        assert_eq!((reader.from.try_iter().count(), reader.dropped()), (3, 7));
        drop(reader);
        assert!(!tap.packet(Instant::ZERO, false, &packet));
    }

    #[test]
    fn a_change_is_seen_once() {
        let socket = Socket::default();
        let mut seen = 0;
        assert!(socket.look(&mut seen).is_none());
        let (tap, reader) = Tap::new(Filter::default(), false, 1);
        socket.attach(tap);
        assert!(socket.is_taken());
        assert!(matches!(socket.look(&mut seen), Some(Some(_))));
        assert!(socket.look(&mut seen).is_none());
        drop(reader);
        assert!(!socket.is_taken(), "a tap that nobody reads is in nobody's way");
        socket.detach();
        assert!(matches!(socket.look(&mut seen), Some(None)));
    }
}
