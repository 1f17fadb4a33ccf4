//! A gateway from its setup to its shutdown.

use crate::capture::{self, Request};
use crate::config::Config;
use crate::control::{self, Answer, Control};
use crate::descriptors;
use crate::error::{GatewayError, MORE_DESCRIPTORS};
use crate::evidence::Observer;
use crate::forward;
use crate::gateway::Gateway;
use crate::log::{Level, Log, Outputs, Writer};
use crate::members::Members;
use crate::priority::Service;
use crate::proof::{Proof, Prover};
use crate::repair::{self, Share};
use crate::rules::{self, Ends};
use crate::saved_settings::Turn;
use crate::slot::Slot;
use crate::status::Status;
use crate::system::{Installed, Lock, take_slot};
use crate::watch::RulesWatch;
use serde_json::{Value, json};
use skyhaul_net::driver::Driver;
use skyhaul_net::host::Host;
use skyhaul_net::host::exchange::Exchange;
use skyhaul_net::tap::Socket;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::{Clock, NetError, ipv6, wait::Waker};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The address of a TUN interface that needs none: the IPv4 dummy address, which belongs to nobody (192.0.0.8, RFC 7600). Packets from an
/// interface without an address fail the source check (rp_filter), even in loose mode.
const DUMMY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// The environment of a gateway, beside its configuration.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Directory of its lock and its control socket.
    pub folder: PathBuf,
    /// The configuration file, which a reload reads again.
    pub file: PathBuf,
    /// The command line that starts this program again so that it calls [`crate::system::keep`]; the arguments of that
    /// function are appended. If it is empty, nothing cleans up after a gateway that is killed.
    pub keeper: Vec<OsString>,
    /// Where the metrics are served, if they are; the observer of the run serves them.
    pub metrics: Option<SocketAddr>,
}

/// An observer of a running gateway.
pub trait RunObserver {
    /// The gateway is ready; the handle wakes it, so that [`Self::turn`] is called.
    fn ready(&mut self, waker: Waker);
    /// Whether it is time for [`Self::lives`].
    fn is_due(&self) -> bool {
        false
    }
    /// Called when all threads of the gateway have had a turn since [`Self::is_due`].
    fn lives(&mut self, _status: &dyn Fn(bool) -> Status) {}
    /// Called in every iteration of the event loop; `status` returns the current state, with the connections if its argument is true.
    /// Returns whether the gateway is to stop.
    fn turn(&mut self, status: &dyn Fn(bool) -> Status) -> bool;
    /// The gateway is about to read its file again.
    fn reloading(&mut self) {}
    /// The gateway has read its file again, whether it accepted the file or not.
    fn reloaded(&mut self) {}
    /// The gateway is stopping, and gives its connections time to end.
    fn stops(&mut self) {}
    /// Something happened that belongs in a log, in one line.
    fn note(&mut self, _line: &str) {}
}

/// Time for a capture to send the rest when the gateway ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// Interval between checks of routes and routing rules, and between signs of life for the keeper.
const RENEWAL: skyhaul_base::Duration = skyhaul_base::Duration::from_secs(1);

/// Minimum interval between two lines about connections that were refused for want of descriptors.
const REPORT_INTERVAL: skyhaul_base::Duration = skyhaul_base::Duration::from_secs(10);

/// Captures of packets and events, one at a time.
struct Captures {
    socket: Arc<Socket>,
    interface: String,
    /// The channel through which a capture reports its end.
    over: (Sender<()>, Receiver<()>),
}

impl Captures {
    fn new(socket: Arc<Socket>, interface: &str) -> Self {
        Self { socket, interface: interface.into(), over: channel() }
    }
    fn begin(
        &self,
        now: skyhaul_base::Instant,
        gateway: &mut Gateway,
        host: &mut Host,
        (name, text): (&str, &str),
        log: &Log,
    ) -> Answer {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(e) => return Answer::Text(format!("this is no request for a capture: {e}\n")),
        };
        if self.socket.is_taken() {
            let message = "another capture is under way: wait for its end, or end it with Ctrl-C\n";
            return Answer::Text(message.into());
        }
        let (tap, reader, flow) = match gateway.capture(now, host, &request) {
            Ok(begun) => begun,
            Err(message) => return Answer::Text(format!("{message}\n")),
        };
        self.socket.attach(tap);
        log.event(Level::Info, "capture", json!({ "request": request }));
        let (gateway, interface) = (name.to_owned(), self.interface.clone());
        let running =
            capture::Running { request, reader, socket: self.socket.clone(), gateway, interface, flow };
        let over = self.over.0.clone();
        Answer::Stream(Box::new(move |stream| {
            running.stream(stream);
            let _ = over.send(());
        }))
    }
    /// Ends a capture that is under way.
    fn end(&self) {
        if self.socket.is_taken() {
            while self.over.1.try_recv().is_ok() {}
            self.socket.detach();
            let _ = self.over.1.recv_timeout(PATIENCE);
        }
    }
}

/// Opens the gateway's interface. The kernel removes that of a gateway that was killed, but maybe only after the next one starts.
fn open_device(device: &TunConfig, threads: usize) -> Result<Vec<Tun>, NetError> {
    for _ in 0..50 {
        match Tun::open_queues(device, threads) {
            Err(NetError::NameInUse(_)) => std::thread::sleep(std::time::Duration::from_millis(20)),
            opened => return opened,
        }
    }
    Tun::open_queues(device, threads)
}

/// Runs a gateway until a signal or the control socket stops it, in the calling thread's network namespace.
///
/// # Errors
/// If a system call fails; nothing is left behind.
pub fn run(
    config: &Config,
    environment: &Environment,
    run_observer: &mut impl RunObserver,
) -> Result<Status, GatewayError> {
    for name in config.interfaces() {
        nix::net::if_::if_nametoindex(name.as_str()).map_err(|_| NetError::NoInterface(name.clone()))?;
    }
    forward::refuse_loops(&config.forward)?;
    let limit = descriptors::raise();
    let (flows, few) = descriptors::room(config, limit)?;
    let started = config;
    let mut fitted = config.clone();
    fitted.limits.flows = flows;
    let _lock = Lock::take(&environment.folder, &config.name)?;
    let turn = Turn::wait(&environment.folder);
    fitted.slot = take_slot(&fitted, &environment.folder, &turn)?;
    let config = &fitted;
    let mut writer = Writer::begin(&config.log, &config.name)?;
    let mut log = writer.log();
    let mut gateways = Gateway::all(Clock::now(), config)?;
    let device = TunConfig {
        name: Some(config.interface()),
        addresses: if config.forwards_ports() {
            vec![(config.slot.tun_address().into(), 30)]
        } else {
            vec![(DUMMY, 32)]
        },
        mtu: config.satellite.mtu,
        // Pacing needs packets of their size on the link, not offloaded ones.
        offload: config.satellite.rate.is_none(),
    };
    let queues = open_device(&device, config.limits.threads)?;
    let mut drivers = drivers(&gateways, queues, Gateway::hosts(config)?)?;
    let mut driver = drivers.remove(0);
    let index = driver.tun().index()?;
    let share = config.satellite.rate.map(Share::new);
    match (&share, config.satellite.rate) {
        (Some(share), _) if config.repair.as_ref().is_some_and(|r| r.rate.is_none()) => {
            driver.shape_as(share.split_rate());
        }
        (_, Some(rate)) => driver.shape(rate),
        (_, None) => {}
    }
    let observer = Observer::start(config)?;
    if let Some(observer) = &observer {
        gateways.iter_mut().for_each(|g| g.observed_by(observer.results()));
    }
    let waker = driver.waker();
    let wake = waker.clone();
    let service = Service::start(config, driver.host().config().gateway, move || wake.wake())?;
    if let Some(service) = &service {
        gateways.iter_mut().for_each(|g| g.test_with(service.trust()));
    }
    let mut gateway = gateways.remove(0);
    let mut members = Members::start(gateways.into_iter().zip(drivers).collect(), &waker)?;
    gateway.set_log(log.clone());
    gateway.metrics_at = environment.metrics;
    let wake = waker.clone();
    let orders = Control::open(&environment.folder, &config.name, move || wake.wake())?;
    let mut installed =
        Installed::put(config, gateway.ports(), index, (&environment.folder, &environment.keeper), turn)?;
    let wake = waker.clone();
    let repair = repair::Service::start(config, share.clone(), move || wake.wake())?;
    gateway.repair = repair.as_ref().map(repair::Service::view);
    let captures = Captures::new(driver.socket(), &config.interface());
    let proof = Proof::default();
    let wake = waker.clone();
    let prover = Prover::start(config, proof.clone(), move || wake.wake())?;
    gateway.proof = prover.is_some().then(|| proof.clone());
    let wake = waker.clone();
    let watch = RulesWatch::start(rules::table(config), installed.intended(), move || wake.wake())?;
    let warn = |run_observer: &mut dyn RunObserver, log: &Log, name: &str, line: &str| {
        log.event(Level::Warning, name, json!({ "message": line }));
        run_observer.note(line);
    };
    log.event(
        Level::Info,
        "started",
        json!({ "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id() }),
    );
    if let Some(line) = few {
        warn(run_observer, &log, "few-descriptors", &line);
    }
    if let Some(why) = ipv6::why_off().filter(|_| config.splits_ipv6()) {
        let line = format!("IPv6 is off ({why}): only connections of IPv4 are split; {}", ipv6::REMEDY);
        warn(run_observer, &log, "no-ipv6", &line);
    }
    run_observer.ready(waker);
    let (mut turned_away, mut reported_at) = (0, None);
    let mut failure = None;
    let (mut stop_ordered, mut stopping) = (false, false);
    let (mut had_room, mut admitted) = (true, true);
    let (mut renew_at, mut lives_at) = (skyhaul_base::Instant::ZERO, skyhaul_base::Instant::ZERO);
    let each = |now, gateway: &mut Gateway, host: &mut Host| {
        // Routes and rules come first, so that the answers to commands below report their new state.
        if prover.is_some() && (now >= renew_at || proof.routes_changed()) {
            renew_at = now + RENEWAL;
            proof.routes(now, &installed.renew_routes());
        }
        // The prover wakes this thread every second.
        if prover.is_some() && now >= lives_at && gateway.all_run() {
            lives_at = now + RENEWAL;
            installed.live();
        }
        while let Some(news) = proof.next_news() {
            log.event(news.level, news.event, json!({ "message": news.line }));
            run_observer.note(&news.line);
        }
        if let Some(view) = &gateway.repair {
            if let Some(share) = &share {
                share.note(host.sent_by_class().iter().sum());
            }
            while let Some(news) = view.next_news() {
                log.event(news.level, news.event, json!({ "message": news.line }));
                run_observer.note(&news.line);
            }
        }
        let room = gateway.admits();
        let admits = proof.admits();
        if std::mem::replace(&mut admitted, admits) && !admits {
            gateway.give_up_unanswered();
        }
        let mended = match installed.admit((room && admits, proof.tracks()), || gateway.ends(host)) {
            Err(e) => Some((Err(e), None)),
            Ok(()) => watch.alarm().map(|author| (installed.mend(|| gateway.ends(host)), author)),
        };
        match mended {
            Some((Ok(true), author)) => {
                let line = gateway.rules.restored(now, author);
                warn(run_observer, &log, "rules-restored", &line);
            }
            Some((Err(e), author)) => {
                if let Some(line) = gateway.rules.lost(now, author, &e) {
                    log.event(Level::Error, "rules-lost", json!({ "message": line }));
                    run_observer.note(&line);
                }
            }
            Some((Ok(false), _)) | None => {}
        }
        let away = gateway.turned_away();
        if away > turned_away && reported_at.is_none_or(|at| now >= at + REPORT_INTERVAL) {
            reported_at = Some(now);
            let line = format!(
                "{} connections were refused, since the process has no descriptor left for them: {}",
                away - std::mem::replace(&mut turned_away, away),
                MORE_DESCRIPTORS
            );
            log.event(Level::Error, "no-descriptor", json!({ "message": line }));
            run_observer.note(&line);
        }
        if std::mem::replace(&mut had_room, room) != room && !stop_ordered {
            let (level, name) = if !room { (Level::Warning, "full") } else { (Level::Info, "room-again") };
            log.event(level, name, json!({ "flows": gateway.status(now, host, false).flows }));
        }
        while let Some(asked) = orders.next() {
            let (word, rest) = asked.word.split_once(' ').unwrap_or((&asked.word, ""));
            if word == control::PROBE {
                match serde_json::from_str(rest) {
                    Ok(target) => gateway.probe(now, host, target, asked.answer),
                    Err(e) => drop(asked.answer.send(format!("this is no probe: {e}\n").into())),
                }
                continue;
            }
            if word == control::CAPTURE {
                let answer = captures.begin(now, gateway, host, (&config.name, rest), &log);
                let _ = asked.answer.send(answer);
                continue;
            }
            let status = |list| serde_json::to_string(&gateway.status(now, host, list)).unwrap_or_default();
            let answer = match asked.word.as_str() {
                "status" => status(false),
                "list" => status(true),
                "evidence" => {
                    let report = observer.as_ref().map(|o| o.results().report(true));
                    serde_json::to_string(&report).unwrap_or_default()
                }
                "metrics" => gateway.status(now, host, false).metrics(),
                "stop" => {
                    stop_ordered = true;
                    "stopping\n".into()
                }
                "reload" => {
                    run_observer.reloading();
                    let outcome = reload(
                        (started, config.slot),
                        &environment.file,
                        &mut installed,
                        &mut writer,
                        || gateway.ends(host),
                    );
                    run_observer.reloaded();
                    match outcome {
                        Ok((mut new, to)) => {
                            new.limits.flows = flows;
                            gateway.reconfigure(&new, host);
                            gateway.set_log(to.clone());
                            log = to;
                            log.event(Level::Info, "reloaded", json!({}));
                            "reloaded\n".into()
                        }
                        Err(e) => {
                            log.event(Level::Error, "reload-refused", json!({ "message": e.to_string() }));
                            format!("{e}\n")
                        }
                    }
                }
                _ => "write status, list, evidence, metrics, capture, probe, reload or stop\n".into(),
            };
            let _ = asked.answer.send(answer.into());
        }
        while let Some(line) = service.as_ref().and_then(|s| s.trust().next_line()) {
            run_observer.note(&line);
        }
        // A thread that has failed ends the gateway, so that the service manager starts it again.
        let panicked = observer.as_ref().is_some_and(Observer::has_ended)
            || service.as_ref().is_some_and(Service::has_ended)
            || repair.as_ref().is_some_and(repair::Service::has_ended);
        if panicked {
            failure.get_or_insert_with(GatewayError::panicked);
        }
        if (panicked || members.have_ended()) && !stop_ordered {
            log.event(Level::Error, "thread-lost", json!({}));
            stop_ordered = true;
        }
        if run_observer.is_due() && gateway.all_run() {
            run_observer.lives(&|list| gateway.status(now, host, list));
        }
        stop_ordered |= run_observer.turn(&|list| gateway.status(now, host, list));
        if stop_ordered && !std::mem::replace(&mut stopping, true) {
            run_observer.stops();
            log.event(Level::Info, "stopping", json!({ "flows": gateway.status(now, host, false).flows }));
        }
        stop_ordered
    };
    // A panic outside the work of a connection leaves this thread in an unknown state: the gateway ends.
    let ran = catch_unwind(AssertUnwindSafe(|| driver.run(&mut gateway, each)));
    let ran = ran.map_or_else(|_| Some(GatewayError::panicked()), |ran| ran.err().map(GatewayError::from));
    captures.end();
    let (others, failed) = members.end();
    let mut last = gateway.status(Clock::now(), driver.host(), false);
    others.into_iter().for_each(|other| last.add(other, 0));
    drop(repair);
    drop(watch);
    drop(prover);
    drop(installed);
    let failure = ran.or(failed).or(failure);
    let message = failure.as_ref().map_or(Value::Null, |e| e.to_string().into());
    let level = if failure.is_some() { Level::Error } else { Level::Info };
    log.event(level, "stopped", json!({ "counts": last.counts, "message": message }));
    failure.map_or(Ok(last), Err)
}

/// The drivers of a gateway, one for each thread, with a queue of the device of its own.
fn drivers(gateways: &[Gateway], queues: Vec<Tun>, hosts: Vec<Host>) -> Result<Vec<Driver>, NetError> {
    let exchange = (gateways.len() > 1).then(|| Arc::new(Exchange::new(gateways.len())));
    let mut all: Vec<Driver> = Vec::new();
    for ((gateway, queue), host) in gateways.iter().zip(queues).zip(hosts) {
        let mut driver = Driver::new(queue, host)?;
        driver.also_wait_for(gateway.descriptor())?;
        gateway.set_waker(driver.waker());
        if let Some(exchange) = &exchange {
            driver.exchange(exchange.clone());
            gateway.set_exchange(exchange.clone());
        }
        if let Some(first) = all.first() {
            driver.tap_with(first.socket());
        }
        all.push(driver);
    }
    Ok(all)
}

/// Reads the file again, and switches to its rules and logs, if the change is possible while the gateway runs. After an error, the old rules
/// and logs are still in use. `started` is the configuration with which the gateway started, and `slot` the slot that it has.
fn reload(
    (started, slot): (&Config, Slot),
    file: &std::path::Path,
    installed: &mut Installed,
    writer: &mut Writer,
    ends: impl FnOnce() -> Vec<Ends>,
) -> Result<(Config, Log), GatewayError> {
    let mut new = Config::read(file)?;
    if let Some(key) = started.needs_restart(&new) {
        let message = "it cannot change while the gateway runs: stop it and start it again".into();
        return Err(new.sources.refuse(key, message));
    }
    new.slot = slot;
    let outputs = Outputs::open(&new.log)?;
    installed.change(&new, ends)?;
    let log = writer.switch(&new.log, outputs);
    Ok((new, log))
}
