//! The limit of open descriptors, of which each split connection needs one.

use crate::config::Config;
use crate::error::{GatewayError, MORE_DESCRIPTORS};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that a gateway needs beside those of connections: its own and those of each thread, with room for programs that it
/// starts, requests and captures.
const OWN: u64 = 96;
const PER_THREAD: u64 = 8;
/// With room for fewer connections the gateway does not start.
const FEWEST: u64 = 16;

/// Raises the soft limit of this process to the hard one, which needs no privilege, and returns the limit.
pub(crate) fn raise() -> u64 {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

/// How many connections there is room for, and a line for the log if that is fewer than the file says.
///
/// # Errors
/// If there is room for fewer than [`FEWEST`].
pub(crate) fn room(config: &Config, limit: u64) -> Result<(usize, Option<String>), GatewayError> {
    let own = OWN + PER_THREAD * config.limits.threads as u64;
    let flows = config.limits.flows;
    let needs = own.saturating_add(flows as u64);
    let room = limit.saturating_sub(own);
    if room >= flows as u64 {
        return Ok((flows, None));
    }
    if room < FEWEST {
        return Err(GatewayError::FewDescriptors { limit, needs });
    }
    let line = format!(
        "limits.flows = {flows} needs {needs} descriptors, and this process may open {limit}: at most {room} connections are split; \
         {MORE_DESCRIPTORS}, or lower limits.flows"
    );
    Ok((room as usize, Some(line)))
}

/// Whether the system has no descriptor, or no memory, for another socket.
pub(crate) fn are_used_up(e: &std::io::Error) -> bool {
    use nix::errno::Errno::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    e.raw_os_error().is_some_and(|n| [EMFILE, ENFILE, ENOBUFS, ENOMEM].iter().any(|e| *e as i32 == n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_held_against_the_limit() {
        let file =
            "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\n[limits]\nflows = 1000\n";
        let config = Config::parse("g.toml", file).expect("is good");
        assert_eq!(room(&config, 1104).expect("fits"), (1000, None));
        assert_eq!(room(&config, u64::MAX).expect("fits"), (1000, None));
        let (flows, line) = room(&config, 1103).expect("fits");
        assert_eq!(flows, 999);
        let line = line.expect("a line");
        assert!(
            line.starts_with("limits.flows = 1000 needs 1104 descriptors, and this process may open 1103: ")
        );
        let e = room(&config, 64).expect_err("no room").to_string();
        assert!(e.starts_with("this process may open 64 descriptors") && e.contains("LimitNOFILE="), "{e}");
    }
}
