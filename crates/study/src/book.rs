//! The results of a set of studies, by paper: the content of one report.

use crate::claim::{ClaimResult, DecidingQuantity, Outcome};
use crate::evaluation::{Counts, Evaluation};
use crate::model::{Paper, Profile, Standing};
use crate::table::{Column, Table};
use serde_json::{Value, json};

/// All studies that ran together.
#[derive(Clone, Debug)]
pub struct Book {
    /// How much of each study ran.
    pub profile: Profile,
    /// Version of this software.
    pub version: String,
    /// Version and fingerprint of the engine.
    pub engine: String,
    /// Date, for readers; nothing else in a book depends on it.
    pub created: String,
    /// The papers, in order.
    pub chapters: Vec<Chapter>,
}

/// The studies of a folder.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Name of the folder.
    pub name: String,
    /// The paper or subject.
    pub paper: Paper,
    /// Its studies, in the order of the paper.
    pub entries: Vec<Entry>,
}

/// A study, or why it could not be run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the file, without extension.
    pub name: String,
    /// The results; `Err`: why it could not be run.
    pub outcome: Result<Evaluation, Refused>,
}

/// Why a study could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Refused {
    /// The reason, in one line.
    pub line: String,
}

/// The outcomes of the claims of several studies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Findings of the source.
    pub source: Counts,
    /// Findings of this project: marked as its own, or in a folder that is no publication.
    pub own: Counts,
    /// Premises, arithmetic, what holds by construction, and claims that repeat another one.
    pub not_counted: Counts,
    /// Number of statements that a unit test proves.
    pub elsewhere: usize,
    /// Number of statements that are not reproduced.
    pub open: usize,
}

impl Tally {
    /// Number of claims, with the statements that a unit test proves and those that are not reproduced.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.claims().total() + self.elsewhere + self.open
    }

    /// The verdicts of all claims, including those that the totals do not count.
    #[must_use]
    pub const fn claims(&self) -> Counts {
        self.source.add(self.own).add(self.not_counted)
    }

    const fn add(self, other: Self) -> Self {
        Self {
            source: self.source.add(other.source),
            own: self.own.add(other.own),
            not_counted: self.not_counted.add(other.not_counted),
            elsewhere: self.elsewhere + other.elsewhere,
            open: self.open + other.open,
        }
    }

    fn json(&self) -> Value {
        let mut value = json!(self.source.add(self.own));
        value["aside"] = json!(self.not_counted.total());
        value["elsewhere"] = json!(self.elsewhere);
        value["open"] = json!(self.open);
        value["total"] = json!(self.total());
        value
    }
}

/// A line of a table of verdicts.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The folder or the total that the line counts.
    pub of: LineOf<'a>,
    /// The verdicts on its findings.
    pub counts: Counts,
    /// All outcomes, including those that `counts` leaves out; only in the lines of a folder and of everything.
    pub tally: Option<Tally>,
}

/// What a line of a table of verdicts is about.
#[derive(Clone, Copy, Debug)]
pub enum LineOf<'a> {
    /// A folder: the findings of its source, or those of this project if the folder is no publication.
    Chapter(&'a Chapter),
    /// Findings of this project in the folder of a publication.
    OwnIn(&'a Chapter),
    /// All findings of publications.
    Sources,
    /// All findings of this project.
    Own,
    /// Everything.
    All,
}

impl LineOf<'_> {
    /// A name for plain text.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Chapter(c) => c.name.clone(),
            Self::OwnIn(c) => format!("{}, our own", c.name),
            Self::Sources => "all publications".to_owned(),
            Self::Own => "all our own".to_owned(),
            Self::All => "all".to_owned(),
        }
    }
}

impl Chapter {
    /// The studies that ran.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        self.entries.iter().filter_map(|p| p.outcome.as_ref().ok())
    }

    /// The outcomes of its claims.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let sum = |which: &dyn Fn(&ClaimResult) -> bool| {
            self.evaluations().map(|e| e.counts_of(which)).fold(Counts::default(), Counts::add)
        };
        let own = |c: &ClaimResult| c.standing == Standing::Own || self.paper.published.is_none();
        Tally {
            source: sum(&|c| c.counts() && !own(c)),
            own: sum(&|c| c.counts() && own(c)),
            not_counted: sum(&|c| !c.counts()),
            elsewhere: self.paper.elsewhere.len(),
            open: self.paper.open.len(),
        }
    }
}

impl Book {
    /// The studies that ran, of all chapters.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        self.chapters.iter().flat_map(Chapter::evaluations)
    }

    /// Number of cells of all studies that ran.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.evaluations().map(|e| e.provenance.cells).sum()
    }

    /// The outcomes of all claims.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.chapters.iter().map(Chapter::tally).fold(Tally::default(), Tally::add)
    }

    /// The lines of a table of verdicts: one for each folder, with the findings of its source; the findings of this project in
    /// the folder of a publication have a separate line. Then the sums of all publications, of all findings of this project,
    /// and of everything.
    #[must_use]
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for c in &self.chapters {
            let tally = c.tally();
            let mut counts = tally.source;
            if c.paper.published.is_none() {
                counts = tally.own;
            }
            lines.push(Line { of: LineOf::Chapter(c), counts, tally: Some(tally) });
            if c.paper.published.is_some() && tally.own.total() > 0 {
                lines.push(Line { of: LineOf::OwnIn(c), counts: tally.own, tally: None });
            }
        }
        let all = self.tally();
        lines.push(Line { of: LineOf::Sources, counts: all.source, tally: None });
        lines.push(Line { of: LineOf::Own, counts: all.own, tally: None });
        lines.push(Line { of: LineOf::All, counts: all.source.add(all.own), tally: Some(all) });
        lines
    }

    /// Studies that could not be run, as `paper/study` and why.
    #[must_use]
    pub fn refused(&self) -> Vec<(String, String)> {
        let of = |c: &Chapter| {
            let name = c.name.clone();
            let one =
                move |p: &Entry| Some((format!("{name}/{}", p.name), p.outcome.as_ref().err()?.line.clone()));
            c.entries.iter().filter_map(one).collect::<Vec<_>>()
        };
        self.chapters.iter().flat_map(of).collect()
    }

    /// Number of cells that failed.
    #[must_use]
    pub fn failed_cells(&self) -> usize {
        self.evaluations().map(|e| e.failed.len()).sum()
    }

    /// The smallest and the largest number of seeds of a study.
    #[must_use]
    pub fn seeds(&self) -> Option<(u32, u32)> {
        let counts = || self.evaluations().map(|e| e.provenance.seeds);
        counts().min().zip(counts().max())
    }

    /// The content of `summary.json`: the verdicts of every study.
    #[must_use]
    pub fn summary(&self) -> Value {
        let study = |p: &Entry| match &p.outcome {
            Ok(e) => json!({
                "name": p.name,
                "title": e.title,
                "source": e.source,
                "provenance": e.provenance,
                "counts": e.counted(),
                "aside": e.not_counted(),
                "failed_cells": e.failed,
                "claims": e.claims,
            }),
            Err(why) => json!({ "name": p.name, "error": why.line }),
        };
        let chapter = |c: &Chapter| {
            json!({
                "name": c.name,
                "title": c.paper.title,
                "counts": c.tally().json(),
                "own": c.tally().own,
                "studies": c.entries.iter().map(study).collect::<Vec<_>>(),
                "elsewhere": c.paper.elsewhere,
                "open": c.paper.open,
            })
        };
        json!({
            "kind": "reproduce",
            "version": self.version,
            "engine": self.engine,
            "profile": self.profile,
            "counts": self.tally().json(),
            "own": self.tally().own,
            "failed_cells": self.failed_cells(),
            "papers": self.chapters.iter().map(chapter).collect::<Vec<_>>(),
        })
    }

    /// One row per claim and reading; claims proved by a unit test and open claims have one row each.
    #[must_use]
    pub fn claims(&self) -> Table {
        let names = [
            "paper", "study", "claim", "kind", "standing", "repeats", "where", "says", "stated", "reading",
            "ours", "verdict", "detail", "profile", "seeds", "version", "engine",
        ];
        let mut rows: Vec<[String; 17]> = Vec::new();
        // The quantity that decided each row; `None` for a claim with several cases, which has no single one.
        let mut decided: Vec<Option<DecidingQuantity>> = Vec::new();
        let (version, engine) = (self.version.clone(), self.engine.clone());
        let profile = self.profile.word().to_owned();
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        for c in &self.chapters {
            for (name, e) in c.entries.iter().filter_map(|p| Some((&p.name, p.outcome.as_ref().ok()?))) {
                let seeds = e.provenance.seeds.to_string();
                for claim in &e.claims {
                    let row = |o: &Outcome| {
                        [
                            c.name.clone(),
                            name.clone(),
                            claim.id.clone(),
                            claim.kind.word().to_owned(),
                            claim.standing.word().to_owned(),
                            text(&claim.repeats),
                            text(&claim.place),
                            claim.says.clone(),
                            text(&claim.paper),
                            o.reading.clone(),
                            o.ours.clone(),
                            o.verdict.word().to_owned(),
                            o.verdict.detail(),
                            profile.clone(),
                            seeds.clone(),
                            version.clone(),
                            engine.clone(),
                        ]
                    };
                    rows.extend(claim.outcomes.iter().map(row));
                    decided.extend(claim.outcomes.iter().map(|o| match &o.cases[..] {
                        [one] => one.decided,
                        _ => None,
                    }));
                }
            }
            let other = |id: &str, place: String, says: &str, stated: String, verdict: &str, detail: &str| {
                let empty = String::new;
                let (id, says, verdict) = (id.to_owned(), says.to_owned(), verdict.to_owned());
                let (version, engine) = (version.clone(), engine.clone());
                [
                    c.name.clone(),
                    empty(),
                    id,
                    empty(),
                    empty(),
                    empty(),
                    place,
                    says,
                    stated,
                    empty(),
                    empty(),
                    verdict,
                    detail.to_owned(),
                    profile.clone(),
                    empty(),
                    version,
                    engine,
                ]
            };
            for o in &c.paper.elsewhere {
                rows.push(other(&o.id, text(&o.place), &o.says, text(&o.paper), "unit test", &o.test));
            }
            for o in &c.paper.open {
                rows.push(other(&o.id, text(&o.place), &o.says, text(&o.paper), "open", &o.why));
            }
            decided.resize(rows.len(), None);
        }
        let column = |i: usize| Column::text(rows.iter().map(|r| r[i].as_str()));
        let mut columns: Vec<(String, Column)> =
            names.iter().enumerate().map(|(i, n)| ((*n).to_owned(), column(i))).collect();
        let quantity = decided.iter().map(|d| d.map_or_else(String::new, |d| d.quantity.to_owned()));
        columns.push(("quantity".to_owned(), Column::text(quantity)));
        type Part = fn(DecidingQuantity) -> Option<f64>;
        let all: [(&str, Part); 5] = [
            ("mean", |d| d.mean),
            ("ci95", |d| d.ci95),
            ("median", |d| d.median),
            ("median_low", |d| d.low),
            ("median_high", |d| d.high),
        ];
        for (name, of) in all {
            let value = |d: &Option<DecidingQuantity>| d.and_then(of).unwrap_or(f64::NAN);
            columns.push((name.to_owned(), Column::real(decided.iter().map(value).collect())));
        }
        Table::new(columns)
    }
}
