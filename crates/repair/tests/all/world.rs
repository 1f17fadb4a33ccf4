//! Two ends, and a segment between them on which the test decides the fate of each frame.

use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::{PacketView, QueueConfig};
use skyhaul_repair::{Code, Config, End, Frame, Kind, Output, Treatment};
use std::collections::BTreeMap;

/// What happens to a frame: nothing if it is lost, otherwise the extra delay of each copy.
pub(crate) type Fate = Vec<Duration>;

/// A packet that carries only its number and its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    pub(crate) size: u32,
}

impl PacketView for Numbered {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        false
    }
    fn flow(&self) -> u32 {
        0
    }
}

pub(crate) fn config() -> Config {
    Config::new(Rate::from_bits_per_sec(10_000_000), QueueConfig::packets(10_000))
}

/// A datagram that was delivered: its number, when, whether out of order, and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival<R> {
    pub(crate) seq: u64,
    pub(crate) at: Instant,
    pub(crate) late: bool,
    pub(crate) datagram: R,
}

/// A frame on its way, and the end that it goes to.
type Flight<C> = (usize, Frame<<C as Code>::Received, <C as Code>::Symbol>);

/// Two ends.
pub(crate) struct World<C: Code> {
    pub(crate) now: Instant,
    pub(crate) ends: [End<C>; 2],
    /// Propagation delay in one direction.
    pub(crate) delay: Duration,
    /// Frames under way, by the time of their arrival and the order of their sending.
    flying: BTreeMap<(Instant, u64), Flight<C>>,
    launched: u64,
    pub(crate) arrivals: Vec<Arrival<C::Received>>,
    /// When each datagram was first sent.
    pub(crate) sent: Vec<Instant>,
    /// Numbers of the datagrams that the receiver reported as lost.
    pub(crate) lost: Vec<u64>,
}

impl<C: Code + Default> World<C>
where
    C::Symbol: Clone,
{
    pub(crate) fn new(config: &Config, delay: Duration) -> Self {
        let end = |name| End::new(config, C::default(), Rng::stream(1, name));
        Self::of([end("near"), end("far")], delay)
    }
    pub(crate) fn of(ends: [End<C>; 2], delay: Duration) -> Self {
        Self {
            now: Instant::ZERO,
            ends,
            delay,
            flying: BTreeMap::new(),
            launched: 0,
            arrivals: Vec::new(),
            sent: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(crate) fn offer(&mut self, datagram: C::Sent) {
        let done = self.ends[0].offer(self.now, datagram, Treatment::Repaired, &mut |_, _| {});
        done.expect("fits");
    }

    /// Sends what is ready. `receive` turns a datagram as sent into one as received; `fate` decides on each frame.
    pub(crate) fn flush(
        &mut self,
        receive: &impl Fn(&C::Sent) -> C::Received,
        fate: &mut impl FnMut(usize, u64) -> Fate,
    ) {
        for side in 0..2 {
            while let Some(output) = self.ends[side].poll_frame(self.now, &mut |_, _| {}) {
                let Output::Frame { frame: Frame { number, kind }, .. } = output else {
                    panic!("nothing passes")
                };
                let kind = match kind {
                    Kind::Source { seq, floor, datagram } => {
                        if seq as usize == self.sent.len() {
                            self.sent.push(self.now);
                        }
                        Kind::Source { seq, floor, datagram: receive(&datagram) }
                    }
                    Kind::Repair { first, k, parity, index, symbol } => {
                        Kind::Repair { first, k, parity, index, symbol }
                    }
                    Kind::Report(report) => Kind::Report(report),
                };
                for extra in fate(side, number) {
                    self.launched += 1;
                    let at = self.now + self.delay + extra;
                    let frame = Frame { number, kind: kind.clone() };
                    self.flying.insert((at, self.launched), (1 - side, frame));
                }
            }
        }
    }

    fn collect(&mut self) {
        while let Some(d) = self.ends[1].poll_delivery(self.now) {
            self.arrivals.push(Arrival { seq: d.seq, at: self.now, late: d.late, datagram: d.datagram });
        }
        while let Some(lost) = self.ends[1].poll_lost() {
            self.lost.extend(lost);
        }
        assert!(self.ends[0].poll_delivery(self.now).is_none(), "nothing was sent that way");
    }

    /// Runs until `until`.
    pub(crate) fn run(
        &mut self,
        until: Instant,
        receive: &impl Fn(&C::Sent) -> C::Received,
        fate: &mut impl FnMut(usize, u64) -> Fate,
    ) {
        let mut idle = 0;
        loop {
            self.flush(receive, fate);
            self.collect();
            let now = self.now;
            let timer = self.ends.iter_mut().map(|e| e.next_timeout(now)).min().expect("two");
            let arrival = self.flying.keys().next().map_or(Instant::MAX, |k| k.0);
            let next = timer.min(arrival).max(now);
            if next > until {
                break;
            }
            idle = if next == now { idle + 1 } else { 0 };
            assert!(idle < 1000, "time stands still at {now:?}");
            self.now = next;
            if let Some(((at, _), _)) = self.flying.first_key_value() {
                if *at <= next {
                    let (_, (side, frame)) = self.flying.pop_first().expect("there is one");
                    self.ends[side].receive(next, frame, false);
                }
            }
            self.ends.iter_mut().for_each(|e| e.handle_timeout(next));
        }
        self.now = until;
    }

    /// Offers a datagram every `gap`, `n` in all, and runs until everything has had its time.
    pub(crate) fn stream(
        &mut self,
        n: u32,
        gap: Duration,
        make: impl Fn(u32) -> C::Sent,
        receive: &impl Fn(&C::Sent) -> C::Received,
        fate: &mut impl FnMut(usize, u64) -> Fate,
    ) {
        for i in 0..n {
            self.offer(make(i));
            self.run(self.now + gap, receive, fate);
        }
        self.run(self.now + Duration::from_secs(20), receive, fate);
    }
}
