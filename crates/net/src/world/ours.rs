//! Our transport over the emulated links.

use super::WorldError;
use super::outcome::{Done, FlowOutcome, Outcome, Sample};
use super::receivers::Receivers;
use super::setting::{Flow, Setting, packet};
use crate::app::{App, Inbox, Lines, Serve, Session, Sink, Turn};
use crate::device::Namespace;
use crate::device::tun::{Tun, TunConfig};
use crate::emulator::Emulation;
use crate::error::NetError;
use crate::host::driver::Driver;
use crate::host::{Endpoint, Host, HostConfig, HostError, Secret};
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::{FlowGroup, Transport};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_wire::Profile;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The endpoint of a group of flows, whose packets are as long as in the simulation.
fn endpoint(group: &FlowGroup) -> Endpoint {
    let profile = match group.endpoint.probes {
        ProbeNegotiation::Off => Profile::Off,
        ProbeNegotiation::Paper => Profile::Paper,
        ProbeNegotiation::Negotiate => Profile::Option,
    };
    Endpoint { tcp: group.endpoint, cc: group.cc.clone(), profile, longest: Some(packet(group)) }
}

pub(super) fn run(
    s: &Setting<'_>,
    both: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let network = |[_, own]: [[u8; 4]; 2]| (IpAddr::from([own[0], own[1], own[2], 0]), 24);
    let mut client = driver(&s.client, CLIENT, s.mtu, s.seed)?;
    let ends = s.ends()?;
    s.server.route(network(CLIENT), "link", Some(LINK[0].into()))?;
    if both {
        let mut server = driver(&s.server, SERVER, s.mtu, s.seed)?;
        listen(s, server.host_mut())?;
        s.client.route(network(SERVER), "link", Some(LINK[1].into()))?;
        let emulation = s.emulate(ends)?;
        let inbox = Inbox::new(emulation.started_at() + s.scenario.duration);
        let (done, waker) = (AtomicBool::new(false), server.waker());
        let (senders, inbox) = std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let serve = Serve::new(|_| Sink, Duration::from_secs(3600), None);
                let mut app = Receiving { serve, inbox };
                server.run(&mut app, |_, _, _| done.load(Ordering::Relaxed)).map(|()| app.inbox)
            });
            let senders = send(s, &mut client, &emulation, SERVER[1].into(), stop);
            done.store(true, Ordering::Relaxed);
            waker.wake();
            let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, WorldError>((senders?, served?))
        })?;
        Ok(senders.done(client.host(), &inbox).with(s, emulation.finish()?))
    } else {
        let to = LINK[1].into();
        s.client.route((IpAddr::V4(to), 32), "link", None)?;
        let receivers = Receivers::bind(s, to)?;
        let emulation = s.emulate(ends)?;
        // Our sender sees by itself what is acknowledged.
        let receivers = receivers.run(false, emulation.started_at() + s.scenario.duration)?;
        let senders = send(s, &mut client, &emulation, to.into(), stop);
        let inbox = receivers.end();
        Ok(senders?.done(client.host(), &inbox?).with(s, emulation.finish()?))
    }
}

/// Takes what groups of flows send.
fn listen(s: &Setting<'_>, host: &mut Host) -> Result<(), HostError> {
    for (group, port) in s.groups() {
        match group.transport {
            Transport::Tcp => host.listen(port, endpoint(group))?,
            Transport::Udp => drop(host.bind(port)?),
        }
    }
    Ok(())
}

/// Reads what comes over connections, and measures datagrams.
struct Receiving<G> {
    serve: Serve<Sink, G>,
    inbox: Inbox,
}

impl<G: FnMut(u16) -> Sink> App for Receiving<G> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        self.inbox.read(host);
        // Nobody asks what became of them.
        self.serve.take_ended();
        self.serve.turn(now, host)
    }
    fn next_timeout(&self) -> Instant {
        self.serve.next_timeout()
    }
    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.serve.stop(now, host);
    }
}

/// Runs the senders until the scenario is over, or the user wants an end.
fn send<'a>(
    s: &'a Setting<'a>,
    client: &mut Driver,
    emulation: &Emulation,
    to: IpAddr,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Senders<'a>, WorldError> {
    let zero = emulation.started_at();
    let mut senders = Senders {
        s,
        zero,
        all: Vec::with_capacity(s.flows.len()),
        sample_at: zero,
        samples: Vec::new(),
        failure: None,
        over: None,
    };
    let endpoints: Vec<_> = s.groups().map(|(group, port)| (port, Arc::new(endpoint(group)))).collect();
    for flow in &s.flows {
        let Some((_, endpoint)) = endpoints.iter().find(|(port, _)| *port == flow.port) else { continue };
        let ends = (SocketAddr::new(CLIENT[1].into(), 0), SocketAddr::new(to, flow.port));
        let lines = if flow.is_udp() {
            Lines::datagrams(client.host_mut(), ends, endpoint.clone())?
        } else {
            Lines::connections(ends, endpoint.clone())
        };
        senders.all.push(Sender { flow, session: flow.session(zero), lines });
    }
    client.run(&mut senders, |_, _, _| stop())?;
    match senders.failure.take() {
        Some(e) => Err(e),
        None => Ok(senders),
    }
}

/// A flow.
struct Sender<'a> {
    flow: &'a Flow<'a>,
    session: Session,
    lines: Lines,
}

impl Sender<'_> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Result<(), WorldError> {
        self.session.turn(now, &mut self.lines.on(host))?;
        if let Some(f) = self.lines.failure(host) {
            return Err(WorldError::Failed { flow: self.flow.group.name.clone(), why: f.to_string() });
        }
        self.lines.tend(now, host);
        self.lines.take_over();
        Ok(())
    }
    fn sample(&self, host: &Host) -> (Option<f64>, u64) {
        let mut open = self.lines.open().filter_map(|id| host.conn(id));
        let cwnd = match (open.next(), open.next()) {
            (Some(only), None) if !self.session.opens_many() => Some(only.snapshot().cwnd),
            _ => None,
        };
        (cwnd, self.lines.tally(host).acked)
    }
}

/// All flows: each does what its workload wants, and is sampled.
struct Senders<'a> {
    s: &'a Setting<'a>,
    zero: Instant,
    all: Vec<Sender<'a>>,
    sample_at: Instant,
    samples: Vec<Sample>,
    failure: Option<WorldError>,
    /// When it ended.
    over: Option<Instant>,
}

impl Senders<'_> {
    fn ends_at(&self) -> Instant {
        self.zero + self.s.scenario.duration
    }
    fn sample(&mut self, host: &Host) {
        for (flow, sender) in (0..).zip(&self.all).filter(|(_, x)| !x.flow.is_udp()) {
            let (cwnd, acked) = sender.sample(host);
            self.samples.push(Sample { at: self.sample_at - self.zero, flow, cwnd, acked });
        }
    }
    /// What it all came to.
    fn done(self, host: &Host, inbox: &Inbox) -> Done {
        let of = |x: &Sender<'_>| {
            let plain = FlowOutcome::of(x.flow, &x.session, self.zero);
            if x.flow.is_udp() {
                let delays = inbox.of(x.lines.local());
                return plain.with_datagrams(x.session.datagrams(), delays.measured(), delays.bytes());
            }
            let tally = x.lines.tally(host);
            FlowOutcome {
                acked: tally.acked,
                sent: Some(tally.segments),
                retransmissions: tally.retransmissions,
                timeouts: Some(tally.timeouts),
                probes: (tally.probes_sent, tally.probes_answered),
                ..plain
            }
        };
        let took = self.over.map_or(Duration::ZERO, |over| over - self.zero);
        Done { took, flows: self.all.iter().map(of).collect(), samples: self.samples }
    }
}

impl App for Senders<'_> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while host.next_changed().is_some() {}
        if self.over.is_some() {
            return Turn::Done;
        }
        for sender in &mut self.all {
            if let Err(e) = sender.turn(now, host) {
                self.failure = Some(e);
                return Turn::Done;
            }
        }
        while self.sample_at <= now && self.sample_at <= self.ends_at() {
            self.sample(host);
            self.sample_at += self.s.every;
        }
        if now < self.ends_at() {
            return Turn::Waiting;
        }
        self.over = Some(now);
        Turn::Done
    }
    fn next_timeout(&self) -> Instant {
        let flows = self.all.iter().map(|x| x.session.next().min(x.lines.next())).min();
        flows.unwrap_or(Instant::MAX).min(self.sample_at).min(self.ends_at())
    }
    fn stop(&mut self, now: Instant, _host: &mut Host) {
        self.over = Some(now);
    }
}
