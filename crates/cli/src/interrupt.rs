//! Ctrl-C: the first one asks for an orderly end, the second one ends at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Starts to listen. Without effect if that is not possible: then Ctrl-C ends the program as usual.
pub(crate) fn listen() {
    static ONCE: OnceLock<bool> = OnceLock::new();
    ONCE.get_or_init(|| {
        ctrlc::set_handler(|| {
            if REQUESTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        })
        .is_ok()
    });
}

/// Set once Ctrl-C was pressed.
pub(crate) fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// True once Ctrl-C was pressed.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
