//! A reproduction: all studies, or those that are named, and one report over them. The command and the Python package
//! share this code; they differ in how cells run.

use crate::clock::{self, Stopwatch};
use crate::engine::simulator;
use crate::error::LabError;
use crate::lease::Lease;
use crate::library::{self, PaperStudies};
use crate::parquet::Parquet;
use crate::studies;
use crate::text::Grid;
use crate::{picture, results};
use serde_json::json;
use skyhaul_study::StudyError;
use skyhaul_study::batch::{Totals, run_all};
use skyhaul_study::book::{Book, Chapter, Entry, Refused};
use skyhaul_study::cache::Cache;
use skyhaul_study::claim::Verdict;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::model::{Paper, Profile, Quick, StudyFile};
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::{Plan, plan_profile};
use skyhaul_study::report;
use skyhaul_study::run::{Cells, RunOptions};
use skyhaul_study::runner::CellRunner;
use skyhaul_study::table::{Csv, TableWriter};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What to reproduce, and where the report goes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Papers and studies; all if empty.
    pub names: Vec<String>,
    /// Fewer seeds and shorter runs, as each study says.
    pub quick: bool,
    /// Studies of this folder instead of the built-in ones.
    pub studies: Option<PathBuf>,
    /// Number of seeds, instead of each study's.
    pub seeds: Option<u32>,
    /// Largest number of cells per study, instead of each study's limit.
    pub max_cells: Option<u64>,
    /// The folder; by default `results/reproduce` or `results/reproduce-quick`.
    pub out: Option<PathBuf>,
}

/// A reproduction in progress.
#[derive(Debug)]
pub struct Reproduction {
    /// The command, `reproduce` or `evaluate`, for the manifest.
    kind: &'static str,
    profile: Profile,
    folder: PathBuf,
    /// The lock of the folder.
    lease: Lease,
    papers: Vec<Planned>,
    /// For each of `plans`, the index of its paper and of the study within the paper.
    places: Vec<(usize, usize)>,
    plans: Vec<Plan>,
    /// The outcomes so far, by paper and study.
    outcomes: Mutex<Outcomes>,
    stopwatch: Stopwatch,
}

/// A paper whose studies are planned.
#[derive(Debug)]
struct Planned {
    name: String,
    paper: Paper,
    /// Names of its studies.
    studies: Vec<String>,
}

type Outcomes = Vec<Vec<Option<Result<Evaluation, Refused>>>>;

impl Reproduction {
    /// Reads and plans the studies and creates the folder. Studies that cannot be read or planned are reported with
    /// `warn`, and listed in the report.
    ///
    /// # Errors
    /// Unknown names, a folder without studies, or an unsuitable results folder.
    pub fn begin(request: &Request, warn: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        let profile = if request.quick { Profile::Quick } else { Profile::Full };
        if request.seeds == Some(0) {
            return Err(LabError::NoSeeds);
        }
        let papers = match &request.studies {
            Some(dir) => library::folder(dir)?,
            None => library::embedded()?,
        };
        let papers = library::choose(papers, &request.names)?;
        let default = if request.quick { "results/reproduce-quick" } else { "results/reproduce" };
        let folder = request.out.clone().unwrap_or_else(|| PathBuf::from(default));
        let extent = Extent { profile, seeds: request.seeds, max_cells: request.max_cells };
        Self::start("reproduce", papers, folder, extent, simulator(), warn)
    }

    /// Plans studies and creates the folder; `kind` is the command, for the manifest.
    ///
    /// # Errors
    /// An unsuitable results folder.
    pub(crate) fn start<R: CellRunner>(
        kind: &'static str,
        opened: Vec<PaperStudies>,
        folder: PathBuf,
        extent: Extent,
        runner: &R,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        // An unsuitable results folder is refused before the runs, not after them.
        let lease = Lease::take(&folder)?;
        prepare(&folder, kind, extent.profile)?;
        let stopwatch = Stopwatch::start();
        let (mut places, mut plans, mut outcomes) = (Vec::new(), Vec::new(), Outcomes::new());
        let mut papers = Vec::new();
        for (p, PaperStudies { name, paper, studies: files }) in opened.into_iter().enumerate() {
            let (mut row, mut studies) = (Vec::new(), Vec::new());
            for (s, (study, file)) in files.into_iter().enumerate() {
                studies.push(study);
                match file.and_then(|file| planned(runner, file, extent)) {
                    Ok(plan) => {
                        places.push((p, s));
                        plans.push(plan);
                        row.push(None);
                    }
                    Err(e) => {
                        let line = e.to_string();
                        warn(&line);
                        row.push(Some(Err(Refused { line })));
                    }
                }
            }
            papers.push(Planned { name, paper, studies });
            outcomes.push(row);
        }
        Ok(Self {
            kind,
            profile: extent.profile,
            folder,
            lease,
            papers,
            places,
            plans,
            outcomes: Mutex::new(outcomes),
            stopwatch,
        })
    }

    /// The studies that can run.
    #[must_use]
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// `paper/study` of a plan.
    ///
    /// # Panics
    /// If there is no plan of this number.
    #[must_use]
    pub fn name(&self, plan: usize) -> String {
        let (p, s) = self.places[plan];
        format!("{}/{}", self.papers[p].name, self.papers[p].studies[s])
    }

    /// The papers, with the names of their studies.
    pub(crate) fn papers(&self) -> impl Iterator<Item = (&Paper, &[String])> {
        self.papers.iter().map(|p| (&p.paper, p.studies.as_slice()))
    }

    /// The folder of the report.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates a study whose cells have run, and writes its results directory.
    ///
    /// # Errors
    /// The file that cannot be written.
    pub fn finish_study(&self, plan: usize, cells: &Cells) -> Result<(), StudyError> {
        let (p, s) = self.places[plan];
        let e = evaluate(&self.plans[plan], cells)?;
        let folder = self.folder.join("studies").join(self.name(plan));
        let manifest = results::manifest("study");
        let options =
            OutputOptions { tables: &Parquet, manifest: manifest.as_object(), ..OutputOptions::default() };
        output::write(&e, &folder, &options)?;
        self.outcomes()[p][s] = Some(Ok(e));
        Ok(())
    }

    /// Runs all cells in this process.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<Totals, StudyError> {
        self.run_on(simulator(), options)
    }

    /// Runs all cells with the runner that the studies were planned for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn run_on<R: CellRunner>(
        &self,
        runner: &R,
        options: &RunOptions<'_>,
    ) -> Result<Totals, StudyError> {
        let finished = |i: usize, cells: Cells| self.finish_study(i, &cells);
        run_all(runner, &self.plans, options, &finished)
    }

    /// Renders the figures with `renderer`, or else with `vl-convert` if it is installed, and writes the report over all
    /// studies. Figures that cannot be rendered are reported with `warn`.
    ///
    /// # Errors
    /// The file that cannot be written.
    pub fn report(
        self,
        renderer: Option<&dyn FigureRenderer>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Book, LabError> {
        let bound = self.bind(renderer, warn);
        write(&bound)?;
        Ok(bound.book)
    }

    /// Gathers the results, and renders the figures as [`Reproduction::report`] does.
    pub(crate) fn bind(self, renderer: Option<&dyn FigureRenderer>, warn: &mut dyn FnMut(&str)) -> Bound {
        let outcomes = self.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let book = bind(self.papers, outcomes, self.profile);
        pictures(&book, &self.folder, renderer, warn);
        let wall_s = self.stopwatch.elapsed().as_secs_f64();
        Bound { kind: self.kind, book, folder: self.folder, wall_s, _lease: self.lease }
    }
}

/// How much of each study runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The profile.
    pub(crate) profile: Profile,
    /// Number of seeds, instead of each study's.
    pub(crate) seeds: Option<u32>,
    /// Largest number of cells per study, instead of each study's limit.
    pub(crate) max_cells: Option<u64>,
}

/// The results of all studies, and the folder for the report, still locked.
#[derive(Debug)]
pub(crate) struct Bound {
    kind: &'static str,
    pub(crate) book: Book,
    pub(crate) folder: PathBuf,
    wall_s: f64,
    _lease: Lease,
}

impl Bound {
    /// Writes the manifest that declares the results complete; it is the last file written.
    pub(crate) fn complete(&self) -> Result<(), LabError> {
        manifest(&self.folder, self.kind, self.book.profile, Some(self.wall_s))
    }
}

/// The given cache, or the default cache of the command; created if necessary.
///
/// # Errors
/// If it cannot be created.
pub fn cache(dir: Option<PathBuf>) -> Result<Cache, LabError> {
    let cache = Cache::new(dir.unwrap_or_else(Cache::default_dir));
    fs::create_dir_all(cache.dir()).map_err(LabError::write(cache.dir()))?;
    Ok(cache)
}

/// Removes the studies of an older reproduction from the folder.
fn prepare(folder: &Path, kind: &str, profile: Profile) -> Result<(), LabError> {
    let old = folder.join("studies");
    for paper in fs::read_dir(&old).into_iter().flatten().flatten() {
        for study in fs::read_dir(paper.path()).into_iter().flatten().flatten() {
            let study = study.path();
            if study.join(results::MANIFEST).is_file() {
                fs::remove_dir_all(&study).map_err(LabError::write(&study))?;
            }
        }
    }
    // The manifest marks the folder as a results folder even if the program is killed.
    manifest(folder, kind, profile, None)
}

fn manifest(folder: &Path, kind: &str, profile: Profile, wall_s: Option<f64>) -> Result<(), LabError> {
    let mut manifest = results::manifest(kind);
    manifest["kind"] = json!(kind);
    manifest["profile"] = json!(profile);
    manifest["complete"] = json!(wall_s.is_some());
    manifest["wall_s"] = json!(wall_s);
    results::json_file(&folder.join(results::MANIFEST), &manifest)
}

fn planned<R: CellRunner>(runner: &R, mut file: StudyFile, extent: Extent) -> Result<Plan, StudyError> {
    file.max_cells = extent.max_cells;
    if let Some(n) = extent.seeds {
        file.study.seeds.count = n;
        if let Some(quick) = &mut file.study.quick {
            quick.seeds = n;
        } else if extent.profile == Profile::Quick {
            file.study.quick = Some(Quick { seeds: n, ..Default::default() });
        }
    }
    plan_profile(runner, file, extent.profile)
}

fn bind(papers: Vec<Planned>, outcomes: Outcomes, profile: Profile) -> Book {
    let chapter = |(of, outcomes): (Planned, Vec<Option<Result<Evaluation, Refused>>>)| {
        let entry = |(name, outcome): (String, Option<Result<Evaluation, Refused>>)| Entry {
            name,
            outcome: outcome.unwrap_or_else(|| Err(Refused { line: "it did not run".to_owned() })),
        };
        let entries = of.studies.into_iter().zip(outcomes).map(entry).collect();
        Chapter { name: of.name, paper: of.paper, entries }
    };
    Book {
        profile,
        version: crate::VERSION.to_owned(),
        engine: simulator().engine(),
        created: clock::now(),
        chapters: papers.into_iter().zip(outcomes).map(chapter).collect(),
    }
}

/// Renders the figures of all studies with `renderer`, or else with `vl-convert` if it is installed.
fn pictures(book: &Book, folder: &Path, renderer: Option<&dyn FigureRenderer>, warn: &mut dyn FnMut(&str)) {
    let command = picture::Command::find();
    let Some(renderer) = renderer.or(command.as_ref().map(|c| c as &dyn FigureRenderer)) else { return };
    for c in &book.chapters {
        for (entry, e) in c.entries.iter().filter_map(|p| Some((p, p.outcome.as_ref().ok()?))) {
            studies::pictures(e, &folder.join("studies").join(&c.name).join(&entry.name), renderer, warn);
        }
    }
}

fn write(bound: &Bound) -> Result<(), LabError> {
    let Bound { book, folder, .. } = bound;
    results::text(&folder.join("report.html"), &report::all(book))?;
    results::json_file(&folder.join("summary.json"), &book.summary())?;
    let claims = book.claims();
    for writer in [&Csv as &dyn TableWriter, &Parquet] {
        let path = folder.join(format!("claims.{}", writer.extension()));
        writer.write(&claims, &path).map_err(LabError::write(&path))?;
    }
    bound.complete()
}

/// The table of counts, and every claim that the profile evaluates and that does not hold.
#[must_use]
pub fn shown(book: &Book) -> String {
    let heads = [
        "",
        "hold",
        "differ",
        "undecided",
        "not evaluated",
        "not in profile",
        "not counted",
        "unit test",
        "open",
        "all",
    ];
    let mut grid = Grid::new(&heads);
    for line in book.lines() {
        let c = line.counts;
        let verdicts = [c.holds, c.differs, c.undecided, c.not_evaluable, c.not_in_profile];
        let rest = line.tally.map(|t| [t.not_counted.total(), t.elsewhere, t.open, t.total()]);
        let rest = rest.map_or_else(|| [const { String::new() }; 4], |r| r.map(|n| n.to_string()));
        let numbers = verdicts.map(|n| n.to_string());
        grid.row(std::iter::once(line.of.name()).chain(numbers).chain(rest).collect());
    }
    let mut out = format!(
        "Profile {} · Skyhaul {} · engine {}\n\n{}",
        book.profile.word(),
        book.version,
        book.engine,
        grid.lines(1)
    );
    for c in &book.chapters {
        for (entry, e) in c.entries.iter().filter_map(|p| Some((p, p.outcome.as_ref().ok()?))) {
            for claim in &e.claims {
                if matches!(claim.verdict(), Verdict::Holds | Verdict::NotInProfile) {
                    continue;
                }
                let (id, verdict) = (&claim.id, claim.verdict().word());
                let _ = write!(out, "\n{}/{}  {id}  {verdict}: {}", c.name, entry.name, claim.says);
            }
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}
