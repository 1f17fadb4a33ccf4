//! The threads of a gateway other than its first, each with a part of the connections.

use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::status::Status;
use skyhaul_net::driver::Driver;
use skyhaul_net::wait::Waker;
use skyhaul_net::{Clock, NetError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A thread drops this value when it ends, even by a panic: the end is noted and the first thread wakes.
struct EndNotice(Arc<AtomicBool>, Waker);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.wake();
    }
}

/// The threads other than the first one. Dropping this value ends them.
#[derive(Debug)]
pub(crate) struct Members {
    threads: Vec<JoinHandle<(Result<(), NetError>, Status)>>,
    /// Whether one of the threads has ended.
    ended: Arc<AtomicBool>,
    wakers: Vec<Waker>,
    /// Whether the threads are to end.
    over: Arc<AtomicBool>,
}

impl Members {
    /// Starts a thread for each part, in the calling thread's network namespace. `first` wakes the first thread of the gateway.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(crate) fn start(parts: Vec<(Gateway, Driver)>, first: &Waker) -> Result<Self, GatewayError> {
        let flag = || Arc::new(AtomicBool::new(false));
        let mut all = Self { threads: Vec::new(), ended: flag(), wakers: Vec::new(), over: flag() };
        for (n, (mut gateway, mut driver)) in parts.into_iter().enumerate() {
            all.wakers.push(driver.waker());
            let (notice, over) = (EndNotice(all.ended.clone(), first.clone()), all.over.clone());
            let work = move || {
                let _notice = notice;
                let ran = driver.run(&mut gateway, |now, gateway, _| {
                    if over.load(Ordering::Acquire) {
                        gateway.end_at(now);
                    }
                    false
                });
                (ran, gateway.part(Clock::now(), driver.host(), false))
            };
            let thread = std::thread::Builder::new().name(format!("gateway-{}", n + 1)).spawn(work);
            all.threads.push(thread.map_err(GatewayError::os("start a thread"))?);
        }
        Ok(all)
    }
    /// Whether one of the threads has ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
    /// Ends the threads. Returns the last state of each, and the first failure.
    pub(crate) fn end(&mut self) -> (Vec<Status>, Option<GatewayError>) {
        self.over.store(true, Ordering::Release);
        self.wakers.iter().for_each(Waker::wake);
        let (mut last, mut failure) = (Vec::new(), None);
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok((ran, status)) => {
                    last.push(status);
                    failure = failure.or(ran.err().map(GatewayError::from));
                }
                Err(_) => failure = failure.or(Some(GatewayError::panicked())),
            }
        }
        (last, failure)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.end();
    }
}
