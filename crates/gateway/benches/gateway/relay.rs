//! What the kernel alone can do: a relay of two sockets by TPROXY and splice(2), without a transport or buffers of its own.
//! It stands where a gateway would, for comparison.

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Mark;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

/// The first argument of a process that is one; the congestion control towards the link follows.
pub(crate) const WORD: &str = "relay-run";
/// Where the rules send connections, and the mark of what the rules leave alone.
const PORT: u16 = 5000;
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
    // As for the gateway: packets of a socket that stands in for another one are not its own.
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
        // Without that module the kernel's default remains.
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
