//! The body of the fuzz target `host_packets`: bytes from the network, and bytes from peers to applications.
//! `fuzz/` passes it to libFuzzer; `tests/fuzz.rs` replays the corpus and mutations of it without a fuzzer.
#![expect(clippy::indexing_slicing, reason = "code of tests alone: a panic is a finding")]

use crate::app::{App, Http, Inbox, Iperf, Serve, Sink};
use crate::device::offload::{Device, Exit};
use crate::emulator::Class;
use crate::host::{ConnId, Endpoint, Host, HostConfig, Secret};
use skyhaul_base::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

const MS: Duration = Duration::from_millis(1);

struct Pair {
    now: Instant,
    hosts: [Host; 2],
    /// From the client to the server, and back.
    flying: [Vec<Vec<u8>>; 2],
    /// Devices by which packets leave the hosts: as super-packets, which are split at once.
    devices: [Option<Device>; 2],
    /// Maximum segment size of the client, bytes.
    mss: u32,
}

/// Lets a host do something, and adds the packets that it sends to `flying`.
fn act(
    host: &mut Host,
    device: &mut Option<Device>,
    flying: &mut Vec<Vec<u8>>,
    what: impl FnOnce(&mut Host, &mut Exit<'_>),
) {
    let mut take = |p: &[u8]| flying.push(p.to_vec());
    let mut out = Exit::new(device.as_mut(), &mut take);
    what(host, &mut out);
    out.flush();
}

impl Pair {
    fn new(merges: bool, mss: u32) -> Self {
        let host =
            |n: u8| Host::new(HostConfig::new(vec![IpAddr::from([10, 84, 0, n])], Secret::fixed([n; 16])));
        let device = || merges.then(Device::default);
        Self {
            now: Instant::ZERO + MS,
            hosts: [host(1), host(2)],
            flying: [vec![], vec![]],
            devices: [device(), device()],
            mss,
        }
    }
    /// Lets both sides talk until they are silent, or for a limited time.
    fn settle(&mut self, app: &mut impl App) {
        for _ in 0..200 {
            let Self { now, hosts: [a, b], flying: [up, down], devices: [ours, theirs], .. } = self;
            let _ = app.turn(*now, b);
            while a.next_changed().is_some() {}
            act(a, ours, up, |h, out| h.flush(*now, out));
            act(b, theirs, down, |h, out| h.flush(*now, out));
            if up.is_empty() && down.is_empty() && !b.has_news() {
                break;
            }
            *now += MS;
            for p in std::mem::take(up) {
                act(b, theirs, down, |h, out| h.arrive(*now, &p, out));
            }
            for p in std::mem::take(down) {
                act(a, ours, up, |h, out| h.arrive(*now, &p, out));
            }
            act(a, ours, up, |h, out| h.handle_timeout(*now, out));
            act(b, theirs, down, |h, out| h.handle_timeout(*now, out));
        }
    }
    fn open(&mut self, port: u16) -> ConnId {
        let end = |n, port| SocketAddr::from(([10, 84, 0, n], port));
        let mut e = endpoint();
        e.tcp.mss = self.mss;
        self.hosts[0].connect(self.now, end(1, 0), end(2, port), &e).expect("a free port")
    }
}

fn endpoint() -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name("peach").expect("known"))
}

/// The first byte selects whether packets leave as super-packets, the segment size of the client, and the input: packets to
/// a host with a connection (each with a length prefix), a request to the HTTP server, or bytes of an iperf3 client. All
/// input is refused or understood, and everything that the host sends can be encoded.
///
/// # Panics
/// If that does not hold.
pub fn host_packets(data: &[u8], repair: impl Fn(&mut [u8])) {
    let Some((&choice, mut bytes)) = data.split_first() else { return };
    // Sizes around those of headers: payloads shorter than the headers, too.
    let mss = [1460, 1, 48, 63][usize::from(choice / 6 % 4)] + u32::from(choice / 24);
    let mut pair = Pair::new(choice / 3 % 2 == 1, mss);
    pair.hosts[1].listen(80, endpoint()).expect("free");
    let id = pair.open(80);
    let every = Duration::from_secs(1);
    match choice % 3 {
        0 => {
            let mut app = Serve::new(|_| Sink, every, None);
            pair.hosts[1].bind(80).expect("free");
            let mut inbox = Inbox::new(Instant::MAX);
            pair.settle(&mut app);
            while let Some((&len, rest)) = bytes.split_first() {
                let (packet, rest) = rest.split_at(usize::from(len).min(rest.len()));
                bytes = rest;
                let mut packet = packet.to_vec();
                let _ = Class::of(&packet);
                aim(&mut packet, pair.hosts[0].conn(id).map(|c| c.local().port()));
                repair(&mut packet);
                let now = pair.now;
                let Pair { hosts: [_, b], devices: [_, device], flying: [_, down], .. } = &mut pair;
                act(b, device, down, |h, out| h.arrive(now, &packet, out));
                let far = now + Duration::from_millis(u64::from(len) * 50);
                pair.now = far;
                let Pair { hosts: [_, b], devices: [_, device], flying: [_, down], .. } = &mut pair;
                act(b, device, down, |h, out| h.handle_timeout(far, out));
                down.clear();
                inbox.read(&mut pair.hosts[1]);
            }
            pair.settle(&mut app);
        }
        1 => {
            let mut app = Serve::new(|_| Http::default(), every, None);
            pair.settle(&mut app);
            talk(&mut pair, &mut app, id, bytes);
        }
        _ => {
            let mut app = Iperf::new("peach".into(), every, None);
            pair.settle(&mut app);
            talk(&mut pair, &mut app, id, bytes);
        }
    }
    assert!(pair.hosts.iter().all(|h| h.counts().unwritable == 0 && h.counts().defects == 0));
}

/// Bytes of an HTTP client, in pieces of the length that the first byte gives. The responses do not depend on the pieces,
/// and begin with a status line.
///
/// # Panics
/// If that does not hold.
pub fn http_requests(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let said = |piece: usize| {
        let mut pair = Pair::new(false, 1460);
        pair.hosts[1].listen(80, endpoint()).expect("free");
        let id = pair.open(80);
        let mut app = Serve::new(|_| Http::default(), Duration::from_secs(1), None);
        pair.settle(&mut app);
        let mut said = Vec::new();
        let mut room = [0; 1 << 14];
        for part in bytes[..bytes.len().min(2000)].chunks(piece) {
            let now = pair.now;
            pair.hosts[0].write(now, id, part);
            pair.settle(&mut app);
            let n = pair.hosts[0].read(pair.now, id, &mut room);
            said.extend_from_slice(&room[..n]);
        }
        said.truncate(1 << 10);
        said
    };
    let (whole, parts) = (said(bytes.len().max(1)), said(usize::from(piece).max(1)));
    let n = whole.len().min(parts.len());
    assert_eq!(whole[..n], parts[..n], "a response depends on the pieces of the request");
    assert!(whole.is_empty() || whole.starts_with(b"HTTP/1.1 "));
}

/// Sends bytes in two halves.
fn talk(pair: &mut Pair, app: &mut impl App, id: ConnId, bytes: &[u8]) {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for part in [first, second] {
        let now = pair.now;
        pair.hosts[0].write(now, id, part);
        pair.settle(app);
        let now = pair.now;
        pair.hosts[0].discard(now, id);
    }
}

/// Addresses most packets to the host and its connection: the others would match no connection.
fn aim(p: &mut [u8], client: Option<u16>) {
    if p.len() >= 24 && p[0] >> 4 == 4 && p[1] % 8 != 7 {
        p[12..16].copy_from_slice(&[10, 84, 0, 1]);
        p[16..20].copy_from_slice(&[10, 84, 0, 2]);
        let at = usize::from(p[0] & 15) * 4;
        if let (Some(port), Some(ports)) = (client, p.get_mut(at..at + 4)) {
            ports[..2].copy_from_slice(&port.to_be_bytes());
            ports[2..].copy_from_slice(&80u16.to_be_bytes());
        }
    }
}
