//! Servers and clients beyond the link that send nonsense to the gateway's own stack: bad options, windows, acknowledgements and
//! flags, overlapping data, blind segments. Other connections must not suffer, and the hostile ones must end.

use super::{Outcome, Run, Server, judged};
use crate::bed::{Bed, CLIENT, FAR, Link, NEAR};
use crate::finding::Finding;
use crate::machine;
use crate::stop;
use crate::syn::syn;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd};
use skyhaul_base::{Duration, Rng};
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_tcp::{Flags, Segment, Seq};
use skyhaul_wire::{Agreement, Envelope, Packet, Payload, Transport};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Port of the hostile servers, and of the server among the hosts that hostile clients connect to.
const PORT: u16 = 80;
/// What a hostile end knows of a connection: the next sequence numbers of the gateway (`theirs`) and of itself (`ours`).
#[derive(Clone, Copy, Debug)]
struct SequenceNumbers {
    theirs: u32,
    ours: u32,
}

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(300_000, 5000);
    let link = Link { delay: Duration::from_millis(5), ..Link::default() };
    let bed = Bed::new("hostile", link).ok_or("there are no namespaces, or no nft")?;
    let words = |e: &dyn std::fmt::Display| e.to_string();
    let config = TunConfig {
        name: Some("evil0".into()),
        addresses: vec![(IpAddr::from([10, 66, 2, 1]), 24)],
        mtu: 1500,
        offload: false,
    };
    let tun = bed.spaces[FAR].within(|| Tun::open(&config)).map_err(|e| words(&e))?.map_err(|e| words(&e))?;
    for (at, key) in [(FAR, "all"), (FAR, "evil0"), (NEAR, "all"), (NEAR, "sat0")] {
        bed.spaces[at].sysctl(&format!("net/ipv4/conf/{key}/rp_filter"), "0").map_err(|e| words(&e))?;
    }
    bed.spaces[NEAR].route((IpAddr::from([10, 66, 2, 0]), 24), "sat0", None).map_err(|e| words(&e))?;
    // There is one gateway, so that the hostile ends beyond the link talk to its stack.
    let keep = "endpoint = { keepalive-idle = \"1 s\", keepalive-interval = \"1 s\" }\n[limits]\nstuck = \"3 s\"\nidle = \"5 s\"\n";
    let mut near = bed.gateway(NEAR, keep);
    let server = Server::new(&bed)?;
    let victim = bed.spaces[CLIENT]
        .within(|| TcpListener::bind((IpAddr::from([10, 1, 0, 2]), PORT)))
        .map_err(|e| words(&e))?
        .map_err(|e| words(&e))?;
    victim.set_nonblocking(true).map_err(|e| words(&e))?;
    let (tally, next, over) = (Tally::default(), AtomicU64::new(0), AtomicBool::new(false));
    let (opened, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| -> Result<(), String> {
        // Transfers with a genuine server.
        let clients = s.spawn(|| {
            crowd(&bed, 4, &tally, &|| {
                let n = next.fetch_add(1, Ordering::Relaxed);
                (!over.load(Ordering::Relaxed))
                    .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 50_000.0) })
            })
        });
        // Hosts that connect to the hostile servers, and a server among the hosts to which hostile clients connect.
        for n in 0..6 {
            let (bed, over, opened) = (&bed, &over, &opened);
            s.spawn(move || {
                let mut rng = Rng::stream(n, "hosts");
                while !over.load(Ordering::Relaxed) {
                    let to = SocketAddr::from(([10, 66, 2, 2 + rng.below(200) as u8], PORT));
                    let _ = bed.spaces[CLIENT].within(|| use_server(to, opened));
                }
            });
        }
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                match victim.accept() {
                    Ok((mut stream, _)) => {
                        opened.fetch_add(1, Ordering::Relaxed);
                        let _ = stream.set_nonblocking(false);
                        let _ = stream.write_all(&[7; 5000]);
                    }
                    Err(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
                }
            }
        });
        attack(&tun, wanted, &sent);
        over.store(true, Ordering::Relaxed);
        clients.join().map_err(|_| "a client failed")?
    })?;
    let ended = near.child.try_wait().is_ok_and(|s| s.is_some());
    let resident = machine::resident_of(near.child.id());
    // The connections that are left end by the limits of the gateway.
    let began = std::time::Instant::now();
    while near.count("flows") > 0 && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mut findings = vec![
        Finding::recorded("hostile packets", sent.load(Ordering::Relaxed) as f64, ""),
        Finding::at_least(
            "connections that hosts opened to them or took from them",
            opened.load(Ordering::Relaxed) as f64,
            10.0,
            "",
        ),
        Finding::at_most("gateways that ended", f64::from(u8::from(ended)), 0.0, ""),
        Finding::at_most("resident memory of the gateway afterwards", resident / 1e6, 100.0, "MB"),
        Finding::at_most("connections left in the gateway", near.count("flows") as f64, 0.0, ""),
        Finding::at_least("transfers of others that arrived whole", tally.of(|t| &t.whole), 1.0, ""),
    ];
    findings.extend(judged(&tally, &server, false));
    Ok(findings)
}

/// Connects to a hostile server as a host, and reads whatever comes back.
fn use_server(to: SocketAddr, opened: &AtomicU64) {
    let Ok(mut s) = TcpStream::connect_timeout(&to, std::time::Duration::from_millis(500)) else { return };
    opened.fetch_add(1, Ordering::Relaxed);
    let _ = s.set_read_timeout(Some(std::time::Duration::from_millis(200)));
    let _ = s.set_write_timeout(Some(std::time::Duration::from_millis(200)));
    let _ = s.write_all(&[9; 20_000]);
    let mut room = [0; 4096];
    while s.read(&mut room).is_ok_and(|n| n > 0) {}
}

/// Answers whatever arrives with nonsense, and connects to a host now and then.
fn attack(tun: &Tun, wanted: u64, sent: &AtomicU64) {
    let mut rng = Rng::stream(5, "hostile");
    let mut numbers: BTreeMap<(SocketAddr, SocketAddr), SequenceNumbers> = BTreeMap::new();
    let mut room = vec![0; 1 << 16];
    while sent.load(Ordering::Relaxed) < wanted && !stop::requested() {
        let mut idle = true;
        while let Ok(Some(n)) = tun.read(&mut room) {
            idle = false;
            let Ok(packet) = Packet::parse(&room[..n]) else { continue };
            let Transport::Tcp(tcp) = packet.transport else { continue };
            let ends =
                (SocketAddr::new(packet.ip.dst, tcp.dst_port), SocketAddr::new(packet.ip.src, tcp.src_port));
            let length = tcp.payload.len() as u32
                + u32::from(tcp.flags.has(Flags::SYN))
                + u32::from(tcp.flags.has(Flags::FIN));
            if numbers.len() > 500 {
                numbers.clear();
            }
            let k = numbers.entry(ends).or_insert(SequenceNumbers { theirs: 0, ours: rng.next_u64() as u32 });
            k.theirs = tcp.seq.0.wrapping_add(length);
            // Three SYNs in four get a good answer, so that these connections get further than the handshake.
            let open = tcp.flags.has(Flags::SYN) && rng.below(4) > 0;
            for _ in 0..1 + rng.below(4) {
                let packet = if open {
                    valid_answer(ends, k, tcp.flags.has(Flags::ACK), tcp.options.timestamps)
                } else {
                    nonsense(ends, k, &mut rng)
                };
                sent.fetch_add(u64::from(tun.write(&packet).unwrap_or(false)), Ordering::Relaxed);
                if open {
                    break;
                }
            }
        }
        if rng.below(10) == 0 {
            let from =
                SocketAddr::from(([10, 66, 2, 2 + rng.below(200) as u8], 1024 + rng.below(60_000) as u16));
            let to = SocketAddr::from(([10, 1, 0, 2], PORT));
            let seq = rng.next_u64() as u32;
            numbers.insert((from, to), SequenceNumbers { theirs: 0, ours: seq.wrapping_add(1) });
            sent.fetch_add(
                u64::from(tun.write(&syn(from, to, seq, rng.below(2) == 0)).unwrap_or(false)),
                Ordering::Relaxed,
            );
        }
        if idle {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn written((local, remote): (SocketAddr, SocketAddr), seg: &Segment, data: &[u8]) -> Vec<u8> {
    let mut room = vec![0; 2000];
    let n = skyhaul_wire::encode(
        &mut room,
        &Envelope::new(local, remote),
        &Agreement::default(),
        seg,
        Payload::Bytes(data),
    );
    room.truncate(n.map_or(0, |n| n.written));
    room
}

/// A valid answer: a SYN-ACK to a SYN, or an ACK to a SYN-ACK (`to_syn_ack`).
fn valid_answer(
    ends: (SocketAddr, SocketAddr),
    k: &mut SequenceNumbers,
    to_syn_ack: bool,
    stamps: Option<(u32, u32)>,
) -> Vec<u8> {
    let flags = if to_syn_ack { Flags::ACK } else { Flags::SYN.with(Flags::ACK) };
    let mut seg =
        Segment { seq: Seq(k.ours), ack: Seq(k.theirs), window: 60_000, flags, ..Segment::default() };
    if !to_syn_ack {
        // No MSS, or one so small that full segments are shorter than their headers.
        seg.syn.mss = [None, Some(48), Some(1), Some(63)][k.ours as usize % 4];
    }
    seg.ts = stamps.filter(|_| k.ours & 4 == 0).map(|(theirs, _)| (1, theirs));
    k.ours = k.ours.wrapping_add(u32::from(!to_syn_ack));
    written(ends, &seg, &[])
}

/// A segment that is wrong in one way or another, with the right checksum.
fn nonsense(ends: (SocketAddr, SocketAddr), k: &mut SequenceNumbers, rng: &mut Rng) -> Vec<u8> {
    let near = |rng: &mut Rng, n: u32| n.wrapping_add(rng.below(200_000) as u32).wrapping_sub(100_000);
    let mut seg = Segment {
        seq: Seq(k.ours),
        ack: Seq(k.theirs),
        window: 60_000,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let mut data = Vec::new();
    match rng.below(12) {
        // Data in order, behind a gap, or over what was there before with other bytes.
        0..=2 => {
            data = vec![rng.below(256) as u8; 1 + rng.below(1400) as usize];
            if rng.below(2) == 0 {
                k.ours = k.ours.wrapping_add(data.len() as u32);
            } else {
                seg.seq = Seq(near(rng, k.ours));
            }
        }
        // Acknowledgements of data that was never sent, or was sent long ago.
        3 => seg.ack = Seq(near(rng, k.theirs)),
        4 => (0..4).for_each(|_| {
            let from = Seq(near(rng, k.theirs));
            seg.sack.push(from, from.add(rng.below(50_000) as u32));
        }),
        // Windows that close, and that shrink.
        5 => seg.window = 0,
        6 => seg.window = rng.below(65_536) as u32,
        7 => seg.ts = Some((rng.next_u64() as u32, rng.next_u64() as u32)),
        8 => (seg.flags, seg.seq) = (Flags::RST, Seq(near(rng, k.ours))),
        9 => seg.flags = Flags::from_bits(rng.below(256) as u8),
        10 => seg.flags = Flags::ACK.with(Flags::FIN),
        _ => {}
    }
    seg.len = data.len() as u32;
    let mut packet = written(ends, &seg, &data);
    // Options that are cut short, of length 0 or 1, repeated, unknown.
    if rng.below(3) == 0 && packet.len() >= 40 {
        let options = [0, 4, 12, 20, 40][rng.below(5) as usize];
        let noise: Vec<u8> = (0..options)
            .map(|_| [0, 1, 2, 3, 4, 5, 8, 34, 253, 254, 255, rng.below(256) as u8][rng.below(12) as usize])
            .collect();
        packet[32] = (((20 + options) / 4) << 4) as u8 | packet[32] & 15;
        packet.splice(40..40, noise);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        skyhaul_testkit::fuzz::repair(&mut packet);
    }
    packet
}
