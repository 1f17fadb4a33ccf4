//! `skyhaul gateway`.

mod capture;
mod notify;

use super::evidence;
use super::metrics::Metrics;
use crate::args::{
    GatewayCleanArgs, GatewayCommand, GatewayDoctorArgs, GatewayFile, GatewayNameArgs, GatewayRunArgs,
    GatewayStatusArgs, GatewayStopArgs,
};
use crate::interrupt;
use crate::output::{print, redraw};
use crate::printer::Printer;
use crate::stop::Stop;
use notify::Manager;
use serde::de::DeserializeOwned;
use serde_json::Value;
use skyhaul_gateway::classes::ClassConfig;
use skyhaul_gateway::config::{OnFailure, Preserve};
use skyhaul_gateway::doctor::{Finding, Outcome};
use skyhaul_gateway::evidence::{AssignmentUnit, Evidence, Mode};
use skyhaul_gateway::leftover::{self, CleanupResult};
use skyhaul_gateway::log;
use skyhaul_gateway::prefixes::PrefixStatus;
use skyhaul_gateway::proof::{ProofState, ProofStatus};
use skyhaul_gateway::repair::Settings;
use skyhaul_gateway::status::Status;
use skyhaul_gateway::watch::RulesStatus;
use skyhaul_gateway::{Config, Environment, RunObserver, control, doctor, place, rules, system};
use skyhaul_lab::text::{Grid, bit_rate, percent};
use skyhaul_net::wait::Waker;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// The hidden command that cleans up after a gateway that was killed.
const KEEPER: [&str; 2] = ["gateway", "keeper"];
/// Placeholders for the ports that the kernel picks at run time.
const PLACEHOLDERS: rules::Ports = rules::Ports { v4: 5000, v6: 5001 };

/// The command line that starts the keeper; `own_command` is the command line that starts this program.
fn keeper(own_command: &[OsString]) -> Vec<OsString> {
    [own_command, &KEEPER.map(Into::into)].concat()
}

pub(crate) fn run(command: &GatewayCommand, own_command: &[OsString]) -> Result<(), Stop> {
    match command {
        GatewayCommand::Check(args) => check(args),
        GatewayCommand::Rules(args) => {
            let config = place::placed(read(args)?, &place::folder());
            print(&format!("{}\n{}", rules::all(&config, PLACEHOLDERS, false), rules::routing(&config)))
        }
        GatewayCommand::Doctor(args) => examine(args, own_command),
        GatewayCommand::Run(args) => serve(args, own_command),
        GatewayCommand::Status(args) => status(args),
        GatewayCommand::Top(args) => top(args),
        GatewayCommand::Evidence(args) => {
            let target = Target::of(&args.gateway)?;
            let v = target.ask_json("evidence")?;
            if args.json {
                return print(&format!("{v:#}\n"));
            }
            print(&evidence::page(target.parse::<Option<Evidence>>(v)?.as_ref()))
        }
        GatewayCommand::Stop(args) => stop(args),
        GatewayCommand::Reload(args) => {
            let answer = Target::of(args)?.ask("reload")?;
            if answer == "reloaded\n" { print(&answer) } else { Err(Stop::bad(answer.trim())) }
        }
        GatewayCommand::Capture(args) => capture::run(args),
        GatewayCommand::Clean(args) => clean(args),
        GatewayCommand::Keeper(args) => {
            system::keep(&args.arguments);
            Ok(())
        }
    }
}

/// The running gateway that a command is about.
struct Target {
    folder: PathBuf,
    name: String,
}

impl Target {
    /// The gateway that is named, or the only one that runs, or the default name if none runs.
    fn of(args: &GatewayNameArgs) -> Result<Self, Stop> {
        let folder = args.runtime.folder();
        let name = match (&args.name, place::running(&folder).as_slice()) {
            (Some(name), _) | (None, [name]) => name.clone(),
            (None, []) => "gateway".into(),
            (None, several) => {
                return Err(Stop::bad(format!("several gateways run: name one of {}", several.join(", "))));
            }
        };
        Ok(Self { folder, name })
    }
    /// Sends a request, a word such as `status`, to the control socket of the gateway; returns the answer.
    fn ask(&self, request: &str) -> Result<String, Stop> {
        control::ask(&self.folder, &self.name, request).map_err(Stop::bad)
    }
    /// As [`Target::ask`], for a request that is answered with JSON.
    fn ask_json(&self, request: &str) -> Result<Value, Stop> {
        let answer = self.ask(request)?;
        serde_json::from_str(&answer)
            .map_err(|_| Stop::bad(format!("the gateway {:?} says: {}", self.name, answer.trim())))
    }
    /// The typed form of a JSON answer; a gateway of another version may not have it.
    fn parse<T: DeserializeOwned>(&self, answer: Value) -> Result<T, Stop> {
        serde_json::from_value(answer).map_err(|e| {
            Stop::bad(format!("the gateway {:?} is another version of skyhaul than this one: {e}", self.name))
        })
    }
}

fn stop(args: &GatewayStopArgs) -> Result<(), Stop> {
    let target = Target::of(&args.gateway)?;
    // `Ending` identifies the process before the request to stop: a gateway of the same name that is started meanwhile is
    // not waited for.
    let ends = place::Ending::of(&target.folder, &target.name);
    let answer = target.ask("stop")?;
    if args.no_wait {
        return print(&answer);
    }
    ends.wait();
    print("stopped\n")
}

fn read(args: &GatewayFile) -> Result<Config, Stop> {
    Config::read(&args.file).map_err(Stop::bad)
}

fn list(networks: &[skyhaul_gateway::config::Network]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn check(args: &GatewayFile) -> Result<(), Stop> {
    let c = read(args)?;
    let mut out = String::new();
    let mut line = |what: &str, text: String| {
        let _ = writeln!(out, "{what:<22} {text}");
    };
    line("gateway", format!("{}, table inet {}, interface {}", c.name, rules::table(&c), c.interface()));
    if let [_, more @ ..] = &c.sources.files[..]
        && !more.is_empty()
    {
        line("includes", more.join(", "));
    }
    for (name, v) in &c.sources.variables {
        let unused = if v.used { "" } else { "; nothing uses it" };
        line("variable", format!("{name} = {} ({}{unused})", v.value, v.file));
    }
    if let Some(t) = &c.terrestrial {
        line("hosts", format!("{} on {}", list(&t.networks), t.interfaces.join(", ")));
    }
    for f in &c.forward {
        line("forwarded port", format!("{} to {} over the link", f.listen, f.to));
    }
    for p in &c.publish {
        line("published port", format!("{} of {} to {}", p.port, c.satellite.interface, p.to));
    }
    line("behind the link", format!("{} on {}", list(&c.satellite.networks), c.satellite.interface));
    let rate = c
        .satellite
        .rate
        .map_or("as fast as it can".into(), |r| format!("paced to {} Mbit/s", r.bits_per_sec() as f64 / 1e6));
    let (cc, fallback) = (c.endpoint.cc.name(), c.fallback.cc.name());
    let until = if c.tests_priority() && cc != fallback {
        format!(" ({fallback} until the path priority test has found that low priority works)")
    } else {
        String::new()
    };
    line("over the link", format!("{cc}{until}, {rate}, packets of at most {} bytes", c.satellite.mtu));
    for (what, text) in link_lines(&c) {
        line(what, text);
    }
    for class in &c.class {
        line("class", class_line(class));
    }
    if !c.class.is_empty() {
        line("class", "others, weight 1: every other connection".into());
    }
    for s in &c.subscriber {
        line(
            "subscribers",
            format!(
                "each /{} (IPv6: /{}) of {} has {} Mbit/s towards the link",
                s.prefix_v4,
                s.prefix_v6,
                list(&s.networks),
                s.rate.bits_per_sec() as f64 / 1e6
            ),
        );
    }
    line(
        "with a second gateway",
        "both directions gain: each gateway carries what it sends to the other".into(),
    );
    line(
        "alone",
        "only what hosts send over the link gains; what they receive is sent by the TCP of servers, which loses its rate \
         with each loss: no gateway on this side changes that"
            .into(),
    );
    if let Some(t) = &c.terrestrial {
        let ports = |p: &[u16]| p.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let only = if c.split.ports.is_empty() { "all".into() } else { ports(&c.split.ports) };
        line("ports that are split", format!("{only}, but not {}", ports(&c.split.exclude_ports)));
        if !c.split.exclude.is_empty() {
            line("never split", list(&c.split.exclude));
        }
        let preserve = match t.preserve {
            Preserve::Full => "the client's address and port",
            Preserve::Address => "the client's address",
            Preserve::None => "the gateway",
        };
        line("servers see", preserve.into());
    }
    if let Some(text) = measured(&c) {
        line("evidence", text);
    }
    for (what, target) in [("finished connections", &c.log.flows), ("events", &c.log.events)] {
        match target {
            None => {}
            Some(target) => {
                let rotate = c.log.rotate.filter(|_| matches!(target, log::Target::File(_)));
                let rotated = rotate.map_or(String::new(), |size| {
                    let kept = c.log.kept();
                    format!("; a new file every {:.1} MB, {kept} old ones are kept", size.0 as f64 / 1e6)
                });
                line(what, format!("a line of JSON each, to {target}{rotated}"));
            }
        }
    }
    if let Some(interval) = &c.log.interval {
        let every = interval.0.as_secs_f64();
        line("open connections", format!("a line every {every} s each, where those of finished ones go"));
    }
    let m = &c.metrics;
    let at = m.listen.map_or("by `run --metrics` alone".into(), |at| format!("at http://{at}/metrics"));
    line(
        "metrics",
        format!(
            "{at}; by network behind the link (/{}, IPv6 /{}), {} at most",
            m.prefix_v4, m.prefix_v6, m.prefixes
        ),
    );
    if c.tests_priority() {
        let (port, every) = (c.priority_test.port, c.priority_test.interval.0.as_secs_f64());
        let fallback = c.fallback.cc.name();
        line(
            "low priority",
            format!("tested by UDP port {port} every {every} s; {fallback} where it does not work"),
        );
    }
    if let Some(r) = &c.repair {
        for (what, text) in repair_lines(&c, r) {
            line(what, text);
        }
    }
    let l = &c.limits;
    line(
        "limits",
        format!(
            "{} connections, {} KiB waiting per direction, {} MiB over the link",
            l.flows,
            l.buffer.0 >> 10,
            l.memory.0 >> 20
        ),
    );
    let failure = match c.on_failure {
        _ if c.terrestrial.is_none() => "connections to its ports are refused",
        OnFailure::Bypass => "new connections are forwarded",
        OnFailure::Block => "new connections of hosts are dropped",
    };
    line("without the gateway", failure.into());
    // Without the right to run nft, `evaded` finds nothing.
    for f in doctor::evaded(&c) {
        line(&f.what, f.message);
    }
    line("to see the rules", format!("skyhaul gateway rules {}", args.file.display()));
    print(&out)
}

/// The lines about datagrams that are repaired.
fn repair_lines(c: &Config, r: &Settings) -> Vec<(&'static str, String)> {
    let megabits = |rate: skyhaul_base::Rate| rate.bits_per_sec() as f64 / 1e6;
    let rate = match (r.rate, c.satellite.rate) {
        (Some(own), _) => format!("{} Mbit/s of its own", megabits(own)),
        (None, Some(whole)) => {
            let whole = megabits(whole);
            format!(
                "{whole} Mbit/s that it shares with split connections, each side at least {}",
                whole / 2.0
            )
        }
        (None, None) => String::new(),
    };
    let other =
        r.peer_at().map_or_else(|| "that calls from any address".to_owned(), |peer| format!("at {peer}"));
    let code = if r.fec { format!("a code over at most {} datagrams", r.block) } else { "no code".into() };
    let mut lines = vec![(
        "repaired datagrams",
        format!(
            "everything else that leaves by {}, with the gateway {other}, UDP port {} here; {rate}; {code}, {} repeats, {} of the rate for both; \
             headers {}",
            c.satellite.interface,
            r.port,
            r.retries,
            percent(r.share),
            if r.compress { "compressed" } else { "as they are" }
        ),
    )];
    let passing: Vec<String> = r
        .pass
        .networks
        .iter()
        .map(ToString::to_string)
        .chain(r.pass.ports.iter().map(|p| format!("port {p}")))
        .collect();
    let passing = if passing.is_empty() { String::new() } else { format!(", {}", passing.join(", ")) };
    lines.push(("never repaired", format!("low priority (DSCP LE){passing}")));
    lines
}

/// What a class takes, and its weight.
fn class_line(class: &ClassConfig) -> String {
    let list = |what: &str, of: Vec<String>| (!of.is_empty()).then(|| format!("{what} {}", of.join(", ")));
    let ports = list("ports", class.ports.iter().map(ToString::to_string).collect());
    let dscp = list("DSCP", class.dscp.iter().map(ToString::to_string).collect());
    let takes: Vec<String> = ports.into_iter().chain(dscp).collect();
    let takes = if takes.is_empty() { "every connection".into() } else { takes.join(" with ") };
    format!("{}, weight {}: {takes}", class.name, class.weight)
}

/// The lines about the profile of the link; none without a profile.
fn link_lines(c: &Config) -> Vec<(&'static str, String)> {
    let s = &c.satellite;
    let (Some(profile), Some(rate), Some(link)) = (s.profile, s.rate, s.link_settings()) else {
        return Vec::new();
    };
    let tcp = &c.endpoint.tcp;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut lines = vec![(
        "profile",
        format!(
            "{:?}: a link of your own that carries {} Mbit/s with an RTT of {:.0} ms, whose losses are errors",
            profile.name(),
            rate.bits_per_sec() as f64 / 1e6,
            link.rtt.as_secs_f64() * 1e3
        ),
    )];
    let window = if s.has_own_control() {
        String::new()
    } else {
        format!("a constant window of {} segments, which yields to nobody else on the link; ", link.window)
    };
    lines.push((
        "it sets",
        format!(
            "{window}buffers of {:.1} MiB for receiving and {:.1} MiB for sending, timeouts of at most {:.1} s; clients take turns",
            mebibytes(tcp.receive_buffer),
            mebibytes(tcp.send_buffer),
            tcp.rto.max.as_secs_f64()
        ),
    ));
    lines
}

/// The line on evidence: which connections are measured, and which of them are split; none if evidence is off.
fn measured(c: &Config) -> Option<String> {
    let e = &c.evidence;
    let other =
        c.other.as_ref().map_or("forwarded unsplit".into(), |o| format!("split with {}", o.cc.name()));
    match e.mode {
        Mode::Off => None,
        Mode::Shadow => Some("connections are measured, none is split".into()),
        Mode::Ab => {
            let by = if e.by == AssignmentUnit::Client { "clients" } else { "connections" };
            let share = percent(e.fraction);
            Some(format!("{share} of {by} split with {}, the others {other}", c.endpoint.cc.name()))
        }
    }
}

fn examine(args: &GatewayDoctorArgs, own_command: &[OsString]) -> Result<(), Stop> {
    let config = read(&args.file)?;
    let mut findings = doctor::examine(&config, &args.runtime.folder());
    if let Some(time) = args.watch {
        findings.extend(doctor::watch(&config, time.0));
    }
    if let Some(to) = args.probe {
        let keeper = keeper(own_command);
        let environment = Environment {
            folder: args.runtime.folder(),
            file: args.file.file.clone(),
            keeper,
            metrics: None,
        };
        findings.push(doctor::prove(&config, &environment, args.from, to));
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(findings)))?;
    } else {
        let mut out = String::new();
        let width = findings.iter().map(|f| f.what.chars().count()).max().unwrap_or(0);
        for f in &findings {
            let mark = match f.outcome {
                Outcome::Good => "ok",
                Outcome::Doubtful => "?",
                Outcome::Bad => "FAIL",
            };
            let _ = writeln!(out, "{mark:<4} {:<width$}  {}", f.what, f.message);
        }
        print(&out)?;
    }
    if findings.iter().all(Finding::is_ok) { Ok(()) } else { Err(Stop::Status(1)) }
}

/// Passes the events of a running gateway on to the metrics, the service manager and the terminal.
struct Observer {
    metrics: Option<Metrics>,
    name: String,
    manager: Manager,
    /// Writes lines to standard error.
    notes: Printer,
}

impl RunObserver for Observer {
    fn ready(&mut self, waker: Waker) {
        if let Some(m) = &mut self.metrics {
            let waker = waker.clone();
            m.begin(move || waker.wake());
        }
        let on_signal = waker.clone();
        interrupt::listen_and(move || on_signal.wake());
        self.notes.say(format!("gateway {} runs; Ctrl-C ends it\n", self.name));
        self.manager.ready(waker);
    }
    fn turn(&mut self, status: &dyn Fn(bool) -> Status) -> bool {
        if let Some(m) = &self.metrics {
            m.answer(|| status(false).metrics());
        }
        interrupt::requested()
    }
    fn is_due(&self) -> bool {
        self.manager.is_due()
    }
    fn lives(&mut self, status: &dyn Fn(bool) -> Status) {
        let s = status(false);
        let forwards = if s.admits { "" } else { "; new ones are forwarded" };
        self.manager.lives(&format!("{} connections{forwards}", s.flows));
    }
    fn reloading(&mut self) {
        self.manager.reloading();
    }
    fn reloaded(&mut self) {
        self.manager.reloaded();
    }
    fn stops(&mut self) {
        self.manager.stops();
    }
    fn note(&mut self, line: &str) {
        self.notes.say(format!("gateway {}: {line}\n", self.name));
    }
}

fn clean(args: &GatewayCleanArgs) -> Result<(), Stop> {
    let name = &args.name;
    let done = leftover::clean(&args.runtime.folder(), name, args.keep_block).map_err(Stop::bad)?;
    print(&match done {
        CleanupResult::All => {
            format!("gateway {name}: removed what it had left behind, and restored the settings\n")
        }
        CleanupResult::Nothing => format!("gateway {name}: has left nothing behind\n"),
        CleanupResult::Kept => format!("gateway {name}: connections stay blocked, as its file says\n"),
    })
}

fn serve(args: &GatewayRunArgs, own_command: &[OsString]) -> Result<(), Stop> {
    let config = read(&args.file)?;
    let of_file = |address| {
        Metrics::open_for(address, |message| Stop::bad(config.sources.refuse("metrics.listen", message)))
    };
    let metrics = match (args.metrics, config.metrics.listen) {
        (Some(address), _) => Some(Metrics::open(address)?),
        (None, address) => address.map(of_file).transpose()?,
    };
    let keeper = keeper(own_command);
    let environment = Environment {
        folder: args.runtime.folder(),
        file: args.file.file.clone(),
        keeper,
        metrics: metrics.as_ref().and_then(Metrics::address),
    };
    let notes = Printer::of_notes()?;
    let mut observer = Observer { metrics, name: config.name.clone(), manager: Manager::find(), notes };
    let ran = skyhaul_gateway::run(&config, &environment, &mut observer).map_err(Stop::bad);
    let last = ran.as_ref().map_or(String::new(), |last| {
        format!(
            "gateway {} has ended: {} connections in all, {} of them reset, {:.1} MB carried\n",
            last.name,
            last.counts.from_hosts + last.counts.from_link,
            last.counts.aborted,
            (last.counts.bytes_to_link + last.counts.bytes_to_hosts) as f64 / 1e6
        )
    });
    observer.notes.finish(last)?;
    ran.map(drop)
}

/// The state of the nftables rules, if another program has removed or changed them.
fn rules_line(rules: &RulesStatus) -> Option<String> {
    let who = rules.changed_by.as_deref().unwrap_or("somebody");
    if !rules.in_place {
        return Some(format!(
            "GONE for {:.0} s, removed or changed by {who}; new connections pass unsplit, open ones stand \
             still, and the gateway tries to restore the rules: {}",
            rules.lost_for.unwrap_or(0.0),
            rules.message.as_deref().unwrap_or_default()
        ));
    }
    (rules.restored > 0).then(|| {
        let times = if rules.restored == 1 { "once".into() } else { format!("{} times", rules.restored) };
        format!("restored {times}, last {:.0} s ago, after {who}", rules.last_restored.unwrap_or(0.0))
    })
}

/// Why connections of hosts may not reach the gateway; none if it is proven that they do.
fn proof_line(proof: &ProofStatus) -> Option<String> {
    let cause = proof.cause.as_deref().unwrap_or_default();
    match proof.state {
        ProofState::Works => None,
        ProofState::Unproven => Some("not known yet whether connections of hosts reach the gateway".into()),
        ProofState::Doubtful => {
            Some(format!("DOUBTFUL, connections of hosts may not reach the gateway: {cause}"))
        }
        ProofState::Withdrawn => {
            Some(format!("WITHDRAWN for {:.0} s: {cause}", proof.lasts.unwrap_or_default()))
        }
    }
}

/// Interfaces towards hosts, as text.
fn or_none(hosts: &[String]) -> String {
    if hosts.is_empty() { "forwarded ports".into() } else { hosts.join(", ") }
}

/// The status as text: counters, doubts, networks, and the connections if the status lists them.
fn page(s: &Status) -> String {
    let (c, flows) = (&s.counts, s.flows);
    let megabytes = |n: u64| format!("{:.1} MB", n as f64 / 1e6);
    let mut out = format!(
        "{} (skyhaul {}): up {:.0} s, {}, {flows} connection{} open, {} of memory over the link\n",
        s.name,
        s.version,
        s.uptime,
        if s.admits { "splits new connections" } else { "FORWARDS new connections unsplit" },
        if flows == 1 { "" } else { "s" },
        megabytes(s.memory),
    );
    let mut line = |what: &str, cells: &[(&str, String)]| {
        let cells: Vec<_> = cells.iter().map(|(what, n)| format!("{what} {n}")).collect();
        let _ = writeln!(out, "{what:<9}{}", cells.join("   "));
    };
    line(
        "opened",
        &[("by hosts", c.from_hosts.to_string()), ("from behind the link", c.from_link.to_string())],
    );
    line(
        "ended",
        &[
            ("in order", c.finished.to_string()),
            ("reset", c.aborted.to_string()),
            ("refused", c.refused.to_string()),
            ("timed out", c.stuck.to_string()),
        ],
    );
    line(
        "carried",
        &[
            ("to the link", megabytes(c.bytes_to_link)),
            ("to hosts", megabytes(c.bytes_to_hosts)),
            ("lost in resets", format!("{} bytes", c.bytes_lost)),
        ],
    );
    line("between", &[("hosts at", or_none(&s.hosts)), ("the link at", s.link.clone())]);
    if let Some(at) = s.metrics {
        line("metrics", &[("at", format!("http://{at}/metrics"))]);
    }
    if let Some(text) = rules_line(&s.rules) {
        line("rules", &[("of nftables", text)]);
    }
    if let Some(text) = s.proof.as_ref().and_then(proof_line) {
        line("proof", &[("", text)]);
    }
    if let Some(r) = &s.repair {
        let state = match &r.cause {
            None => format!("datagrams with {} for {:.0} s, largest {} bytes", r.peer, r.lasts, r.mtu),
            Some(why) => format!("NOT for {:.0} s: {why}", r.lasts),
        };
        line("repairs", &[("", state)]);
        let t = &r.totals;
        let rtt = r.rtt.map_or("—".into(), |rtt| format!("{:.0} ms", rtt * 1e3));
        line(
            "repaired",
            &[
                ("loss", percent(r.loss)),
                ("RTT", rtt),
                ("sent", megabytes(t.source_bytes)),
                ("headers", megabytes(t.header_bytes)),
                ("saved", megabytes(t.saved_bytes)),
                ("symbols and repeats", megabytes(t.repair_bytes)),
                ("delivered", t.delivered.to_string()),
                ("recovered", t.recovered.to_string()),
                ("lost", t.lost.to_string()),
                ("refused", (t.forged + t.replayed + t.malformed).to_string()),
            ],
        );
    }
    if s.turned_away > 0 {
        line("refused", &[("for want of descriptors", s.turned_away.to_string())]);
    }
    let dropped = [
        ("between threads", s.queues_full, "packets"),
        ("low-priority", s.probes_dropped, "probes"),
        ("of the logs", s.lines_lost, "lines"),
    ];
    for (what, n, unit) in dropped.into_iter().filter(|(_, n, _)| *n > 0) {
        line("dropped", &[(what, format!("{n} {unit}"))]);
    }
    for c in &s.classes {
        line("class", &[(c.name.as_str(), format!("(weight {}) sent {}", c.weight, megabytes(c.sent)))]);
    }
    if s.held_subscribers > 0 {
        line("held", &[("by their rate", format!("{} subscribers", s.held_subscribers))]);
    }
    out += &evidence::summary(s);
    out += &prefixes(&s.prefixes);
    if s.list.is_empty() {
        return out;
    }
    let head = [
        "flow",
        "client",
        "server",
        "age s",
        "to link B",
        "to hosts B",
        "waiting B",
        "cwnd",
        "SRTT ms",
        "resent",
    ];
    let mut table = Grid::new(&head).left(1).left(2);
    for f in &s.list {
        table.row(vec![
            f.number.to_string(),
            f.client.to_string(),
            f.server.to_string(),
            format!("{:.1}", f.age),
            f.to_link.to_string(),
            f.to_hosts.to_string(),
            f.waiting.to_string(),
            format!("{:.0}", f.cwnd),
            format!("{:.1}", f.srtt * 1e3),
            f.retransmitted.to_string(),
        ]);
    }
    out.push('\n');
    out + &table.lines(0)
}

/// Number of networks that the page shows: those that carried most bytes.
const SHOWN: usize = 10;

/// A table of the networks behind the link.
fn prefixes(all: &[PrefixStatus]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut by_bytes: Vec<_> = all.iter().collect();
    by_bytes.sort_by_key(|p| std::cmp::Reverse(p.to_link + p.to_hosts));
    let head = [
        "behind the link",
        "open",
        "RTT ms",
        "loss",
        "resent",
        "timeouts",
        "goodput to link",
        "to hosts",
        "carried",
    ];
    let mut table = Grid::new(&head).left(0);
    for p in by_bytes.iter().take(SHOWN) {
        table.row(vec![
            p.prefix.clone(),
            p.flows.to_string(),
            format!("{:.1}", p.srtt * 1e3),
            percent(p.loss),
            p.retransmitted.to_string(),
            p.timeouts.to_string(),
            bit_rate(p.goodput_to_link),
            bit_rate(p.goodput_to_hosts),
            format!("{:.1} MB", (p.to_link + p.to_hosts) as f64 / 1e6),
        ]);
    }
    let more = all.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("{more} more: status --json\n") } else { String::new() };
    format!("\n{}{rest}", table.lines(0))
}

fn status(args: &GatewayStatusArgs) -> Result<(), Stop> {
    let folder = args.gateway.runtime.folder();
    let running = place::running(&folder);
    if args.gateway.name.is_none() && running.len() > 1 {
        return list_all(args, running.into_iter().map(|name| Target { folder: folder.clone(), name }));
    }
    let target = Target::of(&args.gateway)?;
    if args.gateway.name.is_none() && running.is_empty() {
        let elsewhere = place::running_elsewhere(&folder);
        let names: Vec<_> =
            elsewhere.iter().map(|(folder, name)| format!("{name} --runtime {}", folder.display())).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            return Err(Stop::bad(format!(
                "no gateway runs in this network namespace; in others: skyhaul gateway status {names}"
            )));
        }
    }
    let v = target.ask_json(if args.flows { "list" } else { "status" })?;
    let status = target.parse(v.clone())?;
    print(&if args.json { format!("{v:#}\n") } else { page(&status) })?;
    if args.check && !status.works() { Err(Stop::Status(1)) } else { Ok(()) }
}

/// Several gateways, in a line each; with `--flows` also the status of each with its connections.
fn list_all(args: &GatewayStatusArgs, all: impl Iterator<Item = Target>) -> Result<(), Stop> {
    let (mut values, mut pages) = (Vec::new(), String::new());
    let mut works = true;
    let head = ["gateway", "process", "up s", "open", "hosts", "link", "new connections"];
    let mut table = Grid::new(&head).left(0).left(4).left(5).left(6);
    for target in all {
        let v = target.ask_json(if args.flows { "list" } else { "status" })?;
        let s: Status = target.parse(v.clone())?;
        works &= s.works();
        if args.flows {
            pages += &format!("\n{}", page(&s));
        }
        let admission = match (s.admits, s.works()) {
            (false, _) => "FORWARDED unsplit",
            (true, false) => "split, not known to work",
            (true, true) => "split",
        };
        let (up, open) = (format!("{:.0}", s.uptime), s.flows.to_string());
        table.row(vec![s.name, s.pid.to_string(), up, open, or_none(&s.hosts), s.link, admission.into()]);
        values.push(v);
    }
    print(&if args.json { format!("{:#}\n", Value::Array(values)) } else { table.lines(0) + &pages })?;
    if args.check && !works { Err(Stop::Status(1)) } else { Ok(()) }
}

fn top(args: &GatewayNameArgs) -> Result<(), Stop> {
    let target = Target::of(args)?;
    interrupt::listen();
    while !interrupt::requested() {
        let s = target.parse(target.ask_json("list")?)?;
        redraw(&page(&s))?;
        for _ in 0..10 {
            if !interrupt::requested() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }
    Ok(())
}
