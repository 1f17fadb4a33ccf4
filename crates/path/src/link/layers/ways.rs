//! Two ways at a time: each packet leaves over both, and the first copy that arrives is the packet.
//!
//! A terminal sends over two satellites at once, each with a transmitter of its own, so that a copy takes no time from
//! packets: what it costs is the capacity of the other satellite. To the receiver a packet is a block of one with a copy for
//! parity ([`super::blocks`]): the copy over the shorter way is taken for the packet.

use crate::delay::Delay;
use skyhaul_base::Instant;

/// Both ways.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    ways: [Way; 2],
    /// Copies may overtake each other on their way.
    allow_reorder: bool,
}

/// One of them.
#[derive(Clone, Debug, Default)]
struct Way {
    /// `None` while it cannot be used.
    delay: Option<Delay>,
    /// When the last copy over it arrives, lost or not.
    last_arrival: Instant,
}

impl Ways {
    /// None can be used yet.
    pub(super) fn new(allow_reorder: bool) -> Self {
        Self { ways: <[Way; 2]>::default(), allow_reorder }
    }

    /// Another delay of a way, or that it cannot be used any more. True if it could be used until now and cannot any more.
    pub(super) fn set(&mut self, way: u8, delay: Option<Delay>) -> bool {
        let way = &mut self.ways[usize::from(way & 1)];
        let ends = way.delay.is_some() && delay.is_none();
        way.delay = delay;
        ends
    }

    /// What is on its way there is lost: packets on the next way need not wait for arrivals that never happen.
    pub(super) fn cut(&mut self, way: u8, now: Instant) {
        let way = &mut self.ways[usize::from(way & 1)];
        way.last_arrival = way.last_arrival.min(now);
    }

    /// When a copy over each of the ways arrives that leaves the transmitters at `end`, and which way that is, the first to
    /// arrive in front. `None` for one that cannot be used.
    pub(super) fn leave(&mut self, end: Instant) -> [Option<(Instant, u8)>; 2] {
        let allow_reorder = self.allow_reorder;
        let mut copies = [0, 1].map(|i: u8| {
            let way = &mut self.ways[usize::from(i)];
            let arrival = end + way.delay.as_ref()?.base_at(end);
            let arrival = if allow_reorder { arrival } else { arrival.max(way.last_arrival) };
            way.last_arrival = arrival;
            Some((arrival, i))
        });
        copies.sort_by_key(|c| c.map_or((Instant::MAX, 0), |c| c));
        copies
    }
}
