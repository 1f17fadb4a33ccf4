//! The `skyhaul` command. Everything it does is in the library, which the Python package calls as well.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    skyhaul_cli::run(std::env::args_os(), None).into()
}
