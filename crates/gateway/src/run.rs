//! A gateway from its beginning to its end.

use crate::config::Config;
use crate::control::Control;
use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::status::Status;
use crate::system::{Installed, Lock};
use skyhaul_net::driver::Driver;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::{Clock, NetError, wait::Waker};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Where a gateway keeps what others find it by.
pub const FOLDER: &str = "/run/skyhaul";

/// What comes from an interface without an address fails the check of its source (rp_filter), even a loose one. This is the
/// address that belongs to nobody (RFC 7600 §5).
const DUMMY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// What a gateway needs beside its configuration.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Where its lock and its socket are.
    pub folder: PathBuf,
    /// The file that was read, and is read again when a reload is asked for.
    pub file: PathBuf,
    /// The command line that starts this program once more so that [`crate::system::keep`] is called, with the words
    /// behind it; empty: nobody looks after what is left if we are killed.
    pub keeper: Vec<OsString>,
}

/// What a gateway tells of itself while it runs.
pub trait Watcher {
    /// It is there; the handle wakes it, so that [`Self::turn`] is called.
    fn ready(&mut self, waker: Waker);
    /// A turn; `status` tells what it is doing. True: it is to end.
    fn turn(&mut self, status: &dyn Fn(bool) -> Status) -> bool;
}

/// Runs a gateway until it is told to stop, in the calling thread's network namespace.
///
/// # Errors
/// If the system refuses something; nothing is left behind.
pub fn run(
    config: &Config,
    surroundings: &Surroundings,
    watcher: &mut impl Watcher,
) -> Result<Status, GatewayError> {
    for name in [&config.terrestrial.interface, &config.satellite.interface] {
        nix::net::if_::if_nametoindex(name.as_str()).map_err(|_| NetError::NoInterface(name.clone()))?;
    }
    let _lock = Lock::take(&surroundings.folder, &config.name)?;
    let mut gateway = Gateway::new(Clock::now(), config)?;
    let tun = Tun::open(&TunConfig {
        name: Some(config.interface()),
        addresses: vec![(DUMMY, 32)],
        mtu: config.satellite.mtu,
        // What is paced must be countable.
        offload: config.satellite.rate.is_none(),
    })?;
    let index = tun.index()?;
    let mut driver = Driver::new(tun, Gateway::host(config)?)?;
    if let Some(rate) = config.satellite.rate {
        driver.shape(rate);
    }
    driver.also_wait_for(gateway.descriptor())?;
    let waker = driver.waker();
    let wake = waker.clone();
    let control = Control::open(&surroundings.folder, &config.name, move || wake.wake())?;
    let mut installed = Installed::put(config, gateway.ports(), index, &surroundings.keeper)?;
    watcher.ready(waker);
    let mut failure = None;
    let mut told = false;
    driver.run(&mut gateway, |now, gateway, host| {
        // First, so that what is told is so.
        if let Err(e) = installed.admit(gateway.orders().admit) {
            failure.get_or_insert(e);
            told = true;
        }
        while let Some(asked) = control.next() {
            let status = |list| serde_json::to_string(&gateway.status(now, host, list)).unwrap_or_default();
            let answer = match asked.word.as_str() {
                "status" => status(false),
                "list" => status(true),
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
                _ => "write status, list, metrics, reload or stop\n".into(),
            };
            let _ = asked.answer.send(answer);
        }
        told |= watcher.turn(&|list| gateway.status(now, host, list));
        told
    })?;
    let last = gateway.status(Clock::now(), driver.host(), false);
    drop(installed);
    failure.map_or(Ok(last), Err)
}

/// Reads the file again and changes the rules, if that can be done while the gateway runs.
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
