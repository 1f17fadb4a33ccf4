//! Whether there is IPv6. Containers often have none: Docker sets `net.ipv6.conf.all.disable_ipv6`.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::fs;
use std::path::Path;

/// Commands that turn IPv6 on, for the user.
pub const REMEDY: &str =
    "sysctl -w net.ipv6.conf.all.disable_ipv6=0; a container: --sysctl net.ipv6.conf.all.disable_ipv6=0";

/// Why the calling thread's network namespace has no IPv6, in words for the user; `None` if it has IPv6.
#[must_use]
pub fn why_off() -> Option<String> {
    let conf = Path::new("/proc/sys/net/ipv6/conf");
    // A value for all interfaces is copied to each of them, and to `default`, which new ones have
    // (Documentation/networking/ip-sysctl.rst).
    for of in ["default", "lo"] {
        match fs::read_to_string(conf.join(of).join("disable_ipv6")) {
            Ok(value) if value.trim() == "0" => {}
            Ok(_) => return Some(format!("net.ipv6.conf.{of}.disable_ipv6 is 1")),
            // Without /proc/sys nothing is known: the socket below decides.
            Err(_) if !Path::new("/proc/sys/net/ipv4").exists() => {}
            Err(_) => return Some("the kernel has none".into()),
        }
    }
    // systemd's RestrictAddressFamilies, or a filter of system calls.
    match socket(AddressFamily::Inet6, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None) {
        Err(Errno::EAFNOSUPPORT | Errno::EPERM | Errno::EACCES) => {
            Some("this process may not open sockets of IPv6".into())
        }
        _ => None,
    }
}

/// Whether the calling thread's network namespace has IPv6.
#[must_use]
pub fn is_on() -> bool {
    why_off().is_none()
}
