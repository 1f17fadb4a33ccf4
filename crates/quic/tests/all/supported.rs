//! Which controls run in QUIC.

use skyhaul_cc::{Config, NAMES, user};
use skyhaul_quic::{Factory, UnsupportedControl};

/// The built-in controls that run in QUIC.
pub(crate) fn supported() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().filter(|name| Factory::new(Config::by_name(name).expect("built in")).is_ok())
}

/// The list in `docs/quic.md` is this one.
#[test]
fn the_document_lists_those_that_run() {
    let page = include_str!("../../../../docs/quic.md");
    let row = |head: &str| {
        let line = page.lines().find(|l| l.starts_with(&format!("| {head} |"))).expect("a row of the table");
        let mut names: Vec<_> = line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.sort();
        names
    };
    let all = |wanted: &dyn Fn(&Result<Factory, UnsupportedControl>) -> bool| {
        let mut names: Vec<_> = NAMES
            .iter()
            .filter(|name| wanted(&Factory::new(Config::by_name(name).expect("built in"))))
            .map(|&n| n.to_owned())
            .collect();
        names.sort();
        names
    };
    let check = |head: &str, wanted: &dyn Fn(&Result<Factory, UnsupportedControl>) -> bool| {
        assert_eq!(
            row(head),
            all(wanted),
            "write the names on the right in the row \"{head}\" of docs/quic.md"
        );
    };
    check("as in TCP", &|f| f.as_ref().is_ok_and(|f| !f.misses_probes()));
    check("without probes", &|f| f.as_ref().is_ok_and(Factory::misses_probes));
    check("refused", &Result::is_err);
}

#[test]
fn refusals_say_why() {
    let own = Config::User(user::Config::new("mine"));
    let refused = Factory::new(own).expect_err("a user's own");
    assert_eq!(refused, UnsupportedControl::UserDefined("user:mine".to_owned()));
    assert!(refused.to_string().contains("only built-in controls"), "{refused}");
    for name in NAMES {
        if let Err(e) = Factory::new(Config::by_name(name).expect("built in")) {
            assert!(e.to_string().contains(name), "{e}");
        }
    }
}
