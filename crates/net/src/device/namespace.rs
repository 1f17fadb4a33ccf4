//! Network namespaces. Work in another namespace runs on a separate thread; only [`Namespace::enter`] moves the calling
//! thread.

use crate::error::NetError;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A network namespace. An unnamed one vanishes with its last user.
#[derive(Clone, Debug)]
pub struct Namespace(Arc<OwnedFd>);

fn own() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// If /proc is not available.
    pub fn current() -> Result<Self, NetError> {
        own().map(|fd| Self(Arc::new(fd))).map_err(|e| NetError::os("open the network namespace", e))
    }

    /// Creates a namespace with only a loopback interface, which is up. As far as the kernel permits, its TCP does not cache
    /// metrics between connections (`tcp_no_metrics_save`), it forwards packets, and any user may ping.
    ///
    /// # Errors
    /// If the privileges are missing.
    pub fn new() -> Result<Self, NetError> {
        let made = std::thread::spawn(|| -> Result<OwnedFd, NetError> {
            let fail = |e: io::Error| NetError::os("create a network namespace", e);
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| fail(e.into()))?;
            crate::device::netlink::link_up(1)?;
            for (key, value) in [
                ("net/ipv4/tcp_no_metrics_save", "1"),
                ("net/ipv4/ip_forward", "1"),
                ("net/ipv6/conf/all/forwarding", "1"),
                ("net/ipv4/ping_group_range", "0 2147483647"),
            ] {
                let _ = sysctl(key, value);
            }
            own().map_err(fail)
        });
        let fd = made
            .join()
            .map_err(|_| NetError::os("create a network namespace", io::Error::other("panic")))??;
        Ok(Self(Arc::new(fd)))
    }

    /// Opens a namespace by name (`ip netns add NAME`), by process id, or by path.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    pub fn find(name: &str) -> Result<Self, NetError> {
        let path = match name {
            _ if name.contains('/') => name.to_owned(),
            _ if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) => {
                format!("/proc/{name}/ns/net")
            }
            _ => format!("/run/netns/{name}"),
        };
        match File::open(&path) {
            Ok(f) => Ok(Self(Arc::new(f.into()))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(NetError::NoNamespace(name.to_owned())),
            Err(e) => Err(NetError::os(format!("open the network namespace {name:?}"), e)),
        }
    }

    /// Runs `f` in the namespace, on a separate thread, and waits for it. Child processes of `f` start in the
    /// namespace.
    ///
    /// # Errors
    /// If the namespace must not be entered.
    ///
    /// # Panics
    /// If `f` does.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        std::thread::scope(|s| {
            let t = s.spawn(|| {
                self.enter()?;
                Ok(f())
            });
            t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// # Errors
    /// If the namespace must not be entered.
    pub fn enter(&self) -> Result<(), NetError> {
        setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|e| NetError::os("enter a network namespace", e))
    }

    /// Sets a key of /proc/sys ("net/ipv4/ip_forward") in the namespace.
    ///
    /// # Errors
    /// If the kernel refuses the value or has no such key.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), NetError> {
        self.within(|| sysctl(key, value))?.map_err(|e| NetError::os(format!("set {key} to {value:?}"), e))
    }

    /// Adds a route to a network through an interface of the namespace, via a router if one is given.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn route(&self, to: (IpAddr, u8), interface: &str, via: Option<IpAddr>) -> Result<(), NetError> {
        self.within(|| {
            let index = nix::net::if_::if_nametoindex(interface)
                .map_err(|_| NetError::NoInterface(interface.to_owned()))?;
            crate::device::netlink::add_route(to, index, via)
        })?
    }
}

/// Sets a key in the calling thread's namespace: /proc/sys/net belongs to the namespace of the thread that opens
/// it.
fn sysctl(key: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{key}"), value)
}
