//! Ctrl-C, and SIGTERM from service managers: the first signal requests an orderly end, the second ends the program
//! at once.
//!
//! The two are handled separately. A terminal sends Ctrl-C to every program in its foreground, but a service manager
//! sends SIGTERM only to the process that it started, which must pass it on to its children. SIGHUP is left alone, so
//! that `nohup` works. Handlers do not survive `exec`: child programs see the usual signals.

#[cfg(unix)]
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// Wakes a thread that waits for something other than signals.
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Exit status after a signal: 128 plus its number.
const BY_CTRL_C: u8 = 130;
const BY_SIGTERM: u8 = 143;

/// Installs the signal handlers. If that fails, the signals end the program as usual.
pub(crate) fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        #[cfg(not(unix))]
        let _ = ctrlc::set_handler(on_signal);
        #[cfg(unix)]
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    TERMINATED.fetch_or(signal == SIGTERM, Ordering::SeqCst);
                    on_signal();
                }
            });
        }
    });
}

/// Handles one of the signals.
fn on_signal() {
    if REQUESTED.swap(true, Ordering::SeqCst) {
        std::process::exit(status().into());
    }
    if let Some(wake) = &*WAKE.lock().unwrap_or_else(PoisonError::into_inner) {
        wake();
    }
}

/// Installs the signal handlers, which call `wake`.
#[cfg(target_os = "linux")]
pub(crate) fn listen_and(wake: impl Fn() + Send + 'static) {
    *WAKE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
    listen();
}

/// Set once a signal has come.
#[cfg(feature = "simulation")]
pub(crate) fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// True once a signal has come.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// True once SIGTERM has come, which child programs do not receive.
#[cfg(target_os = "linux")]
pub(crate) fn terminated() -> bool {
    TERMINATED.load(Ordering::SeqCst)
}

/// Exit status of a program stopped before its end.
pub(crate) fn status() -> u8 {
    if TERMINATED.load(Ordering::SeqCst) { BY_SIGTERM } else { BY_CTRL_C }
}
