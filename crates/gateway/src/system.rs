//! What the gateway asks of the system, and how it is taken back: nftables, routing, a lock, and the keeper.
//!
//! The keeper is a process that does nothing but wait for our end. However we end, SIGKILL included, it takes the table and the
//! rules away. What it does is safe to do twice.

use crate::config::{Config, OnFailure};
use crate::error::GatewayError;
use crate::rules::{self, MARKS, PRIORITY, Ports, TABLES};
use skyhaul_net::NetError;
use skyhaul_net::routing::{self, Everything, MarkRule};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Gives rules to nftables: all of them, or none.
///
/// # Errors
/// If there is no `nft`, or it refuses them.
pub fn nft(rules: &str) -> Result<(), GatewayError> {
    let spawned = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => GatewayError::NoNft,
        _ => GatewayError::os("start nft")(e),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(rules.as_bytes());
    }
    let done = child.wait_with_output().map_err(GatewayError::os("wait for nft"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let why = said.lines().next().unwrap_or("it gives no reason").to_owned();
    if why.contains("Operation not permitted") {
        return Err(NetError::Privileges { what: "set rules of nftables".into() }.into());
    }
    Err(GatewayError::Nft(why))
}

fn mark_rules() -> [MarkRule; 2] {
    [0, 1].map(|n| MarkRule { mark: MARKS[n], table: TABLES[n], priority: PRIORITY })
}

/// Which families of addresses the machine has.
fn families() -> impl Iterator<Item = bool> {
    [false, true].into_iter().filter(|v6| !v6 || Path::new("/proc/sys/net/ipv6").exists())
}

/// Whether the kernel looks for a socket before it looks for a route. What our host sends has the ends of the kernel's own
/// socket for the same connection: found so, it would not be forwarded (`ip_forward` drops what belongs to a socket). A
/// router has little use for it (Documentation/networking/ip-sysctl.rst).
const EARLY_DEMUX: &str = "/proc/sys/net/ipv4/tcp_early_demux";

/// Whether an accepted connection has the traffic class of its SYN: so we learn it, and what we answer has it.
const REFLECT_TOS: &str = "/proc/sys/net/ipv4/tcp_reflect_tos";

fn is_on(key: &str) -> bool {
    fs::read_to_string(key).is_ok_and(|v| v.trim() != "0")
}

/// Whether packets of IPv4 that arrive at an interface are forwarded.
fn forwarding_key(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

/// What was there before, and comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    table: String,
    early_demux: bool,
    reflect_tos: bool,
    /// The interface for which forwarding was off, and is on now.
    forwarding: Option<String>,
}

impl Before {
    /// As [`keep`] reads it.
    fn words(&self) -> [String; 4] {
        let on = |key| u8::from(key).to_string();
        let forwarding = self.forwarding.clone().unwrap_or_default();
        [self.table.clone(), on(self.early_demux), on(self.reflect_tos), forwarding]
    }
}

fn remove_table(table: &str) {
    let _ = nft(&format!("add table inet {table}\ndelete table inet {table}\n"));
}

/// Takes away everything that a gateway has put into the system.
fn remove(before: &Before) {
    remove_table(&before.table);
    if before.early_demux {
        let _ = fs::write(EARLY_DEMUX, "1");
    }
    if !before.reflect_tos {
        let _ = fs::write(REFLECT_TOS, "0");
    }
    if let Some(interface) = &before.forwarding {
        let _ = fs::write(forwarding_key(interface), "0");
    }
    for v6 in families() {
        for rule in mark_rules() {
            routing::remove_rule(v6, rule);
        }
        routing::remove_route(v6, TABLES[0], Everything::Here);
        routing::remove_route(v6, TABLES[1], Everything::Nowhere);
    }
}

/// The file that says that a gateway of a name runs.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes it.
    ///
    /// # Errors
    /// If another one has it.
    pub fn take(folder: &Path, name: &str) -> Result<Self, GatewayError> {
        fs::create_dir_all(folder).map_err(GatewayError::os(format!("make {}", folder.display())))?;
        let path = folder.join(format!("{name}.lock"));
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(GatewayError::os(format!("open {}", path.display())))?;
        if file.try_lock().is_err() {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(GatewayError::Running { name: name.into(), pid: pid.trim().into() });
        }
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { file, path })
    }
    /// Whether somebody has it.
    #[must_use]
    pub fn is_taken(folder: &Path, name: &str) -> bool {
        let path = folder.join(format!("{name}.lock"));
        File::open(path).is_ok_and(|f| f.try_lock_shared().is_err())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// What is in the system. Dropped, it is taken away.
#[derive(Debug)]
pub struct Installed {
    config: Config,
    before: Before,
    ports: Ports,
    open: bool,
    keeper: Option<(Child, ChildStdin)>,
}

impl Installed {
    /// Puts everything in. `interface` is the number of our interface, `again` the command line that starts us once more so
    /// that [`keep`] is called with the words behind it.
    ///
    /// # Errors
    /// If the system refuses; nothing is left behind then.
    pub fn put(
        config: &Config,
        ports: Ports,
        interface: u32,
        again: &[std::ffi::OsString],
    ) -> Result<Self, GatewayError> {
        forwarding(config)?;
        for v6 in families() {
            routing::set_route(v6, TABLES[1], Everything::Out(interface)).map_err(|e| match e {
                NetError::Os { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                    GatewayError::Another(TABLES[1])
                }
                e => e.into(),
            })?;
        }
        // From here on what is left behind is ours.
        let link = &config.satellite.interface;
        let before = Before {
            table: rules::table(config),
            early_demux: is_on(EARLY_DEMUX),
            reflect_tos: is_on(REFLECT_TOS),
            forwarding: (config.forwards_ports() && !is_on(&forwarding_key(link))).then(|| link.clone()),
        };
        let keeper = keeper(again, &before, config.on_failure)?;
        let installed = Self { config: config.clone(), before, ports, open: true, keeper };
        installed.fill()?;
        Ok(installed)
    }

    fn fill(&self) -> Result<(), GatewayError> {
        // Nobody of this name runs: what is there was left by one whose keeper was killed, too.
        remove_table(&self.before.table);
        if self.config.terrestrial.is_some() {
            self.intercept()?;
        }
        if self.config.forwards_ports() {
            // Answers arrive at one interface, what our host sends at the other.
            for name in [&self.config.satellite.interface, &self.config.interface()] {
                let key = forwarding_key(name);
                fs::write(&key, "1").map_err(GatewayError::os(format!("write to {key}")))?;
            }
        }
        nft(&rules::all(&self.config, self.ports, self.before.forwarding.is_some()))
    }

    /// Routes of packets that carry our marks, and what the kernel needs so that they follow them.
    fn intercept(&self) -> Result<(), GatewayError> {
        if self.before.early_demux {
            fs::write(EARLY_DEMUX, "0").map_err(GatewayError::os(format!("write to {EARLY_DEMUX}")))?;
        }
        // Kernels before 5.10 do not have it: classes are not copied then.
        let _ = fs::write(REFLECT_TOS, "1");
        // Packets of others come from our interface: their sources are elsewhere. Loosely checked, they pass (RFC 3704).
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{}/rp_filter", self.config.interface()), "2");
        for v6 in families() {
            routing::set_route(v6, TABLES[0], Everything::Here)?;
            if self.config.on_failure == OnFailure::Block {
                // The route to our interface goes with it; this one stays.
                routing::set_route(v6, TABLES[1], Everything::Nowhere)?;
            }
            for rule in mark_rules() {
                routing::add_rule(v6, rule)?;
            }
        }
        Ok(())
    }

    /// Takes new connections as another configuration says. In one transaction: none falls between.
    ///
    /// # Errors
    /// If the rules cannot be changed; the old ones hold then.
    pub fn change(&mut self, config: &Config) -> Result<(), GatewayError> {
        if self.open && config.terrestrial.is_some() {
            nft(&(rules::closed(config) + &rules::admission(config, self.ports)))?;
        }
        self.config = config.clone();
        Ok(())
    }

    /// Takes new connections, or takes none: they are forwarded then.
    ///
    /// # Errors
    /// If the rules cannot be changed.
    pub fn admit(&mut self, open: bool) -> Result<(), GatewayError> {
        if open == self.open {
            return Ok(());
        }
        let mut text = rules::closed(&self.config);
        if open {
            text += &rules::admission(&self.config, self.ports);
        }
        if self.config.terrestrial.is_some() {
            nft(&text)?;
        }
        self.open = open;
        Ok(())
    }
    /// Whether new connections are taken.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.open
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        remove(&self.before);
        // It finds nothing to do.
        if let Some((mut child, stdin)) = self.keeper.take() {
            drop(stdin);
            let _ = child.wait();
        }
    }
}

fn forwarding(config: &Config) -> Result<(), GatewayError> {
    let off = |key: &str| fs::read_to_string(format!("/proc/sys/{key}")).is_ok_and(|v| v.trim() == "0");
    let Some(terrestrial) = &config.terrestrial else { return Ok(()) };
    let v6 = terrestrial.networks.iter().chain(&config.satellite.networks).all(|n| n.address.is_ipv6());
    if !v6 && off("net/ipv4/ip_forward") {
        return Err(GatewayError::NoForwarding { family: "IPv4", key: "net.ipv4.ip_forward" });
    }
    if v6 && off("net/ipv6/conf/all/forwarding") {
        return Err(GatewayError::NoForwarding { family: "IPv6", key: "net.ipv6.conf.all.forwarding" });
    }
    Ok(())
}

fn keeper(
    again: &[std::ffi::OsString],
    before: &Before,
    on_failure: OnFailure,
) -> Result<Option<(Child, ChildStdin)>, GatewayError> {
    // With "block", what is left is what the operator wants.
    let (Some((program, first)), OnFailure::Bypass) = (again.split_first(), on_failure) else {
        return Ok(None);
    };
    let mut child = Command::new(program)
        .args(first)
        .args(before.words())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Whoever ends us by a signal to the group does not end it.
        .process_group(0)
        .spawn()
        .map_err(GatewayError::os("start the keeper"))?;
    let stdin = child.stdin.take();
    Ok(stdin.map(|stdin| (child, stdin)))
}

/// What the keeper does: it waits until nobody holds the other end of its standard input, and takes everything away.
/// `words` are those that were given to it.
pub fn keep(words: &[String]) {
    let [table, early_demux, reflect_tos, forwarding] = words else { return };
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let (early_demux, reflect_tos) = (early_demux == "1", reflect_tos == "1");
    let forwarding = (!forwarding.is_empty()).then(|| forwarding.clone());
    remove(&Before { table: table.clone(), early_demux, reflect_tos, forwarding });
}
