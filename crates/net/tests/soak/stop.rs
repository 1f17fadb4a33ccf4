//! Ctrl-C and SIGTERM: the scene at work ends early and is not kept; a second one ends at once.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Listens. To be called before there is any other thread: all of them inherit that the signals are blocked.
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

/// True once somebody wants an end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
