//! Running a gateway, from setup to shutdown.

use crate::config::Config;
use crate::control::Control;
use crate::error::GatewayError;
use crate::evidence::Observer;
use crate::forward;
use crate::gateway::Gateway;
use crate::priority::Service;
use crate::status::Status;
use crate::system::{Installed, Lock};
use skyhaul_net::driver::Driver;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::{Clock, NetError, wait::Waker};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// The directory of the lock and of the control socket.
pub const FOLDER: &str = "/run/skyhaul";

/// Packets from an interface without an address fail the source check (rp_filter), even in loose mode. This is the dummy
/// address, which belongs to nobody (RFC 7600 §5).
const DUMMY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// The environment of a gateway, beside its configuration.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Directory of its lock and its control socket.
    pub folder: PathBuf,
    /// The configuration file, which a reload reads again.
    pub file: PathBuf,
    /// The command line that starts this program again so that it calls [`crate::system::keep`]; the arguments of that
    /// function are appended. If empty, nothing cleans up after a gateway that is killed.
    pub keeper: Vec<OsString>,
}

/// An observer of a running gateway.
pub trait Watcher {
    /// The gateway is ready; the handle wakes it, so that [`Self::turn`] is called.
    fn ready(&mut self, waker: Waker);
    /// Called in every iteration of the event loop; `status` returns the current state. True stops the gateway.
    fn turn(&mut self, status: &dyn Fn(bool) -> Status) -> bool;
    /// Something happened that belongs into a log, in one line.
    fn note(&mut self, _line: &str) {}
}

/// Runs a gateway until it is told to stop, in the calling thread's network namespace.
///
/// # Errors
/// If a system call fails; nothing is left behind.
pub fn run(
    config: &Config,
    surroundings: &Surroundings,
    watcher: &mut impl Watcher,
) -> Result<Status, GatewayError> {
    let terrestrial = config.terrestrial.as_ref().map(|t| &t.interface);
    for name in terrestrial.into_iter().chain([&config.satellite.interface]) {
        nix::net::if_::if_nametoindex(name.as_str()).map_err(|_| NetError::NoInterface(name.clone()))?;
    }
    forward::refuse_loops(&config.forward)?;
    let _lock = Lock::take(&surroundings.folder, &config.name)?;
    let mut gateway = Gateway::new(Clock::now(), config)?;
    let tun = Tun::open(&TunConfig {
        name: Some(config.interface()),
        addresses: if config.forwards_ports() { vec![forward::INTERFACE] } else { vec![(DUMMY, 32)] },
        mtu: config.satellite.mtu,
        // Pacing needs packets of their size on the link, not offloaded ones.
        offload: config.satellite.rate.is_none(),
    })?;
    let index = tun.index()?;
    let mut driver = Driver::new(tun, Gateway::host(config)?)?;
    if let Some(rate) = config.satellite.rate {
        driver.shape(rate);
    }
    driver.also_wait_for(gateway.descriptor())?;
    let observer = Observer::start(config)?;
    if let Some(observer) = &observer {
        gateway.observed_by(observer.results());
    }
    let waker = driver.waker();
    let wake = waker.clone();
    let service = Service::start(config, driver.host().config().gateway, move || wake.wake())?;
    if let Some(service) = &service {
        gateway.test_with(service.trust());
    }
    let wake = waker.clone();
    let control = Control::open(&surroundings.folder, &config.name, move || wake.wake())?;
    let mut installed = Installed::put(config, gateway.ports(), index, &surroundings.keeper)?;
    watcher.ready(waker);
    let mut failure = None;
    let mut told = false;
    driver.run(&mut gateway, |now, gateway, host| {
        // First, so that the status reported below is already in effect.
        if let Err(e) = installed.admit(gateway.orders().admit) {
            failure.get_or_insert(e);
            told = true;
        }
        while let Some(asked) = control.next() {
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
                    told = true;
                    "stopping\n".into()
                }
                "reload" => match reload(config, &surroundings.file, &mut installed) {
                    Ok(new) => {
                        gateway.reconfigure(&new, host);
                        "reloaded\n".into()
                    }
                    Err(e) => format!("{e}\n"),
                },
                _ => "write status, list, evidence, metrics, reload or stop\n".into(),
            };
            let _ = asked.answer.send(answer);
        }
        while let Some(line) = service.as_ref().and_then(|s| s.trust().next_line()) {
            watcher.note(&line);
        }
        told |= watcher.turn(&|list| gateway.status(now, host, list));
        told
    })?;
    let last = gateway.status(Clock::now(), driver.host(), false);
    drop(installed);
    failure.map_or(Ok(last), Err)
}

/// Reads the file again and updates the rules, if the change is possible while the gateway runs.
fn reload(first: &Config, file: &std::path::Path, installed: &mut Installed) -> Result<Config, GatewayError> {
    let new = Config::read(file)?;
    if let Some(key) = first.needs_restart(&new) {
        let file = file.display().to_string();
        let message = "it cannot change while the gateway runs: stop it and start it again".into();
        return Err(GatewayError::Config { file, key: format!("{key}: "), message });
    }
    installed.change(&new)?;
    Ok(new)
}
