//! Output of a running stack. A thread of its own writes it, since a reader that stops reading must not stop the
//! stack: texts that find the queue full are dropped, and a warning says how many.

use crate::interrupt;
use crate::output::{note, print, warn};
use crate::stop::Stop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of texts that wait for the reader; a text is an interval of all connections, or a document.
const QUEUE: usize = 256;
/// Polling interval for a signal while the last output waits for its reader.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long the last output waits for its reader after a signal.
const LAST_WAIT: Duration = Duration::from_secs(1);

enum Text {
    Output(String),
    Warning(String),
}

/// Writes on its own thread. Only [`Self::finish`] waits.
pub(crate) struct Printer {
    texts: SyncSender<Text>,
    /// Texts dropped since the last warning of them.
    dropped: Arc<AtomicU64>,
    /// The error that ended the thread.
    stop: Arc<Mutex<Option<Stop>>>,
    /// Disconnected when everything has been written.
    done: Receiver<()>,
    /// The last text waits for its reader for [`LAST_WAIT`] even without a signal.
    waits_briefly: bool,
}

impl Printer {
    /// A printer to standard output. `wake` is called if standard output can no longer be written.
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
            note(text);
            Ok(())
        };
        Ok(Self { waits_briefly: true, ..Self::with(|| {}, write)? })
    }

    fn with(
        wake: impl Fn() + Send + 'static,
        mut write: impl FnMut(&str) -> Result<(), Stop> + Send + 'static,
    ) -> Result<Self, Stop> {
        let (texts, from) = mpsc::sync_channel(QUEUE);
        let (running, done) = mpsc::channel();
        let (dropped, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
        let (unreported, failed) = (dropped.clone(), stop.clone());
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
                let n = unreported.swap(0, Ordering::Relaxed);
                if n > 0 {
                    warn(&format!("{n} parts of the output were dropped: nobody read fast enough"));
                }
            }
        };
        std::thread::Builder::new()
            .name("output".into())
            .spawn(work)
            .map_err(|e| Stop::bad(format!("cannot start a thread: {}", skyhaul_study::io_words(&e))))?;
        Ok(Self { texts, dropped, stop, done, waits_briefly: false })
    }

    /// Queues a text for standard output, or for standard error if the printer is one [of notes](Self::of_notes).
    pub(crate) fn say(&self, text: String) {
        self.queue(Text::Output(text));
    }
    /// A line for standard error.
    pub(crate) fn warn(&self, line: String) {
        self.queue(Text::Warning(line));
    }
    fn queue(&self, text: Text) {
        // If the thread has ended, `stop` has the reason.
        if let Err(TrySendError::Full(_)) = self.texts.try_send(text) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Whether standard output can no longer be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes the last text, and waits until everything is written; after a signal only for [`LAST_WAIT`].
    ///
    /// # Errors
    /// If standard output could not be written.
    pub(crate) fn finish(self, last: String) -> Result<(), Stop> {
        let Self { texts, dropped: _, stop, done, waits_briefly } = self;
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
            if done.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            if waits_briefly || interrupt::requested() {
                waited += POLL_INTERVAL;
                if waited >= LAST_WAIT {
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
        let (reader, reads) = mpsc::channel::<()>();
        let (written, texts) = mpsc::channel();
        let write = move |text: &str| {
            // Returns once the reader is gone.
            let _ = reads.recv();
            let _ = written.send(text.to_owned());
            Ok(())
        };
        let printer = Printer::with(|| {}, write).unwrap();
        for n in 0..QUEUE + 10 {
            printer.say(n.to_string());
        }
        // One may be with the writer, the others are in the queue.
        let dropped = printer.dropped.load(Ordering::Relaxed);
        assert!((9..=10).contains(&dropped), "{dropped}");
        drop(reader);
        printer.finish("last".into()).unwrap();
        let all: Vec<String> = texts.iter().collect();
        assert_eq!((all.len() as u64 + dropped, all.last().unwrap().as_str()), (QUEUE as u64 + 11, "last"));
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
