//! The page of the documentation that shows the list.

use super::{FLOW, GROUP, LINK, Quantity, RUN, Subject, Unit, sampled};
use skyhaul_scenario::resolved::Series;
use std::fmt::Write as _;

const OPENING: &str = "\
# Quantities

All that a run measures. This page is written from the list in `crates/sim/src/quantity`, which the simulator, studies,
tables, JSON and Python read alike.

In the metrics of [studies](study-format.md) a quantity has its *name*: `flow.goodput`, `link.sat.forward.utilization`,
`run.events`. The columns of [tables](results.md), JSON and Python have its *column*: the name with the unit behind, where
the name does not say it.
";

/// The text of `docs/quantities.md`.
#[must_use]
pub(super) fn page() -> String {
    let mut out = OPENING.to_owned();
    part(
        &mut out,
        "Flows",
        "`flow.NAME`; a row of the table `flows` for each flow, with `group` and `index` in front. What has not happened, and \
         what there is nothing of to measure, is missing.",
        FLOW,
    );
    part(
        &mut out,
        "Groups of flows",
        "Under `groups` in JSON. A group has the sums of what its flows count, and of their `unique_segments`, `goodput`, \
         `goodput_segments` and `page_time_sum`; besides:",
        GROUP,
    );
    part(
        &mut out,
        "Links",
        "`link.LINK.forward.NAME` and `link.LINK.reverse.NAME`; a row of the table `links` for each direction, with `link` and \
         `direction` in front.",
        LINK,
    );
    part(&mut out, "The run", "`run.NAME`; the top of JSON.", RUN);
    series(&mut out);
    out
}

fn part<T: ?Sized>(out: &mut String, title: &str, about: &str, list: &[Quantity<T>]) {
    let _ = writeln!(out, "\n## {title}\n\n{about}\n\n| name | column | unit | what |\n|---|---|---|---|");
    for q in list {
        let _ = writeln!(out, "| `{}` | `{}` | {} | {} |", q.name, q.column(), unit(q.unit), q.says);
    }
}

fn series(out: &mut String) {
    out.push_str(
        "\n## Series\n\nWhat `record.series` of a scenario samples: `series.NAME` in the functions of studies, rows of the table \
         `series`.\n\n| name | of | unit | what |\n|---|---|---|---|\n",
    );
    for s in Series::ALL {
        let q = sampled(s);
        let of = match q.of {
            Subject::Flow => "flows",
            Subject::Link => "links",
        };
        let _ = writeln!(out, "| `{}` | {of} | {} | {} |", s.name(), unit(q.unit), q.says);
    }
}

fn unit(unit: Unit) -> &'static str {
    if unit.symbol().is_empty() { "–" } else { unit.symbol() }
}
