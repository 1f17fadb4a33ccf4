//! The `skyhaul` command. The Python package calls the same function.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // The path of the executable, since another program of that name may come first in PATH.
    let own_command = std::env::current_exe().map(Into::into).ok().or_else(|| std::env::args_os().next());
    skyhaul_cli::run(std::env::args_os(), None, own_command.as_slice()).into()
}
