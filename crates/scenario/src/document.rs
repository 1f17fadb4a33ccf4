//! A scenario before resolution: a file, the files it extends, and overrides.

use crate::error::{LoadError, OVERRIDE, Problem, ScenarioError, suggestion};
use crate::model::{
    Scenario, expand, expand_default, expand_readings, fill, holds_names, is_trace, names_file, tags,
};
use crate::{Resolved, event, explain, memory, preset, resolve};
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Longest chain of files linked by `extends`.
const MAX_LAYERS: usize = 16;

/// Reads the file at a path, or returns why it cannot. This crate itself never touches a file system.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<String, LoadError>;

/// A loader without files, for a scenario that stands alone.
///
/// # Errors
/// Always [`LoadError::NoFiles`].
pub fn no_files(_path: &str) -> Result<String, LoadError> {
    Err(LoadError::NoFiles)
}

/// A scenario as written: all layers merged, but not resolved.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file itself, then the files it extends.
    layers: Vec<Layer>,
    merged: Table,
    /// Paths of the overrides.
    overrides: Vec<String>,
}

#[derive(Clone, Debug)]
struct Layer {
    file: String,
    text: String,
    table: Table,
}

impl Document {
    /// Reads `text`, the content of `file`, and with `load` the files that it extends. Paths are relative to the
    /// file that names them.
    ///
    /// # Errors
    /// If a text is not TOML, or a file is missing or extends itself.
    pub fn parse(file: &str, text: &str, load: Load<'_>) -> Result<Self, ScenarioError> {
        let mut layers = vec![Layer::parse(file, text)?];
        let of_study = ["scenario", "schema"].iter().all(|key| layers[0].table.contains_key(*key));
        if of_study {
            let message = "this is a study, not a scenario: run it with skyhaul study run";
            return Err(layers[0].error("scenario", message.into()));
        }
        while let Some(base) = layers[layers.len() - 1].extends()? {
            let from = &layers[layers.len() - 1];
            let refuse = |message: String| Err(from.error("extends", message));
            let is_preset = base.starts_with(preset::PREFIX);
            let name = if is_preset { base.clone() } else { beside(&from.file, &base) };
            if layers.iter().any(|l| l.file == name) {
                return refuse(format!("\"{base}\" extends this file: the files form a loop"));
            }
            if layers.len() >= MAX_LAYERS {
                return refuse(format!(
                    "the chain of `extends` is longer than {MAX_LAYERS} files: merge some of them"
                ));
            }
            let text = if let Some(name) = base.strip_prefix(preset::PREFIX) {
                match preset::text(name) {
                    Some(text) => text.to_owned(),
                    None => return refuse(format!("there is no preset \"{name}\"{}", known_presets(name))),
                }
            } else {
                match load(&name) {
                    Ok(text) => text,
                    Err(why) => return refuse(format!("cannot read {name}: {why}")),
                }
            };
            layers.push(Layer::parse(&name, &text)?);
        }
        let mut merged = Table::new();
        for layer in layers.iter().rev() {
            merge(&mut merged, &layer.table, "");
            // The files of the layers below have been read.
            fill(&mut merged, "", &mut |key, path| {
                let name = beside(&layer.file, path);
                match load(&name) {
                    Ok(text) => Ok((name, text)),
                    Err(why) => Err(layer.error(key, format!("cannot read {name}: {why}"))),
                }
            })?;
        }
        merged.remove("extends");
        Ok(Self { layers, merged, overrides: Vec::new() })
    }

    /// The preset called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn preset(name: &str) -> Result<Self, ScenarioError> {
        Self::open(&format!("{}{name}", preset::PREFIX), &no_files)
    }

    /// The preset `preset:NAME`, or the file that `load` reads at this path.
    ///
    /// # Errors
    /// As [`Self::parse`], and if the file cannot be read.
    pub fn open(path: &str, load: Load<'_>) -> Result<Self, ScenarioError> {
        let refuse =
            |message: String| ScenarioError { file: path.into(), line: None, key: String::new(), message };
        if let Some(name) = path.strip_prefix(preset::PREFIX) {
            let text = preset::text(name)
                .ok_or_else(|| refuse(format!("there is no such preset{}", known_presets(name))))?;
            return Self::parse(path, text, load);
        }
        let text = load(path).map_err(|why| refuse(format!("cannot read: {why}")))?;
        Self::parse(path, &text, load)
    }

    /// Applies an override as written on a command line: `links.sat.error.p=1e-2`, `flows.bulk.cc=peach`. The value
    /// is TOML; what is not TOML, and begins with neither a bracket nor a quote, is a string, so that quotes can be left
    /// out.
    ///
    /// # Errors
    /// If there is no `=`, the value is invalid, or the path does not exist.
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        let Some((path, value)) = assignment.split_once('=') else {
            return Err(overridden(assignment, "write KEY=VALUE, such as links.sat.error.p=1e-2".into()));
        };
        let (path, value) = (path.trim(), value.trim());
        let value = match value.parse::<Value>() {
            Ok(value) => value,
            Err(e) if value.starts_with(['[', '{', '"', '\'']) => {
                return Err(overridden(path, format!("{value} is not TOML: {}", one_line(e.message()))));
            }
            Err(_) => Value::String(value.into()),
        };
        self.set_value(path, value)
    }

    /// Sets one key, given as a path with dots. A short form on the path, such as `cc = "peach"`, becomes a table;
    /// the value replaces the previous one, `orbit` and `delay` each other, and the name of a file its content.
    ///
    /// # Errors
    /// If the path does not exist. The value itself is checked by [`Self::resolve`].
    pub fn set_value(&mut self, path: &str, value: Value) -> Result<(), ScenarioError> {
        self.put(path, value, true)
    }

    /// As [`Self::set_value`]. Without `replaces`, as for events, a delay does not replace satellites.
    fn put(&mut self, path: &str, value: Value, replaces: bool) -> Result<(), ScenarioError> {
        let keys: Vec<&str> = path.split('.').collect();
        if keys.iter().any(|k| k.is_empty()) {
            return Err(overridden(path, "write a path of keys with dots, such as links.sat.error.p".into()));
        }
        if keys[0] == "extends" {
            return Err(overridden(path, "what a file extends cannot be overridden".into()));
        }
        let mut table = &mut self.merged;
        for (depth, key) in keys[..keys.len() - 1].iter().enumerate() {
            if replaces && depth == 2 && keys[0] == "links" {
                replace_delay(table, key);
            }
            let here = keys[..=depth].join(".");
            // A mistyped name would otherwise make another link, flow or gateway.
            let of_top = depth == 1 && holds_names(keys[0]);
            if of_top && !table.contains_key(*key) {
                let hint = suggestion(key, table.keys().map(String::as_str).collect::<Vec<_>>());
                return Err(overridden(path, format!("there is no {here}{hint}")));
            }
            let form = if holds_names(&keys[..depth].join(".")) { NAME } else { key };
            let slot = table.entry(*key).or_insert_with(|| Value::Table(expand_default(form)));
            if let Some(long) = slot.as_str().and_then(|text| expand(form, text)) {
                *slot = Value::Table(long);
            }
            match slot {
                Value::Table(inner) => table = inner,
                other => {
                    let what = one_line(&other.to_string());
                    return Err(overridden(path, format!("{here} is {what}, which has no keys")));
                }
            }
        }
        if replaces && keys.len() == 3 && keys[0] == "links" {
            replace_delay(table, keys[2]);
        }
        let (last, parent) = (keys[keys.len() - 1], keys[..keys.len() - 1].join("."));
        // The content of the previous file goes, unless an override gives it.
        let content = format!("{parent}.text");
        if names_file(last) && !holds_names(&parent) && !self.overrides.contains(&content) {
            table.remove("text");
        }
        table.insert(last.into(), value);
        self.overrides.push(path.into());
        Ok(())
    }

    /// Reads the files (`trace`, `mahimahi`, `file`) that overrides name; those that the scenario's own files name have
    /// been read already. `load` gets the paths unchanged.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read_traces(&mut self, load: Load<'_>) -> Result<(), ScenarioError> {
        fill(&mut self.merged, "", &mut |key, path| match load(path) {
            Ok(text) => Ok((path.to_owned(), text)),
            Err(why) => Err(overridden(key, format!("cannot read {path}: {why}"))),
        })
    }

    /// The value at a path, in short or long form as written.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&Value> {
        lookup(&self.merged, path)
    }

    /// Names of the file and of the files it extends.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|l| l.file.as_str())
    }

    /// The scenario as typed values, without defaults.
    ///
    /// # Errors
    /// If a key is unknown or a value has the wrong form.
    pub fn model(&self) -> Result<Scenario, ScenarioError> {
        let check = |table: &Table| {
            serde_path_to_error::deserialize::<_, Scenario>(Value::Table(table.clone()))
                .map_err(|e| (e.path().to_string(), one_line(e.inner().message())))
        };
        let mut merged = self.merged.clone();
        expand_readings(&mut merged, "").map_err(|problem| self.place(problem))?;
        check(&merged).map_err(|(path, message)| {
            let (path, message) = explain::locate(&merged, path, message, &|t| check(t).err());
            let (key, message) = explain::rewrite(&path, &message);
            self.place(Problem::new(key, message))
        })
    }

    /// Fills in defaults and checks everything.
    ///
    /// # Errors
    /// One line with the place and the problem.
    pub fn resolve(&self) -> Result<Resolved, ScenarioError> {
        let model = self.model()?;
        let place = |problem| self.place(problem);
        let mut resolved = resolve::resolve(&model).map_err(place)?;
        fits(&resolved).map_err(place)?;
        if model.event.is_empty() {
            return Ok(resolved);
        }
        resolved.gateway_events = event::gateway_events(&model.event, &resolved).map_err(place)?;
        resolve::segment::check_events(&resolved.repair, &resolved.gateway_events).map_err(place)?;
        // The changes of an event are found by resolving the scenario with its values set, with the same words, units
        // and checks.
        let mut changed = self.clone();
        changed.merged.remove("event");
        let changes = event::resolve(&model, &resolved, |key, values| {
            let within = |e: ScenarioError| {
                let file = e.key.is_empty().then_some((e.file, e.line.unwrap_or(0)));
                Problem { key: format!("{key}.set.{}", e.key), message: e.message, file }
            };
            for (path, value) in values {
                changed.put(path, value.clone(), false).map_err(within)?;
            }
            changed.resolve().map(|r| r.links).map_err(within)
        });
        resolved.events = changes.map_err(place)?;
        Ok(resolved)
    }

    /// Finds the file and line of a problem: those of the nearest key that is written.
    fn place(&self, problem: Problem) -> ScenarioError {
        let Problem { key, message, file } = problem;
        if let Some((file, line)) = file {
            let line = (line > 0).then_some(line);
            return ScenarioError { file, line, key: String::new(), message };
        }
        // An array replaces that of the file below as a whole: only the first file that has it counts.
        let array = key.split_once('[').map(|(array, _)| array);
        let of_array =
            array.and_then(|array| self.layers.iter().position(|l| lookup(&l.table, array).is_some()));
        let layers = of_array.map_or(&self.layers[..], |i| &self.layers[i..=i]);
        let mut prefix = key.as_str();
        loop {
            if self.overrides.iter().any(|set| below(prefix, set).is_some()) {
                return ScenarioError { file: OVERRIDE.into(), line: None, key, message };
            }
            if let Some(layer) = layers.iter().find(|l| lookup(&l.table, prefix).is_some()) {
                let line = layer.line_of(prefix);
                return ScenarioError { file: layer.file.clone(), line, key, message };
            }
            // A key that only an override can have introduced.
            if self.overrides.iter().any(|set| below(set, prefix).is_some()) {
                return ScenarioError { file: OVERRIDE.into(), line: None, key, message };
            }
            match prefix.rfind(['.', '[']) {
                Some(dot) => prefix = &prefix[..dot],
                None => return ScenarioError { file: self.layers[0].file.clone(), line: None, key, message },
            }
        }
    }
}

/// Parses, resolves and checks in one step.
///
/// # Errors
/// One line with the place and the problem.
pub fn resolve_text(
    file: &str,
    text: &str,
    sets: &[&str],
    load: Load<'_>,
) -> Result<Resolved, ScenarioError> {
    let mut document = Document::parse(file, text, load)?;
    for set in sets {
        document.set(set)?;
    }
    document.resolve()
}

/// Refuses a scenario that needs more memory than allowed.
fn fits(scenario: &Resolved) -> Result<(), Problem> {
    let (memory, limit) = (memory::estimate(scenario), scenario.memory);
    if memory.total() <= limit as f64 {
        return Ok(());
    }
    let (key, what, remedy) = memory.worst();
    let (total, most) = (memory::words(memory.total()), memory::words(limit as f64));
    let message = format!(
        "this run needs about {total} of memory, more than {most}, most of it for {what}: {remedy}, or write max-memory"
    );
    Err(Problem::new(key, message))
}

impl Layer {
    fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        match text.parse::<Table>() {
            Ok(table) => Ok(Self { file: file.into(), text: text.into(), table }),
            Err(e) => {
                let line = e.span().map(|span| line_at(text, span.start));
                let column = e.span().map(|span| {
                    let before = &text[..span.start.min(text.len())];
                    before.chars().rev().take_while(|c| *c != '\n').count() + 1
                });
                let at = column.map_or_else(String::new, |c| format!(" (column {c})"));
                let message = format!("not TOML: {}{at}", one_line(e.message()));
                Err(ScenarioError { file: file.into(), line, key: String::new(), message })
            }
        }
    }

    fn extends(&self) -> Result<Option<String>, ScenarioError> {
        match self.table.get("extends") {
            None => Ok(None),
            Some(Value::String(base)) => Ok(Some(base.clone())),
            Some(_) => {
                Err(self.error("extends", "write a file or a preset, such as \"preset:peach-geo\"".into()))
            }
        }
    }

    fn error(&self, key: &str, message: String) -> ScenarioError {
        ScenarioError { file: self.file.clone(), line: self.line_of(key), key: key.into(), message }
    }

    /// Line of a key or of an element of an array, from 1.
    fn line_of(&self, path: &str) -> Option<usize> {
        let document = DeTable::parse(&self.text).ok()?;
        offset_of(document.get_ref(), path).map(|offset| line_at(&self.text, offset))
    }
}

/// Where a key or an element of an array begins, in bytes.
fn offset_of(table: &DeTable<'_>, path: &str) -> Option<usize> {
    table.iter().find_map(|(key, value)| {
        let (mut start, mut value) = (key.span().start, value);
        let mut rest = below(path, key.get_ref())?;
        while let Some((i, after)) = index(rest) {
            let DeValue::Array(list) = value.get_ref() else { return None };
            value = list.get(i)?;
            (start, rest) = (value.span().start, after);
        }
        match (rest.strip_prefix('.'), value.get_ref()) {
            (None, _) => Some(start),
            (Some(inside), DeValue::Table(inner)) => offset_of(inner, inside),
            (Some(_), _) => None,
        }
    })
}

/// What follows `key` in `path`: nothing, or the path of a value inside it. A quoted key may have dots.
fn below<'a>(path: &'a str, key: &str) -> Option<&'a str> {
    path.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The number in brackets at the beginning of `rest`, and what follows it.
fn index(rest: &str) -> Option<(usize, &str)> {
    let (number, after) = rest.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, after))
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

fn overridden(path: &str, message: String) -> ScenarioError {
    ScenarioError { file: OVERRIDE.into(), line: None, key: path.into(), message }
}

fn known_presets(name: &str) -> String {
    suggestion(name, preset::names().collect::<Vec<_>>())
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// `path` as seen from the folder of `file`.
fn beside(file: &str, path: &str) -> String {
    let absolute = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
    match file.rfind(['/', '\\']) {
        Some(end) if !absolute => format!("{}{path}", &file[..=end]),
        _ => path.into(),
    }
}

fn lookup<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    table.iter().find_map(|(key, mut value)| {
        let mut rest = below(path, key)?;
        while let Some((i, after)) = index(rest) {
            (value, rest) = (value.as_array()?.get(i)?, after);
        }
        match rest.strip_prefix('.') {
            None => Some(value),
            Some(inside) => lookup(value.as_table()?, inside),
        }
    })
}

/// Stands for a key that is a name: no rule applies to it.
const NAME: &str = "";

/// Removes from a link what its new key `orbit` or `delay` replaces.
fn replace_delay(link: &mut Table, new: &str) {
    match new {
        "orbit" => {
            link.remove("delay");
            if let Some(Value::Table(reverse)) = link.get_mut("reverse") {
                reverse.remove("delay");
            }
        }
        "delay" => {
            link.remove("orbit");
        }
        _ => {}
    }
}

/// Lays `over` on top of `base`; both are at the path `at`. Tables merge; a table with a different tag (`kind`, `name`)
/// or with a file in place of a kind, a short form and any other value replace the previous value. `orbit` and `delay`
/// replace each other.
fn merge(base: &mut Table, over: &Table, at: &str) {
    if at.strip_prefix("links.").is_some_and(|link| !link.contains('.')) {
        match (over.contains_key("orbit"), over.contains_key("delay")) {
            (true, false) => replace_delay(base, "orbit"),
            (false, true) => replace_delay(base, "delay"),
            _ => {}
        }
    }
    let of_names = holds_names(at);
    if !of_names && over.keys().any(|key| names_file(key)) {
        base.remove("text");
    }
    for (key, new) in over {
        let here = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let form = if of_names { NAME } else { key };
        let Some(old) = base.get_mut(key) else {
            base.insert(key.clone(), new.clone());
            continue;
        };
        let Value::Table(new_table) = new else {
            *old = new.clone();
            continue;
        };
        if let Some(long) = old.as_str().and_then(|text| expand(form, text)) {
            *old = Value::Table(long);
        }
        match old {
            Value::Table(old_table) => {
                let differs = |t: &&str| Some(new_table.get(*t)? != old_table.get(*t)?);
                let follows_file = matches!(form, "rate" | "delay" | "fade")
                    && (is_trace(new_table) || is_trace(old_table) && new_table.contains_key("kind"));
                let other_kind =
                    form == "start" || follows_file || tags(form).iter().any(|t| differs(t).unwrap_or(false));
                if other_kind {
                    old_table.clone_from(new_table);
                } else {
                    merge(old_table, new_table, &here);
                }
            }
            _ => *old = new.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, over: &str) -> Table {
        let mut table: Table = base.parse().unwrap();
        merge(&mut table, &over.parse().unwrap(), "");
        table
    }

    #[test]
    fn an_override_of_orbit_or_delay_replaces_the_other() {
        let link = |sets: &[&str]| {
            let base = "links.sat = { delay = '275 ms', rate = '1 Mbit/s', reverse = { delay = '9 ms', rate = '1 kbit/s' } }";
            let mut document = Document::preset("peach-geo").unwrap();
            document.merged = base.parse().unwrap();
            sets.iter().for_each(|set| document.set(set).unwrap());
            document.merged["links"]["sat"].as_table().unwrap().clone()
        };
        let keys = |sets: &[&str]| link(sets).keys().cloned().collect::<Vec<_>>();
        for orbit in
            ["links.sat.orbit={ constellation = 'leo1200' }", "links.sat.orbit.constellation=leo1200"]
        {
            let got = link(&[orbit]);
            assert_eq!(got["orbit"]["constellation"].as_str(), Some("leo1200"), "{orbit}");
            assert!(got.get("delay").is_none() && got["reverse"].get("delay").is_none(), "{got}");
            assert_eq!(got["reverse"]["rate"].as_str(), Some("1 kbit/s"));
            // And back, whole or by a key of it.
            assert_eq!(keys(&[orbit, "links.sat.delay=20 ms"]), ["delay", "rate", "reverse"]);
            assert_eq!(keys(&[orbit, "links.sat.delay.base=20 ms"]), ["delay", "rate", "reverse"]);
        }
        // A key of the reverse direction replaces nothing.
        assert_eq!(
            keys(&["links.sat.orbit={}", "links.sat.reverse.delay=1 ms"]),
            ["orbit", "rate", "reverse"]
        );
    }

    #[test]
    fn tables_merge_and_tags_replace() {
        let base = "[flows.a]\ncc = { name = 'peach', recovery = 'reno' }\nqueue = '50 packets'";
        for (over, want) in [
            ("flows.a.cc = 'sack'", "cc = 'sack'"),
            ("flows.a.cc.start = 'slow'", "cc = { name = 'peach', recovery = 'reno', start = 'slow' }"),
            ("flows.a.cc = { name = 'sack' }", "cc = { name = 'sack' }"),
            ("flows.a.cc = 'user:mine'", "cc = 'user:mine'"),
        ] {
            let want: Table = want.parse().unwrap();
            assert_eq!(merged(base, over)["flows"]["a"]["cc"], want["cc"], "{over}");
        }
        let own = "[flows.a]\ncc = 'user:mine'";
        for (over, want) in [
            (
                "flows.a.cc.options.gain = 2",
                "cc = { name = 'user', control = 'mine', options = { gain = 2 } }",
            ),
            (
                "flows.a.cc = { name = 'user', control = 'yours' }",
                "cc = { name = 'user', control = 'yours' }",
            ),
        ] {
            let want: Table = want.parse().unwrap();
            assert_eq!(merged(own, over)["flows"]["a"]["cc"], want["cc"], "{over}");
        }
        // Options of one control are not options of another.
        let mine = "[flows.a]\ncc = { name = 'user', control = 'mine', options = { gain = 2 } }";
        let yours = "flows.a.cc = { name = 'user', control = 'yours' }";
        assert!(merged(mine, yours)["flows"]["a"]["cc"].get("options").is_none());
        let over = "flows.a.queue.kind = 'plain'";
        let want: Table = "queue = { limit = '50 packets', kind = 'plain' }".parse().unwrap();
        assert_eq!(merged(base, over)["flows"]["a"]["queue"], want["queue"]);
    }

    #[test]
    fn keys_in_a_short_form_are_set_and_another_kind_replaces() {
        let text = "[flows.a]\ntransport = 'tfrc'\nendpoint.loss-classifier = 'oracle'";
        let mut document = Document::parse("a.toml", text, &no_files).unwrap();
        document.set("flows.a.transport.packet=900 B").unwrap();
        document.set("flows.a.endpoint.loss-classifier.false-error=0.1").unwrap();
        let want: Table = "[flows.a]\ntransport = { kind = 'tfrc', packet = '900 B' }\n\
            endpoint.loss-classifier = { kind = 'oracle', false-error = 0.1 }"
            .parse()
            .unwrap();
        assert_eq!(document.merged, want);
        let over: Table = merged(&want.to_string(), "flows.a.transport = { kind = 'ssvp' }");
        let want: Table = "transport = { kind = 'ssvp' }".parse().unwrap();
        assert_eq!(over["flows"]["a"]["transport"], want["transport"], "a packet of TFRC is none of SSVP");
    }

    #[test]
    fn paths_are_relative_to_the_file_that_names_them() {
        assert_eq!(beside("a/b.toml", "c.toml"), "a/c.toml");
        assert_eq!(beside("b.toml", "c.toml"), "c.toml");
        assert_eq!(beside("a/b.toml", "/c.toml"), "/c.toml");
    }
}
