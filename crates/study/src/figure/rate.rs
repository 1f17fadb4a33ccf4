//! Delivery rate of a flow group over time, from the cumulative curves of its flows.

use crate::observed::Sampled;

/// The increase per second from each sample to the next, summed over the flows of each group, at the time of the
/// later sample; groups in the order of the flows. The curves of a run are sampled at the same times; a value that is
/// not finite counts as no increase.
pub(super) fn per_group<'a>(curves: impl Iterator<Item = &'a Sampled>) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut groups: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for curve in curves {
        let steps = curve.time.windows(2).zip(curve.value.windows(2)).filter(|(t, _)| t[1].0 > t[0].0);
        let rates = steps.map(|(t, v)| (t[1].0, (v[1].0 - v[0].0) / (t[1].0 - t[0].0)));
        let rates = rates.map(|(t, r)| (t, if r.is_finite() { r } else { 0.0 }));
        match groups.iter_mut().find(|(name, _)| *name == curve.group) {
            Some((_, sum)) => sum.iter_mut().zip(rates).for_each(|(all, one)| all.1 += one.1),
            None => groups.push((curve.group.clone(), rates.collect())),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Number;

    fn curve(group: &str, flow: u32, value: &[f64]) -> Sampled {
        let numbers = |v: &[f64]| v.iter().copied().map(Number).collect();
        let time = numbers(&[0.0, 2.0, 4.0, 8.0]);
        Sampled { name: "acked".into(), group: group.into(), flow, time, value: numbers(value) }
    }

    #[test]
    fn increases_of_a_group_add_up() {
        let curves = [
            curve("a", 0, &[0.0, 10.0, 10.0, 30.0]),
            curve("b", 1, &[0.0; 4]),
            curve("a", 2, &[0.0, 2.0, 4.0, 4.0]),
        ];
        let got = per_group(curves.iter());
        let of = |y: [f64; 3]| vec![(2.0, y[0]), (4.0, y[1]), (8.0, y[2])];
        assert_eq!(got, [("a".to_owned(), of([6.0, 1.0, 5.0])), ("b".to_owned(), of([0.0; 3]))]);
    }
}
