//! A thread that serves the gateway, and ends when its owner is dropped.

use crate::error::GatewayError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A thread; dropping this ends the thread.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts `work` in the calling thread's network namespace. `work` returns soon after its argument has become true.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<Self, GatewayError> {
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&until));
        let thread = thread.map_err(GatewayError::os("start a thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
    /// Whether the thread has ended before it was told to, which it does only by a panic.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
