//! Maximum over the last ticks of a counter (usually rounds), exact and in fixed space.

/// The maximum over the current tick and the `N - 1` before it.
///
/// One candidate is kept per tick, and only until a later value is at least as large: at most `N` at a time, in
/// decreasing order of value, so that the oldest one still in the window is the maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowedMax<const N: usize> {
    candidates: [(u64, u64); N],
    len: usize,
}

impl<const N: usize> Default for WindowedMax<N> {
    fn default() -> Self {
        const { assert!(N > 0, "a window has at least one tick") };
        Self { candidates: [(0, 0); N], len: 0 }
    }
}

impl<const N: usize> WindowedMax<N> {
    /// Processes `value` of `tick` and forgets values outside the window. Ticks must not decrease.
    pub fn update(&mut self, tick: u64, value: u64) {
        // The usual case: a value below that of its own tick changes nothing.
        let newest = self.len.checked_sub(1).map(|i| self.candidates[i]);
        if newest.is_some_and(|(t, v)| t == tick && value <= v) {
            return;
        }
        let kept = self.candidates[..self.len].iter().position(|&(_, v)| v <= value).unwrap_or(self.len);
        self.len = kept;
        let expired =
            self.candidates[..kept].iter().take_while(|&&(t, _)| tick.saturating_sub(t) >= N as u64).count();
        if expired > 0 {
            self.candidates.copy_within(expired..kept, 0);
            self.len -= expired;
        }
        match self.len.checked_sub(1).map(|i| self.candidates[i].0) {
            // A smaller value of the same tick can never become the maximum.
            Some(last) if last == tick => {}
            _ => {
                self.candidates[self.len] = (tick, value);
                self.len += 1;
            }
        }
    }

    /// The maximum as of the last update; 0 before the first.
    #[must_use]
    pub fn max(&self) -> u64 {
        if self.len == 0 { 0 } else { self.candidates[0].1 }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_peak_lasts_as_long_as_the_window() {
        let mut m = WindowedMax::<3>::default();
        assert_eq!(m.max(), 0);
        let maxima: Vec<_> = [(0, 9), (1, 5), (2, 7), (3, 1), (4, 2), (5, 3)]
            .into_iter()
            .map(|(t, v)| {
                m.update(t, v);
                m.max()
            })
            .collect();
        assert_eq!(maxima, [9, 9, 9, 7, 7, 3]);
        m.update(100, 1);
        assert_eq!(m.max(), 1);
        m.clear();
        assert_eq!(m.max(), 0);
    }

    proptest! {
        #[test]
        fn it_agrees_with_its_definition(
            steps in prop::collection::vec((0u64..4, 0u64..20), 1..200)
        ) {
            let mut m = WindowedMax::<5>::default();
            let mut all = Vec::new();
            let mut tick = 0;
            for (advance, value) in steps {
                tick += advance;
                m.update(tick, value);
                all.push((tick, value));
                let naive = all.iter().filter(|&&(t, _)| tick - t < 5).map(|&(_, v)| v).max();
                prop_assert_eq!(Some(m.max()), naive);
            }
        }
    }
}
