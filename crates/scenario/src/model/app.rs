//! What senders have to send, and over what.

use super::Short;
use crate::quantity::{Count, Frequency, RateSpec, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::dist::{Sizes, Times};

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSpec {
    /// A connection with congestion control.
    #[default]
    Tcp,
    /// Datagrams: nothing is repeated, and nothing reacts to losses.
    Udp,
}

/// What a sender has to send. Short form: "bulk".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum AppSpec {
    /// Short transfers at random times (a Poisson process), each over a new connection.
    Arrivals {
        /// How many per time, on average.
        rate: Frequency,
        /// Bytes of a transfer.
        size: Short<Sizes>,
    },
    /// Data without end.
    Bulk {},
    /// Data at a constant rate.
    Cbr {
        /// Over UDP that of packets with their headers, over TCP that of the application's data.
        rate: RateSpec,
        /// Over UDP a packet with its headers, "1000 B" by default; over TCP what is written at a time, a full
        /// segment by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packet: Option<Size>,
    },
    /// Data at a constant rate with pauses.
    OnOff {
        /// Rate while on; see "cbr".
        rate: RateSpec,
        /// See "cbr".
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packet: Option<Size>,
        /// How long it is on; it begins so.
        on: Short<Times>,
        /// How long it pauses.
        off: Short<Times>,
    },
    /// Pages one after the other, each over a new connection.
    Pages {
        /// Full segments per page.
        segments: Count,
        /// How many pages; without end by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<Count>,
        /// Pause between the end of a page and the start of the next; none by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle: Option<Short<Times>>,
    },
}
