//! What follows from the gateway's own connection and from the counters.

use super::News;
use super::counters::{Counters, Passage};
use crate::chains;
use crate::error::GatewayError;
use crate::log::Level;
use crate::rules::MARKS;
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};

/// Failures of its own connection in a row before the gateway is in doubt: a busy machine may be late once.
const FAILURES: u32 = 2;
/// SYNs that are dropped in a row, none of which has passed, before new connections are forwarded. If its own connection fails as well,
/// one says enough.
const LOST: u64 = 2;
/// Packets from the link, of which one may be a stray.
const LOST_BACK: u64 = 3;
/// Time until it intercepts connections again, to see whether they pass by now: at first, and at most. It doubles each time.
const PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Whether connections of hosts are known to reach the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofState {
    /// Nothing is known yet.
    #[default]
    Unproven,
    /// Connections of hosts pass, or the gateway's own does.
    Works,
    /// Its own connection fails, and no host has tried since. The first SYN that is dropped ends interception.
    Doubtful,
    /// They were dropped: new connections are forwarded unsplit.
    Withdrawn,
}

/// The state of the proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProofStatus {
    /// What is known.
    pub state: ProofState,
    /// Since when, seconds.
    pub lasts: Option<f64>,
    /// Why it is not known to work, and what to do.
    pub cause: Option<String>,
    /// How often new connections were forwarded unsplit, because they were dropped.
    pub withdrawals: u64,
}

/// How the gateway's own connections have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Own {
    #[default]
    Unknown,
    Answered,
    /// This number of connections, one after the other, have failed, the last one for this reason.
    Failed(u32, &'static str),
}

/// Where firewalls drop packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// SYNs of hosts, at the hook input.
    Hosts,
    /// SYNs of the gateway's host, at the hook forward.
    Out,
    /// Packets from the link for the gateway's host, at the hook forward.
    Back,
}

/// The judge.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    state: ProofState,
    since: Option<Instant>,
    cause: Option<String>,
    withdrawals: u64,
    own: Own,
    /// A SYN of a host has passed since the last change of rules.
    passed: bool,
    last: Option<Counters>,
    /// Packets that were dropped at each place since one has passed there.
    lost: [u64; 3],
    /// While it is withdrawn: its own connection failed as well, so that its success shows that the cause is gone.
    own_shows: bool,
    retry: Instant,
    pause: Option<Duration>,
    /// Since when routes or routing rules are missing that cannot be restored, and why.
    unrouted: Option<(Instant, String)>,
}

impl Judge {
    pub(super) fn admits(&self) -> bool {
        self.state != ProofState::Withdrawn && self.unrouted.is_none()
    }
    pub(super) fn status(&self, now: Instant) -> ProofStatus {
        let (state, since, cause) = match &self.unrouted {
            Some((since, why)) => (ProofState::Withdrawn, Some(*since), Some(why.clone())),
            None => (self.state, self.since, self.cause.clone()),
        };
        let lasts = since.map(|at| (now - at).as_secs_f64());
        ProofStatus { state, lasts, cause, withdrawals: self.withdrawals }
    }

    /// Takes note of what was seen. `changed`: others have changed rules of nftables; `own`: an own connection has ended.
    pub(super) fn look(
        &mut self,
        now: Instant,
        changed: bool,
        own: Option<Result<(), &'static str>>,
        counters: Option<Counters>,
    ) {
        if changed {
            (self.own, self.passed, self.lost) = (Own::Unknown, false, [0; 3]);
            // They may have removed the cause.
            self.retry = self.retry.min(now);
        }
        self.own = match (own, self.own) {
            (None, own) => own,
            (Some(Ok(())), _) => Own::Answered,
            (Some(Err(why)), Own::Failed(n, _)) => Own::Failed(n.saturating_add(1), why),
            (Some(Err(why)), _) => Own::Failed(1, why),
        };
        let Some(counters) = counters else { return };
        let last = self.last.replace(counters).unwrap_or(counters);
        if changed {
            // What was counted since the last look belongs to the old rules.
            return;
        }
        let passages = [(last.hosts, counters.hosts), (last.out, counters.out), (last.back, counters.back)];
        for (n, ((last, new), lost)) in passages.into_iter().zip(&mut self.lost).enumerate() {
            // The table was made anew.
            let last =
                if new.before < last.before || new.behind < last.behind { Passage::default() } else { last };
            let (before, behind) = (new.before - last.before, new.behind - last.behind);
            if behind > 0 {
                *lost = 0;
                self.passed |= n == 0;
            } else {
                *lost += before;
            }
        }
    }

    /// Where packets are dropped, if enough were.
    fn broken(&self) -> Option<Place> {
        let [hosts, out, back] = self.lost;
        let least = if matches!(self.own, Own::Failed(..)) { 1 } else { LOST };
        match () {
            () if hosts >= least => Some(Place::Hosts),
            () if out >= LOST => Some(Place::Out),
            () if back >= LOST_BACK => Some(Place::Back),
            () => None,
        }
    }

    /// Judges by what was seen; a line for the log if that differs from before. `tun`: the gateway's interface.
    pub(super) fn decide(&mut self, now: Instant, tun: &str) -> Option<News> {
        if self.unrouted.is_some() {
            self.lost = [0; 3];
        }
        if self.state == ProofState::Withdrawn {
            let gone = self.own_shows && self.own == Own::Answered;
            if !gone && now < self.retry {
                return None;
            }
            self.lost = [0; 3];
            let event = "intercepts-again";
            if gone {
                self.enter(now, ProofState::Works, None);
                let line = "its own connection is answered again: it splits new connections".to_owned();
                return Some(News { level: Level::Info, event, line });
            }
            let cause = self.cause.take();
            self.enter(now, ProofState::Unproven, cause);
            let line = "it splits new connections again, to see whether they pass by now".to_owned();
            return Some(News { level: Level::Info, event, line });
        }
        if let Some(place) = self.broken() {
            let cause = place.cause(tun);
            let pause = self.pause.unwrap_or(PAUSE);
            (self.retry, self.pause) = (now + pause, Some((pause * 2).min(LONGEST_PAUSE)));
            self.own_shows = place == Place::Hosts && matches!(self.own, Own::Failed(..));
            (self.passed, self.withdrawals) = (false, self.withdrawals + 1);
            self.enter(now, ProofState::Withdrawn, Some(cause.clone()));
            let line = format!("new connections are forwarded unsplit: {cause}");
            return Some(News { level: Level::Error, event: "withdrawn", line });
        }
        match self.own {
            _ if self.passed => {
                self.pause = None;
                self.works(now)
            }
            Own::Answered => self.works(now),
            Own::Failed(n, why) if n >= FAILURES && self.state != ProofState::Doubtful => {
                let cause = format!("its own connection {why}: {}", hint("input", tun));
                self.enter(now, ProofState::Doubtful, Some(cause.clone()));
                let line = format!("connections of hosts may not reach it: {cause}");
                Some(News { level: Level::Warning, event: "doubtful", line })
            }
            Own::Unknown | Own::Failed(..) => None,
        }
    }

    fn works(&mut self, now: Instant) -> Option<News> {
        if self.state == ProofState::Works {
            return None;
        }
        let before = self.state;
        self.enter(now, ProofState::Works, None);
        let line = "connections of hosts reach it".to_owned();
        (before == ProofState::Doubtful).then_some(News { level: Level::Info, event: "works", line })
    }

    /// Routes and routing rules were looked at, and restored if that was needed; a line for the log if that was news.
    pub(super) fn routes(&mut self, now: Instant, renewed: &Result<bool, GatewayError>) -> Option<News> {
        if let Ok(true) = renewed {
            // What was dropped until now was dropped for want of them.
            (self.lost, self.retry) = ([0; 3], self.retry.min(now));
        }
        match (renewed, self.unrouted.take()) {
            (Ok(false), None) => None,
            (Ok(_), Some(_)) => {
                let line = "its routes and routing rules are there again".to_owned();
                Some(News { level: Level::Info, event: "intercepts-again", line })
            }
            (Ok(true), None) => {
                let line =
                    "routes or routing rules of its packets were missing: they are restored".to_owned();
                Some(News { level: Level::Warning, event: "routes-restored", line })
            }
            (Err(_), known @ Some(_)) => {
                self.unrouted = known;
                None
            }
            (Err(e), None) => {
                let cause = format!(
                    "routes or routing rules of its packets are missing, and cannot be restored: {e}"
                );
                self.withdrawals += 1;
                self.unrouted = Some((now, cause.clone()));
                let line = format!("new connections are forwarded unsplit: {cause}");
                Some(News { level: Level::Error, event: "withdrawn", line })
            }
        }
    }

    /// Its thread can look no more.
    pub(super) fn blind(&mut self, now: Instant, why: &str) -> News {
        let cause = format!("it cannot check itself any more, until it is started again: {why}");
        self.enter(now, ProofState::Doubtful, Some(cause.clone()));
        News { level: Level::Error, event: "doubtful", line: cause }
    }

    fn enter(&mut self, now: Instant, state: ProofState, cause: Option<String>) {
        (self.state, self.since, self.cause) = (state, Some(now), cause);
    }
}

impl Place {
    fn cause(self, tun: &str) -> String {
        match self {
            Self::Hosts => format!(
                "intercepted connections of hosts are dropped before they reach it: {}",
                hint("input", tun)
            ),
            Self::Out => {
                format!("SYNs over the link are dropped before they leave: {}", hint("forward", tun))
            }
            Self::Back => {
                format!("packets from the link are dropped before they reach it: {}", hint("forward", tun))
            }
        }
    }
}

/// Which chain drops packets at a hook, as far as that can be seen, and what to do.
fn hint(hook: &str, tun: &str) -> String {
    let mark = MARKS[0];
    let remedy = |chain: &str| match hook {
        "input" => format!("nft insert rule {chain} meta mark {mark:#x} accept"),
        _ => format!(
            "nft insert rule {chain} iifname {tun} accept; nft insert rule {chain} oifname {tun} accept"
        ),
    };
    match chains::dropping(hook).unwrap_or_default().first() {
        Some(chain) => format!("chain {chain} drops what its rules do not accept: {}", remedy(chain)),
        None => format!(
            "a rule of a firewall at the hook {hook} drops them, or one of routing: in its chain, {}",
            remedy("FAMILY TABLE CHAIN")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A judge, its time and what the counters show.
    #[derive(Default)]
    struct Court {
        judge: Judge,
        at: u64,
        counters: Counters,
    }

    impl Court {
        /// A second later, with this result of an own connection.
        fn then(&mut self, own: Option<Result<(), &'static str>>) -> ProofState {
            self.see(false, own)
        }
        fn see(&mut self, changed: bool, own: Option<Result<(), &'static str>>) -> ProofState {
            self.at += 1;
            let now = Instant::ZERO + Duration::from_secs(self.at);
            self.judge.look(now, changed, own, Some(self.counters));
            self.judge.decide(now, "sky-near");
            self.judge.state
        }
    }

    const SILENCE: Option<Result<(), &str>> = Some(Err("gets no answer"));

    #[test]
    fn its_own_connection_proves_it() {
        let mut c = Court::default();
        assert_eq!(c.then(None), ProofState::Unproven);
        assert_eq!(c.then(Some(Ok(()))), ProofState::Works);
        // Once is chance.
        assert_eq!(c.then(SILENCE), ProofState::Works);
        assert_eq!(c.then(SILENCE), ProofState::Doubtful);
        assert!(c.judge.admits() && c.judge.status(Instant::MAX).cause.is_some());
        assert_eq!(c.then(Some(Ok(()))), ProofState::Works);
        assert_eq!(c.judge.status(Instant::MAX).cause, None);
    }

    #[test]
    fn hosts_that_pass_outweigh_it() {
        let mut c = Court::default();
        c.then(SILENCE);
        assert_eq!(c.then(SILENCE), ProofState::Doubtful);
        (c.counters.hosts.before, c.counters.hosts.behind) = (1, 1);
        assert_eq!(c.then(SILENCE), ProofState::Works);
        assert_eq!(c.then(SILENCE), ProofState::Works);
        // Until the rules change. What has passed before the change says nothing.
        (c.counters.hosts.before, c.counters.hosts.behind) = (2, 2);
        assert_eq!(c.see(true, None), ProofState::Works);
        c.then(SILENCE);
        assert_eq!(c.then(SILENCE), ProofState::Doubtful);
        c.counters.hosts.before += 1;
        assert_eq!(c.then(None), ProofState::Withdrawn, "one SYN is enough");
        assert!(!c.judge.admits());
        // It is over when its own connection passes.
        assert_eq!(c.then(SILENCE), ProofState::Withdrawn);
        assert_eq!(c.then(Some(Ok(()))), ProofState::Works);
        assert_eq!(c.judge.status(Instant::MAX).withdrawals, 1);
    }

    #[test]
    fn what_is_dropped_on_the_way_withdraws_it_and_it_tries_again() {
        for place in 0..3 {
            let mut c = Court::default();
            assert_eq!(c.then(Some(Ok(()))), ProofState::Works);
            let drops = |c: &mut Court, n| {
                let counters = &mut c.counters;
                let passage =
                    [&mut counters.hosts, &mut counters.out, &mut counters.back].into_iter().nth(place);
                passage.expect("one of three").before += n;
            };
            drops(&mut c, 1);
            assert_eq!(c.then(None), ProofState::Works);
            drops(&mut c, 2);
            assert_eq!(c.then(Some(Ok(()))), ProofState::Withdrawn);
            let cause = c.judge.status(Instant::MAX).cause.expect("a cause");
            assert!(cause.contains("are dropped before they"), "{cause}");
            // Its own connection says nothing about that.
            for _ in 0..59 {
                assert_eq!(c.then(Some(Ok(()))), ProofState::Withdrawn);
            }
            assert_eq!(c.then(None), ProofState::Unproven);
            drops(&mut c, 3);
            assert_eq!(c.then(None), ProofState::Withdrawn);
            // The next attempt comes later, or when rules change.
            for _ in 0..100 {
                assert_eq!(c.then(None), ProofState::Withdrawn);
            }
            assert_eq!(c.see(true, None), ProofState::Unproven);
            assert_eq!(c.judge.status(Instant::MAX).withdrawals, 2);
        }
    }

    #[test]
    fn without_routes_nothing_is_intercepted() {
        let mut judge = Judge::default();
        let mut then = |renewed| {
            let event = judge.routes(Instant::ZERO, &renewed).map(|n| n.event);
            (event, judge.admits(), judge.status(Instant::ZERO).withdrawals)
        };
        assert_eq!(then(Ok(false)), (None, true, 0));
        assert_eq!(then(Ok(true)), (Some("routes-restored"), true, 0));
        assert_eq!(then(Err(GatewayError::NoNft)), (Some("withdrawn"), false, 1));
        assert_eq!(then(Err(GatewayError::NoNft)), (None, false, 1));
        assert_eq!(then(Ok(true)), (Some("intercepts-again"), true, 1));
        // What is dropped meanwhile says nothing about firewalls, and what was dropped before was for want of them.
        let mut c = Court::default();
        c.then(Some(Ok(())));
        c.judge.routes(Instant::ZERO, &Err(GatewayError::NoNft));
        c.counters.back.before = 9;
        assert_eq!(c.then(None), ProofState::Works);
        c.judge.routes(Instant::ZERO, &Ok(true));
        c.counters.back.before = 18;
        assert_eq!(c.then(None), ProofState::Withdrawn);
        c.judge.routes(Instant::ZERO, &Ok(true));
        assert_eq!(c.then(None), ProofState::Unproven);
    }

    #[test]
    fn a_table_that_was_made_anew_counts_from_zero() {
        let mut c = Court::default();
        (c.counters.hosts.before, c.counters.hosts.behind) = (9, 9);
        c.then(Some(Ok(())));
        c.counters = Counters::default();
        assert_eq!(c.then(None), ProofState::Works);
        c.counters.hosts.before = 2;
        assert_eq!(c.then(None), ProofState::Withdrawn);
    }
}
