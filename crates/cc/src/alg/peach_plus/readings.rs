//! The readings of TCP-Peach+ that have a name.

use super::config::{Config, Opening, PipeRule, RetransmitTimer};
use crate::control::Reading;

pub(super) const ALL: &[Reading<Config>] = &[
    Reading {
        name: "printed",
        about: "[Peach+] line by line: the counter of Fig. 3, the timer that every SACK restarts (§I-C), NIL segments \
                without data",
        options: || printed(),
    },
    Reading {
        name: "both-papers",
        about: "[Peach+] line by line, and slow start after a timeout, as in [Peach] Fig. 4",
        options: || Config { on_rto: Opening::Slow, ..printed() },
    },
    Reading {
        name: "scoreboard",
        about: "the pipe of RFC 6675 in place of the counter of Fig. 3, the timer of RFC 6298, NIL segments only where data \
                waits: an improvement that [Peach+] does not describe",
        options: || Config {
            pipe: PipeRule::Rfc6675,
            retransmit_timer: RetransmitTimer::Advance,
            nil_without_data: false,
            ..Config::default()
        },
    },
];

fn printed() -> Config {
    Config {
        pipe: PipeRule::CounterLiteral,
        retransmit_timer: RetransmitTimer::EverySack,
        nil_without_data: true,
        ..Config::default()
    }
}
