//! State shared by the threads of a gateway, and requests from one thread to another.
//!
//! Each thread has a gateway and a host of its own, with the connections whose ends belong to it
//! ([`skyhaul_net::host::HostConfig::owner`]). The first thread has the listeners, and answers for all threads.

use super::Gateway;
use crate::peer::Peers;
use skyhaul_base::Instant;
use skyhaul_net::host::Host;
use skyhaul_net::host::exchange::Exchange;
use skyhaul_net::wait::Waker;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A request that another thread carries out.
pub(super) type Task = Box<dyn FnOnce(Instant, &mut Gateway, &mut Host) + Send>;

/// Maximum wait for the answer of another thread.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Member {
    tasks: Sender<Task>,
    waker: OnceLock<Waker>,
}

/// The threads of a gateway, and what they share.
#[derive(Debug)]
pub(super) struct ThreadGroup {
    members: Vec<Member>,
    peers: Mutex<Peers>,
    exchange: OnceLock<Arc<Exchange>>,
    /// Number of open connections.
    pub(super) flows: AtomicUsize,
    /// Whether there is no room for more connections; the first thread decides.
    pub(super) full: AtomicBool,
    /// Number of connections that were refused because no descriptor was left.
    pub(super) turned_away: AtomicU64,
    /// Number of connections so far, from which the next one gets its number.
    pub(super) opened: AtomicU64,
}

impl ThreadGroup {
    /// A group of `size` threads, and the receiver of tasks for each of them.
    pub(super) fn new(size: usize) -> (Arc<Self>, Vec<Receiver<Task>>) {
        let (members, receivers) = (0..size)
            .map(|_| {
                let (tasks, receiver) = channel();
                (Member { tasks, waker: OnceLock::new() }, receiver)
            })
            .unzip();
        let (flows, opened) = (AtomicUsize::new(0), AtomicU64::new(0));
        let (full, exchange) = (AtomicBool::new(false), OnceLock::new());
        let turned_away = AtomicU64::new(0);
        let peers = Mutex::default();
        (Arc::new(Self { members, peers, exchange, flows, full, turned_away, opened }), receivers)
    }
    pub(super) fn size(&self) -> usize {
        self.members.len()
    }
    /// The gateways at the other end.
    pub(super) fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Sets how packets pass from one member to another.
    pub(super) fn set_exchange(&self, exchange: Arc<Exchange>) {
        let _ = self.exchange.set(exchange);
    }
    /// The number of packets that were dropped on their way from one member to another.
    pub(super) fn queues_full(&self) -> u64 {
        self.exchange.get().map_or(0, |e| e.dropped())
    }
    /// Sets how a member is woken.
    pub(super) fn set_waker(&self, member: usize, waker: Waker) {
        if let Some(member) = self.members.get(member) {
            let _ = member.waker.set(waker);
        }
    }
    pub(super) fn wake(&self, member: usize) {
        if let Some(waker) = self.members.get(member).and_then(|m| m.waker.get()) {
            waker.wake();
        }
    }
    /// Gives a member a task. If the member has ended, nothing happens.
    pub(super) fn post(&self, member: usize, task: Task) {
        if self.members.get(member).is_some_and(|m| m.tasks.send(task).is_ok()) {
            self.wake(member);
        }
    }
    /// Gives all members but `except` the same task.
    pub(super) fn tell<F>(&self, except: usize, what: F)
    where
        F: FnOnce(Instant, &mut Gateway, &mut Host) + Clone + Send + 'static,
    {
        for member in (0..self.size()).filter(|m| *m != except) {
            self.post(member, Box::new(what.clone()));
        }
    }
    /// The answers of all members but `asker` to a question. Members that have ended, or take too long, give none. Only the first
    /// thread asks, so that no two threads wait for each other.
    pub(super) fn ask<T, F>(&self, asker: usize, what: F) -> Vec<T>
    where
        T: Send + 'static,
        F: FnOnce(Instant, &Gateway, &Host) -> T + Clone + Send + 'static,
    {
        if self.size() == 1 {
            return Vec::new();
        }
        let (to, answers) = channel();
        self.tell(asker, move |now, gateway, host| drop(to.send(what(now, gateway, host))));
        // The channel closes when no member is left that could answer.
        let mut all = Vec::new();
        while let Ok(answer) = answers.recv_timeout(PATIENCE) {
            all.push(answer);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use skyhaul_net::app::App;

    #[test]
    fn a_thread_that_stands_still_is_noticed() {
        let file = "[satellite]\ninterface = \"b\"\n[[publish]]\nport = 80\nto = \"127.0.0.1:8000\"\n[limits]\nthreads = 3\n";
        let config = Config::parse("gateway.toml", file).expect("is good");
        let now = Instant::ZERO;
        let mut gateways = Gateway::all(now, &config).expect("opens nothing");
        let mut hosts = Gateway::hosts(&config).expect("random numbers");
        let mut turn = |gateways: &mut [Gateway], n: usize| {
            gateways[n].turn(now, &mut hosts[n]);
        };
        for _ in 0..2 {
            assert!(!gateways[0].all_run(), "nobody has answered yet");
            // One of the two others has many turns, the other one none.
            for _ in 0..3 {
                turn(&mut gateways, 0);
                turn(&mut gateways, 1);
                assert!(!gateways[0].all_run());
            }
            turn(&mut gateways, 2);
            assert!(gateways[0].all_run());
        }
        let alone = Config::parse("gateway.toml", &file.replace("= 3", "= 1")).expect("is good");
        assert!(Gateway::all(now, &alone).expect("opens nothing")[0].all_run());
    }
}
