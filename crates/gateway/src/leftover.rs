//! Removal of what a gateway that was killed has left behind.

use crate::control;
use crate::error::GatewayError;
use crate::rules;
use crate::saved_settings::{self, SavedSettings, Turn};
use crate::system::{self, Lock};
use std::path::Path;

/// The result of [`clean`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupResult {
    /// Everything was removed and restored.
    All,
    /// There was nothing.
    Nothing,
    /// Everything was kept, because the gateway's file says `on-failure = "block"`.
    Kept,
}

/// Removes what a gateway that was killed has left behind in this namespace, and restores what it had changed. With `keep_block`,
/// what a gateway with `on-failure = "block"` has left behind stays.
///
/// # Errors
/// If a gateway of this name runs, or the privileges are missing.
pub fn clean(folder: &Path, name: &str, keep_block: bool) -> Result<CleanupResult, GatewayError> {
    let _lock = Lock::take(folder, name)?;
    control::forget(folder, name);
    let record = saved_settings::record(folder, name);
    if keep_block && record.as_ref().is_some_and(|r| r.block) {
        return Ok(CleanupResult::Kept);
    }
    let before = record.map(|r| r.before);
    let table = rules::table_of(name);
    // Fails without privileges, before anything is removed.
    let has_table = system::has_table(&table)?;
    if before.is_none() && !has_table {
        return Ok(CleanupResult::Nothing);
    }
    let _turn = Turn::wait(folder);
    let others = !saved_settings::others(folder, name).is_empty();
    system::remove(&before.unwrap_or_else(|| SavedSettings::unknown(table)), others)?;
    saved_settings::forget(&saved_settings::file(folder, name));
    Ok(CleanupResult::All)
}
