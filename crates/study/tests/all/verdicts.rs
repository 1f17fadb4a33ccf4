//! Which claims hold, which differ, and which are undecided.

use crate::common;

use common::{Fake, STUDY, parse};
use skyhaul_study::claim::Verdict;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::model::Profile;
use skyhaul_study::plan::{plan, plan_profile};
use skyhaul_study::run::{RunOptions, run};
use skyhaul_study::runner::Failure;

/// The study with these claims only, and so many seeds.
fn study(seeds: u32, claims: &str) -> String {
    let (head, rest) = STUDY.split_once("[[claim]]").expect("claims");
    let figures = rest.find("[[figure]]").map_or("", |i| &rest[i..]);
    let readings = head.find("[[reading]]").map(|i| i + head[i..].find("[[metric]]").expect("metrics"));
    let head = match (head.find("[[reading]]"), readings) {
        (Some(from), Some(to)) => format!("{}{}", &head[..from], &head[to..]),
        _ => head.to_owned(),
    };
    format!("{}{claims}{figures}", head.replace("count = 8", &format!("count = {seeds}")))
}

fn evaluated(text: &str, profile: Profile) -> Evaluation {
    let fake = Fake::default();
    let p = plan_profile(&fake, parse(text), profile).unwrap_or_else(|e| panic!("{e}"));
    let cells = run(&fake, &p, &RunOptions::default()).expect("cells");
    evaluate(&p, &cells).expect("an evaluation")
}

fn claim(kind: &str, check: &str) -> String {
    format!("[[claim]]\nid = \"x\"\nsays = \"s\"\nkind = \"{kind}\"\nat = {{ loss = 0 }}\ncheck = {check}\n")
}

fn verdict(seeds: u32, kind: &str, check: &str) -> Verdict {
    evaluated(&study(seeds, &claim(kind, check)), Profile::Full).claims[0].verdict().clone()
}

const LEAD: &str =
    "{ kind = \"greater\", metric = \"goodput\", left = { cc = \"Peach\" }, right = { cc = \"SACK\" } }";

#[test]
fn pairs_decide_where_both_intervals_overlap() {
    // Both sides share a noise of ± 50 per seed; what is their own is ± 5. Peach leads by 200.
    let e = evaluated(&study(3, &claim("order", LEAD)), Profile::Full);
    let of = |cc: &str| e.values.rows.iter().find(|r| r.at == ["0", cc]).expect("a row").metrics[0];
    let (sack, peach) = (of("SACK"), of("Peach"));
    assert_eq!(*e.claims[0].verdict(), Verdict::Holds, "{sack:?} {peach:?}");
    // A lead that their own noise explains is undecided, however the two intervals lie.
    let close = LEAD.replace(" }", ", by_abs = 200 }").replace("\"Peach\", by_abs = 200", "\"Peach\"");
    let close = close.replace("\"SACK\", by_abs = 200 }, by_abs = 200", "\"SACK\" }, by_abs = 200");
    assert!(close.contains("by_abs = 200 }") && close.matches("by_abs").count() == 1, "{close}");
    assert!(
        matches!(verdict(3, "order", &close), Verdict::Undecided { .. }),
        "{:?}",
        verdict(3, "order", &close)
    );
}

#[test]
fn one_seed_decides_only_where_no_chance_is_involved() {
    for (kind, holds) in [("order", false), ("number", false), ("exact", true), ("definition", true)] {
        let checks = [
            LEAD.to_owned(),
            "{ kind = \"within\", metric = \"goodput\", within = [0, 1e9] }".to_owned(),
            "{ kind = \"max-at\", metric = \"goodput\", along = \"cc\", value = \"Peach\" }".to_owned(),
            "{ kind = \"monotone\", metric = \"goodput\", along = \"cc\", direction = \"increasing\" }".to_owned(),
            "{ kind = \"curve\", series = \"cwnd\", relation = \"above\", left = { cc = \"Peach\" }, right = { cc = \"SACK\" } }".to_owned(),
        ];
        for mut check in checks {
            if check.contains("within\"") {
                check = check.replace(
                    "within\", metric",
                    "ratio\", left = { cc = \"Peach\" }, right = { cc = \"SACK\" }, metric",
                );
            }
            let v = verdict(1, kind, &check);
            let expected = if holds { Verdict::Holds } else { Verdict::Undecided { needs_seeds: Some(2) } };
            assert_eq!(v, expected, "{kind}: {check}");
        }
    }
    let back = LEAD.replace("Peach", "X").replace("SACK", "Peach").replace("X", "SACK");
    assert_eq!(verdict(1, "exact", &back), Verdict::Differs);
}

#[test]
fn claims_that_name_what_is_not_there_are_refused_before_anything_runs() {
    for (check, parts) in [
        (LEAD.replace("goodput", "godput"), &["claim[0].check", "no metric `godput`", "accepted: goodput"][..]),
        (LEAD.replace("cc = \"SACK\"", "cc = \"Sacl\""), &["claim[0].check", "no value `Sacl`", "SACK, Peach"]),
        (LEAD.replace("cc = \"SACK\"", "dd = \"SACK\""), &["claim[0].check", "no axis `dd`", "loss, cc"]),
        (LEAD.replace("cc = \"SACK\"", "cc = []"), &["claim[0].check", "the list of values of axis `cc` is empty"]),
        (
            "{ kind = \"contrast\", metric = \"goodput\", terms = [{ weight = 1, at = { cc = \"SACK\" } }], min = 2, max = 1 }".to_owned(),
            &["claim[0].check", "write the lower limit first", "accepted: min = low, max = high"],
        ),
        (
            "{ kind = \"equal\", metric = \"goodput\", value = 1, tolerance = -0.1 }".to_owned(),
            &["claim[0].check", "`tolerance` is not negative", "accepted: value = 1, tolerance = 0.1"],
        ),
        (
            "{ kind = \"contrast\", metric = \"goodput\", terms = [{ weight = nan, at = { cc = \"SACK\" } }], min = 2 }".to_owned(),
            &["claim[0].check", "weights and bounds are numbers"],
        ),
        (
            "{ kind = \"curve\", series = \"cwnd\", relation = \"equal\", tolerance = nan, left = { cc = \"Peach\" }, right = { cc = \"SACK\" } }".to_owned(),
            &["claim[0].check", "`tolerance` is a finite number"],
        ),
    ] {
        let text = study(2, &claim("order", &check));
        let e = plan(&Fake::default(), parse(&text)).expect_err("refused").to_string();
        let line = text.lines().position(|l| l.starts_with("check = ")).expect("the key") + 1;
        assert!(e.contains(&format!("toml:{line}: ")), "{line}: {e}");
        for part in parts {
            assert!(e.contains(part), "{part}: {e}");
        }
    }
}

#[test]
fn a_failed_cell_at_the_base_of_a_metric_is_the_reason() {
    let gain =
        "[[metric]]\nname = \"gain\"\nfrom = \"metric.goodput - base.goodput\"\nbase = { cc = \"SACK\" }\n\n";
    let check = "{ kind = \"within\", metric = \"gain\", within = [0, 1000] }";
    let claim = claim("number", check).replace("{ loss = 0 }", "{ loss = 0, cc = \"Peach\" }");
    let fake = Fake::default();
    let p = plan(&fake, parse(&study(2, &format!("{gain}{claim}")))).unwrap_or_else(|e| panic!("{e}"));
    let mut cells = run(&fake, &p, &RunOptions::default()).expect("cells");
    // The first cell is SACK without loss, with the first seed.
    cells.observed[0] = None;
    cells.failed.insert(0, Failure { message: "no such luck".to_owned(), detail: None });
    let e = evaluate(&p, &cells).expect("an evaluation");
    let Verdict::NotEvaluable { reason } = e.claims[0].verdict() else { panic!("{:?}", e.claims[0]) };
    assert_eq!(reason, "loss = 0, cc = SACK failed with seed 1: no such luck");
}

#[test]
fn the_quick_profile_is_what_its_key_says() {
    let base =
        "[[metric]]\nname = \"gain\"\nfrom = \"metric.goodput / base.goodput\"\nbase = { loss = 0.01 }\n";
    let within = |loss: &str, metric: &str| {
        claim("order", &format!("{{ kind = \"within\", metric = \"{metric}\", within = [0, 9e9] }}"))
            .replace("loss = 0 }", &format!("loss = {loss}, cc = \"SACK\" }}"))
            .replace("\"x\"", &format!("\"{metric} {loss}\""))
    };
    let claims = [within("0", "goodput"), within("0.01", "goodput"), within("0", "gain")].concat();
    let text = study(8, &format!("{base}{claims}"));
    let with = |quick: &str| text.replacen("schema = 1\n", &format!("schema = 1\nquick = {quick}\n"), 1);

    let whole = evaluated(&text, Profile::Quick);
    assert_eq!((whole.provenance.seeds, whole.provenance.cells, whole.readings.len()), (3, 18, 1));
    assert_eq!(whole.counts().holds, 3);

    let part = evaluated(
        &with("{ seeds = 2, only = { loss = [0, 1e-3] }, set = { recovery = \"x\" } }"),
        Profile::Quick,
    );
    assert_eq!((part.provenance.seeds, part.provenance.cells), (2, 8));
    assert_eq!((part.counts().holds, part.counts().not_in_profile), (1, 2));
    // The last one needs a loss of 0.01 for its base only.
    assert_eq!(*part.claims[2].verdict(), Verdict::NotInProfile);
    assert_eq!(part.values.rows.len(), 4);
    assert_ne!(part.provenance.hash, evaluated(&with("{ seeds = 2 }"), Profile::Quick).provenance.hash);
    // The whole study does not care.
    let key = with("{ seeds = 2, only = { loss = 0 } }");
    assert_eq!(evaluated(&key, Profile::Full).provenance.cells, 48);

    for (quick, parts) in [
        ("{ seeds = 0 }", &["quick.seeds"][..]),
        ("{ only = { loss = 7 } }", &["quick.only", "no value `7`"]),
        ("{ set = { loss = 0 } }", &["quick.set", "axis `loss` varies"]),
        ("{ set = { nothing = 0 } }", &["quick.set", "leads nowhere"]),
    ] {
        let file = skyhaul_study::model::StudyFile::parse(&with(quick), std::path::Path::new("s.toml"));
        let e = file
            .and_then(|f| plan_profile(&Fake::default(), f, Profile::Quick))
            .expect_err(quick)
            .to_string();
        assert!(parts.iter().all(|p| e.contains(p)) && e.starts_with("s.toml:3: "), "{e}");
    }
}

#[test]
fn a_reading_that_has_not_run_all_cells_mixes_none() {
    let verdicts = |reading: &str, claims: &str| {
        let (head, rest) = STUDY.split_once("[[reading]]").expect("a reading");
        let metrics =
            &rest[rest.find("[[metric]]").expect("metrics")..rest.find("[[claim]]").expect("claims")];
        let e = evaluated(&format!("{head}[[reading]]\n{reading}\n{metrics}{claims}"), Profile::Full);
        e.claims.into_iter().map(|c| c.outcomes.into_iter().nth(1)).collect::<Vec<_>>()
    };
    let each =
        |id: &str, more: &str| format!("[[claim]]\nid = \"{id}\"\nsays = \"s\"\n{more}\ncheck = {LEAD}\n");
    let falls = "{ kind = \"monotone\", metric = \"goodput\", along = \"loss\", direction = \"decreasing\" }";
    let claims = [
        each("all", "for_each = [\"loss\"]"),
        each("without", "at = { loss = 0.01 }"),
        format!("[[claim]]\nid = \"along\"\nsays = \"s\"\nat = {{ cc = \"SACK\" }}\ncheck = {falls}\n"),
    ]
    .concat();
    let reading = "label = \"r\"\nset = { recovery = \"reno\" }\nonly = { loss = [0, 1e-3] }";
    // The reading would change the others too: a claim has the cases whose cells it has, or none.
    let own = verdicts(&format!("{reading}\nrest = \"not-run\""), &claims);
    let all = own[0].as_ref().expect("an outcome");
    assert_eq!(all.cases.len(), 2, "{all:?}");
    assert!(
        all.ours.ends_with("2 of 3 cases: this reading does not run loss = 0.01, cc = Peach"),
        "{}",
        all.ours
    );
    let along = own[2].as_ref().expect("an outcome");
    assert!(
        matches!(&along.verdict, Verdict::NotEvaluable { reason } if reason.contains("does not run loss = 0.01, cc = SACK")),
        "{along:?}"
    );
    // It says nothing on claims of none of its cells.
    assert!(own[1].is_none(), "{:?}", own[1]);
    // Without the key, the others are those of the default reading.
    let mixed = verdicts(reading, &claims);
    assert_eq!(mixed[0].as_ref().expect("an outcome").cases.len(), 3);
}

#[test]
fn a_logarithm_of_text_is_refused() {
    let text = STUDY
        .replace("x = \"loss\"\n", "x = \"cc\"\n")
        .replace("series = \"cc\"\nx_scale", "series = \"loss\"\nx_scale");
    let e = plan(&Fake::default(), parse(&text)).expect_err("refused").to_string();
    assert!(e.contains("figure[0].x_scale") && e.contains("`SACK` of axis `cc` is no number"), "{e}");
}
