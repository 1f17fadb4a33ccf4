//! Our transport over the emulated links.

use super::{Outcome, Sample, Sent, Setting, WorldError};
use crate::app::{App, Serve, Sink, Turn};
use crate::device::Clock;
use crate::device::Namespace;
use crate::device::tun::{Tun, TunConfig};
use crate::error::NetError;
use crate::host::driver::Driver;
use crate::host::{ConnId, Endpoint, Host, HostConfig, Secret};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_wire::Profile;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

const PORT: u16 = 5201;
/// The stacks: the kernel's side of their devices, and their own.
const CLIENT: [[u8; 4]; 2] = [[10, 84, 0, 1], [10, 84, 0, 2]];
const SERVER: [[u8; 4]; 2] = [[10, 85, 0, 1], [10, 85, 0, 2]];
/// The links' devices.
const LINK: [[u8; 4]; 2] = [[10, 83, 0, 1], [10, 83, 0, 2]];

fn driver(ns: &Namespace, [kernel, own]: [[u8; 4]; 2], mtu: u16, seed: u64) -> Result<Driver, NetError> {
    let config = TunConfig {
        name: Some("stack".into()),
        addresses: vec![(IpAddr::from(kernel), 24)],
        mtu,
        offload: false,
    };
    let tun = ns.within(|| Tun::open(&config))??;
    let secret = Secret::draw().map_err(|e| NetError::os("draw random numbers", e))?;
    let host = HostConfig { mtu: mtu.into(), seed, ..HostConfig::new(vec![own.into()], secret) };
    Driver::new(tun, Host::new(host))
}

pub(super) fn run(
    s: &Setting<'_>,
    both: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let e = &s.group.endpoint;
    let profile = match e.probes {
        ProbeNegotiation::Off => Profile::Off,
        ProbeNegotiation::Paper => Profile::Paper,
        ProbeNegotiation::Negotiate => Profile::Option,
    };
    let endpoint = Endpoint { tcp: *e, cc: s.group.cc.clone(), profile, longest: None };
    let mut client = driver(&s.client, CLIENT, s.mtu, s.seed)?;
    let network = |[_, own]: [[u8; 4]; 2]| (IpAddr::from([own[0], own[1], own[2], 0]), 24);
    let done = AtomicBool::new(false);
    let emulation;
    let outcome = if both {
        let mut server = driver(&s.server, SERVER, s.mtu, s.seed)?;
        server.host_mut().listen(PORT, endpoint.clone())?;
        emulation = s.emulate()?;
        s.server.route(network(CLIENT), "link", Some(LINK[0].into()))?;
        s.client.route(network(SERVER), "link", Some(LINK[1].into()))?;
        let waker = server.waker();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut app = Serve::new(|_| Sink, Duration::from_secs(3600), None);
                server.run(&mut app, |_, _, _| done.load(Ordering::Relaxed))
            });
            let outcome = send(s, &mut client, SERVER[1].into(), &endpoint, stop);
            done.store(true, Ordering::Relaxed);
            waker.wake();
            let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served?;
            outcome
        })?
    } else {
        emulation = s.emulate()?;
        s.server.route(network(CLIENT), "link", Some(LINK[0].into()))?;
        s.client.route((LINK[1].into(), 32), "link", None)?;
        let listener = s
            .server
            .within(|| TcpListener::bind((IpAddr::from(LINK[1]), PORT)))?
            .map_err(|e| NetError::os("listen in the receiver's namespace", e))?;
        let sinks = super::kernel::sink(listener);
        let outcome = send(s, &mut client, LINK[1].into(), &endpoint, stop);
        sinks.end();
        outcome?
    };
    Ok(outcome.with(s, emulation.finish()?))
}

fn send(
    s: &Setting<'_>,
    client: &mut Driver,
    to: IpAddr,
    endpoint: &Endpoint,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Sent, WorldError> {
    let began = Clock::now();
    let mut flows = Flows {
        s,
        endpoint,
        ends: (SocketAddr::new(CLIENT[1].into(), 0), SocketAddr::new(to, PORT)),
        began,
        open: Vec::new(),
        sample_at: began,
        samples: Vec::new(),
        chunk: vec![0; 1 << 16],
        failure: None,
        over: false,
    };
    client.run(&mut flows, |_, _, _| stop())?;
    if let Some(e) = flows.failure {
        return Err(e);
    }
    let host = client.host();
    let mut sent = Sent { took: Clock::now() - began, samples: flows.samples, ..Sent::default() };
    for id in &flows.open {
        let Some(c) = host.conn(*id) else { continue };
        let n = c.counters();
        sent.acked.push(n.bytes_acked);
        sent.retransmissions += n.retransmissions;
        sent.timeouts = Some(sent.timeouts.unwrap_or(0) + n.timeouts);
        sent.probes = (sent.probes.0 + n.probes_sent, sent.probes.1 + n.probes_answered);
    }
    Ok(sent)
}

/// Opens the flows at their times, keeps them busy, and samples them, until the scenario is over.
struct Flows<'a> {
    s: &'a Setting<'a>,
    endpoint: &'a Endpoint,
    ends: (SocketAddr, SocketAddr),
    began: Instant,
    open: Vec<ConnId>,
    sample_at: Instant,
    samples: Vec<Sample>,
    chunk: Vec<u8>,
    failure: Option<WorldError>,
    over: bool,
}

impl Flows<'_> {
    fn ends_at(&self) -> Instant {
        self.began + self.s.scenario.duration
    }
    fn sample(&mut self, at: Instant, host: &Host) {
        for (flow, id) in self.open.iter().enumerate() {
            if let Some(c) = host.conn(*id) {
                self.samples.push(Sample {
                    at: at - self.began,
                    flow: flow as u32,
                    cwnd: c.snapshot().cwnd,
                    acked: c.counters().bytes_acked,
                });
            }
        }
    }
}

impl App for Flows<'_> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while host.next_changed().is_some() {}
        while self.open.len() < self.s.starts.len() && now >= self.began + self.s.starts[self.open.len()] {
            match host.connect(now, self.ends.0, self.ends.1, self.endpoint) {
                Ok(id) => self.open.push(id),
                Err(e) => {
                    self.failure = Some(e.into());
                    return Turn::Done;
                }
            }
        }
        for id in &self.open {
            host.discard(now, *id);
            while host.write(now, *id, &self.chunk) == self.chunk.len() {}
            if let Some(f) = host.conn(*id).and_then(crate::host::Conn::failure) {
                self.failure = Some(WorldError::Failed(f.to_string()));
                return Turn::Done;
            }
        }
        while self.sample_at <= now && self.sample_at <= self.ends_at() {
            self.sample(self.sample_at, host);
            self.sample_at += self.s.every;
        }
        if now >= self.ends_at() || self.over { Turn::Done } else { Turn::Waiting }
    }
    fn next_timeout(&self) -> Instant {
        let start = self.s.starts.get(self.open.len()).map_or(Instant::MAX, |s| self.began + *s);
        start.min(self.sample_at).min(self.ends_at())
    }
    fn stop(&mut self, _now: Instant, _host: &mut Host) {
        self.over = true;
    }
}
