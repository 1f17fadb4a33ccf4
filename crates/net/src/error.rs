//! Errors of devices, namespaces and emulations, with advice.

use nix::errno::Errno;
use std::io;
use thiserror::Error;

/// An error of the operating system, or of what runs on it in real time. Each message is one line, and says what to do
/// if something can be done.
#[derive(Debug, Error)]
pub enum NetError {
    /// The process lacks CAP_NET_ADMIN.
    #[error(
        "cannot {what} without CAP_NET_ADMIN: run it as root, or in your own user namespace (unshare -Urn)"
    )]
    Privileges {
        /// The operation that failed.
        what: String,
    },
    /// Refused in a user namespace other than the initial one, in which the process may well have all capabilities.
    #[error(
        "the kernel refuses to {what} in this user namespace: run it as root (and check the permissions of /dev/net/tun)"
    )]
    Rootless {
        /// The operation that failed.
        what: String,
    },
    /// A rule of a firewall refuses what a socket sends (connect(2), send(2): EPERM, and EACCES from some security modules).
    #[error("cannot {what}: a firewall of this machine refuses it; `nft list ruleset` shows its rules")]
    Firewall {
        /// The operation that failed.
        what: String,
    },
    /// There is no TUN driver.
    #[error("there is no /dev/net/tun: load the driver (modprobe tun), or pass the device to the container")]
    NoTun,
    /// The namespace has no IPv6.
    #[error("cannot {what}: IPv6 is off ({why}): {}", crate::device::ipv6::REMEDY)]
    NoIpv6 {
        /// The operation that failed.
        what: String,
        /// Why there is none.
        why: String,
    },
    /// The name of a device is taken.
    #[error("interface {0:?} exists already: choose another name")]
    NameInUse(String),
    /// The name is not valid for a device.
    #[error("{0:?} is not an interface name: write 1 to 15 letters, digits, dots or dashes")]
    BadName(String),
    /// No device of that name.
    #[error("there is no interface {0:?}; `ip link` lists those that exist")]
    NoInterface(String),
    /// No namespace of that name, process id or path.
    #[error(
        "there is no network namespace {0:?}: write the name of one that `ip netns list` shows, a process id, or a path"
    )]
    NoNamespace(String),
    /// The address is in use.
    #[error("{what} is in use already: choose another one")]
    InUse {
        /// The address.
        what: String,
    },
    /// A program in an enclosure did not start. With a status from 125 to 127, the first process of the enclosure has
    /// printed the reason on standard error.
    #[error("{} could not be started again: it ended with status {status}", std::path::Path::new(again).display())]
    NotStarted {
        /// Our own program, whose second instance was to start that one.
        again: std::ffi::OsString,
        /// The exit status that a shell would return.
        status: u8,
    },
    /// The table of routes through the links is full.
    #[error("the flow groups use too many different routes: write fewer groups, or shorter paths")]
    TooManyWays,
    /// Another process removed the device.
    #[error("interface {0:?} was removed")]
    DeviceGone(String),
    /// A packet of a strict emulation left too late.
    #[error("a packet left {:.3} ms late, more than the {:.3} ms allowed: this machine cannot keep up", .by.as_secs_f64() * 1e3, .limit.as_secs_f64() * 1e3)]
    TooLate {
        /// By how much.
        by: skyhaul_base::Duration,
        /// The limit.
        limit: skyhaul_base::Duration,
    },
    /// Any other error.
    #[error("cannot {what}: {source}")]
    Os {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl NetError {
    /// An error of the operation `what` ("open a TUN device").
    pub fn os(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPERM | Errno::EACCES) if in_user_namespace() => Self::Rootless { what },
            Some(Errno::EPERM | Errno::EACCES) => Self::Privileges { what },
            _ => Self::Os { what, source },
        }
    }

    /// An error of the operation `what` by which an unprivileged socket sends. Privileges would not help: it is a firewall that refuses.
    pub(crate) fn of_sending(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Firewall { what: what.into() },
            _ => Self::Os { what: what.into(), source },
        }
    }

    /// An error of the operation `what` on a file. If the kernel refuses it, the reason is the file's permissions.
    pub(crate) fn of_file(what: impl Into<String>, source: io::Error) -> Self {
        Self::Os { what: what.into(), source }
    }

    /// An error of the operation `what` with addresses of IPv6 (`v6`) or IPv4, in the calling thread's namespace. Without
    /// IPv6 the kernel gives the same answer as without privileges.
    pub(crate) fn of_family(v6: bool, what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        match crate::device::ipv6::why_off().filter(|_| v6) {
            Some(why) => Self::NoIpv6 { what: what.into(), why },
            None => Self::os(what, source),
        }
    }
}

/// Whether the process is in a user namespace other than the initial one, whose map is the identity
/// (user_namespaces(7)).
fn in_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"])
}

/// The system's message without the error number.
pub(crate) fn words(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
