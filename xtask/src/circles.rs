//! Circles between the files of a crate: files that use each other in a loop.
//!
//! What a file uses is read from its `use` lines and from paths in its code, without a compiler. Names are followed through
//! `pub use` to the file that defines them; a file that only re-exports names uses nothing. Tests do not count, methods on a
//! type count as a use of the type. A private `use module::*` is not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

/// A path such as `crate::queue::Limit`, from the root of its crate and without `crate`.
type Path = Vec<String>;

/// A source file.
#[derive(Debug)]
struct Source {
    /// Its path, for messages.
    file: String,
    module: Path,
    /// Without comments, tests, and `use` lines.
    code: String,
    /// Names that it brings into scope, and what they stand for; `None` for what is outside the crate.
    names: BTreeMap<String, Option<Path>>,
    /// Those that it re-exports.
    re_exported: BTreeSet<String>,
    /// Modules whose every name it brings into scope or re-exports.
    globs: Vec<Path>,
}

/// The files of a crate.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    list: Vec<Source>,
    modules: BTreeMap<Path, usize>,
}

impl Sources {
    /// Reads the files below `src`.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(crate) fn read(src: &FilePath) -> std::io::Result<Self> {
        let mut files = Vec::new();
        collect(src, &mut Vec::new(), &mut files)?;
        Ok(Self::of(files))
    }

    /// A crate of these modules: each with the name of its file and its text.
    fn of(files: Vec<(Path, String, String)>) -> Self {
        let tests: BTreeSet<Path> =
            files.iter().flat_map(|(module, _, text)| test_modules(module, text)).collect();
        let files: Vec<_> =
            files.into_iter().filter(|(module, ..)| !tests.iter().any(|t| module.starts_with(t))).collect();
        let modules = files.iter().enumerate().map(|(i, f)| (f.0.clone(), i)).collect();
        let mut sources = Self { list: Vec::new(), modules };
        sources.list =
            files.into_iter().map(|(module, file, text)| sources.source(module, file, &text)).collect();
        sources
    }

    fn source(&self, module: Path, file: String, text: &str) -> Source {
        let code = product(text);
        let mut source = Source {
            file,
            module,
            code: String::new(),
            names: BTreeMap::new(),
            re_exported: BTreeSet::new(),
            globs: Vec::new(),
        };
        let mut rest = code.as_str();
        while let Some((before, public, tree, after)) = next_use(rest) {
            source.code.push_str(before);
            let mut leaves = Vec::new();
            leaves_of(tree, &[], &mut leaves);
            for (path, name) in leaves {
                let path = self.absolute(&source, &path);
                if name == "*" {
                    source.globs.extend(path);
                    continue;
                }
                if public {
                    source.re_exported.insert(name.clone());
                }
                source.names.insert(name, path);
            }
            rest = after;
        }
        source.code.push_str(rest);
        source
    }

    /// A path as it stands in a file, from the root; `None` if it leads out of the crate.
    fn absolute(&self, source: &Source, path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let mut from = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => source.module.clone(),
            name => match source.names.get(name) {
                Some(known) => known.clone()?,
                None => {
                    let child = [source.module.as_slice(), &path[..1]].concat();
                    return self.modules.contains_key(&child).then(|| [&child, rest].concat());
                }
            },
        };
        let ups = path.iter().skip_while(|s| *s == "self").take_while(|s| *s == "super").count();
        from.truncate(from.len().saturating_sub(ups));
        let down = path.iter().skip(1).skip_while(|s| *s == "super");
        from.extend(down.cloned());
        Some(from)
    }

    /// The file that a path leads to: that of its module or, where this only re-exports the name, the file that defines it.
    fn defining_file(&self, path: &[String], depth: usize) -> Option<usize> {
        let known = (0..=path.len()).rev().find_map(|k| Some((k, *self.modules.get(&path[..k])?)));
        let (k, at) = known?;
        let source = &self.list[at];
        let Some((name, rest)) = path[k..].split_first() else { return Some(at) };
        if depth < 8 && !defines(&source.code, name) {
            if let Some(target) = source.names.get(name) {
                return self.defining_file(&[target.as_ref()?, rest].concat(), depth + 1);
            }
            for module in &source.globs {
                let target = [module, &path[k..]].concat();
                let file = self.defining_file(&target, depth + 1)?;
                if defines(&self.list[file].code, name) {
                    return Some(file);
                }
            }
        }
        Some(at)
    }

    /// The files that a file uses.
    fn uses(&self, at: usize) -> BTreeSet<usize> {
        let source = &self.list[at];
        let mut used = BTreeSet::new();
        for (name, path) in source.names.iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
            // A re-exported name is used only if the code has it; of a module only the names in it count.
            let whole_module = self.modules.contains_key(path);
            if !whole_module && (!source.re_exported.contains(name) || has_word(&source.code, name)) {
                used.extend(self.defining_file(path, 0));
            }
        }
        for path in paths(&source.code) {
            if let Some(path) = self.absolute(source, &path) {
                used.extend(self.defining_file(&path, 0));
            }
        }
        used.remove(&at);
        used
    }

    /// How many files it has.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The circles: the files of each, with those of the others that they use. A folder's head and its files may use each other,
    /// since what the files share may stand in the head; the files among themselves may not.
    pub(crate) fn circles(&self) -> Vec<Vec<(&str, Vec<&str>)>> {
        let uses: Vec<_> = (0..self.list.len()).map(|i| self.uses(i)).collect();
        let mut circles = Vec::new();
        let mut open = vec![(0..uses.len()).collect::<BTreeSet<_>>()];
        while let Some(among) = open.pop() {
            for mut members in loops(&uses, &among) {
                let heads = |h: &usize| {
                    let head = &self.list[*h].module;
                    !head.is_empty() && members.iter().all(|j| self.list[*j].module.starts_with(head))
                };
                if let Some(head) = members.iter().copied().find(heads) {
                    members.remove(&head);
                    open.push(members);
                    continue;
                }
                let file = |j: usize| self.list[j].file.as_str();
                let used =
                    |j: usize| uses[j].iter().filter(|k| members.contains(k)).map(|k| file(*k)).collect();
                circles.push(members.iter().map(|j| (file(*j), used(*j))).collect());
            }
        }
        circles
    }
}

/// The sets of files, out of `among`, that reach each other.
fn loops(uses: &[BTreeSet<usize>], among: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
    let reached: BTreeMap<usize, _> = among.iter().map(|&i| (i, reach(uses, among, i))).collect();
    let mut loops: Vec<BTreeSet<usize>> = Vec::new();
    for (i, own) in &reached {
        if own.contains(i) && !loops.iter().any(|l| l.contains(i)) {
            loops.push(own.iter().copied().filter(|j| reached[j].contains(i)).collect());
        }
    }
    loops
}

/// Everything out of `among` that can be reached from a file.
fn reach(uses: &[BTreeSet<usize>], among: &BTreeSet<usize>, from: usize) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(i) = open.pop() {
        open.extend(uses[i].iter().filter(|j| among.contains(j) && reached.insert(**j)));
    }
    reached
}

/// Files below a folder, with their modules.
fn collect(
    folder: &FilePath,
    module: &mut Path,
    files: &mut Vec<(Path, String, String)>,
) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            module.push(name);
            collect(&path, module, files)?;
            module.pop();
        } else if let Some(stem) = name.strip_suffix(".rs") {
            let mut own = module.clone();
            if !matches!(stem, "lib" | "main" | "mod") {
                own.push(stem.into());
            }
            files.push((own, path.to_string_lossy().into_owned(), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Modules that a file declares for tests only.
fn test_modules(module: &[String], text: &str) -> Vec<Path> {
    let lines: Vec<&str> = text.lines().collect();
    let name = |l: &str| {
        let l = l.strip_prefix("pub ").unwrap_or(l);
        Some([module, &[l.strip_prefix("mod ")?.strip_suffix(';')?.to_owned()]].concat())
    };
    lines.windows(2).filter(|w| w[0].starts_with("#[cfg(test)]")).filter_map(|w| name(w[1])).collect()
}

/// The text of a file without comments and tests.
fn product(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            // An item at the margin ends with a brace there, or as a line.
            lines.find(|l| *l == "}" || l.ends_with(';') && !l.starts_with(' '));
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The next `use` line: the code before it, whether it re-exports, its tree, and the code after it.
fn next_use(code: &str) -> Option<(&str, bool, &str, &str)> {
    let words = code.match_indices("use ").map(|(at, _)| at);
    let at = words.into_iter().find(|&at| {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        line.is_empty()
            || line.starts_with("pub") && !line.contains(['(', '{'])
            || line.starts_with("pub(") && line.ends_with(") ")
    })?;
    let line = code[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = at + code[at..].find(';')?;
    let public = code[line..at].trim_start().starts_with("pub");
    Some((&code[..line], public, &code[at + 4..end], &code[end + 1..]))
}

/// The paths of a tree such as `a::{b, c::{self, D as E}}`, each with the name that it brings into scope.
fn leaves_of(tree: &str, before: &[String], leaves: &mut Vec<(Path, String)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut path = before.to_vec();
        path.extend(segments(&tree[..open]));
        let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
        let (mut depth, mut from) = (0, 0);
        for (i, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    leaves_of(&inner[from..i], &path, leaves);
                    from = (i + 1).min(inner.len());
                }
                _ => {}
            }
        }
        return;
    }
    let (tree, alias) = tree.split_once(" as ").map_or((tree, None), |(t, a)| (t, Some(a.trim())));
    let mut path = before.to_vec();
    path.extend(segments(tree));
    if path.len() > 1 && path.last().is_some_and(|s| s == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    if last == "*" {
        path.pop();
    }
    leaves.push((path, alias.map_or(last, str::to_owned)));
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned)
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Paths of at least two names in code.
fn paths(code: &str) -> BTreeSet<Path> {
    let words = code.split(|c: char| !is_part(c) && c != ':');
    let path = |w: &str| segments(w.trim_matches(':')).collect::<Path>();
    words.filter(|w| w.trim_matches(':').contains("::")).map(path).collect()
}

/// True if `word` stands in `code`.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !is_part(c)).any(|w| w == word)
}

/// True if a file defines something of this name.
fn defines(code: &str, name: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!", "mod"];
    let words: Vec<&str> = code.split(|c: char| !is_part(c) && c != '!').filter(|w| !w.is_empty()).collect();
    words.windows(2).any(|w| w[1] == name && kinds.contains(&w[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file =
            |&(module, text): &(&str, &str)| (segments(module).collect(), module.to_owned(), text.to_owned());
        let sources = Sources::of(files.iter().map(file).collect());
        sources.circles().iter().map(|c| c.iter().map(|(f, _)| (*f).to_owned()).collect()).collect()
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let a = ("a", "use crate::b::B;\npub struct A(B);");
        assert_eq!(circles(&[a, ("b", "pub struct B;\nfn f(_: super::a::A) {}")]), [["a", "b"]]);
        assert_eq!(
            circles(&[
                a,
                ("b", "use crate::{c::C, x};\nstruct B;"),
                ("c", "use super::a;\nfn f(_: a::A, C: u8) {}")
            ]),
            [["a", "b", "c"]]
        );
        assert!(
            circles(&[
                a,
                ("b", "pub struct B; // crate::a::A\n#[cfg(test)]\nmod tests { use crate::a::A; }")
            ])
            .is_empty()
        );
    }

    #[test]
    fn a_name_is_followed_to_the_file_that_defines_it() {
        let parent = ("m", "mod x;\nmod y;\npub use x::X;\npub use y::Y;");
        let (x, y) = (("m::x", "use super::Y;\npub struct X(Y);"), ("m::y", "pub struct Y;"));
        assert!(circles(&[parent, x, y]).is_empty());
        let uses = ("m", "mod x;\nmod y;\npub use x::X;\npub use y::Y;\npub struct Z(X);");
        assert!(circles(&[uses, x, y]).is_empty());
        // A folder's head and its file may use each other; the root of a crate is no such head.
        let back = ("m::x", "use super::Z;\npub struct X(Z);");
        assert!(circles(&[uses, back, y]).is_empty());
        let sibling = ("m::y", "pub struct Y(super::x::X);");
        assert!(circles(&[uses, back, sibling]).is_empty());
        let both = ("m::x", "use super::{Y, Z};\npub struct X(Y, Z);");
        assert_eq!(circles(&[uses, both, sibling]), [["m::x", "m::y"]]);
        assert_eq!(circles(&[("", uses.1), ("x", back.1), ("y", y.1)]), [["", "x"]]);
        let all = ("m", "mod x;\nmod y;\npub use x::*;\npub use y::*;");
        assert!(circles(&[all, x, y]).is_empty());
        assert_eq!(circles(&[all, x, ("m::y", "pub struct Y(super::X);")]), [["m::x", "m::y"]]);
    }

    #[test]
    fn modules_for_tests_do_not_count() {
        let a = ("a", "#[cfg(test)]\nmod tests;\nuse crate::a::tests::T;\npub struct A;");
        assert!(circles(&[a, ("a::tests", "use super::A;\npub struct T(A);")]).is_empty());
    }
}
