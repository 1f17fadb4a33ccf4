//! A router without support for priorities: [`DropTail`] under the name that priority experiments use. It is the worst
//! case for probes, which then displace data.

use super::drop_tail::DropTail;
use super::model::without_options;

without_options! {
    /// As "drop-tail": a router without support for priorities.
    DropTail, "one class, tail drop, marks ignored", blind: true, DropTail::new()
}
