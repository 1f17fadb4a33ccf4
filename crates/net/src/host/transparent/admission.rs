//! Connections that wait for admission. They are half open, but have a slot already, and so the identity of the connection that they
//! become.

use crate::host::ends::Ends;
use crate::host::half_open::{LIFE, Permission, Reserved};
use crate::host::{ConnId, Endpoint, Host};
use crate::outlet::Outlet;
use skyhaul_base::Instant;
use skyhaul_tcp::Seq;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};

/// A connection that waits for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingConnection {
    /// The connection that it becomes.
    pub id: ConnId,
    /// Its local end.
    pub local: SocketAddr,
    /// Its remote end, which opens it.
    pub remote: SocketAddr,
    /// DSCP of its SYN.
    pub dscp: u8,
    /// The gateway that opens it on behalf of `remote`.
    pub gateway: Option<NonZeroU32>,
}

/// Connections that wait for a decision of the application, and its decisions.
#[derive(Debug, Default)]
pub(in crate::host) struct Admissions {
    /// Those that the application has not seen yet.
    pub(super) unseen: VecDeque<ConnId>,
    /// Those whose peers gave up before the handshake was complete.
    pub(super) withdrawn: VecDeque<ConnId>,
    admitted: Vec<ConnId>,
    refused: Vec<(Ends, Seq)>,
}

impl Admissions {
    /// Number of decisions that the peers have not been sent yet.
    pub(in crate::host) fn decided(&self) -> usize {
        self.admitted.len() + self.refused.len()
    }
    /// Queues a connection about which the application must be asked.
    pub(in crate::host) fn ask(&mut self, id: ConnId) {
        self.unseen.push_back(id);
    }
    /// The application learns that a waiting connection has failed.
    pub(in crate::host) fn withdraw(&mut self, id: ConnId) {
        self.withdrawn.push_back(id);
    }
}

impl Host {
    /// A connection that waits for admission: its entry in the table of half-open ones.
    fn waiting(&self, id: ConnId) -> Option<u32> {
        let at = self.reserved(id)?;
        let half = self.half_open.get(at)?;
        matches!(half.permission, Permission::Awaited(_)).then_some(at)
    }
    pub(super) fn pending(&self, id: ConnId) -> Option<PendingConnection> {
        let at = self.waiting(id)?;
        let (ends, syn) = (self.half_open.ends(at), &self.half_open.get(at)?.syn);
        let (local, remote) = (ends.local(), ends.remote());
        Some(PendingConnection { id, local, remote, dscp: syn.dscp, gateway: syn.gateway })
    }
    /// Admits a waiting connection with an initial window, segments, and the number of an endpoint; false if the connection no longer
    /// exists.
    pub(super) fn admit_waiting(&mut self, id: ConnId, window: Option<NonZeroU16>, endpoint: u8) -> bool {
        let waiting = self.waiting(id);
        let Some(half) = waiting.and_then(|at| self.half_open.get_mut(at)) else { return false };
        half.permission = Permission::Awaited(Reserved { id, window, endpoint });
        self.admissions.admitted.push(id);
        true
    }
    /// Refuses a waiting connection, if it still exists.
    pub(super) fn refuse_waiting(&mut self, id: ConnId) {
        let Some(at) = self.waiting(id) else { return };
        let ends = self.half_open.ends(at);
        if let Some(half) = self.half_open.remove(at) {
            self.admissions.refused.push((ends, half.syn.seq));
        }
        self.early.remove(id);
        self.vacate(id);
    }
    /// The endpoint of a half-open connection.
    pub(in crate::host) fn endpoint_of(&self, at: u32) -> Option<Endpoint> {
        let chosen = self.half_open.get(at)?.permission.reserved().map_or(0, |r| r.endpoint);
        self.listeners.chosen(self.half_open.ends(at).local().port(), chosen).cloned()
    }

    /// Carries out the application's decisions on connections that waited for admission.
    pub(in crate::host) fn send_decisions(&mut self, now: Instant, out: &mut impl Outlet) {
        for id in core::mem::take(&mut self.admissions.admitted) {
            self.contain(now, |host| host.answer_admitted(now, id, out));
        }
        for (ends, syn) in core::mem::take(&mut self.admissions.refused) {
            self.reset_syn(&ends, syn, out);
        }
        self.reset_broken(out);
    }
    fn answer_admitted(&mut self, now: Instant, id: ConnId, out: &mut impl Outlet) {
        let Some(at) = self.waiting(id) else { return };
        let (ends, endpoint) = (self.half_open.ends(at), self.endpoint_of(at));
        let Some(endpoint) = endpoint else { return };
        if let Some(half) = self.half_open.get_mut(at)
            && let Permission::Awaited(reserved) = half.permission
        {
            half.permission = Permission::Given(reserved);
            // The RTT measurement starts with the answer.
            (half.began, half.sent) = (now, now);
            let half = *half;
            let early = self.early.remove(id).filter(|_| self.demux.len() < self.config.most);
            let (mut conn, synack) = self.rebuild(&half, &ends, &endpoint, early.as_deref());
            if let Some(seg) = synack {
                conn.send(&seg, &mut self.counts, out);
            }
            if early.is_some() {
                // With early data the application can use the connection before the handshake is complete.
                self.half_open.remove(at);
                let slot = self.install(conn, ends, Some(id));
                self.pump(now, slot, out);
                return;
            }
            self.half_open.arm(at, now + endpoint.tcp.rto.initial.min(LIFE));
        }
    }
}
