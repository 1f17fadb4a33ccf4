//! Logs of a gateway: a line of JSON per finished connection, and per event of the gateway itself.
//!
//! A thread writes the lines. The data path never waits for it: lines that do not fit into its queue are dropped and counted.

use crate::error::GatewayError;
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_base::amount::Size;
use skyhaul_net::Clock;
use skyhaul_trace::calendar::rfc3339_millis;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Maximum number of lines that wait to be written.
const QUEUE: usize = 8192;

/// The section `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LogConfig {
    /// Where a line per finished connection goes; `None`: nowhere.
    pub flows: Option<Target>,
    /// Where a line per event of the gateway goes; `None`: nowhere.
    pub events: Option<Target>,
    /// The least important level that is written.
    pub level: Level,
    /// The size at which a file is renamed and a new one begins; `None`: another program rotates it, such as logrotate.
    pub rotate: Option<Size>,
    /// Number of renamed files that are kept for each file.
    pub keep: Option<u32>,
}

/// The least value of `log.rotate`, bytes: dozens of lines.
const SMALLEST: u64 = 64_000;
/// The greatest value of `log.keep`.
const MOST_KEPT: u32 = 999;

impl LogConfig {
    /// Number of renamed files that are kept for each file.
    #[must_use]
    pub fn kept(&self) -> u32 {
        self.keep.unwrap_or(8)
    }
    /// The first key that is wrong, and what to write.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String)> {
        let in_file = |t: &Option<Target>| matches!(t, Some(Target::File(_)));
        let Some(size) = self.rotate else {
            let message = "it counts files that log.rotate makes: write rotate = \"100 MB\", or leave it out";
            return self.keep.map(|_| ("log.keep", message.into()));
        };
        if !in_file(&self.flows) && !in_file(&self.events) {
            let message = "no log goes to a file: write log.flows or log.events with a path, or leave it out";
            return Some(("log.rotate", message.into()));
        }
        if size.0 < SMALLEST {
            return Some(("log.rotate", "write at least \"64 kB\", such as \"100 MB\"".into()));
        }
        (self.kept() > MOST_KEPT).then(|| ("log.keep", format!("write 0 to {MOST_KEPT}")))
    }
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Target {
    /// Standard error: under systemd the journal.
    Stderr,
    /// The end of this file.
    File(PathBuf),
}

impl TryFrom<String> for Target {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let path = Path::new(&text);
        match text.as_str() {
            "stderr" => Ok(Self::Stderr),
            // An absolute path: a service has no working folder to which a relative one could refer.
            _ if path.is_absolute() && path.file_name().is_some() => Ok(Self::File(path.into())),
            _ => Err(format!(
                "{text:?} is no place for lines: write \"stderr\" or a file with its path from /"
            )),
        }
    }
}

/// How important a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Everything.
    #[default]
    Info,
    /// What an operator should know.
    Warning,
    /// What an operator has to do something about.
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
    /// The priority by which the journal files a line (sd-daemon(3)).
    fn priority(self) -> &'static str {
        match self {
            Self::Info => "<6>",
            Self::Warning => "<4>",
            Self::Error => "<3>",
        }
    }
}

/// Where the lines of a log go.
#[derive(Clone, Copy, Debug)]
enum Output {
    Stderr,
    /// The file of this number.
    File(usize),
}

/// A file that is open for lines.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    /// Size of the file, or the bytes since a failed attempt to rename the file.
    size: u64,
}

/// What the thread of the log is to do.
#[derive(Debug)]
enum Message {
    Flow(Level, String),
    Event(Level, String),
    Switch(Outputs),
    Stop,
}

/// Where the lines of both logs go: open files, or standard error.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    files: Vec<OpenFile>,
    flows: Option<Output>,
    events: Option<Output>,
    /// The size at which a file is renamed, bytes, and how many renamed files are kept.
    rotation: Option<(u64, u32)>,
}

/// The logs of a gateway. Copies write to the same files.
#[derive(Clone, Debug)]
pub struct Log {
    to: SyncSender<Message>,
    /// Lines that did not fit into the queue and that no line `lines-lost` has told yet.
    lost: Arc<AtomicU64>,
    config: LogConfig,
    gateway: String,
}

/// The thread that writes the lines of a log. Dropping it writes the lines that wait; copies of the log write nothing afterwards.
#[derive(Debug)]
pub struct Writer {
    log: Option<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Opens the files and starts to write.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn begin(config: &LogConfig, gateway: &str) -> Result<Self, GatewayError> {
        let outputs = Outputs::open(config)?;
        let (to, from) = sync_channel(QUEUE);
        let lost = Arc::<AtomicU64>::default();
        let missed = lost.clone();
        let journal = std::env::var_os("JOURNAL_STREAM").is_some();
        let thread = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write(&from, outputs, &missed, journal))
            .map_err(GatewayError::os("start the thread of the log"))?;
        let log = Log { to, lost, config: config.clone(), gateway: gateway.into() };
        Ok(Self { log: Some(log), thread: Some(thread) })
    }
    /// A copy of the log.
    ///
    /// # Panics
    /// Never: the log is there until the writer is dropped.
    #[must_use]
    pub fn log(&self) -> Log {
        self.log.clone().expect("is there until it is dropped")
    }
    /// Switches to outputs that were opened for another configuration, and returns the log with that configuration.
    ///
    /// # Panics
    /// Never: the log is there until the writer is dropped.
    pub(crate) fn switch(&mut self, config: &LogConfig, outputs: Outputs) -> Log {
        let log = self.log.as_mut().expect("is there until it is dropped");
        log.config = config.clone();
        // The message is queued behind the lines that wait: they belong in the old files.
        let _ = log.to.send(Message::Switch(outputs));
        log.clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(log) = self.log.take() {
            let _ = log.to.send(Message::Stop);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Log {
    /// Whether lines about connections of this level are written.
    #[must_use]
    pub fn wants_flows(&self, level: Level) -> bool {
        self.config.flows.is_some() && level >= self.config.level
    }
    /// Writes a line about a connection.
    pub fn flow(&self, level: Level, line: Value) {
        if self.wants_flows(level) {
            let line = self.line("flow", level, line);
            self.send(Message::Flow(level, line));
        }
    }
    /// Writes a line about an event of the gateway.
    pub fn event(&self, level: Level, name: &str, more: Value) {
        if self.config.events.is_some() && level >= self.config.level {
            let line = self.line(name, level, more);
            self.send(Message::Event(level, line));
        }
    }
    fn line(&self, event: &str, level: Level, more: Value) -> String {
        let mut line = json!({
            "time": rfc3339_millis(Clock::wall_nanos()),
            "level": level.name(),
            "event": event,
            "gateway": self.gateway,
        });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        line.to_string()
    }
    fn send(&self, message: Message) {
        if let Err(TrySendError::Full(_)) = self.to.try_send(message) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Outputs {
    /// Opens the files of a configuration, even those that are open already: they may have been rotated.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub(crate) fn open(config: &LogConfig) -> Result<Self, GatewayError> {
        let rotation = config.rotate.map(|size| (size.0, config.kept()));
        let mut all = Self { rotation, ..Self::default() };
        all.flows = config.flows.as_ref().map(|t| all.output("log.flows", t)).transpose()?;
        all.events = config.events.as_ref().map(|t| all.output("log.events", t)).transpose()?;
        Ok(all)
    }
    /// Opens the file of a log, unless the other log has opened the same file.
    fn output(&mut self, key: &str, target: &Target) -> Result<Output, GatewayError> {
        let Target::File(path) = target else { return Ok(Output::Stderr) };
        if let Some(n) = self.files.iter().position(|f| f.path == *path) {
            return Ok(Output::File(n));
        }
        let opened = OpenFile::new(path);
        let opened = opened.map_err(GatewayError::os(format!("open {}, as {key} says", path.display())))?;
        self.files.push(opened);
        Ok(Output::File(self.files.len() - 1))
    }
    fn write(&mut self, output: Output, priority: &str, line: &str) -> std::io::Result<()> {
        let Output::File(n) = output else {
            return std::io::stderr().lock().write_all(format!("{priority}{line}\n").as_bytes());
        };
        let Some(file) = self.files.get_mut(n) else { return Ok(()) };
        let line = format!("{line}\n");
        let rotated = match self.rotation {
            Some((size, keep)) if file.size > 0 && file.size + line.len() as u64 > size => file.rotate(keep),
            _ => Ok(()),
        };
        file.size += line.len() as u64;
        file.file.write_all(line.as_bytes())?;
        rotated
    }
}

impl OpenFile {
    fn new(path: &Path) -> std::io::Result<Self> {
        // The file holds users' addresses: only the gateway's user may read it.
        let file = File::options().create(true).append(true).mode(0o600).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, path: path.into(), size })
    }
    /// Renames the file to `PATH.1`, the file of this name to `PATH.2`, and so on, and begins a new file. If that fails, lines still go to
    /// the old file, which grows by as much again before the next attempt.
    fn rotate(&mut self, keep: u32) -> std::io::Result<()> {
        self.size = 0;
        let path = self.path.display();
        let fail = |e: std::io::Error| {
            std::io::Error::new(e.kind(), format!("cannot rotate {path}, which grows: {e}"))
        };
        let name = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            if n > 0 {
                name.push(format!(".{n}"));
            }
            PathBuf::from(name)
        };
        if keep == 0 {
            std::fs::remove_file(&self.path).map_err(fail)?;
        }
        // From the oldest file, which the second oldest replaces, to the present one.
        for n in (0..keep).rev() {
            match std::fs::rename(name(n), name(n + 1)) {
                Err(e) if n == 0 || e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e)),
                _ => {}
            }
        }
        let new = Self::new(&self.path).map_err(fail)?;
        *self = new;
        Ok(())
    }
}

/// Writes the lines that arrive until a message says to stop. `journal`: lines on standard error begin with their priority.
fn write(from: &Receiver<Message>, mut outputs: Outputs, lost: &AtomicU64, journal: bool) {
    let mut failed = false;
    for message in from {
        let (output, level, line) = match message {
            Message::Switch(new) => {
                (outputs, failed) = (new, false);
                continue;
            }
            Message::Stop => return,
            Message::Flow(level, line) => (outputs.flows, level, line),
            Message::Event(level, line) => (outputs.events, level, line),
        };
        let Some(output) = output else { continue };
        let priority = if journal { level.priority() } else { "" };
        let mut done = outputs.write(output, priority, &line);
        // Where lines cannot be written, the count stays for a later line.
        if done.is_ok()
            && let missed @ 1.. = lost.swap(0, Ordering::Relaxed)
        {
            let line = json!({
                "time": rfc3339_millis(Clock::wall_nanos()), "level": "warning", "event": "lines-lost", "lines": missed
            });
            let priority = if journal { Level::Warning.priority() } else { "" };
            done = outputs.write(output, priority, &line.to_string());
        }
        // One message until the outputs are switched: a full disk would cause one for each connection.
        if let Err(e) = done
            && !std::mem::replace(&mut failed, true)
        {
            // Not eprintln!, which panics if standard error is closed: the other log may go to a file.
            let _ = writeln!(std::io::stderr(), "gateway: the log: {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("skyhaul-log-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }
    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).expect("is there");
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    }

    #[test]
    fn lines_go_where_they_are_to_and_rotation_loses_none() {
        let folder = folder("lines");
        let (path, old) = (folder.join("flows.jsonl"), folder.join("flows.jsonl.1"));
        let config = LogConfig {
            flows: Some(Target::File(path.clone())),
            events: Some(Target::File(path.clone())),
            ..LogConfig::default()
        };
        let mut writer = Writer::begin(&config, "near").expect("opens");
        let log = writer.log();
        log.flow(Level::Info, json!({ "n": 1 }));
        std::fs::rename(&path, &old).expect("renames");
        log.event(Level::Warning, "overload", json!({ "n": 2 }));
        let warnings = LogConfig { level: Level::Warning, ..config.clone() };
        let log = writer.switch(&warnings, Outputs::open(&warnings).expect("opens"));
        log.flow(Level::Info, json!({ "n": 3 }));
        log.flow(Level::Warning, json!({ "n": 4 }));
        drop(log);
        let lost = LogConfig { flows: Some(Target::File(folder.join("none/x"))), ..config };
        let e = Outputs::open(&lost).expect_err("no such folder").to_string();
        assert!(e.starts_with("cannot open ") && e.contains("as log.flows says"), "{e}");
        drop(writer);
        let numbers =
            |p: &Path| lines(p).iter().map(|l| l["n"].as_u64().expect("a number")).collect::<Vec<_>>();
        assert_eq!((numbers(&old), numbers(&path)), (vec![1, 2], vec![4]));
        let first = &lines(&old)[0];
        assert_eq!(
            (&first["event"], &first["gateway"], &first["level"]),
            (&json!("flow"), &json!("near"), &json!("info"))
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&path).expect("is there").permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn files_are_rotated_by_size() {
        let folder = folder("rotated");
        let path = folder.join("flows.jsonl");
        // What an earlier run has left.
        std::fs::write(&path, "{\"n\":0}\n").expect("writes");
        let config = LogConfig {
            flows: Some(Target::File(path.clone())),
            rotate: Some(Size(SMALLEST)),
            keep: Some(2),
            ..LogConfig::default()
        };
        assert_eq!(config.wrong(), None);
        let writer = Writer::begin(&config, "near").expect("opens");
        let log = writer.log();
        let long = "x".repeat(20_000);
        (1..=13).for_each(|n| log.flow(Level::Info, json!({ "n": n, "text": long })));
        drop(writer);
        let numbers = |p: &str| {
            lines(&folder.join(p)).iter().map(|l| l["n"].as_u64().expect("a number")).collect::<Vec<_>>()
        };
        assert_eq!(numbers("flows.jsonl"), [13]);
        assert_eq!((numbers("flows.jsonl.1"), numbers("flows.jsonl.2")), (vec![10, 11, 12], vec![7, 8, 9]));
        assert_eq!(std::fs::read_dir(&folder).expect("lists").count(), 3, "older ones are gone");
        // A folder in place of the renamed file: the log goes on in the same file, and says why.
        let mut outputs = Outputs::open(&LogConfig { keep: Some(1), ..config }).expect("opens");
        std::fs::remove_file(folder.join("flows.jsonl.1")).expect("removes");
        std::fs::create_dir(folder.join("flows.jsonl.1")).expect("makes");
        let output = outputs.flows.expect("a file");
        let mut write = |n: u32| outputs.write(output, "", &json!({ "n": n, "text": long }).to_string());
        let said: Vec<_> = (14..=18).map(|n| write(n).err().map(|e| e.to_string())).collect();
        assert_eq!(numbers("flows.jsonl"), (13..=18).collect::<Vec<_>>());
        let failed: Vec<_> = said.iter().flatten().collect();
        assert!(failed.len() == 1 && failed[0].starts_with("cannot rotate /"), "{said:?}");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn a_full_queue_costs_lines_and_says_so() {
        let folder = folder("full");
        let path = folder.join("flows.jsonl");
        let config = LogConfig { flows: Some(Target::File(path.clone())), ..LogConfig::default() };
        // Nobody writes yet.
        let (to, from) = sync_channel(4);
        let lost = Arc::<AtomicU64>::default();
        let log = Log { to, lost: lost.clone(), config: config.clone(), gateway: "near".into() };
        for n in 0..10 {
            log.flow(Level::Info, json!({ "n": n }));
        }
        drop(log);
        write(&from, Outputs::open(&config).expect("opens"), &lost, false);
        let all = lines(&path);
        assert_eq!(all.len(), 5);
        assert_eq!((&all[1]["event"], &all[1]["lines"]), (&json!("lines-lost"), &json!(6)));
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn lines_lost_before_a_full_disk_are_told_once_there_is_room() {
        let folder = folder("no-room");
        let path = folder.join("flows.jsonl");
        let to_file =
            |path: &str| LogConfig { flows: Some(Target::File(path.into())), ..LogConfig::default() };
        let open = |path: &str| Outputs::open(&to_file(path)).expect("opens");
        let (to, from) = sync_channel(4);
        let flow = || Message::Flow(Level::Info, "{}".into());
        for message in [flow(), Message::Switch(open(path.to_str().expect("UTF-8"))), flow()] {
            to.send(message).expect("there is room");
        }
        drop(to);
        write(&from, open("/dev/full"), &AtomicU64::new(6), false);
        let all = lines(&path);
        assert_eq!((all.len(), &all[1]["lines"]), (2, &json!(6)));
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn places_are_stderr_or_a_path_from_the_root() {
        assert_eq!(Target::try_from("stderr".to_owned()), Ok(Target::Stderr));
        assert_eq!(Target::try_from("/a/b".to_owned()), Ok(Target::File("/a/b".into())));
        for wrong in ["", "stdout", "flows.jsonl", "/", "/a/.."] {
            assert!(Target::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
