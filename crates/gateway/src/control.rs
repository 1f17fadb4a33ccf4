//! The control interface of a running gateway: a Unix socket that takes one command and returns one answer, or a stream.

use crate::error::GatewayError;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Timeout for reading a command, and for writing its answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout for the answer to a command that takes time.
pub(crate) const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// The word that begins the command for a capture, whose answer is a stream.
pub(crate) const CAPTURE: &str = "capture";
/// The word that begins the command for a probe, whose answer takes time.
pub(crate) const PROBE: &str = "probe";
/// Maximum length of a command, bytes.
pub(crate) const LONGEST: u64 = 1024;

/// The answer to a command.
pub enum Answer {
    /// A text.
    Text(String),
    /// Something that a thread of its own writes.
    Stream(Box<dyn FnOnce(&UnixStream) + Send>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A command, and the channel for its answer.
#[derive(Debug)]
pub struct ControlRequest {
    /// The command.
    pub word: String,
    /// Takes the answer.
    pub answer: Sender<Answer>,
}

/// The listening control socket.
#[derive(Debug)]
pub struct Control {
    asked: Receiver<ControlRequest>,
    path: PathBuf,
}

fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

/// Removes the socket of a gateway that was killed. The caller holds its lock.
pub(crate) fn forget(folder: &Path, name: &str) {
    let _ = std::fs::remove_file(socket(folder, name));
}

impl Control {
    /// Listens; `wake` is called when a command has arrived. Only the owner of the process may connect.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn open(folder: &Path, name: &str, wake: impl Fn() + Send + 'static) -> Result<Self, GatewayError> {
        let path = socket(folder, name);
        // The caller holds the lock, so a socket of this name is stale.
        forget(folder, name);
        let fail = |path: &Path| GatewayError::os(format!("make the socket {}", path.display()));
        let listener = UnixListener::bind(&path).map_err(fail(&path))?;
        let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, owner).map_err(fail(&path))?;
        let (requests, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // No descriptor is left for now.
                let Ok(stream) = stream else {
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                if converse(stream, &requests, &wake).is_none() {
                    return;
                }
            }
        });
        Ok(Self { asked, path })
    }
    /// The next command.
    pub fn next(&self) -> Option<ControlRequest> {
        self.asked.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Handles one command; `None` if the gateway no longer takes commands.
fn converse(stream: UnixStream, requests: &Sender<ControlRequest>, wake: &impl Fn()) -> Option<()> {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let mut word = String::new();
    if BufReader::new((&stream).take(LONGEST)).read_line(&mut word).is_err() {
        return Some(());
    }
    let (answer, answered) = channel();
    let slow = word.starts_with(PROBE);
    requests.send(ControlRequest { word: word.trim().into(), answer }).ok()?;
    wake();
    let reply = move |stream: UnixStream, patience: Duration| match answered.recv_timeout(patience) {
        Ok(Answer::Text(text)) => drop((&stream).write_all(text.as_bytes())),
        Ok(Answer::Stream(write)) => write(&stream),
        Err(_) => drop((&stream).write_all(b"busy\n")),
    };
    // An answer that takes time must not delay other commands.
    if slow || word.starts_with(CAPTURE) {
        let patience = if slow { LONG_PATIENCE } else { PATIENCE };
        let _ = std::thread::Builder::new().name("control".into()).spawn(move || reply(stream, patience));
    } else {
        reply(stream, PATIENCE);
    }
    Some(())
}

/// Sends a command to a running gateway; its answer can be read from the stream.
///
/// # Errors
/// If no gateway of that name runs, or this user may not ask it.
pub(crate) fn begin(folder: &Path, name: &str, word: &str) -> Result<UnixStream, GatewayError> {
    let path = socket(folder, name);
    let mut stream = UnixStream::connect(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::PermissionDenied => GatewayError::os(format!(
            "ask the gateway {name:?} at {}, whose user or root may",
            path.display()
        ))(e),
        _ => GatewayError::NotRunning(name.into()),
    })?;
    stream
        .write_all(format!("{word}\n").as_bytes())
        .map_err(GatewayError::os(format!("ask the gateway {name:?}")))?;
    Ok(stream)
}

/// Sends a command to a running gateway and returns its answer.
///
/// # Errors
/// If no gateway of that name runs, this user may not ask it, or it does not answer.
pub fn ask(folder: &Path, name: &str, word: &str) -> Result<String, GatewayError> {
    let mut stream = begin(folder, name, word)?;
    let mut answer = String::new();
    let patience = if word.starts_with(PROBE) { LONG_PATIENCE } else { PATIENCE };
    stream
        .set_read_timeout(Some(2 * patience))
        .and_then(|()| stream.read_to_string(&mut answer))
        .map_err(GatewayError::os(format!("ask the gateway {name:?}")))?;
    Ok(answer)
}
