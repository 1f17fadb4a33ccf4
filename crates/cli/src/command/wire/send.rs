//! `skyhaul wire send`.

use super::document::{Document, RunFacts};
use super::exporter::Exporter;
use super::settings::Stack;
use super::show::{self, ConnectionReport, StackTotals};
use crate::args::SendArgs;
use crate::interrupt;
use crate::printer::Printer;
use crate::stop::Stop;
use skyhaul_net::Clock;
use skyhaul_net::app::{Bulk, Interval, Limit};
use skyhaul_net::host::Failure;
use std::net::SocketAddr;

pub(crate) fn run(args: &SendArgs) -> Result<(), Stop> {
    let stack = Stack::read(&args.stack)?;
    let (local, remote) = stack.ends(&args.to)?;
    let limit = match (args.time, args.bytes) {
        (Some(time), _) => Limit::Time(time.0),
        (None, bytes) => Limit::Bytes(bytes.map_or(0, |b| b.0)),
    };
    let mut driver = stack.open()?;
    let metrics = Exporter::begin(args.stack.metrics, &driver)?;
    let began = Clock::wall_nanos();
    let host = driver.host_mut();
    let opened =
        Bulk::open(Clock::now(), host, (local, remote), &stack.endpoint, limit, args.streams, stack.every);
    let mut bulk = opened.map_err(Stop::bad)?;
    let mut rows = Rows::default();
    let waker = driver.waker();
    let printer = Printer::begin(move || waker.wake())?;
    let ran = driver.run(&mut bulk, |_, bulk, host| {
        metrics.answer(host);
        if !args.stack.json {
            rows.show(&printer, bulk, false);
        }
        interrupt::requested() || printer.has_failed()
    });
    if !args.stack.json {
        rows.show(&printer, &bulk, true);
    }
    let rtt = bulk.accounts().filter_map(|(meter, _)| meter.sum().srtt).max().unwrap_or_default();
    let ran = ran.map_err(Stop::bad).and_then(|()| metrics.linger(&mut driver, rtt));
    let captured = stack.close(&mut driver);
    let reports: Vec<ConnectionReport> = (1..)
        .zip(bulk.accounts())
        .filter_map(|(number, (meter, account))| {
            Some(ConnectionReport { number, sending: true, meter: meter.clone(), account: account?.clone() })
        })
        .collect();
    let totals = StackTotals::new(driver.host(), driver.refused(), driver.tun().name(), driver.cpu());
    let bytes = reports.iter().map(|t| t.meter.sum().bytes).sum();
    let outcome = outcome(remote, &reports).and(ran);
    let connected = reports.iter().any(|t| t.account.connected);
    let last = if args.stack.json {
        let error = outcome.as_ref().err().map(Stop::to_string);
        let run = RunFacts { limit: Some(limit), remote, reverse: false, began, error };
        let counters = &totals.figures(driver.host()).json();
        Document { stack: &stack, totals: &totals, counters, reports: &reports, run: &run }.text()
    } else if connected {
        format!("{}{}{}", rows.separator(), show::results(&reports, &stack), totals.line(bytes))
    } else {
        String::new()
    };
    printer.finish(last)?;
    captured?;
    outcome?;
    if interrupt::requested() {
        return Err(Stop::Interrupted("stopped early".into()));
    }
    Ok(())
}

/// An error if a connection failed: that of the first one. A connection that a signal ended has not failed.
fn outcome(remote: SocketAddr, reports: &[ConnectionReport]) -> Result<(), Stop> {
    let interrupted = |t: &ConnectionReport| interrupt::requested() && t.account.failure.is_none();
    let failed = |t: &&ConnectionReport| !(t.account.in_order || interrupted(t));
    match reports.iter().find(failed) {
        Some(t) if t.account.failure == Some(Failure::Refused) => {
            Err(Stop::bad(format!("{remote}: {}", Failure::Refused)))
        }
        Some(t) => Err(Stop::bad(format!("{remote}: {}", show::ended(&t.account)))),
        None => Ok(()),
    }
}

/// Prints the rows of all connections, interval by interval.
#[derive(Default)]
struct Rows {
    /// Number of intervals that are printed.
    printed: usize,
}

impl Rows {
    /// Prints each interval that every connection has finished, or has not reached before it closed; with `end` also an
    /// interval that some have not finished.
    fn show(&mut self, printer: &Printer, bulk: &Bulk, end: bool) {
        loop {
            let at = self.printed;
            let waits = |len: usize, over: bool| len <= at && !over && !end;
            if bulk.accounts().any(|(m, a)| waits(m.intervals().len(), a.is_some())) {
                return;
            }
            let all: Vec<(u32, Interval)> = (1..)
                .zip(bulk.accounts())
                .filter_map(|(n, (m, _))| Some((n, m.intervals().get(at).copied()?)))
                .collect();
            if all.is_empty() {
                return;
            }
            let mut text = if at == 0 { show::head(true) } else { String::new() };
            for (n, interval) in &all {
                text.push_str(&show::row(Some(*n), interval, true));
            }
            if all.len() > 1 {
                text.push_str(&show::row(None, &show::sum(all.iter().map(|(_, i)| i)), true));
            }
            self.printed += 1;
            printer.say(text);
        }
    }
    /// The line between the rows and the totals.
    fn separator(&self) -> String {
        format!("{}\n", "- ".repeat(20).trim_end())
    }
}
