//! The `skyhaul` command. The Python package calls the same function.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // By its actual location, since names on a search path may change.
    let again = std::env::current_exe().map(Into::into).ok().or_else(|| std::env::args_os().next());
    skyhaul_cli::run(std::env::args_os(), None, again.as_slice()).into()
}
