//! Whether firewalls let datagrams pass on their way into the gateway's interface and out of it. Counters of nftables before and behind the
//! chains of others show it, as for split connections ([`crate::proof`]).

use crate::error::GatewayError;
use crate::nft;
use crate::rules::{REPAIR_GIVEN, REPAIR_LEFT, REPAIR_REACHED, REPAIR_TRIED};
use crate::worker::Worker;
use serde_json::Value;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Interval between two looks at the counters.
const EVERY: Duration = Duration::from_millis(400);
/// Number of packets that must have been dropped, while none has passed, before a firewall counts as the cause.
const FEW: u64 = 3;

/// A way on which a firewall drops everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// From hosts into the interface.
    In,
    /// From the interface to hosts.
    Out,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    tried: u64,
    reached: u64,
    given: u64,
    left: u64,
}

impl Counts {
    /// What was blocked from one look to the next.
    fn blocked(&self, before: &Self) -> Option<Blocked> {
        let none = |before: u64, now: u64, after: u64, passed: u64| {
            now.saturating_sub(before) >= FEW && passed == after
        };
        if none(before.tried, self.tried, before.reached, self.reached) {
            Some(Blocked::In)
        } else if none(before.given, self.given, before.left, self.left) {
            Some(Blocked::Out)
        } else {
            None
        }
    }
    fn of(listed: &Value) -> Option<Self> {
        let all: Vec<&Value> = listed["nftables"].as_array()?.iter().map(|o| &o["counter"]).collect();
        let count = |name: &str| all.iter().find(|c| c["name"] == name)?["packets"].as_u64();
        Some(Self {
            tried: count(REPAIR_TRIED)?,
            reached: count(REPAIR_REACHED)?,
            given: count(REPAIR_GIVEN)?,
            left: count(REPAIR_LEFT)?,
        })
    }
}

/// What both threads share.
#[derive(Debug, Default)]
struct Shared {
    /// Since when datagrams are routed into the interface; `None`: they are not.
    since: Mutex<Option<Instant>>,
    found: Mutex<Option<Blocked>>,
}

/// The thread that looks; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    _worker: Worker,
}

impl Watch {
    /// Starts in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub(super) fn start(table: String) -> Result<Self, GatewayError> {
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        let look = move |stop: &AtomicBool| {
            let mut last: Option<(Instant, Counts)> = None;
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_nanos(EVERY.as_nanos()));
                let since = *own.since.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(since) = since else {
                    last = None;
                    continue;
                };
                let now = Clock::now();
                let counts =
                    nft::json(&["list", "counters", "table", "inet", &table]).and_then(|l| Counts::of(&l));
                let Some(counts) = counts else { continue };
                let before = last.replace((now, counts)).filter(|(at, _)| *at >= since);
                if let Some(blocked) = before.and_then(|(_, before)| counts.blocked(&before)) {
                    *own.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocked);
                }
            }
        };
        Ok(Self { shared, _worker: Worker::start("repair-watch", look)? })
    }
    /// Datagrams are routed into the interface from now on, or no more.
    pub(super) fn routed(&self, since: Option<Instant>) {
        *self.shared.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
    /// What was found to be blocked since the last call.
    pub(super) fn take(&self) -> Option<Blocked> {
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_way_on_which_nothing_passes_is_blocked() {
        let counts = |tried, reached, given, left| Counts { tried, reached, given, left };
        let from = counts(10, 10, 20, 20);
        for (now, blocked) in [
            (counts(10, 10, 20, 20), None),
            (counts(12, 10, 22, 20), None),
            (counts(13, 10, 20, 20), Some(Blocked::In)),
            (counts(13, 11, 23, 20), Some(Blocked::Out)),
            (counts(13, 11, 23, 21), None),
        ] {
            assert_eq!(now.blocked(&from), blocked, "{now:?}");
        }
        let names = [REPAIR_TRIED, REPAIR_REACHED, REPAIR_GIVEN, REPAIR_LEFT];
        let list: Vec<_> =
            (1..).zip(names).map(|(n, name)| json!({ "counter": { "name": name, "packets": n } })).collect();
        assert_eq!(Counts::of(&json!({ "nftables": list })), Some(counts(1, 2, 3, 4)));
        assert_eq!(Counts::of(&json!({ "nftables": [] })), None);
    }
}
