//! TUN devices: kernel interfaces whose packets we read and write.

use crate::device::netlink;
use crate::error::NetError;
use nix::errno::Errno;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Length of the queue of packets that the kernel has for us, packets. With the kernel's default of 500 the kernel drops packets before
/// we read them (`ip -s link` counts them), and its TCP does not limit what it has passed to a TUN device.
pub const QUEUE: u32 = 10_000;
/// Maximum length of an interface name, bytes (IFNAMSIZ without the final zero).
const LONGEST_NAME: usize = 15;

/// Configuration of a device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Name of the interface; `None` lets the kernel choose one.
    pub name: Option<String>,
    /// Addresses on the kernel's side, with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Maximum packet size (MTU), bytes.
    pub mtu: u16,
    /// Packets carry a virtio-net header and may be super-packets (TSO/USO in both directions).
    pub offload: bool,
}

/// A TUN device, or one of its queues. The device vanishes when its last queue is dropped, or when the process ends.
pub struct Tun {
    device: SyncDevice,
    name: String,
    /// Size of the longest packet that can be read, bytes.
    longest: usize,
    /// As [`TunConfig::offload`].
    offload: bool,
    /// A warning, if the queue has the kernel's default length.
    short_queue: Option<String>,
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("name", &self.name).finish_non_exhaustive()
    }
}

fn valid(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name != "."
        && name != ".."
        // The kernel replaces %d by a number.
        && name.bytes().all(|b| b.is_ascii_graphic() && !b"/:%".contains(&b))
}

impl Tun {
    /// Creates a device in the calling thread's network namespace, with addresses, and brings it up.
    ///
    /// # Errors
    /// If the name is invalid or taken, privileges are missing, or there is no driver.
    pub fn open(config: &TunConfig) -> Result<Self, NetError> {
        Self::with_queues(config, false)
    }

    /// Creates a device with several queues (IFF_MULTI_QUEUE), each for one thread. For some seconds after a packet of a connection was
    /// written to a queue, the kernel delivers packets of that connection to the same queue; others to any queue.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_queues(config: &TunConfig, queues: usize) -> Result<Vec<Self>, NetError> {
        let first = Self::with_queues(config, queues > 1)?;
        let others = (1..queues).map(|_| first.another()).collect::<Result<Vec<_>, _>>()?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// Another queue of the same device.
    fn another(&self) -> Result<Self, NetError> {
        let open = || {
            let device = self.device.try_clone()?;
            device.set_nonblocking(true)?;
            Ok(device)
        };
        let fail = |e: io::Error| NetError::os(format!("open another queue of {}", self.name), e);
        let device = open().map_err(fail)?;
        let (name, longest, offload) = (self.name.clone(), self.longest, self.offload);
        Ok(Self { device, name, longest, offload, short_queue: None })
    }

    fn with_queues(config: &TunConfig, several: bool) -> Result<Self, NetError> {
        if let Some(name) = &config.name {
            if !valid(name) {
                return Err(NetError::BadName(name.clone()));
            }
            // /sys/class/net would show the interfaces of the namespace in which sysfs was mounted.
            if interface_exists(name) {
                return Err(NetError::NameInUse(name.clone()));
            }
        }
        if !Path::new("/dev/net/tun").exists() {
            return Err(NetError::NoTun);
        }
        let mut b =
            DeviceBuilder::new().mtu(config.mtu).offload(config.offload).multi_queue(several).enable(true);
        if let Some(name) = &config.name {
            b = b.name(name);
        }
        let fail = |e: io::Error| match e.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EBUSY) => NetError::NameInUse(config.name.clone().unwrap_or_default()),
            Some(Errno::ENODEV | Errno::ENXIO) => NetError::NoTun,
            _ => NetError::os("create a TUN interface", e),
        };
        let device = b.build_sync().map_err(fail)?;
        device.set_nonblocking(true).map_err(fail)?;
        let name = device.name().map_err(fail)?;
        let index = device.if_index().map_err(fail)?;
        // The builder would set the length by an ioctl, which the kernel refuses in a user namespace; it allows rtnetlink. A short
        // queue is no reason to fail, since its drops are counted.
        let short_queue = netlink::set_queue(index, QUEUE).err().map(|e| {
            format!("{name} keeps its short queue, so the kernel may drop packets before they are read: {e}")
        });
        // No duplicate address detection (RFC 4862 §5.4): nobody else is on this link.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_dad"), "0");
        for (address, prefix) in &config.addresses {
            netlink::add_address(index, *address, *prefix).map_err(|e| match e {
                NetError::Os { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                    NetError::InUse { what: address.to_string() }
                }
                e => e,
            })?;
        }
        settle_v6(config, &name);
        // The kernel's super-packets have at most 65536 bytes (GSO_LEGACY_MAX_SIZE); all others fit the MTU.
        let longest = if config.offload { 1 << 16 } else { usize::from(config.mtu) };
        Ok(Self { device, name, longest, offload: config.offload, short_queue })
    }

    /// Name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Index of the interface.
    ///
    /// # Errors
    /// If the device no longer exists.
    pub fn index(&self) -> Result<u32, NetError> {
        self.device.if_index().map_err(|_| NetError::DeviceGone(self.name.clone()))
    }
    /// Longest packet that can be read, bytes, without a virtio-net header.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }
    /// Why the kernel refused a queue of [`QUEUE`] packets, for the user; `None` if it did not.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.short_queue.as_deref()
    }
    /// Whether packets carry a virtio-net header and may be super-packets.
    #[must_use]
    pub fn offloads(&self) -> bool {
        self.offload
    }
    /// The underlying device, for moving several packets at a time.
    #[must_use]
    pub fn device(&self) -> &SyncDevice {
        &self.device
    }

    /// Reads a packet from the kernel; `None` if there is none now.
    ///
    /// # Errors
    /// If the device no longer exists, or the system refuses.
    pub fn read(&self, buf: &mut [u8]) -> Result<Option<usize>, NetError> {
        loop {
            match self.device.recv(buf) {
                Ok(n) => return Ok(Some(n)),
                Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN) => return Ok(None),
                    Some(Errno::EINTR) => {}
                    _ if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    Some(Errno::EBADFD | Errno::ENODEV | Errno::EIO) => {
                        return Err(NetError::DeviceGone(self.name.clone()));
                    }
                    _ => return Err(NetError::os(format!("read from {}", self.name), e)),
                },
            }
        }
    }

    /// Writes a packet to the kernel; false if the kernel did not accept it (the interface is down, memory is short, or it is
    /// no IP packet).
    ///
    /// # Errors
    /// If the device no longer exists, or the system refuses.
    pub fn write(&self, packet: &[u8]) -> Result<bool, NetError> {
        loop {
            match self.device.send(packet) {
                Ok(_) => return Ok(true),
                Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EINTR) => {}
                    // The interface is down (EIO), or memory is short; both may pass.
                    Some(Errno::EIO | Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => return Ok(false),
                    // Not an IP packet of a family that the device accepts.
                    Some(Errno::EINVAL) => return Ok(false),
                    Some(Errno::EBADFD | Errno::ENODEV) => {
                        return Err(NetError::DeviceGone(self.name.clone()));
                    }
                    _ => return Err(NetError::os(format!("write to {}", self.name), e)),
                },
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Waits until the IPv6 addresses can be bound, at most two seconds: the kernel delays the check of new addresses for
/// duplicates, even where it checks nothing. If the check takes longer, a later bind reports the error.
fn settle_v6(config: &TunConfig, name: &str) {
    /// IFA_F_TENTATIVE: the address is not yet checked.
    const TENTATIVE: u32 = 0x40;
    if !config.addresses.iter().any(|(a, _)| a.is_ipv6()) {
        return;
    }
    for _ in 0..2000 {
        let text = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
        let waits = text.lines().any(|l| {
            let mut fields = l.split_whitespace();
            let flags = fields.nth(4).and_then(|f| u32::from_str_radix(f, 16).ok()).unwrap_or(0);
            fields.next() == Some(name) && flags & TENTATIVE != 0
        });
        if !waits {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Whether the calling thread's namespace has an interface with this name.
fn interface_exists(name: &str) -> bool {
    nix::net::if_::if_nametoindex(name).is_ok()
}

/// Packets towards us that the kernel dropped because the queue of the interface was full. To be called in the
/// namespace of the interface.
#[must_use]
pub fn dropped(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    // After eight fields on packets from us: bytes, packets, errors and drops of packets towards us.
    line.split_whitespace().nth(11)?.parse().ok()
}

/// An interface in the calling thread's namespace whose network overlaps the one of `address` and `prefix`, and its
/// address: packets to the overlap would go to that interface. The kernel itself silently gives the same network to two interfaces.
///
/// # Errors
/// If the kernel does not report its addresses.
pub fn overlap(address: IpAddr, prefix: u8) -> Result<Option<(String, IpAddr)>, NetError> {
    let fail = |e: nix::Error| NetError::os("list the addresses of interfaces", e);
    for i in nix::ifaddrs::getifaddrs().map_err(fail)? {
        let ip = |s: Option<nix::sys::socket::SockaddrStorage>| -> Option<IpAddr> {
            let s = s?;
            let v4 = s.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
            v4.or_else(|| s.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
        };
        let (Some(theirs), Some(mask)) = (ip(i.address), ip(i.netmask)) else { continue };
        let length = ones(mask).min(prefix);
        if within(theirs, address, length) {
            return Ok(Some((i.interface_name, theirs)));
        }
    }
    Ok(None)
}

/// The length of the prefix of a netmask, bits.
fn ones(mask: IpAddr) -> u8 {
    match mask {
        IpAddr::V4(m) => m.to_bits().leading_ones() as u8,
        IpAddr::V6(m) => m.to_bits().leading_ones() as u8,
    }
}

/// Whether both addresses are of the same family and their first `length` bits are equal.
#[must_use]
pub fn within(a: IpAddr, b: IpAddr, length: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32 - u32::from(length.min(32))).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128 - u32::from(length.min(128))).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The first `length` bits of an address, followed by zeros: the address of its network.
#[must_use]
pub fn network(address: IpAddr, length: u8) -> IpAddr {
    let beyond = |bits: u32| bits.saturating_sub(u32::from(length));
    match address {
        IpAddr::V4(a) => IpAddr::V4((a.to_bits() & u32::MAX.checked_shl(beyond(32)).unwrap_or(0)).into()),
        IpAddr::V6(a) => IpAddr::V6((a.to_bits() & u128::MAX.checked_shl(beyond(128)).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let ip = |s: &str| s.parse::<IpAddr>().unwrap();
        assert!(within(ip("10.84.0.1"), ip("10.84.0.200"), 24));
        assert!(!within(ip("10.84.0.1"), ip("10.84.1.1"), 24));
        assert!(within(ip("10.84.0.1"), ip("1.2.3.4"), 0));
        assert!(!within(ip("10.84.0.1"), ip("10.84.0.2"), 32));
        assert!(within(ip("fd00::1"), ip("fd00::2"), 64) && !within(ip("fd00::1"), ip("fd01::1"), 16));
        assert!(!within(ip("::1"), ip("0.0.0.1"), 0));
        for (address, length, of) in [
            ("10.84.7.200", 20, "10.84.0.0"),
            ("10.84.7.200", 32, "10.84.7.200"),
            ("10.84.7.200", 0, "0.0.0.0"),
            ("fd00:1:2:3::4", 56, "fd00:1:2::"),
            ("fd00::4", 0, "::"),
        ] {
            assert_eq!(network(ip(address), length), ip(of));
        }
        assert_eq!((ones(ip("255.255.240.0")), ones(ip("ffff::"))), (20, 16));
        // Loopback has the same addresses everywhere.
        if let Some((name, address)) = overlap(ip("127.1.2.3"), 8).unwrap() {
            assert_eq!((name.as_str(), address), ("lo", ip("127.0.0.1")));
        }
    }

    #[test]
    fn names_of_interfaces() {
        assert!(valid("sky0") && valid("a.b-c_d"));
        for bad in ["", "a/b", "sixteen-letters-", "..", "a b", "a:1", "a%d", "ü"] {
            assert!(!valid(bad), "{bad:?}");
        }
        let bad = TunConfig { name: Some("a/b".into()), addresses: vec![], mtu: 1500, offload: false };
        let e = Tun::open(&bad).unwrap_err().to_string();
        assert_eq!(e, "\"a/b\" is not an interface name: write 1 to 15 letters, digits, dots or dashes");
    }

    #[test]
    fn a_name_is_taken_only_by_an_interface_of_the_same_namespace() {
        let Some(space) = skyhaul_testkit::need::granted(crate::Namespace::new()) else { return };
        let open = |name: &str| {
            let name = Some(name.to_owned());
            let config = TunConfig { name, addresses: vec![], mtu: 1500, offload: false };
            space.within(|| Tun::open(&config)).expect("enters")
        };
        let all = fs::read_dir("/sys/class/net").expect("interfaces");
        for name in all.filter_map(|i| i.ok()?.file_name().into_string().ok()) {
            // Such as lo, or a tunnel that every namespace has.
            if space.within(|| interface_exists(&name)).expect("enters") {
                continue;
            }
            assert_eq!(open(&name).expect("another namespace has it").name(), name);
        }
        let _first = open("sky0").expect("opens");
        assert!(matches!(open("sky0"), Err(NetError::NameInUse(_))));
    }
}
