//! `skyhaul reproduce`.

use crate::args::ReproduceArgs;
use crate::clock::Stopwatch;
use crate::library::{self, Shelf};
use crate::stop::Stop;
use crate::studies::{self, Parquet, Whole};
use crate::text::Grid;
use crate::{cases, clock, interrupt, print, results};
use serde_json::json;
use skyhaul_scenario::Resolved;
use skyhaul_study::StudyError;
use skyhaul_study::batch::run_all;
use skyhaul_study::book::{Book, Chapter, Part};
use skyhaul_study::cache::{Cache, write_atomically};
use skyhaul_study::claim::Verdict;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::model::{Profile, StudyFile};
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::{Plan, plan_profile};
use skyhaul_study::report;
use skyhaul_study::run::{Cells, RunOptions};
use skyhaul_study::runner::CellRunner as _;
use skyhaul_study::table::{Csv, TableWriter};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A study that can run: its paper and itself by number, and its plan.
struct Planned {
    places: Vec<(usize, usize)>,
    plans: Vec<Plan<Resolved>>,
}

pub(crate) fn run(args: &ReproduceArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let profile = if args.quick { Profile::Quick } else { Profile::Full };
    let shelves = match &args.studies {
        Some(dir) => library::folder(dir)?,
        None => library::embedded()?,
    };
    let shelves = library::choose(shelves, &args.names)?;
    let default = if args.quick { "results/reproduce-quick" } else { "results/reproduce" };
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(default));
    // Before the work, not after it.
    prepare(&folder, profile)?;
    let cache = Cache::new(args.cache.clone().unwrap_or_else(Cache::default_dir));
    fs::create_dir_all(cache.dir()).map_err(|e| Stop::write(cache.dir(), &e))?;
    let watch = Stopwatch::start();
    let (planned, mut outcomes) = plan_all(&shelves, profile, args.seeds);
    run_planned(args, &shelves, &planned, &cache, &folder, &mut outcomes)?;
    let book = bind(shelves, outcomes, profile);
    pictures(&book, &folder, renderer);
    write(&book, &folder, watch.elapsed().as_secs_f64())?;
    if args.json {
        print(&format!("{:#}\n", book.summary()))?;
    } else {
        let mut out = shown(&book);
        let _ = writeln!(out, "\nReport:  {}", folder.join("report.html").display());
        print(&out)?;
    }
    ending(&book, args.check)
}

/// Makes the folder for results, or takes the studies of an older reproduction out of it.
fn prepare(folder: &Path, profile: Profile) -> Result<(), Stop> {
    results::prepare(folder)?;
    let old = folder.join("studies");
    for paper in fs::read_dir(&old).into_iter().flatten().flatten() {
        for study in fs::read_dir(paper.path()).into_iter().flatten().flatten() {
            let study = study.path();
            if study.join(results::MANIFEST).is_file() {
                fs::remove_dir_all(&study).map_err(|e| Stop::write(&study, &e))?;
            }
        }
    }
    // With this the folder is known as ours, should the program be killed.
    manifest(folder, profile, None)
}

fn manifest(folder: &Path, profile: Profile, wall_s: Option<f64>) -> Result<(), Stop> {
    let mut manifest = results::manifest("reproduce");
    manifest["kind"] = json!("reproduce");
    manifest["profile"] = json!(profile);
    manifest["complete"] = json!(wall_s.is_some());
    manifest["wall_s"] = json!(wall_s);
    let text = format!("{manifest:#}\n");
    write_atomically(&folder.join(results::MANIFEST), text.as_bytes()).map_err(Stop::from)
}

type Outcomes = Vec<Vec<Option<Result<Evaluation, String>>>>;

/// Plans all studies; those that cannot be planned have their outcome already.
fn plan_all(shelves: &[Shelf], profile: Profile, seeds: Option<u32>) -> (Planned, Outcomes) {
    let mut planned = Planned { places: Vec::new(), plans: Vec::new() };
    let mut outcomes: Outcomes = Vec::new();
    for (s, shelf) in shelves.iter().enumerate() {
        let mut row = Vec::new();
        for (k, (_, file)) in shelf.studies.iter().enumerate() {
            let one = |mut file: StudyFile| {
                if let Some(n) = seeds {
                    file.study.seeds.count = n;
                    if let Some(quick) = &mut file.study.quick {
                        quick.seeds = n;
                    } else if profile == Profile::Quick {
                        file.study.quick =
                            Some(skyhaul_study::model::Quick { seeds: n, ..Default::default() });
                    }
                }
                plan_profile(studies::simulator(), file, profile).map_err(Stop::from)
            };
            match file.clone().and_then(one) {
                Ok(plan) => {
                    planned.places.push((s, k));
                    planned.plans.push(plan);
                    row.push(None);
                }
                Err(stop) => {
                    let why = stop.line();
                    studies::warn(&why);
                    row.push(Some(Err(why)));
                }
            }
        }
        outcomes.push(row);
    }
    (planned, outcomes)
}

fn run_planned(
    args: &ReproduceArgs,
    shelves: &[Shelf],
    planned: &Planned,
    cache: &Cache,
    folder: &Path,
    outcomes: &mut Outcomes,
) -> Result<(), Stop> {
    interrupt::listen();
    let bar = Whole::new();
    let options = RunOptions {
        jobs: cases::jobs(args.jobs),
        cache: Some(cache),
        stop: Some(interrupt::flag()),
        progress: &bar,
    };
    let done = Mutex::new(Vec::new());
    let finished = |i: usize, cells: Cells| -> Result<(), StudyError> {
        let (s, k) = planned.places[i];
        let e = evaluate(&planned.plans[i], &cells)?;
        let folder = folder.join("studies").join(&shelves[s].name).join(&shelves[s].studies[k].0);
        let manifest = results::manifest("study");
        let options =
            OutputOptions { tables: &Parquet, manifest: manifest.as_object(), ..OutputOptions::default() };
        output::write(&e, &folder, &options)?;
        done.lock().expect("no thread panics while it holds the lock").push((s, k, e));
        Ok(())
    };
    let totals = run_all(studies::simulator(), &planned.plans, &options, &finished)?;
    if totals.interrupted {
        return Err(Stop::Interrupted(format!(
            "stopped with {} of {} cells done; they are kept in {}: run the same command again to go on",
            totals.done,
            totals.cells,
            cache.dir().display()
        )));
    }
    for (s, k, e) in done.into_inner().expect("all threads have ended") {
        outcomes[s][k] = Some(Ok(e));
    }
    Ok(())
}

fn bind(shelves: Vec<Shelf>, outcomes: Outcomes, profile: Profile) -> Book {
    let chapter = |(shelf, outcomes): (Shelf, Vec<Option<Result<Evaluation, String>>>)| {
        let part = |((name, _), outcome): ((String, _), Option<Result<Evaluation, String>>)| Part {
            name,
            outcome: outcome.unwrap_or_else(|| Err("it did not run".to_owned())),
        };
        let parts = shelf.studies.into_iter().zip(outcomes).map(part).collect();
        Chapter { name: shelf.name, paper: shelf.paper, parts }
    };
    Book {
        profile,
        version: crate::VERSION.to_owned(),
        engine: studies::simulator().engine(),
        created: clock::now(),
        chapters: shelves.into_iter().zip(outcomes).map(chapter).collect(),
    }
}

/// Draws the figures of all studies, if something can draw.
fn pictures(book: &Book, folder: &Path, renderer: Option<&dyn FigureRenderer>) {
    let command = crate::picture::Command::find();
    let Some(renderer) = renderer.or(command.as_ref().map(|c| c as &dyn FigureRenderer)) else { return };
    for c in &book.chapters {
        for (part, e) in c.parts.iter().filter_map(|p| Some((p, p.outcome.as_ref().ok()?))) {
            studies::pictures(e, &folder.join("studies").join(&c.name).join(&part.name), renderer);
        }
    }
}

fn write(book: &Book, folder: &Path, wall_s: f64) -> Result<(), Stop> {
    let put =
        |name: &str, text: &str| write_atomically(&folder.join(name), text.as_bytes()).map_err(Stop::from);
    put("report.html", &report::all(book))?;
    put("summary.json", &format!("{:#}\n", book.summary()))?;
    let claims = book.claims();
    for writer in [&Csv as &dyn TableWriter, &Parquet] {
        let path = folder.join(format!("claims.{}", writer.extension()));
        writer
            .write(&claims, &path)
            .map_err(|why| Stop::bad(format!("cannot write {}: {why}", path.display())))?;
    }
    // Last: a manifest that says so is that of a complete reproduction.
    manifest(folder, book.profile, Some(wall_s))
}

/// The summary, and every claim that does not hold.
fn shown(book: &Book) -> String {
    let heads =
        ["", "hold", "differ", "undecided", "not evaluated", "not in profile", "unit test", "open", "all"];
    let mut grid = Grid::new(&heads);
    let mut row = |name: &str, t: &skyhaul_study::book::Tally| {
        let c = t.counts;
        let numbers = [
            c.holds,
            c.differs,
            c.undecided,
            c.not_evaluable,
            c.not_in_profile,
            t.elsewhere,
            t.open,
            t.total(),
        ];
        grid.row(std::iter::once(name.to_owned()).chain(numbers.map(|n| n.to_string())).collect());
    };
    for c in &book.chapters {
        row(&c.name, &c.tally());
    }
    row("all", &book.tally());
    let mut out = format!(
        "Profile {} · Skyhaul {} · engine {}\n\n{}",
        book.profile.word(),
        book.version,
        book.engine,
        grid.lines(1)
    );
    for c in &book.chapters {
        for (part, e) in c.parts.iter().filter_map(|p| Some((p, p.outcome.as_ref().ok()?))) {
            for claim in &e.claims {
                if matches!(claim.verdict(), Verdict::Holds | Verdict::NotInProfile) {
                    continue;
                }
                let (id, verdict) = (&claim.id, claim.verdict().word());
                let _ = write!(out, "\n{}/{}  {id}  {verdict}: {}", c.name, part.name, claim.says);
            }
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn ending(book: &Book, check: bool) -> Result<(), Stop> {
    if let Some((study, why)) = book.refused().first() {
        let n = book.refused().len();
        return Err(Stop::Bad(format!("{n} studies could not be run; the first, {study}: {why}")));
    }
    if book.failed_cells() > 0 {
        return Err(Stop::Bad(format!("{} cells failed; the report names them", book.failed_cells())));
    }
    if check { super::study::judge(book.tally().counts) } else { Ok(()) }
}
