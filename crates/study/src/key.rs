//! Hashes that identify results.

use crate::runner::Unversioned;
use sha2::{Digest, Sha256};
use skyhaul_sim::quantity::{FLOW, LINK, RUN};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Key of a cell: a hash of everything that its result depends on.
#[must_use]
pub fn cell_key(engine: &str, text: &str, version: &Result<String, Unversioned>, seed: u64) -> String {
    let mut digest = Sha256::new()
        .chain_update(engine)
        .chain_update([0])
        .chain_update(text)
        .chain_update([0])
        .chain_update(seed.to_le_bytes());
    match version {
        Ok(version) => digest.update(version),
        // Such a cell is not cached; its key only names it.
        Err(_) => digest.update("?"),
    }
    hex(&digest.finalize())
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

/// A hash of the names of all quantities: it detects results with an older list.
pub(crate) fn quantities() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let names = FLOW.iter().map(|q| q.name).chain(["/"]);
        let names = names.chain(LINK.iter().map(|q| q.name)).chain(["/"]).chain(RUN.iter().map(|q| q.name));
        let all = names.fold(Sha256::new(), |all, name| all.chain_update(name).chain_update([0]));
        hex(&all.finalize()[..4])
    })
}
