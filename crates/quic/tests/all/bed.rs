//! A transfer between two endpoints of quinn over a link, in virtual time. quinn's protocol crate does no I/O and takes the time
//! as an argument; its random numbers have a seed here.

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    EndpointEvent, Event, ReadError, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
    WriteError,
};
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::{DropReason, Limit, Link, LinkConfig, PacketView, QueueConfig, Streams, error};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time;

/// IPv4 and UDP headers, bytes.
const HEADERS: usize = 28;
/// Most datagrams of one transmission: as many as quinn sends at once on a system with segmentation offload.
const BATCH: usize = 10;

/// A key pair for "localhost".
pub(crate) fn certificate() -> (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    (made.cert.der().clone(), PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()))
}

/// Byte `n` of the file.
pub(crate) fn content(n: u64) -> u8 {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// A datagram on the link.
#[derive(Debug, Default)]
struct Datagram {
    bytes: Vec<u8>,
    ecn: Option<EcnCodepoint>,
}

impl PacketView for Datagram {
    fn size(&self) -> u32 {
        (self.bytes.len() + HEADERS) as u32
    }
    fn low_priority(&self) -> bool {
        false
    }
    fn flow(&self) -> u32 {
        0
    }
    fn is_ect(&self) -> bool {
        self.ecn.is_some()
    }
    fn mark_ce(&mut self) {
        self.ecn = Some(EcnCodepoint::Ce);
    }
}

/// One side of the connection.
struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    out: Link<Datagram>,
}

/// A file from a client to a server.
#[derive(Clone)]
pub(crate) struct Transfer {
    /// The client's congestion control.
    pub(crate) control: Arc<dyn ControllerFactory + Send + Sync>,
    /// Length of the file, bytes.
    pub(crate) length: u64,
    /// The link from client to server.
    pub(crate) link: LinkConfig,
    pub(crate) seed: u64,
}

/// Result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// From the first packet until the server had the last byte.
    pub(crate) took: Duration,
    pub(crate) lost_packets: u64,
    /// Smallest and largest window, bytes.
    pub(crate) window: (u64, u64),
}

impl Outcome {
    /// Mbit/s of the file, handshake included.
    pub(crate) fn goodput(&self, length: u64) -> f64 {
        length as f64 * 8.0 / self.took.as_secs_f64() / 1e6
    }
}

/// The satellite link of preset `geo-today`: 10 Mbit/s, 275 ms, one bandwidth-delay product of buffer.
pub(crate) fn geo(loss: f64) -> LinkConfig {
    LinkConfig {
        rate: Rate::from_bits_per_sec(10_000_000).into(),
        queue: QueueConfig { limit: Limit::Bytes(687_500), ..QueueConfig::default() },
        delay: skyhaul_path::Delay::fixed(Duration::from_millis(275)),
        error: error::Config::Per(error::per::Config { p: loss }),
        ..LinkConfig::default()
    }
}

impl Transfer {
    /// Runs the transfer until the server has the whole file.
    ///
    /// # Panics
    /// If the bytes that arrive are not those that were sent, or it takes longer than an hour.
    pub(crate) fn run(&self) -> Outcome {
        Run::new(self).run()
    }
}

struct Run<'a> {
    file: &'a Transfer,
    epoch: time::Instant,
    now: Instant,
    ends: [End; 2],
    stream: Option<StreamId>,
    written: u64,
    read: u64,
    window: (u64, u64),
}

impl<'a> Run<'a> {
    fn new(file: &'a Transfer) -> Self {
        let (certificate, key) = certificate();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).expect("a root");
        let mut transport = TransportConfig::default();
        // Only the congestion window limits the sender: flow control is generous, and the MTU is fixed.
        let plenty = VarInt::from_u32(1 << 29);
        transport.stream_receive_window(plenty).receive_window(plenty).send_window(1 << 29);
        transport.max_idle_timeout(None).mtu_discovery_config(None).initial_mtu(1400);
        let mut sending = transport;
        sending.congestion_controller_factory(Arc::clone(&file.control));
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
        client.transport_config(Arc::new(sending));
        let mut receiving = TransportConfig::default();
        receiving.stream_receive_window(plenty).receive_window(plenty).max_idle_timeout(None);
        let mut server = ServerConfig::with_single_cert(vec![certificate], key.into()).expect("a server");
        server.transport_config(Arc::new(receiving));

        let endpoint = |server, tag: u8| {
            let seed = core::array::from_fn(|i| (file.seed >> (8 * (i % 8))) as u8 ^ tag);
            Endpoint::new(Arc::new(EndpointConfig::default()), server, true, Some(seed))
        };
        let back = geo(0.0);
        let end = |endpoint, port, link: &LinkConfig, name| End {
            endpoint,
            address: SocketAddr::from(([10, 0, 0, 1], port)),
            connection: None,
            out: Link::new(link, Streams::named(file.seed, name)),
        };
        let mut near = end(endpoint(None, 1), 1000, &file.link, "links.forward");
        let far = end(endpoint(Some(Arc::new(server)), 2), 2000, &back, "links.back");
        #[expect(clippy::disallowed_methods, reason = "only differences of times count")]
        let epoch = time::Instant::now();
        near.connection =
            Some(near.endpoint.connect(epoch, client, far.address, "localhost").expect("a connection"));
        let window = (u64::MAX, 0);
        Self { file, epoch, now: Instant::ZERO, ends: [near, far], stream: None, written: 0, read: 0, window }
    }

    fn clock(&self) -> time::Instant {
        self.epoch + time::Duration::from_nanos(self.now.as_nanos())
    }

    fn run(mut self) -> Outcome {
        while self.read < self.file.length {
            for side in [0, 1] {
                self.drive(side);
            }
            self.now = self.next().max(self.now);
            assert!(self.now < Instant::from_nanos(3_600_000_000_000), "{} bytes in an hour", self.read);
            for side in [0, 1] {
                self.due(side);
            }
        }
        let (_, sender) = self.ends[0].connection.as_ref().expect("the client's");
        Outcome {
            took: self.now.since(Instant::ZERO),
            lost_packets: sender.stats().path.lost_packets,
            window: self.window,
        }
    }

    /// The next event: a timer, a departure, an arrival.
    fn next(&mut self) -> Instant {
        let mut next = Instant::MAX;
        for end in &mut self.ends {
            let timer = end.connection.as_mut().and_then(|(_, c)| c.poll_timeout());
            let timer = timer.map(|t| {
                let nanos = t.saturating_duration_since(self.epoch).as_nanos();
                Instant::from_nanos(u64::try_from(nanos).expect("a near time"))
            });
            next = [timer, end.out.next_service(), end.out.next_delivery()]
                .into_iter()
                .flatten()
                .fold(next, Instant::min);
        }
        assert!(next < Instant::MAX, "nothing more happens after {} bytes", self.read);
        next
    }

    /// Handles what is due: the timers of one side, and arrivals at its peer.
    fn due(&mut self, side: usize) {
        let (now, clock) = (self.now, self.clock());
        let from = self.ends[side].address;
        self.ends[side].out.serve(now, &mut |_, _: DropReason| ());
        while let Some(datagram) = self.ends[side].out.deliver(now) {
            self.arrive(1 - side, from, datagram);
        }
        if let Some((_, connection)) = &mut self.ends[side].connection {
            if connection.poll_timeout().is_some_and(|t| t <= clock) {
                connection.handle_timeout(clock);
            }
        }
    }

    fn arrive(&mut self, side: usize, from: SocketAddr, datagram: Datagram) {
        let clock = self.clock();
        let end = &mut self.ends[side];
        let mut answer = Vec::new();
        let event = end.endpoint.handle(
            clock,
            from,
            None,
            datagram.ecn,
            datagram.bytes.as_slice().into(),
            &mut answer,
        );
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = end.endpoint.accept(incoming, clock, &mut answer, None);
                end.connection = Some(accepted.unwrap_or_else(|e| panic!("refused: {}", e.cause)));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, connection) = end.connection.as_mut().expect("a connection");
                connection.handle_event(event);
            }
            Some(DatagramEvent::Response(_)) => panic!("an answer outside of any connection"),
            None => {}
        }
    }

    /// Lets one side act: its application, then its transmissions.
    fn drive(&mut self, side: usize) {
        self.applications(side);
        let clock = self.clock();
        let (now, window) = (self.now, &mut self.window);
        let End { endpoint, connection: Some((handle, connection)), out, .. } = &mut self.ends[side] else {
            return;
        };
        let mut buffer = Vec::new();
        loop {
            let events: Vec<EndpointEvent> =
                core::iter::from_fn(|| connection.poll_endpoint_events()).collect();
            let quiet = events.is_empty();
            for event in events {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(sent) = connection.poll_transmit(clock, BATCH, &mut buffer) {
                for bytes in buffer.chunks(sent.segment_size.unwrap_or(sent.size)) {
                    let datagram = Datagram { bytes: bytes.to_vec(), ecn: sent.ecn };
                    let _ = out.offer(now, datagram, &mut |_, _: DropReason| ());
                }
                buffer.clear();
            }
            if quiet {
                break;
            }
        }
        if side == 0 {
            let bytes = connection.congestion_state().window();
            *window = (window.0.min(bytes), window.1.max(bytes));
        }
    }

    /// The client writes what the stream takes, the server reads what there is.
    fn applications(&mut self, side: usize) {
        let Some((_, connection)) = &mut self.ends[side].connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if side == 0 => self.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { .. }) => {
                    self.stream = connection.streams().accept(Dir::Uni)
                }
                Event::ConnectionLost { reason } => panic!("side {side} lost the connection: {reason}"),
                _ => {}
            }
        }
        let Some(stream) = self.stream else { return };
        if side == 0 {
            while self.written < self.file.length {
                let upto = (self.written + 65_536).min(self.file.length);
                let piece: Vec<u8> = (self.written..upto).map(content).collect();
                match connection.send_stream(stream).write(&piece) {
                    Ok(n) => self.written += n as u64,
                    Err(WriteError::Blocked) => return,
                    Err(e) => panic!("cannot write: {e}"),
                }
            }
            let _ = connection.send_stream(stream).finish();
            return;
        }
        let mut receiving = connection.recv_stream(stream);
        let Ok(mut chunks) = receiving.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    for &byte in &chunk.bytes {
                        assert_eq!(byte, content(self.read), "byte {}", self.read);
                        self.read += 1;
                    }
                }
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => panic!("the stream was reset: {code}"),
            }
        }
        let _ = chunks.finalize();
    }
}
