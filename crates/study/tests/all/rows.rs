//! Every statement of the papers that can be checked is answered: by claims of a study, a named test, or an open entry
//! with its reason. The ends of `docs/papers/*.md` are written from these answers; `UPDATE=1` writes them.

use skyhaul_study::model::{Paper, Statement, StudyFile};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How many statements each section of the list of statements has at least: five papers, and what all of them say in
/// words about paths, boxes and mechanisms.
const SECTIONS: [usize; 6] = [74, 32, 42, 86, 36, 34];

/// A folder of studies: its `paper.toml`, and the ids of each study's claims in the order of the report.
struct Folder {
    name: String,
    paper: Paper,
    studies: Vec<(String, Vec<String>)>,
}

impl Folder {
    fn read(dir: &Path) -> Self {
        let paper = Paper::read(&dir.join(Paper::FILE)).unwrap_or_else(|e| panic!("{e}"));
        let mut studies = Vec::new();
        for path in std::fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path()) {
            if path.extension().is_some_and(|e| e == "toml") && !path.ends_with(Paper::FILE) {
                let file = StudyFile::read(&path).unwrap_or_else(|e| panic!("{e}"));
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                studies.push((name, file.study.claim.into_iter().map(|c| c.id).collect()));
            }
        }
        studies.sort_by_key(|(name, _)| (paper.place(name), name.clone()));
        Self { name: dir.file_name().expect("a name").to_string_lossy().into_owned(), paper, studies }
    }

    /// All ids: of claims, of statements that a test proves, and of open ones.
    fn ids(&self) -> Vec<&String> {
        let claims = self.studies.iter().flat_map(|(_, ids)| ids);
        let rest = self.paper.elsewhere.iter().map(|e| &e.id).chain(self.paper.open.iter().map(|o| &o.id));
        claims.chain(rest).collect()
    }

    /// True of a subject of our own: its claims may answer statements of any paper.
    fn is_own(&self) -> bool {
        self.paper.row.is_empty()
    }

    /// The studies whose claims answer a statement.
    fn claims(&self, row: &Statement) -> impl Iterator<Item = &str> {
        let answers = |ids: &[String]| ids.iter().any(|id| row.is_named_by(id));
        self.studies.iter().filter(move |(_, ids)| answers(ids)).map(|(study, _)| study.as_str())
    }

    /// What answers a statement, in words; empty if nothing does. `all` are the folders there are.
    fn answers(&self, row: &Statement, all: &[Self]) -> Vec<String> {
        let mut found: Vec<String> = self.claims(row).map(|study| format!("`{study}`")).collect();
        for own in all.iter().filter(|f| f.is_own()) {
            found.extend(own.claims(row).map(|study| format!("`{}/{study}`", own.name)));
        }
        for e in self.paper.elsewhere.iter().filter(|e| row.is_named_by(&e.id)) {
            let (_, name) = e.test().expect("checked when it was read");
            found.push(format!("`{name}()`"));
        }
        for o in self.paper.open.iter().filter(|o| row.is_named_by(&o.id)) {
            found.push(format!("open: {}", o.why));
        }
        found
    }
}

fn folders() -> Vec<Folder> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    dirs.sort();
    dirs.iter().map(|d| Folder::read(d)).collect()
}

/// Section and number of a row: `5.18` is (5, 18).
fn number(id: &str) -> Option<(usize, usize)> {
    let (section, n) = id.split_once('.')?;
    Some((section.parse().ok()?, n.parse().ok()?))
}

#[test]
fn no_statement_is_left_out_of_the_list() {
    let mut listed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for row in folders().iter().flat_map(|f| &f.paper.row) {
        let (section, n) =
            number(&row.id).unwrap_or_else(|| panic!("{} is no number of a statement", row.id));
        listed.entry(section).or_default().push(n);
    }
    for (section, least) in SECTIONS.into_iter().enumerate() {
        let mut there = listed.remove(&section).unwrap_or_default();
        there.sort_unstable();
        let all: Vec<usize> = (1..=there.len().max(least)).collect();
        assert_eq!(there, all, "section {section}");
    }
    assert!(listed.is_empty(), "no such section: {listed:?}");
}

#[test]
fn every_statement_is_answered() {
    let folders = folders();
    let rows = folders.iter().flat_map(|f| f.paper.row.iter().map(move |r| (f, r)));
    let silent: Vec<String> = rows
        .filter(|(f, r)| f.answers(r, &folders).is_empty())
        .map(|(f, r)| format!("{}: {} {}", f.name, r.id, r.says))
        .collect();
    assert!(silent.is_empty(), "neither claim nor test nor open: {silent:#?}");
}

/// An id stands once in its folder, so that no part of a statement is answered twice; and one that begins with a
/// number belongs to a statement that is listed there, or anywhere if the study is one of our own.
#[test]
fn every_answer_belongs_to_one_statement() {
    let folders = folders();
    for folder in &folders {
        let ids = folder.ids();
        for (i, id) in ids.iter().enumerate() {
            assert!(!ids[..i].contains(id), "{}: {id} appears twice", folder.name);
            if number(id.split(' ').next().unwrap_or_default()).is_some() {
                let listed = folders.iter().filter(|f| folder.is_own() || f.name == folder.name);
                let known = listed.flat_map(|f| &f.paper.row).any(|r| r.is_named_by(id));
                assert!(known, "{}: {id} belongs to no statement", folder.name);
            }
        }
    }
}

/// A reason says something: what is missing, or why nothing could be compared.
#[test]
fn what_is_open_has_its_reason() {
    for folder in folders() {
        for open in &folder.paper.open {
            assert!(open.why.split(' ').count() >= 4, "{}: {}: {}", folder.name, open.id, open.why);
        }
    }
}

/// The line behind which a page is written from the studies.
const GENERATED: &str =
    "<!-- From here on written by UPDATE=1 cargo test -p skyhaul-study --test all rows -->\n";

/// The statements of a publication, each with its answers.
fn statements(folder: &Folder, folders: &[Folder]) -> String {
    let mut text = format!(
        "\n## Statement by statement\n\nAll checkable statements, each with what answers it: the claims of a study, a unit test (with \
         parentheses), or the reason why it\nis open. `studies/{}/paper.toml` names the file of each test.\n\n",
        folder.name
    );
    for row in &folder.paper.row {
        let _ = writeln!(text, "* {} {}: {}", row.id, row.says, folder.answers(row, folders).join("; "));
    }
    text
}

#[test]
fn the_pages_of_papers_end_with_their_statements() {
    let folders = folders();
    for folder in folders.iter().filter(|f| !f.paper.row.is_empty()) {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/papers/{}.md", folder.name));
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        let written = file.split_once(GENERATED).map_or(file.as_str(), |(before, _)| before);
        let page = format!("{written}{GENERATED}{}", statements(folder, &folders));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &page).expect("writable");
        } else {
            let again = "UPDATE=1 cargo test -p skyhaul-study --test all rows";
            assert!(file == page, "docs/papers/{}.md is stale: {again}", folder.name);
        }
    }
}
