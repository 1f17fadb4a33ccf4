//! What a document requires, and what the claims of a set of studies say about it.
//!
//! The rows of a [`Paper`](crate::model::Paper) are the requirements; a claim answers the one that its id begins
//! with, and an open entry names a part that was not measured.

use crate::book::Chapter;
use crate::claim::{ClaimResult, Verdict};
use crate::model::{OpenStatement, Statement};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the results say about a requirement, in ascending order of precedence: of the judgements on its claims the last one
/// here is that on the requirement.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// All its claims hold.
    Met,
    /// None contradicts it, but some claim needs more seeds, or does not belong to the profile that ran.
    Undecided,
    /// A claim has no value, because a case failed or could not be run.
    Failed,
    /// A claim differs.
    NotMet,
    /// There is no claim about it.
    NotMeasured,
}

impl Judgement {
    /// All, from good to unknown.
    pub const ALL: [Self; 5] = [Self::Met, Self::NotMet, Self::Undecided, Self::Failed, Self::NotMeasured];

    /// One or two words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Undecided => "undecided",
            Self::Failed => "a case failed",
            Self::NotMeasured => "not measured",
        }
    }

    /// One character.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Met => "✓",
            Self::NotMet => "✗",
            Self::Undecided => "?",
            Self::Failed => "!",
            Self::NotMeasured => "–",
        }
    }

    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Holds => Self::Met,
            Verdict::Differs => Self::NotMet,
            Verdict::Undecided { .. } | Verdict::NotInProfile => Self::Undecided,
            Verdict::NotEvaluable { .. } => Self::Failed,
        }
    }
}

/// A claim, and the study that judges it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The study.
    pub case: &'a str,
    /// Position among its claims.
    pub index: usize,
    /// The claim.
    pub claim: &'a ClaimResult,
}

/// A requirement with all that was measured, and what was not.
#[derive(Clone, Debug)]
pub struct Requirement<'a> {
    /// Its number and title.
    pub row: &'a Statement,
    /// The judgement over all claims.
    pub judgement: Judgement,
    /// The claims, in the order of the studies.
    pub answers: Vec<Answer<'a>>,
    /// The parts that were not measured, and why.
    pub open: Vec<&'a OpenStatement>,
}

/// The requirements in the order of the paper. A study that could not be run answers nothing; the book lists it.
#[must_use]
pub fn requirements(chapter: &Chapter) -> Vec<Requirement<'_>> {
    chapter.paper.row.iter().map(|row| requirement(chapter, row)).collect()
}

fn requirement<'a>(chapter: &'a Chapter, row: &'a Statement) -> Requirement<'a> {
    let mut answers = Vec::new();
    for (case, e) in chapter.entries.iter().filter_map(|p| Some((&p.name, p.outcome.as_ref().ok()?))) {
        let named = e.claims.iter().enumerate().filter(|(_, c)| row.is_named_by(&c.id));
        answers.extend(named.map(|(index, claim)| Answer { case, index, claim }));
    }
    let judged = answers.iter().map(|a| Judgement::of(a.claim.verdict())).max();
    let open = chapter.paper.open.iter().filter(|o| row.is_named_by(&o.id)).collect();
    Requirement { row, judgement: judged.unwrap_or(Judgement::NotMeasured), answers, open }
}

impl Requirement<'_> {
    /// The requirement in JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let answer = |a: &Answer<'_>| {
            let o = &a.claim.outcomes[0];
            json!({
                "case": a.case,
                "id": a.claim.id,
                "says": a.claim.says,
                "measured": o.ours,
                "cases": o.cases,
                "note": a.claim.note,
                "verdict": o.verdict.word(),
                "detail": o.verdict.detail(),
            })
        };
        let open = |o: &&OpenStatement| json!({ "says": o.says, "why": o.why });
        json!({
            "section": self.row.id,
            "title": self.row.says,
            "verdict": self.judgement,
            "claims": self.answers.iter().map(answer).collect::<Vec<_>>(),
            "not_measured": self.open.iter().map(open).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_counts_and_what_is_open_does_not() {
        let judged = |all: &[Verdict]| all.iter().map(Judgement::of).max();
        let failed = Verdict::NotEvaluable { reason: "it panicked".to_owned() };
        let more = Verdict::Undecided { needs_seeds: Some(20) };
        assert_eq!(judged(&[Verdict::Holds, Verdict::Holds]), Some(Judgement::Met));
        assert_eq!(judged(&[Verdict::Holds, more.clone()]), Some(Judgement::Undecided));
        assert_eq!(judged(&[more, failed.clone()]), Some(Judgement::Failed));
        assert_eq!(judged(&[failed, Verdict::Differs]), Some(Judgement::NotMet));
    }
}
