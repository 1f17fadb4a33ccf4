//! Quantities of each direction of a link.

use super::{Quantity, Unit, bytes, count, level};
use crate::result::{ClassResult, LinkResult};
use skyhaul_trace::{Class, LossCause};

/// A list of quantities, then the same eight of each class of packets.
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
                    concat!($packets, " lost to errors of the channel"),
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
        level("utilization", Unit::Share, "share of time the transmitter was busy; 0 without a rate", |l, _| {
            l.utilization
        }),
        level(
            "mean_queue",
            Unit::Packets,
            "mean number of packets waiting; the one being transmitted does not wait",
            |l, _| l.mean_queue
        ),
        Quantity {
            unit: Unit::Packets,
            ..count("max_queue", "most packets that ever waited", |l, _| l.max_queue.into())
        },
        bytes("offered_bytes", "bytes offered, headers included", |l, _| l.offered_bytes),
        bytes("delivered_bytes", "bytes delivered, headers included", |l, _| l.delivered_bytes),
        count("offered", "packets offered", |l, _| all(l, |c| c.offered)),
        count("delivered", "packets delivered", |l, _| all(l, |c| c.delivered)),
        count("dropped_error", "packets lost to errors of the channel", |l, _| l.dropped(LossCause::Error)),
        count("dropped_full", "packets refused by a full queue", |l, _| l.dropped(LossCause::Full)),
        count("dropped_pushed_out", "packets evicted by packets of higher priority", |l, _| {
            l.dropped(LossCause::PushedOut)
        }),
        count("dropped_link_down", "packets in flight when the link went down", |l, _| {
            l.dropped(LossCause::LinkDown)
        }),
        count("marked", "packets marked by active queue management", |l, _| all(l, |c| c.marked)),
        count("dropped_aqm", "packets dropped by active queue management", |l, _| l.dropped(LossCause::Aqm)),
        count("dropped_arq_gave_up", "packets that the link repeated in vain", |l, _| {
            l.dropped(LossCause::ArqGaveUp)
        }),
        count("dropped_filtered", "acknowledgements that the link thinned out", |l, _| {
            l.dropped(LossCause::Filtered)
        }),
        count(
            "transmissions",
            "transmissions of a link that repairs: packets, those sent again, and parity; 0 on others",
            |l, _| l.repair.transmissions
        ),
        count("parity", "transmissions of parity and of copies", |l, _| l.repair.parity),
        count("repeats", "packets that the link sent again on request", |l, _| l.repair.retransmissions),
        count("repairs", "packets that the channel had lost and the link's code brought back", |l, _| {
            l.repair.repairs
        }),
        count("duplicates", "copies over a second satellite that arrived after the packet and were dropped", |l, _| {
            l.repair.duplicates
        }),
        count("reconstructed", "acknowledgements made anew at the far side; not among those delivered", |l, _| {
            l.reconstructed
        }),
    ]
    Data "data" "data packets",
    Probe "probe" "probes",
    Ack "ack" "acknowledgements"
);

/// Over all classes.
fn all(l: &LinkResult, of: fn(&ClassResult) -> u64) -> u64 {
    l.classes.iter().map(of).sum()
}

fn lost(l: &LinkResult, class: Class, cause: LossCause) -> u64 {
    l.class(class).dropped[cause as usize]
}
