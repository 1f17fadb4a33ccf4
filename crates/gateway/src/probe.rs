//! A probe connection over the link: it shows whether a SYN gets across, and whether the answer comes back through this gateway.

use crate::control::{Answer, PROBE};
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{ConnId, Failure, Host};
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

/// Time for an answer: four SYNs, after 0, 1, 3 and 7 s (RFC 6298 §2.1, §5.5).
const PATIENCE: Duration = Duration::from_secs(12);

/// What to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Address and port from which the connection comes: of a host on the terrestrial side. Port 0: any.
    pub from: SocketAddr,
    /// The server behind the link.
    pub to: SocketAddr,
}

impl Target {
    /// The command for the control socket.
    #[must_use]
    pub fn command(&self) -> String {
        format!("{PROBE} {}", serde_json::to_string(self).unwrap_or_default())
    }
}

/// How a probe connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The handshake was completed.
    Connected,
    /// A reset came back: nothing listens at that port, but the path works in both directions.
    Refused,
    /// A router said that the server cannot be reached.
    Unreachable,
    /// Nothing came back.
    Silence,
}

/// The result of a probe connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Probed {
    /// How it ended.
    pub outcome: Outcome,
    /// How long that took, seconds.
    pub took: f64,
    /// Another gateway answered for the server.
    pub gateway: bool,
    /// The port from which it was sent.
    pub port: u16,
}

/// A probe connection that waits for its answer.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) id: ConnId,
    began: Instant,
    answer: Sender<Answer>,
}

impl Probe {
    pub(crate) fn new(now: Instant, id: ConnId, answer: Sender<Answer>) -> Self {
        Self { id, began: now, answer }
    }
    /// When it is given up.
    pub(crate) fn ends(&self) -> Instant {
        self.began + PATIENCE
    }
    /// Whether it is over; then the answer has been given, and the connection is gone.
    pub(crate) fn is_over(&self, now: Instant, host: &mut Host) -> bool {
        let conn = host.conn(self.id);
        let outcome = match conn.map(|c| (c.is_connected(), c.failure())) {
            Some((true, _)) => Outcome::Connected,
            Some((_, Some(Failure::Refused | Failure::Reset))) => Outcome::Refused,
            Some((_, Some(Failure::Unreachable))) => Outcome::Unreachable,
            Some((_, Some(Failure::TimedOut | Failure::Defect))) | None => Outcome::Silence,
            Some((false, None)) if now >= self.ends() => Outcome::Silence,
            Some((false, None)) => return false,
        };
        let probed = Probed {
            outcome,
            took: (now - self.began).as_secs_f64(),
            gateway: conn.is_some_and(|c| c.peer_gateway().is_some()),
            port: conn.map_or(0, |c| c.local().port()),
        };
        let _ = self.answer.send(serde_json::to_string(&probed).unwrap_or_default().into());
        host.abort(now, self.id);
        host.release(now, self.id);
        true
    }
}
