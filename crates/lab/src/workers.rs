//! Threads that share a list of work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `work` for the numbers below `n` on at most `threads` threads; results are in the order of the numbers. A thread
/// begins nothing more once `more` is false, or `work` gave nothing.
pub(crate) fn share<T: Send>(
    n: usize,
    threads: usize,
    more: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(usize) -> Option<T> + Sync),
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..n).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, n.max(1)) {
            scope.spawn(|| {
                while more() {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    let Some(result) = work(i) else { break };
                    done.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}
