//! What a host on the wire endures: many connections, short ones, floods, slow peers, jumping clocks, interfaces that come
//! and go, corrupted packets.
//!
//! Each scene prints what it measured, the bounds, and whether they hold, and writes the same as JSON. A scene that fails does
//! not stop the others. In the long form, scenes that have held are kept: after Ctrl-C the same command goes on with the rest.
//! By default the form is short, for tests: it takes a minute, and values that depend on how fast the machine is get no verdict.
//!
//! ```sh
//! make soak                                  # the long form, three quarters of an hour
//! make soak SOAK="--short --only flood"      # one scene, in the short form
//! ```
#![allow(clippy::disallowed_methods, reason = "it runs in real time and reads the clock")]
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
    // Before any other thread starts: threads inherit the blocked signals.
    stop::listen();
    let args: Vec<String> = std::env::args().skip(1).collect();
    // A scene has started this program again, as a process of clients.
    if args.first().is_some_and(|a| a == crowd::WORD) {
        return crowd::play(&args[1..]);
    }
    program::play(scene::ALL, args)
}
