//! Two paths at a time: each packet is sent over both, and the first copy to arrive counts.
//!
//! A terminal sends over two satellites at once with separate transmitters, so a copy takes no capacity from other
//! packets, but uses capacity of the other satellite. For the receiver a packet is a block of one, with the copy as
//! parity ([`super::blocks`]): the copy over the shorter path counts as the packet.

use crate::delay::Delay;
use skyhaul_base::Instant;

/// Both paths.
#[derive(Clone, Debug)]
pub(super) struct TwoPaths {
    paths: [CopyPath; 2],
    /// Copies may be reordered in flight.
    allow_reorder: bool,
}

/// One path.
#[derive(Clone, Debug, Default)]
struct CopyPath {
    /// `None` while it is unusable.
    delay: Option<Delay>,
    /// Arrival of the last copy over it, lost or not.
    last_arrival: Instant,
}

impl TwoPaths {
    /// Initially neither path is usable.
    pub(super) fn new(allow_reorder: bool) -> Self {
        Self { paths: <[CopyPath; 2]>::default(), allow_reorder }
    }

    /// Sets the delay of a path, or makes it unusable. True if it just became unusable.
    pub(super) fn set(&mut self, path: u8, delay: Option<Delay>) -> bool {
        let path = &mut self.paths[usize::from(path & 1)];
        let ends = path.delay.is_some() && delay.is_none();
        path.delay = delay;
        ends
    }

    /// Packets in flight on a path are lost: later packets need not wait for their arrivals.
    pub(super) fn cut(&mut self, path: u8, now: Instant) {
        let path = &mut self.paths[usize::from(path & 1)];
        path.last_arrival = path.last_arrival.min(now);
    }

    /// Arrival times of a copy over each path for a transmission that ends at `end`, with the number of the path,
    /// earliest first. `None` for an unusable path.
    pub(super) fn leave(&mut self, end: Instant) -> [Option<(Instant, u8)>; 2] {
        let allow_reorder = self.allow_reorder;
        let mut copies = [0, 1].map(|i: u8| {
            let path = &mut self.paths[usize::from(i)];
            let arrival = end + path.delay.as_ref()?.base_at(end);
            let arrival = if allow_reorder { arrival } else { arrival.max(path.last_arrival) };
            path.last_arrival = arrival;
            Some((arrival, i))
        });
        copies.sort_by_key(|c| c.map_or((Instant::MAX, 0), |c| c));
        copies
    }
}
