//! Known constellations, in the round figures of public filings.

use super::walker::{Config, Pattern};
use super::{Constellation, stationary};

/// Names and constellations. The phasing of those with several planes is 1: filings do not say (*our choice*).
pub const NAMED: &[(&str, Constellation)] = &[
    ("geo", Constellation::Stationary(stationary::Config { longitude: 0.0, elevation: 5.0 })),
    ("leo550", walker(550.0, 53.0, [1_584, 72, 1], Pattern::Delta, 25.0)),
    ("leo780", walker(780.0, 86.4, [66, 6, 1], Pattern::Star, 8.2)),
    ("leo1200", walker(1_200.0, 87.9, [588, 12, 1], Pattern::Star, 15.0)),
    ("meo8062", walker(8_062.0, 0.0, [20, 1, 0], Pattern::Delta, 10.0)),
];

const fn walker(
    altitude: f64,
    inclination: f64,
    tpf: [u64; 3],
    pattern: Pattern,
    elevation: f64,
) -> Constellation {
    Constellation::Walker(Config::new(altitude, inclination, tpf, pattern, elevation))
}

/// The constellation of this name.
#[must_use]
pub fn find(name: &str) -> Option<Constellation> {
    NAMED.iter().find(|n| n.0 == name).map(|n| n.1.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn all_that_have_a_name_can_be_built() {
        let sizes: alloc::vec::Vec<u32> =
            NAMED.iter().map(|n| n.1.build(None, Duration::ZERO).unwrap().count()).collect();
        assert_eq!(sizes, [1, 72 * 22, 6 * 11, 12 * 49, 20]);
        assert_eq!(find("leo551"), None);
    }
}
