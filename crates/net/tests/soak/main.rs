//! What a host on the wire endures: many connections, quick ones, floods, slow peers, jumping clocks, interfaces that come
//! and go, packets of ill will.
//!
//! Each scene prints what it measured, the bound, and whether that holds, and writes the same as JSON. One that fails does
//! not end the others. Scenes that have finished are kept: after Ctrl-C the same command goes on. By default the form is
//! short, for tests: it is done in a minute, and what depends on how fast the machine is gets no verdict.
//!
//! ```sh
//! make soak                                  # the long form, about an hour
//! make soak SOAK="--short --only flood"      # a scene of the short one
//! ```
#![allow(clippy::disallowed_methods, reason = "it takes the time that it takes")]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a program")]

#[cfg(target_os = "linux")]
mod bed;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod finding;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod stop;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    // Before there is any other thread.
    stop::listen();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == crowd::WORD) {
        return crowd::play(&args[1..]);
    }
    let wish = match Wish::read(args.into_iter()) {
        Ok(wish) => wish,
        Err(line) => {
            eprintln!("soak: {line}");
            return 2.into();
        }
    };
    let mut failed = 0;
    for (name, about, scene) in scene::ALL {
        if wish.only.as_deref().is_some_and(|only| only != *name) || stop::requested() {
            continue;
        }
        if let Some(kept) = wish.record().kept(name, wish.again) {
            println!("{name}: kept from before ({kept})\n");
            continue;
        }
        println!("{name}: {about}");
        let began = std::time::Instant::now();
        let outcome = scene(&wish.run());
        if stop::requested() {
            println!("  stopped: the same command does it again");
            break;
        }
        failed += usize::from(wish.record().write(name, &outcome, began.elapsed()));
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

/// What is asked for.
#[cfg(target_os = "linux")]
struct Wish {
    long: bool,
    again: bool,
    only: Option<String>,
    out: std::path::PathBuf,
}

#[cfg(target_os = "linux")]
impl Wish {
    fn read(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wish = Self { long: false, again: false, only: None, out: record::folder() };
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let mut value = |what: &str| args.next().ok_or(format!("{arg} needs {what} behind it"));
            match arg.as_str() {
                "--long" => wish.long = true,
                "--short" => wish.long = false,
                "--again" => wish.again = true,
                "--only" => {
                    let name = value("the name of a scene")?;
                    if !scene::ALL.iter().any(|(n, ..)| *n == name) {
                        let known: Vec<&str> = scene::ALL.iter().map(|(n, ..)| *n).collect();
                        return Err(format!(
                            "--only {name}: there is no such scene; there are {}",
                            known.join(", ")
                        ));
                    }
                    wish.only = Some(name);
                }
                "--out" => wish.out = value("a folder")?.into(),
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
        Ok(wish)
    }
    fn record(&self) -> record::Record {
        record::Record::new(&self.out, self.long)
    }
    fn run(&self) -> scene::Run {
        scene::Run { long: self.long }
    }
}
