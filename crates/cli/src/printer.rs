//! Output of a running stack. A thread of its own writes it, since a reader that stops reading must not stop the
//! stack: what finds the queue full is dropped, counted and reported.

use crate::interrupt;
use crate::output::{print, tame, warn};
use crate::stop::Stop;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Texts that may wait for the reader: an interval of all connections, or a document.
const QUEUE: usize = 256;
/// Polling interval for a signal while the last output waits for its reader.
const LOOK: Duration = Duration::from_millis(50);
/// How long the last output waits for its reader after a signal.
const PATIENCE: Duration = Duration::from_secs(1);

enum Text {
    Output(String),
    Warning(String),
}

/// Writes on its own thread. Only [`Self::finish`] waits.
pub(crate) struct Printer {
    texts: SyncSender<Text>,
    lost: Arc<AtomicU64>,
    stop: Arc<Mutex<Option<Stop>>>,
    /// Disconnected when everything has been written.
    done: Receiver<()>,
    /// The last text waits for its reader only for a moment, signal or not.
    hurries: bool,
}

impl Printer {
    /// `wake` is called if standard output can no longer be written.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(crate) fn begin(wake: impl Fn() + Send + 'static) -> Result<Self, Stop> {
        Self::with(wake, print)
    }
    /// A printer to standard error. No program depends on standard error, so an error of writing stops nothing.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(crate) fn of_notes() -> Result<Self, Stop> {
        let write = |text: &str| {
            let _ = std::io::stderr().write_all(tame(text).as_bytes());
            Ok(())
        };
        Ok(Self { hurries: true, ..Self::with(|| {}, write)? })
    }

    fn with(
        wake: impl Fn() + Send + 'static,
        mut write: impl FnMut(&str) -> Result<(), Stop> + Send + 'static,
    ) -> Result<Self, Stop> {
        let (texts, from) = mpsc::sync_channel(QUEUE);
        let (running, done) = mpsc::channel();
        let (lost, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
        let (missed, failed) = (lost.clone(), stop.clone());
        let work = move || {
            let _running = running;
            for text in from {
                match text {
                    Text::Output(text) => {
                        if let Err(e) = write(&text) {
                            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                            return wake();
                        }
                    }
                    Text::Warning(line) => warn(&line),
                }
                let missed = missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    warn(&format!("{missed} parts of the output were dropped: nobody read fast enough"));
                }
            }
        };
        std::thread::Builder::new()
            .name("output".into())
            .spawn(work)
            .map_err(|e| Stop::bad(format!("cannot start a thread: {}", skyhaul_study::io_words(&e))))?;
        Ok(Self { texts, lost, stop, done, hurries: false })
    }

    /// Queues a text for standard output, or for standard error if the printer is one [of notes](Self::of_notes).
    pub(crate) fn say(&self, text: String) {
        self.give(Text::Output(text));
    }
    /// A line for standard error.
    pub(crate) fn warn(&self, line: String) {
        self.give(Text::Warning(line));
    }
    fn give(&self, text: Text) {
        // Without the thread nothing can be written, and the reason is known.
        if let Err(TrySendError::Full(_)) = self.texts.try_send(text) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Whether standard output can no longer be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes the last text, and waits for the reader of all; after a signal only for a moment.
    ///
    /// # Errors
    /// If standard output could not be written.
    pub(crate) fn finish(self, last: String) -> Result<(), Stop> {
        let Self { texts, lost: _, stop, done, hurries } = self;
        let (mut last, mut waited) = (Some(Text::Output(last)), Duration::ZERO);
        let mut texts = Some(texts);
        loop {
            if let (Some(text), Some(to)) = (last.take(), &texts)
                && let Err(TrySendError::Full(text)) = to.try_send(text)
            {
                last = Some(text);
            }
            if last.is_none() {
                texts = None;
            }
            if done.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            if hurries || interrupt::requested() {
                waited += LOOK;
                if waited >= PATIENCE {
                    break;
                }
            }
        }
        let stop = stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        stop.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_does_not_read_stops_nobody() {
        let (read, reads) = mpsc::channel::<()>();
        let (heard, all) = mpsc::channel();
        let write = move |text: &str| {
            // Each text waits for its reader.
            let _ = reads.recv();
            let _ = heard.send(text.to_owned());
            Ok(())
        };
        let printer = Printer::with(|| {}, write).unwrap();
        for n in 0..QUEUE + 10 {
            printer.say(n.to_string());
        }
        // One may be with the writer, the others are in the queue.
        let lost = printer.lost.load(Ordering::Relaxed);
        assert!((9..=10).contains(&lost), "{lost}");
        drop(read);
        printer.finish("last".into()).unwrap();
        let said: Vec<String> = all.iter().collect();
        assert_eq!((said.len() as u64 + lost, said.last().unwrap().as_str()), (QUEUE as u64 + 11, "last"));
    }

    #[test]
    fn what_cannot_be_written_is_reported_and_wakes_the_stack() {
        let (wake, woken) = mpsc::channel();
        let printer = Printer::with(move || wake.send(()).unwrap(), |_| Err(Stop::Closed)).unwrap();
        printer.say("a row".into());
        woken.recv().unwrap();
        assert!(printer.has_failed());
        assert_eq!(printer.finish(String::new()), Err(Stop::Closed));
    }
}
