//! The `skyhaul` command: arguments, output and exit status. Its work is done in `skyhaul-lab`, and for real packets
//! in `skyhaul-net`. The binary of `cargo install` and the entry point of the Python package call the same [`run`].
//!
//! Exit status: 0 success; 1 a claim does not hold, results differ, a run ended early, or a check found a problem; 2 wrong
//! input, output that cannot be written, or a claim that could not be evaluated, with one line on standard error; 130
//! stopped with Ctrl-C, 143 with SIGTERM. `emulate` passes on the status of its program.
#![forbid(unsafe_code)]

mod args;
mod command;
mod interrupt;
mod output;
#[cfg(target_os = "linux")]
mod printer;
mod stop;

use clap::Parser;
use skyhaul_study::figure::FigureRenderer;
use std::ffi::OsString;
use stop::Stop;

/// Runs the command in `args`, whose first element is the name of the program, and returns the exit status. `own_command` starts the
/// program again when arguments are appended; its first element is the path of the file that the system executes: the program, or
/// the Python interpreter that runs it.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    renderer: Option<&dyn FigureRenderer>,
    own_command: &[OsString],
) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    #[cfg(not(target_os = "linux"))]
    if let Some(line) = args.get(1).and_then(|command| command.to_str()).and_then(needs_linux) {
        return finish(Err(Stop::bad(line)));
    }
    let cli = match args::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Help and version are no errors; their status is 0, and 2 for everything else.
        Err(e) => return finish(usage(&e)),
    };
    finish(command::run(&cli.command, renderer, own_command))
}

/// What to say of a command that exists only on Linux.
#[cfg(any(not(target_os = "linux"), test))]
fn needs_linux(command: &str) -> Option<String> {
    let why = match command {
        "doctor" | "emulate" => "links in real time are TUN interfaces and network namespaces",
        "gateway" => "connections are split by rules of nftables",
        "kernel" => "controls are BPF programs of its kernel",
        "wire" => "packets go through a TUN interface",
        _ => return None,
    };
    Some(format!("skyhaul {command} needs Linux: {why}"))
}

/// Prints the help that clap returns as an error; the other errors become one line.
fn usage(e: &clap::Error) -> Result<(), Stop> {
    if !e.use_stderr() || e.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let text = e.render().to_string();
        return if e.use_stderr() { Err(Stop::Usage(text)) } else { output::print(&text) };
    }
    let text = e.render().to_string();
    let words = |l: &str| l.trim().trim_start_matches("error: ").trim_start_matches("tip: ").to_owned();
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("For more information"));
    let lines: Vec<String> = lines.take_while(|l| !l.starts_with("Usage:")).map(words).collect();
    let line = numbers(&lines.join("; ").replace(":; ", ": "));
    Err(Stop::Bad(format!("{line} (see skyhaul --help)")))
}

/// Replaces the messages of Rust's number parser and of clap's ranges by what to write.
fn numbers(line: &str) -> String {
    let line = line
        .replace("invalid digit found in string", "write a whole number ≥ 0")
        .replace("number too large to fit in target type", "the number is too large");
    // Such as "…: -3 is not in 1..=65535".
    let Some((before, range)) = line.split_once(" is not in ") else { return line };
    match (before.rsplit_once(": "), range.split_once("..=")) {
        (Some((before, _)), Some((least, most))) => {
            format!("{before}: write a whole number from {least} to {most}")
        }
        _ => line,
    }
}

fn finish(result: Result<(), Stop>) -> u8 {
    let Err(stop) = result else { return 0 };
    match &stop {
        Stop::Bad(line) | Stop::Interrupted(line) => output::warn(line),
        Stop::Usage(text) => output::note(text),
        Stop::Closed | Stop::Status(_) => {}
        #[cfg(feature = "simulation")]
        Stop::Claim | Stop::Different => {}
    }
    stop.status()
}

#[cfg(test)]
mod tests {
    use super::{args, needs_linux};
    use clap::CommandFactory;

    #[test]
    fn every_command_for_linux_alone_is_refused_in_words_elsewhere() {
        let of_linux: Vec<String> = args::Cli::command()
            .get_subcommands()
            .filter(|c| {
                !c.is_hide_set() && c.get_about().is_some_and(|about| about.to_string().contains("Linux"))
            })
            .map(|c| c.get_name().to_owned())
            .collect();
        assert_eq!(of_linux, ["doctor", "emulate", "wire", "gateway", "kernel"]);
        for command in of_linux {
            let line = needs_linux(&command).expect("a line");
            assert!(line.starts_with(&format!("skyhaul {command} needs Linux: ")), "{line}");
        }
        assert_eq!(needs_linux("run"), None);
    }
}
