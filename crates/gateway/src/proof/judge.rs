//! What follows from the gateway's own connection and from the counters.

use super::News;
use super::counters::{Counters, Passage};
use super::tracking::{self, Fill};
use crate::error::GatewayError;
use crate::log::Level;
use crate::rules::NEAR_MARK;
use crate::{chains, nft};
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::NetError;

/// Failures of the gateway's own connection in a row before the gateway is in doubt: a busy machine may be late once.
const FAILURES: u32 = 2;
/// SYNs dropped in a row before new connections are forwarded unsplit. If the gateway's own connection fails as well, one SYN of a host is
/// enough.
const LOST: u64 = 2;
/// The same for packets from the link, some of which may be strays.
const LOST_BACK: u64 = 3;
/// First pause before the gateway intercepts connections again, to see whether they pass by now. Each pause is twice the previous one.
const PAUSE: Duration = Duration::from_secs(60);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Hold: time after the end of a pause in which a change of rules or routes does not cut the next pause short. This is the first hold; it
/// doubles each time, up to [`PAUSE`].
const HOLD: Duration = Duration::from_secs(2);

/// Whether connections of hosts are known to reach the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofState {
    /// Nothing is known yet.
    #[default]
    Unproven,
    /// Connections of hosts pass, or the gateway's own does.
    Works,
    /// Its own connection fails or cannot be opened, and no host has tried since. Once it has failed, the first SYN of a host that is
    /// dropped ends interception.
    Doubtful,
    /// Packets of intercepted connections did not pass, or routes cannot be restored: new connections are forwarded unsplit.
    Withdrawn,
}

/// The state of the proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProofStatus {
    /// What is known.
    pub state: ProofState,
    /// For how long, seconds.
    pub lasts: Option<f64>,
    /// Why it is not known to work, and what to do.
    pub cause: Option<String>,
    /// How often interception was ended, because packets did not pass or routes could not be restored.
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

/// Where packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// SYNs of hosts, at the hook input.
    Hosts,
    /// SYNs of the gateway's host, at the hook forward.
    Out,
    /// Packets from the link for the gateway's host, at the hook forward.
    Back,
    /// SYNs of the gateway's host leave by another interface than the link.
    Astray,
}

/// The interfaces that causes and remedies name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interfaces<'a> {
    /// The TUN interface of the gateway's host.
    pub(super) tun: &'a str,
    /// The satellite interface.
    pub(super) link: &'a str,
    /// The mark of packets for the gateway's host.
    pub(super) mark: u32,
}

/// Decides from what it is told whether connections of hosts reach the gateway.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    state: ProofState,
    since: Option<Instant>,
    cause: Option<String>,
    /// The cause is that the interface of the gateway's own connection is gone.
    blind: bool,
    withdrawals: u64,
    own: Own,
    /// A SYN of a host has passed since the last change of rules.
    passed: bool,
    last: Option<Counters>,
    /// Packets dropped in a row: SYNs of hosts, SYNs of the gateway's host, packets from the link.
    lost: [u64; 3],
    /// SYNs of the gateway's host that have left by another interface, since one has left by the link.
    astray: u64,
    /// While it is withdrawn: its own connection failed as well, so that its success shows that the cause is gone.
    own_shows: bool,
    /// When the present pause ends.
    retry: Instant,
    /// The next pause; `None`: [`PAUSE`].
    pause: Option<Duration>,
    /// When a pause has last ended, and the hold from then on. Without a hold, each change on a machine whose rules or routes change all
    /// the time would cost hosts SYNs.
    hold: Option<(Instant, Duration)>,
    /// Packets have passed from the gateway's host to the link, or back, since the last change.
    crossed: bool,
    /// Connections are not tracked for the gateway's sake: the table was full, and nobody else needs it.
    untracked: bool,
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

    /// Takes note of what was seen. `changed`: others have changed rules of nftables, routes or interfaces; `own`: how a connection of the
    /// gateway's own has ended, if one has.
    pub(super) fn look(
        &mut self,
        now: Instant,
        changed: bool,
        own: Option<Result<(), &'static str>>,
        counters: Option<Counters>,
    ) {
        if changed {
            // What was dropped before still counts, or changes all the time would hide it.
            (self.own, self.passed, self.crossed) = (Own::Unknown, false, false);
            // The change may have removed the cause.
            let earliest = self.hold.map_or(now, |(at, hold)| (at + hold).max(now));
            self.retry = self.retry.min(earliest);
        }
        self.own = match (own, self.own) {
            (None, own) => own,
            (Some(Ok(())), _) => Own::Answered,
            (Some(Err(why)), Own::Failed(n, _)) => Own::Failed(n.saturating_add(1), why),
            (Some(Err(why)), _) => Own::Failed(1, why),
        };
        let Some(counters) = counters else { return };
        let last = self.last.replace(counters).unwrap_or(counters);
        self.astray += counters.astray.saturating_sub(last.astray);
        if counters.out.behind != last.out.behind {
            self.astray = 0;
        }
        let passages = [(last.hosts, counters.hosts), (last.out, counters.out), (last.back, counters.back)];
        for (n, ((last, new), lost)) in passages.into_iter().zip(&mut self.lost).enumerate() {
            // Counters that went back: the table was made anew.
            let last =
                if new.before < last.before || new.behind < last.behind { Passage::default() } else { last };
            let (before, behind) = (new.before - last.before, new.behind - last.behind);
            if behind > 0 {
                *lost = 0;
                // What has passed since the last look may have passed by the old rules.
                self.passed |= n == 0 && !changed;
                self.crossed |= n > 0 && !changed;
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
            () if out >= LOST && self.astray > 0 => Some(Place::Astray),
            () if out >= LOST => Some(Place::Out),
            () if back >= LOST_BACK => Some(Place::Back),
            () => None,
        }
    }

    /// Judges by what was seen; a line for the log if the verdict differs from the last one.
    pub(super) fn decide(&mut self, now: Instant, names: Interfaces<'_>) -> Option<News> {
        if self.unrouted.is_some() {
            self.lost = [0; 3];
        }
        if self.state == ProofState::Withdrawn {
            let gone = self.own_shows && self.own == Own::Answered;
            if !gone && now < self.retry {
                return None;
            }
            let hold = self.hold.map_or(HOLD, |(_, hold)| (hold * 2).min(PAUSE));
            (self.lost, self.astray, self.hold) = ([0; 3], 0, Some((now, hold)));
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
            let cause = place.cause(names);
            let pause = self.pause.unwrap_or(PAUSE);
            (self.retry, self.pause) = (now + pause, Some((pause * 2).min(LONGEST_PAUSE)));
            self.own_shows = place == Place::Hosts && matches!(self.own, Own::Failed(..));
            (self.passed, self.crossed, self.withdrawals) = (false, false, self.withdrawals + 1);
            self.enter(now, ProofState::Withdrawn, Some(cause.clone()));
            let line = format!("new connections are forwarded unsplit: {cause}");
            return Some(News { level: Level::Error, event: "withdrawn", line });
        }
        match self.own {
            _ if self.passed => {
                if self.crossed {
                    (self.pause, self.hold) = (None, None);
                }
                self.works(now)
            }
            Own::Answered => self.works(now),
            Own::Failed(n, why) if n >= FAILURES && (self.state != ProofState::Doubtful || self.blind) => {
                let cause = format!("its own connection {why}: {}", hint("input", names));
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

    /// Takes the result of a look at routes and routing rules: true if some were missing and are restored, an error if they cannot be.
    /// Returns a line for the log if that is news.
    pub(super) fn routes(&mut self, now: Instant, renewed: &Result<bool, GatewayError>) -> Option<News> {
        if matches!(renewed, Ok(true)) || renewed.is_ok() && self.unrouted.is_some() {
            // Packets that were dropped until now were dropped for want of routes.
            (self.lost, self.retry) = ([0; 3], self.retry.min(now));
        }
        match (renewed, self.unrouted.take()) {
            (Ok(false), None) => None,
            // `decide` ends the withdrawal, and says so.
            (Ok(_), Some(_)) if self.state == ProofState::Withdrawn => None,
            (Ok(_), Some(_)) => {
                let line = "the cause is gone: it splits new connections again".to_owned();
                Some(News { level: Level::Info, event: "intercepts-again", line })
            }
            (Ok(true), None) => {
                let line = "routes, routing rules or settings of its packets were missing: they are restored"
                    .to_owned();
                Some(News { level: Level::Warning, event: "routes-restored", line })
            }
            (Err(_), known @ Some(_)) => {
                self.unrouted = known;
                None
            }
            (Err(e), None) => {
                let cause = match e {
                    GatewayError::InVrf { .. }
                    | GatewayError::InterfaceDown(_)
                    | GatewayError::Net(NetError::NoInterface(_)) => e.to_string(),
                    _ => {
                        format!(
                            "routes or routing rules of its packets are missing, and cannot be restored: {e}"
                        )
                    }
                };
                self.withdrawals += 1;
                self.unrouted = Some((now, cause.clone()));
                let line = format!("new connections are forwarded unsplit: {cause}");
                Some(News { level: Level::Error, event: "withdrawn", line })
            }
        }
    }

    /// Whether to ask if others need the kernel's table of connections. `full`: the table, if it is full; `changed`: as for [`Self::look`].
    pub(super) fn asks_who_tracks(&self, full: Option<Fill>, changed: bool) -> bool {
        if self.untracked { changed } else { full.is_some() && matches!(self.own, Own::Failed(..)) }
    }
    /// Takes the answer: `others` need the table. A line for the log if connections are not tracked any more for the gateway's sake, or are
    /// again.
    pub(super) fn tracks(&mut self, full: Option<Fill>, others: bool) -> Option<News> {
        let (level, event, line) = match (self.untracked, full) {
            (true, _) if others => (
                Level::Info,
                "tracks-again",
                "rules of others track connections: it takes part again".to_owned(),
            ),
            (false, Some(fill)) if !others => (
                Level::Warning,
                "untracked",
                format!(
                    "connections are not tracked any more, since no rule of others asks for it: {}",
                    fill.remedy()
                ),
            ),
            _ => return None,
        };
        self.untracked = !self.untracked;
        Some(News { level, event, line })
    }
    /// Whether the rules are to track connections.
    pub(super) fn is_tracked(&self) -> bool {
        !self.untracked
    }

    /// The prover has lost the interface of the gateway's own connection. A withdrawal lasts: nothing shows that its cause is gone.
    pub(super) fn blind(&mut self, now: Instant, why: &str) -> News {
        self.own = Own::Unknown;
        let cause = format!("it cannot check itself until it has its interface for that again: {why}");
        if self.state != ProofState::Withdrawn {
            self.enter(now, ProofState::Doubtful, Some(cause.clone()));
            self.blind = true;
        }
        News { level: Level::Error, event: "doubtful", line: cause }
    }

    fn enter(&mut self, now: Instant, state: ProofState, cause: Option<String>) {
        (self.state, self.since, self.cause, self.blind) = (state, Some(now), cause, false);
    }
}

impl Place {
    fn cause(self, names: Interfaces<'_>) -> String {
        let Interfaces { tun, link, .. } = names;
        match self {
            Self::Hosts => format!(
                "intercepted connections of hosts are dropped before they reach it: {}",
                hint("input", names)
            ),
            Self::Out => {
                format!("SYNs over the link are dropped before they leave: {}", hint("forward", names))
            }
            Self::Back => {
                format!("packets from the link are dropped before they reach it: {}", hint("forward", names))
            }
            Self::Astray => format!(
                "SYNs over the link leave by another interface than {link}: a routing rule (ip rule) for packets that arrive at {tun}, or \
                 that have addresses of hosts, leads them elsewhere: let it lead them to {link}"
            ),
        }
    }
}

/// Which chain drops packets at a hook, as far as that can be seen, and what to do.
fn hint(hook: &str, Interfaces { tun, mark: other, .. }: Interfaces<'_>) -> String {
    let mark = NEAR_MARK;
    let remedy = |chain: &str| match hook {
        "input" => format!("nft insert rule {chain} meta mark {mark:#x} accept"),
        _ => format!(
            "nft insert rule {chain} iifname {tun} accept; nft insert rule {chain} oifname {tun} accept"
        ),
    };
    if let Some(fill) = tracking::full() {
        return fill.remedy();
    }
    if hook == "forward" && !tracking::forwards() {
        return "forwarding of IPv4 is off: sysctl -w net.ipv4.ip_forward=1".into();
    }
    let listed = nft::ruleset().unwrap_or_default();
    match chains::dropping(&listed, hook).first() {
        Some(chain) => {
            // A check of sources (fib) looks up the way back of a marked packet by its mark, and finds the route to the gateway.
            let checks = chains::checking_sources(&listed);
            let checks = checks.iter().map(|chain| {
                format!(
                    "; nft insert rule {chain} meta mark {{ {mark:#x}, {other:#x} }} accept; nft insert rule {chain} iifname {tun} accept"
                )
            });
            let checks = checks.collect::<String>();
            format!("chain {chain} drops what its rules do not accept: {}{checks}", remedy(chain))
        }
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
            self.judge.decide(now, Interfaces { tun: "sky-near", link: "sat0", mark: 0x5348_0002 });
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
    fn without_its_interface_a_withdrawal_lasts_and_a_doubt_is_renewed() {
        let mut c = Court::default();
        assert_eq!(c.then(Some(Ok(()))), ProofState::Works);
        c.judge.blind(Instant::ZERO, "gone");
        assert!(c.judge.state == ProofState::Doubtful && c.judge.admits());
        // With the interface back, the cause is what the own connection shows.
        c.then(SILENCE);
        assert_eq!(c.then(SILENCE), ProofState::Doubtful);
        let cause = c.judge.status(Instant::MAX).cause.expect("a cause");
        assert!(cause.starts_with("its own connection gets no answer: "), "{cause}");
        c.counters.hosts.before = 1;
        assert_eq!(c.then(None), ProofState::Withdrawn);
        c.judge.blind(Instant::ZERO, "gone");
        assert!(!c.judge.admits(), "packets still do not pass");
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
        // The end of the want of routes alone does not end a withdrawal: the judge says when it does.
        c.counters.back.before = 27;
        assert_eq!(c.then(None), ProofState::Withdrawn);
        c.judge.routes(Instant::ZERO, &Err(GatewayError::NoNft));
        assert_eq!(c.judge.routes(Instant::ZERO, &Ok(false)), None);
        assert!(!c.judge.admits());
        assert_eq!(c.then(None), ProofState::Unproven);
    }

    #[test]
    fn changes_all_the_time_hide_nothing_and_cost_little() {
        let mut c = Court::default();
        c.counters.out.before = 1;
        assert_eq!(c.see(true, Some(Ok(()))), ProofState::Works);
        c.counters.out.before = 2;
        assert_eq!(c.see(true, Some(Ok(()))), ProofState::Works);
        c.counters.out.before = 3;
        assert_eq!(c.see(true, Some(Ok(()))), ProofState::Withdrawn);
        // Each change may have removed the cause; interception is tried again less and less often.
        let mut tried = Vec::new();
        while c.at < 250 {
            if c.see(true, None) == ProofState::Unproven {
                tried.push(c.at);
                c.counters.out.before += 2;
            }
        }
        let waits: Vec<_> = tried.windows(2).map(|t| t[1] - t[0]).collect();
        assert_eq!((tried[0], waits), (4, vec![2, 4, 8, 16, 32, 60, 60, 60]));
        // Once packets pass on the whole way, as at first.
        (c.counters.hosts.before, c.counters.hosts.behind) = (1, 1);
        (c.counters.out.before, c.counters.out.behind) = (c.counters.out.before + 1, 1);
        while c.see(false, None) != ProofState::Works {}
        c.counters.out.before += 2;
        assert_eq!(c.then(None), ProofState::Withdrawn);
        assert_eq!(c.see(true, None), ProofState::Unproven);
    }

    #[test]
    fn packets_that_leave_elsewhere_have_a_cause_of_their_own() {
        let mut c = Court::default();
        (c.counters.out.before, c.counters.astray) = (3, 3);
        c.then(None);
        (c.counters.out.before, c.counters.astray) = (5, 5);
        assert_eq!(c.then(None), ProofState::Withdrawn);
        let cause = c.judge.status(Instant::MAX).cause.expect("a cause");
        assert!(cause.starts_with("SYNs over the link leave by another interface than sat0: "), "{cause}");
    }

    #[test]
    fn a_full_table_is_left_to_those_who_need_it() {
        let full = Some(Fill { count: 100, most: 100 });
        let mut c = Court::default();
        assert!(!c.judge.asks_who_tracks(full, true), "it works");
        c.then(SILENCE);
        assert!(!c.judge.asks_who_tracks(None, true) && c.judge.asks_who_tracks(full, false));
        assert_eq!(c.judge.tracks(full, true), None);
        assert!(c.judge.is_tracked());
        let news = c.judge.tracks(full, false).expect("is news");
        assert!(news.event == "untracked" && news.line.ends_with("nf_conntrack_max=400"), "{news:?}");
        // Only a change of rules brings back who needs it.
        assert!(!c.judge.is_tracked() && !c.judge.asks_who_tracks(full, false));
        assert_eq!(c.judge.tracks(full, false), None);
        assert_eq!(c.judge.tracks(None, true).map(|n| n.event), Some("tracks-again"));
        assert!(c.judge.is_tracked());
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
