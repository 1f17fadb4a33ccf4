//! The spread of two metrics over the seeds as an ellipse of one standard deviation, as the summaries of Pantheon draw it
//! (F. Y. Yan et al., "Pantheon: the training ground for Internet congestion-control research", USENIX ATC 2018, §3).

use crate::stats::mean;
use skyhaul_base::math;

/// Number of corners of the closed line that stands for an ellipse.
const CORNERS: usize = 64;

/// The points p with `(p − m)ᵀ C⁻¹ (p − m) = 1`, with the means m and the sample covariance C of the pairs. `None` for
/// fewer than two pairs, or for equal pairs.
pub(super) fn outline(x: &[f64], y: &[f64]) -> Option<Vec<(f64, f64)>> {
    let n = x.len().min(y.len());
    let (mx, my) = (mean(x), mean(y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let of_sample = |sum: f64| sum / (n as f64 - 1.0);
    if n < 2 {
        return None;
    }
    let (xx, xy, yy) =
        (of_sample(sum(&|x, _| x * x)), of_sample(sum(&|x, y| x * y)), of_sample(sum(&|_, y| y * y)));
    if xx + yy <= 0.0 {
        return None;
    }
    // The Cholesky factor of the covariance, with the rows (across, 0) and (along, rest), maps the unit circle to the ellipse.
    let across = math::sqrt(xx);
    let along = if xx > 0.0 { xy / across } else { 0.0 };
    let rest = math::sqrt((yy - along * along).max(0.0));
    let corner = |i: usize| {
        let angle = core::f64::consts::TAU * i as f64 / CORNERS as f64;
        let (c, s) = (math::cos(angle), math::sin(angle));
        (mx + across * c, my + along * c + rest * s)
    };
    Some((0..CORNERS).map(corner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corner_is_one_standard_deviation_away() {
        let (x, y) = ([1.0, 2.0, 4.0, 5.5, 3.0], [10.0, 9.0, 7.5, 3.0, 8.0]);
        let corners = outline(&x, &y).expect("a spread");
        let (mx, my) = (mean(&x), mean(&y));
        let c = |a: &[f64], ma: f64, b: &[f64], mb: f64| {
            a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum::<f64>() / 4.0
        };
        let (xx, xy, yy) = (c(&x, mx, &x, mx), c(&x, mx, &y, my), c(&y, my, &y, my));
        for (px, py) in &corners {
            let (dx, dy) = (px - mx, py - my);
            let distance = (dx * dx * yy - 2.0 * dx * dy * xy + dy * dy * xx) / (xx * yy - xy * xy);
            assert!((distance - 1.0).abs() < 1e-9, "{px} {py}: {distance}");
        }
        // It is as wide and as high as one standard deviation to either side.
        let most = corners.iter().map(|p| p.0).fold(f64::MIN, f64::max);
        assert!((most - mx - math::sqrt(xx)).abs() < 1e-9, "{most}");
    }

    #[test]
    fn without_a_spread_there_is_none_and_along_one_axis_a_line() {
        assert_eq!(outline(&[1.0], &[2.0]), None);
        assert_eq!(outline(&[1.0, 1.0], &[2.0, 2.0]), None);
        let upright = outline(&[1.0, 1.0], &[2.0, 4.0]).expect("a spread");
        assert!(upright.iter().all(|(x, y)| *x == 1.0 && y.is_finite()));
        let level = outline(&[1.0, 3.0], &[2.0, 2.0]).expect("a spread");
        assert!(level.iter().all(|(x, y)| x.is_finite() && *y == 2.0));
    }
}
