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
        println!("cargo::rerun-if-changed={}", paper.display());
        for file in fs::read_dir(&paper)? {
            let file = file?.path();
            if file.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let folder = paper.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let path = file.canonicalize()?.to_string_lossy().into_owned();
            if stem == "paper" {
                papers.push((folder, path));
            } else {
                studies.push((format!("{folder}/{stem}"), path));
            }
        }
    }
    let cases = root.join("../evaluation");
    println!("cargo::rerun-if-changed={}", cases.display());
    let mut evaluation = Vec::new();
    for file in fs::read_dir(&cases)? {
        let file = file?.path();
        if file.extension().is_some_and(|e| e == "toml") {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            evaluation.push((stem, file.canonicalize()?.to_string_lossy().into_owned()));
        }
    }
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
