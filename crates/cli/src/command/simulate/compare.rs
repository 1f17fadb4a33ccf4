//! `skyhaul compare`.

use crate::args::CompareArgs;
use crate::output::print;
use crate::stop::Stop;
use skyhaul_lab::compare::{self, Compared};

pub(crate) fn run(args: &CompareArgs) -> Result<(), Stop> {
    let Some(b) = &args.b else { return super::worlds::run(args) };
    let (left, right) = (compare::read(&args.a)?, compare::read(b)?);
    let all = compare::compare(&left, &right, args.across_versions).map_err(Stop::bad)?;
    print(&if args.json {
        format!("{:#}\n", compare::json(&left, &right, &all))
    } else {
        compare::text(&left, &right, &all)
    })?;
    if all.iter().all(Compared::is_equal) { Ok(()) } else { Err(Stop::Different) }
}
