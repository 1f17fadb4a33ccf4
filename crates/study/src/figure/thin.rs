//! Thinning of long curves to the resolution of a screen.

/// The smallest and the largest point of each of `columns` equal intervals of x, in order, and both ends. A short
/// curve is unchanged.
pub(super) fn thin(points: &[(f64, f64)], columns: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() <= 2 * columns + 2 || last.0 <= first.0 {
        return points.to_vec();
    }
    let column = |x: f64| ((x - first.0) / (last.0 - first.0) * columns as f64) as usize;
    let mut kept = vec![0];
    let mut from = 0;
    while from < points.len() {
        let here = column(points[from].0);
        let to = from + points[from..].partition_point(|p| column(p.0) <= here);
        let by_y = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
        kept.extend((from..to).min_by(by_y));
        kept.extend((from..to).max_by(by_y));
        from = to;
    }
    kept.push(points.len() - 1);
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|i| points[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn peaks_and_ends_survive() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[77_777].1 = 1e3;
        points[12_345].1 = -1e3;
        let drawn = thin(&points, 560);
        assert!(drawn.len() <= 2 * 561 + 2, "{}", drawn.len());
        for p in [points[0], points[77_777], points[12_345], points[99_999]] {
            assert!(drawn.contains(&p), "{p:?}");
        }
        assert!(drawn.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(thin(&points[..1000], 560), &points[..1000]);
        assert!(thin(&[], 560).is_empty());
    }
}
