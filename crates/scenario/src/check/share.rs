//! Max-min fair sharing of links among flow groups with their own limits.

/// A group of flows.
pub(super) struct Demand {
    pub(super) count: f64,
    /// Limit of one flow, segments per second; may be infinite.
    pub(super) cap: f64,
    /// The resources, and how much of each a segment takes.
    pub(super) uses: Vec<(usize, f64)>,
}

/// The allocation of one flow of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Segments per second; infinite if nothing limits.
    pub(super) rate: f64,
    /// The limiting resource; `None` for the group's own limit.
    pub(super) limit: Option<usize>,
}

/// Progressive filling: all rates grow together until a flow reaches its limit or a resource is used up; the flows
/// concerned stop there, and the others continue.
pub(super) fn max_min(capacities: &[Option<f64>], demands: &[Demand]) -> Vec<Share> {
    let mut shares: Vec<Option<Share>> = vec![None; demands.len()];
    while shares.iter().any(Option::is_none) {
        // The level at which each resource is used up, given those that have stopped.
        let level = |r: usize| -> Option<f64> {
            let (mut left, mut growing) = (capacities[r]?, 0.0);
            for (demand, share) in demands.iter().zip(&shares) {
                let amount = demand.uses.iter().filter(|u| u.0 == r).map(|u| u.1 * demand.count).sum::<f64>();
                match share {
                    Some(share) if amount > 0.0 => left -= amount * share.rate,
                    Some(_) => {}
                    None => growing += amount,
                }
            }
            (growing > 0.0).then(|| left.max(0.0) / growing)
        };
        let levels: Vec<Option<f64>> = (0..capacities.len()).map(level).collect();
        let growing = |shares: &[Option<Share>], i: usize| shares[i].is_none();
        let resource = levels
            .iter()
            .enumerate()
            .filter_map(|(r, l)| Some((r, (*l)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let own = (0..demands.len())
            .filter(|&i| growing(&shares, i))
            .map(|i| demands[i].cap)
            .fold(f64::INFINITY, f64::min);
        match resource {
            // A tie is the flow's own limit: the link would have given more to a larger window.
            Some((r, level)) if level < own => {
                for (demand, share) in demands.iter().zip(&mut shares) {
                    if share.is_none() && demand.uses.iter().any(|u| u.0 == r) {
                        *share = Some(Share { rate: level, limit: Some(r) });
                    }
                }
            }
            _ => {
                for (demand, share) in demands.iter().zip(&mut shares) {
                    if share.is_none() && demand.cap <= own {
                        *share = Some(Share { rate: own, limit: None });
                    }
                }
            }
        }
    }
    shares.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(count: f64, cap: f64, resources: &[usize]) -> Demand {
        Demand { count, cap, uses: resources.iter().map(|&r| (r, 1.0)).collect() }
    }

    #[test]
    fn what_one_group_cannot_use_goes_to_the_others() {
        let demands = [demand(2.0, 10.0, &[0]), demand(3.0, f64::INFINITY, &[0])];
        let shares = max_min(&[Some(100.0)], &demands);
        assert_eq!(shares[0], Share { rate: 10.0, limit: None });
        assert!((shares[1].rate - 80.0 / 3.0).abs() < 1e-12 && shares[1].limit == Some(0));
    }

    #[test]
    fn a_long_path_gets_what_its_tightest_link_leaves() {
        let inf = f64::INFINITY;
        let demands = [demand(1.0, inf, &[0, 1]), demand(1.0, inf, &[0]), demand(1.0, inf, &[1])];
        let shares = max_min(&[Some(10.0), Some(4.0)], &demands);
        assert_eq!(shares.iter().map(|s| s.rate).collect::<Vec<_>>(), [2.0, 8.0, 2.0]);
        assert_eq!(shares.iter().map(|s| s.limit).collect::<Vec<_>>(), [Some(1), Some(0), Some(1)]);
    }

    #[test]
    fn without_any_limit_the_rate_is_infinite() {
        let shares = max_min(&[None], &[demand(1.0, f64::INFINITY, &[0]), demand(1.0, 5.0, &[0])]);
        assert_eq!(shares[0], Share { rate: f64::INFINITY, limit: None });
        assert_eq!(shares[1].rate, 5.0);
    }
}
