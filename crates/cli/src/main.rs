//! The `skyhaul` command. The Python package calls the same function.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    skyhaul_cli::run(std::env::args_os(), None).into()
}
