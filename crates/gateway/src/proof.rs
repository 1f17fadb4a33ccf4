//! Proof that connections of hosts reach the gateway, and that its own packets pass: otherwise nothing is intercepted.
//!
//! ```text
//! Prover     a thread that looks every second: it opens a connection of its own, and reads the counters of the rules
//! Connector  that connection, which arrives at an interface of its own as those of hosts do, and is intercepted, accepted and answered
//! Judge      what follows from it: does it work, is it in doubt, or are connections to be forwarded unsplit
//! Proof      the judge's verdict, for the gateway, its status, log and metrics
//! ```
//! A firewall may have rules for single interfaces: it may drop the gateway's own connection and let those of hosts pass, or the
//! reverse. The SYNs of hosts therefore decide: the rules count those that were intercepted and those that firewalls have let pass.

mod connector;
mod counters;
mod judge;

pub use judge::{ProofState, ProofStatus};

use crate::config::Config;
use crate::error::GatewayError;
use crate::log::Level;
use crate::rules::{self, CLIENT};
use crate::worker::Worker;
use connector::Connector;
use judge::Judge;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{Host, HostConfig, Secret};
use skyhaul_net::nftables::Changes;
use skyhaul_net::tun::{Tun, TunConfig};
use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The address of the interface at which the connection arrives: that before its client's.
const INTERFACE: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 248)), 31);
/// What the gateway answers.
const ANSWER: &[u8] = b"skyhaul\n";
/// Time between looks.
const EVERY: Duration = Duration::from_secs(1);

/// Answers an accepted connection if it is the gateway's own.
pub(crate) fn answers(mut stream: &TcpStream, client: IpAddr) -> bool {
    let own = client == IpAddr::V4(CLIENT);
    if own {
        let _ = stream.write_all(ANSWER);
        // Closed in order, or what was written would be discarded.
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

/// The verdict, shared by threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proof(Arc<Mutex<(Judge, VecDeque<News>)>>);

impl Proof {
    fn lock(&self) -> MutexGuard<'_, (Judge, VecDeque<News>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether new connections may be intercepted.
    pub(crate) fn admits(&self) -> bool {
        self.lock().0.admits()
    }
    pub(crate) fn status(&self, now: Instant) -> ProofStatus {
        self.lock().0.status(now)
    }
    /// Routes and routing rules were looked at: true, some were missing and are restored; an error, they cannot be.
    pub(crate) fn routes(&self, now: Instant, renewed: &Result<bool, GatewayError>) {
        self.judge(|j| j.routes(now, renewed));
    }
    pub(crate) fn next_news(&self) -> Option<News> {
        self.lock().1.pop_front()
    }
    fn judge(&self, judge: impl FnOnce(&mut Judge) -> Option<News>) {
        let mut both = self.lock();
        let news = judge(&mut both.0);
        both.1.extend(news);
    }
}

/// The thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Prover {
    _worker: Worker,
}

impl Prover {
    /// Starts in the calling thread's network namespace; `wake` is called after each look, so that the gateway sees to its routes and
    /// to the verdict. `None`: nothing is intercepted.
    ///
    /// # Errors
    /// If the interface is refused, or the system has no room for a thread.
    pub(crate) fn start(
        config: &Config,
        proof: Proof,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Option<Self>, GatewayError> {
        if config.intercepted().is_none() {
            return Ok(None);
        }
        let device = TunConfig {
            name: Some(rules::own_interface(config)),
            addresses: vec![INTERFACE],
            mtu: config.satellite.mtu,
            offload: false,
        };
        let secret = Secret::draw().map_err(GatewayError::os("draw random numbers"))?;
        let host = Host::new(HostConfig::new(vec![CLIENT.into()], secret));
        let mut driver = Driver::new(Tun::open(&device)?, host)?;
        let (table, tun) = (rules::table(config), config.interface());
        let mut connector = Connector::new(config.fallback.clone());
        // Without notices, a change is noticed when the time for another attempt has come.
        let mut changes = Changes::beside(rules::PREFIX).ok();
        let mut due = Instant::ZERO;
        let work = move |stop: &std::sync::atomic::AtomicBool| {
            // Its interface may be taken away: then nothing is proved any more, and the counters are looked at by nobody.
            let ended = driver.run(&mut connector, |now, connector, host| {
                let changed = changes.as_mut().is_some_and(|c| c.take().0);
                let own = connector.result();
                if changed || own.is_some() || now >= due {
                    due = now + EVERY;
                    let counts = counters::read(&table);
                    proof.judge(|j| {
                        j.look(now, changed, own, counts);
                        j.decide(now, &tun)
                    });
                    if changed {
                        connector.hurry(now, host);
                    }
                    wake();
                }
                stop.load(Ordering::Relaxed)
            });
            if let Err(e) = ended {
                proof.judge(|j| Some(j.blind(Clock::now(), &e.to_string())));
                wake();
            }
        };
        Ok(Some(Self { _worker: Worker::start("proof", work)? }))
    }
}
