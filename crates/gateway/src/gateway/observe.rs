//! Observation of connections by operators: the log, captures, probes.

use super::{Gateway, SWEEP};
use crate::capture::{QUEUE, Request};
use crate::control::Answer;
use crate::flow::{Flow, Initiator};
use crate::log::Log;
use crate::probe::{self, Probe};
use crate::record;
use skyhaul_base::Instant;
use skyhaul_net::host::{ConnId, Host};
use skyhaul_net::tap::{Filter, Reader, Tap};

impl Gateway {
    /// Sets the log for lines about connections, in all threads.
    pub fn set_log(&mut self, log: Log) {
        if self.number == 0 {
            let log = log.clone();
            self.threads.tell(0, move |_, gateway, _| gateway.set_log(log));
        }
        self.log = Some(log);
    }

    /// Writes lines about connections that are open since the interval of the log, or since their last line. Where many connections are due
    /// at once, each sweep writes as many lines as it has to in order to keep up, and as many again: the queue of the log is bounded.
    pub(super) fn report_open(&mut self, now: Instant, host: &Host) {
        let Some((log, interval)) = self.log.as_ref().and_then(|l| Some((l, l.interval()?))) else { return };
        let sweeps = (interval.as_secs_f64() / SWEEP.as_secs_f64()).max(1.0);
        let most = (2.0 * self.flows.len() as f64 / sweeps).ceil() as usize;
        let due = |f: &&mut Box<Flow>| now >= f.reported + interval;
        for flow in self.flows.iter_mut().flatten().filter(due).take(most) {
            log.open_flow(record::flow(now, host, &self.config.class, flow, None));
            flow.reported = now;
        }
    }

    /// Begins a capture. Returns the tap for the driver, its reader, and the ends of the connection if the capture is for a single one.
    ///
    /// # Errors
    /// If there is no such connection.
    pub fn capture(
        &mut self,
        now: Instant,
        host: &mut Host,
        request: &Request,
    ) -> Result<(Tap, Reader, Option<String>), String> {
        let chosen = match request.flow {
            None => None,
            Some(number) => {
                let ours = self.chosen(host, number);
                let find = move |_, gateway: &Self, host: &Host| gateway.chosen(host, number);
                let found = ours.or_else(|| self.threads.ask(self.number, find).into_iter().flatten().next());
                Some(found.ok_or_else(|| {
                    format!("there is no connection {number}: `skyhaul gateway status --flows` lists those that are open")
                })?)
            }
        };
        let (filter, named) = chosen.map_or_else(|| (request.filter(), None), |(f, named)| (f, Some(named)));
        let (tap, reader) = Tap::new(filter, request.payload, QUEUE);
        let (other, only) = (tap.clone(), request.flow);
        self.threads.tell(self.number, move |now, gateway, host| gateway.attach(now, host, other, only));
        self.attach(now, host, tap.clone(), only);
        Ok((tap, reader, named))
    }

    /// The filter for packets of a connection of this thread over the link, and the ends of the connection as text.
    fn chosen(&self, host: &Host, number: u64) -> Option<(Filter, String)> {
        let flow = self.flows.iter().flatten().find(|f| f.number == number)?;
        let far = flow.link.id().and_then(|id| host.conn(id));
        let far = far.map(|c| (c.local(), c.remote()));
        // From the link, our end is the server's.
        let (client, server) = match (flow.from, far) {
            (Initiator::Hosts, Some((local, remote))) => (local, remote),
            (Initiator::Link, Some((local, remote))) => (remote, local),
            (_, None) => (flow.client, flow.server),
        };
        let filter = Filter { client: client.into(), server: server.into() };
        Some((filter, format!("{} {}", flow.client, flow.server)))
    }

    /// Traces the connections of this thread for a capture. With `only`, the capture is limited to the connection of this number.
    fn attach(&mut self, now: Instant, host: &mut Host, tap: Tap, only: Option<u64>) {
        self.tap = Some((tap, only));
        let flows = self.flows.iter().flatten();
        let open: Vec<(u64, ConnId)> = flows.filter_map(|f| Some((f.number, f.link.id()?))).collect();
        for (number, id) in open {
            self.trace(now, host, number, id);
        }
    }

    /// Traces a connection over the link if it is to be captured.
    pub(super) fn trace(&mut self, now: Instant, host: &mut Host, number: u64, id: ConnId) {
        let Some((tap, only)) = &self.tap else { return };
        if !tap.is_read() {
            self.tap = None;
            return;
        }
        let Some(conn) = host.conn(id) else { return };
        let ends = (conn.local(), conn.remote());
        let (client, server) = if conn.accepted_at().is_some() { (ends.1, ends.0) } else { ends };
        if only.is_none_or(|only| only == number) && tap.filter().matches(client, server) {
            host.trace(now, id, tap.clone(), number);
        }
    }

    /// Opens a probe connection; the result goes to `answer`.
    pub fn probe(
        &mut self,
        now: Instant,
        host: &mut Host,
        target: probe::Target,
        answer: std::sync::mpsc::Sender<Answer>,
    ) {
        let owner = host.config().owner(target.from, target.to);
        if target.from.port() != 0 && owner != self.number {
            self.threads
                .post(owner, Box::new(move |now, gateway, host| gateway.probe(now, host, target, answer)));
            return;
        }
        if self.probe.is_some() {
            let _ = answer.send("another probe is under way: try again in a few seconds\n".to_owned().into());
            return;
        }
        match host.connect(now, target.from, target.to, &self.config.endpoint) {
            Ok(id) => self.probe = Some(Probe::new(now, id, answer)),
            Err(e) => drop(answer.send(format!("{e}\n").into())),
        }
    }
}
