//! The sections of the overview over all studies of a folder, with the lines of those that ran.

use crate::book::Chapter;
use crate::model::{Headline, OverviewPlan, OverviewSection};
use crate::overview::{Line, Place};
use crate::stats::Estimate;
use serde_json::{Value, json};

/// A section with the lines of all studies that ran.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Its number and title.
    pub plan: &'a OverviewSection,
    /// The study and the line, in the order of the studies.
    pub lines: Vec<(&'a str, &'a Line)>,
}

/// The sections of the overview of a folder, in order; none if its paper has no overview.
#[must_use]
pub fn sections(chapter: &Chapter) -> Vec<Section<'_>> {
    let all = chapter.paper.overview.iter().flat_map(|o| &o.section);
    let section = |plan| {
        let lines = chapter.evaluations().flat_map(|e| e.overview.iter().map(|l| (e.name.as_str(), l)));
        Section { plan, lines: lines.filter(|(_, l)| l.id == plan.id).collect() }
    };
    all.map(section).collect()
}

fn estimated(e: &Estimate) -> Value {
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    json!({ "mean": number(e.mean), "ci95": number(e.half), "n": e.n })
}

/// The headlines of a folder whose studies ran, as JSON: the value in the first column, null if it is not a number.
#[must_use]
pub fn headlines(chapter: &Chapter) -> Vec<Value> {
    let one = |h: &Headline| {
        let e = chapter.evaluations().find(|e| e.name == h.study)?;
        let mut places = e
            .overview
            .iter()
            .filter(|l| l.metric == h.metric)
            .flat_map(|l| l.places.iter().map(move |p| (l, p)));
        let (line, place) = places.find(|(_, p)| p.at == h.at)?;
        let value = place.values.first().filter(|v| v.is_valid()).map(estimated);
        Some(json!({
            "says": h.says,
            "case": h.study,
            "metric": h.metric,
            "at": h.at,
            "unit": line.unit,
            "better": line.better,
            "anchor": format!("{}--{}", chapter.name, h.study),
            "value": value,
        }))
    };
    chapter.paper.overview.iter().flat_map(|o| &o.headline).filter_map(one).collect()
}

/// The overview of a folder as JSON; null if its paper has none.
#[must_use]
pub fn json(chapter: &Chapter) -> Value {
    let Some(OverviewPlan { title, columns, .. }) = &chapter.paper.overview else { return Value::Null };
    let named = |from: usize, all: &[Estimate]| -> Value {
        let names = columns.iter().skip(from).cloned();
        names.zip(all.iter().map(estimated)).collect::<serde_json::Map<_, _>>().into()
    };
    let place = |p: &Place| json!({ "at": p.at, "values": named(0, &p.values), "first_less": named(1, &p.differences) });
    let line = |(study, l): &(&str, &Line)| {
        json!({
            "case": study,
            "metric": l.metric,
            "says": l.says,
            "unit": l.unit,
            "better": l.better,
            "places": l.places.iter().map(place).collect::<Vec<_>>(),
        })
    };
    let section = |s: &Section<'_>| {
        json!({
            "section": s.plan.id,
            "title": s.plan.says,
            "lines": s.lines.iter().map(line).collect::<Vec<_>>(),
            "not_measured": s.plan.open,
        })
    };
    json!({
        "title": title,
        "columns": columns,
        "sections": sections(chapter).iter().map(section).collect::<Vec<_>>(),
    })
}
