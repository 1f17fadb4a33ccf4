//! Workloads of senders. Each is defined in [`skyhaul_apps`].

use crate::error::Problem;
use crate::transport::Transport;
use skyhaul_apps::{Config, Refusal};

pub use crate::transport::UDP_HEADER;

/// Resolves a workload: `key` is that of the application, `mss` the payload of a full segment.
pub(crate) fn resolve(
    key: &str,
    spec: Option<&Config>,
    transport: Transport,
    mss: u32,
) -> Result<Config, Problem> {
    let spec = spec.unwrap_or(&Config::BULK);
    if transport.rate().is_some() {
        // Rate-controlled datagrams can carry endless data, at the allowed rate.
        if !spec.sends_datagrams() && *spec != Config::BULK {
            let message = format!(
                "transport = \"{}\" carries datagrams without retransmission, and this app needs a byte stream: write app = \
                 \"bulk\", kind = \"cbr\", \"on-off\" or \"video\", or transport = \"tcp\"",
                transport.name()
            );
            return Err(Problem::new(key, message));
        }
    } else if transport == Transport::Udp && !spec.sends_datagrams() {
        let message = "transport = \"udp\" needs an app that sets its own rate: write app = { kind = \"cbr\", rate = \
                       \"1 Mbit/s\" }, or kind = \"on-off\" or \"video\", or transport = \"tcp\"";
        return Err(Problem::new(key, message));
    }
    spec.resolve(transport.for_apps(mss)).map_err(|e| {
        let within = e.key();
        let key = if within.is_empty() { key.to_owned() } else { format!("{key}.{within}") };
        let file = e.file().map(|(name, line)| (name.to_owned(), line));
        Problem { file, ..Problem::new(key, e.to_string()) }
    })
}
