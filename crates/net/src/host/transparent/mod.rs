//! What only a host that stands in for others does, behind one trait: a gateway's side of the link.
//!
//! ```text
//! Transparent   connections to every port wait for admission; data travels in SYNs
//! admission     those that wait: each has the identity of the connection that it becomes
//! early         data in SYNs, and what makes it safe
//! share         several hosts on one device: which connections belong to which
//! exchange      packets that arrived at the queue of another one
//! ```
//! It is a part of the host, not of the gateway's crate: an admission ends in the tables of half-open connections and of slots, and
//! early data in those of sequence numbers, none of which others may see. Hosts that are no gateways use nothing of it.

mod admission;
mod early;
pub mod exchange;
mod share;

pub(super) use admission::Admissions;
pub use admission::PendingConnection;
pub(super) use early::Arrivals;
pub use early::{Cookie, Numbers};

use super::{Admission, ConnId, Endpoint, Host, HostError};
use skyhaul_base::Instant;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};

/// A host that stands in for others.
pub trait Transparent {
    /// Accepts connections to every port without a listener of its own; `None` stops this.
    fn listen_elsewhere(&mut self, taker: Option<(Endpoint, Admission)>);
    /// Further endpoints for connections that [`Self::listen_elsewhere`] takes, of which [`Self::admit`] chooses.
    fn offer(&mut self, choice: Vec<Endpoint>);
    /// The next connection that waits for admission: each is returned once.
    fn next_asked(&mut self) -> Option<PendingConnection>;
    /// Admits a waiting connection. Its SYN-ACK leaves with the next [`Host::flush`]; false if it no longer exists.
    ///
    /// `window` is its initial window, segments, if it differs from the endpoint's; `chosen` is 0 for the listener's endpoint, or the
    /// number of one that was offered ([`Self::offer`]), counted from 1.
    fn admit(&mut self, id: ConnId, window: Option<NonZeroU16>, chosen: u8) -> bool;
    /// Refuses a waiting connection with a RST.
    fn refuse(&mut self, id: ConnId);
    /// A connection that [`Self::next_asked`] has returned and that failed: its peer has given up, or has not acknowledged the
    /// answer.
    fn next_withdrawn(&mut self) -> Option<ConnId>;
    /// Opens a connection as [`Host::connect`] does. If the application writes before the next [`Host::flush`], the SYN carries
    /// the first bytes, as far as they fit. `cookie` is that of an earlier connection to this gateway in the name of the same
    /// client ([`super::Conn::peer_cookie`]).
    ///
    /// # Errors
    /// As [`Host::connect`].
    fn connect_early(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        endpoint: &Endpoint,
        cookie: (NonZeroU32, Cookie),
    ) -> Result<ConnId, HostError>;
}

impl Transparent for Host {
    fn listen_elsewhere(&mut self, taker: Option<(Endpoint, Admission)>) {
        self.listeners.set_elsewhere(taker);
    }
    fn offer(&mut self, choice: Vec<Endpoint>) {
        self.listeners.set_choice(choice);
    }
    fn next_asked(&mut self) -> Option<PendingConnection> {
        while let Some(id) = self.admissions.unseen.pop_front() {
            // The connection may no longer exist.
            if let Some(pending) = self.pending(id) {
                return Some(pending);
            }
        }
        None
    }
    fn admit(&mut self, id: ConnId, window: Option<NonZeroU16>, chosen: u8) -> bool {
        self.admit_waiting(id, window, chosen)
    }
    fn refuse(&mut self, id: ConnId) {
        self.refuse_waiting(id);
    }
    fn next_withdrawn(&mut self) -> Option<ConnId> {
        self.admissions.withdrawn.pop_front()
    }
    fn connect_early(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        endpoint: &Endpoint,
        cookie: (NonZeroU32, Cookie),
    ) -> Result<ConnId, HostError> {
        self.open_early(now, (local, remote), endpoint, cookie)
    }
}
