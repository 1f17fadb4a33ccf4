//! A program of scenes: which of them are played, in which form, and what is kept.

use crate::record::{self, Outcome};
use crate::stop;
use std::process::ExitCode;

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub long: bool,
}

impl Run {
    /// One of the two.
    pub fn choose<T>(self, long: T, short: T) -> T {
        if self.long { long } else { short }
    }
}

/// Its name, what it is, and what it does.
pub type Scene = (&'static str, &'static str, fn(&Run) -> Outcome);

/// Plays the scenes that `args` ask for, in their order.
pub fn play(scenes: &[Scene], args: Vec<String>) -> ExitCode {
    let arguments = match Arguments::read(scenes, args.into_iter()) {
        Ok(arguments) => arguments,
        Err(line) => {
            eprintln!("soak: {line}");
            return 2.into();
        }
    };
    let mut failed = 0;
    for (name, about, scene) in scenes {
        if arguments.only.as_deref().is_some_and(|only| only != *name) || stop::requested() {
            continue;
        }
        if let Some(kept) = arguments.record().kept(name, arguments.again) {
            println!("{name}: kept from before ({kept})\n");
            continue;
        }
        println!("{name}: {about}");
        let began = std::time::Instant::now();
        let outcome = scene(&arguments.run());
        if stop::requested() {
            println!("  stopped: the same command does it again");
            break;
        }
        failed += usize::from(arguments.record().write(name, &outcome, began.elapsed()));
    }
    match failed {
        _ if stop::requested() => 130.into(),
        0 => 0.into(),
        n => {
            println!("{n} scenes do not hold");
            1.into()
        }
    }
}

/// The arguments.
struct Arguments {
    long: bool,
    again: bool,
    only: Option<String>,
    out: std::path::PathBuf,
}

impl Arguments {
    fn read(scenes: &[Scene], args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { long: false, again: false, only: None, out: record::folder() };
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let mut value = |what: &str| args.next().ok_or(format!("{arg} needs {what} behind it"));
            match arg.as_str() {
                "--long" => arguments.long = true,
                "--short" => arguments.long = false,
                "--again" => arguments.again = true,
                "--only" => {
                    let name = value("the name of a scene")?;
                    if !scenes.iter().any(|(n, ..)| *n == name) {
                        let known: Vec<&str> = scenes.iter().map(|(n, ..)| *n).collect();
                        return Err(format!(
                            "--only {name}: there is no such scene; there are {}",
                            known.join(", ")
                        ));
                    }
                    arguments.only = Some(name);
                }
                "--out" => arguments.out = value("a folder")?.into(),
                // What test runners ask of programs that they list.
                "--list" => std::process::exit(0),
                // A test runner's own words.
                "--quiet" | "--nocapture" | "--exact" | "--ignored" => {}
                other if other.starts_with("--test-threads") => {}
                other => {
                    return Err(format!(
                        "{other}: write --long, --short, --only SCENE, --again or --out FOLDER"
                    ));
                }
            }
        }
        Ok(arguments)
    }
    fn record(&self) -> record::Record {
        record::Record::new(&self.out, self.long)
    }
    fn run(&self) -> Run {
        Run { long: self.long }
    }
}
