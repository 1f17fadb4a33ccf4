//! Port forwarding: connections over the link of a machine through which no traffic is routed.
//!
//! ```text
//! [[forward]]: program ─▶ listen ══ relay ══ our host ─▶ TUN ─▶ the kernel translates its address ══ satellite ══▶ to
//! [[publish]]: program ◀─ to     ══ relay ══ our host ◀─ TUN ◀─ port of the satellite interface   ◀══ satellite ══ anybody
//! ```
//! Our host is the gateway's TCP endpoint in user space. It has an address that only this machine knows ([`crate::slot`]). Packets of a connection to or
//! from this address belong to nobody else, so they need neither TPROXY nor routing by marks.

use crate::error::GatewayError;
use crate::network::own_addresses;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

/// A port of this machine whose connections go over the link to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Forward {
    /// Where programs connect.
    #[serde(deserialize_with = "here")]
    pub listen: SocketAddr,
    /// The server behind the link.
    #[serde(deserialize_with = "server")]
    pub to: SocketAddrV4,
}

/// A port of the satellite interface whose connections go to one server on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Publish {
    /// The port.
    pub port: u16,
    /// The server.
    #[serde(deserialize_with = "here")]
    pub to: SocketAddr,
}

/// The address and port of a listener or server on this side.
fn here<'de, D: serde::Deserializer<'de>>(d: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(d)?;
    let found = text.parse().ok().filter(|a: &SocketAddr| a.port() != 0);
    found.ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is not an address with a port: write \"127.0.0.1:8080\" or \"[::1]:8080\""
        ))
    })
}

/// The address and port of a server behind the link.
fn server<'de, D: serde::Deserializer<'de>>(d: D) -> Result<SocketAddrV4, D::Error> {
    let text = String::deserialize(d)?;
    let found = text.parse().ok().filter(|a: &SocketAddrV4| a.port() != 0);
    found.ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is not an IPv4 address with a port: write \"203.0.113.7:80\""
        ))
    })
}

/// The first contradiction among ports: the key of the file, and the message.
pub(crate) fn contradiction(forward: &[Forward], publish: &[Publish]) -> Option<(String, String)> {
    for (n, f) in forward.iter().enumerate() {
        if forward.iter().take(n).any(|other| other.listen == f.listen) {
            let message = format!("{} is listed twice: choose another port", f.listen);
            return Some((format!("forward[{n}].listen"), message));
        }
    }
    for (n, p) in publish.iter().enumerate() {
        let key = format!("publish[{n}].port");
        if p.port == 0 {
            return Some((key, "write a port of 1 to 65535".into()));
        }
        if publish.iter().take(n).any(|other| other.port == p.port) {
            return Some((key, format!("{} is listed twice: choose another port", p.port)));
        }
    }
    None
}

/// Refuses to forward to this machine: a connection would never leave for the link.
///
/// # Errors
/// If a port is to be forwarded to an address of this machine, or its addresses cannot be listed.
pub(crate) fn refuse_loops(forward: &[Forward]) -> Result<(), GatewayError> {
    let own = own_addresses().map_err(GatewayError::os("list addresses"))?;
    match forward.iter().find(|f| f.to.ip().is_loopback() || own.contains(&IpAddr::V4(*f.to.ip()))) {
        Some(f) => Err(GatewayError::Loop(f.to)),
        None => Ok(()),
    }
}
