//! The search: swarms of cases, one after the other, until the budget is spent.
//!
//! A swarm (Kennedy, Eberhart 1995) needs no gradient, starts anywhere in the bounds, stays in them, and can end at
//! their edge, where bad cases often are. A round of a swarm is evaluated on all cores. A swarm without progress makes
//! way for a new one, since a case that is bad for one reason hides those that are bad for another.
//!
//! The argmin library moves the swarm. Its rounds come as one call, in order, so that a budget in runs ends at the
//! same case on any number of threads.

use crate::attack::goal::Goal;
use crate::attack::point::Point;
use crate::attack::setup::Outcome;
use crate::attack::space::Space;
use crate::error::LabError;
use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::particleswarm::ParticleSwarm;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Rounds without progress after which a new swarm starts.
const PATIENCE: u32 = 6;
/// The cost of a case without a value, such as a failure: larger than that of every value.
const REFUSED: f64 = 1e12;

/// Evaluates cases that are new; `None` for those that the budget or the user does not allow any more.
pub(super) trait Evaluate {
    /// The outcomes, in the order of the cases.
    ///
    /// # Errors
    /// If the journal cannot be written.
    fn evaluate(&self, cases: &[Point]) -> Result<Vec<Option<Outcome>>, LabError>;
}

/// Every case of a search, by key.
pub(super) type Cases = BTreeMap<String, (Point, Outcome)>;

/// Number of cases in a round: two for each coordinate, at least 8.
pub(super) fn swarm(space: &Space) -> usize {
    (2 * space.varied.len()).max(8)
}

/// Searches until the evaluator takes no more cases, or a swarm finds no new one.
///
/// # Errors
/// If the journal cannot be written.
pub(super) fn search(
    space: &Space,
    goal: Goal,
    seed: u64,
    evaluator: &dyn Evaluate,
) -> Result<Cases, LabError> {
    let state = Mutex::new(State::default());
    for swarm_number in 0u64.. {
        let before = lock(&state).cases.len();
        lock(&state).begin();
        let n = space.varied.len();
        let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(swarm_number << 32));
        let solver =
            ParticleSwarm::new((vec![0.0; n], vec![1.0; n]), swarm(space)).with_rng_generator(random);
        let problem = Problem { space, goal, evaluator, state: &state };
        // A swarm ends with an error: `Problem` decides when.
        let ended = Executor::new(problem, solver).timer(false).run();
        let mut state = lock(&state);
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        debug_assert!(ended.is_err(), "a swarm has no end of its own");
        // A swarm that finds only known cases shows that the bounds hold no others.
        if state.over || state.cases.len() == before {
            return Ok(std::mem::take(&mut state.cases));
        }
    }
    unreachable!("swarms are numbered without end")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct State {
    cases: Cases,
    /// Cost of the best case of this swarm.
    best: f64,
    /// Rounds since the best case was found.
    stale: u32,
    /// The search ends: the evaluator takes no more cases, or failed.
    over: bool,
    error: Option<LabError>,
}

impl State {
    fn begin(&mut self) {
        (self.best, self.stale) = (f64::INFINITY, 0);
    }
}

/// Why a swarm ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the budget is spent")]
    Over,
    #[error("the swarm makes no progress")]
    Stale,
}

struct Problem<'a> {
    space: &'a Space,
    goal: Goal,
    evaluator: &'a dyn Evaluate,
    state: &'a Mutex<State>,
}

impl Problem<'_> {
    fn costs(&self, places: &[&Vec<f64>]) -> Result<Vec<f64>, End> {
        let mut state = lock(self.state);
        let points: Vec<Point> = places.iter().map(|place| self.space.at(place)).collect();
        let mut new: Vec<Point> = Vec::new();
        for point in &points {
            if !state.cases.contains_key(&point.key()) && !new.contains(point) {
                new.push(point.clone());
            }
        }
        match self.evaluator.evaluate(&new) {
            Ok(outcomes) => {
                for (point, outcome) in new.into_iter().zip(outcomes) {
                    match outcome {
                        Some(outcome) => drop(state.cases.insert(point.key(), (point, outcome))),
                        None => state.over = true,
                    }
                }
            }
            Err(e) => (state.error, state.over) = (Some(e), true),
        }
        if state.over {
            return Err(End::Over);
        }
        let cost = |p: &Point| {
            let value = state.cases.get(&p.key()).and_then(|(_, outcome)| outcome.value());
            value.map_or(REFUSED, |v| self.goal.cost(v))
        };
        let costs: Vec<f64> = points.iter().map(cost).collect();
        let best = costs.iter().copied().fold(f64::INFINITY, f64::min);
        (state.best, state.stale) = if best < state.best { (best, 0) } else { (state.best, state.stale + 1) };
        if state.stale >= PATIENCE { Err(End::Stale) } else { Ok(costs) }
    }
}

impl CostFunction for Problem<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, place: &Vec<f64>) -> Result<f64, Error> {
        Ok(self.costs(&[place])?[0])
    }

    fn bulk_cost<P: Borrow<Vec<f64>>>(&self, places: &[P]) -> Result<Vec<f64>, Error> {
        Ok(self.costs(&places.iter().map(Borrow::borrow).collect::<Vec<_>>())?)
    }
}
