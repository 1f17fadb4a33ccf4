//! Broken files and overrides are refused in one line; nothing panics.

use proptest::prelude::*;
use skyhaul_scenario::{Document, check, no_files, preset, resolve_text};

/// Resolves and checks a text, writes it, and reads it back: the same must come out. If the text is refused, the message has one line.
fn whole_way(text: &str, sets: &[&str]) -> Result<(), TestCaseError> {
    match resolve_text("x.toml", text, sets, &no_files) {
        Ok(resolved) => {
            let text = check(&resolved).to_string();
            prop_assert!(!text.contains("NaN"), "{text}");
            prop_assert_eq!(resolve_text("y.toml", &resolved.to_toml(), &[], &no_files), Ok(resolved));
        }
        Err(e) => prop_assert!(!e.to_string().contains('\n'), "{e}"),
    }
    Ok(())
}

/// A file with two links and two groups of flows, resolved, so that it contains the defaults too.
fn rich() -> String {
    let mut document = Document::preset("peach-geo").unwrap();
    for set in [
        "links.sat.reverse.rate=256 kbit/s",
        "links.far={ rate = '1 Gbit/s', delay = { kind = 'uniform', base = '1 ms', jitter = '2 ms' } }",
        "links.far.error={ kind = 'bursts', loss = 0.01, burst = 5 }",
        "flows.web={ path = ['far', 'sat'], cc = 'sack', app = { kind = 'pages', segments = 50 } }",
        "flows.web.endpoint.delayed-ack={ every = 2, delay = '200 ms' }",
    ] {
        document.set(set).unwrap();
    }
    document.resolve().unwrap().to_toml()
}

/// Values of every type of TOML, and amounts at the edge of their range or of another dimension.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "''",
    "'x'",
    "true",
    "[]",
    "{}",
    "[[]]",
    "2001-01-01",
    "9223372036854775807",
    "'1 ns'",
    "'1e30 s'",
    "'18446744073709551615 B'",
    "'18446744073709551615 bit/s'",
    "'1e19 packets/s'",
    "'1 BDP'",
    "'unlimited'",
    "'none'",
    "'1 segment'",
    "'1e6 RTT'",
    "{ kind = 'none' }",
    "{ kind = 'per' }",
    "{ name = 'peach' }",
    "['sat']",
    "['sat', 'far']",
    "{ uniform = ['0 s', '1 RTT'] }",
    "{ every = 4294967295, delay = '1 s' }",
];

/// Adds to `out` the paths of all values in a table, and of the tables in it. `at` is the path of the table itself.
fn paths(table: &toml::Table, at: &str, out: &mut Vec<String>) {
    for (key, value) in table {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        if let Some(inner) = value.as_table() {
            paths(inner, &path, out);
        }
        out.push(path);
    }
}

#[test]
fn any_value_in_any_place() {
    let text = rich();
    let mut all = Vec::new();
    paths(&text.parse().unwrap(), "", &mut all);
    assert!(all.len() > 100);
    for path in &all {
        for value in VALUES {
            let set = format!("{path}={value}");
            whole_way(&text, &[&set]).unwrap_or_else(|e| panic!("{set}: {e}"));
        }
    }
}

#[test]
fn an_override_cannot_change_what_a_file_extends() {
    let e = resolve_text("x.toml", &rich(), &["extends=preset:peach-leo"], &no_files).unwrap_err();
    assert_eq!(e.to_string(), "--set: extends: what a file extends cannot be overridden");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cut_and_pasted_files(a in 0usize..2000, b in 0usize..2000, c in 0usize..2000, by in "[ -~\\n]{0,6}") {
        let text = rich();
        // `a`, `b` and `c` are places in the text, in 2000ths of its length.
        let at = |i: usize| i * text.len() / 2000;
        // At most 40 bytes are replaced by `by`. The longer text repeats its end from `c` on, so that keys occur twice.
        let (from, to) = (at(a.min(b)), at(a.max(b)).min(at(a.min(b)) + 40));
        prop_assume!(text.is_char_boundary(from) && text.is_char_boundary(to) && text.is_char_boundary(at(c)));
        let mut broken = format!("{}{by}{}", &text[..from], &text[to..]);
        broken.push_str(&text[at(c)..]);
        whole_way(&broken, &[])?;
        whole_way(&format!("{}{by}{}", &text[..from], &text[to..]), &[])?;
    }

    #[test]
    fn any_override(path in "(links|flows|record|duration|x)(\\.(sat|bulk|cc|error|[a-z]{0,3})){0,4}", value in "[ -~]{0,20}") {
        for name in preset::names() {
            let text = format!("extends = \"preset:{name}\"");
            whole_way(&text, &[&format!("{path}={value}")])?;
        }
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        whole_way(&text, &[])?;
    }
}
