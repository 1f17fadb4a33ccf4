//! How many bytes of headers the datagrams of common applications have between the gateways.

use super::pair::Pair;
use skyhaul_base::{Duration, Rate};
use skyhaul_repair::ip;

/// A packet of IPv4 with this identification and protocol.
fn v4(id: u16, protocol: u8, mut transport: Vec<u8>) -> Vec<u8> {
    let length = ((20 + transport.len()) as u16).to_be_bytes();
    let id = id.to_be_bytes();
    let mut p = vec![0x45, 0, length[0], length[1], id[0], id[1], 0x40, 0, 64, protocol, 0, 0];
    p.extend([10, 1, 0, 2, 10, 2, 0, 2]);
    let sum = ip::checksum(ip::sum(&p)).to_be_bytes();
    p[10..12].copy_from_slice(&sum);
    let at = if protocol == 6 { 16 } else { 6 };
    let pseudo = ip::sum(&p[12..20]) + u64::from(protocol) + transport.len() as u64;
    let sum = ip::checksum(pseudo + ip::sum(&transport)).to_be_bytes();
    transport[at..at + 2].copy_from_slice(&sum);
    p.extend(transport);
    p
}
fn udp(id: u16, from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let head: Vec<u8> = [from, to, length, 0].iter().flat_map(|n| n.to_be_bytes()).collect();
    v4(id, 17, [&head[..], payload].concat())
}
/// A pure acknowledgement with timestamps, of the n-th segment.
fn ack(n: u32) -> Vec<u8> {
    let mut t = vec![0xc0, 1, 1, 187, 0, 0, 0, 9];
    t.extend((1000 + n * 2896).to_be_bytes());
    t.extend([0x80, 0x10, 0x07, (n % 200) as u8, 0, 0, 0, 0, 1, 1, 8, 10]);
    t.extend((70_000 + n * 2).to_be_bytes());
    t.extend((90_000 + n * 2).to_be_bytes());
    v4(n as u16, 6, t)
}
fn rtp(n: u32) -> Vec<u8> {
    let mut payload = vec![0x80, 0];
    payload.extend((n as u16).to_be_bytes());
    payload.extend((n * 160).to_be_bytes());
    payload.extend([1, 2, 3, 4]);
    payload.resize(12 + 160, 0x55);
    udp(n as u16, 40_000, 40_002, &payload)
}

/// What datagrams take between the gateways.
struct Taken {
    size: usize,
    /// Bytes more than the datagram, on average.
    more: f64,
    together: f64,
}

/// Sends a datagram every `gap` over a path of 275 ms, and counts after the first two seconds.
fn measured(rate: u64, gap: Duration, make: impl Fn(u32) -> Vec<u8>) -> Taken {
    let mut pair = Pair::new(Duration::from_millis(275));
    pair.run(Duration::from_secs(3));
    let now = pair.now;
    pair.ends[0].set_rate(now, Rate::from_bits_per_sec(rate));
    let mut begun = None;
    let until = pair.now + Duration::from_secs(12);
    let mut sent = Vec::new();
    for n in 0.. {
        if pair.now >= until {
            break;
        }
        if pair.now >= until - Duration::from_secs(10) && begun.is_none() {
            begun = Some(pair.ends[0].totals());
        }
        let (now, packet) = (pair.now, make(n));
        assert!(pair.ends[0].offer(now, &packet));
        sent.push(packet);
        pair.run(gap);
    }
    let (from, to) = (begun.expect("has begun"), pair.ends[0].totals());
    pair.run(Duration::from_secs(3));
    // Every one arrives, in order, as it was.
    assert_eq!(pair.delivered[1].len() as u64 + to.dropped, sent.len() as u64);
    if to.dropped == 0 {
        assert!(pair.delivered[1] == sent);
    }
    assert_eq!(pair.ends[1].totals().unreadable, 0);
    let datagrams = to.sources - from.sources;
    let frames = datagrams - (to.joined - from.joined);
    let headers = (to.header_bytes - from.header_bytes) as f64;
    let saved = to.saved_bytes as f64 - from.saved_bytes as f64;
    let more = (headers - saved) / datagrams as f64;
    Taken { size: sent[0].len(), more, together: datagrams as f64 / frames as f64 }
}

#[test]
fn headers_of_datagrams() {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    let quic = |payload: usize| {
        move |n: u32| udp(n as u16, 50_000, 443, &[&[0x41][..], &vec![7; payload - 1]].concat())
    };
    // A stub resolver asks from a new port each time.
    let dns = |n: u32| udp((n * 7919) as u16, 1024 + (n * 331 % 60_000) as u16, 53, &[5; 41]);
    println!(
        "| datagrams | size B | headers before B | now B | more than the datagram | datagrams a frame |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, rate, gap, own, make, most) in [
        ("QUIC, payload 1252 B", 10_000_000, us(1300), 28, &quic(1252) as &dyn Fn(u32) -> Vec<u8>, 24.0),
        ("QUIC, payload 1400 B", 10_000_000, us(1500), 28, &quic(1400), 24.0),
        ("DNS, new ports", 10_000_000, ms(20), 28, &dns, 34.0),
        ("RTP, payload 160 B", 10_000_000, ms(20), 40, &rtp, 20.0),
        ("TCP acknowledgements", 10_000_000, us(2500), 52, &ack, 20.0),
        ("the same at 64 kbit/s", 64_000, us(2500), 52, &ack, -25.0),
    ] {
        let Taken { size, more, together } = measured(rate, gap, make);
        let before = 53.0 + f64::from(own);
        let now = more + f64::from(own);
        let share = 100.0 * more / size as f64;
        println!("| {name} | {size} | {before} | {now:.1} | {share:.1} % | {together:.1} |");
        assert!(more <= most, "{name}: {more}");
    }
}
