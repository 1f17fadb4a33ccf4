//! Conformance cases: one TCP against a scripted peer, written once and run against several of them.
//!
//! A file holds cases. A case expects only what shows outside: packets, and what an application sees. So the same text is
//! put to our endpoint in virtual time, to our host over a network interface, and to a kernel.
//!
//! ```text
//! case three-duplicates: three duplicate acknowledgements repeat the first segment
//!   source RFC 5681 §3.2
//!   given  sack off, recovery duplicates
//!
//!   server <mss 1000> win 65535           the handshake; the peer answers after 100 ms
//!   write 8000
//!   8x > . ...                            eight segments leave, whatever their numbers
//!   +100ms 3x < . 1:1 ack 1 win 65535     the peer's segment arrives
//!   > . 1:1001 ack 1                      ours leaves at once
//! ```
//!
//! - **Heading** ([`case`]): `source` names the document; `given` changes the endpoint ([`conditions`]); `ours differs:` and
//!   `linux differs:` say why lines that begin with `ours|` or `linux|` are there; `only ours:` and `only linux:` why the
//!   other does not run it; `slow:` why it runs in virtual time only.
//! - **Time**: `+100ms` counts from the line before; `+0.9s..1.1s` is a range. What is expected without a time leaves at
//!   once. What leaves and is not expected fails the case.
//! - **Packets** ([`notation`]): `<` arrives at the TCP under test, `>` leaves it. Numbers count from each end's initial
//!   sequence number. Of an expected packet, only what is written is checked.
//! - **Application** ([`step`]): `listen`, `connect`, `write`, `read`, `shutdown`, `close`, `abort`; `sees reset`,
//!   `state established`, `cwnd 10`.

pub mod case;
pub mod conditions;
pub mod core;
pub mod error;
pub mod files;
pub mod notation;
pub mod number;
pub mod option;
pub mod packet;
pub mod pattern;
pub mod peer;
pub mod run;
pub mod scaled;
pub mod step;
pub mod table;
pub mod target;

pub use case::{Case, Expectation, parse};
pub use conditions::Conditions;
pub use error::SyntaxError;
pub use packet::{Packet, Transport};
pub use run::{Failure, run};
pub use target::{Answer, Call, SocketStatus, Target, TargetKind};
