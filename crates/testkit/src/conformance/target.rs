//! Targets: the TCP implementations on which a case is run.

use super::conditions::Conditions;
use super::packet::{Damage, Packet};
use skyhaul_base::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

/// A kind of target; it decides how exact times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Ours in virtual time, segments without bytes: the endpoint of the simulator.
    Core,
    /// Ours in virtual time, packets: the host.
    Host,
    /// Ours in real time, over a network interface.
    Tun,
    /// The kernel, in real time.
    Linux,
}

impl TargetKind {
    /// True where time is virtual, and an event happens when it is due.
    #[must_use]
    pub const fn is_virtual(self) -> bool {
        matches!(self, Self::Core | Self::Host)
    }
    /// How late an event may be that is due after `due`. In real time the machine is late, and long timers of Linux are up to an
    /// eighth of their length late, since its timer wheel has levels.
    #[must_use]
    pub fn tolerance(self, due: Duration) -> Duration {
        match self {
            Self::Core | Self::Host => Duration::from_millis(1),
            Self::Tun => Duration::from_millis(25) + due.mul_f64(0.02),
            Self::Linux => Duration::from_millis(25) + due.mul_f64(0.14),
        }
    }
    /// How early an event may be.
    #[must_use]
    pub fn earlier(self) -> Duration {
        Duration::from_millis(if self.is_virtual() { 1 } else { 12 })
    }
}

/// The port that applications listen on.
pub const PORT: u16 = 80;

/// Addresses of the TCP under test, and of the peers.
#[must_use]
pub fn addresses(v6: bool) -> [IpAddr; 2] {
    if v6 {
        [[0xfd00, 0x5359, 0, 0, 0, 0, 0, 1].into(), [0xfd00, 0x5359, 0, 1, 0, 0, 0, 2].into()]
    } else {
        [[10, 84, 0, 1].into(), [10, 84, 1, 2].into()]
    }
}

/// What an application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Takes connections.
    Listen,
    /// Opens one to the peer, without waiting.
    Connect,
    /// Takes the connection from the peer, which must be there.
    Accept,
    /// Writes this number of bytes; the second number is how many the case expects to be accepted, `None`: all of them.
    Write(u64, Option<u64>),
    /// Reads up to this number of bytes; the second number is how many the case expects, `None`: any.
    Read(u64, Option<u64>),
    /// No more from this side.
    Shutdown,
    /// Closes both directions in order, and forgets the connection.
    Close,
    /// Gives it up with a reset.
    Abort,
}

/// What an application sees of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketStatus {
    /// Nothing is wrong, and there is no end.
    Nothing,
    /// Reset by the peer.
    Reset,
    /// Nobody listens.
    Refused,
    /// No answer any more.
    TimedOut,
    /// A router reports that the peer cannot be reached.
    Unreachable,
    /// The peer has closed, and all is read.
    End,
}

/// The state of a connection, as `tcp_info` of Linux gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpInfo {
    /// State by its name in the language of cases.
    pub state: &'static str,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Payload of a full segment, bytes.
    pub mss: u32,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// This number of bytes was taken.
    Wrote(u64),
    /// These were read.
    Read(Vec<u8>),
}

/// A TCP under test. Peers differ in their ports. Times count from the beginning of the case.
pub trait Target {
    /// Its kind.
    fn kind(&self) -> TargetKind;
    /// The present.
    fn now(&self) -> Instant;
    /// A packet arrives.
    ///
    /// # Errors
    /// If it cannot be delivered.
    fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String>;
    /// Lets time pass until a packet leaves, at most until `until`.
    ///
    /// # Errors
    /// If the target has failed.
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String>;
    /// An application does something with the connection to this peer. `data` is what it writes.
    ///
    /// # Errors
    /// If it cannot be done.
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String>;
    /// What the application sees of the connection to this peer.
    ///
    /// # Errors
    /// If there is none.
    fn socket_status(&mut self, peer: SocketAddr) -> Result<SocketStatus, String>;
    /// The state of the connection to this peer.
    ///
    /// # Errors
    /// If there is none.
    fn tcp_info(&mut self, peer: SocketAddr) -> Result<TcpInfo, String>;
}

/// The configuration of our endpoint under these conditions, without segment sizes and marks of probes, which depend on the
/// target.
#[must_use]
pub fn our_config(conditions: &Conditions) -> skyhaul_tcp::Config {
    use skyhaul_tcp::config::{Keepalive, LossDetection};
    let mut c = skyhaul_tcp::Config::host();
    c.sack = Some(conditions.sack);
    c.timestamps = conditions.timestamps;
    if !conditions.timestamps {
        c.rtt_source = skyhaul_tcp::config::RttSource::EveryAck;
    }
    c.window_scaling = conditions.scaling;
    c.dsack = conditions.dsack && conditions.sack;
    let by_time = conditions.by_time && conditions.sack;
    c.loss_detection = if by_time { LossDetection::Rack } else { LossDetection::DupAcks };
    c.tail_loss_probe = conditions.tail_loss_probe && by_time;
    c.f_rto = conditions.f_rto;
    c.ecn = if conditions.ecn { skyhaul_tcp::config::Ecn::Ask } else { skyhaul_tcp::config::Ecn::Off };
    c.nagle = conditions.nagle;
    c.rules.restart_after_idle = conditions.idle_restart;
    c.receive_buffer = conditions.receive_buffer.unwrap_or(c.receive_buffer);
    c.send_buffer = conditions.send_buffer.unwrap_or(c.send_buffer);
    c.max_retransmissions = conditions.retries.or(conditions.syn_retries).unwrap_or(c.max_retransmissions);
    c.fin_timeout = conditions.fin_timeout.unwrap_or(c.fin_timeout);
    c.user_timeout = conditions.user_timeout.unwrap_or(Duration::ZERO);
    if let Some((idle, interval, probes)) = conditions.keepalive {
        c.keepalive = Keepalive { idle, interval, probes };
    }
    c
}

/// Our congestion control for this name. `reno` is ours with SACK where SACK is used, NewReno where it is not.
///
/// # Errors
/// If there is none.
pub fn our_control(conditions: &Conditions) -> Result<skyhaul_cc::Config, String> {
    let name = match (conditions.control.as_str(), conditions.sack) {
        ("reno", true) => "sack",
        ("reno", false) => "newreno",
        (name, _) => name,
    };
    skyhaul_cc::Config::by_name(name).ok_or_else(|| format!("no control of ours is called {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_reach_our_endpoint() {
        let with = |text: &str| {
            let mut conditions = Conditions::default();
            conditions.take(text).expect("a condition");
            our_config(&conditions)
        };
        assert!(our_config(&Conditions::default()).rules.restart_after_idle);
        assert!(!with("idle-restart off").rules.restart_after_idle);
        assert!(!with("f-rto off").f_rto && !with("tail-loss-probe off").tail_loss_probe);
        assert_eq!(with("fin-timeout 2s").fin_timeout, Duration::from_secs(2));
    }
}
