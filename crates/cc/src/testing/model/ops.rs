//! The possible operations, from bytes or from random numbers.

use alloc::vec::Vec;
use skyhaul_base::Rng;

/// An operation. Numbers are limited to what is possible at that time, and impossible operations are skipped: every
/// sequence is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// An acknowledgement that advances by this many segments and answers this many probes.
    Advance {
        /// Segments.
        segments: u8,
        /// Answers to probes that it carries.
        probes: u8,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// A duplicate ACK; the third consecutive one reveals a loss.
    Duplicate {
        /// With new SACK information.
        sack: bool,
        /// The loss, if it reveals one, is declared to be corruption.
        corruption: bool,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// Answers to probes alone.
    Probes {
        /// How many.
        count: u8,
        /// They were sent before the current episode began.
        stale: bool,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// An acknowledgement of one segment with an ECN echo.
    Ecn,
    /// The retransmission timer expires.
    Timeout,
    /// The time set with [`Actions::wake_at`](crate::Actions::wake_at) comes, or time passes.
    Wake,
    /// The peer turns out not to answer probes.
    Unsupported,
    /// The last reduction proves spurious.
    Undo,
    /// The application's data ends, or this many segments are added; 255 means endless data.
    Write(u8),
    /// The peer's window changes to this many segments.
    Window(u8),
    /// Nothing is outstanding for a long time.
    Idle,
}

impl From<[u8; 4]> for Op {
    /// Every code is an operation: for generators and fuzzers.
    fn from([kind, a, b, c]: [u8; 4]) -> Self {
        let sack = a % 2 == 0;
        match kind % 32 {
            0..=12 => {
                Self::Advance { segments: a % 8 + 1, probes: if b < 200 { 0 } else { b % 4 }, after: c }
            }
            13..=19 => Self::Duplicate { sack, corruption: b >= 230, after: c },
            20..=23 => Self::Probes { count: a % 8 + 1, stale: b >= 200, after: c },
            24 => Self::Ecn,
            25 => Self::Timeout,
            26 => Self::Wake,
            27 if a < 32 => Self::Unsupported,
            27 => Self::Advance { segments: u8::MAX, probes: 0, after: c },
            28 => Self::Undo,
            29 => Self::Write(if a % 2 == 0 { u8::MAX } else { b % 100 }),
            30 => Self::Window(if a < 64 { a % 4 } else { a }),
            _ => Self::Idle,
        }
    }
}

/// `n` operations from the random stream `seed`, for tests without their own generator.
#[must_use]
pub fn ops(seed: u64, n: usize) -> Vec<Op> {
    let mut rng = Rng::stream(seed, "cc.testing.ops");
    (0..n).map(|_| Op::from((rng.next_u64() as u32).to_le_bytes())).collect()
}
