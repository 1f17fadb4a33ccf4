//! The control interface of a running gateway: a Unix socket that takes one command and returns one answer.

use crate::error::GatewayError;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Timeout for reading a command, and for writing its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a command, bytes.
const LONGEST: u64 = 256;

/// A command, and the channel for its answer.
#[derive(Debug)]
pub struct Asked {
    /// The command.
    pub word: String,
    /// Takes the answer.
    pub answer: Sender<String>,
}

/// The listening control socket.
#[derive(Debug)]
pub struct Control {
    asked: Receiver<Asked>,
    path: PathBuf,
}

fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

impl Control {
    /// Listens; `wake` is called when a command has arrived. Only the owner of the process may connect.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn open(folder: &Path, name: &str, wake: impl Fn() + Send + 'static) -> Result<Self, GatewayError> {
        let path = socket(folder, name);
        // We hold the lock, so a socket of this name is a stale one.
        let _ = std::fs::remove_file(&path);
        let fail = |path: &Path| GatewayError::os(format!("make the socket {}", path.display()));
        let listener = UnixListener::bind(&path).map_err(fail(&path))?;
        let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, owner).map_err(fail(&path))?;
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if converse(&stream, &tell, &wake).is_none() {
                    return;
                }
            }
        });
        Ok(Self { asked, path })
    }
    /// The next command.
    pub fn next(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Handles one command; `None` if the gateway no longer takes commands.
fn converse(stream: &UnixStream, tell: &Sender<Asked>, wake: &impl Fn()) -> Option<()> {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let mut word = String::new();
    if BufReader::new(stream.take(LONGEST)).read_line(&mut word).is_err() {
        return Some(());
    }
    let (answer, told) = channel();
    tell.send(Asked { word: word.trim().into(), answer }).ok()?;
    wake();
    let text = told.recv_timeout(PATIENCE).unwrap_or_else(|_| "busy\n".into());
    let _ = (&*stream).write_all(text.as_bytes());
    Some(())
}

/// Sends a command to a running gateway and returns its answer.
///
/// # Errors
/// If no gateway of that name runs.
pub fn ask(folder: &Path, name: &str, word: &str) -> Result<String, GatewayError> {
    let none = |_| GatewayError::NotRunning(name.into());
    let mut stream = UnixStream::connect(socket(folder, name)).map_err(none)?;
    let mut answer = String::new();
    let mut talk = || {
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        stream.write_all(format!("{word}\n").as_bytes())?;
        stream.read_to_string(&mut answer)
    };
    talk().map_err(GatewayError::os(format!("ask the gateway {name:?}")))?;
    Ok(answer)
}
