//! The path to the other gateway, without I/O: sessions, and whether datagrams are repaired or forwarded.
//!
//! **Sessions.** Each end draws an identity for its next session. A [`Hello`] names it, and the identity that the other end has named. An end
//! that is named the identity that it has just drawn knows that the other one is there now, since nothing that was recorded before the draw
//! names it: the two then have a session. While a session lives, a hello changes nothing, so that a recorded one cannot end the session.
//!
//! **Fail-open.** Datagrams are repaired while the other gateway is heard, hears this one, and neither is overloaded. Each end gives a sign of
//! life every [`SIGNS`]. What is not repaired is forwarded by the kernel.

use super::datagram;
use super::hello::{self, Hello};
use super::key::{Id, Secret};
use super::passage::Blocked;
use super::session::{self, Refused, Session, Sign};
use super::status::Totals;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_repair::wire::VERSION;
use skyhaul_repair::{Config, Treatment, ip};
use std::collections::VecDeque;
use std::fmt;

/// Interval between signs of life.
const SIGNS: Duration = Duration::from_millis(100);
/// Interval between hellos while there is no other end.
const HELLOS: Duration = Duration::from_millis(500);
/// Time from its beginning for which an end asks the other one to confirm a session.
const CONFIRMING: Duration = Duration::from_secs(2);
/// Time for which a silent session is kept, in case the path comes back.
const KEPT: Duration = Duration::from_secs(10);
/// Minimum time of forwarding once datagrams have been repaired.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval between answers to hellos.
const ANSWERS: Duration = Duration::from_millis(50);
/// How long a hello of a wrong key or version counts as the reason.
const REASON: Duration = Duration::from_secs(3);

/// Why datagrams are forwarded without repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The other gateway has not been heard yet, or not for some time.
    Silent,
    /// What comes from its address was made with another key.
    Key,
    /// It has this version of the format.
    Version(u8),
    /// It does not hear this gateway.
    Unheard,
    /// It cannot keep up.
    BusyThere,
    /// This gateway cannot keep up.
    BusyHere,
    /// A firewall of this machine drops datagrams.
    Blocked(Blocked),
}

/// What a packet says about where the other gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nothing.
    Unknown,
    /// Somebody has sent a hello, which may be a recorded one: an answer may go to where it came from, and nothing else.
    Asks,
    /// It was there when it sent this, and has sent nothing like it before: an answer in the handshake, or a sign of life with a
    /// new counter.
    Peer,
}

/// A packet to the other gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// Its traffic class.
    pub(super) class: u8,
    /// Whether it answers the last hello, and goes to where that came from.
    pub(super) is_answer: bool,
}

impl Outgoing {
    fn of(class: u8) -> Self {
        Self { class, is_answer: false }
    }
}

/// The path to the other gateway.
pub(super) struct Path {
    config: Config,
    secret: Secret,
    draw: Box<dyn FnMut() -> Id + Send>,
    session: Option<Session>,
    /// This end's identity in its next session, and that of the other end.
    next: (Id, Option<Id>),
    hello_at: Instant,
    sign_at: Instant,
    answer: Option<Hello>,
    answered_at: Option<Instant>,
    /// Why datagrams are not repaired; `None` if they are.
    cause: Option<Cause>,
    since: Instant,
    /// Until when nothing is repaired for a reason of this machine, and the reason.
    paused: (Instant, Cause),
    /// A hello of a wrong key or version, and when it came.
    wrong: Option<(Instant, Cause)>,
    /// Datagrams for this side.
    delivered: VecDeque<Vec<u8>>,
    totals: Totals,
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path")
            .field("session", &self.session)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl Path {
    /// A path without a session. `draw` gives random identities.
    pub(super) fn new(
        now: Instant,
        config: Config,
        secret: Secret,
        mut draw: Box<dyn FnMut() -> Id + Send>,
    ) -> Self {
        Self {
            config,
            secret,
            session: None,
            next: (draw(), None),
            draw,
            hello_at: now,
            sign_at: Instant::MAX,
            answer: None,
            answered_at: None,
            cause: Some(Cause::Silent),
            since: now,
            paused: (Instant::ZERO, Cause::BusyHere),
            wrong: None,
            delivered: VecDeque::new(),
            totals: Totals::default(),
        }
    }

    /// Why datagrams are not repaired, if they are not, and since when this is so.
    pub(super) fn cause(&self) -> (Option<Cause>, Instant) {
        (self.cause, self.since)
    }
    /// Whether datagrams are repaired.
    pub(super) fn repairs(&self) -> bool {
        self.cause.is_none()
    }
    /// The session, if there is one.
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }
    /// What it has counted in all sessions.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        if let Some(session) = &self.session {
            totals.add(session.end.counters());
        }
        totals
    }
    /// The configuration in force.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }
    /// The rate towards the link has changed.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.config.rate = rate;
        if let Some(session) = &mut self.session {
            session.end.set_rate(now, rate);
        }
    }
    /// The largest packet to the other gateway has changed.
    pub(super) fn set_mtu(&mut self, mtu: u32) {
        self.config.mtu = Some(mtu);
        if let Some(session) = &mut self.session {
            session.end.set_mtu(Some(mtu));
        }
    }
    /// Nothing is repaired until then.
    pub(super) fn pause_until(&mut self, at: Instant, cause: Cause) {
        self.paused = (at, cause);
    }

    /// This gateway is about to stop: the other one is told.
    pub(super) fn leave(&mut self, now: Instant) {
        self.paused = (Instant::MAX, Cause::BusyHere);
        if self.session.is_some() {
            self.sign_at = now;
        }
    }

    /// A datagram for the other side. False if it cannot be carried: the kernel is to forward it.
    pub(super) fn offer(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some(session) = self.session.as_mut().filter(|_| self.cause.is_none()) else { return false };
        let Some(datagram) = datagram::read(packet) else { return true };
        session.end.offer(now, datagram, Treatment::Repaired, &mut |_, _| {}).is_ok()
    }

    /// A packet at the port; `marked` if it was marked as congested on its way. Returns what its source address may be.
    pub(super) fn receive(&mut self, now: Instant, packet: &mut [u8], marked: bool) -> Origin {
        let Some(first) = packet.first().copied() else {
            self.totals.malformed += 1;
            return Origin::Unknown;
        };
        let is_sign = first == VERSION << 4 | session::SIGN;
        // Only hellos are those of all versions: no session is with another one.
        let outcome = match first & 15 {
            hello::TYPE => {
                return self.hello(now, packet);
            }
            session::SIGN => self.session.as_mut().map(|s| s.sign(now, packet)),
            _ => self.session.as_mut().map(|s| s.frame(now, packet, marked)),
        };
        match outcome {
            Some(Ok(())) => {
                self.take_deliveries(now);
                // Frames may overtake each other, so that one of before a move may come after it. Signs of before are refused.
                return if is_sign { Origin::Peer } else { Origin::Unknown };
            }
            // Without a session nothing can be authentic.
            None | Some(Err(Refused::Forged)) => self.totals.forged += 1,
            Some(Err(Refused::Replayed)) => self.totals.replayed += 1,
            Some(Err(Refused::Malformed)) => self.totals.malformed += 1,
        }
        Origin::Unknown
    }

    /// A hello has arrived, authentic or not.
    fn hello(&mut self, now: Instant, packet: &[u8]) -> Origin {
        let lives = self.session.as_ref().is_some_and(|s| s.is_alive(now));
        let Some(hello) = Hello::read(packet, &self.secret) else {
            self.totals.forged += 1;
            if packet.len() == hello::LENGTH && !lives {
                self.wrong = Some((now, Cause::Key));
            }
            return Origin::Unknown;
        };
        if hello.version != VERSION {
            if !lives {
                self.wrong = Some((now, Cause::Version(hello.version)));
            }
            return Origin::Unknown;
        }
        let (mine, _) = self.next;
        let session = self.session.as_ref().map(|s| (s.mine, s.theirs, s.heard_at().is_none()));
        // A hello of this end that somebody has sent back.
        if hello.from == mine || session.is_some_and(|(own, ..)| own == hello.from) {
            self.totals.replayed += 1;
            return Origin::Unknown;
        }
        match session {
            Some((own, theirs, unheard)) if hello.from == theirs && hello.to == Some(own) => {
                // The other end may have missed the answer that confirms the session.
                if !unheard {
                    return Origin::Unknown;
                }
                self.answer = Some(Hello::new(own, Some(theirs)));
                Origin::Asks
            }
            _ if lives => {
                self.totals.replayed += 1;
                Origin::Unknown
            }
            _ if hello.to == Some(mine) => {
                self.begin(now, (mine, hello.from));
                self.answer = Some(Hello::new(mine, Some(hello.from)));
                // Nobody has named this identity before, and nobody can do it again: it is drawn anew.
                Origin::Peer
            }
            _ => {
                self.next.1 = Some(hello.from);
                self.answer = Some(Hello::new(mine, Some(hello.from)));
                Origin::Asks
            }
        }
    }
    fn begin(&mut self, now: Instant, ids: (Id, Id)) {
        self.end_session();
        self.session = Some(Session::new(now, &self.secret, ids, &self.config));
        self.next = ((self.draw)(), None);
        self.sign_at = now;
        self.totals.sessions += 1;
    }
    fn end_session(&mut self) {
        if let Some(old) = self.session.take() {
            self.totals.add(old.end.counters());
        }
        self.sign_at = Instant::MAX;
    }

    fn take_deliveries(&mut self, now: Instant) {
        let Some(session) = &mut self.session else { return };
        while let Some(delivery) = session.end.poll_delivery(now) {
            let mut packet = delivery.datagram.to_vec();
            if delivery.marked && !ip::mark(&mut packet) {
                self.totals.unmarkable += 1;
                continue;
            }
            self.delivered.push_back(packet);
        }
        while session.end.poll_lost().is_some() {}
    }
    /// The next datagram for this side.
    pub(super) fn poll_delivery(&mut self) -> Option<Vec<u8>> {
        self.delivered.pop_front()
    }

    /// The next packet to the other gateway.
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Outgoing> {
        if self.answered_at.is_none_or(|at| now >= at + ANSWERS)
            && let Some(answer) = self.answer.take()
        {
            self.answered_at = Some(now);
            answer.write(&self.secret, out);
            return Some(Outgoing { class: 0, is_answer: true });
        }
        if self.hello_at <= now {
            self.hello_at = now + HELLOS;
            let (mine, theirs) = match &self.session {
                Some(s) if s.is_alive(now) => (None, None),
                // The other end has to confirm this session.
                Some(s) if s.heard_at().is_none() && now < s.began + CONFIRMING => {
                    (Some(s.mine), Some(s.theirs))
                }
                _ => (Some(self.next.0), self.next.1),
            };
            if let Some(mine) = mine {
                Hello::new(mine, theirs).write(&self.secret, out);
                return Some(Outgoing::of(0));
            }
        }
        let session = self.session.as_mut()?;
        if self.sign_at <= now {
            self.sign_at = now + SIGNS;
            session.write_sign(Sign { hears: session.is_alive(now), busy: now < self.paused.0 }, out);
            return Some(Outgoing::of(0));
        }
        session.write_frame(now, out).map(Outgoing::of)
    }

    /// When the next call is due.
    pub(super) fn next_timeout(&mut self, now: Instant) -> Instant {
        let answer = match (&self.answer, self.answered_at) {
            (Some(_), Some(at)) => at + ANSWERS,
            (Some(_), None) => now,
            (None, _) => Instant::MAX,
        };
        let frames = self.session.as_mut().map_or(Instant::MAX, |s| s.end.next_timeout(now));
        self.hello_at.min(self.sign_at).min(answer).min(frames)
    }
    /// Time passes.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(session) = &mut self.session {
            session.end.handle_timeout(now);
            let last = session.heard_at().unwrap_or(session.began);
            if now >= last + KEPT {
                self.end_session();
            }
        }
        self.take_deliveries(now);
        let found = self.judge(now);
        let held = found.is_none()
            && self.cause.is_some()
            && self.totals.withdrawals > 0
            && now < self.since + PAUSE;
        if found != self.cause && !held {
            self.totals.withdrawals += u64::from(self.cause.is_none());
            (self.cause, self.since) = (found, now);
        }
    }
    fn judge(&self, now: Instant) -> Option<Cause> {
        let (until, cause) = self.paused;
        if now < until {
            return Some(cause);
        }
        match &self.session {
            Some(s) if s.is_alive(now) => match s.peer {
                Sign { hears: false, .. } => Some(Cause::Unheard),
                Sign { busy: true, .. } => Some(Cause::BusyThere),
                Sign { .. } => None,
            },
            _ => {
                let wrong = self.wrong.filter(|(at, _)| now < *at + REASON);
                Some(wrong.map_or(Cause::Silent, |(_, cause)| cause))
            }
        }
    }
}
