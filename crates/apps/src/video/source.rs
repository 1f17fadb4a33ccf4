//! Frames from a movie or a trace.

use super::coded::Coded;
use super::groups::{BLOCK, Groups};
use super::movie::{Compiled, Mode, WITHIN_SCENE};
use super::pattern::Order;
use super::tes::{Process, fraction};
use super::trace::Trace;
use crate::frame::FrameType as Type;
use crate::workload::Streams;
use skyhaul_base::Rng;
use std::sync::Arc;

/// Types and sizes of successive frames.
#[derive(Clone, Debug)]
pub struct Source {
    origin: Origin,
    /// For [`Self::step`]: frames that were drawn together, which takes fewer instructions than one by one, their number, and
    /// the next one of them.
    kinds: [Type; BLOCK],
    sizes: [f64; BLOCK],
    count: usize,
    next: usize,
}

#[derive(Clone, Debug)]
enum Origin {
    /// Each type has its own process.
    Independent { movie: Arc<Compiled>, order: Order, types: [Option<Process>; Type::COUNT] },
    /// One process for scenes; frames are close to their scene.
    Coupled { movie: Arc<Compiled>, order: Order, scenes: Process, scene: f64, within: Rng },
    /// A trace, from its start; repeated at its end if configured.
    Replay { trace: Arc<Trace>, next: usize, repeats: bool },
}

impl Source {
    fn new(origin: Origin) -> Self {
        Self { origin, kinds: [Type::I; BLOCK], sizes: [0.0; BLOCK], count: 0, next: 0 }
    }
    /// A movie, from a random position of each of its processes.
    #[must_use]
    pub fn movie(movie: Arc<Compiled>, streams: &Streams) -> Self {
        let order = Order::new(movie.pattern.clone());
        let process = |kind: Type, purpose: &str| {
            let k = movie.kind(kind)?;
            Some(Process::new(k.sign, k.innovation.clone(), streams.named(purpose)))
        };
        if movie.mode == Mode::Coupled {
            if let Some(scenes) = process(Type::I, "scenes") {
                let within = streams.named("within scenes");
                return Self::new(Origin::Coupled { movie, order, scenes, scene: 0.0, within });
            }
        }
        let types = Type::ALL.map(|kind| process(kind, &format!("frames.{}", kind.letter())));
        Self::new(Origin::Independent { movie, order, types })
    }
    /// A trace.
    #[must_use]
    pub fn replay(trace: Arc<Trace>, repeats: bool) -> Self {
        Self::new(Origin::Replay { trace, next: 0, repeats })
    }

    /// Draws the next frames: some, but none after the end of a trace. Each has as many bytes as `bytes` says of its size. A source
    /// is used in this way or by [`Self::step`].
    #[inline(never)]
    pub(super) fn draw(&mut self, into: &mut Coded, bytes: impl Fn(f64) -> u32) {
        // What was drawn for single steps is no longer needed.
        self.next = self.count;
        into.count = self.origin.draw(&mut self.sizes, &mut into.kinds, &mut into.bytes, bytes);
    }
    /// Type and size in bytes of the next frame; `None` after the end of a trace.
    #[inline]
    pub fn step(&mut self) -> Option<(Type, f64)> {
        if self.next >= self.count {
            let mut circle = [0.0; BLOCK];
            self.count = self.origin.draw(&mut circle, &mut self.kinds, &mut self.sizes, |size| size);
            self.next = 0;
            if self.count == 0 {
                return None;
            }
        }
        let next = self.next % BLOCK;
        self.next += 1;
        Some((self.kinds[next], self.sizes[next]))
    }
}

impl Origin {
    /// The next frames, and what `of` makes of their sizes: how many they are. The types of others become I. `circle` becomes
    /// anything.
    #[inline(always)]
    fn draw<T>(
        &mut self,
        circle: &mut [f64; BLOCK],
        kinds: &mut [Type; BLOCK],
        sizes: &mut [T; BLOCK],
        of: impl Fn(f64) -> T,
    ) -> usize {
        if let Some(count) = self.draw_groups(circle, kinds, sizes, &of) {
            return count;
        }
        let mut count = 0;
        // Up to groups that can be drawn together.
        while count < BLOCK && !self.has_groups() {
            let Some((kind, size)) = self.step() else { break };
            (kinds[count], sizes[count]) = (kind, of(size));
            count += 1;
        }
        kinds[count..].fill(Type::I);
        count
    }
    /// Whether groups of pictures follow that can be drawn together.
    fn has_groups(&self) -> bool {
        matches!(self, Self::Independent { movie, order, .. } if groups(movie, order).is_some())
    }
    /// Draws these. `None`, and nothing has changed, if there are none.
    #[inline(always)]
    fn draw_groups<T>(
        &mut self,
        circle: &mut [f64; BLOCK],
        kinds: &mut [Type; BLOCK],
        sizes: &mut [T; BLOCK],
        of: impl Fn(f64) -> T,
    ) -> Option<usize> {
        let Self::Independent { movie, order, types } = self else { return None };
        let groups = groups(movie, order)?;
        for (kind, process) in Type::ALL.into_iter().zip(types) {
            if let Some(process) = process {
                process.steps(groups.places(kind), |place, u| circle[usize::from(place) % BLOCK] = u);
            }
        }
        *kinds = groups.kinds;
        groups.sizes(circle, |kind, u| movie.size(kind, u), of, sizes);
        Some(groups.count)
    }
    /// The next frame.
    fn step(&mut self) -> Option<(Type, f64)> {
        match self {
            Self::Independent { movie, order, types } => {
                let kind = order.step();
                Some((kind, movie.kind(kind)?.size(types[kind as usize].as_mut()?.step())))
            }
            Self::Coupled { movie, order, scenes, scene, within } => {
                let kind = order.step();
                if kind == Type::I {
                    *scene = scenes.step();
                }
                let near = fraction(*scene + WITHIN_SCENE * (2.0 * within.unit() - 1.0));
                Some((kind, movie.kind(kind)?.size(near)))
            }
            Self::Replay { trace, next, repeats } => {
                if *next >= trace.frames().len() {
                    if !*repeats {
                        return None;
                    }
                    *next = 0;
                }
                let (kind, bytes) = trace.frames()[*next];
                *next += 1;
                Some((kind, bytes.into()))
            }
        }
    }
}

/// The groups of pictures that follow, if they can be drawn together.
#[inline]
fn groups<'a>(movie: &'a Compiled, order: &Order) -> Option<&'a Groups> {
    movie.groups.as_ref().filter(|_| order.begins_a_group())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::correlation::of_sequence;
    use crate::video::marginal::Marginal;
    use crate::video::movie::Movie;
    use crate::video::tes::Sign;

    struct Seen {
        mean: f64,
        variation: f64,
        largest: f64,
        group_variation: f64,
        group_lag_1: f64,
        lag_1: [f64; 3],
    }

    fn moments(x: &[f64]) -> (f64, f64) {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let square = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (mean, square.sqrt() / mean)
    }

    fn play(mode: Mode, groups: usize) -> Seen {
        let movie = Movie { mode, ..Movie::named("jp-medium").unwrap() };
        let mut source = Source::movie(Arc::new(movie.compile().unwrap()), &Streams::of(1, "flows.video[0]"));
        let (mut all, mut sums) = (Vec::new(), Vec::new());
        let mut of: [Vec<f64>; 3] = Default::default();
        let mut sum = 0.0;
        while sums.len() < groups {
            let (kind, size) = source.step().unwrap();
            if kind == Type::I && sum > 0.0 {
                sums.push(core::mem::take(&mut sum));
            }
            sum += size;
            all.push(size);
            of[kind as usize].push(size);
        }
        // The first group lacks two frames.
        let ((mean, variation), (_, group_variation)) = (moments(&all), moments(&sums[1..]));
        Seen {
            mean,
            variation,
            largest: all.iter().fold(0.0, |a: f64, b| a.max(*b)),
            group_variation,
            group_lag_1: of_sequence(&sums[1..], 1)[0],
            lag_1: of.map(|x| of_sequence(&x, 1)[0]),
        }
    }

    /// What every mode has of 200 000 groups of pictures.
    fn aggregates(s: &Seen) {
        assert!((s.mean / 1339.0 - 1.0).abs() < 0.02, "mean {}", s.mean);
        assert!((s.variation - 0.845).abs() < 0.02, "variation {}", s.variation);
        assert!((s.largest / s.mean - 6.36).abs() < 0.1, "peak {}", s.largest);
    }

    #[test]
    fn independent_types_have_the_published_aggregates_but_for_the_groups() {
        let s = play(Mode::Independent, 200_000);
        aggregates(&s);
        assert!((s.group_variation - 0.47).abs() < 0.03, "groups {}", s.group_variation);
        assert!((s.group_lag_1 - 0.92).abs() < 0.02, "lag {}", s.group_lag_1);
        // Each type is as alike from frame to frame as its closed form says.
        let movie = Movie::named("jp-medium").unwrap().compile().unwrap();
        for kind in Type::ALL {
            let rho = movie.kind(kind).unwrap().autocorrelation(1)[0];
            assert!(
                (s.lag_1[kind as usize] - rho).abs() < 0.01,
                "{kind:?}: {} {rho}",
                s.lag_1[kind as usize]
            );
        }
    }

    #[test]
    fn scenes_bring_large_groups_together() {
        let s = play(Mode::Coupled, 200_000);
        aggregates(&s);
        assert!((s.group_variation - 0.58).abs() < 0.03, "groups {}", s.group_variation);
        assert!((s.group_lag_1 - 0.90).abs() < 0.03, "lag {}", s.group_lag_1);
    }

    #[test]
    fn a_trace_is_replayed_once_or_over_and_over() {
        let trace = Arc::new(Trace::new(vec![(Type::I, 5), (Type::P, 6)], 25.0).unwrap());
        let mut once = Source::replay(trace.clone(), false);
        assert_eq!(
            [once.step(), once.step(), once.step(), once.step()],
            [Some((Type::I, 5.0)), Some((Type::P, 6.0)), None, None]
        );
        let mut again = Source::replay(trace, true);
        let sizes: Vec<f64> = (0..5).filter_map(|_| again.step()).map(|f| f.1).collect();
        assert_eq!(sizes, [5.0, 6.0, 5.0, 6.0, 5.0]);
    }

    #[test]
    fn frames_drawn_together_are_those_drawn_one_by_one() {
        let movie = |mode, gop: &str, sign| {
            let mut movie = Movie { mode, gop: gop.into(), ..Movie::named("jp-medium").unwrap() };
            movie.i.sign = sign;
            Source::movie(Arc::new(movie.compile().unwrap()), &Streams::of(4, "flows.video[0]"))
        };
        // Each type has sizes of its own kind, some of which are not in the table.
        let mixed = |xi: f64| {
            let sizes = |text: &str| serde_json::from_str::<Marginal>(text).unwrap();
            let mut movie = Movie::named("jp-medium").unwrap();
            let (p, b) = (movie.p.as_mut().unwrap(), movie.b.as_mut().unwrap());
            p.sizes = sizes(r#"{"histogram": {"edges": ["9 B", "100 B", "5 kB"], "shares": [1, 3]}}"#);
            b.sizes = sizes(r#"{"lognormal": {"median": "700 B", "sigma": 1.5}}"#);
            (movie.i.xi, p.xi, b.xi) = (xi, 1.0 - xi, xi / 2.0);
            (b.least, b.most) = (100, 3000);
            Source::movie(Arc::new(movie.compile().unwrap()), &Streams::of(4, "flows.video[0]"))
        };
        let trace = Arc::new(Trace::new(vec![(Type::I, 5), (Type::P, 6), (Type::B, 7)], 25.0).unwrap());
        let sources = [
            mixed(0.0),
            mixed(0.3),
            mixed(1.0),
            movie(Mode::Independent, "IBBPBBPBBPBB", Sign::Plus),
            movie(Mode::Independent, "IBB", Sign::Minus),
            movie(Mode::Independent, "I", Sign::Plus),
            movie(Mode::Independent, &format!("I{}", "PBB".repeat(10)), Sign::Plus),
            movie(Mode::Independent, &format!("I{}", "PBB".repeat(30)), Sign::Plus),
            movie(Mode::Coupled, "IBBP", Sign::Plus),
            Source::replay(trace.clone(), true),
            Source::replay(trace, false),
        ];
        for mut together in sources {
            let mut one_by_one = together.clone();
            for _ in 0..200 {
                let (mut circle, mut kinds, mut sizes) = ([0.0; BLOCK], [Type::I; BLOCK], [0.0; BLOCK]);
                let count = together.origin.draw(&mut circle, &mut kinds, &mut sizes, |size| size);
                for (kind, size) in kinds.into_iter().zip(sizes).take(count) {
                    assert_eq!(one_by_one.origin.step(), Some((kind, size)));
                }
                if count == 0 {
                    assert_eq!(one_by_one.origin.step(), None, "the end");
                }
            }
        }
    }

    #[test]
    fn the_same_streams_play_the_same_movie() {
        let movie = Arc::new(Movie::named("jp-medium").unwrap().compile().unwrap());
        let play = |seed, owner: &str| {
            let mut s = Source::movie(movie.clone(), &Streams::of(seed, owner));
            (0..50).filter_map(|_| s.step()).collect::<Vec<_>>()
        };
        assert_eq!(play(1, "a"), play(1, "a"));
        assert_ne!(play(1, "a"), play(2, "a"));
        assert_ne!(play(1, "a"), play(1, "b"));
    }
}
