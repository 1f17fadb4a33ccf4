//! `skyhaul wire serve`.

use super::datagrams;
use super::document::{Document, RunFacts};
use super::exporter::Exporter;
use super::settings::Stack;
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

/// Largest age of the counters in a document.
const COUNTERS: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ServeArgs) -> Result<(), Stop> {
    let mut stack = Stack::read(&args.stack)?;
    let idle = args.idle.0;
    if !args.stack.set.iter().any(|s| s.trim_start().starts_with("endpoint.keepalive-idle")) {
        // A quarter of the time in silence, the rest with questions: a shorter outage ends nothing.
        let keepalive = &mut stack.endpoint.tcp.keepalive;
        (keepalive.idle, keepalive.interval, keepalive.probes) = (idle / 4, idle / 16, 12);
    }
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
    let mut shown = ServerOutput {
        args,
        stack: &stack,
        interface,
        cpu: Clock::thread_cpu(),
        numbers: BTreeMap::new(),
        count: 0,
        bytes: 0,
        next: Instant::ZERO,
        began: Clock::wall_nanos(),
        counters: (Instant::ZERO, Value::Null),
        head: None,
        rtt: Duration::ZERO,
        printer,
    };
    let most = args.once.then_some(1);
    let ran = match args.mode {
        Mode::Sink => {
            talk(&mut driver, Serve::new(|_| Sink, stack.every, most).idle(idle), &mut shown, &metrics)
        }
        Mode::Http => talk(
            &mut driver,
            Serve::new(|_| Http::new(idle), stack.every, most).idle(idle).sending(),
            &mut shown,
            &metrics,
        ),
        Mode::Iperf3 => {
            driver.host_mut().bind(args.port).map_err(Stop::bad)?;
            let mut app = Iperf::new(stack.endpoint.cc.name().into(), stack.every, most);
            driver.run(&mut app, |now, app, host| {
                metrics.answer(host);
                if shown.looks(now) {
                    shown.test(app.open());
                }
                for why in app.take_refused() {
                    shown.printer.warn(format!("a test was refused: {why}"));
                }
                for tested in app.take_tested() {
                    shown.tested(tested, host);
                }
                shown.wants_an_end(host)
            })
        }
    };
    let ran = ran.map_err(Stop::bad).and_then(|()| metrics.linger(&mut driver, shown.rtt));
    let captured = stack.close(&mut driver);
    let last = if args.stack.json {
        String::new()
    } else {
        StackTotals::new(driver.host(), driver.refused(), driver.tun().name(), driver.cpu()).line(shown.bytes)
    };
    shown.printer.finish(last)?;
    captured?;
    // Whoever serves without --once has no other end than Ctrl-C and SIGTERM.
    ran
}

fn talk<T: ConnectionHandler, G: FnMut(u16) -> T>(
    driver: &mut Driver,
    mut app: Serve<T, G>,
    shown: &mut ServerOutput<'_>,
    metrics: &Exporter,
) -> Result<(), NetError> {
    let sending = shown.args.mode == Mode::Http;
    driver.run(&mut app, |now, app, host| {
        metrics.answer(host);
        if shown.looks(now) {
            app.tell_fresh(|id, meter| {
                let number = shown.number(id);
                shown.rows(number, meter.news(), sending);
            });
        }
        for ended in app.take_ended() {
            let number = shown.number(ended.id);
            shown.numbers.remove(&ended.id);
            let mut meter = ended.meter;
            shown.rows(number, meter.news(), sending);
            let reports = ConnectionReport { number, sending, meter, account: ended.account };
            shown.ended(vec![reports], host, sending);
        }
        shown.wants_an_end(host)
    })
}

/// The output of a server so far.
struct ServerOutput<'a> {
    args: &'a ServeArgs,
    stack: &'a Stack,
    interface: String,
    /// Processor time at the end of the last connection; idle waiting costs none.
    cpu: Duration,
    numbers: BTreeMap<ConnId, u32>,
    count: u32,
    bytes: u64,
    next: Instant,
    began: u64,
    /// The counters of the stack, and the time of their next update, which visits every connection.
    counters: (Instant, Value),
    /// Kind of the last header printed.
    head: Option<bool>,
    /// The longest round trip of a connection that has ended.
    rtt: Duration,
    printer: Printer,
}

impl ServerOutput<'_> {
    /// Whether it is time to print rows; a few times per interval is enough.
    fn looks(&mut self, now: Instant) -> bool {
        let looks = now >= self.next && !self.args.stack.json;
        if looks {
            self.next = now + self.stack.every / 8;
        }
        looks
    }
    fn number(&mut self, id: ConnId) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.count += 1;
            self.count
        })
    }
    fn rows(&mut self, number: u32, intervals: &[Interval], sending: bool) {
        if self.args.stack.json || intervals.is_empty() {
            return;
        }
        let mut text = if self.head == Some(sending) { String::new() } else { show::head(sending) };
        self.head = Some(sending);
        for i in intervals {
            text.push_str(&show::row(Some(number), i, sending));
        }
        self.printer.say(text);
    }
    /// Rows of the connections of a test.
    fn test<'m>(&mut self, meters: impl Iterator<Item = &'m mut Meter>) {
        for (number, meter) in (1..).zip(meters) {
            let sending = !meter.is_receiving();
            self.rows(number, meter.news(), sending);
        }
    }
    /// A test of iperf3; a bidirectional test is reported per direction.
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
    /// Connections that began and ended together.
    fn ended(&mut self, reports: Vec<ConnectionReport>, host: &Host, reverse: bool) {
        self.bytes += reports.iter().map(|t| t.meter.sum().bytes).sum::<u64>();
        self.rtt = reports.iter().filter_map(|t| t.meter.sum().srtt).fold(self.rtt, Duration::max);
        let text = if self.args.stack.json {
            let cpu = Clock::thread_cpu();
            // Packets that the interface refused are known at the end of everything only.
            let totals = StackTotals::new(host, 0, &self.interface, cpu - self.cpu);
            self.cpu = cpu;
            let error = reports.iter().find(|t| !t.account.in_order).map(|t| show::ended(&t.account));
            let remote = reports[0].account.remote;
            let run = RunFacts { limit: None, remote, reverse, began: self.began, error };
            let now = Clock::now();
            if now >= self.counters.0 {
                self.counters = (now + COUNTERS, totals.figures(host).json());
            }
            let counters = &self.counters.1;
            Document { stack: self.stack, totals: &totals, counters, reports: &reports, run: &run }.text()
        } else {
            show::results(&reports, self.stack)
        };
        self.began = Clock::wall_nanos();
        self.printer.say(text);
    }
    fn wants_an_end(&self, host: &mut Host) -> bool {
        let run = interrupt::requested() || self.printer.has_failed();
        if run {
            host.unlisten(self.args.port);
        }
        run
    }
}
