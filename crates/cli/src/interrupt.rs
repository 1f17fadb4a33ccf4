//! Ctrl-C, and SIGTERM as service managers send it: the first one asks for an orderly end, the second one ends at once.
//!
//! They are listened to one by one. A terminal sends Ctrl-C to every program in its foreground, a service manager sends
//! SIGTERM to the one that it started: whoever has started others has to tell them of the latter. Signals that somebody
//! has decided to ignore (SIGHUP under `nohup`) are left alone, and handlers do not outlive `exec`: programs that we start
//! meet all of them as usual.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// Wakes whoever waits for something else than signals.
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Exit status of whoever was stopped: 128 and the number of the signal.
const BY_CTRL_C: u8 = 130;
const BY_SIGTERM: u8 = 143;

/// Starts to listen. Without effect if that is not possible: then the signals end the program as usual.
pub(crate) fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let _ = ctrlc::set_handler(ask);
        #[cfg(unix)]
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]) {
            std::thread::spawn(move || {
                for _ in signals.forever() {
                    TERMINATED.store(true, Ordering::SeqCst);
                    ask();
                }
            });
        }
    });
}

/// One of the signals has come.
fn ask() {
    if REQUESTED.swap(true, Ordering::SeqCst) {
        std::process::exit(status().into());
    }
    if let Some(wake) = &*WAKE.lock().unwrap_or_else(PoisonError::into_inner) {
        wake();
    }
}

/// Starts to listen, and calls `wake` when a signal comes.
#[cfg(target_os = "linux")]
pub(crate) fn listen_and(wake: impl Fn() + Send + 'static) {
    *WAKE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
    listen();
}

/// Set once a signal has come.
pub(crate) fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// True once a signal has come.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// True once SIGTERM has come: programs that we have started do not know of it.
#[cfg(target_os = "linux")]
pub(crate) fn terminated() -> bool {
    TERMINATED.load(Ordering::SeqCst)
}

/// Exit status of a program that was stopped before its end.
pub(crate) fn status() -> u8 {
    if TERMINATED.load(Ordering::SeqCst) { BY_SIGTERM } else { BY_CTRL_C }
}
