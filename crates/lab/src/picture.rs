//! Rendering of figures with the command `vl-convert`, for a program installed without Python.

use skyhaul_study::RenderError;
use skyhaul_study::figure::FigureRenderer;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

/// What to install for figure files. The requirement is that of the extra `plot` in `pyproject.toml`, not the name of this package: an
/// index may have another package of that name.
pub(crate) const INSTALL: &str =
    "install the command vl-convert, or for Python: pip install 'vl-convert-python>=1.9,<2'";

/// The command `vl-convert`, by its path.
#[derive(Debug)]
pub(crate) struct Command(PathBuf);

impl Command {
    /// Searches for `vl-convert` in the folders of `PATH`.
    pub(crate) fn find() -> Option<Self> {
        let name = format!("vl-convert{}", std::env::consts::EXE_SUFFIX);
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|f| f.join(&name)).find(|p| p.is_file()).map(Self)
    }
}

impl FigureRenderer for Command {
    fn render(&self, spec: &str, path: &Path) -> Result<(), RenderError> {
        let png = path.extension().is_some_and(|e| e == "png");
        let mut command = process::Command::new(&self.0);
        command.arg(if png { "vl2png" } else { "vl2svg" });
        if png {
            command.args(["--scale", "2"]);
        }
        command.args(["--input", "-", "--output"]).arg(path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A write fails if the command ended early; its message then says why.
            let _ = input.write_all(spec.as_bytes());
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(RenderError::Message(message.lines().last().unwrap_or("vl-convert failed").trim().to_owned()))
    }
}
