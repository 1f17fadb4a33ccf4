//! Quantities of each direction of a link.

use super::{Quantity, Unit, bytes, count, level};
use crate::result::{ClassResult, LinkResult};
use skyhaul_repair::Counters;
use skyhaul_trace::{Class, LossCause};

/// A list of quantities, then eight quantities for each class of packets.
macro_rules! with_classes {
    ([$($own:expr),* $(,)?] $($class:ident $name:literal $packets:literal),*) => {
        &[
            $($own,)*
            $(
                count(concat!($name, "_offered"), concat!($packets, " offered"), |l, _| {
                    l.class(Class::$class).offered
                }),
                count(concat!($name, "_delivered"), concat!($packets, " delivered"), |l, _| {
                    l.class(Class::$class).delivered
                }),
                count(
                    concat!($name, "_dropped_error"),
                    concat!($packets, " lost to channel errors"),
                    |l, _| lost(l, Class::$class, LossCause::Error),
                ),
                count(concat!($name, "_dropped_full"), concat!($packets, " refused by a full queue"), |l, _| {
                    lost(l, Class::$class, LossCause::Full)
                }),
                count(
                    concat!($name, "_dropped_pushed_out"),
                    concat!($packets, " evicted by packets of higher priority"),
                    |l, _| lost(l, Class::$class, LossCause::PushedOut),
                ),
                count(
                    concat!($name, "_dropped_link_down"),
                    concat!($packets, " in flight when the link went down"),
                    |l, _| lost(l, Class::$class, LossCause::LinkDown),
                ),
                count(
                    concat!($name, "_dropped_aqm"),
                    concat!($packets, " dropped by active queue management"),
                    |l, _| lost(l, Class::$class, LossCause::Aqm),
                ),
                count(
                    concat!($name, "_marked"),
                    concat!($packets, " marked by active queue management"),
                    |l, _| l.class(Class::$class).marked,
                ),
            )*
        ]
    };
}

/// Quantities of a direction of a link: `link.LINK.DIRECTION.NAME` in studies, columns of `links`.
pub const LINK: &[Quantity<LinkResult>] = with_classes!(
    [
        level("utilization", Unit::Share, "fraction of time that the transmitter was busy; 0 without a rate", |l, _| {
            l.utilization
        }),
        level(
            "mean_queue",
            Unit::Packets,
            "mean number of waiting packets, without the one being transmitted",
            |l, _| l.mean_queue
        ),
        Quantity {
            unit: Unit::Packets,
            ..count("max_queue", "maximum number of waiting packets", |l, _| l.max_queue.into())
        },
        bytes("offered_bytes", "bytes offered, headers included", |l, _| l.offered_bytes),
        bytes("delivered_bytes", "bytes delivered, headers included", |l, _| l.delivered_bytes),
        count("offered", "packets offered", |l, _| all(l, |c| c.offered)),
        count("delivered", "packets delivered", |l, _| all(l, |c| c.delivered)),
        count("dropped_error", "packets lost to channel errors", |l, _| l.dropped(LossCause::Error)),
        count("dropped_full", "packets refused by a full queue", |l, _| l.dropped(LossCause::Full)),
        count("dropped_pushed_out", "packets evicted by packets of higher priority", |l, _| {
            l.dropped(LossCause::PushedOut)
        }),
        count("dropped_link_down", "packets in flight when the link went down", |l, _| {
            l.dropped(LossCause::LinkDown)
        }),
        count("marked", "packets marked by active queue management", |l, _| all(l, |c| c.marked)),
        count("dropped_aqm", "packets dropped by active queue management", |l, _| l.dropped(LossCause::Aqm)),
        count("dropped_arq_gave_up", "packets given up by the link's ARQ", |l, _| {
            l.dropped(LossCause::ArqGaveUp)
        }),
        count("dropped_filtered", "acknowledgements removed by the queue (filter, decimation)", |l, _| {
            l.dropped(LossCause::Filtered)
        }),
        count(
            "transmissions",
            "transmissions of a link with repair: packets, retransmissions and parity; 0 on other links",
            |l, _| l.repair.transmissions
        ),
        count("parity", "transmissions of parity and of copies", |l, _| l.repair.parity),
        count("repeats", "packets retransmitted by the link's ARQ", |l, _| l.repair.retransmissions),
        count("repairs", "packets lost on the channel and recovered by the link's code", |l, _| {
            l.repair.repairs
        }),
        count("duplicates", "copies over a second satellite that arrived after the packet and were dropped", |l, _| {
            l.repair.duplicates
        }),
        count("duplicated", "copies delivered by a link that duplicates; not included in `delivered`", |l, _| {
            all(l, |c| c.duplicated)
        }),
        count("reconstructed", "acknowledgements created at the far side; not included in `delivered`", |l, _| {
            l.reconstructed
        }),
        count("gateway_datagrams", "packets that the gateway before the link sent as datagrams to repair", |l, _| {
            gateways(l, |sender, _| sender.sources)
        }),
        count("gateway_passed", "packets that passed the gateway before the link without repair", |l, _| {
            gateways(l, |sender, _| sender.passed)
        }),
        count("gateway_dropped", "packets dropped by the queue of the gateway before the link", |l, _| {
            gateways(l, |sender, _| sender.dropped)
        }),
        count("gateway_symbols", "repair symbols that the gateway before the link sent", |l, _| {
            gateways(l, |sender, _| sender.symbols)
        }),
        count("gateway_repeats", "datagrams that the gateway before the link repeated", |l, _| {
            gateways(l, |sender, _| sender.repeats)
        }),
        count("gateway_recovered", "datagrams that the code of the gateways recovered", |l, _| {
            gateways(l, |_, receiver| receiver.recovered)
        }),
        count("gateway_late", "datagrams that the gateway behind delivered after later ones", |l, _| {
            gateways(l, |_, receiver| receiver.late)
        }),
        count("gateway_lost", "datagrams that the gateway behind did not deliver", |l, _| {
            gateways(l, |_, receiver| receiver.lost)
        }),
        bytes("gateway_datagram_bytes", "bytes of datagrams sent to repair, without the headers of gateways", |l, _| {
            gateways(l, |sender, _| sender.source_bytes)
        }),
        bytes("gateway_header_bytes", "bytes of headers and tags that gateways put around datagrams", |l, _| {
            gateways(l, |sender, _| sender.header_bytes)
        }),
        bytes("gateway_saved_bytes", "bytes of headers of datagrams that compression between the gateways has saved", |l, _| {
            gateways(l, |sender, _| sender.source_bytes - sender.carried_bytes)
        }),
        bytes("gateway_repair_bytes", "bytes of repair symbols and repeats, headers included", |l, _| {
            gateways(l, |sender, _| sender.symbol_bytes + sender.repeat_bytes)
        }),
        bytes("gateway_report_bytes", "bytes of reports to the other gateway, headers included", |l, _| {
            gateways(l, |sender, _| sender.report_bytes)
        }),
        level("gateway_mean_held", Unit::Second, "mean time that a datagram waited for earlier ones", |l, _| {
            let receiver = l.gateways.as_ref().map(|g| g.1).unwrap_or_default();
            receiver.held.as_secs_f64() / receiver.delivered.max(1) as f64
        }),
        level("gateway_max_held", Unit::Second, "longest time that a datagram waited for earlier ones", |l, _| {
            l.gateways.as_ref().map_or(0.0, |g| g.1.longest_held.as_secs_f64())
        }),
    ]
    Data "data" "data packets",
    Probe "probe" "probes",
    Ack "ack" "acknowledgements"
);

/// A count of the gateways that repair a segment: the sending and the receiving one.
fn gateways(l: &LinkResult, of: fn(&Counters, &Counters) -> u64) -> u64 {
    l.gateways.as_ref().map_or(0, |g| of(&g.0, &g.1))
}

/// Sum over all classes.
fn all(l: &LinkResult, of: fn(&ClassResult) -> u64) -> u64 {
    l.classes.iter().map(of).sum()
}

fn lost(l: &LinkResult, class: Class, cause: LossCause) -> u64 {
    l.class(class).dropped[cause as usize]
}
