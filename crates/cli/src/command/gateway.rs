//! `skyhaul gateway`.

mod capture;
mod notify;

use super::evidence;
use super::metrics::Metrics;
use crate::args::{
    GatewayCleanArgs, GatewayCommand, GatewayDoctorArgs, GatewayFile, GatewayNameArgs, GatewayRunArgs,
    GatewayStatusArgs,
};
use crate::interrupt;
use crate::output::print;
use crate::stop::Stop;
use notify::Manager;
use serde_json::Value;
use skyhaul_gateway::config::{OnFailure, Preserve};
use skyhaul_gateway::evidence::{By, Mode};
use skyhaul_gateway::leftover::{self, Cleaned};
use skyhaul_gateway::status::Status;
use skyhaul_gateway::{Config, Surroundings, Watcher, control, doctor, rules, system};
use skyhaul_lab::text::{Grid, percent};
use skyhaul_net::wait::Waker;
use std::ffi::OsString;
use std::fmt::Write;

/// The hidden command.
const KEEPER: [&str; 2] = ["gateway", "keeper"];
/// Placeholders for the ports that the kernel picks at run time.
const SOME: rules::Ports = rules::Ports { v4: 5000, v6: 5001 };

/// The command line of the keeper.
fn keeper(again: &[OsString]) -> Vec<OsString> {
    [again, &KEEPER.map(Into::into)].concat()
}

pub(crate) fn run(command: &GatewayCommand, again: &[OsString]) -> Result<(), Stop> {
    match command {
        GatewayCommand::Check(args) => check(args),
        GatewayCommand::Rules(args) => {
            let config = read(args)?;
            print(&format!("{}\n{}", rules::all(&config, SOME, false), rules::routing(&config)))
        }
        GatewayCommand::Doctor(args) => examine(args, again),
        GatewayCommand::Run(args) => serve(args, again),
        GatewayCommand::Status(args) => status(args),
        GatewayCommand::Top(args) => top(args),
        GatewayCommand::Evidence(args) => {
            let v = asked(&args.of, "evidence")?;
            if args.json { print(&format!("{v:#}\n")) } else { print(&evidence::page(&v)) }
        }
        GatewayCommand::Stop(args) => {
            control::ask(&args.runtime, &args.name, "stop").map_err(Stop::bad).and_then(|said| print(&said))
        }
        GatewayCommand::Reload(args) => {
            let said = control::ask(&args.runtime, &args.name, "reload").map_err(Stop::bad)?;
            if said == "reloaded\n" { print(&said) } else { Err(Stop::bad(said.trim())) }
        }
        GatewayCommand::Capture(args) => capture::run(args),
        GatewayCommand::Clean(args) => clean(args),
        GatewayCommand::Keeper(args) => {
            system::keep(&args.words);
            Ok(())
        }
    }
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
    let mut line = |what: &str, says: String| {
        let _ = writeln!(out, "{what:<22} {says}");
    };
    line("gateway", format!("{}, table inet {}, interface {}", c.name, rules::table(&c), c.interface()));
    if let Some(t) = &c.terrestrial {
        line("hosts", format!("{} on {}", list(&t.networks), t.interface));
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
    line(
        "over the link",
        format!("{}, {rate}, packets of at most {} bytes", c.endpoint.cc.name(), c.satellite.mtu),
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
    if let Some(says) = measured(&c) {
        line("evidence", says);
    }
    if c.tests_priority() {
        let (port, every) = (c.priority_test.port, c.priority_test.interval.0.as_secs_f64());
        let fallback = c.fallback.cc.name();
        line(
            "low priority",
            format!("tested by UDP port {port} every {every} s; {fallback} where it does not work"),
        );
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
    line("to see the rules", format!("skyhaul gateway rules {}", args.file.display()));
    print(&out)
}

/// What is measured.
fn measured(c: &Config) -> Option<String> {
    let e = &c.evidence;
    let other =
        c.other.as_ref().map_or("forwarded unsplit".into(), |o| format!("split with {}", o.cc.name()));
    match e.mode {
        Mode::Off => None,
        Mode::Shadow => Some("connections are measured, none is split".into()),
        Mode::Ab => {
            let by = if e.by == By::Client { "clients" } else { "connections" };
            let share = percent(e.fraction);
            Some(format!("{share} of {by} split with {}, the others {other}", c.endpoint.cc.name()))
        }
    }
}

fn examine(args: &GatewayDoctorArgs, again: &[OsString]) -> Result<(), Stop> {
    let config = read(&args.file)?;
    let mut findings = doctor::examine(&config, &args.runtime);
    if let Some(time) = args.watch {
        findings.extend(doctor::watch(&config, time.0));
    }
    if let Some(to) = args.probe {
        let keeper = keeper(again);
        let surroundings =
            Surroundings { folder: args.runtime.clone(), file: args.file.file.clone(), keeper };
        findings.push(doctor::prove(&config, &surroundings, args.from, to));
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(findings)))?;
    } else {
        let mut out = String::new();
        let width = findings.iter().map(|f| f.what.chars().count()).max().unwrap_or(0);
        for f in &findings {
            let mark = if !f.ok {
                "FAIL"
            } else if f.doubt {
                "?"
            } else {
                "ok"
            };
            let _ = writeln!(out, "{mark:<4} {:<width$}  {}", f.what, f.says);
        }
        print(&out)?;
    }
    if findings.iter().all(|f| f.ok) { Ok(()) } else { Err(Stop::Status(1)) }
}

struct Watch {
    metrics: Option<Metrics>,
    name: String,
    manager: Manager,
}

impl Watcher for Watch {
    fn ready(&mut self, waker: Waker) {
        if let Some(m) = &mut self.metrics {
            let waker = waker.clone();
            m.begin(move || waker.wake());
        }
        let again = waker.clone();
        interrupt::listen_and(move || again.wake());
        eprintln!("gateway {} runs; Ctrl-C ends it", self.name);
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
        let more = if s.admits { "" } else { "; new ones are forwarded" };
        self.manager.lives(&format!("{} connections{more}", s.flows));
    }
    fn reloads(&mut self, done: bool) {
        self.manager.reloads(done);
    }
    fn stops(&mut self) {
        self.manager.stops();
    }
    fn note(&mut self, line: &str) {
        eprintln!("gateway {}: {line}", self.name);
    }
}

fn clean(args: &GatewayCleanArgs) -> Result<(), Stop> {
    let name = &args.of.name;
    let done = leftover::clean(&args.of.runtime, name, args.keep_block).map_err(Stop::bad)?;
    print(&match done {
        Cleaned::All => {
            format!("gateway {name}: removed what it had left behind, and restored the settings\n")
        }
        Cleaned::Nothing => format!("gateway {name}: has left nothing behind\n"),
        Cleaned::Kept => format!("gateway {name}: connections stay blocked, as its file says\n"),
    })
}

fn serve(args: &GatewayRunArgs, again: &[OsString]) -> Result<(), Stop> {
    let config = read(&args.file)?;
    let metrics = args.metrics.map(Metrics::open).transpose()?;
    let keeper = keeper(again);
    let surroundings = Surroundings { folder: args.runtime.clone(), file: args.file.file.clone(), keeper };
    let mut watch = Watch { metrics, name: config.name.clone(), manager: Manager::find() };
    let last = skyhaul_gateway::run(&config, &surroundings, &mut watch).map_err(Stop::bad)?;
    eprintln!(
        "gateway {} has ended: {} connections in all, {} of them reset, {:.1} MB carried",
        last.name,
        last.counts.from_hosts + last.counts.from_link,
        last.counts.aborted,
        (last.counts.bytes_to_link + last.counts.bytes_to_hosts) as f64 / 1e6
    );
    Ok(())
}

fn asked(of: &GatewayNameArgs, word: &str) -> Result<Value, Stop> {
    let said = control::ask(&of.runtime, &of.name, word).map_err(Stop::bad)?;
    serde_json::from_str(&said)
        .map_err(|_| Stop::bad(format!("the gateway {:?} says: {}", of.name, said.trim())))
}

fn number(v: &Value, key: &str) -> f64 {
    v.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

/// What has become of the rules of nftables, if others have removed or changed them.
fn rules_line(rules: &Value) -> Option<String> {
    let who = rules["changed-by"].as_str().unwrap_or("somebody");
    if rules["in-place"] == false {
        return Some(format!(
            "GONE for {:.0} s by {who}, new connections pass unsplit and open ones stand still; it tries again: {}",
            number(rules, "lost-for"),
            rules["message"].as_str().unwrap_or_default()
        ));
    }
    let restored = number(rules, "restored");
    (restored > 0.0).then(|| {
        let times = if restored == 1.0 { "once".into() } else { format!("{restored} times") };
        format!("restored {times}, last {:.0} s ago, after {who}", number(rules, "last-restored"))
    })
}

fn page(v: &Value) -> String {
    let c = &v["counts"];
    let count = |key: &str| number(c, key);
    let flows = number(v, "flows");
    let megabytes = |n: f64| format!("{:.1} MB", n / 1e6);
    let mut out = format!(
        "{}: up {:.0} s, {}, {flows} connection{} open, {} of memory over the link\n",
        v["name"].as_str().unwrap_or("?"),
        number(v, "uptime"),
        if v["admits"] == true { "splits new connections" } else { "FORWARDS new connections unsplit" },
        if flows == 1.0 { "" } else { "s" },
        megabytes(number(v, "memory")),
    );
    let mut line = |what: &str, cells: &[(&str, String)]| {
        let cells: Vec<_> = cells.iter().map(|(what, n)| format!("{what} {n}")).collect();
        let _ = writeln!(out, "{what:<9}{}", cells.join("   "));
    };
    let whole = |key: &str| count(key).to_string();
    line("opened", &[("by hosts", whole("from-hosts")), ("from behind the link", whole("from-link"))]);
    line(
        "ended",
        &[
            ("in order", whole("finished")),
            ("reset", whole("aborted")),
            ("refused", whole("refused")),
            ("timed out", whole("stuck")),
        ],
    );
    line(
        "carried",
        &[
            ("to the link", megabytes(count("bytes-to-link"))),
            ("to hosts", megabytes(count("bytes-to-hosts"))),
            ("lost in resets", format!("{} bytes", count("bytes-lost"))),
        ],
    );
    if let Some(says) = rules_line(&v["rules"]) {
        line("rules", &[("of nftables", says)]);
    }
    if number(v, "turned-away") > 0.0 {
        line("refused", &[("for want of descriptors", number(v, "turned-away").to_string())]);
    }
    if number(v, "queues-full") > 0.0 {
        line("dropped", &[("between threads", format!("{} packets", number(v, "queues-full")))]);
    }
    out += &evidence::summary(v);
    let list = v["list"].as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
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
    for f in list {
        let end = |key: &str| f[key].as_str().unwrap_or("?").to_owned();
        let n = |key: &str| number(f, key);
        table.row(vec![
            n("number").to_string(),
            end("client"),
            end("server"),
            format!("{:.1}", n("age")),
            n("to-link").to_string(),
            n("to-hosts").to_string(),
            n("waiting").to_string(),
            format!("{:.0}", n("cwnd")),
            format!("{:.1}", n("srtt") * 1e3),
            n("retransmitted").to_string(),
        ]);
    }
    out.push('\n');
    out + &table.lines(0)
}

fn status(args: &GatewayStatusArgs) -> Result<(), Stop> {
    let v = asked(&args.of, if args.flows { "list" } else { "status" })?;
    if args.json { print(&format!("{v:#}\n")) } else { print(&page(&v)) }
}

fn top(args: &GatewayNameArgs) -> Result<(), Stop> {
    interrupt::listen();
    while !interrupt::requested() {
        let v = asked(args, "list")?;
        // From the upper left corner, over what was there.
        print(&format!("\x1b[H\x1b[2J{}", page(&v)))?;
        for _ in 0..10 {
            if !interrupt::requested() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }
    Ok(())
}
