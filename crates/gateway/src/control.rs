//! How a running gateway is asked for something: a socket of the file system, a word, an answer.

use crate::error::GatewayError;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Who does not finish its word or its answer for as long is given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest word, bytes.
const LONGEST: u64 = 256;

/// A word, and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What was asked for.
    pub word: String,
    /// Takes the answer.
    pub answer: Sender<String>,
}

/// Takes what is asked.
#[derive(Debug)]
pub struct Control {
    asked: Receiver<Asked>,
    path: PathBuf,
}

fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

impl Control {
    /// Listens; `wake` is called when there is something to answer. Only the owner of the process may ask.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn open(folder: &Path, name: &str, wake: impl Fn() + Send + 'static) -> Result<Self, GatewayError> {
        let path = socket(folder, name);
        // Whoever has the lock owns it.
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
    /// The next word.
    pub fn next(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// One word and its answer; `None` if nobody takes words any more.
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

/// Asks a running gateway.
///
/// # Errors
/// If none of that name runs.
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
