//! The check as text for a terminal.

use super::{Active, Check, DirectionCheck, FlowCheck};
use crate::amount::{RateSpec, Time};
use core::fmt;
use skyhaul_base::{Duration, Rate, readable};

/// Three significant digits, by the rule of [`readable`]; an infinite number is no limit.
pub(super) fn short(x: f64) -> String {
    if x.is_infinite() { "unlimited".into() } else { readable::significant(x, readable::USUAL) }
}

/// A fraction in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

pub(super) fn seconds(s: f64) -> String {
    // Times have a resolution of a nanosecond, and four digits suffice for reading.
    let digits: f64 = format!("{s:.3e}").parse().unwrap_or(s);
    Time(Duration::from_secs_f64(digits)).to_string()
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.title.is_empty() {
            writeln!(f, "{}", self.title)?;
        }
        writeln!(f, "  run          {}, seed {}", seconds(self.duration_s), self.seed)?;
        writeln!(f, "  memory       about {} MB", short((self.memory.total() / 1e6).max(0.01)))?;
        writeln!(f, "  hash         {}", self.hash.get(..16).unwrap_or(&self.hash))?;
        for link in &self.links {
            writeln!(f, "\nlink {}", link.name)?;
            direction(f, "forward", &link.forward)?;
            direction(f, "reverse", &link.reverse)?;
            if let Some(o) = &link.orbit {
                o.fmt(f)?;
            }
            if let Some(k) = link.ack_ratio {
                writeln!(
                    f,
                    "  ratio        k = {} data packets sent in the transmission time of one acknowledgement",
                    short(k)
                )?;
            }
        }
        for flow in &self.flows {
            writeln!(f, "\nflows {}", flow.name)?;
            group(f, flow)?;
        }
        if !self.warnings.is_empty() {
            writeln!(f, "\nwarnings")?;
        }
        for w in &self.warnings {
            writeln!(f, "  {}: {} [{}]", w.key, w.message, w.code)?;
        }
        Ok(())
    }
}

fn direction(f: &mut fmt::Formatter<'_>, name: &str, d: &DirectionCheck) -> fmt::Result {
    write!(f, "  {name}      ")?;
    match (d.rate_bit_s, d.rate_packets_s) {
        (Some(bits), Some(packets)) => {
            let rate = RateSpec::Bits(Rate::from_bits_per_sec(bits));
            write!(f, "{rate} = {} packets/s of {} B", short(packets), d.packet_bytes)?;
        }
        _ => f.write_str("unlimited rate")?,
    }
    write!(f, ", {}", seconds(d.delay_s))?;
    if d.loss > 0.0 {
        write!(f, ", loss {}", percent(d.loss))?;
    }
    if let Some(utilization) = d.utilization {
        write!(f, ", predicted use {}", percent(utilization))?;
    }
    writeln!(f)?;
    if let Some(fade) = &d.fade {
        writeln!(f, "    fade       {fade}")?;
    }
    queue(f, d)?;
    d.repair.as_ref().map_or(Ok(()), |repair| write!(f, "{repair}"))
}

fn queue(f: &mut fmt::Formatter<'_>, d: &DirectionCheck) -> fmt::Result {
    // Nothing waits for an infinitely fast transmitter.
    let Some(bdp) = d.bdp_packets else { return Ok(()) };
    write!(f, "    queue      {} ", d.queue_kind)?;
    match (d.queue_packets, d.queue_s) {
        (Some(packets), Some(time)) => write!(f, "{} packets = {}", short(packets), seconds(time))?,
        _ => f.write_str("unlimited")?,
    }
    if let Some(share) = d.queue_bdp {
        write!(f, " = {} BDP", short(share))?;
    }
    writeln!(f, "; BDP {} packets", short(bdp))?;
    if d.queue_options.is_empty() {
        return Ok(());
    }
    let options: Vec<_> = d.queue_options.iter().map(|(key, value)| format!("{key} {value}")).collect();
    writeln!(f, "    options    {}", options.join(", "))
}

fn group(f: &mut fmt::Formatter<'_>, c: &FlowCheck) -> fmt::Result {
    writeln!(
        f,
        "  count        {} x {}, segments of {} B, packets of {} B",
        c.count, c.cc, c.segment_bytes, c.packet_bytes
    )?;
    if c.reverse {
        writeln!(f, "  direction    reverse: data crosses the reverse direction of links")?;
    }
    if let Some(chain) = &c.chain {
        writeln!(f, "  chain        {chain}")?;
    }
    writeln!(f, "  base RTT     {}", seconds(c.base_rtt_s))?;
    if c.bounds.window.is_some() {
        write!(f, "  window       {} segments", short(c.window_segments))?;
    } else {
        write!(f, "  window       none")?;
    }
    if let Some(b) = &c.bottleneck {
        let share = b.bdp_packets / f64::from(c.count);
        write!(f, "; BDP of {} is {} packets, {} per flow", b.link, short(b.bdp_packets), short(share))?;
    }
    writeln!(f)?;
    if c.loss > 0.0 {
        writeln!(f, "  loss         {}", percent(c.loss))?;
    }
    f.write_str("  bounds      ")?;
    let mut separator = " ";
    let mut bound = |f: &mut fmt::Formatter<'_>, name: &str, value: Option<f64>| {
        let Some(value) = value else { return Ok(()) };
        write!(f, "{separator}{name} {}", short(value))?;
        separator = ", ";
        Ok(())
    };
    bound(f, "application", c.bounds.application)?;
    bound(f, "page", c.bounds.page)?;
    bound(f, "window", c.bounds.window)?;
    bound(f, "fair share", c.bounds.fair_share)?;
    let loss = if super::bound_by_loss(&c.cc) { "random loss" } else { "random loss (Reno only)" };
    bound(f, loss, c.bounds.random_loss)?;
    bound(f, "return link", c.bounds.return_link)?;
    writeln!(f, " segments/s per flow")?;
    let active = match &c.active {
        Active::Application => "application".into(),
        Active::FairShare { link } => format!("fair share of {link}"),
        Active::None => "no bound known".into(),
        Active::Page => "the time of a page".into(),
        Active::RandomLoss => "random loss".into(),
        Active::ReturnLink { link } => format!("return link of {link}"),
        Active::Window => "window".into(),
    };
    write!(f, "  prediction   {active}")?;
    if let (Some(rate), Some(goodput)) = (c.rate_segments_s, c.goodput_bit_s) {
        let all = format!("{} Mbit/s", short(goodput / 1e6));
        write!(f, ": {} segments/s per flow, goodput {all} in all", short(rate))?;
    }
    if let Some(u) = c.in_phase_utilization.filter(|u| *u < 1.0) {
        write!(f, "; {} of it if all flows lose packets at the same time", percent(u))?;
    }
    writeln!(f)?;
    if c.leaves_out.is_empty() {
        return Ok(());
    }
    writeln!(f, "  left out     {}", c.leaves_out.join("; "))
}
