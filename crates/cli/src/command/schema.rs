//! `skyhaul schema`.

use crate::args::{SchemaArgs, SchemaKind};
use crate::output::print;
use crate::stop::Stop;

pub(crate) fn run(args: &SchemaArgs) -> Result<(), Stop> {
    match args.kind {
        SchemaKind::Scenario => print(&format!("{:#}\n", skyhaul_scenario::scenario_schema())),
        SchemaKind::Study => print(&skyhaul_study::schema::study_schema()),
        SchemaKind::Paper => print(&skyhaul_study::schema::paper_schema()),
    }
}
