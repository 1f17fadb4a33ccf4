//! The kernel's transport over the emulated links.

use super::WorldError;
use super::outcome::{FlowOutcome, Outcome, RunOutcome, Sample};
use super::receivers::Receivers;
use super::setting::{Flow, Setting, packet};
use super::sockets::{ConnectionSettings, Sockets};
use crate::app::{ArrivalLog, Inbox, Session};
use crate::device::Clock;
use crate::device::netlink::{self, KernelFlow};
use crate::device::ready::Ready;
use crate::device::wait::Wait;
use crate::emulator;
use skyhaul_base::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

/// How often to check whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes that the kernel may buffer unsent for each connection: they cannot be taken back when a flow is to end.
const NOT_SENT: &str = "131072";

/// The IPv4 address of one end of the links.
fn address(client: bool) -> Ipv4Addr {
    let v4 = emulator::addresses(client).into_iter().find_map(|(a, _)| match a {
        IpAddr::V4(a) => Some(a),
        IpAddr::V6(_) => None,
    });
    v4.unwrap_or(Ipv4Addr::LOCALHOST)
}

pub(super) fn run(
    s: &Setting<'_>,
    control: &str,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let key = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = s.client.within(|| std::fs::read_to_string(key))?.unwrap_or_default();
    if !known.split_whitespace().any(|k| k == control) {
        let known = known.trim().to_owned();
        return Err(WorldError::NoSuchControl { name: control.to_owned(), known });
    }
    // A kernel without this key buffers more.
    let _ = s.client.sysctl("net/ipv4/tcp_notsent_lowat", NOT_SENT);
    let ends = s.ends()?;
    let receivers = Receivers::bind(s, address(false))?;
    let emulation = s.emulate(ends)?;
    let zero = emulation.started_at();
    let receivers = receivers.run(true, zero + s.scenario.duration)?;
    let sent = s.client.within(|| send(s, control, zero, stop));
    let received = receivers.end();
    Ok(sent??.measured(s, zero, received?).with(s, emulation.finish()?))
}

/// The sender of a flow.
struct Sender<'a> {
    flow: &'a Flow<'a>,
    session: Session,
    sockets: Sockets<'a>,
}

impl Sender<'_> {
    fn turn(&mut self, now: Instant) -> Result<(), WorldError> {
        self.session.turn(now, &mut self.sockets)?;
        match self.sockets.failure() {
            Some(e) => {
                Err(WorldError::Failed { flow: self.flow.group.name.clone(), why: crate::error::words(e) })
            }
            None => Ok(()),
        }
    }
    fn outcome(&self, zero: Instant, seen: &[KernelFlow]) -> FlowOutcome {
        let plain = FlowOutcome::of(self.flow, &self.session, zero);
        if self.flow.is_udp() {
            return plain;
        }
        let (acked, retransmissions, _) = self.sockets.counts(seen);
        FlowOutcome { acked, retransmissions, timeouts: None, ..plain }
    }
}

/// Results of the senders.
struct SenderResults {
    done: RunOutcome,
    /// The source address and the number of datagrams sent, for flows of datagrams.
    datagrams: Vec<Option<(SocketAddr, u64)>>,
    /// The workload, for its viewer, and the source address of its datagrams or of its first connection.
    watched: Vec<(Session, Option<SocketAddr>)>,
}

impl SenderResults {
    /// Adds the measurements of the receivers.
    fn measured(self, s: &Setting<'_>, zero: Instant, (inbox, watched): (Inbox, ArrivalLog)) -> RunOutcome {
        let end = zero + self.done.took.min(s.scenario.duration);
        let with =
            |((flow, datagrams), (mut session, from)): ((FlowOutcome, _), (Session, Option<SocketAddr>))| {
                let flow = match datagrams {
                    None => flow,
                    Some((from, sent)) => {
                        let delays = inbox.of(from);
                        flow.with_datagrams(sent, delays.measured(), delays.bytes())
                    }
                };
                let came = from.map_or(&[][..], |from| watched.of(from)).iter().copied();
                flow.with_view(session.watch(came, end))
            };
        let flows = self.done.flows.into_iter().zip(self.datagrams).zip(self.watched);
        RunOutcome { flows: flows.map(with).collect(), ..self.done }
    }
}

/// Runs the senders until the scenario is over or the user stops it. To be called in the senders' namespace.
fn send(
    s: &Setting<'_>,
    control: &str,
    zero: Instant,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SenderResults, WorldError> {
    let ready = Ready::new()?;
    let mut wait = Wait::on(&[&ready])?;
    let mut all = Vec::with_capacity(s.flows.len());
    for (number, flow) in (0..).zip(&s.flows) {
        let to = SocketAddrV4::new(address(false), flow.port);
        let settings = ConnectionSettings { to, control, packet: packet(flow.group) };
        let sockets = if flow.is_udp() {
            Sockets::datagrams(settings, address(true), &ready, number)?
        } else {
            Sockets::connections(settings, &ready, number)
        };
        all.push(Sender { flow, session: flow.session(zero), sockets });
    }
    let ends = zero + s.scenario.duration;
    let (mut sample_at, mut samples, mut news) = (zero, Vec::new(), Vec::new());
    let took = loop {
        ready.take(&mut news)?;
        let now = Clock::now();
        news.extend((0..).zip(&all).filter(|(_, x)| x.session.next() <= now).map(|(number, _)| number));
        news.sort_unstable();
        news.dedup();
        for number in news.drain(..) {
            if let Some(sender) = all.get_mut(number as usize) {
                sender.turn(now)?;
            }
        }
        if sample_at <= now {
            let (at, seen) = (Clock::now() - zero, netlink::kernel_flows()?);
            for (flow, x) in (0..).zip(&all).filter(|(_, x)| !x.flow.is_udp()) {
                let (acked, _, cwnd) = x.sockets.counts(&seen);
                let cwnd = cwnd.filter(|_| !x.session.opens_many());
                samples.push(Sample { at, flow, cwnd, acked });
            }
            sample_at += s.every;
        }
        if now >= ends || stop() {
            break (now - zero).min(s.scenario.duration);
        }
        let next = all.iter().map(|x| x.session.next()).min().unwrap_or(Instant::MAX);
        wait.until(next.min(sample_at).min(ends).min(now + LOOK))?;
    };
    let seen = netlink::kernel_flows()?;
    let flows = all.iter().map(|x| x.outcome(zero, &seen)).collect();
    let datagrams = all.iter().map(|x| Some((x.sockets.datagram_source()?, x.session.datagrams()))).collect();
    let from = |x: Sender<'_>| (x.session, x.sockets.datagram_source().or(x.sockets.first_source()));
    let watched = all.into_iter().map(from).collect();
    Ok(SenderResults { done: RunOutcome { took, flows, samples }, datagrams, watched })
}
