//! All connections of a gateway. [`Gateway`] is an application on the gateway's own host, the TCP endpoint in user space that carries the
//! connections over the link. "Hosts" in the plural are the machines on the terrestrial side.

mod contain;
mod observe;
mod open;
mod threads;

use crate::cause::Cause;
use crate::classes;
use crate::config::Config;
use crate::error::GatewayError;
use crate::evidence;
use crate::flow::{Flow, Initiator, LinkLeg, State};
use crate::log::{Level, Log};
use crate::near;
use crate::peer::Peers;
use crate::policy::EndpointPolicy;
use crate::poll::{Poll, Readiness};
use crate::prefixes::{Prefixes, Sample};
use crate::priority;
use crate::probe::Probe;
use crate::proof::Proof;
use crate::record::{self, Kernel};
use crate::repair;
use crate::rules::{Ends, Ports};
use crate::status::{Counts, FlowStatus, Status};
use crate::watch::Rules;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, AppStatus};
use skyhaul_net::host::exchange::Exchange;
use skyhaul_net::host::{Admission, Conn, ConnId, Host, HostConfig, Secret, Share, Transparent};
use skyhaul_net::ipv6;
use skyhaul_net::tap::Tap;
use skyhaul_net::wait::Waker;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use threads::{Task, ThreadGroup};

/// The number under which all listeners are registered for readiness events.
const LISTENERS: u64 = 0;
/// The number under which the first flow is registered; the others follow.
const FLOWS: u64 = 1;
/// Interval between checks for flows without progress.
const SWEEP: Duration = Duration::from_secs(1);
/// Interval between checks whether connections of any thread are open, while the gateway stops.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Maximum number of flows in a status.
const MOST_LISTED: usize = 1000;

/// A listening kernel socket.
#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    /// The server behind the link; `None`: the original destination of each connection.
    to: Option<SocketAddr>,
}

/// All connections of a gateway, or those of one of its threads.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    /// The number of this thread, from 0.
    number: usize,
    threads: Arc<ThreadGroup>,
    tasks: Receiver<Task>,
    poll: Poll,
    listeners: Vec<Listener>,
    ports: Ports,
    flows: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
    by_conn: BTreeMap<ConnId, u32>,
    /// Flows that wait for the first bytes of their clients: when the wait ends, the number of the flow, and when the flow began.
    opening: VecDeque<(Instant, u32, Instant)>,
    policy: EndpointPolicy,
    /// The flow that is worked on, which is given up if the work panics.
    at_work: Option<u32>,
    /// Number of panics that were reported in the log.
    reported_defects: u64,
    /// Flows to process in this turn.
    scheduled: Vec<u32>,
    /// Memory for events of `poll`.
    ready: Vec<Readiness>,
    /// Memory for bytes that are only passing through.
    spare: RefCell<Vec<u8>>,
    counts: Counts,
    prefixes: Prefixes,
    /// Where its metrics are served.
    pub(crate) metrics_at: Option<SocketAddr>,
    began: Instant,
    /// When flows without progress were last looked for.
    swept: Instant,
    last_turn: Instant,
    /// Number of other threads that have answered [`Self::all_run`], while an answer is awaited.
    signs: Option<Arc<AtomicUsize>>,
    /// When the gateway accepts connections again without an event: a listener may have more of them.
    accept_at: Instant,
    /// When the gateway ends at the latest, after a request to stop.
    ends_at: Option<Instant>,
    log: Option<Log>,
    kernel: Kernel,
    /// A capture of packets and events, and the number of the connection that it is limited to, if any.
    tap: Option<(Tap, Option<u64>)>,
    probe: Option<Probe>,
    /// Observations of connections, if there are any.
    evidence: Option<evidence::Results>,
    /// The history of the nftables rules that lead packets to the gateway.
    pub(crate) rules: Rules,
    /// Whether connections of hosts reach the gateway, if any are intercepted.
    pub(crate) proof: Option<Proof>,
    /// The state of the repair of datagrams, if there is any.
    pub(crate) repair: Option<repair::View>,
    /// A descriptor for a connection that is to be refused when no other is left.
    reserve: Option<File>,
}

impl Gateway {
    /// The parts of a gateway without connections, one for each thread. The first one has the listeners.
    ///
    /// # Errors
    /// If the system refuses a listener.
    pub fn all(now: Instant, config: &Config) -> Result<Vec<Self>, GatewayError> {
        let (threads, tasks) = ThreadGroup::new(config.limits.threads);
        let poll = Poll::new()?;
        let mut listeners = Vec::new();
        if config.terrestrial.is_some() {
            listeners.push(Listener { socket: near::listen(false)?, to: None });
            if ipv6::is_on() {
                listeners.push(Listener { socket: near::listen(true)?, to: None });
            }
        }
        for f in &config.forward {
            listeners.push(Listener { socket: near::listen_at(f.listen)?, to: Some(f.to.into()) });
        }
        for listener in &listeners {
            poll.watch(&listener.socket, LISTENERS)?;
        }
        let port = |v6: bool| {
            let open = listeners.iter().filter(|l| l.to.is_none());
            let mut open = open.filter_map(|l| l.socket.local_addr().ok()).filter(|a| a.is_ipv6() == v6);
            open.next().map_or(0, |a| a.port())
        };
        let ports = Ports { v4: port(false), v6: port(true) };
        let mut first = Some((poll, listeners));
        let parts = tasks.into_iter().enumerate().map(|(number, tasks)| {
            let (poll, listeners) = match first.take() {
                Some(both) => both,
                None => (Poll::new()?, Vec::new()),
            };
            Ok(Self::new(now, config, (number, threads.clone(), tasks), poll, (listeners, ports)))
        });
        parts.collect()
    }

    fn new(
        now: Instant,
        config: &Config,
        (number, threads, tasks): (usize, Arc<ThreadGroup>, Receiver<Task>),
        poll: Poll,
        (listeners, ports): (Vec<Listener>, Ports),
    ) -> Self {
        Self {
            config: config.clone(),
            number,
            threads,
            tasks,
            poll,
            listeners,
            ports,
            flows: Vec::new(),
            free: Vec::new(),
            by_conn: BTreeMap::new(),
            opening: VecDeque::new(),
            policy: EndpointPolicy::new(config),
            at_work: None,
            reported_defects: 0,
            scheduled: Vec::new(),
            ready: Vec::new(),
            spare: RefCell::default(),
            counts: Counts::default(),
            prefixes: Prefixes::new(&config.metrics),
            metrics_at: None,
            began: now,
            swept: now,
            last_turn: now,
            signs: None,
            accept_at: Instant::MAX,
            ends_at: None,
            log: None,
            kernel: Kernel::default(),
            tap: None,
            probe: None,
            evidence: None,
            rules: Rules::default(),
            proof: None,
            repair: None,
            reserve: File::open("/dev/null").ok(),
        }
    }

    /// The hosts that carry its connections over the link, one for each thread.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn hosts(config: &Config) -> Result<Vec<Host>, GatewayError> {
        let secret = Secret::draw().map_err(GatewayError::os("draw random numbers"))?;
        // With an address of its own, a host takes what arrives for that address itself.
        let own = config.forwards_ports().then_some(config.slot.host_address().into());
        let mut host = HostConfig::new(own.into_iter().collect(), secret);
        host.transparent = true;
        // Drawn at each start, so that peers forget their windows when the gateway restarts.
        host.gateway = NonZeroU32::new(RandomState::new().build_hasher().finish() as u32);
        host.by_client = true;
        host.schedule = config.schedule();
        host.early = (!config.satellite.early_data.0.is_zero()).then(Arc::default);
        host.mtu = config.satellite.mtu.into();
        host.search_mtu = config.satellite.searches_mtu();
        host.memory = config.limits.memory.0;
        // A quarter more: the rules that stop interception take effect a little after `limits.flows` is reached.
        host.most = config.limits.flows + config.limits.flows / 4;
        host.backlog = config.limits.flows.min(4096);
        (host.account, host.paths) = (Some(Arc::default()), Some(Arc::default()));
        let of = config.limits.threads;
        let each = |all: usize| all.div_ceil(of);
        (host.backlog, host.most_waiting) = (each(host.backlog), each(host.most_waiting));
        host.syn_acks = each(host.syn_acks as usize) as u32;
        let part = |number| {
            let seed = host.seed + number as u64;
            let mut host = Host::new(HostConfig { share: Share { number, of }, seed, ..host.clone() });
            host.listen_elsewhere(Some((config.endpoint.clone(), Admission::WhenAdmitted)));
            host.offer(EndpointPolicy::new(config).others());
            host
        };
        Ok((0..of).map(part).collect())
    }

    /// Sets how packets that arrive at the queue of one thread pass to the thread that has their connection.
    pub(crate) fn set_exchange(&self, exchange: Arc<Exchange>) {
        self.threads.set_exchange(exchange);
    }
    /// Sets how other threads wake this one when they have a task for it.
    pub(crate) fn set_waker(&self, waker: Waker) {
        self.threads.set_waker(self.number, waker);
    }
    /// Whether all threads run. The first call asks the other threads. A later call is true once each of them has had a turn since then, and
    /// the call after it asks again. Threads that answer wake the first one, which alone may call this.
    pub fn all_run(&mut self) -> bool {
        let threads = self.threads.clone();
        let signs = self.signs.get_or_insert_with(|| {
            let signs = Arc::new(AtomicUsize::new(0));
            let count = signs.clone();
            threads.tell(self.number, move |_, gateway, _| {
                count.fetch_add(1, Ordering::Relaxed);
                gateway.threads.wake(0);
            });
            signs
        });
        let all = signs.load(Ordering::Relaxed) + 1 >= threads.size();
        if all {
            self.signs = None;
        }
        all
    }
    /// Makes the gateway end at this time at the latest.
    pub(crate) fn end_at(&mut self, at: Instant) {
        self.ends_at = Some(self.ends_at.map_or(at, |ends| ends.min(at)));
    }

    /// Switches to another configuration, for which [`Config::needs_restart`] returns `None`. Existing connections stay
    /// unchanged.
    pub fn reconfigure(&mut self, config: &Config, host: &mut Host) {
        if self.number == 0 {
            let config = config.clone();
            self.threads.tell(0, move |_, gateway, host| gateway.reconfigure(&config, host));
        }
        self.config = config.clone();
        if let Some(evidence) = &self.evidence {
            evidence.reconfigure(config);
        }
        self.policy.reconfigure(config);
        host.offer(self.policy.others());
        if self.ends_at.is_none() {
            host.listen_elsewhere(Some((config.endpoint.clone(), Admission::WhenAdmitted)));
        }
    }

    /// Reports to `results` which of the observed connections are split.
    pub(crate) fn observed_by(&mut self, results: evidence::Results) {
        self.evidence = Some(results);
    }
    /// Sends low-priority packets only on paths that `trust` allows.
    pub(crate) fn test_with(&mut self, trust: priority::Trust) {
        self.policy.test_with(trust);
    }

    /// The descriptor that is readable when a terrestrial socket has an event.
    #[must_use]
    pub fn descriptor(&self) -> &impl AsFd {
        self.poll.descriptor()
    }
    /// The ports of the listeners for intercepted connections; 0 without one.
    #[must_use]
    pub fn ports(&self) -> Ports {
        self.ports
    }
    /// Whether the gateway takes new connections: it has room, and does not stop.
    #[must_use]
    pub fn admits(&self) -> bool {
        !self.is_full() && self.ends_at.is_none()
    }
    /// The ends of all connections over the link, of all threads. Only the first thread may ask for them.
    pub(crate) fn ends(&self, host: &Host) -> Vec<Ends> {
        let mut all = self.own_ends(host);
        all.extend(
            self.threads.ask(self.number, |_, gateway, host| gateway.own_ends(host)).into_iter().flatten(),
        );
        all
    }
    fn own_ends(&self, host: &Host) -> Vec<Ends> {
        let ends = |f: &Flow| {
            let far = host.conn(f.link.id()?).map(|far| (far.local(), far.remote()));
            far.or(matches!(f.link, LinkLeg::Requested(_)).then_some((f.server, f.client)))
        };
        self.flows.iter().flatten().filter_map(|f| ends(f)).collect()
    }
    /// The number of connections that were refused because no descriptor was left.
    pub(crate) fn turned_away(&self) -> u64 {
        self.threads.turned_away.load(Ordering::Relaxed)
    }
    /// State and counters of all threads, with the connections if `list`. Only the first thread may ask for it.
    #[must_use]
    pub fn status(&self, now: Instant, host: &Host, list: bool) -> Status {
        let mut status = self.part(now, host, list);
        for other in self.threads.ask(self.number, move |now, gateway, host| gateway.part(now, host, list)) {
            status.add(other, MOST_LISTED);
        }
        status.queues_full = self.threads.queues_full();
        status
    }
    /// The state and counters of this thread alone, as [`Self::status`] has them for all threads.
    pub(crate) fn part(&self, now: Instant, host: &Host, list: bool) -> Status {
        let flows = self.flows.iter().flatten().take(if list { MOST_LISTED } else { 0 });
        Status {
            name: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            hosts: self.config.host_interfaces().to_vec(),
            link: self.config.satellite.interface.clone(),
            uptime: (now - self.began).as_secs_f64(),
            admits: self.admits()
                && self.config.evidence.mode != evidence::Mode::Shadow
                && !self.rules.are_lost()
                && self.proof.as_ref().is_none_or(Proof::admits),
            metrics: self.metrics_at,
            rules: self.rules.status(now),
            proof: self.proof.as_ref().map(|p| p.status(now)),
            turned_away: self.turned_away(),
            flows: self.len(),
            peers: self.threads.peers().len(),
            memory: host.memory().held,
            paths_narrowed: host.counts().paths_narrowed,
            queues_full: 0,
            lines_lost: self.log.as_ref().map_or(0, Log::lost),
            probes_dropped: host.counts().probes_dropped,
            classes: classes::status(&self.config.class, &host.sent_by_class()),
            held_subscribers: host.held_subscribers(),
            counts: Counts { defects: self.defects(host), ..self.counts },
            prefixes: self.prefixes.status(now, self.samples(host)),
            list: flows.map(|f| Self::row(now, f, host)).collect(),
            evidence: self.evidence.as_ref().map(|e| e.report(false)),
            priority: self.policy.trust().map(|t| t.status(now)),
            repair: self.repair.as_ref().map(repair::View::status),
        }
    }

    /// The counters of each open connection so far, with the address of its end behind the link.
    fn samples(&self, host: &Host) -> impl Iterator<Item = (IpAddr, Sample)> {
        self.flows.iter().flatten().map(|f| (f.behind(), Self::sample(f, host)))
    }
    fn sample(f: &Flow, host: &Host) -> Sample {
        let passed = f.passed();
        let far = f.link.id().and_then(|id| host.conn(id));
        let counters = far.map(Conn::counters).unwrap_or_default();
        Sample {
            to_link: passed.to_link,
            to_hosts: passed.to_hosts,
            segments: counters.segments_sent,
            retransmitted: counters.retransmissions,
            timeouts: counters.timeouts,
            srtt: far.and_then(|c| c.snapshot().srtt),
        }
    }

    fn row(now: Instant, f: &Flow, host: &Host) -> FlowStatus {
        let passed = f.passed();
        let far = f.link.id().and_then(|id| host.conn(id));
        let snapshot = far.map(Conn::snapshot);
        let counters = far.map(Conn::counters).unwrap_or_default();
        FlowStatus {
            number: f.number,
            from: f.from,
            client: f.client,
            server: f.server,
            age: (now - f.began).as_secs_f64(),
            to_link: passed.to_link,
            to_hosts: passed.to_hosts,
            waiting: passed.waiting,
            cwnd: snapshot.as_ref().map_or(0.0, |s| s.cwnd),
            srtt: snapshot.and_then(|s| s.srtt).map_or(0.0, Duration::as_secs_f64),
            segments: counters.segments_sent,
            retransmitted: counters.retransmissions,
            timeouts: counters.timeouts,
            recoveries: counters.recoveries,
        }
    }

    /// Whether there is no room for more connections.
    fn is_full(&self) -> bool {
        self.threads.full.load(Ordering::Relaxed)
    }
    fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    fn flow(&mut self, number: u32) -> Option<&mut Flow> {
        self.flows.get_mut(number as usize)?.as_deref_mut()
    }
    fn schedule(&mut self, number: u32) {
        if let Some(flow) = self.flow(number).filter(|f| !f.scheduled) {
            flow.scheduled = true;
            self.scheduled.push(number);
        }
    }

    fn handle_readiness(&mut self, now: Instant, host: &mut Host) {
        let mut ready = core::mem::take(&mut self.ready);
        let _ = self.poll.take(&mut ready);
        let mut accepts = now >= self.accept_at;
        for h in ready.drain(..) {
            let Some(number) = h.number.checked_sub(FLOWS) else {
                accepts = true;
                continue;
            };
            let number = number as u32;
            self.contain(now, host, Some(number), |gateway, host| {
                let Some(flow) = gateway.flow(number) else { return };
                let requested = matches!(flow.link, LinkLeg::Requested(_));
                let near = &mut flow.near;
                let connecting = near.is_connecting();
                near.wake(h.readable, h.writable);
                let answered = near.has_failed() || (connecting && !near.is_connecting());
                if requested && answered {
                    gateway.answered(now, host, number);
                }
                gateway.schedule(number);
            });
        }
        self.ready = ready;
        if accepts {
            self.accept(now, host);
        }
    }

    fn news(&mut self, now: Instant, host: &mut Host) {
        while let Some(id) = host.next_changed() {
            let number = self.by_conn.get(&id).copied();
            self.contain(now, host, number, |gateway, host| gateway.news_of(now, host, id));
        }
    }
    fn news_of(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        let number = self.by_conn.get(&id).copied();
        let flow = number.and_then(|number| self.flow(number));
        if let Some(flow) = flow.filter(|f| f.link == LinkLeg::Requested(id)) {
            flow.link = LinkLeg::Opening(id);
            let flow_number = flow.number;
            self.counts.early_received += u64::from(host.conn(id).is_some_and(|c| c.early().taken > 0));
            self.trace(now, host, flow_number, id);
        }
        match number {
            Some(number) => self.schedule(number),
            None if self.probe.as_ref().is_some_and(|p| p.id == id) => {}
            // The terrestrial leg ended during the handshake over the link.
            None => {
                host.abort(now, id);
                host.release(now, id);
            }
        }
    }

    /// Resets connections of hosts whose legs over the link have had no answer: their SYNs may be dropped, and the clients would wait for
    /// servers that have not heard of them. Connections that the clients open again are forwarded.
    pub(crate) fn give_up_unanswered(&mut self) {
        if self.number == 0 {
            self.threads.tell(0, |_, gateway, _| gateway.give_up_unanswered());
        }
        for number in 0..self.flows.len() as u32 {
            let unanswered =
                |f: &&mut Flow| f.from == Initiator::Hosts && matches!(f.link, LinkLeg::Opening(_));
            if let Some(flow) = self.flow(number).filter(|f| unanswered(f)) {
                flow.near.give_up();
                self.schedule(number);
            }
        }
    }

    /// Ends flows whose clients gave up before the connection over the link was established.
    fn withdrawn(&mut self, now: Instant, host: &mut Host) {
        while let Some(id) = host.next_withdrawn() {
            if let Some(number) = self.by_conn.get(&id).copied() {
                self.contain(now, host, Some(number), |gateway, host| {
                    gateway.end(now, host, number, Cause::Withdrawn);
                });
            }
        }
    }

    fn pump(&mut self, now: Instant, host: &mut Host) {
        for number in core::mem::take(&mut self.scheduled) {
            self.contain(now, host, Some(number), |gateway, host| gateway.pump_flow(now, host, number));
        }
    }
    fn pump_flow(&mut self, now: Instant, host: &mut Host, number: u32) {
        let Some(flow) = self.flow(number) else { return };
        flow.scheduled = false;
        if flow.may_open() {
            self.open(now, host, number);
        }
        let Some(flow) = self.flows.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        let far = flow.link.id().and_then(|id| host.conn(id));
        let opened = far.is_some_and(Conn::is_connected);
        if let (true, LinkLeg::Opening(id)) = (opened, flow.link) {
            flow.link = LinkLeg::Established(id);
            flow.gateway = far.and_then(Conn::peer_gateway).or(flow.gateway);
            if let Some(gateway) = flow.gateway {
                self.threads.peers().meet(now, gateway, flow.behind());
                if let Some(trust) = self.policy.trust() {
                    trust.meet(now, gateway, flow.behind());
                }
                if let Some(far) = far {
                    Self::note_early(&mut self.threads.peers(), &mut self.counts, now, gateway, far);
                }
            }
        }
        match flow.pump(now, host, &self.spare) {
            State::Open => {}
            State::Finished => self.end(now, host, number, Cause::Finished),
            State::Aborted => {
                self.counts.refused += u64::from(!opened);
                let failure = flow.link.id().and_then(|id| host.conn(id)?.failure());
                let cause = Cause::of(failure, opened, flow.from == Initiator::Link);
                self.end(now, host, number, cause);
            }
        }
    }

    /// Records what the handshake of a connection has shown about data in SYNs.
    fn note_early(peers: &mut Peers, counts: &mut Counts, now: Instant, gateway: NonZeroU32, far: &Conn) {
        let early = far.early();
        if let Some(cookie) = far.peer_cookie() {
            peers.keep(now, gateway, far.local().ip(), cookie);
        }
        counts.early_sent += u64::from(early.sent > 0);
        counts.early_taken += u64::from(early.sent > 0 && early.taken > 0);
        peers.answered(now, gateway, early);
    }

    fn end(&mut self, now: Instant, host: &mut Host, number: u32, cause: Cause) {
        let Some(mut flow) = self.flows.get_mut(number as usize).and_then(Option::take) else { return };
        // First what other flows and threads depend on, in case a later step panics.
        self.free.push(number);
        self.threads.flows.fetch_sub(1, Ordering::Relaxed);
        if let Some(id) = flow.link.id() {
            self.by_conn.remove(&id);
        }
        let in_order = cause.in_order();
        let level = if cause.is_fault() { Level::Warning } else { Level::Info };
        if let Some(log) = self.log.as_ref().filter(|l| l.wants_flows(level)) {
            log.flow(level, record::flow(now, host, &self.config.class, &mut flow, Some(cause)));
        }
        if let (true, Some(gateway)) = (flow.link.is_established(), flow.gateway) {
            let mut peers = self.threads.peers();
            Self::learn(&mut peers, now, host, &flow);
            peers.leave(gateway);
        }
        self.prefixes.ends(flow.behind(), Self::sample(&flow, host));
        let passed = flow.passed();
        self.counts.bytes_to_link += passed.to_link;
        self.counts.bytes_to_hosts += passed.to_hosts;
        self.counts.bytes_lost += passed.lost;
        *if in_order { &mut self.counts.finished } else { &mut self.counts.aborted } += 1;
        if let LinkLeg::Requested(id) = flow.link {
            host.refuse(id);
        }
        flow.close(now, host, in_order);
    }

    /// Records the window that a connection has used to the gateway at its other end.
    fn learn(peers: &mut Peers, now: Instant, host: &Host, flow: &Flow) {
        let (Some(gateway), Some(far)) = (flow.gateway, flow.link.id().and_then(|id| host.conn(id))) else {
            return;
        };
        let window = far.snapshot().cwnd;
        let sent = flow.passed().to_link as f64 / f64::from(far.segment_size().max(1));
        // At most half of the data sent: a window that was never filled proves nothing.
        peers.learn(now, gateway, window.min(sent / 2.0));
    }

    /// Ends flows without progress, and records windows and totals of open ones.
    fn sweep(&mut self, now: Instant, host: &mut Host) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        let (stuck, idle) = (self.config.limits.stuck.0, self.config.limits.idle.0);
        for flow in self.flows.iter().flatten().filter(|f| f.link.is_established()) {
            Self::learn(&mut self.threads.peers(), now, host, flow);
        }
        let mut prefixes = std::mem::take(&mut self.prefixes);
        prefixes.sweep(now, self.samples(host));
        self.prefixes = prefixes;
        self.flows.iter_mut().flatten().for_each(|f| f.near.keep_alive());
        self.report_open(now, host);
        for number in 0..self.flows.len() as u32 {
            let over = self.flow(number).filter(|f| f.is_stuck(now, stuck, idle));
            if let Some(waits) = over.map(|f| f.passed().waiting > 0) {
                self.counts.stuck += 1;
                let cause = if waits { Cause::Stuck } else { Cause::Idle };
                self.contain(now, host, Some(number), |gateway, host| gateway.end(now, host, number, cause));
            }
        }
    }
}

impl App for Gateway {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        self.last_turn = now;
        while let Ok(task) = self.tasks.try_recv() {
            self.contain(now, host, None, |gateway, host| task(now, gateway, host));
        }
        self.handle_readiness(now, host);
        // Before new requests, since the same addresses and ports may be requested again.
        self.withdrawn(now, host);
        while let Some(asked) = host.next_asked() {
            self.contain(now, host, None, |gateway, host| gateway.open_to_host(now, host, asked));
        }
        self.news(now, host);
        if self.probe.as_ref().is_some_and(|p| p.is_over(now, host)) {
            self.probe = None;
        }
        self.open_late(now, host);
        self.pump(now, host);
        self.sweep(now, host);
        self.report_defects(host);
        // A gateway that was full takes new connections again when a tenth of the room is free.
        let most = self.config.limits.flows;
        let open = self.threads.flows.load(Ordering::Relaxed);
        let full = open >= if self.is_full() { most - most / 10 } else { most };
        if full != self.is_full() {
            if self.number == 0 {
                self.counts.overloads += u64::from(full);
                self.threads.full.store(full, Ordering::Relaxed);
            } else {
                // The first thread alone sets the flag, and then has the rules changed.
                self.threads.wake(0);
            }
        }
        match self.ends_at {
            Some(at) if open == 0 || now >= at => {
                for number in 0..self.flows.len() {
                    self.end(now, host, number as u32, Cause::Stopped);
                }
                AppStatus::Done
            }
            _ => AppStatus::Waiting,
        }
    }
    fn next_timeout(&self) -> Instant {
        let sweep = if self.len() > 0 { self.swept + SWEEP } else { Instant::MAX };
        let scheduled = if self.scheduled.is_empty() { Instant::MAX } else { Instant::ZERO };
        let probe = self.probe.as_ref().map_or(Instant::MAX, Probe::ends);
        let opening = self.opening.front().map_or(Instant::MAX, |(until, ..)| *until);
        let others = if self.ends_at.is_some() && self.threads.size() > 1 {
            self.last_turn + STOP_CHECK
        } else {
            Instant::MAX
        };
        self.ends_at
            .unwrap_or(Instant::MAX)
            .min(others)
            .min(probe)
            .min(sweep)
            .min(self.accept_at)
            .min(scheduled)
            .min(opening)
    }
    fn stop(&mut self, now: Instant, host: &mut Host) {
        if self.number == 0 {
            self.threads.tell(0, |now, gateway, host| gateway.stop(now, host));
        }
        self.ends_at = Some(now + self.config.limits.drain.0);
        // New connections to forwarded ports are refused instead of waiting.
        self.listeners.retain(|l| l.to.is_none());
        host.listen_elsewhere(None);
    }
}
