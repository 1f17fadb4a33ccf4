//! Listeners: at single ports, or at all of them.

use super::Endpoint;
use std::collections::BTreeMap;

/// When a SYN to a listener is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Immediately.
    #[default]
    AtOnce,
    /// Once the application has admitted the connection ([`super::Transparent::admit`]). A proxy can then refuse it
    /// exactly as the real server would.
    WhenAdmitted,
}

/// The listeners of a host.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    ports: BTreeMap<u16, Endpoint>,
    elsewhere: Option<(Endpoint, Admission)>,
    /// Further endpoints that the application may choose when it admits a connection elsewhere.
    choice: Vec<Endpoint>,
}

impl Listeners {
    /// The endpoint of the listener at this port.
    pub(super) fn at(&self, port: u16) -> Option<&Endpoint> {
        self.ports.get(&port).or(self.elsewhere.as_ref().map(|(endpoint, _)| endpoint))
    }
    /// The endpoint that was chosen for a connection to this port: 0 is the listener's, others those of the choice.
    pub(super) fn chosen(&self, port: u16, chosen: u8) -> Option<&Endpoint> {
        let own = self.at(port)?;
        let other = usize::from(chosen).checked_sub(1).filter(|_| !self.ports.contains_key(&port));
        Some(other.and_then(|n| self.choice.get(n)).unwrap_or(own))
    }
    /// When a SYN to this port is answered.
    pub(super) fn admission(&self, port: u16) -> Admission {
        match &self.elsewhere {
            Some((_, admission)) if !self.ports.contains_key(&port) => *admission,
            _ => Admission::AtOnce,
        }
    }
    /// Whether this port has its own listener.
    pub(super) fn has(&self, port: u16) -> bool {
        self.ports.contains_key(&port)
    }
    pub(super) fn insert(&mut self, port: u16, endpoint: Endpoint) {
        self.ports.insert(port, endpoint);
    }
    pub(super) fn remove(&mut self, port: u16) {
        self.ports.remove(&port);
    }
    pub(super) fn set_elsewhere(&mut self, taker: Option<(Endpoint, Admission)>) {
        self.elsewhere = taker;
    }
    pub(super) fn set_choice(&mut self, choice: Vec<Endpoint>) {
        self.choice = choice;
    }
}
