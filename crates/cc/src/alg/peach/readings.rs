//! The readings of TCP-Peach that have a name.

use super::config::{Config, Dummies, FinalAck, LeftoverAdsn, Opening};
use crate::action::{RecoveryEnd, RecoveryMode};
use crate::control::Reading;
use crate::parts::probed_window::WdsnOnRestart;

pub(super) const ALL: &[Reading<Config>] = &[
    Reading {
        name: "listing",
        about: "the listings of [Peach] Figs. 2 and 4, line by line: Reno's recovery, slow start after a timeout, no reset \
                of adsn, data before the deflation, no reset of wdsn, dummies without data",
        options: || Config {
            recovery: RecoveryMode::Reno,
            on_rto: Opening::Slow,
            leftover_adsn: LeftoverAdsn::Keep,
            final_ack: FinalAck::SendFirst,
            wdsn_on_restart: WdsnOnRestart::Keep,
            strict_epoch: false,
            dummies_without_data: true,
            ..Config::default()
        },
    },
    Reading {
        name: "both-papers",
        about: "SACK as in [Peach §V], dummies where no data may be sent (the `else` of Fig. 4), slow start after a timeout \
                (Fig. 4), and a halving for each lost segment (\"halving the cwnd multiple times\", [Peach+ §II])",
        options: || Config {
            dummies: Some(Dummies::WhenBlocked),
            recovery_end: RecoveryEnd::TriggeringSegment,
            on_rto: Opening::Slow,
            ..Config::default()
        },
    },
    Reading {
        name: "every-ack",
        about: "SACK with two dummies on every acknowledgement of a recovery: an improvement that [Peach] does not describe",
        options: || Config { dummies: Some(Dummies::EveryAck), ..Config::default() },
    },
];
