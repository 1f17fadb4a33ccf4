//! The table in docs/conformance.md.

use skyhaul_testkit::conformance::{Case, table};
use std::fs;
use std::path::PathBuf;

const BEGIN: &str =
    "<!-- The table below is written by: cargo test -p skyhaul-net --test conformance -- --record -->\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md")
}

fn read() -> Result<(String, String), String> {
    let text = fs::read_to_string(page()).map_err(|e| format!("docs/conformance.md: {e}"))?;
    let (head, table) = text.split_once(BEGIN).ok_or("docs/conformance.md lost the line before its table")?;
    Ok((head.to_owned(), table.to_owned()))
}

fn table_of(files: &[(String, Vec<Case>)]) -> String {
    let (total, [ours, linux]) = table::count(files);
    format!(
        "\n{total} cases. Skyhaul conforms in {}, differs in {}, does not run {}; Linux 6.18 conforms in {}, differs in {}, \
         does not run {}.\n{}",
        ours[0],
        ours[1],
        ours[2],
        linux[0],
        linux[1],
        linux[2],
        table::markdown(files)
    )
}

/// Writes the table again.
pub(crate) fn write(files: &[(String, Vec<Case>)]) -> Result<(), String> {
    let (head, _) = read()?;
    fs::write(page(), format!("{head}{BEGIN}{}", table_of(files))).map_err(|e| e.to_string())
}

/// Checks that the table is that of the cases.
pub(crate) fn check(files: &[(String, Vec<Case>)]) -> Result<(), String> {
    let (_, table) = read()?;
    if table == table_of(files) {
        return Ok(());
    }
    Err("docs/conformance.md is out of date: cargo test -p skyhaul-net --test conformance -- --record".into())
}
