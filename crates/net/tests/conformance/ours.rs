//! Our host as a target: carries out the calls of a case.

use skyhaul_base::Instant;
use skyhaul_net::host::{Conn, ConnId, Endpoint, Failure, Host, HostConfig, Secret};
use skyhaul_testkit::conformance::core::tcp_info_of;
use skyhaul_testkit::conformance::target::{PORT, TcpInfo, addresses, our_config, our_control};
use skyhaul_testkit::conformance::{Answer, Call, Conditions, SocketStatus};
use skyhaul_wire::Profile;
use std::net::SocketAddr;

/// The application at a host of ours.
pub(crate) struct Ours {
    /// Configuration of its connections.
    endpoint: Endpoint,
    /// The connections that it has opened or heard of, in this order, without those that it has closed.
    conns: Vec<ConnId>,
}

/// A host under the conditions of a case.
pub(crate) fn host(conditions: &Conditions, secret: Secret) -> Host {
    let mut config = HostConfig::new(vec![addresses(conditions.v6)[0]], secret);
    config.mtu = conditions.mtu.into();
    config.backlog = conditions.backlog.map_or(config.backlog, |n| n as usize);
    Host::new(config)
}

impl Ours {
    pub(crate) fn new(conditions: &Conditions) -> Result<Self, String> {
        let profile = match conditions.profile.as_str() {
            "off" => Profile::Off,
            "paper" => Profile::Paper,
            "compact" => Profile::Compact,
            // "option": conditions refuse other words.
            _ => Profile::Option,
        };
        let endpoint = Endpoint {
            tcp: our_config(conditions),
            cc: our_control(conditions)?,
            profile,
            dscp: 0,
            longest: None,
        };
        Ok(Self { endpoint, conns: Vec::new() })
    }

    /// Notes connections that peers have opened.
    pub(crate) fn hear(&mut self, host: &mut Host) {
        while let Some(id) = host.next_changed() {
            if !self.conns.contains(&id) {
                self.conns.push(id);
            }
        }
    }
    /// The newest connection to this peer.
    fn find<'a>(&mut self, host: &'a mut Host, peer: SocketAddr) -> Result<(ConnId, &'a Conn), String> {
        self.hear(host);
        let known = |id: &&ConnId| host.conn(**id).is_some_and(|c| c.remote() == peer);
        let id = *self.conns.iter().rev().find(known).ok_or("there is no connection")?;
        host.conn(id).map(|c| (id, c)).ok_or_else(|| "the connection is gone".to_owned())
    }

    pub(crate) fn call(
        &mut self,
        host: &mut Host,
        now: Instant,
        peer: SocketAddr,
        call: &Call,
        data: &[u8],
    ) -> Result<Answer, String> {
        match call {
            Call::Listen => {
                host.listen(PORT, self.endpoint.clone()).map_err(|e| e.to_string())?;
                return Ok(Answer::Done);
            }
            Call::Connect => {
                let from = SocketAddr::new(host.config().addresses[0], 0);
                let id = host.connect(now, from, peer, &self.endpoint).map_err(|e| e.to_string())?;
                self.conns.push(id);
                return Ok(Answer::Done);
            }
            _ => {}
        }
        let (id, conn) = self.find(host, peer)?;
        Ok(match call {
            Call::Accept if conn.is_connected() => Answer::Done,
            Call::Accept => return Err("the connection is not established".into()),
            Call::Write(..) => Answer::Wrote(host.write(now, id, data) as u64),
            Call::Read(most, _) => {
                // A case may ask for more than is ever there; the memory for it has a limit, bytes.
                let mut out = vec![0; (*most).min(1 << 24) as usize];
                let n = host.read(now, id, &mut out);
                out.truncate(n);
                Answer::Read(out)
            }
            Call::Shutdown => {
                host.shutdown(now, id);
                Answer::Done
            }
            Call::Close => {
                host.release(now, id);
                self.conns.retain(|c| *c != id);
                Answer::Done
            }
            Call::Abort => {
                host.abort(now, id);
                Answer::Done
            }
            Call::Listen | Call::Connect => unreachable!("done above"),
        })
    }

    pub(crate) fn socket_status(
        &mut self,
        host: &mut Host,
        peer: SocketAddr,
    ) -> Result<SocketStatus, String> {
        let (_, conn) = self.find(host, peer)?;
        Ok(match conn.failure() {
            Some(Failure::Refused) => SocketStatus::Refused,
            Some(Failure::Reset) => SocketStatus::Reset,
            Some(Failure::TimedOut) => SocketStatus::TimedOut,
            Some(Failure::Unreachable) => SocketStatus::Unreachable,
            Some(Failure::Defect) => return Err("the host panicked over this connection".into()),
            None if conn.at_end() => SocketStatus::End,
            None => SocketStatus::Nothing,
        })
    }

    pub(crate) fn tcp_info(&mut self, host: &mut Host, peer: SocketAddr) -> Result<TcpInfo, String> {
        let (_, conn) = self.find(host, peer)?;
        Ok(tcp_info_of(conn.tcp()))
    }
}
