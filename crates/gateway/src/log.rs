//! Logs of a gateway: a line of JSON per finished connection, at intervals per open one, and per event of the gateway itself.
//!
//! A thread writes the lines. The data path never waits for it: lines that do not fit into its queue, or that cannot be written, are
//! dropped and counted.

mod outputs;

use crate::error::GatewayError;
pub(crate) use outputs::Outputs;
use outputs::Which;
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_base::amount::{Size, Time};
use skyhaul_net::Clock;
use skyhaul_trace::calendar::rfc3339_millis;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of lines that wait to be written.
const QUEUE: usize = 8192;
/// Longest wait, at the end, for room in the queue, and then again for the lines in it: what takes them may stand still.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between attempts to hand the last message to a full queue.
const AGAIN: Duration = Duration::from_millis(10);

/// The section `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LogConfig {
    /// Where a line per finished connection goes; `None`: nowhere.
    pub flows: Option<Target>,
    /// Where a line per event of the gateway goes; `None`: nowhere.
    pub events: Option<Target>,
    /// Interval between lines about a connection that is open; `None`: it has none before it ends.
    pub interval: Option<Time>,
    /// The least important level that is written.
    pub level: Level,
    /// The size at which a file is renamed and a new one begins; `None`: another program rotates it, such as logrotate.
    pub rotate: Option<Size>,
    /// Number of renamed files that are kept for each file.
    pub keep: Option<u32>,
}

/// Length of the longest path of a socket, with a final zero, bytes (unix(7)).
const SOCKET_PATH: usize = 108;
/// The least value of `log.rotate`, bytes: dozens of lines.
const SMALLEST: u64 = 64_000;
/// The least value of `log.interval`.
const SHORTEST: skyhaul_base::Duration = skyhaul_base::Duration::from_secs(10);
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
        if let Some(interval) = self.interval {
            let message = if self.flows.is_none() {
                "it is for lines about connections: write log.flows, or leave it out"
            } else if self.level > Level::Info {
                "log.level leaves these lines out: write level = \"info\", or leave it out"
            } else if interval.0 < SHORTEST {
                "write at least \"10 s\", such as \"60 s\""
            } else {
                ""
            };
            if !message.is_empty() {
                return Some(("log.interval", message.into()));
            }
        }
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
    /// A datagram to the socket of a collector at this path.
    Unix(PathBuf),
    /// A datagram to a collector.
    Udp(SocketAddr),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stderr => write!(f, "standard error"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp(to) => write!(f, "udp:{to}"),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        // An absolute path: a service has no working folder to which a relative one could refer.
        let absolute = |text: &str| {
            let path = Path::new(text);
            (path.is_absolute() && path.file_name().is_some()).then(|| path.to_owned())
        };
        let found = match text.split_once(':') {
            _ if text == "stderr" => Some(Self::Stderr),
            Some(("unix", path)) => {
                absolute(path).filter(|p| p.as_os_str().len() < SOCKET_PATH).map(Self::Unix)
            }
            Some(("udp", to)) => to.parse().ok().filter(|to: &SocketAddr| to.port() != 0).map(Self::Udp),
            _ => absolute(&text).map(Self::File),
        };
        found.ok_or_else(|| {
            format!(
                "{text:?} is no place for lines: write \"stderr\", a file with its path from /, \"unix:/path\" or \"udp:127.0.0.1:9995\""
            )
        })
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

/// What the thread of the log is to do.
#[derive(Debug)]
enum Message {
    Flow(Level, String),
    Event(Level, String),
    Switch(Switch),
    Stop,
}

/// A change of the outputs.
#[derive(Debug)]
struct Switch {
    /// Number of the change, from 1: an earlier one that is still queued is not made after a later one.
    number: u64,
    outputs: Outputs,
}

/// What a log and its thread share.
#[derive(Debug, Default)]
struct Shared {
    /// Lines that were dropped, because the queue was full or they could not be written, and that no line `lines-lost` has told yet.
    untold: AtomicU64,
    /// All lines that were dropped.
    lost: AtomicU64,
    /// The change of the outputs for which the queue had no room.
    next: Mutex<Option<Switch>>,
}

impl Shared {
    fn lose(&self, lines: u64) {
        self.untold.fetch_add(lines, Ordering::Relaxed);
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }
    fn next_outputs(&self) -> MutexGuard<'_, Option<Switch>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The logs of a gateway. Copies write to the same files.
#[derive(Clone, Debug)]
pub struct Log {
    to: SyncSender<Message>,
    shared: Arc<Shared>,
    config: LogConfig,
    gateway: String,
}

/// The thread that writes the lines of a log. Dropping it writes the lines that wait; copies of the log write nothing afterwards.
#[derive(Debug)]
pub struct Writer {
    log: Option<Log>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread ends.
    over: Receiver<()>,
    /// Number of changes of the outputs so far.
    switches: u64,
}

impl Writer {
    /// Opens the files and starts to write.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn begin(config: &LogConfig, gateway: &str) -> Result<Self, GatewayError> {
        let outputs = Outputs::open(config)?;
        let (to, from) = sync_channel(QUEUE);
        let shared = Arc::<Shared>::default();
        let theirs = shared.clone();
        let (ends, over) = channel::<()>();
        let own = Own { gateway: gateway.into(), journal: std::env::var_os("JOURNAL_STREAM").is_some() };
        let thread = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || {
                let _ends = ends;
                write(&from, outputs, &theirs, &own);
            })
            .map_err(GatewayError::os("start the thread of the log"))?;
        let log = Log { to, shared, config: config.clone(), gateway: gateway.into() };
        Ok(Self { log: Some(log), thread: Some(thread), over, switches: 0 })
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
        // The message is queued behind the lines that wait: they belong in the old files. If there is no room, what takes the lines may
        // stand still, and the caller is not to.
        self.switches += 1;
        let switch = Message::Switch(Switch { number: self.switches, outputs });
        if let Err(TrySendError::Full(Message::Switch(switch))) = log.to.try_send(switch) {
            *log.shared.next_outputs() = Some(switch);
        }
        log.clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let (Some(log), Some(thread)) = (self.log.take(), self.thread.take()) else { return };
        // A thread that stands still, as one that writes to a full standard error, ends with the process.
        for _ in 0..PATIENCE.as_millis() / AGAIN.as_millis() {
            match log.to.try_send(Message::Stop) {
                Err(TrySendError::Full(_)) => std::thread::sleep(AGAIN),
                _ => {
                    if self.over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected) {
                        let _ = thread.join();
                    }
                    return;
                }
            }
        }
    }
}

/// The time of day, for lines, nanoseconds since 1970.
pub(crate) fn time_of_day() -> u64 {
    Clock::wall_nanos()
}

impl Log {
    /// Whether lines about connections of this level are written.
    #[must_use]
    pub fn wants_flows(&self, level: Level) -> bool {
        self.config.flows.is_some() && level >= self.config.level
    }
    /// Interval between lines about a connection that is open; `None`: there are none.
    #[must_use]
    pub fn interval(&self) -> Option<skyhaul_base::Duration> {
        self.config.interval.as_ref().map(|t| t.0).filter(|_| self.wants_flows(Level::Info))
    }
    /// The number of lines that were dropped since the start.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
    /// Writes a line about a connection that has ended.
    pub fn flow(&self, level: Level, line: Value) {
        self.connection(level, "flow", line);
    }
    /// Writes a line about a connection that is open.
    pub fn open_flow(&self, line: Value) {
        self.connection(Level::Info, "flow-open", line);
    }
    fn connection(&self, level: Level, event: &str, line: Value) {
        if self.wants_flows(level) {
            let line = self.line(event, level, line);
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
            self.shared.lose(1);
        }
    }
}

/// What the thread of a log knows of its gateway.
#[derive(Debug)]
struct Own {
    gateway: String,
    /// Lines on standard error begin with their priority.
    journal: bool,
}

/// Writes the lines that arrive until a message says to stop.
fn write(from: &Receiver<Message>, mut outputs: Outputs, shared: &Shared, own: &Own) {
    let (mut failed, mut switched) = (false, 0);
    for message in from {
        let waiting = shared.next_outputs().take();
        let (queued, message) = match message {
            Message::Switch(new) => (Some(new), None),
            other => (None, Some(other)),
        };
        for new in [waiting, queued].into_iter().flatten() {
            if new.number > switched {
                (outputs, failed, switched) = (new.outputs, false, new.number);
            }
        }
        let (log, level, line) = match message {
            None | Some(Message::Switch(_)) => continue,
            Some(Message::Stop) => return,
            Some(Message::Flow(level, line)) => (Which::Flows, level, line),
            Some(Message::Event(level, line)) => (Which::Events, level, line),
        };
        let priority = |level: Level| if own.journal { level.priority() } else { "" };
        let Some(mut done) = outputs.write(log, priority(level), &line) else { continue };
        if !done.whole {
            shared.lose(1);
        } else if let missed @ 1.. = shared.untold.swap(0, Ordering::Relaxed) {
            let line = json!({
                "time": rfc3339_millis(Clock::wall_nanos()),
                "level": Level::Warning.name(),
                "event": "lines-lost",
                "gateway": own.gateway,
                "lines": missed,
            });
            let told = outputs.write(log, priority(Level::Warning), &line.to_string());
            if told.as_ref().is_none_or(|t| !t.whole) {
                // The count stays for a later line.
                shared.untold.fetch_add(missed, Ordering::Relaxed);
            }
            done.complaint = done.complaint.or(told.and_then(|t| t.complaint));
        }
        // One message until the outputs are switched: a full disk would cause one for each connection.
        if let Some(e) = done.complaint
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
    fn own() -> Own {
        Own { gateway: "near".into(), journal: false }
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
        let mut write = |n: u32| {
            let line = json!({ "n": n, "text": long }).to_string();
            outputs.write(Which::Flows, "", &line).expect("a file")
        };
        let said: Vec<_> = (14..=18).map(|n| write(n).complaint.map(|e| e.to_string())).collect();
        assert_eq!(numbers("flows.jsonl"), (13..=18).collect::<Vec<_>>());
        let failed: Vec<_> = said.iter().flatten().collect();
        assert!(failed.len() == 1 && failed[0].starts_with("cannot rotate /"), "{said:?}");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn a_file_that_is_gone_begins_anew_and_a_pipe_is_not_renamed() {
        let folder = folder("gone");
        let (path, pipe) = (folder.join("flows.jsonl"), folder.join("pipe"));
        let long = json!({ "text": "x".repeat(40_000) }).to_string();
        for keep in [0, 2] {
            let config = LogConfig {
                flows: Some(Target::File(path.clone())),
                rotate: Some(Size(SMALLEST)),
                keep: Some(keep),
                ..LogConfig::default()
            };
            let mut outputs = Outputs::open(&config).expect("opens");
            for _ in 0..3 {
                let written = outputs.write(Which::Flows, "", &long).expect("a file");
                assert!(written.whole && written.complaint.is_none(), "{written:?}");
                let _ = std::fs::remove_file(&path);
            }
            // The first line was removed with its file. The next ones did not fit behind it, and began a file each.
            outputs.write(Which::Flows, "", &long).expect("a file");
            assert_eq!(lines(&path).len(), 1);
            std::fs::remove_file(&path).expect("is there");
        }
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("makes");
        let mut both = std::fs::File::options().read(true).write(true).open(&pipe).expect("opens");
        let config = LogConfig {
            flows: Some(Target::File(pipe.clone())),
            rotate: Some(Size(SMALLEST)),
            ..LogConfig::default()
        };
        let mut outputs = Outputs::open(&config).expect("opens");
        let mut room = vec![0; 1 << 16];
        for _ in 0..4 {
            assert!(outputs.write(Which::Flows, "", &long).expect("a place").whole);
            let n = std::io::Read::read(&mut both, &mut room).expect("reads");
            assert_eq!(n, long.len() + 1);
        }
        assert!(!folder.join("pipe.1").exists());
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn a_full_queue_costs_lines_and_says_so() {
        let folder = folder("full");
        let path = folder.join("flows.jsonl");
        let config = LogConfig { flows: Some(Target::File(path.clone())), ..LogConfig::default() };
        // Nobody writes yet.
        let (to, from) = sync_channel(4);
        let shared = Arc::<Shared>::default();
        let log = Log { to, shared: shared.clone(), config: config.clone(), gateway: "near".into() };
        for n in 0..10 {
            log.flow(Level::Info, json!({ "n": n }));
        }
        assert_eq!(log.lost(), 6);
        drop(log);
        write(&from, Outputs::open(&config).expect("opens"), &shared, &own());
        let all = lines(&path);
        assert_eq!(all.len(), 5);
        assert_eq!((&all[1]["gateway"], &all[1]["level"]), (&json!("near"), &json!("warning")));
        assert_eq!((&all[1]["event"], &all[1]["lines"]), (&json!("lines-lost"), &json!(6)));
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn the_last_change_of_the_outputs_holds_whichever_way_it_came() {
        let folder = folder("switches");
        let config =
            |name: &str| LogConfig { flows: Some(Target::File(folder.join(name))), ..LogConfig::default() };
        let outputs = |name: &str| Outputs::open(&config(name)).expect("opens");
        // Nobody writes yet. The first change is queued between two lines; for the second change there is no room.
        let (to, from) = sync_channel(3);
        let shared = Arc::<Shared>::default();
        let log = Log { to, shared: shared.clone(), config: config("a"), gateway: "near".into() };
        let (_, over) = channel();
        let mut writer = Writer { log: Some(log), thread: None, over, switches: 0 };
        writer.log().flow(Level::Info, json!({ "n": 1 }));
        writer.switch(&config("b"), outputs("b"));
        writer.log().flow(Level::Info, json!({ "n": 2 }));
        writer.switch(&config("c"), outputs("c"));
        assert!(shared.next_outputs().is_some());
        drop(writer);
        write(&from, outputs("a"), &shared, &own());
        let counts = ["a", "b", "c"].map(|name| lines(&folder.join(name)).len());
        assert_eq!(counts, [0, 0, 2], "an earlier change does not come after a later one");
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
        let switch = Switch { number: 1, outputs: open(path.to_str().expect("UTF-8")) };
        for message in [flow(), Message::Switch(switch), flow()] {
            to.send(message).expect("there is room");
        }
        drop(to);
        let shared = Shared::default();
        shared.lose(6);
        write(&from, open("/dev/full"), &shared, &own());
        let all = lines(&path);
        assert_eq!((all.len(), &all[1]["lines"]), (2, &json!(7)));
        assert_eq!(shared.lost.into_inner(), 7);
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn collectors_that_stand_still_cost_lines_alone() {
        use std::os::unix::net::UnixDatagram;
        let folder = folder("collector");
        let (path, pipe) = (folder.join("socket"), folder.join("pipe"));
        let begin = |target: Target| {
            Writer::begin(&LogConfig { flows: Some(target), ..LogConfig::default() }, "near")
        };
        let send = |target: Target, lines: u64| {
            let writer = begin(target).expect("opens");
            let log = writer.log();
            (0..lines).for_each(|n| log.flow(Level::Info, json!({ "n": n })));
            drop(writer);
            log.lost()
        };
        let unix = || Target::Unix(path.clone());
        assert_eq!(send(unix(), 3), 3, "nobody is there");
        // The kernel keeps a number of datagrams for a reader that reads nothing. A later line would say how many were dropped.
        let reader = UnixDatagram::bind(&path).expect("binds");
        let lost = send(unix(), 2000);
        assert!(lost > 1000, "{lost}");
        let mut room = [0; 4096];
        reader.set_nonblocking(true).expect("sets");
        let mut arrived = 0;
        while let Ok(n) = reader.recv(&mut room) {
            let line: Value = serde_json::from_slice(&room[..n]).expect("JSON");
            assert_eq!((&line["n"], &line["event"]), (&json!(arrived), &json!("flow")));
            arrived += 1;
        }
        assert_eq!(arrived, 2000 - lost);
        let reader = std::net::UdpSocket::bind("127.0.0.1:0").expect("binds");
        assert_eq!(send(Target::Udp(reader.local_addr().expect("an address")), 5), 0);
        let numbers: Vec<_> = (0..5)
            .map(|_| {
                let n = reader.recv(&mut room).expect("arrives");
                serde_json::from_slice::<Value>(&room[..n]).expect("JSON")["n"].as_u64()
            })
            .collect();
        assert_eq!(numbers, (0..5).map(Some).collect::<Vec<_>>());
        // A pipe without a reader is refused at once, and one that is full takes no more.
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("makes");
        begin(Target::File(pipe.clone())).expect_err("nobody reads");
        let _both = std::fs::File::options().read(true).write(true).open(&pipe).expect("opens");
        assert!(send(Target::File(pipe), 3000) > 1000);
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn a_line_that_was_cut_off_ends_before_the_next_one() {
        let folder = folder("torn");
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("makes");
        let mut both = std::fs::File::options().read(true).write(true).open(&pipe).expect("opens");
        let config = LogConfig { flows: Some(Target::File(pipe.clone())), ..LogConfig::default() };
        let mut outputs = Outputs::open(&config).expect("opens");
        // More than a pipe holds: a part of the line is taken.
        let long = "x".repeat(1 << 17);
        assert!(!outputs.write(Which::Flows, "", &long).expect("a place").whole);
        let mut room = vec![0; 1 << 17];
        let taken = std::io::Read::read(&mut both, &mut room).expect("reads");
        assert!(taken < long.len());
        assert!(outputs.write(Which::Flows, "", "{}").expect("a place").whole);
        assert!(outputs.write(Which::Flows, "", "{}").expect("a place").whole);
        let n = std::io::Read::read(&mut both, &mut room).expect("reads");
        assert_eq!(&room[..n], b"\n{}\n{}\n");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn places_are_stderr_or_a_path_from_the_root() {
        assert_eq!(Target::try_from("stderr".to_owned()), Ok(Target::Stderr));
        assert_eq!(Target::try_from("/a/b".to_owned()), Ok(Target::File("/a/b".into())));
        assert_eq!(Target::try_from("unix:/a/b".to_owned()), Ok(Target::Unix("/a/b".into())));
        let collector = "[fd00::1]:9995".parse().expect("an address");
        assert_eq!(Target::try_from("udp:[fd00::1]:9995".to_owned()), Ok(Target::Udp(collector)));
        let long = format!("unix:/{}", "x".repeat(SOCKET_PATH));
        for wrong in [
            "",
            "stdout",
            "flows.jsonl",
            "/",
            "/a/..",
            "unix:a",
            "udp:a:1",
            "udp:127.0.0.1:0",
            "tcp:127.0.0.1:1",
            &long,
        ] {
            assert!(Target::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
