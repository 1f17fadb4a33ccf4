//! A relay of two kernel sockets by TPROXY and splice(2), without a transport or buffers of its own, for comparison: it runs in
//! the place of a gateway and shows what the kernel alone can do.

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Mark;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

/// The first argument of a relay process; the congestion control of its sockets follows.
pub(crate) const WORD: &str = "relay-run";
/// The port to which the rules divert connections.
const PORT: u16 = 5000;
/// The mark of the relay's own packets. Packets with the mark 1 go to local sockets, so this mark is another one.
const OURS: u32 = 7;

const RULES: &str = "table inet relay {
  chain arrive {
    type filter hook prerouting priority mangle;
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    fib daddr type local accept
    tcp flags & (fin|syn|rst|ack) == syn tproxy ip to 127.0.0.1:5000 meta mark set 1 accept
  }
}";

fn sh(line: &str) {
    let done = Command::new("sh").args(["-c", line]).status().expect("sh runs");
    assert!(done.success(), "{line}");
}

/// Relays until it is killed.
pub(crate) fn play(control: &str) {
    sh(&format!("nft '{RULES}'"));
    sh("ip rule add fwmark 1 lookup 100 && ip route add local default dev lo table 100");
    // As for the gateway: early demultiplexing would deliver forwarded packets to a local socket with the same addresses.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_early_demux", "0");
    let socket = socket().expect("opens");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], PORT)).into()).expect("binds");
    socket.listen(4096).expect("listens");
    println!("ready");
    let listener: TcpListener = socket.into();
    for (near, client) in listener.incoming().flatten().filter_map(|s| s.peer_addr().ok().map(|a| (s, a))) {
        let control = control.to_owned();
        let work = move || {
            let _ = join(&near, client, &control);
        };
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(work);
    }
}

fn socket() -> io::Result<socket2::Socket> {
    let s = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    s.set_ip_transparent_v4(true)?;
    s.set_reuse_address(true)?;
    Ok(s)
}

fn join(near: &TcpStream, client: SocketAddr, control: &str) -> io::Result<()> {
    let far = socket()?;
    setsockopt(&far, Mark, &OURS)?;
    far.bind(&client.into())?;
    far.connect(&near.local_addr()?.into())?;
    let far: TcpStream = far.into();
    for s in [near, &far] {
        s.set_nodelay(true)?;
        // If the kernel lacks this control, its default remains.
        let _ = socket2::SockRef::from(s).set_tcp_congestion(control.as_bytes());
    }
    std::thread::scope(|s| {
        let back = std::thread::Builder::new().stack_size(64 << 10);
        let _ = back.spawn_scoped(s, || pass(&far, near));
        pass(near, &far);
    });
    Ok(())
}

/// On Linux the library copies between sockets by splice(2).
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from, to);
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
