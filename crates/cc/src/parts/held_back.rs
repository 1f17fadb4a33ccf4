//! Segments that the algorithm itself holds back: their measurements do not reflect the path.

use crate::event::Path;

/// Segments sent while the window is kept small on purpose: the first and last value of `Path::delivered` at their
/// transmission. Linux marks the connection as app-limited during that time instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack(Option<(u64, u64)>);

impl HeldBack {
    /// The window becomes small now.
    pub fn begin(&mut self, path: &Path) {
        self.0 = Some((path.delivered, path.delivered));
    }

    /// The window is still small: segments sent until all data now in flight is delivered are held back as well.
    pub fn go_on(&mut self, path: &Path) {
        if let Some((_, to)) = &mut self.0 {
            *to = path.delivered + path.pipe_bytes;
        }
    }

    /// Whether a segment sent when `delivered` bytes had been delivered is one of them.
    #[must_use]
    pub fn contains(&self, delivered: u64) -> bool {
        self.0.is_some_and(|(from, to)| (from..=to).contains(&delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn from_the_cut_until_what_was_in_flight_at_its_end_is_delivered() {
        let mut held = HeldBack::default();
        assert!(!held.contains(0));
        let mut p = path(64.0);
        p.delivered = 5000;
        held.begin(&p);
        p.delivered = 9000;
        p.set_pipe(4.0);
        held.go_on(&p);
        assert_eq!([4999, 5000, 13_000, 13_001].map(|d| held.contains(d)), [false, true, true, false]);
    }
}
