//! An application is one file and one line: the file in `src` and the line in `src/lib.rs`. From that line follow its name
//! and its keys in files, the schema, reports, and what the simulator does; so no other source file may know an
//! application by its name. (Its module is named in `src/lib.rs`, too, as the language wants it.)
//!
//! `bulk`, data without end, is exempt: it is the default of a flow whose file names no application.

use skyhaul_apps::NAMES;
use skyhaul_testkit::one_line::{List, Row, code};

/// True if `code` names the application: its kind in files, its module, its variant.
fn names(code: &str, row: &Row<'_>) -> bool {
    let kind = [format!("kind = \"{}\"", row.name), format!("kind\", \"{}\"", row.name)];
    let module = [format!("apps::{}", row.module()), format!("{}::Config", row.module())];
    let variant = ["Config", "App"].map(|e| format!("{e}::{}(", row.variant));
    kind.iter().chain(&module).chain(&variant).any(|text| code.contains(text.as_str()))
}

#[test]
fn no_other_source_file_names_an_application() {
    let list = List {
        file: "crates/apps/src/lib.rs",
        what: "a new application",
        names: NAMES.to_vec(),
        exempt: &["bulk"],
        default: None,
        own: &|row| format!("crates/apps/src/{}", row.module()),
        named: &names,
        listed: &names,
        page: Some("docs/workloads.md"),
        elsewhere: &[],
    };
    list.check();
}

#[test]
fn names_are_found_in_code_and_not_in_comments() {
    let row = Row { name: "on-off", variant: "OnOff", path: "on_off::Config" };
    for text in ["App::OnOff(a)", "use skyhaul_apps::on_off;", "kind = \"on-off\"", "on_off::Config {}"] {
        assert!(names(&code(text), &row), "{text}");
    }
    for text in ["// App::OnOff(a)", "\"on-off\"", "let on_off = 1;"] {
        assert!(!names(&code(text), &row), "{text}");
    }
}
