//! CAKE: a shaper, priority tins, and in each tin a queue per flow with COBALT [Høiland-Jørgensen, Täht, Morton: "Piece of CAKE",
//! 2018; tc-cake(8)].
//!
//! * **Shaper.** With `rate` a packet leaves no sooner than all before it have at this rate, framing included. Time that an
//!   idle queue lets pass is not saved up.
//! * **Tins** take turns by the DSCP. With a shaper each has a clock that runs at its threshold: of the tins that are not ahead of
//!   their clocks the first in rank is served, otherwise the one that is ahead by the least. A tin above its threshold thus has what the
//!   others leave, and one below it goes first. Without, deficit round robin gives each the weight of its threshold.
//! * **Flows** of a tin take turns by deficit round robin, and those that have just begun go first (DRR++). Unlike FQ-CoDel, a flow
//!   that is empty is new with its next packet, unless it has sent more than its quantum.
//! * **Hashing** is set-associative, with sets of eight queues: two flows share a queue only if eight others of the set are in use.
//!
//! Each packet that is judged draws once, for BLUE.

use super::cobalt::{Cobalt, Limits, Verdict};
use super::codel::Law;
use super::fq_codel::queue_of;
use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid, round_trip};
use super::waiting::Waiting;
use crate::packet::{DropReason, PacketView};
use crate::param::within;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Reverse;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate};

/// The tins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tins {
    /// One for all packets.
    Besteffort,
    /// Best effort, bulk (LE, CS1) with 1/16 and voice (VA, EF, CS6, CS7, TOS4) with 1/4 of the rate.
    #[default]
    Diffserv3,
    /// As "diffserv3", and video (AF2x, AF3x, AF4x, CS2, CS3, TOS4) with 1/2 of the rate; CS4 and CS5 are voice.
    Diffserv4,
}

/// What has a queue of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Isolation {
    /// Each flow.
    #[default]
    Flows,
    /// Nothing: a tin is one queue.
    Flowblind,
}

/// How the link below a shaper frames packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Framing {
    /// Not at all.
    #[default]
    None,
    /// In cells of ATM: 53 bytes for each 48 or part of them.
    Atm,
    /// In the 64b/65b code of PTM: a byte more for each 64 or part of them.
    Ptm,
}

skyhaul_base::options! {
    /// A shaper, priority tins, and in each a queue per flow that marks or drops packets (CAKE).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// RTT that the control of the delay is tuned for; the longest base RTT of the flows on the link by default, rounded up to
        /// 10 ms, at least 100 ms. The target of the queueing delay is 5 % of it, at least the time of 1.5 packets of 1514 B.
        rtt: Duration as Time = Law::RFC.interval,
        /// Rate of the shaper, below that of the link; without a shaper by default.
        rate: Option<Rate> as Rate = None,
        /// Tins by DSCP: "besteffort" one, "diffserv3" three, "diffserv4" four; "diffserv3" by default.
        tins: Tins = Tins::Diffserv3,
        /// What has a queue of its own in a tin: "flows", or nothing with "flowblind"; "flows" by default.
        isolation: Isolation = Isolation::Flows,
        /// Number of queues that the flows share; 1024 by default.
        flows: u64 as Count = 1024,
        /// Bytes that the framing adds to each packet, for shaper and fairness; none by default.
        overhead: u64 as Size = 0,
        /// Minimum packet unit: bytes that the smallest packet takes, `overhead` included; none by default.
        mpu: u64 as Size = 0,
        /// Framing below the shaper: "atm" in cells, "ptm" in its 64b/65b code; "none" by default.
        framing: Framing = Framing::None,
    }
}

/// Queues of a set.
const WAYS: usize = 8;
/// Bytes of a full packet: Ethernet without the check sequence.
const FULL_PACKET: u64 = 1514;
/// Bounds of the quantum of a flow, and the time that it lasts at the rate of the tin: 2^-12 s.
const LEAST_QUANTUM: u64 = 300;
const QUANTUM_SHIFT: u32 = 12;
/// Weight of the best-effort tin without a shaper, bytes.
const WEIGHT: i64 = 1024;
/// Largest `overhead` and `mpu`.
const MOST_BYTES: u64 = 65_535;

/// Tins by their places. A later one ranks first among those below their thresholds.
const BULK: usize = 1;

impl Tins {
    /// The threshold of each tin, as a power of two that divides the rate, best effort first.
    const fn shifts(self) -> &'static [u32] {
        match self {
            Self::Besteffort => &[0],
            Self::Diffserv3 => &[0, 4, 2],
            Self::Diffserv4 => &[0, 4, 1, 2],
        }
    }
    /// The tin of a DSCP [tc-cake(8), "Priority queue parameters"].
    const fn of(self, dscp: u8) -> usize {
        match (self, dscp) {
            (Self::Besteffort, _) => 0,
            // LE, CS1.
            (_, 1 | 8) => BULK,
            // TOS4, VA, EF, CS6, CS7.
            (Self::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
            // TOS4, CS2, AF2x, CS3, AF3x, AF4x.
            (Self::Diffserv4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
            // CS4, CS5, VA, EF, CS6, CS7.
            (Self::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
            _ => 0,
        }
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::RTT,
        options::RATE,
        options::TINS,
        options::ISOLATION,
        options::FLOW_QUEUES,
        options::OVERHEAD,
        options::MPU,
        options::FRAMING,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<Cake<P>>;
    type Invalid = Invalid;

    fn validate(&self, _: Limit) -> Result<(), Invalid> {
        options::some_time(options::RTT.name, self.rtt, "a time such as \"100 ms\"")?;
        within(options::FLOW_QUEUES.name, self.flows as f64, WAYS as f64, 65_536.0)?;
        if self.flows % WAYS as u64 > 0 {
            return Err(Invalid::Ways { queues: self.flows, ways: WAYS as u64 });
        }
        within(options::OVERHEAD.name, self.overhead as f64, 0.0, MOST_BYTES as f64)?;
        within(options::MPU.name, self.mpu as f64, 0.0, MOST_BYTES as f64)?;
        if self.rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
            return Err(Invalid::Zero { key: options::RATE.name, example: "a rate such as \"10 Mbit/s\"" });
        }
        Ok(())
    }
    fn build<P>(&self) -> Box<Cake<P>> {
        let queues = match self.isolation {
            Isolation::Flows => (self.flows.clamp(1, 65_536) as usize).next_multiple_of(WAYS),
            Isolation::Flowblind => 1,
        };
        let mut cake = Cake {
            tins: self.tins.shifts().iter().map(|shift| Tin::new(*shift, queues)).collect(),
            current: 0,
            packets: 0,
            shaper: self.rate.map(Serializer::new),
            config: *self,
        };
        cake.tune(None);
        Box::new(cake)
    }
    fn shapes(&self) -> bool {
        self.rate.is_some()
    }
    fn marks(&self) -> bool {
        true
    }
    fn words(&self) -> &'static str {
        "a queue per flow in tins by DSCP, with a shaper (CAKE)"
    }
    fn ignores_priority(&self) -> bool {
        self.tins == Tins::Besteffort
    }
    fn round_trip(&self) -> Option<(&'static str, Duration)> {
        Some((options::RTT.name, self.rtt))
    }
    fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        Self { rtt: if written(options::RTT.name) { self.rtt } else { round_trip(rtt) }, ..self }
    }
}

impl Config {
    /// Bytes that a packet of this size takes below the shaper.
    fn framed(&self, size: u32) -> u32 {
        let bytes = (u64::from(size) + self.overhead).max(self.mpu);
        let framed = match self.framing {
            Framing::None => bytes,
            Framing::Atm => bytes.div_ceil(48) * 53,
            Framing::Ptm => bytes + bytes.div_ceil(64),
        };
        u32::try_from(framed).unwrap_or(u32::MAX)
    }

    /// What the queues of a tin with this rate are held to: `None` is infinitely fast. The target is never less than the time of
    /// 1.5 full packets; the interval grows with it and is at least twice as long.
    fn limits(&self, rate: Option<Rate>) -> Limits {
        let full_packet = rate.map_or(Duration::ZERO, |rate| time(FULL_PACKET, rate));
        let usual = self.rtt / 20;
        let target = usual.max(full_packet * 3 / 2);
        let interval = (self.rtt + (target - usual)).max(target * 2);
        Limits { law: Law { target, interval, ecn: true }, full_packet }
    }
}

/// The time that so many bytes take.
fn time(bytes: u64, rate: Rate) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(8_000_000_000) / rate.bits_per_sec().max(1))
}

/// The queue of a flow, or of several if the set is full.
#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: Waiting<P>,
    cobalt: Cobalt,
    /// Bytes that the flow may still send in this turn.
    credits: i64,
    /// The flow that it is for.
    tag: u32,
    place: Place,
}

/// Where a queue is in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// Among the new or the old ones; it may be empty.
    Active,
    /// It is empty, and its state is not at rest yet.
    Decaying,
}

#[derive(Clone, Debug)]
struct Tin<P> {
    /// Its threshold is the rate over this power of two.
    shift: u32,
    flows: Vec<Flow<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    packets: u32,
    /// Bytes that the tin may still send in its turn, without a shaper.
    credits: i64,
    /// Without an excess over its threshold the next packet may leave then.
    clock: Instant,
    /// Its part of the shaper's rate, if there is one.
    rate: Option<Rate>,
    /// Bytes that a flow may send per turn.
    quantum: i64,
    limits: Limits,
}

impl<P> Tin<P> {
    fn new(shift: u32, queues: usize) -> Self {
        let flow = |_| Flow {
            waiting: Waiting::new(false),
            cobalt: Cobalt::default(),
            credits: 0,
            tag: 0,
            place: Place::Nowhere,
        };
        Self {
            shift,
            flows: (0..queues).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            packets: 0,
            credits: 0,
            clock: Instant::ZERO,
            rate: None,
            quantum: 0,
            limits: Limits { law: Law::RFC, full_packet: Duration::ZERO },
        }
    }
    fn is_active(&self) -> bool {
        !(self.new.is_empty() && self.old.is_empty())
    }

    /// The queue of a flow: its own if it is in use, otherwise an unused one of its set. If all are in use, it shares the first.
    fn queue_of(&mut self, flow: u32) -> usize {
        if self.flows.len() == 1 {
            return 0;
        }
        let direct = queue_of(flow, self.flows.len());
        let (set, inner) = (direct - direct % WAYS, direct % WAYS);
        let ways = || (0..WAYS).map(|i| set + (inner + i) % WAYS);
        let is_own = |i: &usize| self.flows[*i].tag == flow && self.flows[*i].place != Place::Nowhere;
        let unused = |i: &usize| self.flows[*i].place == Place::Nowhere;
        let index = ways().find(is_own).or_else(|| ways().find(unused)).unwrap_or(direct);
        self.flows[index].tag = flow;
        index
    }
}

impl<P: PacketView> Tin<P> {
    fn push(&mut self, now: Instant, p: P) -> usize {
        let index = self.queue_of(p.flow());
        let flow = &mut self.flows[index];
        flow.waiting.push(now, p);
        self.packets += 1;
        if flow.place != Place::Active {
            if flow.place == Place::Decaying {
                self.decaying.retain(|i| *i != index);
            }
            flow.place = Place::Active;
            flow.credits = self.quantum;
            self.new.push_back(index);
        }
        index
    }

    /// The queue whose turn it is, and its place: one that decays is looked at first, once per packet that leaves.
    fn list(&mut self, decays: bool) -> &mut VecDeque<usize> {
        if decays && !self.decaying.is_empty() {
            &mut self.decaying
        } else if !self.new.is_empty() {
            &mut self.new
        } else {
            &mut self.old
        }
    }

    /// Takes the next packet of the flow whose turn it is; `None` if that is empty. `looks` is whether a queue that decays may be
    /// looked at, `framed` what the packets take below the shaper.
    fn pop(
        &mut self,
        looks: &mut bool,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
        framed: impl Fn(u32) -> u32,
    ) -> Option<P> {
        let index = loop {
            let index = *self.list(*looks).front()?;
            let decays = core::mem::take(looks);
            let flow = &mut self.flows[index];
            if flow.credits > 0 {
                break index;
            }
            flow.credits += self.quantum;
            self.list(decays).pop_front();
            self.old.push_back(index);
        };
        let flow = &mut self.flows[index];
        while let Some(next) = flow.waiting.pop() {
            self.packets -= 1;
            let mut p = next.packet;
            let size = p.size();
            let draw = (at.rng.next_u64() >> 32) as u32;
            let kind = (p.is_ect(), flow.waiting.is_empty());
            match flow.cobalt.judge(&self.limits, (at.now, next.since), kind, draw) {
                Verdict::Send => {}
                Verdict::Mark => at.mark_at_hand(&mut p),
                Verdict::Drop => {
                    held.remove(size);
                    lost(p, DropReason::Aqm);
                    continue;
                }
            }
            flow.credits -= i64::from(framed(size));
            return Some(p);
        }
        self.retire(index, at.now);
        None
    }

    /// Takes an empty queue out of the rotation, once its state is at rest.
    fn retire(&mut self, index: usize, now: Instant) {
        let flow = &mut self.flows[index];
        flow.cobalt.empty(&self.limits.law, now);
        let was = flow.place;
        flow.place = if flow.cobalt.is_at_rest(now) { Place::Nowhere } else { Place::Decaying };
        let list = match was {
            Place::Decaying => &mut self.decaying,
            _ if self.new.front() == Some(&index) => &mut self.new,
            _ => &mut self.old,
        };
        list.pop_front();
        if self.flows[index].place == Place::Decaying {
            self.decaying.push_back(index);
        }
    }

    /// A packet that takes so many bytes leaves: the clock advances by its time at the threshold, or, if it is ahead already, to this
    /// time from now at least. What a tin sends above its threshold does not add up.
    fn charge(&mut self, now: Instant, bytes: u32) {
        self.credits -= i64::from(bytes);
        let Some(rate) = self.rate else { return };
        let step = time(bytes.into(), rate);
        self.clock = if self.clock < now { self.clock + step } else { self.clock.max(now + step) };
    }
}

/// The tins, and the shaper.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    tins: Vec<Tin<P>>,
    /// The tin whose turn it is, without a shaper.
    current: usize,
    packets: u32,
    shaper: Option<Serializer>,
    config: Config,
}

impl<P> Cake<P> {
    /// Sets what follows from the rate: that of the shaper, or else that of the `link` (*our choice*: Linux knows none).
    fn tune(&mut self, link: Option<Rate>) {
        let part = |rate: Rate, shift: u32| Rate::from_bits_per_sec((rate.bits_per_sec() >> shift).max(1));
        for tin in &mut self.tins {
            tin.rate = self.config.rate.map(|rate| part(rate, tin.shift));
            tin.limits = self.config.limits(tin.rate.or(link.map(|rate| part(rate, tin.shift))));
            let bytes = tin.rate.map_or(u64::MAX, |rate| (rate.bits_per_sec() / 8) >> QUANTUM_SHIFT);
            tin.quantum = bytes.clamp(LEAST_QUANTUM, FULL_PACKET) as i64;
        }
    }

    /// The tin that is served next, of which at least one has packets.
    fn choose(&mut self, now: Instant) -> usize {
        if self.shaper.is_none() {
            loop {
                let tin = &mut self.tins[self.current];
                if tin.credits >= 0 && tin.is_active() {
                    return self.current;
                }
                if tin.credits <= 0 {
                    tin.credits += WEIGHT >> tin.shift;
                }
                self.current = (self.current + 1) % self.tins.len();
            }
        }
        // The last of those that are due, or of those that are due first.
        let ahead = |tin: &Tin<P>| tin.clock.since(now);
        let active = self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active());
        active.min_by_key(|(i, tin)| (ahead(tin), Reverse(*i))).map_or(0, |(i, _)| i)
    }
}

impl<P: PacketView> Cake<P> {
    fn push(&mut self, at: &Moment<'_>, p: P) -> (usize, usize) {
        let index = self.config.tins.of(p.dscp());
        let tin = &mut self.tins[index];
        if tin.packets == 0 {
            tin.clock = tin.clock.max(at.now);
        }
        self.packets += 1;
        (index, tin.push(at.now, p))
    }

    /// Drops the packet at the head of the queue with the most bytes.
    fn overflow(&mut self, now: Instant, held: &mut Load, lost: &mut impl FnMut(P, DropReason)) {
        let queues = self.tins.iter().enumerate().flat_map(|(t, tin)| {
            let filled = tin.new.iter().chain(&tin.old).filter(|q| !tin.flows[**q].waiting.is_empty());
            filled.map(move |q| (tin.flows[*q].waiting.bytes(), Reverse((t, *q))))
        });
        let Some((_, Reverse((t, q)))) = queues.max() else { return };
        let tin = &mut self.tins[t];
        let flow = &mut tin.flows[q];
        let Some(victim) = flow.waiting.pop() else { return };
        flow.cobalt.overflow(&tin.limits.law, now);
        tin.packets -= 1;
        self.packets -= 1;
        held.remove(victim.packet.size());
        lost(victim.packet, DropReason::Full);
    }

    fn pop(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        let mut looks = true;
        while self.packets > 0 {
            let (chosen, config) = (self.choose(at.now), self.config);
            let tin = &mut self.tins[chosen];
            let before = tin.packets;
            let next = tin.pop(&mut looks, at, held, lost, |size| config.framed(size));
            self.packets -= before - tin.packets;
            if let Some(p) = next {
                let bytes = config.framed(p.size());
                tin.charge(at.now, bytes);
                if let Some(shaper) = &mut self.shaper {
                    shaper.send(at.now, bytes);
                }
                return Some(p);
            }
        }
        None
    }
}

impl<P: PacketView> Order<P> for Cake<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        // Packets beyond a reduced limit stay, but no more are added.
        let most = Load { packets: limit.packets.max(held.packets), bytes: limit.bytes.max(held.bytes) };
        held.add(p.size());
        let (tin, queue) = self.push(at, p);
        let youngest = self.tins[tin].flows[queue].waiting.youngest();
        while held.packets > most.packets || held.bytes > most.bytes {
            self.overflow(at.now, held, lost);
        }
        self.tins[tin].flows[queue].waiting.youngest() == youngest
    }
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.pop(at, held, lost)
    }
    fn pass(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        _: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        let mut held = Load::EMPTY;
        self.push(at, p);
        self.pop(at, &mut held, lost)
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.tune(rate);
    }
    fn not_before(&self) -> Instant {
        self.shaper.as_ref().map_or(Instant::ZERO, Serializer::free_at)
    }
}

#[cfg(test)]
mod tests;
