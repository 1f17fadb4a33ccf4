use super::*;
use crate::alg::peach::{self, LeftoverAdsn, Opening, Peach, WdsnOnLoss};
use crate::alg::{bbr, bbr3, cubic, fast_start, reno, vegas};
use crate::{Config, ControlOptions, NAMES, RecoveryEnd, RecoveryMode};
use proptest::prelude::*;

const PRESETS: [Rules; 4] = [Rules::NS2_2001, Rules::NS2_2004, Rules::RFC, Rules::MODERN];

fn any_ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(any::<[u8; 4]>().prop_map(Op::from), 1..300)
}
fn any_rules() -> impl Strategy<Value = Rules> {
    (0..PRESETS.len(), any::<bool>()).prop_map(|(i, cap_at_rwnd)| Rules { cap_at_rwnd, ..PRESETS[i] })
}
fn any_peach() -> impl Strategy<Value = peach::Config> {
    let modes = prop::sample::select(vec![RecoveryMode::Reno, RecoveryMode::NewReno, RecoveryMode::Sack]);
    let opening = || prop::sample::select(vec![Opening::Sudden, Opening::Slow]);
    (modes, opening(), opening(), opening(), any::<[bool; 7]>()).prop_map(
        |(recovery, start, on_rto, on_idle, b)| {
            let one = |x, y: (_, _)| if x { y.0 } else { y.1 };
            peach::Config {
                recovery,
                recovery_end: if b[0] { RecoveryEnd::AllOutstanding } else { RecoveryEnd::TriggeringSegment },
                start,
                on_rto,
                on_idle,
                integer_halving: b[1],
                wdsn_on_loss: if b[2] { WdsnOnLoss::Overwrite } else { WdsnOnLoss::Accumulate },
                nackseg: b[3].then_some(peach::Nackseg::FlightSize),
                dummies: one(b[4], (peach::Dummies::EveryAck, peach::Dummies::WhenBlocked)),
                leftover_adsn: if b[5] { LeftoverAdsn::Drop } else { LeftoverAdsn::Keep },
                limit_to_app: b[6],
                ..peach::Config::default()
            }
        },
    )
}
use alloc::vec;

/// \[Peach §III-B, III-C\]: `rwnd - 1` dummies per start, at most twice the halved window per loss, in pairs.
fn check_budget(config: &peach::Config, report: &Report) {
    for &(rwnd, train) in &report.trains {
        let all = rwnd as u32 - 1;
        assert!(train.count == all || config.limit_to_app && train.count < all, "{train:?} of {rwnd}");
    }
    for e in &report.recoveries {
        assert!(e.probes % 2 == 0 && e.probes <= 2 * e.ssthresh as u32, "{e:?}");
        assert!(e.capable || e.probes == 0, "{e:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_algorithm_survives(ops in any_ops(), rules in any_rules()) {
        for name in NAMES {
            let config = Config::by_name(name).expect("a listed name");
            survive(|| config.build(&rules), &rules, &ops);
        }
    }

    #[test]
    fn a_copy_continues_like_the_original(ops in any_ops(), rules in any_rules()) {
        survive_copied(|| reno::Reno::new(&reno::Config::default(), &rules, RecoveryMode::NewReno), &rules, &ops);
        survive_copied(|| vegas::Vegas::new(&vegas::Config::default(), &rules), &rules, &ops);
        survive_copied(|| cubic::Cubic::new(&cubic::Config::default(), &rules), &rules, &ops);
        let cached = fast_start::Config { cached_window: Some(20.0), ..Default::default() };
        survive_copied(|| fast_start::FastStart::new(&cached, &rules), &rules, &ops);
        survive_copied(|| bbr::Bbr::new(&bbr::Config::default(), &rules), &rules, &ops);
        survive_copied(|| bbr3::Bbr3::new(&bbr3::Config::default(), &rules), &rules, &ops);
        survive_copied(|| Peach::new(&peach::Config::default(), &rules), &rules, &ops);
    }

    #[test]
    fn peach_keeps_its_budget_whatever_its_options(
        ops in any_ops(), rules in any_rules(), config in any_peach()
    ) {
        // Peach caps at the peer's window whatever the preset says (R15); a legacy peer makes it the preset's.
        prop_assume!(config.validate().is_ok());
        let report = survive_copied(|| Peach::new(&config, &rules), &rules, &ops);
        check_budget(&config, &report);
    }

    #[test]
    fn vegas_with_linux_arithmetic_survives(ops in any_ops(), rules in any_rules()) {
        let config = vegas::Config { flavour: vegas::Flavour::Linux, ..vegas::Config::default() };
        survive_copied(|| vegas::Vegas::new(&config, &rules), &rules, &ops);
    }
}

#[test]
fn the_model_reaches_every_kind_of_event() {
    // Otherwise the tests above prove nothing.
    let rules = Rules::NS2_2001;
    let reports: Vec<_> = (0..50)
        .map(|seed| {
            survive(|| Config::by_name("peach").expect("listed").build(&rules), &rules, &ops(seed, 400))
        })
        .collect();
    let episodes = || reports.iter().flat_map(|r| &r.recoveries);
    assert!(episodes().any(|e| e.probes > 0));
    assert!(episodes().filter(|e| e.capable).count() > 50);
    assert!(reports.iter().map(|r| r.trains.len()).sum::<usize>() > 100);
    assert!(reports.iter().any(|r| r.highest_cwnd >= 64.0));
}
