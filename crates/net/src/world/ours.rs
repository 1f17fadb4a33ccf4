//! Our transport over the emulated links: senders and receivers are hosts of ours, or the senders only, and the receivers are
//! sockets of the kernel.

use super::WorldError;
use super::outcome::{FlowOutcome, Outcome, RateOutcome, RunOutcome, Sample};
use super::receivers::Receivers;
use super::setting::{Flow, Setting, packet};
use crate::app::{
    App, AppStatus, ArrivalLog, ConnectionHandler, HostTransport, Inbox, NextStep, Rated, Reporters, Serve,
    Session, Sink,
};
use crate::device::Namespace;
use crate::device::tun::{Tun, TunConfig};
use crate::emulator::Emulation;
use crate::error::NetError;
use crate::host::driver::Driver;
use crate::host::{ConnId, Endpoint, Host, HostConfig, HostError, Secret};
use skyhaul_apps::{Arrival, Datagram, Viewed};
use skyhaul_base::{Duration, Instant};
use skyhaul_rate::Offered;
use skyhaul_scenario::resolved::{FlowGroup, Transport};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_wire::Profile;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Addresses of a host's device, in the namespaces of the senders and of the receivers: the kernel's, and the host's own.
const CLIENT: [[u8; 4]; 2] = [[10, 84, 0, 1], [10, 84, 0, 2]];
const SERVER: [[u8; 4]; 2] = [[10, 85, 0, 1], [10, 85, 0, 2]];
/// Interval of the receiving server's meters, which nobody reads.
const METER_INTERVAL: Duration = Duration::from_secs(3600);
/// Addresses of the links' devices in the two namespaces.
const LINK: [[u8; 4]; 2] = [[10, 83, 0, 1], [10, 83, 0, 2]];

/// A host on a device of its own in this namespace.
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

/// The endpoint of a flow group, with the packet size of the simulation.
fn endpoint(group: &FlowGroup) -> Endpoint {
    let profile = match group.endpoint.probes {
        ProbeNegotiation::Off => Profile::Off,
        ProbeNegotiation::Paper => Profile::Paper,
        ProbeNegotiation::Negotiate => Profile::Option,
    };
    Endpoint {
        tcp: group.endpoint,
        cc: group.cc.clone(),
        profile,
        dscp: group.dscp,
        longest: Some(packet(group)),
    }
}

/// Runs the scenario until it is over or `stop` says so. With `both`, the receivers are a host of ours, too; otherwise they are
/// sockets of the kernel.
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
        let mut reporters = Reporters::default();
        for (group, port) in s.groups() {
            if let Some(config) = group.transport.rate() {
                reporters.expect(port, config, group.endpoint.header);
            }
        }
        let (done, waker) = (AtomicBool::new(false), server.waker());
        let (senders, receivers) = std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let open = Rc::new(RefCell::new(Vec::new()));
                let watched = s.watched();
                let wanted = watched.is_wanted();
                let greet = |_| Discard { open: wanted.then(|| open.clone()) };
                let serve = Serve::new(greet, METER_INTERVAL, None);
                let open = open.clone();
                let mut app = Receiving { serve, inbox, reporters, watched, open, failure: None };
                server.run(&mut app, |_, _, _| done.load(Ordering::Relaxed))?;
                match app.failure {
                    Some(e) => Err(WorldError::from(e)),
                    None => Ok(ReceiverResults {
                        inbox: app.inbox,
                        reporters: app.reporters,
                        watched: app.watched,
                    }),
                }
            });
            let senders = send(s, &mut client, &emulation, SERVER[1].into(), stop);
            done.store(true, Ordering::Relaxed);
            waker.wake();
            let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, WorldError>((senders?, served?))
        })?;
        Ok(senders.done(client.host(), &receivers).with(s, emulation.finish()?))
    } else {
        let to = LINK[1].into();
        s.client.route((IpAddr::V4(to), 32), "link", None)?;
        let receivers = Receivers::bind(s, to)?;
        let emulation = s.emulate(ends)?;
        // Our sender sees directly what is acknowledged.
        let receivers = receivers.run(false, emulation.started_at() + s.scenario.duration)?;
        let senders = send(s, &mut client, &emulation, to.into(), stop);
        let (inbox, watched) = receivers.end()?;
        let receivers = ReceiverResults { inbox, reporters: Reporters::default(), watched };
        Ok(senders?.done(client.host(), &receivers).with(s, emulation.finish()?))
    }
}

/// Listens for the connections and datagrams of all flow groups.
fn listen(s: &Setting<'_>, host: &mut Host) -> Result<(), HostError> {
    for (group, port) in s.groups() {
        match group.transport {
            Transport::Tcp => host.listen(port, endpoint(group))?,
            Transport::Udp | Transport::Tfrc(_) | Transport::Ssvp(_) => drop(host.bind(port)?),
        }
    }
    Ok(())
}

/// Results of the receivers.
struct ReceiverResults {
    inbox: Inbox,
    reporters: Reporters,
    watched: ArrivalLog,
}

/// An accepted connection, whose data is read and discarded.
struct Discard {
    /// Watched connections, among which it enters itself once; `None` afterwards, and if nothing is watched.
    open: Option<Rc<RefCell<Vec<ConnId>>>>,
}

impl ConnectionHandler for Discard {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        if let Some(open) = self.open.take() {
            open.borrow_mut().push(id);
        }
        Sink.turn(now, host, id)
    }
}

/// Reads data from connections, measures datagrams, and sends reports to rate-controlled senders.
struct Receiving<G> {
    serve: Serve<Discard, G>,
    inbox: Inbox,
    reporters: Reporters,
    watched: ArrivalLog,
    /// Watched connections: a host reports no changes of connections whose data it discards.
    open: Rc<RefCell<Vec<ConnId>>>,
    failure: Option<HostError>,
}

impl<G: FnMut(u16) -> Discard> App for Receiving<G> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while let Some(d) = host.receive() {
            self.inbox.arrived(d.at, d.from, &d.payload);
            self.reporters.arrived(d.at, d.from, d.to, &d.payload);
            self.watched.datagram(d.at, d.from, d.to.port(), &d.payload);
        }
        if let Err(e) = self.reporters.turn(now, host) {
            self.failure = Some(e);
            return AppStatus::Done;
        }
        // Summaries of ended connections are not needed.
        self.serve.take_ended();
        let turn = self.serve.turn(now, host);
        self.open.borrow_mut().retain(|id| {
            let Some(c) = host.conn(*id) else { return false };
            self.watched.in_order(now, c.remote(), c.local().port(), c.bytes_read());
            true
        });
        turn
    }
    fn next_timeout(&self) -> Instant {
        self.serve.next_timeout().min(self.reporters.next())
    }
    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.serve.stop(now, host);
    }
}

/// Runs the senders until the scenario is over or the user stops it.
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
        let transport = if let Some(config) = flow.group.transport.rate() {
            let header = flow.group.endpoint.header;
            FlowTransport::Rated(Rated::bind(client.host_mut(), ends, flow.begins(zero), &config, header)?)
        } else if flow.is_udp() {
            FlowTransport::Plain(HostTransport::datagrams(client.host_mut(), ends, endpoint.clone())?)
        } else {
            FlowTransport::Plain(HostTransport::connections(ends, endpoint.clone()))
        };
        senders.all.push(Sender { flow, session: flow.session(zero), transport, stream: None });
    }
    client.run(&mut senders, |_, _, _| stop())?;
    match senders.failure.take() {
        Some(e) => Err(e),
        None => Ok(senders),
    }
}

/// The carrier of a flow.
enum FlowTransport {
    /// Connections, or datagrams without rate control.
    Plain(HostTransport),
    /// Rate-controlled datagrams.
    Rated(Rated),
}

/// A flow.
struct Sender<'a> {
    flow: &'a Flow<'a>,
    session: Session,
    transport: FlowTransport,
    /// Source address of its connection, if it has a viewer.
    stream: Option<SocketAddr>,
}

impl Sender<'_> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Result<(), WorldError> {
        let transport = match &mut self.transport {
            FlowTransport::Plain(transport) => transport,
            FlowTransport::Rated(rated) => {
                self.session.turn(now, rated)?;
                if self.session.finished().is_some() {
                    rated.finish();
                }
                return Ok(rated.turn(now, host)?);
            }
        };
        self.session.turn(now, &mut transport.carrier(host))?;
        if let Some(f) = transport.failure(host) {
            return Err(WorldError::Failed { flow: self.flow.group.name.clone(), why: f.to_string() });
        }
        if self.stream.is_none() && self.flow.is_watched() {
            self.stream = transport.open().find_map(|id| host.conn(id)).map(|c| c.local());
        }
        transport.tend(now, host);
        transport.take_summaries();
        Ok(())
    }
    fn next(&self) -> Instant {
        self.session.next().min(match &self.transport {
            FlowTransport::Plain(transport) => transport.next(),
            FlowTransport::Rated(rated) => rated.next(),
        })
    }
    /// Measurements of its viewer from arrivals until this time.
    fn viewed(&mut self, watched: &ArrivalLog, end: Instant) -> Option<Viewed> {
        let from = match &self.transport {
            FlowTransport::Rated(rated) => Some(rated.local()),
            FlowTransport::Plain(transport) if self.flow.is_udp() => Some(transport.local()),
            FlowTransport::Plain(_) => self.stream,
        };
        let offered = match &self.transport {
            FlowTransport::Rated(rated) => rated.offered().clone(),
            FlowTransport::Plain(_) => Offered::default(),
        };
        let came = from.map_or(&[][..], |from| watched.of(from)).iter().map(|(at, arrival)| match arrival {
            Arrival::Datagram(d) => {
                (*at, Arrival::Datagram(Datagram { number: offered.in_packet(d.number), ..*d }))
            }
            other => (*at, *other),
        });
        self.session.watch(came, end)
    }
    /// The congestion window in segments, of the only connection, and the payload bytes acknowledged so far.
    fn sample(&self, host: &Host) -> (Option<f64>, u64) {
        let FlowTransport::Plain(transport) = &self.transport else { return (None, 0) };
        let mut open = transport.open().filter_map(|id| host.conn(id));
        let cwnd = match (open.next(), open.next()) {
            (Some(only), None) if !self.session.opens_many() => Some(only.snapshot().cwnd),
            _ => None,
        };
        (cwnd, transport.tally(host).acked)
    }
}

/// All flows: runs their workloads and takes samples.
struct Senders<'a> {
    s: &'a Setting<'a>,
    /// When the scenario's time began.
    zero: Instant,
    all: Vec<Sender<'a>>,
    /// When the next sample is due.
    sample_at: Instant,
    samples: Vec<Sample>,
    failure: Option<WorldError>,
    /// When the run ended.
    over: Option<Instant>,
}

impl Senders<'_> {
    /// When the scenario ends.
    fn ends_at(&self) -> Instant {
        self.zero + self.s.scenario.duration
    }
    /// Samples all TCP flows.
    fn sample(&mut self, host: &Host) {
        for (flow, sender) in (0..).zip(&self.all).filter(|(_, x)| !x.flow.is_udp()) {
            let (cwnd, acked) = sender.sample(host);
            self.samples.push(Sample { at: self.sample_at - self.zero, flow, cwnd, acked });
        }
    }
    /// The results of the flows; those of their receivers are given.
    fn done(mut self, host: &Host, receivers: &ReceiverResults) -> RunOutcome {
        let (zero, end) = (self.zero, self.over.unwrap_or_else(|| self.ends_at()).min(self.ends_at()));
        let of = |x: &mut Sender<'_>| {
            let viewed = x.viewed(&receivers.watched, end);
            let plain = FlowOutcome::of(x.flow, &x.session, zero);
            let transport = match &x.transport {
                FlowTransport::Plain(transport) => transport,
                FlowTransport::Rated(rated) => {
                    return rated_outcome(plain, rated, receivers).with_view(viewed);
                }
            };
            if x.flow.is_udp() {
                let (delays, sent) = (receivers.inbox.of(transport.local()), x.session.datagrams());
                return plain.with_datagrams(sent, delays.measured(), delays.bytes()).with_view(viewed);
            }
            let plain = plain.with_view(viewed);
            let tally = transport.tally(host);
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
        RunOutcome { took, flows: self.all.iter_mut().map(of).collect(), samples: self.samples }
    }
}

/// The results of a rate-controlled flow.
fn rated_outcome(plain: FlowOutcome, rated: &Rated, receivers: &ReceiverResults) -> FlowOutcome {
    let delays = receivers.inbox.of(rated.local());
    let receivers = receivers.reporters.of(rated.local()).unwrap_or_default();
    let (counters, state) = rated.sent();
    let rate = RateOutcome {
        allowed: state.rate * 8.0,
        reports: (receivers.reports, counters.reports),
        refused: counters.refused,
        expiries: counters.expiries,
        loss_events: receivers.loss_events,
        loss_event_rate: receivers.loss_event_rate,
    };
    let plain = plain.with_datagrams(counters.sent, delays.measured(), delays.bytes());
    FlowOutcome { rate: Some(rate), ..plain }
}

impl App for Senders<'_> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while host.next_changed().is_some() {}
        while let Some(d) = host.receive() {
            let rated = self.all.iter_mut().find_map(|x| match &mut x.transport {
                FlowTransport::Rated(rated) if rated.local() == d.to => Some(rated),
                _ => None,
            });
            if let Some(rated) = rated {
                rated.arrived(d.at, &d.payload);
            }
        }
        if self.over.is_some() {
            return AppStatus::Done;
        }
        for sender in &mut self.all {
            if let Err(e) = sender.turn(now, host) {
                self.failure = Some(e);
                return AppStatus::Done;
            }
        }
        while self.sample_at <= now && self.sample_at <= self.ends_at() {
            self.sample(host);
            self.sample_at += self.s.every;
        }
        if now < self.ends_at() {
            return AppStatus::Waiting;
        }
        self.over = Some(now);
        AppStatus::Done
    }
    fn next_timeout(&self) -> Instant {
        let flows = self.all.iter().map(Sender::next).min();
        flows.unwrap_or(Instant::MAX).min(self.sample_at).min(self.ends_at())
    }
    fn stop(&mut self, now: Instant, _host: &mut Host) {
        self.over = Some(now);
    }
}
