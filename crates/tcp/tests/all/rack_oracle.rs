//! Incremental loss detection by time against RFC 8985 to the letter, under random operations.

use crate::common;

use proptest::prelude::*;
use skyhaul_testkit::fuzz::rack_ops;

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(4_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_lost_is_what_a_walk_over_all_segments_finds(ops in proptest::collection::vec(any::<u8>(), 0..600)) {
        rack_ops(&ops);
    }
}
