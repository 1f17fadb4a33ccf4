//! Connections that may have something to send, in order.

use super::schedule::{Place, Schedule};
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// What a client may send in its turn, and a class of weight 1 in its turn, bytes: two full packets.
const QUANTUM: i64 = 3000;
/// How far a subscriber may be ahead of its rate, so that a late wake-up costs it nothing.
const AHEAD: Duration = Duration::from_millis(10);
/// Number of subscribers in [`Turns::rates`] at which those that may send at once are forgotten.
const MANY: usize = 256;

/// Connections that may have something to send. If clients are distinguished, clients take turns, however many
/// connections each has; otherwise connections take turns.
#[derive(Debug)]
pub(super) enum Ready {
    Connections(VecDeque<u32>),
    Clients(Box<Turns>),
}

/// Turns of classes, and in each class of its clients: two levels of deficit round robin (Shreedhar and Varghese 1996), except that the
/// size of a packet is deducted after the packet has left, so that the credit may become negative.
#[derive(Debug)]
pub(super) struct Turns {
    schedule: Schedule,
    /// The classes of the schedule, and the one for everything else.
    classes: Vec<ClassTurns>,
    /// Numbers of classes that may have something to send.
    order: VecDeque<u16>,
    /// Number of connections that wait for a turn, without those whose clients are held.
    len: usize,
    /// When the subscribers of a schedule may send again.
    rates: BTreeMap<IpAddr, Serializer>,
    /// Clients that are held until their subscriber may send again: the time, the class, and the client.
    held: BTreeSet<(Instant, u16, IpAddr)>,
    /// The number of entries of `rates` at which those of subscribers that may send at once are forgotten.
    many: usize,
    /// The place of the connection that [`Self::pop`] has returned last, until its packets are deducted.
    last: Option<Place>,
}

/// A class of the schedule.
#[derive(Debug)]
struct ClassTurns {
    /// What the class may send in its turn, bytes.
    quantum: i64,
    /// What the class may still send in this turn, bytes.
    credit: i64,
    /// Whether the class is in [`Turns::order`].
    listed: bool,
    /// Clients that may have something to send and are not held.
    order: VecDeque<IpAddr>,
    clients: BTreeMap<IpAddr, Client>,
    /// Bytes sent.
    sent: u64,
}

/// The connections of a client in a class.
#[derive(Debug)]
struct Client {
    slots: VecDeque<u32>,
    /// What the client may still send in its turn, bytes.
    credit: i64,
    /// As [`Place::limit`].
    limit: Option<u16>,
    /// Whether the client is in [`Turns::held`].
    held: bool,
}

impl Ready {
    pub(super) fn new(by_client: bool, schedule: &Schedule) -> Self {
        if by_client {
            Self::Clients(Box::new(Turns::new(schedule)))
        } else {
            Self::Connections(VecDeque::new())
        }
    }
    /// Number of connections that may send.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Connections(slots) => slots.len(),
            Self::Clients(turns) => turns.len,
        }
    }
    /// Adds a connection; `place` is its place in the schedule.
    pub(super) fn push(&mut self, place: impl FnOnce(&Schedule) -> Place, slot: u32) {
        match self {
            Self::Connections(slots) => slots.push_back(slot),
            Self::Clients(turns) => {
                let place = place(&turns.schedule);
                turns.push(place, slot);
            }
        }
    }
    /// Subscribers that were held by their rate may send again. To be called before [`Self::pop`].
    pub(super) fn release(&mut self, now: Instant) {
        if let Self::Clients(turns) = self {
            turns.release(now);
        }
    }
    /// When [`Self::release`] has something to do; [`Instant::MAX`]: never.
    pub(super) fn next_release(&self) -> Instant {
        match self {
            Self::Connections(_) => Instant::MAX,
            Self::Clients(turns) => turns.held.first().map_or(Instant::MAX, |(at, _, _)| *at),
        }
    }
    /// The next connection. Its client keeps the turn until it has [spent](Self::spend) its credit, or has nothing more to send.
    pub(super) fn pop(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::Connections(slots) => slots.pop_front(),
            Self::Clients(turns) => turns.pop(now),
        }
    }
    /// The connection that [`Self::pop`] has returned last has sent this many bytes.
    pub(super) fn spend(&mut self, now: Instant, bytes: u64) {
        if let Self::Clients(turns) = self {
            turns.spend(now, bytes);
        }
    }
    /// Bytes sent by each class of the schedule, and by connections of none.
    pub(super) fn sent(&self) -> Vec<u64> {
        match self {
            Self::Connections(_) => Vec::new(),
            Self::Clients(turns) => turns.classes.iter().map(|c| c.sent).collect(),
        }
    }
    /// Number of subscribers that are held by their rate.
    pub(super) fn held(&self) -> usize {
        let Self::Clients(turns) = self else { return 0 };
        let held: BTreeSet<IpAddr> = turns.held.iter().map(|(_, _, party)| *party).collect();
        held.len()
    }
}

impl Turns {
    fn new(schedule: &Schedule) -> Self {
        let class = |weight: u32| ClassTurns {
            quantum: QUANTUM * i64::from(weight),
            credit: 0,
            listed: false,
            order: VecDeque::new(),
            clients: BTreeMap::new(),
            sent: 0,
        };
        Self {
            classes: schedule.classes.iter().map(|c| c.weight).chain([1]).map(class).collect(),
            schedule: schedule.clone(),
            order: VecDeque::new(),
            len: 0,
            rates: BTreeMap::new(),
            held: BTreeSet::new(),
            many: MANY,
            last: None,
        }
    }
    /// Gives a class a turn behind the others, unless the class waits for a turn already.
    fn list(&mut self, number: u16) {
        if let Some(class) = self.classes.get_mut(usize::from(number)).filter(|c| !c.listed) {
            (class.listed, class.credit) = (true, class.credit.min(0) + class.quantum);
            self.order.push_back(number);
        }
    }
    fn push(&mut self, place: Place, slot: u32) {
        let Some(class) = self.classes.get_mut(usize::from(place.class)) else { return };
        let client = class.clients.entry(place.party).or_insert_with(|| {
            class.order.push_back(place.party);
            Client { slots: VecDeque::new(), credit: QUANTUM, limit: place.limit, held: false }
        });
        client.slots.push_back(slot);
        if !client.held {
            self.len += 1;
            self.list(place.class);
        }
    }
    fn release(&mut self, now: Instant) {
        while let Some((_, number, party)) = self.held.first().copied().filter(|(at, _, _)| *at <= now) {
            self.held.pop_first();
            let Some(class) = self.classes.get_mut(usize::from(number)) else { continue };
            if let Some(client) = class.clients.get_mut(&party) {
                client.held = false;
                self.len += client.slots.len();
                class.order.push_back(party);
                self.list(number);
            }
        }
        if self.rates.len() >= self.many {
            self.rates.retain(|_, rate| rate.free_at() > now);
            self.many = (2 * self.rates.len()).max(MANY);
        }
    }
    fn pop(&mut self, now: Instant) -> Option<u32> {
        loop {
            let number = *self.order.front()?;
            let alone = self.order.len() == 1;
            let class = self.classes.get_mut(usize::from(number))?;
            let Some(party) = class.order.front().copied() else {
                class.listed = false;
                self.order.pop_front();
                continue;
            };
            let client = class.clients.get_mut(&party)?;
            if client.slots.is_empty() {
                class.order.pop_front();
                class.clients.remove(&party);
            } else if client.limit.is_some()
                && let Some(at) = self.rates.get(&party).map(|r| r.free_at() - AHEAD).filter(|at| *at > now)
            {
                client.held = true;
                self.len -= client.slots.len();
                class.order.pop_front();
                self.held.insert((at, number, party));
            } else if class.credit <= 0 {
                // No other class waits for a turn, so the class need not pay for what it sent in excess.
                class.credit = if alone { class.quantum } else { class.credit + class.quantum };
                self.order.rotate_left(1);
            } else if client.credit <= 0 {
                client.credit += QUANTUM;
                class.order.rotate_left(1);
            } else {
                self.len -= 1;
                self.last = Some(Place { class: number, party, limit: client.limit });
                return client.slots.pop_front();
            }
        }
    }
    fn spend(&mut self, now: Instant, bytes: u64) {
        let Some(Place { class: number, party, limit }) = self.last.take() else { return };
        let Some(class) = self.classes.get_mut(usize::from(number)) else { return };
        class.credit -= bytes as i64;
        class.sent += bytes;
        if let Some(client) = class.clients.get_mut(&party) {
            client.credit -= bytes as i64;
        }
        if bytes > 0
            && let Some(of) = limit.and_then(|n| self.schedule.subscribers.get(usize::from(n)))
        {
            self.rates.entry(party).or_insert_with(|| Serializer::new(of.rate)).send(now, bytes as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::host::schedule::{Class, Subscribers};
    use skyhaul_base::Rate;
    use std::net::SocketAddr;

    const NOW: Instant = Instant::ZERO;

    fn client(n: u8) -> impl Fn(&Schedule) -> Place {
        of(0, n)
    }
    fn of(class: u16, n: u8) -> impl Fn(&Schedule) -> Place {
        move |_| Place { class, party: IpAddr::from([10, 0, 0, n]), limit: None }
    }

    #[test]
    fn clients_take_turns() {
        let mut all: Vec<Vec<u32>> = Vec::new();
        for by_client in [false, true] {
            let mut ready = Ready::new(by_client, &Schedule::default());
            for slot in 0..4 {
                ready.push(client(1), slot);
            }
            ready.push(client(2), 9);
            assert_eq!(ready.len(), 5);
            let next = |ready: &mut Ready| ready.pop(NOW).inspect(|_| ready.spend(NOW, 3000));
            all.push(core::iter::from_fn(|| next(&mut ready)).collect());
            assert_eq!(ready.len(), 0);
        }
        assert_eq!(all, [vec![0, 1, 2, 3, 9], vec![0, 9, 1, 2, 3]]);
    }

    /// One client has ten connections, some of which have nothing to send or only acknowledgements; the other has one.
    #[test]
    fn a_client_with_ten_connections_sends_as_many_bytes_as_one_with_a_single_one() {
        let mut ready = Ready::new(true, &Schedule::default());
        (0..11).for_each(|slot| ready.push(client(u8::from(slot == 10)), slot));
        let mut sent = [0u64; 2];
        for turn in 0..30_000 {
            let slot = ready.pop(NOW).expect("all have more to send");
            let bytes = match slot {
                10 if turn % 5 == 0 => 1000,
                0..4 => 52,
                4 => 0,
                _ => 2896,
            };
            sent[usize::from(slot == 10)] += bytes;
            ready.spend(NOW, bytes);
            ready.push(client(u8::from(slot == 10)), slot);
        }
        assert!(sent[0].abs_diff(sent[1]) <= 2 * QUANTUM as u64, "{sent:?}");
    }

    /// A link of 12 Mbit/s, a packet of 1500 bytes each millisecond. Connection 0 has a packet of 100 bytes to send every 50 ms; others
    /// always have more to send. Returns the longest time that such a packet has waited, and the bytes of each connection.
    fn beside_bulk(schedule: &Schedule, places: &[Place]) -> (Duration, Vec<u64>) {
        let mut ready = Ready::new(true, schedule);
        let put = |ready: &mut Ready, slot: usize| ready.push(|_| places[slot], slot as u32);
        (1..places.len()).for_each(|slot| put(&mut ready, slot));
        let (mut now, mut small_at) = (NOW, NOW);
        let (mut worst, mut sent) = (Duration::ZERO, vec![0; places.len()]);
        let mut waits = false;
        while now < NOW + Duration::from_secs(20) {
            if !waits && small_at <= now {
                waits = true;
                put(&mut ready, 0);
            }
            ready.release(now);
            let Some(slot) = ready.pop(now) else {
                // The link is idle until a subscriber may send again, or the next small packet comes.
                now = ready
                    .next_release()
                    .min(if waits { Instant::MAX } else { small_at })
                    .max(now + Duration::from_micros(1));
                continue;
            };
            let bytes = if slot == 0 { 100 } else { 1500 };
            sent[slot as usize] += bytes;
            now += Duration::from_nanos(bytes * 8_000_000_000 / 12_000_000);
            ready.spend(now, bytes);
            if slot == 0 {
                worst = worst.max(now - small_at);
                (waits, small_at) = (false, small_at + Duration::from_millis(50));
            } else {
                put(&mut ready, slot as usize);
            }
        }
        (worst, sent)
    }

    #[test]
    fn a_class_of_small_flows_does_not_wait_for_bulk() {
        let class = |port: u16, weight| Class { ports: vec![port..=port], dscp: Vec::new(), weight };
        let schedule = Schedule { classes: vec![class(22, 4), class(80, 2)], ..Schedule::default() };
        // Clients 1 to 20 with bulk; the small flow is one of client 1, which has bulk, too.
        let bulk = (1..=20).map(|n| of(1, n)(&schedule));
        let places: Vec<Place> = [of(0, 1)(&schedule)].into_iter().chain(bulk.clone()).collect();
        let (worst, _) = beside_bulk(&schedule, &places);
        // A turn of the class of bulk, the packet before that, and the small packet itself.
        assert!(worst <= Duration::from_millis(6), "{worst:?}");
        // In the class of bulk, the small packet waits for the turns of all clients.
        let together: Vec<Place> = [of(1, 1)(&schedule)].into_iter().chain(bulk).collect();
        let (worst, _) = beside_bulk(&schedule, &together);
        assert!(worst >= Duration::from_millis(30), "{worst:?}");
    }

    #[test]
    fn classes_share_by_weight_and_leave_nothing_unused() {
        let class = |weight| Class { ports: vec![1..=1], dscp: Vec::new(), weight };
        let schedule = Schedule { classes: vec![class(3), class(1)], ..Schedule::default() };
        let small = of(2, 9)(&schedule);
        let places = [small, of(0, 1)(&schedule), of(0, 2)(&schedule), of(1, 3)(&schedule)];
        let (_, sent) = beside_bulk(&schedule, &places);
        let (first, second) = (sent[1] + sent[2], sent[3]);
        assert!((first as f64 / second as f64 - 3.0).abs() < 0.02, "{sent:?}");
        assert!(sent[1].abs_diff(sent[2]) <= 2 * QUANTUM as u64, "{sent:?}");
        let all: u64 = sent.iter().sum();
        assert!((29_990_000..=30_003_000).contains(&all), "the rate of the link: {sent:?}");
        // The second class alone has the whole link.
        let (_, sent) = beside_bulk(&schedule, &[small, of(1, 3)(&schedule)]);
        assert!(sent[1] > 29_900_000, "{sent:?}");
    }

    #[test]
    fn subscribers_have_their_rate_and_no_more() {
        let net = |n: u8, mbit: u64| Subscribers {
            networks: vec![([10, 0, 0, n].into(), 32)],
            prefixes: [32, 64],
            rate: Rate::from_bits_per_sec(mbit * 1_000_000),
        };
        let schedule = Schedule { classes: Vec::new(), subscribers: vec![net(1, 2), net(2, 3)] };
        // Subscriber 1 has two connections, subscriber 2 has one, client 3 has no limit.
        let at = |n: u8, port| SocketAddr::new([10, 0, 0, n].into(), port);
        let places = [9, 1, 1, 2, 3].map(|n| schedule.place(at(n, 40_000), at(200, 80), 0));
        let (worst, sent) = beside_bulk(&schedule, &places);
        // What the rate allows in 20 s, and 10 ms (`AHEAD`) and a turn more.
        let within = |bytes: u64, mbit: u64| {
            let exact = mbit * 1_000_000 / 8 * 20;
            (exact - 3000..=exact + 10_000).contains(&bytes)
        };
        assert!(within(sent[1] + sent[2], 2) && within(sent[3], 3), "{sent:?}");
        assert!(sent[1].abs_diff(sent[2]) <= 2 * QUANTUM as u64, "{sent:?}");
        let all: u64 = sent.iter().sum();
        assert!(all > 29_990_000, "the rest is for those without a limit: {sent:?}");
        assert!(worst <= Duration::from_millis(8), "{worst:?}");
        // If all are limited, the link idles, and nobody is woken before there is something to do.
        let (worst, sent) = beside_bulk(&schedule, &places[..4]);
        assert!(within(sent[1] + sent[2], 2) && within(sent[3], 3), "{sent:?}");
        assert!(worst <= Duration::from_millis(5), "{worst:?}");
    }
}
