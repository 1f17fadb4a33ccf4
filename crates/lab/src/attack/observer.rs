//! Observers of searches.

/// Observer of a search, called from several threads; it may stop the search.
pub trait SearchObserver: Sync {
    /// After each case: what is spent of the budget (runs or seconds), the number of cases, and the worst value so far.
    fn case(&self, spent: u64, budget: u64, cases: usize, worst: Option<f64>) {
        let _ = (spent, budget, cases, worst);
    }
    /// The search is over; the best cases are run with other seeds.
    fn confirm(&self) {}
    /// Wraps a simulation: calls `run` once. An observer may hold a lock meanwhile.
    fn around(&self, run: &mut dyn FnMut()) {
        run();
    }
    /// Nothing runs any more.
    fn end(&self) {}
    /// True to stop.
    fn stopped(&self) -> bool {
        false
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl SearchObserver for NoObserver {}
