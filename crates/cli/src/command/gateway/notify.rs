//! Messages to the service manager (sd_notify(3)), and its watchdog.

use skyhaul_net::Clock;
use skyhaul_net::wait::Waker;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The service manager, if there is one.
#[derive(Debug)]
pub(super) struct Manager {
    socket: Option<UnixDatagram>,
    /// Half the interval of the watchdog; `None` without a watchdog.
    half_interval: Option<skyhaul_base::Duration>,
    /// When the next message to the watchdog is due.
    due: skyhaul_base::Instant,
}

impl Manager {
    /// The service manager that NOTIFY_SOCKET names, if it is set.
    pub(super) fn find() -> Self {
        let var = |name| std::env::var(name).ok();
        let is_ours = var("WATCHDOG_PID").is_none_or(|pid| pid.parse() == Ok(std::process::id()));
        let micros: Option<u64> = var("WATCHDOG_USEC").and_then(|t| t.parse().ok());
        let half_interval =
            micros.filter(|t| is_ours && *t > 0).map(|t| skyhaul_base::Duration::from_micros(t / 2));
        let socket = std::env::var_os("NOTIFY_SOCKET").and_then(|path| connect(&path).ok());
        Self { socket, half_interval, due: Clock::now() }
    }

    fn send(&self, state: &str) {
        if let Some(socket) = &self.socket {
            // A message that a manager does not take is lost: the gateway runs without a manager, too.
            let _ = socket.send(state.as_bytes());
        }
    }

    /// The gateway is ready. `waker` wakes its loop once per half interval: only a loop that runs answers the watchdog.
    pub(super) fn ready(&self, waker: Waker) {
        self.send("READY=1");
        if let (Some(interval), Some(_)) = (self.half_interval, &self.socket) {
            let interval = Duration::from_nanos(interval.as_nanos());
            let _ = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
                loop {
                    std::thread::sleep(interval);
                    waker.wake();
                }
            });
        }
    }
    /// The gateway begins to read its file again.
    pub(super) fn reloading(&self) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", Clock::now().as_nanos() / 1000));
    }
    /// The gateway has read its file again.
    pub(super) fn reloaded(&self) {
        self.send("READY=1");
    }
    /// The gateway begins to stop.
    pub(super) fn stops(&self) {
        self.send("STOPPING=1");
    }
    /// Whether a message to the watchdog is due.
    pub(super) fn is_due(&self) -> bool {
        self.half_interval.is_some() && Clock::now() >= self.due
    }
    /// The gateway runs: sends the watchdog a message, with the state in words.
    pub(super) fn lives(&mut self, state: &str) {
        let Some(interval) = self.half_interval else { return };
        // The timer wakes the loop once per `interval`. If the message were due only after the whole interval, a wake that comes a
        // little early would send nothing, and the next one would be too late.
        self.due = Clock::now() + interval / 10 * 9;
        self.send(&format!("WATCHDOG=1\nSTATUS={state}"));
    }
}

fn connect(path: &std::ffi::OsStr) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    match path.to_str().and_then(|p| p.strip_prefix('@')) {
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            socket.connect_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)?;
        }
        None => socket.connect(path)?,
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
