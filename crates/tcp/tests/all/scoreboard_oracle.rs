//! The incremental scoreboard against RFC 6675 to the letter, under random operations.

use crate::common;

use proptest::prelude::*;
use skyhaul_testkit::fuzz::scoreboard_ops;

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(4_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scoreboard_answers_as_rfc_6675_does(ops in proptest::collection::vec(any::<u8>(), 0..600)) {
        scoreboard_ops(&ops);
    }
}
