//! Half-open connections: a SYN has arrived and our SYN-ACK has not been acknowledged. Attackers can create them at
//! will. They therefore use few bytes, expire after a minute, and beyond a limit use none at all
//! ([`super::cookie`]).
//!
//! Only the contents of the SYN are stored. The endpoint is rebuilt from them whenever a segment is needed: for the
//! SYN-ACK, for each retransmission, and finally for good, when the acknowledgement arrives.

use super::conn::Conn;
use super::cookie::{self, Offer};
use super::endpoint::unstated_mss;
use super::ends::Ends;
use super::journal::{Journal, Origin};
use super::{Admission, ConnId, Endpoint, Host};
use crate::outlet::Outlet;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::InitialWindow;
use skyhaul_tcp::{Codepoint, Flags, Segment, Seq, State, SynOptions, Waves};
use skyhaul_wire::Capability;
use skyhaul_wire::tcp::{ProbeOption, Tcp};
use std::num::{NonZeroU16, NonZeroU32};

/// Lifetime of half-open connections.
pub(super) const LIFE: Duration = Duration::from_secs(60);
/// Maximum retransmissions of a SYN-ACK, normally and while more than half of the table is in use.
const REPEATS: u8 = 4;
const REPEATS_IN_A_CROWD: u8 = 1;
/// Maximum window announced in a SYN-ACK.
const FIRST_WINDOW: i32 = 65_535;
/// Minimum time between answers to what the peer repeats or should not have sent: repeated SYNs, and segments that get a
/// challenge ACK (as in Linux: `tcp_invalid_ratelimit`). The first one is answered at once.
const PAUSE: Duration = Duration::from_millis(500);

/// What is stored of a SYN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) seq: Seq,
    timestamp: u32,
    window: u16,
    mss: Option<NonZeroU16>,
    scale: Option<u8>,
    flags: Flags,
    /// The ECN field with which it arrived: accurate ECN answers with it.
    ecn: Codepoint,
    has_timestamp: bool,
    sack: bool,
    probes: bool,
    waves: bool,
    ack_cc: bool,
    /// The probe capability that its options state.
    capability: Option<Capability>,
    pub(super) dscp: u8,
    /// The gateway that has sent the SYN.
    pub(super) gateway: Option<NonZeroU32>,
}

impl Syn {
    fn of(seg: &Segment, tcp: &Tcp<'_>, capability: Option<Capability>, probe_exid: u32) -> Self {
        Self {
            dscp: tcp.dscp(),
            gateway: tcp.options.gateway(probe_exid),
            seq: seg.seq,
            timestamp: seg.ts.map_or(0, |(val, _)| val),
            window: seg.window.min(65_535) as u16,
            mss: seg.syn.mss.and_then(NonZeroU16::new),
            scale: seg.syn.window_scale,
            flags: seg.flags,
            ecn: seg.ecn,
            has_timestamp: seg.ts.is_some(),
            sack: seg.syn.sack_permitted,
            probes: seg.syn.probes,
            waves: seg.waves.number.is_some(),
            ack_cc: seg.syn.ack_cc,
            capability,
        }
    }
    /// Whether the SYN asks for the cookie with which later SYNs may carry data. That is no SYN cookie.
    fn asks_for_early_cookie(&self) -> bool {
        self.capability.is_some_and(|c| c.has(Capability::EARLY))
    }
    fn segment(&self) -> Segment {
        Segment {
            seq: self.seq,
            window: self.window.into(),
            ts: self.has_timestamp.then_some((self.timestamp, 0)),
            syn: SynOptions {
                mss: self.mss.map(NonZeroU16::get),
                window_scale: self.scale,
                sack_permitted: self.sack,
                probes: self.probes,
                ack_cc: self.ack_cc,
                snack: false,
            },
            flags: self.flags,
            ecn: self.ecn,
            waves: Waves { number: self.waves.then_some(NonZeroU16::MIN), rate: None },
            ..Segment::default()
        }
    }
    /// The part that a SYN cookie can encode: without timestamps only the segment size.
    fn for_cookie(mut self, unstated_mss: u16) -> Self {
        self.mss = NonZeroU16::new(cookie::size(self.mss.map_or(unstated_mss, NonZeroU16::get)));
        (self.flags, self.ecn) = (Flags::SYN, Codepoint::NotCapable);
        (self.waves, self.ack_cc) = (false, false);
        (self.dscp, self.gateway) = (0, None);
        if !self.has_timestamp {
            (self.scale, self.sack, self.probes) = (None, false, false);
        }
        self.capability = self.probes.then_some(PROBES);
        self
    }
    /// The contents of the SYN, decoded from the echo of a SYN cookie.
    fn from_cookie(seq: Seq, mss: u16, ts: Option<(u32, u32)>) -> Self {
        let o = ts.map(|(_, echo)| cookie::read(echo));
        let o = o.unwrap_or(Offer { scale: None, sack: false, probes: false });
        Self {
            seq,
            timestamp: ts.map_or(0, |(val, _)| val),
            window: 0,
            mss: NonZeroU16::new(mss),
            scale: o.scale,
            flags: Flags::SYN,
            ecn: Codepoint::NotCapable,
            has_timestamp: ts.is_some(),
            sack: o.sack,
            probes: o.probes,
            ack_cc: false,
            waves: false,
            capability: o.probes.then_some(PROBES),
            dscp: 0,
            gateway: None,
        }
    }
}

/// The probe capability that the single bit of a SYN cookie stands for.
const PROBES: Capability = Capability { flags: Capability::ANSWERS | Capability::NIL, log2_most: 0 };

/// What is reserved for a half-open connection that the application has to admit, before its decision and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserved {
    /// The reserved slot.
    pub(super) id: ConnId,
    /// The initial window that the application has chosen, segments; `None`: that of the endpoint.
    pub(super) window: Option<NonZeroU16>,
    /// The number of the endpoint that the application has chosen ([`Listeners::chosen`](super::listeners::Listeners::chosen)).
    pub(super) endpoint: u8,
}

/// Whether the application has to admit a half-open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// No: the SYN was answered at once.
    NotNeeded,
    /// Yes: the SYN is not answered yet.
    Awaited(Reserved),
    /// The application has admitted the connection, and the SYN was answered.
    Given(Reserved),
}

impl Permission {
    pub(super) fn reserved(self) -> Option<Reserved> {
        match self {
            Self::NotNeeded => None,
            Self::Awaited(reserved) | Self::Given(reserved) => Some(reserved),
        }
    }
}

/// A half-open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfOpen {
    pub(super) syn: Syn,
    iss: Seq,
    /// Number of the connection within the host.
    number: u64,
    pub(super) began: Instant,
    pub(super) sent: Instant,
    /// Earliest time of the next answer to a repeated SYN, and of the next challenge ACK.
    answer_from: Instant,
    repeats: u8,
    /// Memory was short when the SYN arrived, so the offered window is small.
    pressed: bool,
    pub(super) permission: Permission,
}

impl HalfOpen {
    fn new(syn: Syn, iss: Seq, number: u64, now: Instant, pressed: bool) -> Self {
        Self {
            syn,
            iss,
            number,
            began: now,
            sent: now,
            answer_from: now,
            repeats: 0,
            pressed,
            permission: Permission::NotNeeded,
        }
    }
}

impl Host {
    /// Handles a SYN to a listener. If it replaces a connection in TIME-WAIT, `replaced` is the last sequence number of
    /// that connection.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        ends: Ends,
        tcp: &Tcp<'_>,
        replaced: Option<Seq>,
        out: &mut impl Outlet,
    ) {
        let Some(endpoint) = self.listeners.at(ends.local().port()).cloned() else { return };
        if self.demux.len() >= self.config.most {
            // No answer: the peer retransmits its SYN, and there may be room then.
            self.counts.syns_dropped += 1;
            return;
        }
        if !self.may_send_synack(now, false) {
            return;
        }
        let agreed = self.agreement(&endpoint);
        let capability = match tcp.options.probe(agreed.probe_exid) {
            Some(ProbeOption::Capability(c)) => Some(c),
            _ => None,
        };
        let syn = Syn::of(&tcp.segment(&agreed), tcp, capability, agreed.probe_exid);
        let waits = self.listeners.admission(ends.local().port()) == Admission::WhenAdmitted;
        if self.half_open.len() >= self.config.backlog && waits {
            // A SYN cookie would answer before the application has decided.
            self.counts.syns_dropped += 1;
            return;
        }
        if self.half_open.len() >= self.config.backlog && replaced.is_none() {
            self.answer_with_cookie(now, &ends, syn, &endpoint, out);
            return;
        }
        self.opened += 1;
        let iss = above_replaced(self.config.secret.isn(now, ends.local(), ends.remote()), replaced);
        let pressed = self.ledger.presses();
        let half = HalfOpen::new(syn, iss, self.opened, now, pressed);
        if waits {
            let id = self.reserve();
            if !self.take_early(now, (id, &ends), tcp, &endpoint) {
                self.vacate(id);
                return self.reset_syn(&ends, tcp.seq, out);
            }
            let reserved = Reserved { id, window: None, endpoint: 0 };
            let at =
                self.half_open.insert(ends, HalfOpen { permission: Permission::Awaited(reserved), ..half });
            self.half_open.arm(at, now + LIFE);
            self.reserve_for(id, at);
            self.admissions.ask(id);
            return;
        }
        let (mut conn, synack) = self.rebuild(&half, &ends, &endpoint, None);
        if let Some(seg) = synack {
            conn.send(&seg, &mut self.counts, out);
        }
        let at = self.half_open.insert(ends, half);
        self.half_open.arm(at, now + endpoint.tcp.rto.initial.min(LIFE));
    }

    /// Rebuilds the endpoint of a half-open connection, in the state after the SYN-ACKs that were sent, and returns it with
    /// the last SYN-ACK. `early`: data of the SYN that is taken.
    pub(super) fn rebuild(
        &self,
        half: &HalfOpen,
        ends: &Ends,
        endpoint: &Endpoint,
        early: Option<&[u8]>,
    ) -> (Conn, Option<Segment>) {
        let (local, remote) = (ends.local(), ends.remote());
        let secret = &self.config.secret;
        let mut config = self.config_for(half.began, (remote.ip(), half.syn.gateway), endpoint);
        if let Some(window) = half.permission.reserved().and_then(|r| r.window) {
            config.rules.initial_window = InitialWindow::Segments(window.get().into());
        }
        let origin = Origin {
            config,
            cc: endpoint.cc.clone(),
            active: false,
            opened_at: half.began,
            iss: half.iss,
            timestamp_offset: secret.timestamp_offset(local, remote),
            rng: self.stream(half.number),
        };
        let mut agreed = self.agreement(endpoint);
        if self.config.transparent && agreed.dscp == 0 && !agreed.plan.is_low(half.syn.dscp) {
            // The host whose place the gateway takes would answer with the DSCP of the SYN.
            agreed.dscp = half.syn.dscp;
        }
        if let Some(gateway) = half.syn.gateway.filter(|_| half.syn.asks_for_early_cookie())
            && self.may_be_early(endpoint)
        {
            agreed.early = Some(self.cookie_for(half.began, gateway, remote.ip()));
        }
        let mut conn = Conn::new(origin.open(), local, remote, agreed, Some(local.port()));
        conn.gateway = half.syn.gateway;
        if self.config.record {
            conn.journal = Some(Box::new(Journal::new(origin)));
        }
        conn.set_pressed(half.began, half.pressed);
        let mut synack = None;
        let data = early.unwrap_or_default();
        if early.is_some() {
            let scaled = half.syn.capability.is_some_and(|c| c.has(Capability::SCALED));
            conn.take_early(half.began, scaled);
        }
        // The SYN is handled once more if the SYN-ACK was retransmitted: then its acknowledgement yields no RTT sample (Karn's
        // algorithm).
        for at in [Some(half.began), (half.repeats > 0).then_some(half.sent)].into_iter().flatten() {
            let syn = Segment { len: data.len() as u32, ..half.syn.segment() };
            let _ = conn.take(at, syn, half.syn.capability, data);
            synack = conn.next_segment(at);
        }
        (conn, synack)
    }

    /// Answers with a SYN cookie, because the table is full.
    fn answer_with_cookie(
        &mut self,
        now: Instant,
        ends: &Ends,
        syn: Syn,
        endpoint: &Endpoint,
        out: &mut impl Outlet,
    ) {
        let syn = syn.for_cookie(unstated_mss(ends.remote().ip()));
        let mss = syn.mss.map_or(0, NonZeroU16::get);
        let iss = cookie::make(&self.config.secret, now, ends, syn.seq, mss);
        let pressed = self.ledger.presses();
        // Only the SYN-ACK of this endpoint is used, so the number of the connection has no effect.
        let half = HalfOpen::new(syn, iss, 0, now, pressed);
        let (mut conn, synack) = self.rebuild(&half, ends, endpoint, None);
        let Some(mut seg) = synack else { return };
        let offer = Offer { scale: syn.scale, sack: syn.sack, probes: syn.probes };
        match &mut seg.ts {
            Some((val, _)) => *val = cookie::write(*val, offer),
            // Without timestamps the cookie cannot encode these options.
            None => (seg.syn.window_scale, seg.syn.sack_permitted, seg.syn.probes) = (None, false, false),
        }
        conn.send(&seg, &mut self.counts, out);
        self.counts.cookies_sent += 1;
        self.cookies_until = now + Duration::from_secs(2 * cookie::PERIOD);
    }

    /// Handles an acknowledgement to a listener that belongs to no connection: it may acknowledge a SYN cookie. False if it
    /// does not.
    pub(super) fn redeem(&mut self, now: Instant, ends: &Ends, tcp: &Tcp<'_>, out: &mut impl Outlet) -> bool {
        let plain = tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::RST);
        if !plain || now >= self.cookies_until {
            return false;
        }
        let Some(endpoint) = self.listeners.at(ends.local().port()).cloned() else { return false };
        // Adding the maximum subtracts 1: both initial sequence numbers precede those of the first acknowledgement.
        let (iss, irs) = (tcp.ack.add(u32::MAX), tcp.seq.add(u32::MAX));
        let Some(mss) = cookie::verify(&self.config.secret, now, ends, irs, iss) else { return false };
        if self.demux.len() >= self.config.most {
            self.counts.syns_dropped += 1;
            return true;
        }
        self.opened += 1;
        let ts = tcp.options.timestamps.filter(|_| endpoint.tcp.timestamps);
        let syn = Syn::from_cookie(irs, mss, ts);
        // Whether memory was short, which limits the offered window, is unknown: the connection takes the larger window.
        let half = HalfOpen::new(syn, iss, self.opened, now, false);
        let (mut conn, _) = self.rebuild(&half, ends, &endpoint, None);
        conn.forget_when_it_began(now);
        let taken = self.establish(now, (*ends, None), conn, tcp, out);
        self.counts.cookies_taken += u64::from(taken);
        taken
    }

    /// A segment of a half-open connection (RFC 9293 §3.10.7.4, RFC 5961).
    pub(super) fn half_open_segment(&mut self, now: Instant, at: u32, tcp: &Tcp<'_>, out: &mut impl Outlet) {
        let (ends, Some(&half)) = (self.half_open.ends(at), self.half_open.get(at)) else { return };
        let expected = half.syn.seq.add(1);
        if let Permission::Awaited(_) = half.permission {
            // A repeated SYN is not answered before the application has decided. With a RST the peer gives up.
            if tcp.flags.has(Flags::RST) && tcp.seq == expected {
                self.withdraw(at);
            }
            return;
        }
        let Some(endpoint) = self.endpoint_of(at) else {
            self.withdraw(at);
            return self.stranger(now, ends.local(), ends.remote(), tcp, out);
        };
        let f = tcp.flags;
        if f.has(Flags::RST) {
            // Only the exact number resets; others in the window get a challenge ACK (RFC 5961 §3.2).
            if tcp.seq == expected {
                self.withdraw(at);
            } else if (0..FIRST_WINDOW).contains(&tcp.seq.diff(expected)) {
                self.challenge(now, at, &endpoint, out);
            }
        } else if f.has(Flags::SYN) {
            if !f.has(Flags::ACK) && tcp.seq == half.syn.seq {
                // Our SYN-ACK was lost, or the peer is impatient.
                if let Some(half) = self.half_open.get_mut(at).filter(|h| now >= h.answer_from) {
                    half.answer_from = now + PAUSE;
                    self.repeat(now, at, &endpoint, true, out);
                }
            } else {
                self.challenge(now, at, &endpoint, out);
            }
        } else if !f.has(Flags::ACK) {
            self.counts.rejected(skyhaul_tcp::Rejected::Flags);
        } else if tcp.ack != half.iss.add(1) {
            self.stranger(now, ends.local(), ends.remote(), tcp, out);
        } else if self.demux.len() >= self.config.most {
            // No room now: the peer retransmits.
            self.counts.syns_dropped += 1;
        } else {
            let (conn, _) = self.rebuild(&half, &ends, &endpoint, None);
            if self.establish(now, (ends, half.permission.reserved().map(|r| r.id)), conn, tcp, out) {
                self.half_open.remove(at);
            } else {
                self.challenge(now, at, &endpoint, out);
            }
        }
    }

    /// Handles a segment that may complete the handshake. False if it does not: then nothing but a count has changed.
    fn establish(
        &mut self,
        now: Instant,
        (ends, id): (Ends, Option<ConnId>),
        mut conn: Conn,
        tcp: &Tcp<'_>,
        out: &mut impl Outlet,
    ) -> bool {
        if let Err(why) = conn.handle(now, tcp) {
            self.counts.rejected(why);
        }
        if matches!(conn.tcp().state(), State::Listen | State::SynReceived | State::Closed) {
            return false;
        }
        let slot = self.install(conn, ends, id);
        self.pump(now, slot, out);
        true
    }

    /// Sends a challenge ACK: in response to a SYN or a RST in the window (RFC 5961 §3.2 and §4.2), or to an acknowledgement that
    /// does not complete the handshake. It has the window and the timestamps of the SYN-ACK: a peer that has received the SYN-ACK would
    /// obey a closed window, and drop a segment without timestamps (RFC 7323 §3.2).
    fn challenge(&mut self, now: Instant, at: u32, endpoint: &Endpoint, out: &mut impl Outlet) {
        let ends = self.half_open.ends(at);
        let Some(half) = self.half_open.get_mut(at).filter(|h| now >= h.answer_from) else { return };
        half.answer_from = now + PAUSE;
        let half = *half;
        if !self.may_answer(now, ends.remote().ip()) {
            return;
        }
        let (mut conn, synack) = self.rebuild(&half, &ends, endpoint, None);
        if let Some(Segment { seq, ack, window, ts, .. }) = synack {
            let ack = Segment { seq: seq.add(1), ack, window, ts, flags: Flags::ACK, ..Segment::default() };
            conn.send(&ack, &mut self.counts, out);
        }
    }

    /// Retransmits the SYN-ACK; `asked` means that the peer repeated its SYN.
    fn repeat(&mut self, now: Instant, at: u32, endpoint: &Endpoint, asked: bool, out: &mut impl Outlet) {
        let ends = self.half_open.ends(at);
        let may = self.may_send_synack(now, !asked);
        let Some(half) = self.half_open.get_mut(at) else { return };
        half.repeats = half.repeats.saturating_add(1);
        if !may {
            return;
        }
        half.sent = now;
        let half = *half;
        let (mut conn, synack) = self.rebuild(&half, &ends, endpoint, None);
        if let Some(seg) = synack {
            conn.send(&seg, &mut self.counts, out);
        }
    }

    /// Forgets a half-open connection whose handshake failed.
    fn withdraw(&mut self, at: u32) {
        let reserved = self.half_open.remove(at).and_then(|half| half.permission.reserved());
        if let Some(Reserved { id, .. }) = reserved {
            self.early.remove(id);
            self.vacate(id);
            self.admissions.withdraw(id);
        }
    }

    /// Retransmits the SYN-ACKs that are due, and forgets expired half-open connections.
    pub(super) fn serve_half_open(&mut self, now: Instant, out: &mut impl Outlet) {
        while let Some(at) = self.half_open.due(now) {
            let Some(half) = self.half_open.get(at) else { continue };
            if let Permission::Awaited(_) = half.permission {
                self.withdraw(at);
                self.counts.half_open_expired += 1;
                continue;
            }
            let end = half.began + LIFE;
            let crowd = self.half_open.len() > self.config.backlog / 2;
            let most = if crowd { REPEATS_IN_A_CROWD } else { REPEATS };
            let done = half.repeats >= most;
            match self.endpoint_of(at) {
                Some(endpoint) if now < end && !done => {
                    let wait = endpoint.tcp.rto.initial * (1 << (half.repeats + 1));
                    self.repeat(now, at, &endpoint, false, out);
                    self.half_open.arm(at, (now + wait).min(end));
                }
                // The last SYN-ACK may still be acknowledged.
                Some(_) if now < end && !crowd => self.half_open.arm(at, end),
                // A repeated SYN was answered a moment ago.
                Some(endpoint) if now < end.min(half.sent + endpoint.tcp.rto.initial) => {
                    let answer_due = half.sent + endpoint.tcp.rto.initial;
                    self.half_open.arm(at, answer_due.min(end));
                }
                _ => {
                    self.withdraw(at);
                    self.counts.half_open_expired += 1;
                }
            }
        }
    }
}

/// The initial sequence number of a connection: `iss`, or, if the connection replaces one in TIME-WAIT whose last sequence
/// number was `old`, a number above that (RFC 6191 §2; the distance is that of Linux).
pub(super) fn above_replaced(iss: Seq, old: Option<Seq>) -> Seq {
    old.filter(|old| iss.diff(*old) < ISN_DISTANCE as i32).map_or(iss, |old| old.add(ISN_DISTANCE))
}

/// How far the sequence numbers of a connection that replaces one in TIME-WAIT start above the old ones.
const ISN_DISTANCE: u32 = 65_537;
