//! The studies to reproduce: the built-in ones, or those of a folder, by paper.

use crate::error::LabError;
use crate::studies::{EVALUATION, PAPERS, STUDIES};
use skyhaul_study::StudyError;
use skyhaul_study::model::{Paper, StudyFile};
use std::fs;
use std::path::{Path, PathBuf};

/// The studies of a paper.
#[derive(Debug)]
pub struct PaperStudies {
    /// Name of the folder.
    pub name: String,
    /// The paper or subject.
    pub paper: Paper,
    /// Names of the studies with their files, or the reason why a file cannot be read; in the order of the paper.
    pub studies: Vec<(String, Result<StudyFile, StudyError>)>,
}

/// The built-in studies.
///
/// # Errors
/// None: the tests read all of them.
pub fn embedded() -> Result<Vec<PaperStudies>, LabError> {
    let mut papers: Vec<PaperStudies> = Vec::new();
    for (name, text) in STUDIES {
        let (paper, study) = name.split_once('/').unwrap_or(("", name));
        let file = StudyFile::parse(text, &PathBuf::from(format!("{name}.toml")));
        let entry = (study.to_owned(), file);
        match papers.last_mut().filter(|s| s.name == paper) {
            Some(paper_studies) => paper_studies.studies.push(entry),
            None => {
                let known = PAPERS.iter().find(|(p, _)| *p == paper);
                let read = |(_, text): &(&str, &str)| Paper::parse(text, &Path::new(paper).join(Paper::FILE));
                let about = known.map(read).transpose()?.unwrap_or_else(|| untitled(paper));
                papers.push(PaperStudies { name: paper.to_owned(), paper: about, studies: vec![entry] });
            }
        }
    }
    papers.iter_mut().for_each(PaperStudies::sort);
    Ok(in_order(papers))
}

/// The built-in cases of an evaluation.
///
/// # Errors
/// None: the tests read all of them.
pub fn evaluation() -> Result<PaperStudies, LabError> {
    let path = |stem: &str| PathBuf::from(format!("evaluation/{stem}.toml"));
    let (mut about, mut studies) = (None, Vec::new());
    for (stem, text) in EVALUATION {
        if path(stem).ends_with(Paper::FILE) {
            about = Some(Paper::parse(text, &path(stem))?);
        } else {
            studies.push(((*stem).to_owned(), StudyFile::parse(text, &path(stem))));
        }
    }
    Ok(PaperStudies::new("evaluation".to_owned(), about, studies))
}

/// The studies of a folder: of its subfolders, one per paper, or, if it holds studies itself, its own.
///
/// # Errors
/// If it cannot be read or holds no studies.
pub fn folder(dir: &Path) -> Result<Vec<PaperStudies>, LabError> {
    let entries = |dir: &Path| -> Result<Vec<PathBuf>, LabError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(dir).map_err(LabError::read(dir))? {
            all.push(entry.map_err(LabError::read(dir))?.path());
        }
        all.sort();
        Ok(all)
    };
    let paper_studies = |dir: &Path| -> Result<Option<PaperStudies>, LabError> {
        let files = entries(dir)?;
        let files = files.iter().filter(|p| p.is_file() && p.extension().is_some_and(|e| e == "toml"));
        let (papers, studies): (Vec<&PathBuf>, Vec<&PathBuf>) = files.partition(|p| p.ends_with(Paper::FILE));
        let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let about = papers.first().map(|p| Paper::read(p)).transpose()?;
        let study = |p: &&PathBuf| {
            let name = p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name, StudyFile::read(p))
        };
        let studies: Vec<_> = studies.iter().map(study).collect();
        if studies.is_empty() && about.is_none() {
            return Ok(None);
        }
        Ok(Some(PaperStudies::new(name, about, studies)))
    };
    if let Some(own) = paper_studies(dir)? {
        return Ok(vec![own]);
    }
    let mut papers = Vec::new();
    for sub in entries(dir)?.iter().filter(|p| p.is_dir()) {
        papers.extend(paper_studies(sub)?);
    }
    if papers.is_empty() {
        return Err(LabError::NoStudies { folder: dir.to_owned() });
    }
    Ok(in_order(papers))
}

/// Orders publications before other subjects, each by name.
fn in_order(mut papers: Vec<PaperStudies>) -> Vec<PaperStudies> {
    papers.sort_by_key(|s| (s.paper.published.is_none(), s.name.clone()));
    papers
}

/// A paper without `paper.toml`, titled by its folder.
fn untitled(name: &str) -> Paper {
    Paper { schema: 1, title: name.to_owned(), ..Paper::default() }
}

impl PaperStudies {
    fn new(
        name: String,
        paper: Option<Paper>,
        studies: Vec<(String, Result<StudyFile, StudyError>)>,
    ) -> Self {
        let mut paper_studies = Self { paper: paper.unwrap_or_else(|| untitled(&name)), name, studies };
        paper_studies.sort();
        paper_studies
    }

    fn sort(&mut self) {
        let paper = &self.paper;
        self.studies.sort_by(|(a, _), (b, _)| (paper.place(a), a).cmp(&(paper.place(b), b)));
    }
}

/// Keeps only the named papers and studies (`PAPER` or `PAPER/STUDY`), or all without names. Statements outside the
/// studies are kept only with whole papers.
///
/// # Errors
/// If a name is not known.
pub fn choose(papers: Vec<PaperStudies>, names: &[String]) -> Result<Vec<PaperStudies>, LabError> {
    if names.is_empty() {
        return Ok(papers);
    }
    let plain = |n: &String| {
        n.trim_end_matches('/').trim_end_matches(".toml").trim_start_matches("studies/").to_owned()
    };
    let names: Vec<String> = names.iter().map(plain).collect();
    let study = |s: &PaperStudies, name: &str| format!("{}/{name}", s.name);
    for name in &names {
        let known = |s: &PaperStudies| s.name == *name || s.studies.iter().any(|(n, _)| study(s, n) == *name);
        if !papers.iter().any(known) {
            let near = papers.iter().find(|s| name.starts_with(&format!("{}/", s.name)));
            let known: Vec<String> = match near {
                Some(s) => s.studies.iter().map(|(n, _)| study(s, n)).collect(),
                None => papers.iter().map(|s| s.name.clone()).collect(),
            };
            let what = if near.is_some() { "study" } else { "paper" };
            return Err(LabError::NoSuch { name: name.clone(), what, known: known.join(", ") });
        }
    }
    let mut chosen = Vec::new();
    for mut paper_studies in papers {
        if !names.contains(&paper_studies.name) {
            let paper = paper_studies.name.clone();
            paper_studies.studies.retain(|(n, _)| names.contains(&format!("{paper}/{n}")));
            paper_studies.paper.elsewhere.clear();
            paper_studies.paper.open.clear();
        }
        if !paper_studies.studies.is_empty() || names.contains(&paper_studies.name) {
            chosen.push(paper_studies);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::simulator;
    use skyhaul_study::model::Profile;
    use skyhaul_study::plan::plan_profile;

    fn names(papers: &[PaperStudies]) -> Vec<String> {
        let of =
            |s: &PaperStudies| s.studies.iter().map(|(n, _)| format!("{}/{n}", s.name)).collect::<Vec<_>>();
        papers.iter().flat_map(of).collect()
    }

    #[test]
    fn the_program_and_the_repository_have_the_same_studies() {
        let inside = embedded().expect("sound");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        assert_eq!(names(&inside), names(&folder(&root).expect("studies")));
        let peach = inside.iter().find(|s| s.name == "peach-2001").expect("a paper");
        assert_eq!(peach.studies[0].0, "table1", "the order of the paper");
    }

    #[test]
    fn the_cases_of_an_evaluation_can_be_planned_and_answer_its_requirements() {
        let mut inside = evaluation().expect("sound");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluation");
        let outside = folder(&root).expect("cases");
        assert_eq!(names(std::slice::from_ref(&inside)), names(&outside));
        let mut ids = Vec::new();
        for (name, file) in &mut inside.studies {
            let file = file.as_mut().unwrap_or_else(|e| panic!("{e}"));
            assert!(
                file.test_control(&toml::Value::String("newreno".to_owned())) > 0,
                "{name} names no candidate"
            );
            for profile in [Profile::Full, Profile::Quick] {
                let plan = plan_profile(simulator(), file.clone(), profile).unwrap_or_else(|e| panic!("{e}"));
                assert!(
                    plan.only.iter().all(Option::is_none),
                    "{name}: a quick profile that leaves claims out"
                );
            }
            ids.extend(file.study.claim.iter().map(|c| c.id.clone()));
        }
        ids.extend(inside.paper.open.iter().map(|o| o.id.clone()));
        for row in &inside.paper.row {
            assert!(ids.iter().any(|id| row.is_named_by(id)), "nothing answers §{}", row.id);
        }
        for id in &ids {
            assert!(inside.paper.row.iter().any(|row| row.is_named_by(id)), "{id} answers nothing");
        }
        for case in &inside.paper.order {
            assert!(inside.studies.iter().any(|(name, _)| name == case), "there is no case {case}");
        }
    }

    #[test]
    fn names_choose_papers_and_studies() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            choose(embedded().expect("sound"), &names)
        };
        let two = chosen(&["peach-2001/fig11", "geo-today"]).expect("known");
        assert_eq!(names(&two), ["peach-2001/fig11", "geo-today/alone", "geo-today/harm"]);
        assert_eq!(names(&chosen(&["studies/peach-2001/fig03.toml"]).expect("known")), ["peach-2001/fig03"]);
        let line = |names: &[&str]| format!("{:?}", chosen(names).expect_err("unknown"));
        assert!(line(&["peach-2001/fig99"]).contains("peach-2001/fig11"), "{}", line(&["peach-2001/fig99"]));
        assert!(line(&["luigi"]).contains("geo-today"));
    }
}
