//! The program `nft`.

use crate::error::GatewayError;
use serde_json::Value;
use skyhaul_net::NetError;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Applies commands with `nft`: all of them, or none.
///
/// # Errors
/// If `nft` is not installed, the privileges are missing, or `nft` refuses a command.
pub(crate) fn nft(rules: &str) -> Result<(), GatewayError> {
    let spawned = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => GatewayError::NoNft,
        _ => GatewayError::os("start nft")(e),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(rules.as_bytes());
    }
    let done = child.wait_with_output().map_err(GatewayError::os("wait for nft"))?;
    if done.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&done.stderr);
    let mut lines = message.lines();
    let why = lines.next().unwrap_or("it gives no reason").to_owned();
    // The second line is the command that was refused. Commands that create something may lack a module of the kernel; these lack the object
    // that they name.
    let command = lines.next().unwrap_or_default().trim();
    let lacks_object = ["flush ", "delete ", "list ", "add element "].iter().any(|w| command.starts_with(w));
    if why.contains("Operation not permitted") {
        return Err(NetError::Privileges { what: "set rules of nftables".into() }.into());
    }
    // The answer to a kind of rule that the kernel does not know, or to a module that cannot be loaded.
    if !lacks_object
        && ["Could not process rule: No such file", "Could not process rule: Operation not supported"]
            .iter()
            .any(|w| why.contains(w))
    {
        return Err(GatewayError::NoModule);
    }
    Err(GatewayError::Nft(if lacks_object { format!("{why}: {command}") } else { why }))
}

/// What `nft` with these arguments prints in JSON; `None` if `nft` cannot be asked.
pub(crate) fn json(question: &[&str]) -> Option<Value> {
    let done = Command::new("nft").arg("-j").args(question).output().ok()?;
    serde_json::from_slice(&done.stdout).ok()
}

/// All rules of all programs, in JSON; `None` if `nft` cannot be asked.
pub(crate) fn ruleset() -> Option<Value> {
    json(&["list", "ruleset"])
}

/// What `nft` prints of a table, without the connections in its sets; `None`: there is no such table.
///
/// # Errors
/// If `nft` cannot be run.
pub(crate) fn listing(table: &str) -> Result<Option<String>, GatewayError> {
    let asked = Command::new("nft").args(["-s", "-t", "list", "table", "inet", table]).output();
    let done = asked.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => GatewayError::NoNft,
        _ => GatewayError::os("start nft")(e),
    })?;
    Ok(done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned()))
}
