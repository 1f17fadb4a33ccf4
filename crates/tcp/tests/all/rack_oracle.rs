//! The incremental loss detection of RACK against RFC 8985 to the letter, under random operations.

use crate::common;

use proptest::prelude::*;
use skyhaul_testkit::fuzz::rack_ops;

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(4_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_lost_segments_are_those_that_a_walk_over_all_segments_finds(ops in proptest::collection::vec(any::<u8>(), 0..600)) {
        rack_ops(&ops);
    }
}
