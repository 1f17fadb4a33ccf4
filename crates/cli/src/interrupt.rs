//! Ctrl-C: the first one asks for an orderly end, the second one ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Wakes whoever waits for something else than Ctrl-C.
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Starts to listen. Without effect if that is not possible: then Ctrl-C ends the program as usual.
pub(crate) fn listen() {
    static ONCE: OnceLock<bool> = OnceLock::new();
    ONCE.get_or_init(|| {
        ctrlc::set_handler(|| {
            if REQUESTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            if let Some(wake) = &*WAKE.lock().unwrap_or_else(PoisonError::into_inner) {
                wake();
            }
        })
        .is_ok()
    });
}

/// Starts to listen, and calls `wake` when Ctrl-C is pressed.
#[cfg(target_os = "linux")]
pub(crate) fn listen_and(wake: impl Fn() + Send + 'static) {
    *WAKE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
    listen();
}

/// Set once Ctrl-C was pressed.
pub(crate) fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// True once Ctrl-C was pressed.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
