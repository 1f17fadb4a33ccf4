//! A histogram of time spans, accurate to 0.1 % or 1 µs.
//!
//! The cells are those of HdrHistogram (G. Tene, "HdrHistogram: a high dynamic range histogram") with three digits:
//! single microseconds below 2048, and 1024 cells for every doubling above. Every watched packet adds an entry, so
//! from 1024 microseconds on, where each doubling has that many cells, a cell is found as the exponent and the first
//! bits of a real number.

use skyhaul_base::Duration;

/// Cells of every doubling; each of the first two has this many for single microseconds.
const CELLS: u64 = 1024;
/// Its binary logarithm.
const BITS: u32 = CELLS.ilog2();

/// How many cells are looked at at once.
const BLOCK: usize = 64;

/// The bits of a real number that do not matter to its cell, and what the others are for the cell of 1024 microseconds.
const UNSEEN: u32 = f64::MANTISSA_DIGITS - 1 - BITS;
const FIRST: u64 = (CELLS as f64).to_bits() >> UNSEEN;

/// How far the cell of a span is beyond that of 1024 microseconds; farther than any for shorter spans.
#[inline(always)]
fn beyond(nanos: f64) -> usize {
    // The bounds of these cells are whole microseconds, so that a fraction makes no difference.
    ((nanos / 1000.0).to_bits() >> UNSEEN).wrapping_sub(FIRST) as usize
}

/// Nanoseconds as a real number.
#[inline(always)]
pub(crate) fn nanos(span: Duration) -> f64 {
    // Signed, since that is converted with fewer instructions.
    span.as_nanos() as i64 as f64
}

/// Counts spans of time, the first 2³² − 1 of them; by default none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    counts: Box<[u32]>,
    /// Longer spans count as this, in microseconds.
    longest: u64,
    total: u64,
}

/// The cell of this many microseconds.
#[inline]
fn cell(micros: u64) -> usize {
    let doublings = u64::BITS - BITS - 1 - (micros | (2 * CELLS - 1)).leading_zeros();
    (u64::from(doublings) * CELLS + (micros >> doublings)) as usize
}

/// Maximum microseconds of a cell.
fn most(cell: usize) -> u64 {
    let cell = cell as u64;
    let doublings = (cell / CELLS).saturating_sub(1);
    ((cell - doublings * CELLS + 1) << doublings) - 1
}

/// The cells of 1024 microseconds and more of a histogram.
pub(crate) struct Cells<'a> {
    above: &'a mut [u32],
    last: usize,
    /// What an entry counts.
    one: u32,
}

impl Cells<'_> {
    /// One more span of so many [`nanos`].
    #[inline(always)]
    pub(crate) fn add(&mut self, nanos: f64) {
        // Others are rare, and in the last cell for now.
        if let Some(count) = self.above.get_mut(beyond(nanos).min(self.last)) {
            *count += self.one;
        }
    }
}

impl Spans {
    /// An empty histogram; spans longer than this many microseconds are not distinguished.
    pub(crate) fn new(longest: u64) -> Self {
        // Down to the end of the last doubling.
        let cells = (cell(longest) as u64 / CELLS + 1) * CELLS;
        Self { counts: vec![0; cells.max(2 * CELLS) as usize].into(), longest, total: 0 }
    }

    /// One more.
    #[inline]
    pub(crate) fn record(&mut self, span: Duration) {
        let one = self.more(1);
        let (single, above) = self.counts.split_at_mut(self.counts.len().min(CELLS as usize));
        match above.get_mut(beyond(nanos(span))) {
            Some(count) => *count += one,
            None => Self::other(single, above, self.longest, span, one),
        }
    }

    /// All of these spans, of which `adding` adds the nanoseconds of each.
    #[inline(always)]
    pub(crate) fn record_all(
        &mut self,
        spans: impl ExactSizeIterator<Item = Duration>,
        adding: impl FnOnce(&mut Cells<'_>),
    ) {
        let one = self.more(spans.len());
        let (single, above) = self.counts.split_at_mut(self.counts.len().min(CELLS as usize));
        let Some(last) = above.len().checked_sub(1) else { return };
        let before = above[last];
        adding(&mut Cells { above, last, one });
        if above[last] == before {
            return;
        }
        // Some seem to be in the last cell.
        for span in spans.filter(|span| beyond(nanos(*span)) > last) {
            above[last] -= one;
            Self::other(single, above, self.longest, span, one);
        }
    }
    /// So many more: what each counts.
    #[inline]
    fn more(&mut self, spans: usize) -> u32 {
        let total = self.total + spans as u64;
        // No cell has more than all together: it cannot overflow.
        let one = u32::from(total <= u64::from(u32::MAX));
        self.total += u64::from(one) * spans as u64;
        one
    }
    /// `one` more span that is short, or longer than all cells.
    #[inline(never)]
    fn other(single: &mut [u32], above: &mut [u32], longest: u64, span: Duration, one: u32) {
        let micros = span.as_nanos() / 1000;
        let place = if micros < CELLS { micros as usize } else { cell(longest) };
        let count = match place.checked_sub(single.len()) {
            None => single.get_mut(place),
            Some(place) => above.get_mut(place),
        };
        if let Some(count) = count {
            *count += one;
        }
    }

    /// Number of entries.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Quantiles in microseconds, in ascending order, from 0 to 1; 0 if there are no entries.
    pub(crate) fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let ranks = quantiles.map(|quantile| ((quantile.min(1.0) * self.total as f64).ceil() as u64).max(1));
        let (mut found, mut below, mut next) = ([0; N], 0, 0);
        // Most blocks have no quantile, and are summed up at once.
        for (block, counts) in self.counts.chunks(BLOCK).enumerate() {
            let Some(rank) = ranks.get(next) else { break };
            // They are no more than all entries, of which there are at most 2³² − 1.
            let sum = u64::from(counts.iter().sum::<u32>());
            if below + sum < *rank {
                below += sum;
                continue;
            }
            for (cell, count) in counts.iter().enumerate() {
                below += u64::from(*count);
                while let Some(place) = found.get_mut(next).filter(|_| below >= ranks[next]) {
                    *place = most(block * BLOCK + cell);
                    next += 1;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use skyhaul_base::Rng;

    #[test]
    fn a_cell_ends_where_the_next_one_begins() {
        for at in 0..30 * CELLS as usize {
            assert_eq!((cell(most(at)), cell(most(at) + 1)), (at, at + 1));
        }
        assert_eq!((most(2047), most(2048), most(3071), most(3072)), (2047, 2049, 4095, 4099));
    }

    #[test]
    fn its_quantiles_are_those_of_an_hdr_histogram() {
        let mut rng = Rng::stream(5, "spans");
        for longest in [2, 2047, 2048, 3_600_000_000, 86_400_000_000] {
            let mut ours = Spans::new(longest);
            assert_eq!(ours.quantiles([0.5, 1.0]), [0; 2], "of none");
            let mut theirs = Histogram::<u32>::new_with_bounds(1, longest, 3).unwrap();
            for _ in 0..20_000 {
                // From nanoseconds to several days.
                let most = 1 << (1 + rng.below(50));
                let nanos = rng.below(most);
                ours.record(Duration::from_nanos(nanos));
                theirs.saturating_record(nanos / 1000);
            }
            assert_eq!(ours.total(), theirs.len());
            let shares: [f64; 1000] = core::array::from_fn(|i| (i + 1) as f64 / 1000.0);
            assert_eq!(ours.quantiles(shares), shares.map(|s| theirs.value_at_quantile(s)), "{longest}");
        }
    }
}
