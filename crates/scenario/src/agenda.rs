//! Changes of links during a run: the events of the scenario, and changes by models such as orbits and rain.

use crate::resolved::{Direction, Link, Resolved};
use skyhaul_base::{Instant, Rng};
use skyhaul_path::agenda::Due;
use skyhaul_path::{Agenda, Change, Course, fade};

impl Direction {
    /// Whether the link changes over time by itself, for example because a satellite moves or it rains.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.orbit.is_some() || self.fade.is_some()
    }

    /// The courses that change it by themselves in run `seed`. `link` is its link, and `direction` is "forward" or
    /// "reverse".
    fn courses(&self, seed: u64, link: &Link, direction: &str) -> Vec<Box<dyn Course>> {
        let mut courses: Vec<_> = self.orbit.iter().map(|orbit| orbit.course()).collect();
        courses.extend(self.fade_course(seed, link, direction));
        courses
    }

    /// The course of its fade in run `seed`.
    pub(crate) fn fade_course(&self, seed: u64, link: &Link, direction: &str) -> Option<Box<dyn Course>> {
        let (fade, rng) = self.fade_stream(seed, link, direction)?;
        Some(fade.course(rng))
    }

    /// Its fade, and the random stream of it in run `seed`.
    fn fade_stream(&self, seed: u64, link: &Link, direction: &str) -> Option<(&fade::Config, Rng)> {
        let fade = self.fade.as_ref()?;
        // What both directions share is drawn twice, from streams with the same name.
        let stream = if fade.shared() {
            format!("links.{}.fade", link.name)
        } else {
            format!("links.{}.{direction}.fade", link.name)
        };
        Some((fade, Rng::stream(seed, &stream)))
    }
}

/// What can be read of a directed link that changes by itself, without touching it.
#[derive(Debug)]
pub struct Gauges {
    /// Its fade.
    pub fade: Option<Box<dyn fade::Gauge>>,
    /// Its satellites.
    pub orbit: Option<skyhaul_orbit::Gauge>,
}

impl Resolved {
    /// The gauges of each directed link in run `seed`, in the order of the numbers of [`Self::agenda`].
    #[must_use]
    pub fn gauges(&self, seed: u64) -> Vec<Gauges> {
        let of = |link: &Link, direction: &str, d: &Direction| Gauges {
            fade: d.fade_stream(seed, link, direction).map(|(fade, rng)| fade.gauge(rng)),
            orbit: d.orbit.as_ref().map(|orbit| orbit.gauge()),
        };
        let both = |link: &Link| [of(link, "forward", &link.forward), of(link, "reverse", &link.reverse)];
        self.links.iter().flat_map(both).collect()
    }

    /// The changes in run `seed` of the directed links that `mine` selects by index and direction, with their state
    /// at the start. A directed link has the number 2 · index, plus one in reverse.
    pub fn agenda(&self, seed: u64, mine: impl Fn(usize, bool) -> bool) -> (Agenda, Vec<(u32, Change)>) {
        let number = |link: usize, forward: bool| (2 * link + usize::from(!forward)) as u32;
        let events = self.events.iter().filter(|e| mine(e.link, e.forward)).map(|e| Due {
            at: Instant::ZERO + e.at,
            link: number(e.link, e.forward),
            change: e.change.clone(),
        });
        let (mut courses, mut first) = (Vec::new(), Vec::new());
        for (i, link) in self.links.iter().enumerate() {
            for (forward, direction, d) in
                [(true, "forward", &link.forward), (false, "reverse", &link.reverse)]
            {
                if mine(i, forward) {
                    first.extend((!d.up).then(|| (number(i, forward), Change::Up(false))));
                    courses.extend(
                        d.courses(seed, link, direction).into_iter().map(|c| (number(i, forward), c)),
                    );
                }
            }
        }
        // The initial state set by courses is not a change: no packet has met another state.
        for (link, course) in &mut courses {
            while course.next() == Instant::ZERO {
                first.push((*link, course.take()));
            }
        }
        (Agenda::new(events.collect(), courses), first)
    }
}
