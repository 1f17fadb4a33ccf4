//! What a host on the wire endures: many connections, short ones, floods, slow peers, jumping clocks, interfaces that come
//! and go, corrupted packets.
//!
//! Each scene prints what it measured, the bound, and whether that holds, and writes the same as JSON. One that fails does
//! not end the others. Scenes that have finished are kept: after Ctrl-C the same command goes on. By default the form is
//! short, for tests: it takes a minute, and values that depend on how fast the machine is get no verdict.
//!
//! ```sh
//! make soak                                  # the long form, about an hour
//! make soak SOAK="--short --only flood"      # a scene of the short one
//! ```
#![allow(clippy::disallowed_methods, reason = "it takes the time that it takes")]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a program")]

#[cfg(target_os = "linux")]
mod bed;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod finding;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod syn;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    // Before there is any other thread.
    stop::listen();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == crowd::WORD) {
        return crowd::play(&args[1..]);
    }
    program::play(scene::ALL, args)
}
