//! A configuration of several files: what `include` adds, and the values of variables.
//!
//! A key of a file overrides that of a file it includes. Sections are merged key by key; the value of a key, also a list or a table, is
//! replaced as a whole. Variables are replaced after that, so that a file gives values to the variables of its templates.

use super::one_line;
use crate::error::GatewayError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Maximum number of files; a file counts each time that it is included.
const MOST: usize = 64;
/// Maximum number of variables of which each has the next one in its value.
const DEEPEST: usize = 16;
/// Maximum size of all values that are put in place of `${NAME}`, bytes: values of variables can double with each step.
const MOST_REPLACED: usize = 1 << 20;
/// The key that names files to include.
const INCLUDE: &str = "include";
/// The section that gives values to variables.
const VARIABLES: &str = "variables";

/// Reads a file to include: what identifies it, so that circles are noticed, and its text; or what is wrong.
pub(super) type Reader<'a> = &'a dyn Fn(&Path) -> Result<(PathBuf, String), String>;

/// A variable of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Value of the variable, in which other variables are replaced.
    pub value: Value,
    /// The file that gives it this value.
    pub file: String,
    /// Whether a key or another variable uses it.
    pub used: bool,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The files of the configuration: first the file that the command names, then the included ones in the order of reading.
    pub files: Vec<String>,
    /// The variables of the configuration, by name.
    pub variables: BTreeMap<String, Variable>,
    /// The file from which the value comes, by `KEY` or `SECTION.KEY`.
    origins: BTreeMap<String, String>,
    /// The variables in the value, by `KEY` or `SECTION.KEY`.
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    /// An error about a key, `name` or `satellite.rate`, that names the file from which its value comes, and the variables in it.
    #[must_use]
    pub fn refuse(&self, key: &str, message: String) -> GatewayError {
        let file = self.file_of(key);
        let used = parts(key).find_map(|part| self.uses.get(&part));
        let told = used.into_iter().flatten().filter_map(|name| {
            let v = self.variables.get(name)?;
            Some(format!("{name} is {} in {}", one_line(&v.value.to_string()), v.file))
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let message = if told.is_empty() { message } else { format!("{message} ({told})") };
        wrong(&file, key, message)
    }
    /// The file from which the value of a key comes.
    fn file_of(&self, key: &str) -> String {
        let found = parts(key).find_map(|part| self.origins.get(&part));
        found.or(self.files.first()).cloned().unwrap_or_default()
    }
}

/// The entries of [`Sources`] that may be about a key: `SECTION.KEY`, of a key at any depth or in a list, and then `SECTION`.
fn parts(key: &str) -> impl Iterator<Item = String> {
    let mut names = key.split('.').map(|n| n.split('[').next().unwrap_or_default());
    let first = names.next().unwrap_or_default().to_owned();
    let both = names.next().map(|second| format!("{first}.{second}"));
    both.into_iter().chain([first])
}

fn wrong(file: &str, key: &str, message: String) -> GatewayError {
    // The whole file is "." for serde_path_to_error.
    let key = if key.is_empty() || key == "." { String::new() } else { format!("{}: ", one_line(key)) };
    GatewayError::Config { file: file.into(), key, message: one_line(&message) }
}

/// Reads what a file includes, and replaces its variables. Returns the keys without `include` and `[variables]`.
pub(super) fn assemble(file: &str, text: &str, read: Reader<'_>) -> Result<(Table, Sources), GatewayError> {
    let mut all = Assembly { read, chain: Vec::new(), keys: Table::new(), sources: Sources::default() };
    let path = Path::new(file);
    let identity = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    all.add(file, identity, text)?;
    let Assembly { mut keys, mut sources, .. } = all;
    replace(&mut keys, &mut sources)?;
    Ok((keys, sources))
}

/// A configuration while its files are read.
struct Assembly<'a> {
    read: Reader<'a>,
    /// The files that include each other down to the one being read: what identifies each, and its name.
    chain: Vec<(PathBuf, String)>,
    keys: Table,
    sources: Sources,
}

impl Assembly<'_> {
    fn add(&mut self, file: &str, identity: PathBuf, text: &str) -> Result<(), GatewayError> {
        if self.sources.files.len() >= MOST {
            return Err(wrong(file, INCLUDE, format!("more than {MOST} files: include fewer")));
        }
        self.sources.files.push(file.into());
        let mut table: Table = toml::from_str(text).map_err(|e| wrong(file, "", one_line(&e.to_string())))?;
        self.chain.push((identity, file.into()));
        if let Some(value) = table.remove(INCLUDE) {
            self.include(file, value)?;
        }
        self.chain.pop();
        if let Some(value) = table.remove(VARIABLES) {
            self.define(file, value)?;
        }
        for (key, value) in table {
            self.set(file, key, value);
        }
        Ok(())
    }
    fn include(&mut self, file: &str, value: Value) -> Result<(), GatewayError> {
        let no_list = || {
            let write = "write a list of files, such as [\"/etc/skyhaul/template.toml\"]; paths are relative to this file";
            wrong(file, INCLUDE, write.into())
        };
        let Value::Array(list) = value else { return Err(no_list()) };
        for (n, entry) in list.into_iter().enumerate() {
            let Value::String(entry) = entry else { return Err(no_list()) };
            let fail = |message| wrong(file, &format!("{INCLUDE}[{n}]"), message);
            if entry.contains("${") {
                return Err(fail(format!("{entry:?}: a path holds no variables: write it out")));
            }
            let path = Path::new(file).parent().unwrap_or_else(|| Path::new("")).join(&entry);
            let name = path.display().to_string();
            let (identity, text) = (self.read)(&path).map_err(|e| fail(format!("{name}: {e}")))?;
            if let Some(at) = self.chain.iter().position(|(i, _)| *i == identity) {
                let names = self.chain.iter().skip(at).map(|(_, n)| n.as_str()).chain([name.as_str()]);
                let circle = names.collect::<Vec<_>>().join(" includes ");
                return Err(fail(format!("a circle: {circle}: leave it out of one of them")));
            }
            self.add(&name, identity, &text)?;
        }
        Ok(())
    }
    fn define(&mut self, file: &str, value: Value) -> Result<(), GatewayError> {
        let Value::Table(table) = value else {
            let write = "write a section [variables] with a line NAME = VALUE for each";
            return Err(wrong(file, VARIABLES, write.into()));
        };
        for (name, value) in table {
            if !is_name(&name) {
                let write = "a name has letters, digits, dashes and underscores";
                return Err(wrong(file, &format!("{VARIABLES}.{name:?}"), write.into()));
            }
            let variable = Variable { value, file: file.into(), used: false };
            self.sources.variables.insert(name, variable);
        }
        Ok(())
    }
    fn set(&mut self, file: &str, key: String, value: Value) {
        match (value, self.keys.get_mut(&key)) {
            (Value::Table(section), Some(Value::Table(before))) => {
                for (inner, value) in section {
                    self.sources.origins.insert(format!("{key}.{inner}"), file.into());
                    before.insert(inner, value);
                }
            }
            (value, _) => {
                if let Value::Table(section) = &value {
                    let of = section.keys().map(|inner| (format!("{key}.{inner}"), file.to_owned()));
                    self.sources.origins.extend(of);
                } else {
                    let below = format!("{key}.");
                    self.sources.origins.retain(|k, _| !k.starts_with(&below));
                    self.sources.origins.insert(key.clone(), file.into());
                }
                self.keys.insert(key, value);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Replaces the variables in all values.
fn replace(keys: &mut Table, sources: &mut Sources) -> Result<(), GatewayError> {
    let names: Vec<String> = sources.variables.keys().cloned().collect();
    let raw = &sources.variables.clone();
    let mut values = Values { raw, done: BTreeMap::new(), used: BTreeSet::new(), replaced: 0 };
    for name in &names {
        let file = sources.variables.get(name).map_or_else(String::new, |v| v.file.clone());
        values.of(name, &mut Vec::new(), &file, &format!("{VARIABLES}.{name}"))?;
    }
    for (key, value) in keys.iter_mut() {
        let section = if let Value::Table(section) = value {
            section.iter_mut().map(|(inner, value)| (format!("{key}.{inner}"), value)).collect()
        } else {
            vec![(key.clone(), value)]
        };
        for (key, value) in section {
            let before = std::mem::take(&mut values.used);
            let file = sources.file_of(&key);
            values.put(value, &mut Vec::new(), &file, &key)?;
            let used = std::mem::replace(&mut values.used, before);
            values.used.extend(used.iter().cloned());
            if !used.is_empty() {
                sources.uses.insert(key, used);
            }
        }
    }
    let Values { done, used, .. } = values;
    for (name, variable) in &mut sources.variables {
        variable.used = used.contains(name);
        if let Some(value) = done.get(name) {
            variable.value = value.clone();
        }
    }
    Ok(())
}

/// The values of variables.
struct Values<'a> {
    raw: &'a BTreeMap<String, Variable>,
    /// The values in which variables are replaced.
    done: BTreeMap<String, Value>,
    /// The variables that a value has named.
    used: BTreeSet<String>,
    /// Size of all values that were put in place of `${NAME}`, bytes.
    replaced: usize,
}

impl Values<'_> {
    /// The value of a variable; `within` are the variables whose values lead to this one.
    fn of(
        &mut self,
        name: &str,
        within: &mut Vec<String>,
        file: &str,
        key: &str,
    ) -> Result<Value, GatewayError> {
        if let Some(value) = self.done.get(name) {
            return Ok(value.clone());
        }
        let Some(variable) = self.raw.get(name) else {
            let message = format!(
                "${{{name}}} has no value: write {name} = … under [variables], here or in a file that includes this one"
            );
            return Err(wrong(file, key, message));
        };
        if within.iter().any(|n| n == name) {
            let circle = within.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" needs ");
            return Err(wrong(&variable.file, &format!("{VARIABLES}.{name}"), format!("a circle: {circle}")));
        }
        if within.len() >= DEEPEST {
            let message =
                format!("more than {DEEPEST} variables need each other in turn: write the value of one");
            return Err(wrong(&variable.file, &format!("{VARIABLES}.{name}"), message));
        }
        let mut value = variable.value.clone();
        within.push(name.into());
        self.put(&mut value, within, &variable.file, &format!("{VARIABLES}.{name}"))?;
        within.pop();
        self.done.insert(name.into(), value.clone());
        Ok(value)
    }
    /// Replaces the variables in a value.
    fn put(
        &mut self,
        value: &mut Value,
        within: &mut Vec<String>,
        file: &str,
        key: &str,
    ) -> Result<(), GatewayError> {
        match value {
            Value::String(text) if text.contains("${") => *value = self.fill(text, within, file, key)?,
            Value::Array(list) => {
                for (n, value) in list.iter_mut().enumerate() {
                    self.put(value, within, file, &format!("{key}[{n}]"))?;
                }
            }
            Value::Table(table) => {
                for (inner, value) in table.iter_mut() {
                    self.put(value, within, file, &format!("{key}.{inner}"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }
    /// The value of a text with variables: the value of a variable if the text is `${NAME}` and nothing else, otherwise a text.
    fn fill(
        &mut self,
        text: &str,
        within: &mut Vec<String>,
        file: &str,
        key: &str,
    ) -> Result<Value, GatewayError> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                filled = filled + before + "${";
                rest = after;
                continue;
            }
            let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
                let message =
                    format!("{text:?}: write ${{NAME}} for a variable, or $${{ where none is meant");
                return Err(wrong(file, key, message));
            };
            let value = self.of(name, within, file, key)?;
            self.used.insert(name.into());
            self.replaced += value.to_string().len();
            if self.replaced > MOST_REPLACED {
                return Err(wrong(
                    file,
                    key,
                    "the values of variables exceed 1 MiB in all: use fewer".into(),
                ));
            }
            if before.is_empty() && filled.is_empty() && behind.is_empty() {
                return Ok(value);
            }
            filled += before;
            match value {
                Value::String(text) => filled += &text,
                Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => filled += &value.to_string(),
                _ => {
                    let message =
                        format!("${{{name}}} is a list or a table, which cannot stand within a text");
                    return Err(wrong(file, key, message));
                }
            }
            rest = behind;
        }
        Ok(Value::String(filled + rest))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::PathBuf;

    /// What a configuration of these files says; the first one is read.
    fn read(files: &[(&str, &str)]) -> Result<Config, String> {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (PathBuf::from(name), (*text).to_owned())).collect();
        let (first, text) = &files[0];
        let found = |path: &std::path::Path| {
            let file = files.iter().find(|(name, _)| name == path).ok_or("cannot read it")?;
            Ok(file.clone())
        };
        Config::assemble(&first.display().to_string(), text, &found).map_err(|e| e.to_string())
    }

    const TEMPLATE: &str = r#"
include = ["more/limits.toml"]
name = "t-${terminal}"
[variables]
up = "5 Mbit/s"
flows = "${all}"
all = 300
[terrestrial]
interface = "lan.${terminal}"
networks = "${networks}"
[satellite]
interface = "sat0"
rate = "${up}"
cc = { name = "peach", reading = "improved" }
[limits]
flows = "${flows}"
"#;
    const LIMITS: &str = "[limits]\nflows = 7\nbuffer = \"64 KiB\"\n";
    const TERMINAL: &str = r#"
include = ["template.toml"]
[variables]
terminal = 17
networks = ["10.17.0.0/24"]
up = "2 Mbit/s"
[satellite]
cc = "bbr"
"#;

    #[test]
    fn a_template_takes_the_values_of_its_terminal() {
        let files = [("a/t17.toml", TERMINAL), ("a/template.toml", TEMPLATE), ("a/more/limits.toml", LIMITS)];
        let c = read(&files).unwrap();
        assert_eq!((c.name.as_str(), c.host_interfaces()[0].as_str()), ("t-17", "lan.17"));
        assert_eq!(c.terrestrial.as_ref().unwrap().networks, ["10.17.0.0/24".parse().unwrap()]);
        assert_eq!(c.satellite.rate.unwrap().bits_per_sec(), 2_000_000);
        assert_eq!(c.endpoint.cc.name(), "bbr", "the value of a key is replaced as a whole");
        assert_eq!((c.limits.flows, c.limits.buffer.0), (300, 64 << 10), "sections are merged");
        assert_eq!(c.sources.files, files.map(|(name, _)| name));
        let up = &c.sources.variables["up"];
        assert_eq!((up.value.as_str(), up.file.as_str(), up.used), (Some("2 Mbit/s"), "a/t17.toml", true));
    }

    #[test]
    fn a_dollar_sign_is_nothing_special_alone() {
        let text = "include = []\n[terrestrial]\ninterface = \"a$b$${c}$\"\n[satellite]\ninterface = \"s\"\n[variables]\nspare = 1\n";
        let c = Config::parse("g.toml", text).unwrap();
        assert_eq!(c.host_interfaces(), ["a$b${c}$"]);
        assert!(!c.sources.variables["spare"].used);
    }

    #[test]
    fn refusals_name_the_file_that_has_the_value() {
        let of = |terminal: &str, template: &str| {
            read(&[("t17.toml", terminal), ("template.toml", template), ("more/limits.toml", LIMITS)])
                .unwrap_err()
        };
        for (terminal, template, expected) in [
            (
                "include = [\"template.toml\"]".into(),
                TEMPLATE.to_owned(),
                "template.toml: name: ${terminal} has no value: write terminal = … under [variables]",
            ),
            (
                TERMINAL.replace("\"2 Mbit/s\"", "\"2 bit/s\""),
                TEMPLATE.into(),
                "template.toml: satellite.rate: write a rate of at least 8 kbit/s, such as \"10 Mbit/s\", or \"unlimited\" (up is \"2 \
                 bit/s\" in t17.toml)",
            ),
            (
                TERMINAL.into(),
                TEMPLATE.replace("all = 300", "all = \"${flows}\""),
                "template.toml: variables.all: a circle: all needs flows needs all",
            ),
            (
                TERMINAL.into(),
                TEMPLATE.replace("sat0", "${networks}0"),
                "template.toml: satellite.interface: ${networks} is a list or a table, which cannot stand within a text",
            ),
            (
                TERMINAL.into(),
                TEMPLATE.replace("sat0", "sat${0"),
                "template.toml: satellite.interface: \"sat${0\": write ${NAME} for a variable, or $${ where none is meant",
            ),
            (
                TERMINAL.into(),
                TEMPLATE.replace("sat0", "s/0"),
                "template.toml: satellite.interface: this is no name",
            ),
            (
                TERMINAL.into(),
                format!("{TEMPLATE}nonsense = 1\n"),
                "template.toml: limits.nonsense: unknown field",
            ),
            (format!("{TERMINAL}mtu = 5\n"), TEMPLATE.into(), "t17.toml: satellite.mtu: write at least 576"),
            (TERMINAL.into(), "x = ".into(), "template.toml: TOML parse error at line 1"),
            (
                TERMINAL.replace("template.toml", "tmplate.toml"),
                TEMPLATE.into(),
                "t17.toml: include[0]: tmplate.toml: cannot read it",
            ),
            (
                TERMINAL.into(),
                TEMPLATE.replace("more/limits.toml", "t17.toml"),
                "template.toml: include[0]: a circle: t17.toml includes template.toml includes t17.toml: leave it out of one of them",
            ),
            (
                TERMINAL.replace("[\"template.toml\"]", "5"),
                TEMPLATE.into(),
                "t17.toml: include: write a list of files",
            ),
            (
                TERMINAL.replace("template", "${t}"),
                TEMPLATE.into(),
                "t17.toml: include[0]: \"${t}.toml\": a path holds no variables",
            ),
            ("variables = 5".into(), TEMPLATE.into(), "t17.toml: variables: write a section [variables]"),
            (
                "[variables]\n\"a b\" = 5".into(),
                TEMPLATE.into(),
                "t17.toml: variables.\"a b\": a name has letters",
            ),
        ] {
            let said = of(&terminal, &template);
            assert!(said.starts_with(expected) && !said.contains('\n'), "{said}\ninstead of\n{expected}");
        }
        let said = Config::parse("g.toml", "include = [\"a\\nb\"]").unwrap_err().to_string();
        assert_eq!(said, "g.toml: include[0]: a b: a text alone includes no file");
        let many = format!("include = [{}]\n{LIMITS}", "\"l\", ".repeat(64));
        let said = read(&[("g.toml", &many), ("l", "")]).unwrap_err();
        assert_eq!(said, "l: include: more than 64 files: include fewer");
        // Each of the variables v0, v1, … has the next one in its value.
        let chain = |count: u32, value: &str| {
            let line = |n: u32| format!("v{n} = {}\n", value.replace("next", &format!("v{}", n + 1)));
            let lines: String = (0..count).map(line).collect();
            let text = format!("[variables]\nv{count} = \"{}\"\n{lines}", "x".repeat(100));
            Config::parse("g.toml", &text).unwrap_err().to_string()
        };
        let said = chain(16, "\"${next}\"");
        assert!(
            said.starts_with("g.toml: variables.v16: more than 16 variables need each other in turn"),
            "{said}"
        );
        for value in ["\"${next}${next}\"", "[\"${next}\", \"${next}\"]"] {
            let said = chain(15, value);
            assert!(said.ends_with(": the values of variables exceed 1 MiB in all: use fewer"), "{said}");
        }
        let said = Config::parse("g.toml", "include = [\"/etc/passwd\"]").unwrap_err().to_string();
        assert_eq!(said, "g.toml: include[0]: /etc/passwd: a text alone includes no file");
    }
}
