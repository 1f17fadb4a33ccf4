//! Running cases.

use crate::capture::{CaptureOptions, PcapTap};
use crate::cases::Case;
use crate::error::LabError;
use crate::workers;
use skyhaul_base::Instant;
use skyhaul_cc::Controls;
use skyhaul_sim::{RunResult, Sim, Tap};
use skyhaul_trace::{Digest, Null};

/// Observer of runs, called from several threads; it may stop them.
pub trait RunObserver: Sync {
    /// Before the first step: the number of steps.
    fn begin(&self, steps: u64) {
        let _ = steps;
    }
    /// After each step.
    fn step(&self) {}
    /// After the last step.
    fn end(&self) {}
    /// True to stop the runs.
    fn stopped(&self) -> bool {
        false
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {}

/// Number of steps of a run: before each the observer may stop it, after each the observer is told.
const STEPS: u64 = 200;

/// Runs all cases, at most `jobs` at a time; results are in the order of the cases.
///
/// # Errors
/// If a case cannot be simulated, or is stopped.
pub fn execute(
    cases: &[Case],
    jobs: usize,
    digest: bool,
    watch: &dyn RunObserver,
) -> Result<Vec<RunResult>, LabError> {
    watch.begin(cases.len() as u64 * STEPS);
    let run = |i: usize| Some(measured(&cases[i], digest, &Controls::default(), watch));
    let done = workers::share(cases.len(), jobs, &|| !watch.stopped(), &run);
    watch.end();
    done.into_iter().map(|d| d.unwrap_or(Err(LabError::Stopped))).collect()
}

/// Runs one case with user-defined controls.
///
/// # Errors
/// If it cannot be simulated, a control fails, or it is stopped.
pub fn single(
    case: &Case,
    digest: bool,
    controls: &Controls,
    watch: &dyn RunObserver,
) -> Result<RunResult, LabError> {
    watch.begin(STEPS);
    let result = measured(case, digest, controls, watch);
    watch.end();
    result
}

/// As [`single`] without a digest, for callers that need the run to its end.
///
/// # Errors
/// As [`single`], and if the run ended early at its memory limit.
pub fn whole(case: &Case, controls: &Controls, watch: &dyn RunObserver) -> Result<RunResult, LabError> {
    let result = single(case, false, controls, watch)?;
    result.ended.map_or(Ok(result), |why| Err(LabError::Ended(why)))
}

/// Runs one case and captures its packets. If the run ends early, the capture so far is readable.
///
/// # Errors
/// As [`execute`], and if the capture cannot be written.
pub fn captured(
    case: &Case,
    digest: bool,
    options: &CaptureOptions,
    watch: &dyn RunObserver,
) -> Result<RunResult, LabError> {
    let mut tap = PcapTap::open(options, case)?;
    watch.begin(STEPS);
    let none = Controls::default();
    let result = if digest {
        one(case, (Digest::default(), &mut tap), &none, watch)
    } else {
        one(case, &mut tap, &none, watch)
    };
    watch.end();
    let written = tap.finish();
    match result {
        Err(LabError::Stopped) => {
            written?;
            Err(LabError::StoppedCapture { path: options.path.clone() })
        }
        Err(e) => Err(e),
        Ok(result) => written.map(|()| result),
    }
}

/// Runs one case with the caller's recorder, and user-defined controls.
///
/// # Errors
/// As [`single`].
pub fn recorded<R: Tap>(
    case: &Case,
    recorder: R,
    controls: &Controls,
    watch: &dyn RunObserver,
) -> Result<RunResult, LabError> {
    watch.begin(STEPS);
    let result = one(case, recorder, controls, watch);
    watch.end();
    result
}

fn measured(
    case: &Case,
    digest: bool,
    controls: &Controls,
    watch: &dyn RunObserver,
) -> Result<RunResult, LabError> {
    if digest { one(case, Digest::default(), controls, watch) } else { one(case, Null, controls, watch) }
}

fn one<R: Tap>(
    case: &Case,
    recorder: R,
    controls: &Controls,
    watch: &dyn RunObserver,
) -> Result<RunResult, LabError> {
    let mut sim = Sim::with_controls(&case.scenario, case.seed, recorder, controls)?;
    let end = sim.end().as_nanos();
    for step in 1..=STEPS {
        if watch.stopped() {
            return Err(LabError::Stopped);
        }
        let until = u128::from(end) * u128::from(step) / u128::from(STEPS);
        sim.try_run_until(Instant::from_nanos(until as u64))?;
        watch.step();
    }
    Ok(sim.try_finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Calls {
        begun: AtomicUsize,
        ended: AtomicUsize,
    }

    impl RunObserver for Calls {
        fn begin(&self, _: u64) {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        fn end(&self) {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_capture_that_cannot_be_opened_leaves_no_progress_without_an_end() {
        let cases = crate::cases::resolve("preset:peach-geo", &[], None).expect("a preset");
        let path = std::env::temp_dir().join("skyhaul-capture-at-nowhere.pcapng");
        let options =
            CaptureOptions { path, at: vec!["nowhere".to_owned()], flows: Vec::new(), snaplen: 100 };
        let calls = Calls::default();
        assert!(captured(&cases[0], false, &options, &calls).is_err(), "there is no such place");
        assert_eq!(calls.begun.into_inner(), calls.ended.into_inner());
    }
}
