//! `skyhaul compare`.

use crate::args::CompareArgs;
use crate::compare::{self, Compared};
use crate::print;
use crate::stop::Stop;

pub(crate) fn run(args: &CompareArgs) -> Result<(), Stop> {
    let Some(b) = &args.b else { return super::worlds::run(args) };
    let (left, right) = (compare::read(&args.a)?, compare::read(b)?);
    let all = compare::compare(&left, &right, args.across_versions)?;
    print(&if args.json {
        format!("{:#}\n", compare::json(&left, &right, &all))
    } else {
        compare::text(&left, &right, &all)
    })?;
    if all.iter().all(Compared::is_equal) { Ok(()) } else { Err(Stop::Different) }
}
