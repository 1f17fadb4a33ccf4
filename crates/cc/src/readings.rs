//! Named readings: sets of options under which the two papers on TCP-Peach can be read.
//!
//! The papers are silent on several points and contradict themselves on others, and each such point is an option. What a
//! text as a whole says is a set of options. Such sets have their names here and nowhere else: in files, `cc = { name =
//! "peach", reading = "listing" }`, and options beside it depart from the reading.

use crate::action::{RecoveryEnd, RecoveryMode};
use crate::alg::peach::{self, Dummies, FinalAck, LeftoverAdsn, WdsnOnRestart};
use crate::alg::peach_plus::{self, PipeRule, RetransmitTimer};
use crate::registry::Config;

/// A named set of options of a control.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Name of the control in files.
    pub control: &'static str,
    /// Name of the reading in files.
    pub name: &'static str,
    /// What it follows, with the place in the paper.
    pub about: &'static str,
    options: fn() -> Config,
}

/// All named readings.
pub const READINGS: &[Reading] = &[
    Reading {
        control: "peach",
        name: "listing",
        about: "the listings of [Peach] Figs. 2 and 4, line by line: Reno's recovery, slow start after a timeout, no reset \
                of adsn, data before the deflation, no reset of wdsn, dummies without data",
        options: || {
            Config::Peach(peach::Config {
                recovery: RecoveryMode::Reno,
                on_rto: peach::Opening::Slow,
                leftover_adsn: LeftoverAdsn::Keep,
                final_ack: FinalAck::SendFirst,
                wdsn_on_restart: WdsnOnRestart::Keep,
                strict_epoch: false,
                dummies_without_data: true,
                ..peach::Config::default()
            })
        },
    },
    Reading {
        control: "peach",
        name: "both-papers",
        about: "SACK as in [Peach §V], dummies where no data may be sent (the `else` of Fig. 4), slow start after a timeout \
                (Fig. 4), and a halving for each lost segment (\"halving the cwnd multiple times\", [Peach+ §II])",
        options: || {
            Config::Peach(peach::Config {
                dummies: Some(Dummies::WhenBlocked),
                recovery_end: RecoveryEnd::TriggeringSegment,
                on_rto: peach::Opening::Slow,
                ..peach::Config::default()
            })
        },
    },
    Reading {
        control: "peach",
        name: "every-ack",
        about: "SACK with two dummies on every acknowledgement of a recovery: an improvement that [Peach] does not describe",
        options: || {
            Config::Peach(peach::Config { dummies: Some(Dummies::EveryAck), ..peach::Config::default() })
        },
    },
    Reading {
        control: "peach-plus",
        name: "printed",
        about: "[Peach+] line by line: the counter of Fig. 3, the timer that every SACK restarts (§I-C), NIL segments \
                without data",
        options: || Config::PeachPlus(printed()),
    },
    Reading {
        control: "peach-plus",
        name: "both-papers",
        about: "[Peach+] line by line, and slow start after a timeout, as in [Peach] Fig. 4",
        options: || Config::PeachPlus(peach_plus::Config { on_rto: peach_plus::Opening::Slow, ..printed() }),
    },
    Reading {
        control: "peach-plus",
        name: "scoreboard",
        about: "the pipe of RFC 6675 in place of the counter of Fig. 3, the timer of RFC 6298, NIL segments only where data \
                waits: an improvement that [Peach+] does not describe",
        options: || {
            Config::PeachPlus(peach_plus::Config {
                pipe: PipeRule::Rfc6675,
                retransmit_timer: RetransmitTimer::Advance,
                nil_without_data: false,
                ..peach_plus::Config::default()
            })
        },
    },
];

fn printed() -> peach_plus::Config {
    peach_plus::Config {
        pipe: PipeRule::CounterLiteral,
        retransmit_timer: RetransmitTimer::EverySack,
        nil_without_data: true,
        ..peach_plus::Config::default()
    }
}

impl Reading {
    /// The named reading of a control, if it has one of this name.
    #[must_use]
    pub fn of(control: &str, name: &str) -> Option<&'static Self> {
        Self::all_of(control).find(|r| r.name == name)
    }

    /// The named readings of a control.
    pub fn all_of(control: &str) -> impl Iterator<Item = &'static Self> {
        READINGS.iter().filter(move |r| r.control == control)
    }

    /// Its options.
    #[must_use]
    pub fn config(&self) -> Config {
        (self.options)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_differ_and_are_accepted() {
        for (i, r) in READINGS.iter().enumerate() {
            let config = r.config();
            assert_eq!(config.name(), r.control);
            assert_eq!(config.validate(), Ok(()), "{} {}", r.control, r.name);
            assert!(Reading::of(r.control, r.name).is_some_and(|found| found.about == r.about));
            for other in &READINGS[..i] {
                assert_ne!(other.config(), config, "{} and {}", other.name, r.name);
            }
        }
        assert!(Reading::of("sack", "listing").is_none() && Reading::of("peach", "printed").is_none());
    }
}
