//! The line of the log about a connection that has ended, or is open for long.

use crate::absent::with;
use crate::cause::Cause;
use crate::classes::{self, ClassConfig};
use crate::flow::{Flow, Initiator};
use serde_json::{Value, json};
use skyhaul_base::Instant;
use skyhaul_net::host::{Conn, Host};
use skyhaul_net::sockets::Connections;
use skyhaul_trace::calendar::rfc3339_millis;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where the state of the kernel's sockets comes from: opened at the first use; `Some(None)` if the kernel refused.
#[derive(Debug, Default)]
pub(crate) struct Kernel(Option<Option<Arc<Connections>>>);

impl Kernel {
    /// Keeps the state of a connection's socket for its line.
    pub(crate) fn observe(&mut self, flow: &mut Flow) {
        let all = self.0.get_or_insert_with(|| Connections::new().ok().map(Arc::new));
        if let Some(all) = all {
            flow.near.observe(all.clone());
        }
    }
}

/// A connection that has ended, or that is open if `cause` is `None`.
pub(crate) fn flow(
    now: Instant,
    host: &Host,
    classes: &[ClassConfig],
    flow: &mut Flow,
    cause: Option<Cause>,
) -> Value {
    let passed = flow.passed();
    let far = flow.link.id().and_then(|id| host.conn(id));
    let mut link = json!({
        "control": flow.control,
        "gateway": flow.gateway.is_some(),
        "srtt-ms": far.and_then(|c| c.snapshot().srtt).map(|t| t.as_secs_f64() * 1e3),
        "cwnd": far.map(|c| c.snapshot().cwnd),
    });
    if let Some(c) = far.map(Conn::counters) {
        for (key, n) in [
            ("segments", c.segments_sent),
            ("retransmitted", c.retransmissions),
            ("timeouts", c.timeouts),
            ("recoveries", c.recoveries),
            ("probes", c.probes_sent),
        ] {
            link = with(link, key, n);
        }
    }
    // The kernel reports no state of a socket that was reset.
    let state = flow.near.state();
    let hosts =
        state.map(|k| json!({ "srtt-ms": k.srtt.as_secs_f64() * 1e3, "retransmitted": k.retransmitted }));
    let bytes = json!({ "to-link": passed.to_link, "to-hosts": passed.to_hosts, "lost": passed.lost });
    let mut line = ends(flow.from, flow.client, flow.server);
    // Before the leg over the link is open, its DSCP is that of the other leg.
    let member = flow
        .link
        .id()
        .and_then(|id| host.membership(id))
        .unwrap_or_else(|| host.config().schedule.membership(flow.client, flow.server, flow.near.dscp()));
    let subscriber = member.subscriber.map(|(network, length)| format!("{network}/{length}"));
    if let Some(cause) = cause {
        line = with(line, "end", json!(cause));
    }
    for (key, value) in [
        ("flow", json!(flow.number)),
        ("began", rfc3339_millis(flow.began_at).into()),
        ("seconds", json!((now - flow.began).as_secs_f64())),
        ("class", json!(classes::name(classes, member.class))),
        ("subscriber", json!(subscriber)),
        ("bytes", bytes),
        ("link", link),
        ("hosts", json!(hosts)),
    ] {
        line = with(line, key, value);
    }
    line
}

/// A connection that the gateway could not take.
pub(crate) fn refused(from: Initiator, client: SocketAddr, server: SocketAddr) -> Value {
    with(ends(from, client, server), "end", "not-taken")
}

fn ends(from: Initiator, client: SocketAddr, server: SocketAddr) -> Value {
    json!({ "from": from, "client": client, "server": server })
}
