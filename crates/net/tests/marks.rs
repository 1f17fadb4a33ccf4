//! Explicit congestion notification (RFC 3168) between the host and the kernel, over TUN: packets are marked on the way, by us
//! or by the kernel's own queue.
#![cfg(target_os = "linux")]

mod common;
mod kernel_side;

use common::hash_of;
use kernel_side::{Exchange, Place, endpoint, kernel_party, space};
use skyhaul_net::app::{App, AppStatus};
use skyhaul_net::host::Endpoint;
use skyhaul_net::{Clock, Namespace};
use skyhaul_tcp::Flags;
use skyhaul_tcp::config::Ecn;
use skyhaul_testkit::need;
use skyhaul_wire::{Packet, Transport, ip};
use std::net::{TcpListener, TcpStream};

const BYTES: u64 = 4_000_000;

/// What one direction showed.
#[derive(Debug, Default)]
struct EcnCounts {
    packets: u64,
    capable: u64,
    marked: u64,
    echoes: u64,
    reductions: u64,
}

impl EcnCounts {
    /// Counts a packet, and marks every `n`-th of those that may be marked.
    fn pass(&mut self, packet: &mut [u8], n: Option<u64>) {
        self.packets += 1;
        let parsed = Packet::parse(packet).expect("a packet");
        let ecn = parsed.ip.ecn;
        if let Transport::Tcp(tcp) = parsed.transport {
            let synchronised = !tcp.flags.has(Flags::SYN);
            self.echoes += u64::from(synchronised && tcp.flags.has(Flags::ECE));
            self.reductions += u64::from(synchronised && tcp.flags.has(Flags::CWR));
        }
        self.capable += u64::from(ecn != 0);
        if ecn != 0 && n.is_some_and(|n| self.capable % n == 0) {
            ip::mark_congestion(packet);
        }
        let marked = Packet::parse(packet).expect("still one, with the right checksums").ip.ecn == 3;
        self.marked += u64::from(marked);
    }
}

/// Both sides send [`BYTES`] at once. `mark`: every n-th packet from the kernel, and from us, is marked; without a number for the kernel,
/// it marks by itself. Returns the counts of both directions, and how many marks we have answered; `None`, after a skip, where the
/// kernel cannot mark.
fn exchange(
    ns: &Namespace,
    v6: bool,
    we_open: bool,
    ecn: Ecn,
    mark: [Option<u64>; 2],
) -> Option<([EcnCounts; 2], u64)> {
    let place = Place::new(v6);
    let (tun, mut host) = (place.tun(ns), place.host());
    ns.sysctl("net/ipv4/tcp_ecn", "1").unwrap();
    if mark[0].is_none() && !let_the_kernel_mark(ns, tun.name()) {
        return None;
    }
    let mut end: Endpoint = endpoint("cubic");
    end.tcp.ecn = ecn;
    let kernel = if we_open {
        let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
        let to = place.out(listener.local_addr().unwrap().port());
        host.connect(Clock::now(), to.0, to.1, &end).unwrap();
        std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, BYTES))
    } else {
        host.listen(8080, end).unwrap();
        let space = ns.clone();
        std::thread::spawn(move || {
            kernel_party(space.within(|| TcpStream::connect((place.ours, 8080)).unwrap()).unwrap(), BYTES)
        })
    };
    let mut app = Exchange::new(BYTES, 1);
    let answered = std::rc::Rc::new(std::cell::Cell::new(0));
    let cell = std::rc::Rc::clone(&answered);
    app.meddle = Some(Box::new(move |_, host, id| {
        cell.set(host.conn(id).map_or(0, |c| c.tcp().sender().marks_answered()));
    }));
    let (mut from_kernel, mut from_us) = (EcnCounts::default(), EcnCounts::default());
    let mut buf = vec![0; 1 << 16];
    loop {
        let now = Clock::now();
        let mut leaving = Vec::new();
        let mut out = |p: &[u8]| leaving.push(p.to_vec());
        while let Some(n) = tun.read(&mut buf).unwrap() {
            from_kernel.pass(&mut buf[..n], mark[0]);
            host.arrive(now, &buf[..n], &mut out);
        }
        host.handle_timeout(now, &mut out);
        let done = app.turn(now, &mut host) == AppStatus::Done;
        host.flush(now, &mut out);
        for mut p in leaving {
            from_us.pass(&mut p, mark[1]);
            tun.write(&p).unwrap();
        }
        if done && kernel.is_finished() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    let ours = app.ended.pop().unwrap();
    assert_eq!((ours.received, ours.hash(), ours.failure), (BYTES, hash_of(BYTES), None));
    assert_eq!(kernel.join().unwrap(), (BYTES, hash_of(BYTES)));
    Some(([from_kernel, from_us], answered.get()))
}

/// The kernel marks an eighth of what it sends to us, super-packets as a whole; false, with a message, without `nft`.
fn let_the_kernel_mark(ns: &Namespace, device: &str) -> bool {
    if !need::program("nft") {
        return false;
    }
    let rule = |family| format!("{family} ecn {{ ect0, ect1 }} numgen random mod 8 0 {family} ecn set ce");
    let table = format!(
        "table inet marks {{ chain out {{ type filter hook postrouting priority 0; oifname {device} {}; oifname {device} {}; }}; }}",
        rule("ip"),
        rule("ip6")
    );
    let added = ns.within(|| std::process::Command::new("nft").arg(table).output()).unwrap().expect("runs");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    true
}

#[test]
fn marks_are_echoed_and_answered_by_both_sides_without_a_lost_byte() {
    let Some(ns) = space() else { return };
    for (v6, we_open, ecn) in [(false, true, Ecn::Ask), (true, false, Ecn::Grant), (false, false, Ecn::Ask)] {
        let marked = exchange(&ns, v6, we_open, ecn, [Some(300), Some(300)]);
        let ([kernel, us], answered) = marked.expect("our marks need nothing");
        let what = format!("{v6} {we_open}: {kernel:?} {us:?}");
        // Data of both may be marked, pure acknowledgements may not (RFC 3168 §6.1.4).
        assert!(kernel.capable > 1000 && kernel.capable < kernel.packets, "{what}");
        assert!(us.capable > 1000 && us.capable < us.packets, "{what}");
        assert!(kernel.marked > 3 && us.marked > 3, "{what}");
        // Ours are echoed by the kernel and answered by us, and the other way round.
        assert!(kernel.echoes > 0 && us.reductions > 0 && answered > 0, "{what}");
        assert!(us.echoes > 0 && kernel.reductions > 0, "{what}");
        assert!(us.reductions <= us.marked + 2 && kernel.reductions <= kernel.marked + 2, "{what}");
    }
}

#[test]
fn what_the_kernel_marks_by_itself_is_echoed() {
    let Some(ns) = space() else { return };
    let Some(([kernel, us], _)) = exchange(&ns, false, true, Ecn::Ask, [None, Some(300)]) else { return };
    assert!(kernel.marked > 10 && us.echoes > 0 && kernel.reductions > 0, "{kernel:?} {us:?}");
}

#[test]
fn a_host_that_takes_no_part_is_left_alone() {
    let Some(ns) = space() else { return };
    for we_open in [true, false] {
        let plain = exchange(&ns, false, we_open, Ecn::Off, [Some(300), Some(300)]);
        let ([kernel, us], answered) = plain.expect("our marks need nothing");
        let counts = |s: &EcnCounts| (s.capable, s.marked, s.echoes, s.reductions);
        assert_eq!((counts(&kernel), counts(&us), answered), ((0, 0, 0, 0), (0, 0, 0, 0), 0));
    }
}
