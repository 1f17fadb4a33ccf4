//! Fits a movie model to a trace: the empirical TES methodology.
//!
//! \[Mel\] (see [`tes`](super::tes)): the marginal distribution of each frame type is its histogram, which the model
//! matches exactly. The fit searches for the underlying process: stitching, sign and innovation density whose closed-form
//! autocorrelation is closest to that of the trace, first over densities of one step, then, starting from the best of these,
//! over densities of several.

use super::correlation::{POINTS, Spectrum, TERMS, of_sequence};
use super::marginal::{InvalidSizes, Inverse, Marginal};
use super::movie::{Frames, InvalidMovie, Mode, Movie};
use super::pattern::Pattern;
use super::source::Source;
use super::tes::{Innovation, Sign, stitch};
use super::trace::Trace;
use crate::frame::FrameType as Type;
use crate::workload::Streams;
use skyhaul_base::math;
use std::sync::Arc;

/// Cells of histograms.
const CELLS: usize = 60;
/// How often the cell with the largest frames is halved.
const TAIL: u32 = 6;
/// Lags at which autocorrelations are compared, in frames of the type.
const LAGS: usize = 50;
/// Minimum number of frames of a type for a meaningful correlation.
const MIN_FRAMES: usize = 20;
/// Steps of the density on each side.
const STEPS: usize = 10;

/// Why no movie can be fitted to a trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Too few frames of a type.
    #[error("{count} {kind} frames: a fit needs at least {MIN_FRAMES} of each type in the trace")]
    Short {
        /// The type.
        kind: char,
        /// How many there are.
        count: usize,
    },
    /// Types without a pattern.
    #[error(
        "the types from one I frame to the next are \"{0}\": a movie needs I, then P and B, 1000 frames at most"
    )]
    Pattern(String),
    /// Sizes without a distribution.
    #[error(transparent)]
    Sizes(#[from] InvalidSizes),
    /// A movie that cannot be played.
    #[error(transparent)]
    Movie(#[from] InvalidMovie),
}

/// Quality of the fit for one frame type.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The type.
    pub kind: Type,
    /// Its frames in the trace.
    pub count: usize,
    /// Their mean, bytes.
    pub mean: f64,
    /// Their coefficient of variation.
    pub variation: f64,
    /// Smallest and largest, bytes.
    pub bounds: (u64, u64),
    /// Autocorrelation at lags from 1 on: of the trace and of the model.
    pub correlation: Vec<(f64, f64)>,
    /// Root of the mean squared difference between them.
    pub error: f64,
}

/// Statistics of a video over all frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregates {
    /// Frames.
    pub frames: usize,
    /// Mean size of a frame, bytes.
    pub mean: f64,
    /// Coefficient of variation of the sizes.
    pub variation: f64,
    /// Largest frame, bytes.
    pub largest: f64,
    /// Coefficient of variation of the bytes of a group of pictures.
    pub group_variation: f64,
}

/// A movie, and how close it is to the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The movie.
    pub movie: Movie,
    /// The quality of the fit by type, each with a process of its own as in [`Mode::Independent`].
    pub types: Vec<Fitted>,
    /// Statistics of the trace.
    pub trace: Aggregates,
    /// Statistics of as many frames of the movie.
    pub played: Aggregates,
    /// The coefficient of variation of its groups of pictures in the other mode.
    pub other_mode: f64,
}

/// The movie closest to a trace, with types correlated according to `mode`.
///
/// # Errors
/// If there are too few frames, or they have no pattern.
pub fn fit(trace: &Trace, mode: Mode) -> Result<Fit, FitError> {
    let gop = trace.group();
    let pattern = Pattern::parse(&gop).ok_or_else(|| FitError::Pattern(gop.clone()))?;
    let mut types = Vec::new();
    let mut frames = [None, None, None];
    for kind in Type::ALL.into_iter().filter(|t| pattern.count(*t) > 0) {
        let sizes = trace.sizes(kind);
        if sizes.len() < MIN_FRAMES {
            return Err(FitError::Short { kind: kind.letter(), count: sizes.len() });
        }
        let (of, fitted) = fit_type(kind, &sizes)?;
        frames[kind as usize] = Some(of);
        types.push(fitted);
    }
    let [Some(i), p, b] = frames else { return Err(FitError::Pattern(gop)) };
    let found = Movie { frames: trace.rate(), gop, mode: Mode::Independent, i, p, b };
    let other = if mode == Mode::Coupled { Mode::Independent } else { Mode::Coupled };
    let (movie, other) = (in_mode(&found, mode), in_mode(&found, other));
    let n = trace.frames().len();
    Ok(Fit {
        trace: aggregates(trace.frames().iter().map(|f| (f.0, f.1.into()))),
        played: play(&movie, n)?,
        other_mode: play(&other, n)?.group_variation,
        movie,
        types,
    })
}

/// The movie in this mode. In the coupled mode all types have their largest frames at the same position of the circle.
fn in_mode(movie: &Movie, mode: Mode) -> Movie {
    let mut movie = Movie { mode, ..movie.clone() };
    if mode == Mode::Coupled {
        for frames in [&mut movie.p, &mut movie.b].into_iter().flatten() {
            frames.xi = movie.i.xi;
        }
    }
    movie
}

/// The aggregates of the first frames of a movie.
fn play(movie: &Movie, frames: usize) -> Result<Aggregates, InvalidMovie> {
    Ok(aggregates(Source::movie(Arc::new(movie.compile()?), &Streams::of(1, "fit")).take(frames)))
}

/// The statistics of a video.
#[must_use]
pub fn aggregates(frames: impl Iterator<Item = (Type, f64)>) -> Aggregates {
    let (mut sizes, mut groups): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for (kind, size) in frames {
        if kind == Type::I {
            groups.push(0.0);
        }
        // Frames before the first I frame belong to no group.
        if let Some(group) = groups.last_mut() {
            *group += size;
        }
        sizes.push(size);
    }
    // The last group may be incomplete.
    groups.pop();
    let (mean, variation) = moments(&sizes);
    Aggregates {
        frames: sizes.len(),
        mean,
        variation,
        largest: sizes.iter().copied().fold(0.0, f64::max),
        group_variation: moments(&groups).1,
    }
}

/// Mean and coefficient of variation; zeros without values.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, if mean > 0.0 { math::sqrt(square) / mean } else { 0.0 })
}

/// Sizes in cells with about the same number of frames, except for the largest sizes: there each cell has half the frames
/// of the previous one, since frames do not fill a wide cell evenly.
fn histogram(sizes: &[f64]) -> Marginal {
    let mut sorted: Vec<u64> = sizes.iter().map(|s| *s as u64).collect();
    sorted.sort_unstable();
    let n = sorted.len();
    let mut edges: Vec<u64> = (0..CELLS).map(|i| sorted[i * n / CELLS]).collect();
    edges.extend((1..=TAIL).map(|halving| sorted[n - 1 - ((n / CELLS) >> halving)]));
    edges.dedup();
    edges.push(sorted[n - 1] + 1);
    let below = |edge: u64| sorted.partition_point(|s| *s < edge);
    // Shares are counts of frames, which files show without rounding.
    let shares = edges.windows(2).map(|w| (below(w[1]) - below(w[0])) as f64).collect();
    Marginal::Histogram { edges, shares }
}

/// A process: its stitching position, sign and innovation, and its distance from the trace.
#[derive(Clone, Debug)]
struct Candidate {
    xi: f64,
    sign: Sign,
    /// The innovation is uniform on [−half, half), unless it has steps.
    half: f64,
    /// Width of a step, and the weights of the steps from 0 outwards, each of which is divided between both sides.
    steps: Option<(f64, Vec<f64>)>,
    /// [`distance`] of its autocorrelation from that of the trace.
    distance: f64,
}

fn fit_type(kind: Type, sizes: &[f64]) -> Result<(Frames, Fitted), FitError> {
    let marginal = histogram(sizes);
    let (least, most) = sizes.iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(*s), b.max(*s)));
    let bounds = (least as u64, most as u64);
    // A distribution needs room between its bounds, even if all frames have one size.
    let (least, most) = (bounds.0, bounds.1.max(bounds.0 + 1));
    let inverse = Inverse::new(&marginal, least, most)?;
    let measured = of_sequence(sizes, LAGS.min(sizes.len() / 4));
    let best = search(&inverse, &measured);
    let mut frames = Frames {
        sizes: marginal,
        least,
        most,
        step: Some(digits(best.half)),
        steps: None,
        xi: best.xi,
        sign: best.sign,
    };
    if let Some((width, weights)) = &best.steps {
        (frames.step, frames.steps) = (None, Some(both_sides(*width, weights)));
    }
    let model = model_correlation(&inverse, &frames, measured.len());
    let square: f64 = measured.iter().zip(&model).map(|(a, b)| (a - b) * (a - b)).sum();
    let (mean, variation) = moments(sizes);
    let fitted = Fitted {
        kind,
        count: sizes.len(),
        mean,
        variation,
        bounds,
        error: math::sqrt(square / measured.len().max(1) as f64),
        correlation: measured.into_iter().zip(model).collect(),
    };
    Ok((frames, fitted))
}

/// Rounds to four decimals, as files show them, but never to 0.
fn digits(x: f64) -> f64 {
    (x * 1e4).round().max(1.0) / 1e4
}

/// Steps on both sides, in the form of a movie: from, to, weight. Those without weight are left out.
fn both_sides(width: f64, weights: &[f64]) -> Vec<[f64; 3]> {
    let mut steps = Vec::new();
    for (k, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 1e-4) {
        let (from, to) = (digits(k as f64 * width), digits((k + 1) as f64 * width));
        let from = if k == 0 { 0.0 } else { from };
        steps.push([-to, -from, digits(weight / 2.0)]);
        steps.push([from, to, digits(weight / 2.0)]);
    }
    steps
}

fn model_correlation(inverse: &Inverse, frames: &Frames, lags: usize) -> Vec<f64> {
    let spectrum = Spectrum::new(|u| inverse.at(stitch(frames.xi, u)), TERMS, POINTS);
    let steps = frames.steps.iter().flatten();
    let steps: Vec<_> = steps.map(|&[from, to, weight]| super::tes::Step { from, to, weight }).collect();
    let innovation =
        Innovation::steps(&steps).unwrap_or_else(|| Innovation::uniform(frames.step.unwrap_or(0.1)));
    spectrum.autocorrelation(frames.sign, &innovation, lags)
}

/// Differences at small lags count fully, those at larger lags less and less.
fn distance(model: &[f64], measured: &[f64]) -> f64 {
    let weight = |lag: usize| if lag <= 5 { 1.0 } else { 1.0 / lag as f64 };
    (1..).zip(model.iter().zip(measured)).map(|(lag, (a, b))| weight(lag) * (a - b) * (a - b)).sum()
}

fn search(inverse: &Inverse, measured: &[f64]) -> Candidate {
    let mut best = Candidate { xi: 0.5, sign: Sign::Plus, half: 0.1, steps: None, distance: f64::INFINITY };
    let places = (1..=9).map(|tenth| f64::from(tenth) / 10.0).chain([1.0]);
    for xi in places {
        let spectrum = Spectrum::new(|u| inverse.at(stitch(xi, u)), TERMS, POINTS);
        for sign in [Sign::Plus, Sign::Minus] {
            let distance_at = |half: f64| {
                distance(
                    &spectrum.autocorrelation(sign, &Innovation::uniform(half), measured.len()),
                    measured,
                )
            };
            let (half, distance) = smallest(distance_at);
            if distance < best.distance {
                best = Candidate { xi, sign, half, steps: None, distance };
            }
        }
    }
    refine(&mut best, inverse, measured);
    best
}

/// The half width from 0.001 to 0.5 at which a function is smallest: the best of a grid, then a golden-section
/// search around it.
fn smallest(of: impl Fn(f64) -> f64) -> (f64, f64) {
    const GRID: u32 = 32;
    let place = |i: f64| 0.001 * math::pow(500.0, i / f64::from(GRID));
    let grid: Vec<(f64, f64)> = (0..=GRID).map(|i| (f64::from(i), of(place(f64::from(i))))).collect();
    let best = grid.iter().fold(grid[0], |a, b| if b.1 < a.1 { *b } else { a });
    let golden = 0.618_033_988_749_894_8;
    let (mut low, mut high) = ((best.0 - 1.0).max(0.0), (best.0 + 1.0).min(f64::from(GRID)));
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_a, mut at_b) = (of(place(a)), of(place(b)));
    for _ in 0..20 {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - golden * (high - low);
            at_a = of(place(a));
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + golden * (high - low);
            at_b = of(place(b));
        }
    }
    if at_a < at_b { (place(a), at_a) } else { (place(b), at_b) }
}

/// Densities of several steps, starting from one: gradient descent, projected back on weights with sum 1.
fn refine(best: &mut Candidate, inverse: &Inverse, measured: &[f64]) {
    let width = (2.5 * best.half).min(0.5) / STEPS as f64;
    let spectrum = Spectrum::new(|u| inverse.at(stitch(best.xi, u)), TERMS, POINTS);
    // The transforms of each pair of steps, one on each side: they are real.
    let pairs: Vec<Vec<f64>> = (0..STEPS)
        .map(|k| {
            let one = Innovation::steps(&[
                super::tes::Step { from: k as f64 * width, to: (k + 1) as f64 * width, weight: 1.0 },
                super::tes::Step { from: -((k + 1) as f64) * width, to: -(k as f64) * width, weight: 1.0 },
            ]);
            (1..).take(TERMS).map(|v| one.as_ref().map_or(0.0, |i| i.transform(v).0)).collect()
        })
        .collect();
    let distance_of = |weights: &[f64]| {
        let f: Vec<(f64, f64)> = (0..TERMS)
            .map(|v| (weights.iter().zip(&pairs).map(|(w, pair)| w * pair[v]).sum(), 0.0))
            .collect();
        distance(&spectrum.autocorrelation_from(best.sign, &f, measured.len()), measured)
    };
    let covered = |k: usize| ((best.half - k as f64 * width) / width).clamp(0.0, 1.0);
    let mut weights = on_simplex(&(0..STEPS).map(|k| covered(k) * width / best.half).collect::<Vec<_>>());
    let (mut reached, mut stride) = (distance_of(&weights), 0.2);
    for _ in 0..150 {
        let gradient: Vec<f64> = (0..STEPS)
            .map(|k| {
                let mut moved = weights.clone();
                moved[k] += 1e-5;
                (distance_of(&moved) - reached) / 1e-5
            })
            .collect();
        let steepest = gradient.iter().map(|g| math::abs(*g)).fold(1e-300, f64::max);
        let next: Vec<f64> = weights.iter().zip(&gradient).map(|(w, g)| w - stride * g / steepest).collect();
        let next = on_simplex(&next);
        let distance = distance_of(&next);
        if distance < reached {
            (weights, reached, stride) = (next, distance, stride * 1.3);
        } else {
            stride *= 0.5;
            if stride < 1e-6 {
                break;
            }
        }
    }
    // Several weights replace the one half width only if they are closer by a tenth (*our choice*).
    if reached < 0.9 * best.distance {
        (best.steps, best.distance) = (Some((width, weights)), reached);
    }
}

/// The nearest non-negative numbers with sum 1 (Held, Wolfe, Crowder 1974).
fn on_simplex(x: &[f64]) -> Vec<f64> {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (n, value) in (1..).zip(&sorted) {
        sum += value;
        let s = (sum - 1.0) / f64::from(n);
        if *value > s {
            shift = s;
        }
    }
    x.iter().map(|v| (v - shift).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames that a movie plays, as a trace.
    fn measured(movie: &Movie, frames: usize) -> Trace {
        let source = Source::movie(Arc::new(movie.compile().unwrap()), &Streams::of(7, "seen"));
        let frames = source.take(frames).map(|(t, s)| (t, s.round().max(1.0) as u32));
        Trace::new(frames.collect(), 25.0).unwrap()
    }

    #[test]
    fn a_movie_is_found_again_in_what_it_played() {
        let movie = Movie::named("jp-medium").unwrap();
        let fit = fit(&measured(&movie, 120_000), Mode::Independent).unwrap();
        assert_eq!((fit.movie.gop.as_str(), fit.movie.frames), ("IBBPBBPBBPBB", 25.0));
        for t in &fit.types {
            assert!(t.error < 0.05, "{:?}: {}", t.kind, t.error);
        }
        // The sizes are those of the trace; what is played of them in 80 minutes depends on about 200 scenes.
        let sizes = fit.movie.compile().unwrap();
        assert!((sizes.mean() / fit.trace.mean - 1.0).abs() < 0.01, "{} {}", sizes.mean(), fit.trace.mean);
        assert!((sizes.variation() - fit.trace.variation).abs() < 0.02, "{}", sizes.variation());
        assert!((fit.played.mean / fit.trace.mean - 1.0).abs() < 0.15, "{:?}", fit.played);
        assert!((fit.played.group_variation - fit.trace.group_variation).abs() < 0.07, "{:?}", fit.played);
        assert!(
            fit.other_mode > fit.trace.group_variation + 0.05,
            "coupling is too much: {}",
            fit.other_mode
        );
        // It can be written down.
        let text = serde_json::to_string(&fit.movie).unwrap();
        assert_eq!(serde_json::from_str::<Movie>(&text).unwrap(), fit.movie);
    }

    #[test]
    fn alternating_sizes_need_the_mirrored_process() {
        let frames = Movie::named("jp-medium").unwrap().i;
        let frames = Frames { sign: Sign::Minus, xi: 0.2, step: Some(0.05), ..frames };
        let movie =
            Movie { gop: "I".into(), i: frames, p: None, b: None, ..Movie::named("jp-medium").unwrap() };
        let fit = fit(&measured(&movie, 60_000), Mode::Independent).unwrap();
        assert_eq!(fit.movie.i.sign, Sign::Minus);
        assert!(fit.types[0].correlation[0].0 < fit.types[0].correlation[1].0 - 0.3, "it alternates");
        assert!(fit.types[0].error < 0.05, "{}", fit.types[0].error);
    }

    #[test]
    fn traces_that_cannot_be_fitted_are_refused() {
        let of = |types: &str| {
            let one = |c| (Type::of(c).unwrap(), 100);
            fit(&Trace::new(types.chars().map(one).collect(), 25.0).unwrap(), Mode::Independent).unwrap_err()
        };
        assert!(of("IPPIPP").to_string().contains("2 I frames"));
        assert!(of("PPP").to_string().contains("the types from one I frame to the next are \"\""));
    }

    #[test]
    fn frames_of_one_size_have_a_movie_too() {
        let trace = Trace::new(vec![(Type::I, 700); 200], 25.0).unwrap();
        let fit = fit(&trace, Mode::Independent).unwrap();
        assert!((fit.played.mean - 700.0).abs() < 1.0);
        assert_eq!(fit.types[0].bounds, (700, 700));
    }

    #[test]
    fn weights_are_projected_to_the_nearest() {
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near(&on_simplex(&[0.2, 0.8]), &[0.2, 0.8]));
        assert!(near(&on_simplex(&[2.0, 0.0]), &[1.0, 0.0]));
        assert!(near(&on_simplex(&[0.5, 0.5, 0.5]), &[1.0 / 3.0; 3]));
    }
}
