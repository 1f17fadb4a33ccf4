//! `skyhaul wire serve`.

use super::datagrams;
use super::document::{Document, RunFacts};
use super::exporter::Exporter;
use super::settings::{Stack, default_keepalive};
use super::show::{self, ConnectionReport, StackTotals};
use crate::args::{Mode, ServeArgs};
use crate::interrupt;
use crate::printer::Printer;
use crate::stop::Stop;
use serde_json::Value;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{ConnectionHandler, Datagrams, Http, Interval, Iperf, Meter, Serve, Sink, Tested};
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{ConnId, Host};
use skyhaul_net::{Clock, NetError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest age of the counters in a document: reading them visits every connection.
const MAX_COUNTER_AGE: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ServeArgs) -> Result<(), Stop> {
    let mut stack = Stack::read(&args.stack)?;
    let idle = args.idle.0;
    default_keepalive(&mut stack.endpoint, idle, &args.stack.set);
    let mut driver = stack.open()?;
    let metrics = Exporter::begin(args.stack.metrics, &driver)?;
    driver.host_mut().listen(args.port, stack.endpoint.clone()).map_err(Stop::bad)?;
    let interface = driver.tun().name().to_owned();
    let waker = driver.waker();
    let printer = Printer::begin(move || waker.wake())?;
    if !args.stack.json {
        let at: Vec<String> = stack
            .host
            .addresses
            .iter()
            .map(|a| std::net::SocketAddr::new(*a, args.port).to_string())
            .collect();
        printer.say(format!("listening at {} ({interface})\n", at.join(" and ")));
    }
    let mut output = ServerOutput {
        args,
        stack: &stack,
        interface,
        refused: driver.refusals(),
        cpu: Clock::thread_cpu(),
        numbers: BTreeMap::new(),
        count: 0,
        bytes: 0,
        next: Instant::ZERO,
        began: Clock::wall_nanos(),
        counters: (Instant::ZERO, Value::Null),
        header: None,
        rtt: Duration::ZERO,
        printer,
    };
    let limit = args.once.then_some(1);
    let ran = match args.mode {
        Mode::Sink => {
            serve(&mut driver, Serve::new(|_| Sink, stack.every, limit).idle(idle), &mut output, &metrics)
        }
        Mode::Http => serve(
            &mut driver,
            Serve::new(|_| Http::new(idle), stack.every, limit).idle(idle).sending(),
            &mut output,
            &metrics,
        ),
        Mode::Iperf3 => {
            driver.host_mut().bind(args.port).map_err(Stop::bad)?;
            let mut app = Iperf::new(stack.endpoint.cc.name().into(), stack.every, limit);
            driver.run(&mut app, |now, app, host| {
                metrics.answer(host);
                if output.is_due(now) {
                    output.rows_of_test(app.open());
                }
                for why in app.take_refused() {
                    output.printer.warn(format!("a test was refused: {why}"));
                }
                for tested in app.take_tested() {
                    output.tested(tested, host);
                }
                output.should_stop(host)
            })
        }
    };
    let ran = ran.map_err(Stop::bad).and_then(|()| metrics.linger(&mut driver, output.rtt));
    let captured = stack.close(&mut driver);
    let last = if args.stack.json {
        String::new()
    } else {
        StackTotals::new(driver.host(), driver.refused(), driver.tun().name(), driver.cpu())
            .line(output.bytes)
    };
    output.printer.finish(last)?;
    captured?;
    // Without --once, Ctrl-C and SIGTERM are the only ends of a server, and no failure.
    ran
}

/// Serves connections until the end, and prints their rows and results.
fn serve<T: ConnectionHandler, G: FnMut(u16) -> T>(
    driver: &mut Driver,
    mut app: Serve<T, G>,
    output: &mut ServerOutput<'_>,
    metrics: &Exporter,
) -> Result<(), NetError> {
    let sending = output.args.mode == Mode::Http;
    driver.run(&mut app, |now, app, host| {
        metrics.answer(host);
        if output.is_due(now) {
            app.tell_fresh(|id, meter| {
                let number = output.number(id);
                output.rows(number, meter.news(), sending);
            });
        }
        for ended in app.take_ended() {
            let number = output.number(ended.id);
            output.numbers.remove(&ended.id);
            let mut meter = ended.meter;
            output.rows(number, meter.news(), sending);
            let reports = ConnectionReport { number, sending, meter, account: ended.account };
            output.ended(vec![reports], host, sending);
        }
        output.should_stop(host)
    })
}

/// The output of a server so far.
struct ServerOutput<'a> {
    args: &'a ServeArgs,
    stack: &'a Stack,
    interface: String,
    /// Packets that the interface refused, counted by the driver.
    refused: Arc<AtomicU64>,
    /// Processor time at the end of the last connection; idle waiting costs none.
    cpu: Duration,
    /// Numbers of the open connections, from 1 in the order in which they were first printed.
    numbers: BTreeMap<ConnId, u32>,
    /// The last number given.
    count: u32,
    /// Payload of all connections and datagrams that have ended.
    bytes: u64,
    /// When rows are due next.
    next: Instant,
    /// Time of day at the start, or when the last connection ended; ns since 1970.
    began: u64,
    /// Time of the next update of the counters of the stack, and the counters.
    counters: (Instant, Value),
    /// Whether the last header printed was that of a sender; `None` before the first header.
    header: Option<bool>,
    /// The longest smoothed RTT of a connection that has ended.
    rtt: Duration,
    printer: Printer,
}

impl ServerOutput<'_> {
    /// Whether it is time to print rows; a few times per interval is enough.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next && !self.args.stack.json;
        if due {
            self.next = now + self.stack.every / 8;
        }
        due
    }
    /// The number of a connection; an unknown connection gets the next number.
    fn number(&mut self, id: ConnId) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.count += 1;
            self.count
        })
    }
    /// Prints intervals of a connection as rows, below a header of the same direction.
    fn rows(&mut self, number: u32, intervals: &[Interval], sending: bool) {
        if self.args.stack.json || intervals.is_empty() {
            return;
        }
        let mut text = if self.header == Some(sending) { String::new() } else { show::head(sending) };
        self.header = Some(sending);
        for i in intervals {
            text.push_str(&show::row(Some(number), i, sending));
        }
        self.printer.say(text);
    }
    /// Rows of the connections of a running test of iperf3.
    fn rows_of_test<'m>(&mut self, meters: impl Iterator<Item = &'m mut Meter>) {
        for (number, meter) in (1..).zip(meters) {
            let sending = !meter.is_receiving();
            self.rows(number, meter.news(), sending);
        }
    }
    /// Results of a completed test of iperf3; a bidirectional test is reported per direction.
    fn tested(&mut self, tested: Tested, host: &Host) {
        for sends in [false, true] {
            let connections = (1..).zip(&tested.connections).filter(|(_, c)| c.sends == sends);
            let reports = connections.map(|(number, c)| {
                let (meter, account) = (c.meter.clone(), c.account.clone());
                ConnectionReport { number, sending: sends, meter, account }
            });
            let mut reports: Vec<ConnectionReport> = reports.collect();
            for t in &mut reports {
                let news = t.meter.news().to_vec();
                self.rows(t.number, &news, sends);
            }
            if !reports.is_empty() {
                self.ended(reports, host, sends);
            }
            let streams: Vec<(u32, &Datagrams)> =
                (1..).zip(&tested.datagrams).filter(|(_, d)| d.sends == sends).collect();
            if !streams.is_empty() {
                self.bytes += streams.iter().map(|(_, d)| d.bytes).sum::<u64>();
                let json = self.args.stack.json;
                let text = if json { datagrams::json(&streams) } else { datagrams::text(&streams) };
                self.printer.say(text);
            }
        }
    }
    /// Results of connections that began and ended together.
    fn ended(&mut self, reports: Vec<ConnectionReport>, host: &Host, reverse: bool) {
        self.bytes += reports.iter().map(|t| t.meter.sum().bytes).sum::<u64>();
        self.rtt = reports.iter().filter_map(|t| t.meter.sum().srtt).fold(self.rtt, Duration::max);
        let text = if self.args.stack.json {
            let cpu = Clock::thread_cpu();
            let refused = self.refused.load(Ordering::Relaxed);
            let totals = StackTotals::new(host, refused, &self.interface, cpu - self.cpu);
            self.cpu = cpu;
            let error = reports.iter().find(|t| !t.account.in_order).map(|t| show::ended(&t.account));
            let remote = reports[0].account.remote;
            let run = RunFacts { limit: None, remote, reverse, began: self.began, error };
            let now = Clock::now();
            if now >= self.counters.0 {
                self.counters = (now + MAX_COUNTER_AGE, totals.figures(host).json());
            }
            let counters = &self.counters.1;
            Document { stack: self.stack, totals: &totals, counters, reports: &reports, run: &run }.text()
        } else {
            show::results(&reports, self.stack)
        };
        self.began = Clock::wall_nanos();
        self.printer.say(text);
    }
    /// Whether the server ends: after a signal, or if its output cannot be written. It then accepts no new connections.
    fn should_stop(&self, host: &mut Host) -> bool {
        let stop = interrupt::requested() || self.printer.has_failed();
        if stop {
            host.unlisten(self.args.port);
        }
        stop
    }
}
