//! Packets that arrive merged, as a device with super-packets delivers them.

use crate::common::{Party, Weather, World, accepted, hash_of};
use crate::{MB, endpoint, ms};
use skyhaul_base::Instant;
use skyhaul_net::host::Host;
use skyhaul_wire::Packet;
use skyhaul_wire::checksum::Sum;

const IP: usize = 20;

/// Bytes of both headers of an IPv4 packet of TCP.
fn headers(p: &[u8]) -> usize {
    IP + usize::from(p[IP + 12] >> 4) * 4
}
fn seq(p: &[u8]) -> u32 {
    u32::from_be_bytes([p[IP + 4], p[IP + 5], p[IP + 6], p[IP + 7]])
}

/// Merges packets as kernels do: those of one connection with equal headers, in order, with nothing but data. Returns how many were
/// merged, and the result.
fn merge(packets: &[Vec<u8>]) -> (usize, Vec<u8>) {
    let mut whole = packets[0].clone();
    let head = headers(&whole);
    // Damaged packets are not merged.
    let data = |p: &[u8]| Packet::parse(p).is_ok() && p.len() > headers(p) && p[IP + 13] & !0x18 == 0;
    if !data(&whole) {
        return (1, whole);
    }
    let mut n = 1;
    for p in &packets[1..] {
        let end = seq(&whole).wrapping_add((whole.len() - head) as u32);
        let alike = data(p)
            && headers(p) == head
            && p[12..IP + 4] == whole[12..IP + 4]
            && p[IP + 8..IP + 13] == whole[IP + 8..IP + 13]
            && p[IP + 14..IP + 16] == whole[IP + 14..IP + 16]
            && p[IP + 20..head] == whole[IP + 20..head]
            && p[1] == whole[1];
        if !alike || seq(p) != end || whole.len() + p.len() > 60_000 {
            break;
        }
        whole.extend_from_slice(&p[head..]);
        n += 1;
    }
    let total = whole.len() as u16;
    whole[2..4].copy_from_slice(&total.to_be_bytes());
    whole[10..12].fill(0);
    let sum = Sum::default().bytes(&whole[..IP]).finish();
    whole[10..12].copy_from_slice(&sum.to_be_bytes());
    (n, whole)
}

/// Delivers what is due, merged as far as possible. Returns the number of packets, and of super-packets that were taken whole.
fn deliver(w: &mut World) -> (u64, u64) {
    let (mut all, mut taken) = (0, 0);
    for (side, due) in w.due().into_iter().enumerate() {
        let mut rest = &due[..];
        while !rest.is_empty() {
            let (n, whole) = merge(rest);
            all += n as u64;
            let mut out = Vec::new();
            let host: &mut Host = &mut w.hosts[side];
            let whole =
                n > 1 && host.arrive_merged(w.now, &whole, n as u64, &mut |p: &[u8]| out.push(p.to_vec()));
            w.send(side, out);
            if whole {
                taken += 1;
            } else {
                rest[..n].iter().for_each(|p| w.inject(side, p));
            }
            rest = &rest[n..];
        }
    }
    (all, taken)
}

/// Sends 3 MB and returns the packets that the receiver answered with, and how many super-packets it took whole.
fn transfer(weather: Weather, merges: bool) -> (u64, u64) {
    let mut w = World::new(Instant::ZERO, false, weather);
    for host in &mut w.hosts {
        // A recorded connection takes no merged packets: its record has each segment by itself.
        *host = Host::new(skyhaul_net::host::HostConfig { record: false, ..host.config().clone() });
    }
    let mut e = endpoint("sack");
    // One acknowledgement covers many segments: the limit of two per acknowledgement (RFC 3465 §2.2) would slow down slow start.
    e.tcp.rules.abc_limit = f64::INFINITY;
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    let mut parties = [Party::new(3 * MB), Party::new(0)];
    let (mut server, mut taken, mut packets) = (None, 0, 0);
    while !(parties[1].at_end && parties[0].at_end) {
        server = server.or_else(|| accepted(&mut w.hosts[1]));
        parties[0].turn(w.now, &mut w.hosts[0], id);
        if let Some(s) = server {
            parties[1].turn(w.now, &mut w.hosts[1], s);
        }
        w.flush();
        assert!(w.tick(), "it stalls");
        if merges {
            let (all, whole) = deliver(&mut w);
            (packets, taken) = (packets + all, taken + whole);
        } else {
            w.deliver();
        }
    }
    assert_eq!((parties[1].received, parties[1].hash()), (3 * MB, hash_of(3 * MB)));
    if merges {
        assert_eq!(
            w.hosts[1].counts().packets_in + w.hosts[0].counts().packets_in,
            packets,
            "each is counted"
        );
    }
    (w.sent[1], taken)
}

#[test]
fn merged_packets_are_acknowledged_once_and_the_stream_is_the_same() {
    let (separate, _) = transfer(Weather::calm(ms(20)), false);
    let (merged, taken) = transfer(Weather::calm(ms(20)), true);
    assert!(taken > 50, "{taken} were taken whole");
    assert!(merged * 5 < separate, "{merged} acknowledgements instead of {separate}");
}

#[test]
fn losses_reordering_and_corruption_beside_merged_packets() {
    let (_, taken) = transfer(Weather { corrupt: 0.002, ..Weather::stormy(ms(20)) }, true);
    assert!(taken > 50, "{taken} were taken whole");
}

/// Only the next data of a connection is taken whole. Anything else is left to be split, and has changed nothing.
#[test]
fn only_the_next_data_is_taken_whole() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(1)));
    for host in &mut w.hosts {
        *host = Host::new(skyhaul_net::host::HostConfig { record: false, ..host.config().clone() });
    }
    let e = endpoint("sack");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    while accepted(&mut w.hosts[1]).is_none() {
        assert!(w.step());
    }
    w.hosts[0].write(w.now, id, &[7; 5000]);
    let mut packets = Vec::new();
    w.hosts[0].flush(w.now, &mut |p: &[u8]| packets.push(p.to_vec()));
    assert!(packets.len() > 3);
    let mut answers = 0;
    let mut give =
        |w: &mut World, p: &[u8]| w.hosts[1].arrive_merged(w.now, p, 2, &mut |_: &[u8]| answers += 1);
    let (n, first) = merge(&packets[..2]);
    let (m, second) = merge(&packets[2..4]);
    assert_eq!((n, m), (2, 2));
    let before = w.hosts[1].counts().clone();
    assert!(!give(&mut w, &second), "beyond a gap");
    let with = |at: usize, value: u8| {
        let mut p = first.clone();
        p[at] = value;
        p
    };
    assert!(!give(&mut w, &with(IP + 13, 0x11)), "a FIN");
    assert!(!give(&mut w, &with(IP + 13, 0x14)), "a RST");
    assert!(!give(&mut w, &with(IP + 1, first[IP + 1] ^ 1)), "another connection");
    assert!(!give(&mut w, &with(0, 0x65)), "another version of IP");
    assert!(!give(&mut w, &first[..30]), "a part");
    assert_eq!(w.hosts[1].counts(), &before);
    assert!(give(&mut w, &first));
    assert!(!give(&mut w, &first), "a copy");
    assert!(give(&mut w, &second));
    assert_eq!(answers, 2, "one acknowledgement for each");
}
