//! Lists the studies of the repository, so that they come with the program: `studies/<paper>/<study>.toml`, and
//! `studies/<paper>/paper.toml`. The cases of an evaluation, `evaluation/<case>.toml`, come with it too.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../studies");
    println!("cargo::rerun-if-changed={}", root.display());
    let (mut studies, mut papers) = (Vec::new(), Vec::new());
    for paper in fs::read_dir(&root)? {
        let paper = paper?.path();
        if !paper.is_dir() {
            continue;
        }
        let folder = paper.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (stem, path) in files(&paper)? {
            if stem == "paper" {
                papers.push((folder.clone(), path));
            } else {
                studies.push((format!("{folder}/{stem}"), path));
            }
        }
    }
    let evaluation = files(&root.join("../evaluation"))?;
    let mut text = String::new();
    for (name, mut list) in [("STUDIES", studies), ("PAPERS", papers), ("EVALUATION", evaluation)] {
        list.sort();
        let _ = writeln!(text, "pub(crate) const {name}: &[(&str, &str)] = &[");
        for (name, path) in list {
            let _ = writeln!(text, "    ({name:?}, include_str!({path:?})),");
        }
        text.push_str("];\n");
    }
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("studies.rs"), text)
}

/// The TOML files of a folder: names without extension, and paths.
fn files(folder: &Path) -> io::Result<Vec<(String, String)>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut all = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|e| e == "toml") {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push((stem, file.canonicalize()?.to_string_lossy().into_owned()));
        }
    }
    Ok(all)
}
