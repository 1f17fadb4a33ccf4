//! The serving satellites of a link over time, and its delay.

use crate::config::{Config, Diversity, Relay};
use crate::handover::{Candidate, Policy};
use crate::moment::Moment;
use crate::route::{Route, Router};
use crate::sky::{Sky, Stations};
use alloc::sync::Arc;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::Handover;

/// Interval at which a path over inter-satellite links is recomputed.
const REROUTE: Duration = Duration::from_secs(1);

/// A time span without changes of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Start of the span.
    pub from: Instant,
    /// End of the span; [`Instant::MAX`] if nothing changes any more.
    pub until: Instant,
    /// The path that packets take, the shorter one of two; `None` while there is none.
    pub path: Option<Path>,
    /// Both paths of a link over two satellites at a time.
    pub paths: [Option<Path>; 2],
    /// Handovers at its start.
    pub handovers: Vec<Handover>,
}

/// A path that packets take. Its delay is linear between both ends of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The satellite that the senders' station uses.
    pub first: u32,
    /// The satellite that the receivers' station uses.
    pub last: u32,
    /// Number of satellites on the path.
    pub satellites: u32,
    /// One-way delay at the beginning of the span.
    pub begin: Duration,
    /// One-way delay at its end.
    pub end: Duration,
}

/// Follows the satellites of a link step by step. Two trackers with the same configuration make the same steps.
#[derive(Clone, Debug)]
pub struct Tracker {
    sky: Arc<Sky>,
    policy: Policy,
    relay: Relay,
    interval: Duration,
    interruption: Duration,
    /// Start of the next step.
    at: Instant,
    /// Time of the next handover decision.
    next_check: Instant,
    /// One per satellite serving at a time.
    slots: Vec<Slot>,
    candidates: Vec<Candidate>,
    router: Router,
}

/// A terminal that tracks one satellite.
#[derive(Clone, Debug, Default)]
struct Slot {
    route: Option<Route>,
    /// End of the interruption by its last handover.
    ready: Instant,
}

impl Tracker {
    /// A tracker at the start of a run. `sky` is that of the configuration.
    #[must_use]
    pub fn new(config: &Config, sky: Arc<Sky>) -> Self {
        let slots = match config.diversity {
            Diversity::None => 1,
            Diversity::Best | Diversity::Both => 2,
        };
        Self {
            sky,
            policy: config.handover,
            relay: config.relay,
            interval: config.interval,
            interruption: config.interruption(),
            at: Instant::ZERO,
            next_check: Instant::ZERO,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            candidates: Vec::new(),
            router: Router::default(),
        }
    }

    /// The sky.
    #[must_use]
    pub fn sky(&self) -> &Sky {
        &self.sky
    }

    /// Start of the next step.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The next time span.
    pub fn step(&mut self) -> Step {
        let at = self.at;
        let now = self.sky.moment(at);
        let mut handovers = Vec::new();
        let still = self.sky.stands_still();
        if at == self.next_check {
            match self.relay {
                Relay::BentPipe => self.check_pipes(at, &now, &mut handovers),
                Relay::InterSatellite => self.check_grid(at, &now, &mut handovers),
            }
            // With stationary satellites the decision is made once.
            self.next_check = if still { Instant::MAX } else { at + self.interval };
        } else if self.relay == Relay::InterSatellite && is_multiple(at, REROUTE) {
            self.reroute(&now);
        }
        let mut until = self.next_check;
        for slot in self.slots.iter().filter(|s| s.route.is_some() && s.ready > at) {
            until = until.min(slot.ready);
        }
        let path = self.nearest(at, &now);
        if path.is_some() && !still {
            until = until.min(after(at, self.sky.step()));
            if self.relay == Relay::InterSatellite {
                until = until.min(after(at, REROUTE));
            }
        }
        let path = path.map(|(route, begin)| self.path(route, begin, until));
        let paths = [0, 1].map(|i| {
            let slot = self.slots.get(i).filter(|s| self.slots.len() == 2 && s.ready <= at)?;
            let route = slot.route.as_ref()?;
            Some(self.path(route, route.delay(&self.sky, &now)?, until))
        });
        if at == Instant::ZERO {
            // The first serving satellite is not a handover.
            handovers.clear();
        }
        self.at = until;
        Step { from: at, until, path, paths, handovers }
    }

    /// A path until a given time; its current delay is known.
    fn path(&self, route: &Route, begin: f64, until: Instant) -> Path {
        let end = match until {
            Instant::MAX => None,
            until => route.delay(&self.sky, &self.sky.moment(until)),
        };
        Path {
            first: route.first(),
            last: route.last(),
            satellites: route.satellites().len() as u32,
            begin: Duration::from_secs_f64(begin),
            end: Duration::from_secs_f64(end.unwrap_or(begin)),
        }
    }

    /// The nearest usable path, with its delay.
    fn nearest(&self, at: Instant, now: &Moment) -> Option<(&Route, f64)> {
        let ready = self.slots.iter().filter(|s| s.ready <= at).filter_map(|s| s.route.as_ref());
        let mut best: Option<(&Route, f64)> = None;
        for route in ready {
            if let Some(delay) = route.delay(&self.sky, now) {
                if best.is_none_or(|b| delay < b.1) {
                    best = Some((route, delay));
                }
            }
        }
        best
    }

    /// Selects the serving satellite of a bent pipe.
    fn check_pipes(&mut self, at: Instant, now: &Moment, handovers: &mut Vec<Handover>) {
        self.sky.candidates(Stations::Both, now, &mut self.candidates);
        let (sky, policy, candidates) = (&self.sky, &self.policy, &self.candidates);
        let elevation = |slot: &Slot| {
            let serving = slot.route.as_ref().map(Route::first);
            candidates.iter().find(|c| Some(c.satellite) == serving).map_or(-90.0, |c| c.elevation)
        };
        // The lower satellite first, so that a better one replaces it and not the other. While one slot is interrupted, the other
        // changes only if its satellite has set.
        let mut order: [usize; 2] = [0, 1];
        if self.slots.len() == 2 && elevation(&self.slots[1]) < elevation(&self.slots[0]) {
            order = [1, 0];
        }
        let mut changing = self.slots.iter().any(|s| s.route.is_some() && s.ready > at);
        for &i in order.iter().take(self.slots.len()) {
            let other = self.slots.iter().enumerate().find(|(j, _)| *j != i);
            let taken = other.and_then(|(_, s)| s.route.as_ref()).map(Route::first);
            let free: Vec<Candidate> =
                candidates.iter().filter(|c| Some(c.satellite) != taken).copied().collect();
            let slot = &mut self.slots[i];
            let old = slot.route.as_ref().map(Route::first);
            let serving = free.iter().find(|c| Some(c.satellite) == old);
            if slot.ready > at || (changing && serving.is_some()) {
                continue;
            }
            let mut remaining = |satellite| sky.remaining(Stations::Both, satellite, now);
            let new = policy.choose(serving, &free, &mut remaining);
            if new == old {
                continue;
            }
            let delay =
                |s: Option<u32>| s.and_then(|s| Route::over(s).delay(sky, now)).map(Duration::from_secs_f64);
            handovers.push(Handover {
                from: old,
                to: new,
                before: delay(old).unwrap_or_default(),
                after: delay(new).unwrap_or_default(),
            });
            slot.route = new.map(Route::over);
            // A handover interrupts the link; a link that was down comes up at once.
            slot.ready = if old.is_some() && new.is_some() { at + self.interruption } else { at };
            changing |= slot.ready > at;
        }
    }

    /// Selects the serving satellites of both ends over inter-satellite links.
    fn check_grid(&mut self, at: Instant, now: &Moment, handovers: &mut Vec<Handover>) {
        if self.slots[0].ready > at {
            return;
        }
        let old = self.slots[0].route.take();
        let before = old.as_ref().and_then(|r| r.delay(&self.sky, now));
        let new = if self.policy.shortens() {
            self.shortest(now, old.as_ref())
        } else {
            self.by_ends(now, old.as_ref())
        };
        let after = new.as_ref().and_then(|r| r.delay(&self.sky, now));
        let delay = |d: Option<f64>| d.map(Duration::from_secs_f64).unwrap_or_default();
        for end in [Route::first, Route::last] {
            let (from, to) = (old.as_ref().map(end), new.as_ref().map(end));
            if from != to {
                handovers.push(Handover { from, to, before: delay(before), after: delay(after) });
            }
        }
        let slot = &mut self.slots[0];
        slot.ready =
            if old.is_some() && new.is_some() && !handovers.is_empty() { at + self.interruption } else { at };
        slot.route = new;
    }

    /// The shortest of all paths, or the shortest path between the current serving satellites if it is longer by no more than the
    /// hysteresis.
    fn shortest(&mut self, now: &Moment, old: Option<&Route>) -> Option<Route> {
        let (best, delay) = self.router.best(&self.sky, now)?;
        let visible = old.filter(|r| {
            self.sky.sees(Stations::One(0), r.first(), now) && self.sky.sees(Stations::One(1), r.last(), now)
        });
        let kept = visible.and_then(|r| self.between(now, r.first(), r.last()));
        // The policy compares whole paths: number 0 is the kept one, 1 the shortest.
        let candidate = |satellite, delay| Candidate { satellite, elevation: 0.0, delay };
        let Some((route, kept_delay)) = kept else { return Some(best) };
        let (kept, other) = (candidate(0, kept_delay), candidate(1, delay));
        match self.policy.choose(Some(&kept), &[kept, other], &mut |_| 0.0) {
            Some(0) => Some(route),
            _ => Some(best),
        }
    }

    /// The shortest path between the satellites that each end selects separately.
    fn by_ends(&mut self, now: &Moment, old: Option<&Route>) -> Option<Route> {
        let mut chosen = [0; 2];
        for (end, chosen) in chosen.iter_mut().enumerate() {
            self.sky.candidates(Stations::One(end), now, &mut self.candidates);
            let serving = old.map(|r| if end == 0 { r.first() } else { r.last() });
            let serving = self.candidates.iter().find(|c| Some(c.satellite) == serving);
            let mut remaining = |satellite| self.sky.remaining(Stations::One(end), satellite, now);
            *chosen = self.policy.choose(serving, &self.candidates, &mut remaining)?;
        }
        self.between(now, chosen[0], chosen[1]).map(|r| r.0)
    }

    /// The shortest path between two satellites, and its delay in seconds.
    fn between(&mut self, now: &Moment, first: u32, last: u32) -> Option<(Route, f64)> {
        self.router.shortest(&self.sky, now, core::iter::once(first), &[last])
    }

    /// Looks for a shorter path between the serving satellites.
    fn reroute(&mut self, now: &Moment) {
        let ends = self.slots[0].route.as_ref().map(|r| (r.first(), r.last()));
        if let Some((first, last)) = ends {
            self.slots[0].route = self.between(now, first, last).map(|r| r.0);
        }
    }
}

fn is_multiple(at: Instant, of: Duration) -> bool {
    at.as_nanos() % of.as_nanos() == 0
}

/// The next multiple of `span` after a time.
fn after(at: Instant, span: Duration) -> Instant {
    let whole = at.as_nanos() / span.as_nanos();
    Instant::from_nanos((whole + 1).saturating_mul(span.as_nanos()))
}

#[cfg(test)]
mod tests;
