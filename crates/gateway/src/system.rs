//! Changes to the system and their removal: nftables, routing, sysctls, a lock, and the keeper.
//!
//! The keeper is a process that waits for the gateway to end, even by SIGKILL, and then removes the table and the routing rules. It does no
//! harm if the gateway has removed them already. The keeper also watches over the gateway: if the gateway hangs or is stopped (SIGSTOP), it
//! gives no sign of life, and the keeper empties the chains that intercept new connections. When the gateway goes on, it fills them again.

use crate::config::{Config, OnFailure};
use crate::control;
use crate::error::GatewayError;
use crate::nft::{self, nft};
use crate::rules::{self, Ends, NEAR_MARK, NEAR_TABLE, PRIORITY, Ports, REPAIR_MARK, REPAIR_TABLE};
use crate::saved_settings::{self, SavedSettings, Turn};
use crate::slot::Slot;
use crate::watch::ExpectedRules;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skyhaul_net::routing::{self, DefaultRoute, MarkRule};
use skyhaul_net::{NetError, ipv6};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The rule for packets for the transparent kernel sockets, which all gateways of a namespace share.
fn near_rule() -> MarkRule {
    MarkRule { mark: NEAR_MARK, table: NEAR_TABLE, priority: PRIORITY }
}
/// The rule for packets for the gateway's host.
fn far_rule(slot: Slot) -> MarkRule {
    MarkRule { mark: slot.far_mark(), table: slot.far_table(), priority: PRIORITY }
}

fn repair_rule() -> MarkRule {
    MarkRule { mark: REPAIR_MARK, table: REPAIR_TABLE, priority: PRIORITY }
}

/// The address families that the namespace has: false for IPv4, true for IPv6.
fn families() -> impl Iterator<Item = bool> {
    [false, true].into_iter().filter(|v6| !v6 || ipv6::is_on())
}

/// Early demultiplexing: the kernel looks for the socket of a packet before it looks for a route. A packet that the gateway's host sends has
/// the addresses and ports of the kernel's own socket for the same connection. It would be assigned to that socket, and
/// `ip_forward` drops packets with a socket. A router has little use for the setting (Documentation/networking/ip-sysctl.rst).
const EARLY_DEMUX: &str = "/proc/sys/net/ipv4/tcp_early_demux";

/// Whether an accepted socket takes over the traffic class of its SYN, so that the gateway can read the class.
const REFLECT_TOS: &str = "/proc/sys/net/ipv4/tcp_reflect_tos";

fn is_on(key: &str) -> bool {
    fs::read_to_string(key).is_ok_and(|v| v.trim() != "0")
}

/// The sysctl file for forwarding of IPv4 packets that arrive at an interface.
fn forwarding_key(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

impl SavedSettings {
    /// The arguments of [`keep`], with the process ID of this gateway. `file` holds the same settings, in case the keeper is killed as well.
    fn words(&self, file: &Path) -> [String; 3] {
        let settings = serde_json::to_string(self).unwrap_or_default();
        [settings, file.display().to_string(), std::process::id().to_string()]
    }
    /// Settings for [`remove`] where only the table is known: no setting is restored.
    pub(crate) fn unknown(table: String) -> Self {
        Self {
            table,
            early_demux: false,
            reflect_tos: true,
            forwarding: None,
            slot: None,
            repairs: true,
            link: String::new(),
            hosts: Vec::new(),
        }
    }
    /// The settings as they are now, or, where a killed gateway has changed them, as they were before that one started. `other`: the settings
    /// of another gateway, which has found those that all gateways share.
    fn now(config: &Config, killed: Option<&Self>, other: Option<&Self>) -> Self {
        let link = &config.satellite.interface;
        let off = config.forwards_ports() && !is_on(&forwarding_key(link));
        // If the killed gateway has enabled forwarding at an interface at which this one does not need it, forwarding is disabled at once.
        let forwarded = killed.and_then(|k| k.forwarding.as_ref());
        if let Some(other) = forwarded.filter(|i| *i != link || !config.forwards_ports()) {
            let _ = fs::write(forwarding_key(other), "0");
        }
        let forwarded = forwarded.is_some_and(|i| i == link) && config.forwards_ports();
        Self {
            table: rules::table(config),
            early_demux: killed.or(other).map_or_else(|| is_on(EARLY_DEMUX), |k| k.early_demux),
            reflect_tos: killed.or(other).map_or_else(|| is_on(REFLECT_TOS), |k| k.reflect_tos),
            forwarding: (off || forwarded).then(|| link.clone()),
            slot: Some(config.slot),
            repairs: config.repair.is_some(),
            link: link.clone(),
            hosts: config.host_interfaces().to_vec(),
        }
    }
}

fn remove_table(table: &str) -> Result<(), GatewayError> {
    nft(&format!("add table inet {table}\ndelete table inet {table}\n"))
}

/// Whether there is a table of this name.
///
/// # Errors
/// If `nft` is not installed, or the privileges are missing.
pub(crate) fn has_table(table: &str) -> Result<bool, GatewayError> {
    match nft(&format!("list table inet {table}\n")) {
        Ok(()) => Ok(true),
        Err(GatewayError::Nft(_) | GatewayError::NoModule) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes everything that a gateway has installed, as far as it can. `others`: other gateways of the namespace have installed something, so
/// that what all of them share stays.
///
/// # Errors
/// If the table cannot be removed.
pub(crate) fn remove(before: &SavedSettings, others: bool) -> Result<(), GatewayError> {
    let removed = remove_table(&before.table);
    if before.early_demux && !others {
        let _ = fs::write(EARLY_DEMUX, "1");
    }
    if !before.reflect_tos && !others {
        let _ = fs::write(REFLECT_TOS, "0");
    }
    if let Some(interface) = &before.forwarding {
        let _ = fs::write(forwarding_key(interface), "0");
    }
    let slots: Vec<Slot> = match before.slot {
        Some(slot) => vec![slot],
        None if others => Vec::new(),
        None => Slot::all().collect(),
    };
    // IPv6 may have been turned off since.
    for v6 in [false, true] {
        for slot in &slots {
            routing::remove_rule(v6, far_rule(*slot));
            routing::remove_route(v6, slot.far_table(), DefaultRoute::Nowhere);
        }
        if before.repairs && !(others && before.slot.is_none()) {
            routing::remove_rule(v6, repair_rule());
        }
        if !others {
            routing::remove_rule(v6, near_rule());
            routing::remove_route(v6, NEAR_TABLE, DefaultRoute::Here);
        }
    }
    removed
}

/// Takes a slot for a gateway, or the one that a killed gateway of this name has had.
///
/// # Errors
/// If no slot is free, or another gateway has an interface of this one, or is the one that repairs datagrams.
pub(crate) fn take_slot(config: &Config, folder: &Path, _turn: &Turn) -> Result<Slot, GatewayError> {
    may_run(config, folder)
}

/// As [`take_slot`], but without a turn: others may take the slot.
pub(crate) fn may_run(config: &Config, folder: &Path) -> Result<Slot, GatewayError> {
    let others = saved_settings::others(folder, &config.name);
    let (link, hosts) = (&config.satellite.interface, config.host_interfaces());
    let taken = |key, interface: &String, what, other: &str| {
        Err(GatewayError::InterfaceTaken { key, interface: interface.clone(), what, other: other.into() })
    };
    for (name, of) in others.iter().filter(|(name, _)| Lock::is_taken(folder, name)) {
        if of.link == *link {
            return taken("satellite.interface", link, "satellite.interface", name);
        }
        if of.hosts.contains(link) {
            return taken("satellite.interface", link, "an interface of hosts", name);
        }
        if let Some(host) = hosts.iter().find(|host| **host == of.link) {
            return taken("terrestrial.interface", host, "satellite.interface", name);
        }
        if of.repairs && config.repair.is_some() {
            return Err(GatewayError::OtherRepairs(name.clone()));
        }
    }
    let free = |slot: &Slot| !others.iter().any(|(_, of)| of.slot == Some(*slot));
    let before = saved_settings::read(folder, &config.name).and_then(|b| b.slot);
    before.into_iter().chain(Slot::all()).find(free).ok_or(GatewayError::NoSlot)
}

/// The holder of a lock while a keeper removes what a gateway has left behind.
pub(crate) const KEEPER: &str = "keeper";
/// How long a gateway may give no sign of life, milliseconds. It gives one every second.
const HUNG: u16 = 5000;
/// Maximum number of attempts, 10 ms apart, to take a lock that is about to be given up.
const ATTEMPTS: u32 = 500;

/// The lock of a running gateway: a locked file, one for each name.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Acquires the lock.
    ///
    /// # Errors
    /// If another gateway holds it, or the file cannot be created.
    pub fn take(folder: &Path, name: &str) -> Result<Self, GatewayError> {
        Self::take_as(folder, name, &std::process::id().to_string(), KEEPER)
    }
    /// Acquires the lock, and notes `whom` as its holder. If `passing` is noted as the present holder, the call waits for the lock, since such
    /// a holder gives it up in a moment.
    pub(crate) fn take_as(
        folder: &Path,
        name: &str,
        whom: &str,
        passing: &str,
    ) -> Result<Self, GatewayError> {
        fs::create_dir_all(folder).map_err(GatewayError::os(format!("make {}", folder.display())))?;
        let path = folder.join(format!("{name}.lock"));
        for attempt in 0.. {
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .map_err(GatewayError::os(format!("open {}", path.display())))?;
            if file.try_lock().is_err() {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                // The text is empty if a holder has just taken the lock and is about to write who it is.
                let holder = holder.trim();
                // A child of a dead holder keeps the lock until its exec(2) closes the file.
                let died =
                    holder.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
                let passes = holder == passing || holder.is_empty() || died;
                if passes && attempt < ATTEMPTS {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    continue;
                }
                return Err(GatewayError::Running { name: name.into(), pid: holder.into() });
            }
            // The last holder may have removed the file in between. This lock is then on a file that has no name any more.
            let same = |there: fs::Metadata| file.metadata().is_ok_and(|f| f.ino() == there.ino());
            if !fs::metadata(&path).is_ok_and(same) {
                continue;
            }
            let _ = file.set_len(0).and_then(|()| file.rewind());
            let _ = writeln!(file, "{whom}");
            return Ok(Self { file, path });
        }
        unreachable!("the loop ends with a lock or an error")
    }
    /// The last holder of the lock, as noted in its file.
    pub(crate) fn holder(folder: &Path, name: &str) -> Option<String> {
        fs::read_to_string(folder.join(format!("{name}.lock"))).ok().map(|text| text.trim().to_owned())
    }
    /// Whether a gateway holds the lock.
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

/// The installed changes; dropping it removes them.
#[derive(Debug)]
pub struct Installed {
    config: Config,
    before: SavedSettings,
    /// The file that holds `before` while the gateway runs.
    noted: PathBuf,
    ports: Ports,
    /// The index of the gateway's interface.
    interface: u32,
    /// Whether new connections are intercepted.
    open: bool,
    /// Whether connections between hosts and kernel sockets are tracked in a zone of their own.
    tracked: bool,
    /// What the table is meant to be.
    intended: ExpectedRules,
    keeper: Option<(Child, ChildStdin)>,
}

impl Installed {
    /// Installs everything. `interface` is the index of the TUN interface; `folder` is the folder of the lock; `again` is the command line
    /// that starts this program again so that it calls [`keep`] with the arguments appended to the line. `turn` is that in which the slot
    /// of the configuration was taken.
    ///
    /// # Errors
    /// If the system refuses a change; nothing is left behind then.
    pub(crate) fn put(
        config: &Config,
        ports: Ports,
        interface: u32,
        (folder, again): (&Path, &[std::ffi::OsString]),
        turn: Turn,
    ) -> Result<Self, GatewayError> {
        forwarding(config)?;
        let far_table = config.slot.far_table();
        for v6 in families() {
            routing::set_route(v6, far_table, DefaultRoute::Out(interface)).map_err(|e| match e {
                NetError::Os { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                    GatewayError::Another(far_table)
                }
                e => e.into(),
            })?;
        }
        // From here on, anything left behind belongs to this gateway.
        let killed = saved_settings::read(folder, &config.name);
        let others = saved_settings::others(folder, &config.name);
        let before = SavedSettings::now(config, killed.as_ref(), others.first().map(|(_, of)| of));
        let noted = saved_settings::file(folder, &config.name);
        let intended = ExpectedRules::default();
        let mut installed = Self {
            config: config.clone(),
            before,
            noted,
            ports,
            interface,
            open: true,
            tracked: true,
            intended,
            keeper: None,
        };
        let begun = installed.begin(folder, again);
        // Whatever is removed from here on waits for a turn of its own.
        drop(turn);
        begun.map(|()| installed)
    }

    /// Notes what is there, starts the keeper, and installs everything but the route out of the gateway's interface.
    fn begin(&mut self, folder: &Path, again: &[std::ffi::OsString]) -> Result<(), GatewayError> {
        let Self { config, before, noted, .. } = self;
        let block = config.on_failure == OnFailure::Block;
        saved_settings::note(folder, &config.name, block, before)?;
        self.keeper = keeper(again, before, noted, config.on_failure)?;
        self.fill()
    }

    /// Installs the table, the routes and the routing rules.
    fn fill(&self) -> Result<(), GatewayError> {
        // The lock shows that no gateway of this name runs: an existing table was left by one without a keeper.
        remove_table(&self.before.table)?;
        if self.config.intercepted().is_some() {
            self.intercept()?;
        }
        self.lead_to_repair()?;
        if self.config.forwards_ports() {
            // Packets from the link arrive at one interface, those of the gateway's host at the other.
            for name in [&self.config.satellite.interface, &self.config.interface()] {
                let key = forwarding_key(name);
                fs::write(&key, "1").map_err(GatewayError::os(format!("write to {key}")))?;
            }
        }
        nft(&rules::all(&self.config, self.ports, self.before.forwarding.is_some()))?;
        self.remember()
    }
    /// Records the present table as the intended one.
    fn remember(&self) -> Result<(), GatewayError> {
        self.intended.set(nft::listing(&self.before.table)?.unwrap_or_default());
        Ok(())
    }
    /// What the table is meant to be.
    pub(crate) fn intended(&self) -> ExpectedRules {
        self.intended.clone()
    }

    /// Restores the table, and the routes with it, unless the table is as intended. Returns whether that was necessary. `ends` gives the two
    /// ends of each open connection over the link, which the table has to know.
    ///
    /// # Errors
    /// If the system refuses a change.
    pub fn mend(&mut self, ends: impl FnOnce() -> Vec<Ends>) -> Result<bool, GatewayError> {
        if self.intended.is_met(&self.before.table)? {
            return Ok(false);
        }
        self.restore(&ends()).map(|()| true)
    }

    /// Replaces the table, and installs the routes of marked packets.
    fn restore(&self, ends: &[Ends]) -> Result<(), GatewayError> {
        // Until the replacement succeeds, no table counts as intended.
        self.intended.set(String::new());
        if self.config.intercepted().is_some() {
            self.intercept()?;
        }
        self.lead_to_repair()?;
        let table = &self.before.table;
        let mut text = format!("add table inet {table}\ndelete table inet {table}\n");
        text += &rules::all(&self.config, self.ports, self.before.forwarding.is_some());
        if !self.open {
            text += &rules::closed(&self.config);
        }
        if !self.tracked {
            text += &rules::untracked(&self.config);
        }
        text += &rules::remembered(&self.config, ends);
        nft(&text)?;
        self.remember()
    }

    /// Installs the routes and routing rules of marked packets, and the settings that they need.
    fn intercept(&self) -> Result<(), GatewayError> {
        self.set_sysctls()?;
        for v6 in families() {
            routing::set_route(v6, NEAR_TABLE, DefaultRoute::Here)?;
            if self.config.on_failure == OnFailure::Block {
                // The route to the TUN interface disappears with it; this one stays.
                routing::set_route(v6, self.config.slot.far_table(), DefaultRoute::Nowhere)?;
            }
            for rule in [near_rule(), far_rule(self.config.slot)] {
                routing::add_rule(v6, rule)?;
            }
        }
        Ok(())
    }

    /// Installs the routing rules of packets that are to be repaired. The route is that of the thread that repairs them. Returns whether some
    /// were missing.
    fn lead_to_repair(&self) -> Result<bool, GatewayError> {
        let mut missing = false;
        for v6 in families().filter(|_| self.config.repair.is_some()) {
            missing |= routing::add_rule(v6, repair_rule())?;
        }
        Ok(missing)
    }

    /// Sets the sysctls that the packets of split connections need. Returns whether one of them had another value.
    fn set_sysctls(&self) -> Result<bool, GatewayError> {
        let set = |key: &str, value: &str| {
            let other = fs::read_to_string(key).is_ok_and(|v| v.trim() != value);
            if other { fs::write(key, value).map(|()| true) } else { Ok(false) }
        };
        let mut other = false;
        if self.before.early_demux {
            other |= set(EARLY_DEMUX, "0").map_err(GatewayError::os(format!("write to {EARLY_DEMUX}")))?;
        }
        // Kernels before 5.10 lack this setting; the DSCP is then not copied.
        other |= set(REFLECT_TOS, "1").unwrap_or(false);
        // Packets with addresses of other hosts arrive from the TUN interface; the loose source check lets them pass (RFC 3704).
        let tun = self.config.interface();
        other |= set(&format!("/proc/sys/net/ipv4/conf/{tun}/rp_filter"), "2").unwrap_or(false);
        Ok(other)
    }

    /// Restores the routes, routing rules and settings of marked packets that are missing. Returns whether some were. Other programs may flush
    /// them, and the route to the gateway's interface disappears while that interface is down.
    ///
    /// # Errors
    /// If the system refuses a change, the satellite interface or all interfaces of hosts are gone or down, or one is part of a VRF.
    pub(crate) fn renew_routes(&self) -> Result<bool, GatewayError> {
        if self.config.intercepted().is_none() {
            return self.lead_to_repair();
        }
        usable(&self.config.satellite.interface)?;
        // Where one of several interfaces of hosts is gone or down, the others go on.
        let hosts = self.config.host_interfaces().iter().map(|i| usable(i)).collect::<Vec<_>>();
        let works = hosts.iter().any(Result::is_ok);
        let fatal = |e: &GatewayError| !works || matches!(e, GatewayError::InVrf { .. });
        if let Some(e) = hosts.into_iter().filter_map(Result::err).find(fatal) {
            return Err(e);
        }
        let mut missing = self.set_sysctls()? | self.lead_to_repair()?;
        for v6 in families() {
            missing |= routing::add_route(v6, NEAR_TABLE, DefaultRoute::Here)?;
            missing |=
                routing::add_route(v6, self.config.slot.far_table(), DefaultRoute::Out(self.interface))?;
            for rule in [near_rule(), far_rule(self.config.slot)] {
                missing |= routing::add_rule(v6, rule)?;
            }
        }
        Ok(missing)
    }

    /// Intercepts new connections by another configuration, in one transaction, so that none is missed. `ends` is as for
    /// [`Self::mend`], since the table may be gone.
    ///
    /// # Errors
    /// If the rules cannot be changed; the old ones then stay.
    pub fn change(&mut self, config: &Config, ends: impl FnOnce() -> Vec<Ends>) -> Result<(), GatewayError> {
        let old = std::mem::replace(&mut self.config, config.clone());
        let changed = self.enforce(ends);
        if changed.is_err() {
            self.config = old;
        }
        changed
    }
    /// Makes the table intercept new connections, or not, as `open` and `tracked` say.
    fn enforce(&self, ends: impl FnOnce() -> Vec<Ends>) -> Result<(), GatewayError> {
        if self.config.intercepted().is_none() {
            return Ok(());
        }
        let mut text = rules::closed(&self.config) + &rules::tracked(&self.config);
        if self.open {
            text += &rules::admission(&self.config, self.ports);
        }
        if !self.tracked {
            text += &rules::untracked(&self.config);
        }
        match nft(&text) {
            Ok(()) => self.remember(),
            // If the table lacks the chains, it is gone or was changed.
            Err(e) => match self.intended.is_met(&self.before.table) {
                Ok(false) => self.restore(&ends()),
                _ => Err(e),
            },
        }
    }

    /// Starts or stops the interception of new connections (`open`), and their tracking in a zone of their own (`tracked`). While
    /// interception is stopped, new connections are forwarded. `ends` is as for [`Self::mend`].
    ///
    /// # Errors
    /// If the rules cannot be changed. No table counts as intended then, until [`Self::mend`] succeeds.
    pub fn admit(
        &mut self,
        (open, tracked): (bool, bool),
        ends: impl FnOnce() -> Vec<Ends>,
    ) -> Result<(), GatewayError> {
        if (open, tracked) == (self.open, self.tracked) {
            return Ok(());
        }
        (self.open, self.tracked) = (open, tracked);
        self.enforce(ends).inspect_err(|_| self.intended.set(String::new()))
    }
    /// Whether new connections are intercepted.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.open
    }
    /// Gives the keeper a sign of life. After the first one, the keeper expects others.
    pub(crate) fn live(&mut self) {
        if let Some((_, stdin)) = &mut self.keeper {
            // It is no error if the keeper reads nothing, so that the pipe is full, or if the keeper is gone.
            let _ = stdin.write(&[1]);
        }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // A drop cannot report an error, and the removal goes as far as it can.
        clean(&self.noted, &self.before);
        // The keeper finds nothing left to remove.
        if let Some((mut child, stdin)) = self.keeper.take() {
            drop(stdin);
            let _ = child.wait();
        }
    }
}

/// Checks that an interface is there, up, and not part of a VRF.
fn usable(interface: &str) -> Result<(), GatewayError> {
    let link = routing::link(interface)?;
    match link.vrf {
        Some(vrf) => Err(GatewayError::InVrf { interface: interface.to_owned(), vrf }),
        None if !link.up => Err(GatewayError::InterfaceDown(interface.to_owned())),
        None => Ok(()),
    }
}

/// Checks that the kernel forwards packets of the families that the file needs.
fn forwarding(config: &Config) -> Result<(), GatewayError> {
    let off = |key: &str| fs::read_to_string(format!("/proc/sys/{key}")).is_ok_and(|v| v.trim() == "0");
    let Some(terrestrial) = &config.terrestrial else { return Ok(()) };
    // If all networks of the file are of IPv6, forwarding of IPv4 is not needed, and the lack of IPv6 is an error.
    let only_v6 = terrestrial.networks.iter().chain(&config.satellite.networks).all(|n| n.address.is_ipv6());
    if !only_v6 && off("net/ipv4/ip_forward") {
        return Err(GatewayError::NoForwarding { family: "IPv4", key: "net.ipv4.ip_forward" });
    }
    if let Some(why) = ipv6::why_off().filter(|_| only_v6) {
        return Err(NetError::NoIpv6 { what: "split connections of IPv6".into(), why }.into());
    }
    if only_v6 && off("net/ipv6/conf/all/forwarding") {
        return Err(GatewayError::NoForwarding { family: "IPv6", key: "net.ipv6.conf.all.forwarding" });
    }
    Ok(())
}

/// Starts the keeper; `None` if there is to be none.
fn keeper(
    again: &[std::ffi::OsString],
    before: &SavedSettings,
    noted: &Path,
    on_failure: OnFailure,
) -> Result<Option<(Child, ChildStdin)>, GatewayError> {
    // With `on-failure = "block"`, everything must stay after a kill, so that new connections are dropped.
    let (Some((program, first)), OnFailure::Bypass) = (again.split_first(), on_failure) else {
        return Ok(None);
    };
    let mut child = Command::new(program)
        .args(first)
        .args(before.words(noted))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A signal to the gateway's process group does not reach the keeper.
        .process_group(0)
        .spawn()
        .map_err(GatewayError::os("start the keeper"))?;
    // The keeper writes a line when it waits.
    let ready = child.stdout.take().is_some_and(|mut out| out.read_exact(&mut [0]).is_ok());
    let stdin = child.stdin.take();
    // A keeper that reads nothing must not stop the gateway.
    if let Some(stdin) = &stdin {
        let _ = fcntl(stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    }
    if !ready {
        drop(stdin);
        let _ = child.wait();
        return Err(GatewayError::NoKeeper(Path::new(program).display().to_string()));
    }
    Ok(stdin.map(|stdin| (child, stdin)))
}

/// The keeper: waits for the end of its standard input, which the gateway holds open, and then removes everything that the gateway has
/// installed. `words` are the arguments that the gateway has appended.
///
/// Bytes on standard input are signs of life. If they stop, the keeper stops the interception of new connections.
pub fn keep(words: &[String]) {
    let [before, noted, gateway] = words else { return };
    let Ok(before) = serde_json::from_str::<SavedSettings>(before) else { return };
    let _ = writeln!(io::stdout(), "waits").and_then(|()| io::stdout().flush());
    watch_over(&before.table);
    clean_up(Path::new(noted), gateway, &before);
}

/// Watches for signs of life on standard input, and returns when it ends.
fn watch_over(table: &str) {
    // A file has no buffer. poll(2) would not know of bytes in the buffer of `Stdin`.
    let Ok(mut stdin) = io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return };
    let mut lives = false;
    loop {
        let patience = if lives { PollTimeout::from(HUNG) } else { PollTimeout::NONE };
        let ready = poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], patience);
        match ready {
            Ok(0) => {
                lives = false;
                // There is no such chain unless the gateway repairs datagrams.
                let _ = nft(&rules::unmarked_table(table));
                if nft(&rules::closed_table(table)).is_ok() {
                    let seconds = HUNG / 1000;
                    let line = format!(
                        "the gateway of table {table} has given no sign of life for {seconds} s: new connections are forwarded unsplit \
                         until it does"
                    );
                    let _ = writeln!(io::stderr(), "{line}");
                }
            }
            // Interrupted by a signal.
            Err(_) => {}
            Ok(_) => match stdin.read(&mut [0; 64]) {
                Ok(0) | Err(_) => return,
                Ok(_) => lives = true,
            },
        }
    }
}

/// Removes what a gateway has left behind, unless one of its name runs again. `path` is its file of saved settings; `gateway` is its
/// process ID, which may still be noted in the lock: when a process dies, the kernel may close the pipe to the keeper before it releases
/// the lock.
fn clean_up(path: &Path, gateway: &str, before: &SavedSettings) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(|n| n.to_str())) else {
        return;
    };
    // A gateway that runs again by now restores the settings itself when it ends.
    let Ok(_lock) = Lock::take_as(folder, name, KEEPER, gateway) else { return };
    clean(path, before);
    control::forget(folder, name);
}

/// Removes everything, what all gateways share only if no other gateway is there, and then the file of saved settings.
fn clean(path: &Path, before: &SavedSettings) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(|n| n.to_str())) else {
        return;
    };
    let _turn = Turn::wait(folder);
    let _ = remove(before, !saved_settings::others(folder, name).is_empty());
    saved_settings::forget(path);
}
