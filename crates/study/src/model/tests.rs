use super::*;

const SMALL: &str = r#"
schema = 1
title = "x"
scenario = "preset:geo"

[[axis]]
name = "loss"
path = "links.sat.error.p"
values = [0, 1e-4, 0.01]

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", { name = "peach", recovery = "newreno" }, { value = "reno", label = "Reno", x = 3 }]

[[metric]]
name = "goodput"
from = "1"

[[claim]]
id = "a"
says = "s"
check = { kind = "greater", metric = "goodput", left = { cc = "Reno", metric = "other" }, right = { loss = 0.01 } }
"#;

fn parse(text: &str) -> Result<StudyFile, StudyError> {
    StudyFile::parse(text, Path::new("dir/x.study.toml"))
}

#[test]
fn values_have_short_and_long_forms() {
    let f = parse(SMALL).expect("a study");
    let loss = &f.study.axis[0];
    assert_eq!((loss.label(0), loss.label(1), loss.label(2)), ("0".into(), "1e-4".into(), "1e-2".into()));
    assert_eq!(
        (loss.index_of("1e-4"), loss.index_of("0.0001"), loss.index_of("0.0")),
        (Some(1), Some(1), Some(0))
    );
    assert_eq!((loss.index_of("1e-2"), loss.index_of("7")), (Some(2), None));
    let cc = &f.study.axis[1];
    assert_eq!((cc.label(1), cc.label(2)), ("peach (recovery newreno)".into(), "Reno".into()));
    assert_eq!((cc.values[2].number(), cc.index_of("reno")), (Some(3.0), Some(2)));
    assert_eq!(f.study.seeds.iter().count(), 10);
    assert_eq!(f.stem(), "x");
    let Check::Greater { left, right, .. } = &f.study.claim[0].check else { panic!("another check") };
    assert_eq!(left.metric.as_deref(), Some("other"));
    assert_eq!(right.at.0["loss"], AxisSelection(vec!["0.01".into()]));
}

#[test]
fn misspelt_keys_are_refused_with_their_line() {
    for (from, to, part) in [
        ("title = \"x\"", "titel = \"x\"", "did you mean \"title\"?"),
        ("path = \"links.sat.error.p\"", "paht = \"p\"", "paht"),
        ("kind = \"greater\"", "kind = \"bigger\"", "bigger"),
        ("says = \"s\"", "says = \"s\"\nkind = \"x\"", "unknown variant"),
        ("label = \"Reno\"", "lable = \"Reno\"", "lable"),
        ("metric = \"other\"", "metric = [\"other\", \"goodput\"]", "expected one metric"),
        ("metric = \"other\"", "metric = []", "expected one metric"),
        ("schema = 1", "schema = 9", "format 9"),
        ("schema = 1", "schema = 1\nseeds = { count = 0 }", "without seeds"),
    ] {
        let e = parse(&SMALL.replacen(from, to, 1)).expect_err(part).to_string();
        assert!(e.contains(part) && e.starts_with("dir/x.study.toml:"), "{e}");
    }
}

#[test]
fn keys_are_found_in_the_text() {
    for (key, line) in
        [("title", 3), ("axis[1].path", 13), ("axis[0]", 6), ("claim[0].check", 23), ("set", 0)]
    {
        assert_eq!(locate(SMALL, key).unwrap_or(0), line, "{key}");
    }
    let with_comment = "[[axis]] # the first\nname = \"a\"\n[[axis]]\nname = \"b\"\n";
    assert_eq!(locate(with_comment, "axis[1].name"), Some(4));
}

#[test]
fn a_study_survives_being_written_and_read() {
    let f = parse(SMALL).expect("a study");
    let text = toml::to_string(&f.study).expect("TOML");
    let again = parse(&text).expect("the same");
    assert_eq!(format!("{:?}", again.study), format!("{:?}", f.study));
}

#[test]
fn a_changed_study_is_written_as_it_is() {
    let mut f = parse(SMALL).expect("a study");
    assert_eq!(f.current_text(), SMALL);
    f.study.seeds.count = 3;
    let again = parse(&f.current_text()).expect("a study");
    assert_eq!(again.study.seeds.count, 3);
}

#[test]
fn numbers_of_an_axis_are_written_alike() {
    let axis = |values: &str| -> Axis {
        toml::from_str(&format!("name = \"loss\"\npath = \"links.sat.error.p\"\nvalues = {values}"))
            .expect("an axis")
    };
    let labels = |a: &Axis| -> Vec<String> { (0..a.values.len()).map(|i| a.label(i)).collect() };
    let small = axis("[0, 1e-4, 0.001, 1e-2, 2]");
    assert_eq!(labels(&small), ["0", "1e-4", "1e-3", "1e-2", "2"]);
    // Claims find a value in any notation.
    for pick in ["0.001", "1e-3", "1.0e-3"] {
        assert_eq!(small.index_of(pick), Some(2), "{pick}");
    }
    assert_eq!(labels(&axis("[0.001, 1e-2, 0.5]")), ["0.001", "0.01", "0.5"]);
}
