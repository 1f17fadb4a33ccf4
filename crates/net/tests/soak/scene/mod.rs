//! What a host is put through.

mod beside_idle;
mod churn;
mod clock;
mod flood;
mod held;
mod interface;
mod mutations;
mod slow;
mod turnover;

pub use crate::record::Outcome;

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub long: bool,
}

impl Run {
    /// One of the two.
    pub fn choose<T>(self, long: T, short: T) -> T {
        if self.long { long } else { short }
    }
}

type Scene = fn(&Run) -> Outcome;

/// Name, what it is, and the scene; in the order in which they are played.
pub const ALL: &[(&str, &str, Scene)] = &[
    ("clock", "clocks that jump forwards and backwards, and machines that sleep", clock::play),
    (
        "mutations",
        "a host with a well-behaved application against a peer whose packets are corrupted",
        mutations::play,
    ),
    ("held", "connections that are opened, served, kept idle and served again", held::play),
    ("turnover", "connections that are opened, served and closed as fast as possible", turnover::play),
    ("flood", "SYNs from random addresses beside genuine clients", flood::play),
    ("slow", "readers and writers that take their time, within a limit of memory", slow::play),
    ("interface", "an interface that goes down and up, is removed and made again", interface::play),
    ("beside-idle", "throughput with and without idle connections", beside_idle::play),
    ("churn", "all kinds of clients at once", churn::play),
];
