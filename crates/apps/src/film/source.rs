//! The sequence of frames of a movie or a trace.

use super::movie::{Compiled, Mode, WITHIN_SCENE};
use super::pattern::Order;
use super::tes::{Process, fraction};
use super::trace::Trace;
use crate::frame::FrameType as Type;
use crate::workload::Streams;
use skyhaul_base::Rng;
use std::sync::Arc;

/// Iterates over the types and the sizes in bytes of successive frames. It ends only with a trace that is not repeated.
#[derive(Clone, Debug)]
pub struct Source(Origin);

#[derive(Clone, Debug)]
enum Origin {
    /// Each frame type has its own TES process, which gives the size of its frames.
    Independent { movie: Arc<Compiled>, order: Order, types: [Option<Process>; Type::COUNT] },
    /// One TES process gives a position on the circle for each scene, `scene`. The positions of the frames of a scene
    /// differ from it by random amounts from `within`.
    Coupled { movie: Arc<Compiled>, order: Order, scenes: Process, scene: f64, within: Rng },
    /// A trace, from its start; repeated at its end if configured.
    Replay { trace: Arc<Trace>, next: usize, repeats: bool },
}

impl Source {
    /// A movie, from a random position of each of its processes.
    #[must_use]
    pub fn movie(movie: Arc<Compiled>, streams: &Streams) -> Self {
        let order = Order::new(movie.pattern.clone());
        let process = |kind: Type, purpose: &str| {
            let model = movie.kind(kind)?;
            Some(Process::new(model.sign, model.innovation.clone(), streams.named(purpose)))
        };
        if movie.mode == Mode::Coupled {
            if let Some(scenes) = process(Type::I, "scenes") {
                let within = streams.named("within scenes");
                return Self(Origin::Coupled { movie, order, scenes, scene: 0.0, within });
            }
        }
        let types = Type::ALL.map(|kind| process(kind, &format!("frames.{}", kind.letter())));
        Self(Origin::Independent { movie, order, types })
    }
    /// A trace.
    #[must_use]
    pub fn replay(trace: Arc<Trace>, repeats: bool) -> Self {
        Self(Origin::Replay { trace, next: 0, repeats })
    }
}

impl Iterator for Source {
    type Item = (Type, f64);

    fn next(&mut self) -> Option<(Type, f64)> {
        match &mut self.0 {
            Origin::Independent { movie, order, types } => {
                let kind = order.step();
                Some((kind, movie.kind(kind)?.size(types[kind as usize].as_mut()?.step())))
            }
            Origin::Coupled { movie, order, scenes, scene, within } => {
                let kind = order.step();
                if kind == Type::I {
                    *scene = scenes.step();
                }
                let position = fraction(*scene + WITHIN_SCENE * (2.0 * within.unit() - 1.0));
                Some((kind, movie.kind(kind)?.size(position)))
            }
            Origin::Replay { trace, next, repeats } => {
                if *repeats && *next >= trace.frames().len() {
                    *next = 0;
                }
                let (kind, bytes) = *trace.frames().get(*next)?;
                *next += 1;
                Some((kind, bytes.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::film::correlation::of_sequence;
    use crate::film::movie::Movie;

    struct SizeStatistics {
        mean: f64,
        variation: f64,
        largest: f64,
        group_variation: f64,
        group_lag_1: f64,
        lag_1: [f64; 3],
    }

    /// Mean and coefficient of variation.
    fn moments(x: &[f64]) -> (f64, f64) {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (mean, variance.sqrt() / mean)
    }

    fn play(mode: Mode, groups: usize) -> SizeStatistics {
        let movie = Movie { mode, ..Movie::named("jp-medium").unwrap() };
        let mut source = Source::movie(Arc::new(movie.compile().unwrap()), &Streams::of(1, "flows.video[0]"));
        let (mut all, mut sums) = (Vec::new(), Vec::new());
        let mut by_type: [Vec<f64>; 3] = Default::default();
        let mut sum = 0.0;
        while sums.len() < groups {
            let (kind, size) = source.next().unwrap();
            if kind == Type::I && sum > 0.0 {
                sums.push(core::mem::take(&mut sum));
            }
            sum += size;
            all.push(size);
            by_type[kind as usize].push(size);
        }
        // The first group has no B frames after its I frame.
        let ((mean, variation), (_, group_variation)) = (moments(&all), moments(&sums[1..]));
        SizeStatistics {
            mean,
            variation,
            largest: all.iter().fold(0.0, |a: f64, b| a.max(*b)),
            group_variation,
            group_lag_1: of_sequence(&sums[1..], 1)[0],
            lag_1: by_type.map(|x| of_sequence(&x, 1)[0]),
        }
    }

    /// Checks the statistics that do not depend on the mode, over 200 000 groups of pictures.
    fn aggregates(s: &SizeStatistics) {
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
        // The autocorrelation of each type at lag 1 is that of the closed form.
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
        let once: Vec<_> = Source::replay(trace.clone(), false).collect();
        assert_eq!(once, [(Type::I, 5.0), (Type::P, 6.0)]);
        let sizes: Vec<f64> = Source::replay(trace, true).take(5).map(|f| f.1).collect();
        assert_eq!(sizes, [5.0, 6.0, 5.0, 6.0, 5.0]);
    }

    #[test]
    fn the_same_streams_play_the_same_movie() {
        let movie = Arc::new(Movie::named("jp-medium").unwrap().compile().unwrap());
        let play = |seed, owner: &str| {
            Source::movie(movie.clone(), &Streams::of(seed, owner)).take(50).collect::<Vec<_>>()
        };
        assert_eq!(play(1, "a"), play(1, "a"));
        assert_ne!(play(1, "a"), play(2, "a"));
        assert_ne!(play(1, "a"), play(1, "b"));
    }
}
