//! Networks in prefix notation, and the addresses of this machine.

use serde::Deserialize;
use std::net::IpAddr;
use std::str::FromStr;
use std::{fmt, io};

/// The addresses of this machine, in the calling thread's namespace.
///
/// # Errors
/// If the kernel does not list them.
pub(crate) fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let of = |a: nix::ifaddrs::InterfaceAddress| {
        let address = a.address?;
        let v4 = address.as_sockaddr_in().map(|s| s.ip().into());
        v4.or_else(|| address.as_sockaddr_in6().map(|s| s.ip().into()))
    };
    Ok(nix::ifaddrs::getifaddrs()?.filter_map(of).collect())
}

/// A network in prefix notation: `10.0.0.0/8`, `fd00::/8`, `192.0.2.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    /// Address, with zeros beyond the prefix.
    pub address: IpAddr,
    /// Prefix length, bits.
    pub prefix: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network: write \"10.0.0.0/8\", \"fd00::/8\" or an address");
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(bits), |p| p.parse().map_err(|_| wrong()))?;
        if prefix > bits {
            return Err(wrong());
        }
        let network = Self::around(address, prefix);
        if network.address == address {
            Ok(network)
        } else {
            Err(format!("{text:?} has bits beyond its prefix: write \"{network}\""))
        }
    }
}
impl TryFrom<String> for Network {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Network {
    /// The network with a prefix of this length that contains an address. The length is at most that of the address.
    #[must_use]
    pub fn around(address: IpAddr, prefix: u8) -> Self {
        Self { address: skyhaul_net::tun::network(address, prefix), prefix }
    }
    /// Whether it contains another network, or is the same.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }
    /// Whether it contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        skyhaul_net::tun::within(self.address, address, self.prefix)
    }
}
