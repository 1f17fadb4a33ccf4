//! Soak tests of two gateways: many transfers over a link that loses, duplicates, delays and corrupts packets; gateways that
//! are killed; SYN floods, slow readers, exhausted ports, forged packets, and a long mixed load.
//!
//! ```sh
//! make soak-gateway                                       # the long form, about an hour; as root
//! make soak-gateway SOAK="--only gateway-transfers"       # one scene of it
//! cargo test -p skyhaul-gateway --test soak               # the short form
//! ```
#![allow(clippy::disallowed_methods, reason = "scenes run in real time")]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a program")]
#![allow(dead_code, reason = "the tests and the bench use the rest of the bed")]

#[path = "../gateway/bed.rs"]
mod bed;
#[path = "../../../net/tests/soak/finding.rs"]
mod finding;
#[path = "../../../net/tests/soak/machine.rs"]
mod machine;
#[path = "../../../net/tests/soak/program.rs"]
mod program;
#[path = "../../../net/tests/soak/record.rs"]
mod record;
mod scene;
#[path = "../../../net/tests/soak/stop.rs"]
mod stop;
#[path = "../../../net/tests/soak/syn.rs"]
mod syn;
mod transfer;

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if bed::stands_in(&args) {
        return 0.into();
    }
    // Before there is any other thread.
    stop::listen();
    program::play(scene::ALL, args)
}
