//! The conformance cases against our host, in virtual time and over TUN, and against the kernel of this machine.
//!
//! ```text
//! cargo test -p skyhaul-net --test conformance                      all of them
//! cargo test -p skyhaul-net --test conformance -- opening/syn       those with this in their names
//! cargo test -p skyhaul-net --test conformance -- --target linux    one target: core, host, tun, linux
//! cargo test -p skyhaul-net --test conformance -- --record          writes the table of docs/conformance.md again
//! ```

#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod ours;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod script_side;
#[cfg(target_os = "linux")]
mod suite;
#[cfg(target_os = "linux")]
mod tun;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    suite::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
