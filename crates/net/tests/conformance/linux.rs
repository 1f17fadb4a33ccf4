//! The kernel's TCP, in a namespace of the case's own.

use super::script_side::{ScriptSide, space};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{
    KeepAlive, Linger, RcvBuf, ReuseAddr, SndBuf, TcpCongestion, TcpKeepCount, TcpKeepIdle, TcpKeepInterval,
    TcpMaxSeg, TcpNoDelay, TcpUserTimeout,
};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, listen,
    setsockopt, socket,
};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Namespace;
use skyhaul_testkit::conformance::packet::{Damage, Packet};
use skyhaul_testkit::conformance::target::{PORT, TcpInfo, addresses};
use skyhaul_testkit::conformance::{Answer, Call, Conditions, SocketStatus, Target, TargetKind};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

struct Sock {
    stream: TcpStream,
    failure: Option<SocketStatus>,
}

pub(crate) struct Linux {
    side: ScriptSide,
    conditions: Conditions,
    listener: Option<TcpListener>,
    socks: BTreeMap<SocketAddr, Sock>,
    _space: Namespace,
}

fn text(e: impl Display) -> String {
    e.to_string()
}

impl Linux {
    pub(crate) fn new(conditions: &Conditions) -> Result<Self, String> {
        let space = space()?;
        let on = |yes: bool, value: &'static str| if yes { value } else { "0" };
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let seconds = conditions.fin_timeout.map(|t| (t.as_nanos() / 1_000_000_000).to_string());
        for (key, value) in [
            ("tcp_sack", Some(on(conditions.sack, "1").to_owned())),
            ("tcp_timestamps", Some(on(conditions.timestamps, "1").to_owned())),
            ("tcp_window_scaling", Some(on(conditions.scaling, "1").to_owned())),
            ("tcp_dsack", Some(on(conditions.dsack, "1").to_owned())),
            ("tcp_ecn", Some(on(conditions.ecn, "1").to_owned())),
            ("tcp_recovery", Some(on(conditions.by_time, "1").to_owned())),
            ("tcp_early_retrans", Some(on(conditions.tail_loss_probe, "3").to_owned())),
            ("tcp_frto", Some(on(conditions.f_rto, "2").to_owned())),
            ("tcp_slow_start_after_idle", Some(on(conditions.idle_restart, "1").to_owned())),
            ("tcp_mtu_probing", Some(on(conditions.mtu_probing, "1").to_owned())),
            ("tcp_syn_retries", number(conditions.syn_retries)),
            ("tcp_synack_retries", number(conditions.syn_retries)),
            ("tcp_retries2", number(conditions.retries)),
            ("tcp_max_syn_backlog", number(conditions.backlog)),
            ("tcp_fin_timeout", seconds),
        ] {
            if let Some(value) = value {
                space.sysctl(&format!("net/ipv4/{key}"), &value).map_err(text)?;
            }
        }
        space.enter().map_err(text)?;
        let [stack, peer] = addresses(conditions.v6);
        let side = ScriptSide::open((stack, if conditions.v6 { 48 } else { 16 }), conditions.mtu, peer)?;
        Ok(Self {
            side,
            conditions: conditions.clone(),
            listener: None,
            socks: BTreeMap::new(),
            _space: space,
        })
    }

    /// A socket under the conditions of the case.
    fn socket(&self) -> Result<OwnedFd, String> {
        let family = if self.conditions.v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None).map_err(text)?;
        let g = &self.conditions;
        // The kernel's Reno is NewReno.
        let control = if g.control == "newreno" { "reno" } else { g.control.as_str() };
        setsockopt(&fd, TcpCongestion, &control.into()).map_err(text)?;
        setsockopt(&fd, TcpNoDelay, &!g.nagle).map_err(text)?;
        setsockopt(&fd, ReuseAddr, &true).map_err(text)?;
        if let Some(n) = g.receive_buffer {
            setsockopt(&fd, RcvBuf, &(n as usize)).map_err(text)?;
        }
        if let Some(n) = g.send_buffer {
            setsockopt(&fd, SndBuf, &(n as usize)).map_err(text)?;
        }
        let millis = |t: Duration| (t.as_nanos() / 1_000_000) as u32;
        if let Some(t) = g.user_timeout {
            setsockopt(&fd, TcpUserTimeout, &millis(t)).map_err(text)?;
        }
        if let Some((idle, interval, probes)) = g.keepalive {
            setsockopt(&fd, KeepAlive, &true).map_err(text)?;
            setsockopt(&fd, TcpKeepIdle, &(millis(idle) / 1000)).map_err(text)?;
            setsockopt(&fd, TcpKeepInterval, &(millis(interval) / 1000)).map_err(text)?;
            setsockopt(&fd, TcpKeepCount, &probes).map_err(text)?;
        }
        Ok(fd)
    }

    fn sock(&mut self, peer: SocketAddr) -> Result<&mut Sock, String> {
        self.accept();
        self.socks.get_mut(&peer).ok_or_else(|| "there is no connection".to_owned())
    }
    /// Takes every connection that waits; a newer one of the same peer takes the place of the older.
    fn accept(&mut self) {
        while let Some(Ok((stream, peer))) = self.listener.as_ref().map(TcpListener::accept) {
            let _ = stream.set_nonblocking(true);
            self.socks.insert(peer, Sock { stream, failure: None });
        }
    }

    fn open(&mut self, peer: SocketAddr) -> Result<(), String> {
        let fd = self.socket()?;
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(peer)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(e) => return Err(e.to_string()),
        }
        self.socks.insert(peer, Sock { stream: fd.into(), failure: None });
        Ok(())
    }
    fn listen(&mut self) -> Result<(), String> {
        let fd = self.socket()?;
        let at = SocketAddr::new(addresses(self.conditions.v6)[0], PORT);
        bind(fd.as_raw_fd(), &SockaddrStorage::from(at)).map_err(text)?;
        let backlog = self.conditions.backlog.map_or(1024, |n| n as i32);
        listen(&fd, Backlog::new(backlog).map_err(text)?).map_err(text)?;
        self.listener = Some(fd.into());
        Ok(())
    }
}

impl Sock {
    fn fail(&mut self, e: &io::Error) {
        let socket_status = match e.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ECONNREFUSED) => SocketStatus::Refused,
            Some(Errno::ECONNRESET | Errno::EPIPE) => SocketStatus::Reset,
            Some(Errno::ETIMEDOUT) => SocketStatus::TimedOut,
            Some(
                Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENOPROTOOPT | Errno::EACCES | Errno::EPROTO,
            ) => SocketStatus::Unreachable,
            _ => return,
        };
        self.failure.get_or_insert(socket_status);
    }
    fn socket_status(&mut self) -> SocketStatus {
        if let Ok(Some(e)) = self.stream.take_error() {
            self.fail(&e);
        }
        let end = match self.stream.peek(&mut [0]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(e) => {
                self.fail(&e);
                false
            }
        };
        self.failure.unwrap_or(if end { SocketStatus::End } else { SocketStatus::Nothing })
    }
    fn write(&mut self, data: &[u8]) -> u64 {
        match self.stream.write(data) {
            Ok(n) => n as u64,
            Err(e) => {
                self.fail(&e);
                0
            }
        }
    }
    fn read(&mut self, most: u64) -> Vec<u8> {
        let mut out = vec![0; most.min(1 << 24) as usize];
        let mut n = 0;
        while n < out.len() {
            match self.stream.read(&mut out[n..]) {
                Ok(0) => break,
                Ok(more) => n += more,
                Err(e) => {
                    self.fail(&e);
                    break;
                }
            }
        }
        out.truncate(n);
        out
    }
}

/// States by their numbers in /proc/net/tcp.
const STATES: [&str; 13] = [
    "",
    "established",
    "syn-sent",
    "syn-received",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "syn-received",
];
/// Clock ticks per second in what the kernel shows to programs (USER_HZ).
const TICKS: f64 = 100.0;

/// What /proc/net/tcp has of the connection to `peer`.
fn line_of(peer: SocketAddr) -> Option<TcpInfo> {
    let file = if peer.is_ipv4() { "tcp" } else { "tcp6" };
    let all = fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
    let port = format!(":{:04X}", peer.port());
    let line =
        all.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|f| f[2].ends_with(&port))?;
    let state = usize::from_str_radix(line[3], 16).ok()?;
    let field = |n: usize| line.get(n).and_then(|f| f.parse::<i64>().ok()).unwrap_or(0);
    let ssthresh = field(16);
    Some(TcpInfo {
        state: STATES.get(state).copied().unwrap_or(""),
        rto: Duration::from_secs_f64(field(12).max(0) as f64 / TICKS),
        cwnd: field(15) as u32,
        ssthresh: if ssthresh < 0 { u32::MAX } else { ssthresh as u32 },
        mss: 0,
    })
}

impl Target for Linux {
    fn kind(&self) -> TargetKind {
        TargetKind::Linux
    }
    fn now(&self) -> Instant {
        self.side.now()
    }
    fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String> {
        self.side.arrives(packet, damage)
    }
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        self.side.leaves(until)
    }
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String> {
        Ok(match call {
            Call::Listen => self.listen().map(|()| Answer::Done)?,
            Call::Connect => self.open(peer).map(|()| Answer::Done)?,
            Call::Accept => self.sock(peer).map(|_| Answer::Done)?,
            Call::Write(..) => Answer::Wrote(self.sock(peer)?.write(data)),
            Call::Read(most, _) => Answer::Read(self.sock(peer)?.read(*most)),
            Call::Shutdown => {
                self.sock(peer)?.stream.shutdown(Shutdown::Write).map_err(text)?;
                Answer::Done
            }
            Call::Close => {
                self.sock(peer)?;
                self.socks.remove(&peer);
                Answer::Done
            }
            Call::Abort => {
                let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
                setsockopt(&self.sock(peer)?.stream, Linger, &at_once).map_err(text)?;
                self.socks.remove(&peer);
                Answer::Done
            }
        })
    }
    fn socket_status(&mut self, peer: SocketAddr) -> Result<SocketStatus, String> {
        self.sock(peer).map(Sock::socket_status)
    }
    fn tcp_info(&mut self, peer: SocketAddr) -> Result<TcpInfo, String> {
        let mut tcp_info = line_of(peer).unwrap_or(TcpInfo { state: "closed", ..TcpInfo::default() });
        if let Ok(sock) = self.sock(peer) {
            tcp_info.mss = getsockopt(&sock.stream, TcpMaxSeg).unwrap_or(0);
        }
        Ok(tcp_info)
    }
}
