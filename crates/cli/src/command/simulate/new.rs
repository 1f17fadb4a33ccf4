//! `skyhaul new`.

use crate::args::{NewArgs, NewKind};
use crate::output::print;
use crate::stop::Stop;
use std::io::{ErrorKind, Write as _};

pub(crate) fn run(args: &NewArgs) -> Result<(), Stop> {
    let text = match args.kind {
        NewKind::Scenario => include_str!("new/scenario.toml"),
        NewKind::Study => include_str!("new/study.toml"),
    };
    let Some(path) = &args.file else { return print(text) };
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            Err(Stop::bad(format!("{} exists already: choose another name", path.display())))
        }
        Err(e) => Err(Stop::write(path, &e)),
    }
}
