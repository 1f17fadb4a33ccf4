//! Checks of the repair of datagrams.

use super::{Finding, doubt, finding};
use crate::config::Config;
use crate::repair::{Settings, key_of};
use crate::status::Status;
use skyhaul_net::routing::{self, Route};
use std::os::unix::fs::PermissionsExt;

/// The key, the route to the other gateway, and the gateway that runs, if `status` is that of one; nothing if the file repairs nothing.
pub(super) fn examine(config: &Config, status: Option<&Status>) -> Vec<Finding> {
    let Some(settings) = &config.repair else { return Vec::new() };
    let mut all = vec![key(settings), route(config, settings)];
    all.extend(config.repair.as_ref().and_then(|_| status?.repair.as_ref()).map(|r| {
        let what = "repair of datagrams";
        match &r.cause {
            None => finding(what, true, format!("works with {}, for {:.0} s", r.peer, r.lasts)),
            Some(why) => finding(what, false, format!("not for {:.0} s: {why}", r.lasts)),
        }
    }));
    all
}

fn key(settings: &Settings) -> Finding {
    let what = match &settings.key_file {
        Some(path) => format!("repair.key-file {}", path.display()),
        None => "repair.key".into(),
    };
    if let Err(why) = key_of(settings) {
        return finding(what, false, why);
    }
    let mode =
        settings.key_file.as_ref().and_then(|p| std::fs::metadata(p).ok()).map(|m| m.permissions().mode());
    match mode {
        Some(mode) if mode & 0o077 != 0 => doubt(what, "others may read it: chmod 600"),
        _ => finding(what, true, "is long enough"),
    }
}

/// Whether packets to the other gateway leave by the satellite interface.
fn route(config: &Config, settings: &Settings) -> Finding {
    let (peer, link) = (settings.peer.address, &config.satellite.interface);
    let what = format!("repair.peer {peer}");
    let index = nix::net::if_::if_nametoindex(link.as_str()).ok();
    match (routing::route_to(peer, None), index) {
        (Ok(Route::Out(out)), Some(index)) if out == index => {
            finding(what, true, format!("is reached by {link}"))
        }
        (Ok(Route::Here), _) => {
            finding(what, false, "is an address of this machine: write that of the other gateway")
        }
        (Ok(_), Some(_)) => finding(
            what,
            false,
            format!(
                "is not reached by {link}: write the address of the other gateway at the link, or add a route"
            ),
        ),
        // Without the interface there is a finding about that; without an answer there is nothing to say.
        _ => doubt(what, "the route to it is not known"),
    }
}
