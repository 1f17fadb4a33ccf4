//! Ctrl-C and SIGTERM: the scene in progress ends early and its result is not kept; a second signal ends the program at
//! once.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Listens for the signals in a thread. To be called before other threads start, so that they inherit the blocked signals.
pub fn listen() {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    if signals.thread_block().is_err() {
        return;
    }
    let Ok(signals) = SignalFd::new(&signals) else { return };
    std::thread::spawn(move || {
        while let Ok(Some(_)) = signals.read_signal() {
            if REQUESTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        }
    });
}

/// Whether a signal has arrived.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
