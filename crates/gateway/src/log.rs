//! Logs of a gateway: a line of JSON per finished connection, and per event of the gateway itself.
//!
//! A thread writes the lines. The data path never waits for it: lines that do not fit into its queue are dropped and counted.

use crate::error::GatewayError;
use serde::Deserialize;
use serde_json::{Value, json};
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

/// A file that is open for lines, with its path, or standard error.
#[derive(Debug)]
enum Open {
    Stderr,
    File(Arc<File>, PathBuf),
}

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
    flows: Option<Open>,
    events: Option<Open>,
}

/// The logs of a gateway. Copies write to the same files.
#[derive(Clone, Debug)]
pub struct Log {
    to: SyncSender<Message>,
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
    /// Writes to other outputs, which were opened by this configuration, and returns the log for these outputs.
    ///
    /// # Panics
    /// Never: the log is there until the writer is dropped.
    pub(crate) fn switch(&mut self, config: &LogConfig, outputs: Outputs) -> Log {
        let log = self.log.as_mut().expect("is there until it is dropped");
        log.config = config.clone();
        // Behind the lines that wait, which belong in the old files.
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
        let mut all = Self::default();
        if let Some(target) = &config.flows {
            all.flows = Some(Open::new("log.flows", target)?);
        }
        all.events = match (&config.events, &all.flows) {
            (None, _) => None,
            // Two logs in one file share one descriptor.
            (Some(Target::File(path)), Some(Open::File(file, other))) if path == other => {
                Some(Open::File(file.clone(), path.clone()))
            }
            (Some(target), _) => Some(Open::new("log.events", target)?),
        };
        Ok(all)
    }
}

impl Open {
    fn new(key: &str, target: &Target) -> Result<Self, GatewayError> {
        let Target::File(path) = target else { return Ok(Self::Stderr) };
        // The file holds users' addresses: only the gateway's user may read it.
        let file = File::options().create(true).append(true).mode(0o600).open(path);
        let file = file.map_err(GatewayError::os(format!("open {}, as {key} says", path.display())))?;
        Ok(Self::File(Arc::new(file), path.clone()))
    }
    fn write(&self, priority: &str, line: &str) -> std::io::Result<()> {
        match self {
            Self::Stderr => std::io::stderr().lock().write_all(format!("{priority}{line}\n").as_bytes()),
            Self::File(file, _) => (&**file).write_all(format!("{line}\n").as_bytes()),
        }
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
            Message::Flow(level, line) => (&outputs.flows, level, line),
            Message::Event(level, line) => (&outputs.events, level, line),
        };
        let Some(output) = output else { continue };
        let priority = if journal { level.priority() } else { "" };
        let mut done = output.write(priority, &line);
        let missed = lost.swap(0, Ordering::Relaxed);
        if missed > 0 && done.is_ok() {
            let line = json!({
                "time": rfc3339_millis(Clock::wall_nanos()), "level": "warning", "event": "lines-lost", "lines": missed
            });
            let priority = if journal { Level::Warning.priority() } else { "" };
            done = output.write(priority, &line.to_string());
        }
        // One message until the outputs are switched: a full disk would cause one for each connection.
        if let Err(e) = done
            && !std::mem::replace(&mut failed, true)
        {
            eprintln!("gateway: cannot write the log: {e}");
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
            level: Level::Info,
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
    fn places_are_stderr_or_a_path_from_the_root() {
        assert_eq!(Target::try_from("stderr".to_owned()), Ok(Target::Stderr));
        assert_eq!(Target::try_from("/a/b".to_owned()), Ok(Target::File("/a/b".into())));
        for wrong in ["", "stdout", "flows.jsonl", "/", "/a/.."] {
            assert!(Target::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
