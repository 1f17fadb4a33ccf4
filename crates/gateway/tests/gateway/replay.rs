//! Packets between two gateways that repair datagrams, captured on the link and sent again.

use crate::bed::{Bed, FAR, Link, NEAR, Running};
use crate::calm;
use crate::firewall::waits_for;
use crate::repair::{KEY, Sink, file, repairs, send, start, total};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

pub(crate) const ALL: [(&str, fn()); 2] = [
    ("captured_packets_sent_again_do_nothing", captured_packets_sent_again_do_nothing),
    ("captured_packets_of_an_old_session_do_nothing", captured_packets_of_an_old_session_do_nothing),
];

/// The port of both gateways, and where each is.
const AT: u16 = 21321;
const PLACES: [[u8; 4]; 2] = [[10, 9, 0, 1], [10, 9, 0, 2]];
/// Another address and port on the link.
const ELSEWHERE: ([u8; 4], u16) = ([10, 9, 0, 77], 4000);

/// Captures the packets between two gateways at the near one's interface of the link, as tcpdump does.
struct Tap(OwnedFd);

impl Tap {
    fn open(bed: &Bed) -> Self {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let open = || socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll);
        let socket = bed.spaces[NEAR].within(open).expect("enters").expect("opens");
        let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBufForce, &(16 << 20));
        Self(socket)
    }
    /// What has passed since: packets to the far gateway, and to the near one.
    fn take(&self) -> [Vec<Vec<u8>>; 2] {
        let (mut seen, mut room): ([Vec<Vec<u8>>; 2], _) = (Default::default(), [0; 2000]);
        while let Ok(n) = recv(self.0.as_raw_fd(), &mut room, MsgFlags::MSG_DONTWAIT) {
            let packet = &room[..n];
            // IPv4 without options, UDP, from port to port.
            let ports = [AT.to_be_bytes(), AT.to_be_bytes()].concat();
            if n > 28 && packet[0] == 0x45 && packet[9] == 17 && packet[20..24] == *ports {
                let to_near = packet[16..20] == PLACES[0];
                seen[usize::from(to_near)].push(packet.to_vec());
            }
        }
        seen
    }
}

/// Sends captured packets again from a namespace, as if they came from there.
fn again(bed: &Bed, at: usize, packets: &[Vec<u8>], from: ([u8; 4], u16), to: [u8; 4]) {
    // Protocol 255: the header comes with the packet (raw(7)).
    let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)));
    let socket = bed.spaces[at].within(open).expect("enters").expect("opens");
    let to = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(to), 0));
    for packet in packets {
        let mut packet = packet.clone();
        packet[12..16].copy_from_slice(&from.0);
        packet[20..22].copy_from_slice(&from.1.to_be_bytes());
        let SocketAddr::V4(v4) = to else { unreachable!("it is one") };
        packet[16..20].copy_from_slice(&v4.ip().octets());
        // Without a checksum of UDP, since the addresses may be others. The kernel computes that of the header.
        packet[26..28].fill(0);
        socket.send_to(&packet, &to.into()).expect("sends");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn at(gateway: &Running) -> String {
    gateway.status()["repair"]["peer"].as_str().unwrap_or_default().to_owned()
}
fn moves(gateway: &Running) -> u64 {
    gateway.status()["repair"]["moves"].as_u64().expect("a number")
}
fn refused(gateway: &Running) -> [u64; 2] {
    ["replayed", "forged"].map(|key| total(gateway, key))
}
/// What is refused while packets are sent again: replayed and forged ones, once as many as are expected have been counted.
fn refuses(gateway: &Running, expected: usize, send: impl FnOnce()) -> [u64; 2] {
    let before = refused(gateway);
    send();
    let now = || {
        let now = refused(gateway);
        [now[0] - before[0], now[1] - before[1]]
    };
    waits_for("they are refused", || now()[0] + now()[1] >= expected as u64);
    now()
}

/// Two gateways, of which the far one follows the other.
fn follows(bed: &Bed) -> [Running; 2] {
    let far = file(FAR, KEY, "").replace("peer = \"10.9.0.1\"", "peer = \"any\"");
    let both = [bed.gateway_for(NEAR, &file(NEAR, KEY, "")), bed.gateway_for(FAR, &far)];
    waits_for("both repair", || both.iter().all(repairs));
    both
}

fn captured_packets_sent_again_do_nothing() {
    let Some(bed) = Bed::new("replay", calm()) else { return };
    let tap = Tap::open(&bed);
    let [near, far] = follows(&bed);
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    let number = 300;
    // So long that no two of them leave together.
    send(&bed, "10.2.0.2:7001", 400, Duration::from_millis(2), |n| n < number);
    waits_for("all have arrived", || total(&far, "delivered") >= u64::from(number));
    // Hellos, signs of life, datagrams and reports.
    let [to_far, to_near] = tap.take();
    assert!(to_far.len() > number as usize + 10 && to_near.len() > 10, "{} {}", to_far.len(), to_near.len());
    let kinds = |of: &[Vec<u8>], kind: u8| of.iter().filter(|p| p[28] & 15 == kind).count();
    let (hellos, signs) = (kinds(&to_far, 15), kinds(&to_far, 8));
    assert!(hellos > 0 && signs > 4, "{hellos} {signs}");
    let delivered = total(&far, "delivered");
    let here = at(&far);
    assert_eq!(here, "10.9.0.1:21321");
    // From the address and port of the gateway, and from elsewhere. Each of them has arrived before, but for the hellos of before the session.
    // The short number of a frame that is long gone stands for another frame, which it is no authentic copy of.
    for from in [(PLACES[0], AT), ELSEWHERE] {
        let [replayed, forged] =
            refuses(&far, to_far.len() - hellos, || again(&bed, NEAR, &to_far, from, PLACES[1]));
        assert!(replayed as usize >= signs, "{replayed} and {forged} of {}", to_far.len());
    }
    // And at the gateway that knows the address of its peer.
    let number_of_answers = to_near.len() - kinds(&to_near, 15);
    let [replayed, _] =
        refuses(&near, number_of_answers, || again(&bed, FAR, &to_near, (PLACES[1], AT), PLACES[0]));
    assert!(replayed as usize >= kinds(&to_near, 8), "{replayed} of {number_of_answers}");
    // The kernel passes on nothing from elsewhere.
    let before = refused(&near);
    again(&bed, FAR, &to_near, ELSEWHERE, PLACES[0]);
    // Sent back to who has sent them.
    let [_, forged] =
        refuses(&far, number_of_answers, || again(&bed, NEAR, &to_near, (PLACES[0], AT), PLACES[1]));
    assert!(forged > 0);
    assert_eq!(refused(&near), before);
    // Nothing has come of it.
    assert_eq!((at(&far), moves(&far)), (here, 0));
    assert_eq!([&near, &far].map(|g| total(g, "sessions")), [1, 1]);
    assert!(repairs(&near) && repairs(&far));
    assert_eq!(total(&far, "delivered"), delivered);
    let got = sink.close();
    assert_eq!(got, (0..number).collect::<Vec<_>>(), "each once, in order");
    // The session goes on.
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    send(&bed, "10.2.0.2:7001", 200, Duration::from_millis(2), |n| n < 50);
    assert_eq!(sink.close(), (0..50).collect::<Vec<_>>());
}

fn captured_packets_of_an_old_session_do_nothing() {
    // Losses, so that there are symbols and repeats to capture, too.
    let link = Link { loss: 0.05, ..calm() };
    let Some(bed) = Bed::new("replay-old", link) else { return };
    let tap = Tap::open(&bed);
    let [near, far] = follows(&bed);
    send(&bed, "10.2.0.2:7001", 200, Duration::from_millis(2), |n| n < 500);
    let [old, answers] = tap.take();
    // Without the other gateway nobody may begin a session by what was recorded.
    near.kill();
    waits_for("the session has ended", || !repairs(&far));
    std::thread::sleep(Duration::from_secs(11));
    let sink = Sink::open(&bed, "0.0.0.0:7001");
    let sessions = total(&far, "sessions");
    let before = (at(&far), moves(&far), total(&far, "delivered"));
    let hellos = old.iter().filter(|p| p[28] & 15 == 15).count();
    for from in [(PLACES[0], AT), ELSEWHERE] {
        // The losses of the link take some of them.
        refuses(&far, (old.len() - hellos) * 8 / 10, || again(&bed, NEAR, &old, from, PLACES[1]));
        again(&bed, NEAR, &answers, from, PLACES[1]);
    }
    assert!(!repairs(&far));
    assert_eq!(total(&far, "sessions"), sessions);
    // A new session takes nothing of the old one.
    let near = start(&bed, NEAR);
    waits_for("both repair", || repairs(&near) && repairs(&far));
    for from in [(PLACES[0], AT), ELSEWHERE] {
        let [_, forged] =
            refuses(&far, (old.len() - hellos) * 8 / 10, || again(&bed, NEAR, &old, from, PLACES[1]));
        assert!(forged > 0);
    }
    assert_eq!((at(&far), moves(&far), total(&far, "delivered")), before);
    assert_eq!(total(&far, "sessions"), sessions + 1);
    assert!(repairs(&near) && repairs(&far));
    assert_eq!(sink.close(), Vec::<u32>::new(), "nothing is delivered");
}
