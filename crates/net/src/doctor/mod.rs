//! Tests what this machine can do for emulation and for the user-space host.
//!
//! The checks change nothing outside namespaces created for them. A check without the required privilege says so
//! and does not run.

mod measure;

use crate::device::Namespace;
use crate::device::tun::{QUEUE, Tun, TunConfig};
use crate::device::wait::Wait;
use crate::error::NetError;
use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_getres};
use std::fs;

pub use measure::{Lateness, lateness};

/// A timer with a resolution coarser than this runs on the kernel's tick: high-resolution timers are off.
const COARSE_TIMER: std::time::Duration = std::time::Duration::from_micros(1);
/// Number of measured waits.
const WAITS: usize = 100;
/// Number of packets measured from one device through the kernel to another.
const PACKETS: usize = 20_000;
/// 99th percentile of lateness above which late releases disturb transports that pace or probe.
const LATE_P99: skyhaul_base::Duration = skyhaul_base::Duration::from_millis(1);
/// Number of descriptors that suffices for an emulation with metrics, captures and a program.
const DESCRIPTORS: u64 = 64;
/// Rate with 1500-byte packets, Gbit/s, below which this machine may be too slow for the links of satellites.
const FEW_GBIT: f64 = 0.5;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// All is well.
    Ok,
    /// It works, but results may be worse, or some feature is unavailable.
    Warn,
    /// Emulation is not possible.
    Fail,
}

impl State {
    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Its result.
    pub state: State,
    /// What it found.
    pub found: String,
    /// How to fix it; empty if there is nothing to fix.
    pub remedy: String,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), remedy: String::new() }
    }
    fn warn(name: &'static str, found: impl Into<String>, remedy: &str) -> Self {
        Self { name, state: State::Warn, found: found.into(), remedy: remedy.to_owned() }
    }
    fn fail(name: &'static str, found: impl Into<String>, remedy: &str) -> Self {
        Self { name, state: State::Fail, found: found.into(), remedy: remedy.to_owned() }
    }
}

/// Runs all checks. It takes less than a second on an idle machine.
#[must_use]
pub fn examine() -> Vec<Check> {
    let mut checks = vec![privileges()];
    let (namespace, space) = namespaces();
    checks.push(namespace);
    let (tun, device) = tun(space.as_ref());
    checks.push(tun);
    checks.extend(space.as_ref().zip(device).map(|(s, d)| queue(s, &d)));
    checks.push(ipv6());
    checks.push(timer());
    checks.push(waits());
    checks.push(priority());
    checks.push(controls(space.as_ref()));
    checks.push(forwarding());
    checks.push(descriptors());
    checks.push(memory());
    checks.extend(space.map(|s| speed(&s)));
    checks
}

/// Required capabilities of the calling thread (capabilities(7)): bit and name.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Capabilities missing in a text like /proc/self/status; `None` if the text does not list them.
fn missing(status: &str) -> Option<Vec<&'static str>> {
    let hex = status.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
    let has = u64::from_str_radix(hex.trim(), 16).ok()?;
    Some(NEEDED.iter().filter(|(bit, _)| has >> bit & 1 == 0).map(|(_, name)| *name).collect())
}

fn privileges() -> Check {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    match missing(&status) {
        Some(m) if m.is_empty() => Check::ok("privileges", "CAP_NET_ADMIN and CAP_SYS_ADMIN"),
        Some(m) => {
            let remedy = "run as root, or in your own user namespace (unshare -Urn)";
            Check::fail("privileges", format!("{} missing", m.join(" and ")), remedy)
        }
        None => Check::warn("privileges", "unknown", "mount /proc"),
    }
}

fn namespaces() -> (Check, Option<Namespace>) {
    match Namespace::new() {
        Ok(space) => (Check::ok("namespaces", "a network namespace can be created"), Some(space)),
        Err(e) => {
            let remedy = "run as root; in a container, with the capability SYS_ADMIN";
            (Check::fail("namespaces", e.to_string(), remedy), None)
        }
    }
}

/// Opens a device without addresses in this namespace.
fn open(space: &Namespace) -> Result<Tun, NetError> {
    let config = TunConfig { name: None, addresses: vec![], mtu: 1500, offload: false };
    space.within(|| Tun::open(&config))?
}

fn tun(space: Option<&Namespace>) -> (Check, Option<Tun>) {
    let Some(space) = space else {
        return (Check::fail("tun", "not tried: no namespace could be created", "see namespaces"), None);
    };
    match open(space) {
        Ok(device) => (Check::ok("tun", "a TUN device can be created"), Some(device)),
        Err(e) => {
            let remedy = "modprobe tun; in a container, --device /dev/net/tun";
            (Check::fail("tun", e.to_string(), remedy), None)
        }
    }
}

fn queue(space: &Namespace, device: &Tun) -> Check {
    // Interface names are local to their namespace.
    let asked = space.within(|| device.device().tx_queue_len().map_err(|e| NetError::os("ask", e)));
    match asked.and_then(|r| r) {
        Ok(n) if n >= QUEUE => Check::ok("queue", format!("txqueuelen {n}")),
        Ok(n) => {
            let remedy = "bursts may be dropped before they are read: check the TUN drops in the report";
            Check::warn("queue", format!("txqueuelen is {n} instead of {QUEUE}"), remedy)
        }
        Err(e) => Check::warn("queue", format!("txqueuelen unknown: {e}"), "check with ip -s link"),
    }
}

fn ipv6() -> Check {
    match crate::device::ipv6::why_off() {
        None => Check::ok("ipv6", "is on"),
        Some(why) => {
            let found = format!("is off ({why}): emulate and gateways go on with IPv4 alone");
            Check::warn("ipv6", found, crate::device::ipv6::REMEDY)
        }
    }
}

fn timer() -> Check {
    match clock_getres(ClockId::CLOCK_MONOTONIC) {
        Ok(t) => {
            let resolution = std::time::Duration::from(t);
            let found = format!("resolution {} ns", resolution.as_nanos());
            if resolution <= COARSE_TIMER {
                return Check::ok("timer", found);
            }
            Check::warn("timer", found, "a kernel with CONFIG_HIGH_RES_TIMERS, booted without highres=off")
        }
        Err(e) => Check::warn("timer", format!("resolution unknown: {e}"), "none"),
    }
}

fn micros(d: skyhaul_base::Duration) -> u64 {
    d.as_nanos() / 1_000
}

fn waits() -> Check {
    let measured = Wait::on(&[]).and_then(|mut w| lateness(&mut w, WAITS));
    match measured {
        Ok(l) => {
            let found = format!(
                "{WAITS} waits late by {} µs (median), {} µs (p99), {} µs (maximum)",
                micros(l.median),
                micros(l.p99),
                micros(l.most)
            );
            if l.p99 <= LATE_P99 {
                Check::ok("lateness", found)
            } else {
                Check::warn("lateness", found, "stop other programs, or use a machine with more processors")
            }
        }
        Err(e) => Check::fail("lateness", e.to_string(), "raise the limit of descriptors (ulimit -n)"),
    }
}

/// Tries real-time priority, on a thread that ends with the check.
fn priority() -> Check {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };
    let tried = std::thread::spawn(|| {
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo).is_ok()
    });
    if tried.join().unwrap_or(false) {
        Check::ok("priority", "SCHED_FIFO is allowed")
    } else {
        let remedy = "CAP_SYS_NICE, or rtprio in /etc/security/limits.conf; without it a busy machine releases packets late";
        Check::warn("priority", "SCHED_FIFO is not allowed", remedy)
    }
}

/// The value of a key of net.ipv4; empty if it cannot be read.
fn ipv4_key(key: &str) -> String {
    fs::read_to_string(format!("/proc/sys/net/ipv4/{key}")).unwrap_or_default().trim().to_owned()
}

/// Congestion controls of the kernel: available here, and allowed as default of a namespace.
fn controls(space: Option<&Namespace>) -> Check {
    let (available, allowed) =
        (ipv4_key("tcp_available_congestion_control"), ipv4_key("tcp_allowed_congestion_control"));
    let default = ipv4_key("tcp_congestion_control");
    // Only allowed controls can be the default of a namespace: the others are refused with EPERM.
    let within: Vec<String> = space.map_or_else(Vec::new, |s| {
        let names = available.split_whitespace();
        names.filter(|n| s.sysctl("net/ipv4/tcp_congestion_control", n).is_ok()).map(str::to_owned).collect()
    });
    let mut found = format!("available {available}; allowed {allowed}; default {default}");
    if space.is_some() {
        found.push_str(&format!("; in a namespace {}", within.join(" ")));
    }
    if default.starts_with("bbr") {
        let remedy = "a socket that switches away from BBR after connecting stays paced: set the control per route \
                      (ip route ... congctl reno) or before connecting";
        return Check::warn("controls", found, remedy);
    }
    Check::ok("controls", found)
}

fn forwarding() -> Check {
    let on = |path: &str| fs::read_to_string(path).is_ok_and(|t| t.trim() == "1");
    let (v4, v6) = (on("/proc/sys/net/ipv4/ip_forward"), on("/proc/sys/net/ipv6/conf/all/forwarding"));
    let word = |on| if on { "on" } else { "off" };
    let found =
        format!("IPv4 {}, IPv6 {}; needed only to route traffic beyond this machine", word(v4), word(v6));
    Check::ok("forwarding", found)
}

fn descriptors() -> Check {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => {
            let open = fs::read_dir("/proc/self/fd").map_or(0, |d| d.count() as u64);
            let free = soft.saturating_sub(open);
            let found = format!("{free} free of {soft} (hard limit {hard})");
            if free >= DESCRIPTORS {
                Check::ok("descriptors", found)
            } else {
                Check::warn("descriptors", found, "ulimit -n 1024")
            }
        }
        Err(e) => Check::warn("descriptors", format!("limit unknown: {e}"), "none"),
    }
}

/// Available memory in bytes according to a text like /proc/meminfo.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Checks that the memory that connections may use is available.
fn memory() -> Check {
    let mb = |n: u64| n / 1_000_000;
    let limit = crate::host::MEMORY;
    match available(&fs::read_to_string("/proc/meminfo").unwrap_or_default()) {
        Some(n) => {
            let found =
                format!("{} MB available; the connections of a stack may hold {} MB", mb(n), mb(limit));
            if n >= limit {
                Check::ok("memory", found)
            } else {
                Check::warn("memory", found, "lower skyhaul wire --memory below the available memory")
            }
        }
        None => Check::warn("memory", "unknown", "mount /proc"),
    }
}

fn speed(space: &Namespace) -> Check {
    match measure::forwarded(space, PACKETS) {
        Ok(rate) => {
            let gbit = rate * 1500.0 * 8.0 / 1e9;
            let found = format!(
                "{rate:.0} packets/s of 1500 bytes through TUN devices on one core ({gbit:.1} Gbit/s)"
            );
            if gbit >= FEW_GBIT {
                Check::ok("speed", found)
            } else {
                Check::warn("speed", found, "emulate slower links (links.NAME.rate), or larger packets")
            }
        }
        Err(e) => Check::warn("speed", format!("not measured: {e}"), "see tun"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_mask() {
        assert_eq!(missing("Name:\tx\nCapEff:\t000001ffffffffff\n"), Some(vec![]));
        assert_eq!(missing("CapEff:\t0000000000001000\n"), Some(vec!["CAP_SYS_ADMIN"]));
        assert_eq!(missing("CapEff:\t0000000000000000\n"), Some(vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]));
        assert_eq!(missing("CapEff:\tnonsense\n"), None);
        assert_eq!(missing(""), None);
    }

    #[test]
    fn available_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2000 kB\n"), Some(2_048_000));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    /// Where namespaces are granted, every check has a result, and the speed was measured.
    #[test]
    fn every_check_says_something() {
        let checks = examine();
        let names: Vec<&str> = checks.iter().map(|c| c.name).collect();
        for name in [
            "privileges",
            "namespaces",
            "tun",
            "ipv6",
            "timer",
            "lateness",
            "priority",
            "controls",
            "descriptors",
        ] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        for c in &checks {
            assert!(!c.found.is_empty() && !c.found.contains('\n'), "{c:?}");
            assert_eq!(c.remedy.is_empty(), c.state == State::Ok, "{c:?}");
        }
        let state = |name| checks.iter().find(|c| c.name == name).map(|c| c.state);
        if state("namespaces") == Some(State::Ok) && state("tun") == Some(State::Ok) {
            let speed = checks.iter().find(|c| c.name == "speed").expect("measured");
            assert!(speed.found.contains("packets/s"), "{speed:?}");
        }
    }
}
