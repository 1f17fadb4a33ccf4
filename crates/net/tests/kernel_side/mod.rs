//! A network namespace with a TUN device: the kernel on one side, our host on the other.
#![allow(
    dead_code,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "each test uses a part"
)]

use crate::common::{Party, fill};
use sha2::{Digest, Sha256};
use skyhaul_base::Instant;
use skyhaul_net::app::{App, AppStatus};
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig, Secret};
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::{Clock, Namespace};
use skyhaul_testkit::need;
use skyhaul_wire::Profile;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};

/// A namespace of the test's own; `None`, with a message, where the kernel does not grant one.
pub fn space() -> Option<Namespace> {
    need::granted(Namespace::new())
}

pub fn endpoint(name: &str) -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name(name).expect("known"))
}
pub fn marked(name: &str, profile: Profile) -> Endpoint {
    Endpoint { profile, ..endpoint(name) }
}

/// Addresses of the two sides.
#[derive(Clone, Copy)]
pub struct Place {
    pub kernel: IpAddr,
    pub ours: IpAddr,
    pub mtu: u16,
    pub offload: bool,
}

impl Place {
    pub fn new(v6: bool) -> Self {
        let (kernel, ours) = if v6 {
            ("fd00:5359::1".parse().unwrap(), "fd00:5359::2".parse().unwrap())
        } else {
            ([10, 84, 0, 1].into(), [10, 84, 0, 2].into())
        };
        Self { kernel, ours, mtu: 1500, offload: false }
    }
    pub fn tun(&self, ns: &Namespace) -> Tun {
        let prefix = if self.kernel.is_ipv4() { 24 } else { 64 };
        let config = TunConfig {
            name: None,
            addresses: vec![(self.kernel, prefix)],
            mtu: self.mtu,
            offload: self.offload,
        };
        ns.within(|| Tun::open(&config)).expect("enters").expect("opens")
    }
    pub fn host(&self) -> Host {
        let mut config = HostConfig::new(vec![self.ours], Secret::draw().expect("random"));
        config.mtu = self.mtu.into();
        config.record = true;
        Host::new(config)
    }
    pub fn driver(&self, ns: &Namespace) -> Driver {
        Driver::new(self.tun(ns), self.host()).expect("a driver")
    }
    /// From us to a port of the kernel's.
    pub fn out(&self, port: u16) -> (SocketAddr, SocketAddr) {
        (SocketAddr::new(self.ours, 0), SocketAddr::new(self.kernel, port))
    }
}

/// Runs an application to its end.
pub fn run<A: App>(driver: &mut Driver, app: &mut A) {
    driver.run(app, |_, _, _| false).expect("the device stays");
}

pub type Meddler = Box<dyn FnMut(Instant, &mut Host, ConnId)>;

/// Sends and receives streams that can be checked, on every connection, opened or accepted; done after so many.
pub struct Exchange {
    pub send: u64,
    pub parties: BTreeMap<ConnId, Party>,
    pub ended: Vec<Party>,
    pub replayed: usize,
    pub connections: usize,
    /// Does something to each connection on each turn.
    pub meddle: Option<Meddler>,
}

impl Exchange {
    pub fn new(send: u64, connections: usize) -> Self {
        Self { send, parties: BTreeMap::new(), ended: Vec::new(), replayed: 0, connections, meddle: None }
    }
}

impl App for Exchange {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while let Some(id) = host.next_changed() {
            let send = self.send;
            let p = self.parties.entry(id).or_insert_with(|| Party::new(send));
            p.turn(now, host, id);
            if let Some(m) = &mut self.meddle {
                m(now, host, id);
            }
            let c = host.conn(id).expect("not released yet");
            if (p.at_end && p.closed && c.tcp().unacked() == 0) || c.is_over() {
                let journal = c.journal().expect("recorded");
                if let Err(d) = journal.replay() {
                    panic!("step {}: {:?} instead of {:?}", d.step, d.replayed, d.recorded);
                }
                self.replayed += journal.sent();
                self.ended.push(self.parties.remove(&id).expect("there"));
                host.release(now, id);
            }
        }
        if self.ended.len() >= self.connections { AppStatus::Done } else { AppStatus::Waiting }
    }
    fn next_timeout(&self) -> Instant {
        Instant::MAX
    }
    fn stop(&mut self, _now: Instant, _host: &mut Host) {}
}

/// Opens a connection for an exchange.
pub fn open(driver: &mut Driver, place: &Place, port: u16, endpoint: &Endpoint) -> ConnId {
    let (from, to) = place.out(port);
    driver.host_mut().connect(Clock::now(), from, to, endpoint).expect("opens")
}

/// The kernel's side of an exchange: sends so many bytes, closes, and returns what it read: number and hash.
pub fn kernel_party(mut s: TcpStream, send: u64) -> (u64, String) {
    let mut out = s.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let (mut at, mut buf) = (0, vec![0; 1 << 16]);
        while at < send {
            let n = (send - at).min(buf.len() as u64) as usize;
            fill(at, &mut buf[..n]);
            out.write_all(&buf[..n]).unwrap();
            at += n as u64;
        }
        out.shutdown(Shutdown::Write).unwrap();
    });
    let (mut h, mut n, mut buf) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match s.read(&mut buf).unwrap() {
            0 => break,
            k => {
                h.update(&buf[..k]);
                n += k as u64;
            }
        }
    }
    writer.join().unwrap();
    (n, h.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
