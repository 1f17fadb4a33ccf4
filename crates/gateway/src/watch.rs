//! Watches over the gateway's table of nftables. Other programs may remove the table while the gateway runs: services of firewalls start with
//! `nft flush ruleset`.
//!
//! ```text
//! RulesWatch  a thread that compares the table with what it should be, when the kernel says that something in it has changed
//! Rules       the history of the table, for the status, the log and metrics
//! ```
//! The thread only compares. The gateway's first thread repairs (`system::Installed::mend`), since it alone changes the table.

use crate::error::GatewayError;
use crate::nft;
use crate::worker::Worker;
use nix::poll::{PollFd, PollFlags, poll};
use serde::Serialize;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use skyhaul_net::nftables::{Author, Changes};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum wait for a notice of the kernel, milliseconds: then the thread checks whether it is to end.
const WAIT: u16 = 200;
/// Minimum time between two comparisons. It is short, since packets that pass while the rules are missing are lost to the gateway.
const LEAST: Duration = Duration::from_millis(50);
/// Time between comparisons while the table is not as intended, or where the kernel sends no notices.
const OFTEN: Duration = Duration::from_secs(2);
/// Time between comparisons otherwise.
const SELDOM: Duration = Duration::from_secs(60);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `nft` prints of the table as the gateway has made it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedRules(Arc<Mutex<String>>);

impl ExpectedRules {
    pub(crate) fn set(&self, listing: String) {
        *lock(&self.0) = listing;
    }
    /// Whether the table is as intended.
    ///
    /// # Errors
    /// If `nft` cannot be run.
    pub(crate) fn is_met(&self, table: &str) -> Result<bool, GatewayError> {
        let found = nft::listing(table)?;
        Ok(found.as_ref() == Some(&*lock(&self.0)))
    }
}

/// The thread that compares; dropping this ends the thread.
#[derive(Debug)]
pub(crate) struct RulesWatch {
    /// See [`Self::alarm`].
    alarm: Arc<Mutex<Option<Option<Author>>>>,
    _worker: Worker,
}

impl RulesWatch {
    /// Starts in the calling thread's network namespace; `wake` is called when [`Self::alarm`] has something to report.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(crate) fn start(
        table: String,
        intended: ExpectedRules,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, GatewayError> {
        let alarm = Arc::<Mutex<Option<Option<Author>>>>::default();
        let raised = alarm.clone();
        // Without notices, the thread compares at intervals of [`OFTEN`].
        let mut changes = Changes::new(&table).ok();
        let compare = move |stop: &AtomicBool| {
            let (mut compared, mut due) = (Instant::ZERO, Clock::now());
            let mut last_author = None;
            while !stop.load(Ordering::Relaxed) {
                let (changed, author) = changes.as_mut().map_or_else(
                    || {
                        std::thread::sleep(std::time::Duration::from_millis(WAIT.into()));
                        (false, None)
                    },
                    |changes| {
                        let _ = poll(&mut [PollFd::new(changes.as_fd(), PollFlags::POLLIN)], WAIT);
                        changes.take()
                    },
                );
                let now = Clock::now();
                if changed {
                    (due, last_author) = (now, author.or(last_author));
                }
                if now < due.max(compared + LEAST) {
                    continue;
                }
                compared = now;
                // If nft cannot be asked, no alarm is raised.
                let met = intended.is_met(&table).unwrap_or(true);
                due = now + if met && changes.is_some() { SELDOM } else { OFTEN };
                let author = last_author.take();
                if !met {
                    let mut raised = lock(&raised);
                    let known = raised.take().flatten();
                    *raised = Some(author.or(known));
                    drop(raised);
                    wake();
                }
            }
        };
        Ok(Self { alarm, _worker: Worker::start("watch", compare)? })
    }
    /// `Some` if the table was not as intended since the last call. The inner value is the author of the last change, if the kernel named one.
    pub(crate) fn alarm(&self) -> Option<Option<Author>> {
        lock(&self.alarm).take()
    }
}

/// The history of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// How often the table was restored, and when it last was.
    restored: u64,
    last_restored: Option<Instant>,
    /// Who last changed the table, if the kernel named somebody.
    author: Option<String>,
    /// Since when the table cannot be restored, and why.
    lost: Option<(Instant, String)>,
}

impl Rules {
    /// The table was restored; returns the line for the log.
    pub(crate) fn restored(&mut self, now: Instant, author: Option<Author>) -> String {
        self.blame(author);
        (self.lost, self.last_restored) = (None, Some(now));
        self.restored += 1;
        let who = self.author.as_deref().unwrap_or("somebody");
        format!("{who} had removed or changed its rules of nftables: they are restored")
    }
    /// The table cannot be restored; returns the line for the log, once until it is restored.
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        author: Option<Author>,
        why: &GatewayError,
    ) -> Option<String> {
        self.blame(author);
        let known = self.lost.is_some();
        let since = self.lost.take().map_or(now, |(since, _)| since);
        self.lost = Some((since, why.to_string()));
        let who = self.author.as_deref().unwrap_or("somebody");
        (!known).then(|| {
            format!(
                "{who} has removed or changed its rules of nftables, and they cannot be restored: new connections are not split, and \
                 open ones stand still; it tries again: {why}"
            )
        })
    }
    /// Notes the author of the loss: while the table is lost, later changes may be the gateway's own attempts to restore it.
    fn blame(&mut self, author: Option<Author>) {
        if self.lost.is_none() {
            self.author = author.map(|a| format!("{} (process {})", a.name, a.process));
        }
    }
    pub(crate) fn are_lost(&self) -> bool {
        self.lost.is_some()
    }
    pub(crate) fn status(&self, now: Instant) -> RulesStatus {
        RulesStatus {
            in_place: self.lost.is_none(),
            restored: self.restored,
            last_restored: self.last_restored.map(|at| (now - at).as_secs_f64()),
            changed_by: self.author.clone(),
            lost_for: self.lost.as_ref().map(|(since, _)| (now - *since).as_secs_f64()),
            message: self.lost.as_ref().map(|(_, why)| why.clone()),
        }
    }
}

/// The state of the gateway's rules of nftables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RulesStatus {
    /// Whether the rules are as the gateway has made them.
    pub in_place: bool,
    /// How often the rules were gone or changed, and were restored.
    pub restored: u64,
    /// Time since they were last restored, seconds.
    pub last_restored: Option<f64>,
    /// Who last removed or changed them, if the kernel named somebody.
    pub changed_by: Option<String>,
    /// For how long they have been gone or changed, seconds, if they cannot be restored.
    pub lost_for: Option<f64>,
    /// Why they cannot be restored.
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_reported_once_and_its_author_kept() {
        let mut rules = Rules::default();
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let nft = |process| Some(Author { process, name: "nft".into() });
        assert!(rules.status(at(0)).in_place);
        assert!(
            rules
                .lost(at(1), nft(7), &GatewayError::NoNft)
                .is_some_and(|l| l.starts_with("nft (process 7) "))
        );
        assert_eq!(rules.lost(at(3), nft(8), &GatewayError::NoNft), None);
        let status = rules.status(at(5));
        assert_eq!((status.in_place, status.lost_for), (false, Some(4.0)));
        assert_eq!(rules.restored(at(6), nft(9)).split(" had ").next(), Some("nft (process 7)"));
        let status = rules.status(at(8));
        assert_eq!((status.in_place, status.restored, status.last_restored), (true, 1, Some(2.0)));
    }
}
