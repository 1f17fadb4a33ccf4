//! Proof that connections of hosts reach the gateway, and that its own packets pass. Once it is seen that they do not, nothing is
//! intercepted.
//!
//! ```text
//! Prover     a thread that looks every second: it opens a connection of its own, and reads the counters of the rules
//! Connector  that connection: it arrives at an interface of its own as those of hosts do, and is intercepted, accepted and answered
//! Judge      what follows: does interception work, is that in doubt, or are connections to be forwarded unsplit
//! Proof      the judge's verdict, for the gateway, its status, log and metrics
//! ```
//! A firewall may have rules for single interfaces: it may drop the gateway's own connection and let those of hosts pass, or the
//! reverse. The SYNs of hosts therefore decide: the gateway's rules count those that were intercepted, and those that firewalls have let
//! pass.

mod connector;
mod counters;
mod judge;
mod tracking;

pub use judge::{ProofState, ProofStatus};

use crate::config::Config;
use crate::error::GatewayError;
use crate::log::Level;
use crate::poll::{Poll, Readiness};
use crate::rules;
use crate::slot::Slot;
use crate::worker::Worker;
use connector::Connector;
use judge::{Interfaces, Judge};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{Host, HostConfig, Secret};
use skyhaul_net::nftables::Changes;
use skyhaul_net::routing;
use skyhaul_net::tun::{Tun, TunConfig};
use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the gateway answers to its own connection.
const ANSWER: &[u8] = b"skyhaul\n";
/// Longest time between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// Least time between two changes of rules or routes that discard what was known: on a busy router routes change all the time, and the
/// gateway's own connection must have the time to fail twice, a little over 3 s.
const CALM: Duration = Duration::from_secs(5);
/// Least time between two reports that routes, interfaces or addresses have changed.
const ROUTES_INTERVAL: Duration = Duration::from_millis(50);
/// Time between attempts to get the interface of the gateway's own connection back.
const RENEWAL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);

/// Answers an accepted connection if it is the gateway's own; returns whether it is.
pub(crate) fn answers(mut stream: &TcpStream, client: IpAddr, slot: Slot) -> bool {
    let own = client == IpAddr::V4(slot.client());
    if own {
        let _ = stream.write_all(ANSWER);
        // With the linger time of zero that the listener sets, closing would discard what was written.
        let _ = socket2::SockRef::from(stream).set_linger(None);
    }
    own
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) level: Level,
    pub(crate) event: &'static str,
    pub(crate) line: String,
}

#[derive(Debug, Default)]
struct Shared {
    judge: Judge,
    news: VecDeque<News>,
    /// Routes, interfaces or addresses have changed since the gateway last looked at its own routes.
    routes_changed: bool,
}

/// The verdict, shared by threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proof(Arc<Mutex<Shared>>);

impl Proof {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether new connections may be intercepted.
    pub(crate) fn admits(&self) -> bool {
        self.lock().judge.admits()
    }
    /// Whether the rules are to track connections, in a zone of conntrack of their own.
    pub(crate) fn tracks(&self) -> bool {
        self.lock().judge.is_tracked()
    }
    pub(crate) fn status(&self, now: Instant) -> ProofStatus {
        self.lock().judge.status(now)
    }
    /// Whether routes, interfaces or addresses have changed since the last call.
    pub(crate) fn routes_changed(&self) -> bool {
        std::mem::take(&mut self.lock().routes_changed)
    }
    /// Takes the result of a look at routes and routing rules: true if some were missing and are restored, an error if they cannot be.
    pub(crate) fn routes(&self, now: Instant, renewed: &Result<bool, GatewayError>) {
        self.judge(|j| j.routes(now, renewed));
    }
    pub(crate) fn next_news(&self) -> Option<News> {
        self.lock().news.pop_front()
    }
    fn judge(&self, judge: impl FnOnce(&mut Judge) -> Option<News>) {
        let mut shared = self.lock();
        let news = judge(&mut shared.judge);
        shared.news.extend(news);
    }
}

/// Notices of the kernel: others have changed rules of nftables, or routes, interfaces or addresses.
struct Notices {
    rules: Option<Changes>,
    routes: Option<routing::Changes>,
    poll: Poll,
    events: Vec<Readiness>,
}

impl Notices {
    /// Where the kernel refuses notices, only the regular looks show what a change has caused.
    fn new() -> Result<Self, GatewayError> {
        let (rules, routes) = (Changes::beside(rules::PREFIX).ok(), routing::Changes::new().ok());
        let poll = Poll::new()?;
        rules.iter().try_for_each(|r| poll.watch(r, 0))?;
        routes.iter().try_for_each(|r| poll.watch(r, 1))?;
        Ok(Self { rules, routes, poll, events: Vec::new() })
    }
    /// Whether rules have changed since the last call, and whether routes, interfaces or addresses have.
    fn take(&mut self) -> [bool; 2] {
        self.events.clear();
        let _ = self.poll.take(&mut self.events);
        let rules = self.rules.as_mut().is_some_and(|c| c.take().0);
        [rules, self.routes.as_mut().is_some_and(routing::Changes::take)]
    }
}

/// The thread of the proof; dropping this ends the thread.
#[derive(Debug)]
pub(crate) struct Prover {
    _worker: Worker,
}

impl Prover {
    /// Starts in the calling thread's network namespace; `wake` is called after each look and when routes have changed, so that
    /// the gateway sees to its routes and to the verdict. Returns `None` if the configuration intercepts no connections.
    ///
    /// # Errors
    /// If the system refuses the interface, random numbers, descriptors or the thread.
    pub(crate) fn start(
        config: &Config,
        proof: Proof,
        wake: impl Fn() + Clone + Send + 'static,
    ) -> Result<Option<Self>, GatewayError> {
        if config.intercepted().is_none() {
            return Ok(None);
        }
        let device = TunConfig {
            name: Some(rules::own_interface(config)),
            addresses: vec![(config.slot.own_address().into(), 31)],
            mtu: config.satellite.mtu,
            offload: false,
        };
        let secret = Secret::draw().map_err(GatewayError::os("draw random numbers"))?;
        let host = Host::new(HostConfig::new(vec![config.slot.client().into()], secret));
        let mut driver = Driver::new(Tun::open(&device)?, host)?;
        let mut notices = Notices::new()?;
        driver.also_wait_for(notices.poll.descriptor())?;
        let (table, tun) = (rules::table(config), config.interface());
        let (link, mark) = (config.satellite.interface.clone(), config.slot.far_mark());
        let mut connector = Connector::new(config.fallback.clone(), config.slot);
        let (look_proof, look_wake) = (proof.clone(), wake.clone());
        let mut due = Instant::ZERO;
        let (mut changed, mut calm_at, mut routes_at) = (false, Instant::ZERO, Instant::ZERO);
        let mut routes_changed = false;
        let mut look = move |now: Instant, connector: &mut Connector, host: &mut Host| {
            let [rules, routes] = notices.take();
            changed |= rules || routes;
            routes_changed |= routes;
            if routes_changed && now >= routes_at {
                (routes_changed, routes_at) = (false, now + ROUTES_INTERVAL);
                look_proof.lock().routes_changed = true;
                look_wake();
            }
            let own = connector.result();
            // A change discards what was known, but not more often than once in `CALM`.
            let anew = changed && now >= calm_at;
            if anew || own.is_some() || now >= due {
                due = now + EVERY;
                let counts = counters::read(&table);
                let names = Interfaces { tun: &tun, link: &link, mark };
                look_proof.judge(|j| {
                    j.look(now, anew, own, counts);
                    j.decide(now, names)
                });
                let full = tracking::full();
                if look_proof.lock().judge.asks_who_tracks(full, anew) {
                    let others = tracking::others_need_it();
                    look_proof.judge(|j| j.tracks(full, others));
                }
                if anew {
                    (changed, calm_at) = (false, now + CALM);
                    connector.hurry(now, host);
                }
                look_wake();
            }
        };
        let work = move |stop: &AtomicBool| {
            loop {
                let ended = driver.run(&mut connector, |now, connector, host| {
                    look(now, connector, host);
                    stop.load(Ordering::Relaxed)
                });
                let Err(e) = ended else { return };
                // The interface was removed, or failed.
                proof.judge(|j| Some(j.blind(Clock::now(), &e.to_string())));
                wake();
                while Tun::open(&device).and_then(|tun| driver.renew(tun)).is_err() {
                    std::thread::sleep(RENEWAL_INTERVAL);
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        };
        Ok(Some(Self { _worker: Worker::start("proof", work)? }))
    }
}
