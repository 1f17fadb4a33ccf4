//! The page of the documentation that shows the list.

use super::{FLOW, GROUP, LINK, Quantity, RUN, Subject, Unit, sampled};
use skyhaul_scenario::resolved::Series;
use std::fmt::Write as _;

const OPENING: &str = "\
# Quantities

The quantities that a run measures. This page is generated from the list in `crates/sim/src/quantity`, which the simulator,
studies, tables, JSON and Python share.

The metrics of [studies](study-format.md) use the *name* of a quantity: `flow.goodput`, `link.sat.forward.utilization`,
`run.events`. [Tables](results.md), JSON and Python use its *column*: the name with what stands behind it, such as `goodput_bit_s`.
";

/// The text of `docs/quantities.md`.
#[must_use]
pub(super) fn page() -> String {
    let mut out = OPENING.to_owned();
    part(
        &mut out,
        "Flows",
        "`flow.NAME`; a row of the table `flows` for each flow, with `group` and `index` in front. Quantities of events that did not \
         happen, or that could not be measured, are missing.",
        FLOW,
    );
    part(
        &mut out,
        "Groups of flows",
        "Under `groups` in JSON. A group has the sums of all counts of its flows, and of their `unique_segments`, `goodput`, \
         `goodput_segments` and `page_time_sum`, and these quantities:",
        GROUP,
    );
    part(
        &mut out,
        "Links",
        "`link.LINK.forward.NAME` and `link.LINK.reverse.NAME`; a row of the table `links` for each direction, with `link` and \
         `direction` in front. What is counted as `data_…` for data packets is also counted as `probe_…` for probes and as `ack_…` for \
         acknowledgements.",
        LINK,
    );
    part(&mut out, "The run", "`run.NAME`; the top level of JSON.", RUN);
    series(&mut out);
    out
}

fn part<T: ?Sized>(out: &mut String, title: &str, about: &str, list: &[Quantity<T>]) {
    let _ = writeln!(out, "\n## {title}\n\n{about}\n");
    // Shown by the paragraph above the list, with the quantity of data packets.
    let of_data = |name: &str| {
        let rest = name.strip_prefix("probe_").or_else(|| name.strip_prefix("ack_"));
        rest.is_some_and(|rest| list.iter().any(|q| q.name.strip_prefix("data_") == Some(rest)))
    };
    for q in list.iter().filter(|q| !of_data(q.name)) {
        let column = q.column();
        let adds = match column.strip_prefix(q.name) {
            Some("") => String::new(),
            Some(rest) => format!(", `{rest}`"),
            None => format!(", column `{column}`"),
        };
        let _ = writeln!(out, "* `{}`{adds}{}: {}", q.name, unit(q.unit), q.description);
    }
}

fn series(out: &mut String) {
    out.push_str(
        "\n## Series\n\nThe series that `record.series` of a scenario selects: `series.NAME` in the functions of studies, rows of the \
         table `series`.\n\n",
    );
    for s in Series::ALL {
        let q = sampled(s);
        let of = match q.of {
            Subject::Flow => "of flows",
            Subject::Link => "of links",
        };
        let _ = writeln!(out, "* `{}`{}, {of}: {}", s.name(), unit(q.unit), q.description);
    }
}

fn unit(unit: Unit) -> String {
    if unit.symbol().is_empty() { String::new() } else { format!(" ({})", unit.symbol()) }
}
