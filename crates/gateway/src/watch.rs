//! Watches over the gateway's table of nftables. Others may remove it while the gateway runs: `nft flush ruleset` is how services of
//! firewalls start.
//!
//! ```text
//! RulesWatch  a thread: looks at the table when the kernel says that something of it has changed, and compares
//! Rules       what has become of the table so far, for the status, the log and metrics
//! ```
//! The thread only looks. The gateway's own thread repairs (`system::Installed::mend`), since it alone changes the table.

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

/// How often the thread looks whether it is to end, milliseconds.
const PATIENCE: u16 = 200;
/// Least time between two looks. It is short, since packets that pass while the rules are missing are lost to the gateway.
const LEAST: Duration = Duration::from_millis(50);
/// Time between looks while the table is not as intended, or where the kernel sends no notices.
const OFTEN: Duration = Duration::from_secs(2);
/// Time between looks otherwise.
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
    /// If that cannot be found out.
    pub(crate) fn is_met(&self, table: &str) -> Result<bool, GatewayError> {
        let found = nft::listing(table)?;
        Ok(found.as_ref() == Some(&*lock(&self.0)))
    }
}

/// The thread that looks; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct RulesWatch {
    /// See [`Self::alarm`].
    alarm: Arc<Mutex<Option<Option<Author>>>>,
    _worker: Worker,
}

impl RulesWatch {
    /// Starts in the calling thread's network namespace; `wake` is called when [`Self::alarm`] has something to say.
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
        // Without notices it looks every few seconds.
        let mut changes = Changes::new(&table).ok();
        let look = move |stop: &AtomicBool| {
            let (mut looked, mut due) = (Instant::ZERO, Clock::now());
            let mut last = None;
            while !stop.load(Ordering::Relaxed) {
                let (changed, author) = changes.as_mut().map_or_else(
                    || {
                        std::thread::sleep(std::time::Duration::from_millis(PATIENCE.into()));
                        (false, None)
                    },
                    |changes| {
                        let _ = poll(&mut [PollFd::new(changes.as_fd(), PollFlags::POLLIN)], PATIENCE);
                        changes.take()
                    },
                );
                let now = Clock::now();
                if changed {
                    (due, last) = (now, author.or(last));
                }
                if now < due.max(looked + LEAST) {
                    continue;
                }
                looked = now;
                // If nft cannot be asked, no alarm is raised.
                let met = intended.is_met(&table).unwrap_or(true);
                due = now + if met && changes.is_some() { SELDOM } else { OFTEN };
                let author = last.take();
                if !met {
                    let mut raised = lock(&raised);
                    let known = raised.take().flatten();
                    *raised = Some(author.or(known));
                    drop(raised);
                    wake();
                }
            }
        };
        Ok(Self { alarm, _worker: Worker::start("watch", look)? })
    }
    /// `Some` if the table was not as intended; inside, who changed something last, if the kernel has said so.
    pub(crate) fn alarm(&self) -> Option<Option<Author>> {
        lock(&self.alarm).take()
    }
}

/// What has become of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    restored: u64,
    last: Option<Instant>,
    author: Option<String>,
    lost: Option<(Instant, String)>,
}

impl Rules {
    /// The table was restored; returns the line for the log.
    pub(crate) fn restored(&mut self, now: Instant, author: Option<Author>) -> String {
        self.blame(author);
        (self.lost, self.last) = (None, Some(now));
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
            last_restored: self.last.map(|at| (now - at).as_secs_f64()),
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
    /// They are as the gateway has made them.
    pub in_place: bool,
    /// How often they were gone or changed, and were restored.
    pub restored: u64,
    /// Time since that last happened, seconds.
    pub last_restored: Option<f64>,
    /// Who had last removed or changed them, if the kernel has said so.
    pub changed_by: Option<String>,
    /// How long they have been gone or changed, seconds, if they cannot be restored.
    pub lost_for: Option<f64>,
    /// Why they cannot be restored.
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_once_and_its_author_kept() {
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
