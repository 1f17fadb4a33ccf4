//! Text output: a row per interval and connection, and the end of each connection.

use super::figures::{self, Figures};
use super::settings::Stack;
use crate::args::Marking;
use skyhaul_base::Duration;
use skyhaul_cc::ProbeSupport;
use skyhaul_lab::text::{bit_rate, seconds, short};
use skyhaul_net::app::{Account, Interval, Meter};
use skyhaul_net::host::{Counts, Failure, Host, Memory};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A connection that has ended, with its measurements.
pub(super) struct ConnectionReport {
    /// Its number, from 1.
    pub(super) number: u32,
    /// Whether this stack sends the data.
    pub(super) sending: bool,
    pub(super) meter: Meter,
    pub(super) account: Account,
}

/// The header of the rows of a sender or of a receiver.
pub(super) fn head(sending: bool) -> String {
    let mut line = format!("[ id] {:>17} {:>9} {:>12}", "interval", "bytes", "goodput");
    if sending {
        let _ = write!(
            line,
            " {:>9} {:>8} {:>8} {:>6} {:>4} {:>13}",
            "cwnd", "segments", "srtt", "again", "rto", "probes/answers"
        );
    }
    line.push('\n');
    line
}

/// The row of an interval of the connection `number`, or with `None` of the sum over connections.
pub(super) fn row(number: Option<u32>, i: &Interval, sending: bool) -> String {
    let number = number.map_or_else(|| "SUM".into(), |n| format!("{n:>3}"));
    let interval = format!("{:.2}-{:.2} s", i.from.as_secs_f64(), i.to.as_secs_f64());
    let mut line = format!("[{number}] {interval:>17} {:>9} {:>12}", bytes(i.bytes), bit_rate(i.goodput()));
    if sending {
        let srtt = i.srtt.map_or_else(|| "-".into(), |t| seconds(t.as_secs_f64()));
        let probes = format!("{}/{}", i.probes_sent, i.probes_answered);
        let _ = write!(
            line,
            " {:>9} {:>8} {srtt:>8} {:>6} {:>4} {probes:>13}",
            bytes(i.cwnd),
            short(i.cwnd_segments),
            i.retransmissions,
            i.timeouts,
        );
    }
    line.push('\n');
    line
}

/// Bytes with a suitable prefix.
fn bytes(n: u64) -> String {
    let x = n as f64;
    match x {
        x if x >= 1e9 => format!("{} GB", short(x / 1e9)),
        x if x >= 1e6 => format!("{} MB", short(x / 1e6)),
        x if x >= 1e3 => format!("{} kB", short(x / 1e3)),
        _ => format!("{n} B"),
    }
}

/// The sum of an interval over several connections. Windows add up, RTTs do not.
pub(super) fn sum<'a>(all: impl IntoIterator<Item = &'a Interval>) -> Interval {
    let mut sum = Interval { from: Duration::MAX, ..Interval::default() };
    for i in all {
        sum.from = sum.from.min(i.from);
        sum.to = sum.to.max(i.to);
        sum.bytes += i.bytes;
        sum.retransmissions += i.retransmissions;
        sum.probes_sent += i.probes_sent;
        sum.probes_answered += i.probes_answered;
        sum.timeouts += i.timeouts;
        sum.cwnd += i.cwnd;
        sum.cwnd_segments += i.cwnd_segments;
    }
    sum.from = sum.from.min(sum.to);
    sum
}

/// How a connection ended, in words.
pub(super) fn ended(account: &Account) -> String {
    match account.failure {
        Some(Failure::TimedOut) if !account.connected => {
            "no answer: are there routes in both directions?".into()
        }
        Some(why) => why.to_string(),
        None if account.in_order => "closed in order".into(),
        None if !account.connected => "given up before it was established".into(),
        None => "given up: the peer did not close in time".into(),
    }
}

/// Whether the peer answers probes, and the consequence; `None` if probes play no role.
pub(super) fn probes(account: &Account, stack: &Stack) -> Option<String> {
    let cc = &stack.endpoint.cc;
    let name = cc.policy(&stack.endpoint.tcp.rules).filter(|p| p.probes).map(|_| cc.title());
    let c = &account.counters;
    match (account.probes, name) {
        (_, None) if c.probes_sent == 0 => None,
        (ProbeSupport::Yes, _) => {
            Some(format!("the peer answers probes: {} of {}", c.probes_answered, c.probes_sent))
        }
        (ProbeSupport::Unknown, _) => Some("it is unknown whether the peer answers probes".into()),
        (ProbeSupport::No, Some(name)) if stack.marking == Marking::Off => {
            Some(format!("probes are off: {name} runs as Reno"))
        }
        (ProbeSupport::No, Some(name)) => {
            Some(format!("the peer does not answer probes: {name} runs as Reno"))
        }
        (ProbeSupport::No, None) => Some("the peer does not answer probes".into()),
    }
}

/// A row with the totals of each connection, one with their sum, and a line on how each ended.
pub(super) fn results(reports: &[ConnectionReport], stack: &Stack) -> String {
    let mut out = String::new();
    for t in reports {
        let sum = t.meter.sum();
        out.push_str(&row(Some(t.number), &sum, t.sending));
    }
    if reports.len() > 1 {
        let sums: Vec<Interval> = reports.iter().map(|t| t.meter.sum()).collect();
        out.push_str(&row(None, &sum(&sums), reports[0].sending));
    }
    for t in reports {
        let (local, remote) = (t.account.local, t.account.remote);
        let arrow = if t.sending { "->" } else { "<-" };
        let _ = write!(out, "[{:>3}] {local} {arrow} {remote}: {}", t.number, ended(&t.account));
        if let Some(text) = probes(&t.account, stack).filter(|_| t.sending) {
            let _ = write!(out, "; {text}");
        }
        out.push('\n');
    }
    out
}

/// Totals of the whole stack.
pub(super) struct StackTotals {
    pub(super) counts: Counts,
    pub(super) memory: Memory,
    /// Packets that the interface refused.
    pub(super) refused: u64,
    /// Packets of the kernel dropped because the interface's queue was full.
    pub(super) dropped: u64,
    /// Processor time.
    pub(super) cpu: Duration,
}

impl StackTotals {
    pub(super) fn new(host: &Host, refused: u64, interface: &str, cpu: Duration) -> Self {
        let dropped = skyhaul_net::tun::dropped(interface).unwrap_or(0);
        Self { counts: host.counts().clone(), memory: host.memory(), refused, dropped, cpu }
    }
    /// All counters of the stack.
    pub(super) fn figures(&self, host: &Host) -> Figures {
        Figures::of(host, self.refused, self.dropped, self.cpu.as_secs_f64())
    }
    /// Packets in and out.
    pub(super) fn packets(&self) -> (u64, u64) {
        (self.counts.packets_in, self.counts.packets_out)
    }
    /// Discarded packets, by reason; reasons with a count of zero are left out.
    pub(super) fn reasons(&self) -> BTreeMap<&'static str, u64> {
        let all = figures::refusals(&self.counts, &self.memory);
        all.into_iter().filter(|(_, n)| *n > 0).collect()
    }
    /// Two lines on packets, the interface and processor time; `bytes` is the payload carried.
    pub(super) fn line(&self, bytes: u64) -> String {
        let c = &self.counts;
        let reasons: Vec<String> = self.reasons().iter().map(|(why, n)| format!("{n} {why}")).collect();
        let reasons = if reasons.is_empty() { "none".into() } else { reasons.join(", ") };
        let cpu = self.cpu.as_secs_f64();
        let per_gigabyte = if bytes > 0 {
            format!(" ({} per GB)", seconds(cpu * 1e9 / bytes as f64))
        } else {
            String::new()
        };
        format!(
            "packets: {} out, {} in, refused: {reasons}\ninterface: {} not taken, {} dropped in its queue; \
             processor: {}{per_gigabyte}\n",
            c.packets_out,
            c.packets_in,
            self.refused,
            self.dropped,
            seconds(cpu)
        )
    }
}
