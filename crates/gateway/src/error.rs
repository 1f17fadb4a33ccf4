//! Why a gateway does not run. Each message is one line and says what to do.

use skyhaul_net::NetError;
use std::io;

/// Why a gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The file says something that cannot be.
    #[error("{file}: {key}{message}")]
    Config {
        /// The file.
        file: String,
        /// The key, with ": ", or nothing.
        key: String,
        /// What is wrong, and what to write.
        message: String,
    },
    /// The program that sets rules is not there.
    #[error("there is no program nft: install it (Debian and Ubuntu: apt-get install nftables)")]
    NoNft,
    /// It refuses.
    #[error("nft refuses the rules: {0}")]
    Nft(String),
    /// There is one already.
    #[error(
        "a gateway called {name:?} runs already (process {pid}): stop it with `skyhaul gateway stop {name}`, or choose another name"
    )]
    Running {
        /// Its name.
        name: String,
        /// Its process.
        pid: String,
    },
    /// Another one is in this network namespace.
    #[error("another gateway runs in this network namespace (it uses routing table {0}): stop it first")]
    Another(u32),
    /// None of that name runs.
    #[error("no gateway called {0:?} runs: `skyhaul gateway run FILE` starts one")]
    NotRunning(String),
    /// The kernel does not forward.
    #[error("{family} forwarding is off: sysctl -w {key}=1")]
    NoForwarding {
        /// "IPv4" or "IPv6".
        family: &'static str,
        /// The key.
        key: &'static str,
    },
    /// From the devices.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Anything else.
    #[error("cannot {what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

impl GatewayError {
    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Os { what, source }
    }
}
