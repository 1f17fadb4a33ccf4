//! `skyhaul emulate`.

mod metrics;
mod report;

use crate::args::EmulateArgs;
use crate::command::metrics::Metrics;
use crate::interrupt;
use crate::output::{note, print};
use crate::stop::Stop;
use indicatif::{ProgressBar, ProgressStyle};
use skyhaul_base::Duration;
use skyhaul_lab::{capture, cases};
use skyhaul_net::emulator::{Emulation, End, LATE, Options};
use skyhaul_net::enclosure::{self, Enclosed};
use skyhaul_net::tun::{self, TunConfig};
use skyhaul_net::{Clock, Namespace, NetError, ipv6};
use skyhaul_scenario::Resolved;
use skyhaul_scenario::resolved::FlowGroup;
use std::ffi::OsString;
use std::net::IpAddr;

/// Polling interval for the end of the program or a request of the user.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// Grace period of a program once its time is over.
const GRACE: Duration = Duration::from_secs(3);
/// Longest time that the links run on after the program has ended.
const LINGER: Duration = Duration::from_secs(5);
/// Time without packets, beyond a round trip, after which the links stop; longer than the time between two reports of the
/// links, which come a few times per second.
const QUIET: Duration = Duration::from_millis(300);
/// Packets per second that a core of a common machine forwards; measured: 300,000 to 700,000.
const MOST_PACKETS: u64 = 300_000;
/// Polls between two updates of the live view.
const REFRESH: u32 = 25;
/// The hidden command of an enclosure's first process.
const INIT: &str = "enclosure-init";

/// Emulates the path of one flow group; `own_command` is the command line that starts this program again.
pub(crate) fn run(args: &EmulateArgs, own_command: &[OsString]) -> Result<(), Stop> {
    let cases = cases::resolve(&args.scenario.scenario, &args.scenario.set, args.seed)?;
    let [case] = cases.as_slice() else {
        return Err(Stop::bad(format!(
            "emulate runs one scenario, and --set makes {}: give each key one value",
            cases.len()
        )));
    };
    let scenario = &case.scenario;
    let group = group(scenario, args.flow.as_deref())?;
    check_rate(scenario, group, args)?;
    if scenario.repair.iter().any(|r| r.links.iter().any(|l| group.path.contains(l))) {
        note("warning: the emulator has the links, not the gateways of [repair]: nothing is repaired\n");
    }
    if let Some(dir) = &args.pcap {
        for name in ["forward.pcapng", "reverse.pcapng"] {
            capture::check_overwritten(&dir.join(name), args.force).map_err(Stop::bad)?;
        }
    }
    let mut metrics = args.metrics.map(Metrics::open).transpose()?;
    interrupt::listen();
    let ends = ends(args)?;
    for why in ends.iter().filter_map(|e| e.device.warning()) {
        note(&format!("warning: {why}\n"));
    }
    let options = Options {
        seed: case.seed,
        spin: Duration::from_micros(args.spin_us.into()),
        strict: args.strict.then_some(LATE),
        capture: args.pcap.clone(),
        ..Options::default()
    };
    let here = ends[0].namespace.clone();
    // Data flows from the first end to the second.
    let ends = if args.download { [ends[1].clone(), ends[0].clone()] } else { ends };
    let emulation = Emulation::start(scenario, group, ends, &options).map_err(Stop::bad)?;
    let program = if args.program.is_empty() {
        None
    } else {
        let own_command = [own_command, &[INIT.into()]].concat();
        Some(enclosure::start(&here, &own_command, &args.program).map_err(|e| match e {
            // The first process of the enclosure has printed the reason, and ends with these statuses.
            NetError::NotStarted { status: status @ 125..=127, .. } => Stop::Status(status),
            e => Stop::bad(e),
        })?)
    };
    if let Some(m) = &mut metrics {
        // A scrape needs no wake-up: `watch` polls.
        m.begin(|| {});
    }
    watch(args, &emulation, program.as_ref(), metrics.as_ref());
    if program.is_some() {
        linger(&emulation, scenario.propagation_rtt(group));
    }
    // The last packets of the program have left; packets still in flight have no receiver any more.
    let status = match program {
        Some(p) if emulation.has_ended() => {
            p.kill();
            p.wait().map_err(Stop::bad)?
        }
        Some(p) => p.wait().map_err(Stop::bad)?,
        None => 0,
    };
    let report = emulation.finish().map_err(Stop::bad)?;
    let text =
        if args.scenario.json { format!("{:#}\n", report::json(&report)) } else { report::text(&report) };
    if args.program.is_empty() {
        print(&text)?;
    } else {
        // Standard output is the program's.
        note(&text);
    }
    if status == 0 { Ok(()) } else { Err(Stop::Status(status)) }
}

/// Warns in advance of a rate that the machine can hardly forward; `--strict` makes it an error.
fn check_rate(scenario: &Resolved, group: &FlowGroup, args: &EmulateArgs) -> Result<(), Stop> {
    for forward in [true, false] {
        let links = group.path.iter().map(|&i| &scenario.links[i]);
        let rates = links.filter_map(|l| if forward { l.forward.rate.mean() } else { l.reverse.rate.mean() });
        let Some(slowest) = rates.map(skyhaul_base::Rate::bits_per_sec).min() else { continue };
        let packets = slowest / (8 * u64::from(args.mtu));
        if packets > MOST_PACKETS {
            let direction = if forward { "forward" } else { "reverse" };
            let line = format!(
                "{direction}: {:.1} Gbit/s are {packets} packets of {} bytes per second, and one core forwards about \
                 {MOST_PACKETS}: take a slower link or a larger --mtu (skyhaul doctor measures this machine)",
                slowest as f64 / 1e9,
                args.mtu
            );
            if args.strict {
                return Err(Stop::bad(line));
            }
            note(&format!("warning: {line}\n"));
        }
    }
    Ok(())
}

/// The flow group whose path is emulated.
fn group<'a>(scenario: &'a Resolved, name: Option<&str>) -> Result<&'a FlowGroup, Stop> {
    let Some(name) = name else {
        return scenario.flows.first().ok_or_else(|| Stop::bad("the scenario has no flows"));
    };
    scenario.flows.iter().find(|f| f.name == name).ok_or_else(|| {
        let names: Vec<&str> = scenario.flows.iter().map(|f| f.name.as_str()).collect();
        Stop::bad(format!("--flow: the scenario has no flow group {name:?} (known: {})", names.join(", ")))
    })
}

/// Opens the ends of the path: the client's, then the server's.
fn ends(args: &EmulateArgs) -> Result<[End; 2], Stop> {
    let find = |name: &Option<String>| match name {
        Some(name) => Namespace::find(name),
        None => Namespace::current(),
    };
    let open = |namespace: &Namespace, end, v6: bool| {
        let addresses = of_families(addresses(args.net, end), v6);
        for (address, length) in &addresses {
            // The kernel silently assigns the same network to two interfaces, and one of them gets no packets.
            let found = namespace.within(|| tun::overlap(*address, *length)).map_err(Stop::bad)?;
            if let Some((name, theirs)) = found.map_err(Stop::bad)? {
                return Err(Stop::bad(format!(
                    "--net {}: the network of {address}/{length} is in use already, {name} has {theirs}: choose another \
                     number",
                    args.net
                )));
            }
        }
        let config = TunConfig { name: None, addresses, mtu: args.mtu, offload: false };
        End::open(namespace, &config).map_err(Stop::bad)
    };
    if !args.program.is_empty() {
        let (inside, here) = (Namespace::new().map_err(Stop::bad)?, Namespace::current().map_err(Stop::bad)?);
        let v6 = has_ipv6([&inside, &here])?;
        let ends = [open(&inside, 1, v6)?, open(&here, 2, v6)?];
        let routers = of_families(addresses(args.net, 2), v6);
        for ((any, _), (router, _)) in of_families(default_routes(), v6).into_iter().zip(routers) {
            inside.route((any, 0), ends[0].device.name(), Some(router)).map_err(Stop::bad)?;
        }
        return Ok(ends);
    }
    if let [a, b] = args.interfaces.as_slice() {
        let here = Namespace::current().map_err(Stop::bad)?;
        let open = |name: &String| {
            let config =
                TunConfig { name: Some(name.clone()), addresses: vec![], mtu: args.mtu, offload: false };
            End::open(&here, &config).map_err(Stop::bad)
        };
        return Ok([open(a)?, open(b)?]);
    }
    if args.ns_client.is_none() && args.ns_server.is_none() {
        return Err(Stop::bad(
            "nothing to connect: give a program (-- CMD), --ns-client and --ns-server, or --interfaces A B",
        ));
    }
    let (client, server) =
        (find(&args.ns_client).map_err(Stop::bad)?, find(&args.ns_server).map_err(Stop::bad)?);
    let v6 = has_ipv6([&client, &server])?;
    Ok([open(&client, 1, v6)?, open(&server, 2, v6)?])
}

/// Whether both ends have IPv6. Without it, the path carries IPv4 only, and a line says so.
fn has_ipv6(ends: [&Namespace; 2]) -> Result<bool, Stop> {
    for end in ends {
        if let Some(why) = end.within(ipv6::why_off).map_err(Stop::bad)? {
            note(&format!("warning: IPv6 is off ({why}): the path carries IPv4 alone; {}\n", ipv6::REMEDY));
            return Ok(false);
        }
    }
    Ok(true)
}

/// The IPv4 addresses of `all`, and with `v6` the IPv6 addresses too.
fn of_families(all: [(IpAddr, u8); 2], v6: bool) -> Vec<(IpAddr, u8)> {
    all.into_iter().filter(|(a, _)| v6 || a.is_ipv4()).collect()
}

/// The destinations of default routes: any IPv4 and any IPv6 address.
fn default_routes() -> [(IpAddr, u8); 2] {
    [(IpAddr::from([0; 4]), 0), (IpAddr::from([0u16; 8]), 0)]
}

/// Addresses of an end of network `net`: private ones (RFC 1918, RFC 4193).
fn addresses(net: u8, end: u8) -> [(IpAddr, u8); 2] {
    // Binary-coded decimal: IPv6 addresses are written in hexadecimal, so both families show the same digits.
    let digits = u16::from(net / 100) << 8 | u16::from(net / 10 % 10) << 4 | u16::from(net % 10);
    let v6 = [0xfd00, 0x5348, 0, digits, 0, 0, 0, end.into()];
    [(IpAddr::from([10, 83, net, end]), 24), (IpAddr::from(v6), 64)]
}

/// Returns once the program or the emulation has ended, or the user asks to stop.
fn watch(args: &EmulateArgs, emulation: &Emulation, program: Option<&Enclosed>, metrics: Option<&Metrics>) {
    let view = args.live.then(view);
    let mut deadline = args.duration.map(|d| emulation.started_at() + d);
    let (mut end_signals, mut polls) = (0, 0);
    loop {
        if emulation.has_ended() || program.is_some_and(Enclosed::is_over) {
            break;
        }
        // A terminal sends the signal to the program as well, which may ignore it. A second Ctrl-C ends everything.
        if program.is_none() && interrupt::requested() {
            break;
        }
        let now = Clock::now();
        if interrupt::terminated() {
            deadline = Some(deadline.map_or(now, |d| d.min(now)));
        }
        if let Some(deadline) = deadline.filter(|d| *d <= now) {
            match program {
                None => break,
                Some(p) if now >= deadline + GRACE => p.kill(),
                // A second signal comes halfway to the kill: the first one is lost if the program has not started yet, and
                // many programs end at once on a second one.
                Some(p) if end_signals == 0 || end_signals == 1 && now >= deadline + GRACE / 2 => {
                    end_signals += 1;
                    p.end();
                }
                Some(_) => {}
            }
        }
        if let (Some(view), 0, Some(news)) = (&view, polls % REFRESH, emulation.news()) {
            view.set_message(report::line(&news));
        }
        if let Some(m) = metrics {
            m.answer(|| emulation.news().as_ref().map(metrics::text).unwrap_or_default());
        }
        polls = polls.wrapping_add(1);
        std::thread::sleep(POLL_INTERVAL);
    }
    if let Some(view) = view {
        view.finish_and_clear();
    }
}

/// Waits for the last packets of the program and the replies of its kernel: returns when no packet has entered a link for
/// a round trip and [`QUIET`], or after [`LINGER`].
fn linger(emulation: &Emulation, rtt: Duration) {
    let began = Clock::now();
    let (mut last, mut changed_at) = (Vec::new(), began);
    while !emulation.has_ended() && Clock::now() < began + LINGER {
        let offered: Vec<u64> = emulation
            .news()
            .iter()
            .flat_map(|report| report.lanes.iter().flat_map(|lane| &lane.links))
            .map(|link| link.counters.total().offered)
            .collect();
        if offered != last {
            (last, changed_at) = (offered, Clock::now());
        }
        if Clock::now() >= changed_at + rtt + QUIET {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A line of counters on standard error; hidden if that is no terminal.
fn view() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

/// Runs the hidden command of an enclosure's first process.
pub(crate) fn init(arguments: &[OsString]) -> Result<(), Stop> {
    match enclosure::init(arguments) {
        0 => Ok(()),
        status => Err(Stop::Status(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_number_of_a_network_is_written_alike_in_both_families() {
        let mut earlier = BTreeSet::new();
        for net in 0..=u8::MAX {
            let [(v4, _), (v6, _)] = addresses(net, 2);
            assert_eq!(v4.to_string(), format!("10.83.{net}.2"));
            let written: IpAddr = format!("fd00:5348:0:{net}::2").parse().expect("an address");
            assert_eq!(v6, written);
            assert!(earlier.insert(v6), "{net}: another number has this address");
        }
    }
}
