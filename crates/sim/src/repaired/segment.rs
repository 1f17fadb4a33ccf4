//! A segment with its two gateways, and its frames as parcels.

use crate::flow::agent::Agent;
use crate::flow::{Flow, Record};
use crate::packet::parcel::{Packet, Parcel};
use skyhaul_base::{Instant, Rng};
use skyhaul_repair::code::Counted;
use skyhaul_repair::{Config, Counters, End, Frame, Kind, Report};
use skyhaul_scenario::resolved::{Repair, Resolved};
use skyhaul_tcp::Codepoint;
use std::collections::VecDeque;

/// The kinds of frames in a parcel.
const SOURCE: u8 = 0;
const SYMBOL: u8 = 1;
const REPORT: u8 = 2;

/// A segment with its two gateways.
#[derive(Debug)]
pub(crate) struct RepairedSegment {
    /// The flow of its frames.
    pub(super) flow: u32,
    /// The directions of links that its gateways send to.
    pub(super) first: [u32; 2],
    /// The links between the gateways.
    pub(super) links: Vec<usize>,
    /// The gateways at its beginning and at its end, seen from the forward direction.
    pub(super) ends: [End<Counted<Parcel>>; 2],
    /// What the gateways send.
    pub(super) sent: [Sent; 2],
}

/// What a gateway has sent and the other one has not handed on.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The packets, from the datagram with number `first` on.
    pub(super) packets: VecDeque<Option<Parcel>>,
    pub(super) first: u64,
    /// Reports under way, by the number of their frame.
    reports: VecDeque<(u32, Report)>,
}

impl Sent {
    pub(super) fn take(&mut self, seq: u64) -> Option<Parcel> {
        let packet = self.packets.get_mut(usize::try_from(seq.checked_sub(self.first)?).ok()?)?.take();
        while self.packets.front().is_some_and(Option::is_none) {
            self.packets.pop_front();
            self.first += 1;
        }
        packet
    }
    fn take_report(&mut self, number: u32) -> Option<Report> {
        // Links may reorder, or lose reports: those of earlier frames are no longer of use.
        while self.reports.front().is_some_and(|(n, _)| *n < number) {
            self.reports.pop_front();
        }
        self.reports.front().filter(|(n, _)| *n == number)?;
        self.reports.pop_front().map(|(_, report)| report)
    }
}

impl RepairedSegment {
    /// The gateways of a segment, whose frames are those of flow `flow`.
    pub(crate) fn new(repair: &Repair, flow: u32, seed: u64) -> Self {
        let end = |way: &str, config: &Config| {
            let rng = Rng::stream(seed, &format!("repair.{}.{way}.queue", repair.name));
            End::new(config, Counted::eliding(config.elided), rng)
        };
        let first = repair.links.first().map_or(0, |&l| 2 * l as u32);
        let last = repair.links.last().map_or(0, |&l| 2 * l as u32 + 1);
        Self {
            flow,
            first: [first, last],
            links: repair.links.clone(),
            ends: [end("forward", &repair.forward), end("reverse", &repair.reverse)],
            sent: [Sent::default(), Sent::default()],
        }
    }

    /// What the gateways have counted for the packets in one direction: the one that sends, and the one that receives. `None`
    /// unless the link with this index is next to the sending one.
    pub(crate) fn counters(&self, link: usize) -> Option<(Counters, Counters)> {
        let way = self.first.iter().position(|&first| first as usize == link)?;
        Some((*self.ends[way].counters(), *self.ends[1 - way].counters()))
    }

    /// Memory of the packets in the segment, bytes.
    pub(crate) fn held(&self) -> usize {
        let queued: usize = self.ends.iter().map(|e| e.queued().0 as usize).sum();
        let sent: usize = self.sent.iter().map(|s| s.packets.len()).sum();
        // A packet is in a queue, or kept by sender, receiver and `Sent`.
        (queued + 3 * sent) * size_of::<Parcel>()
    }
}

/// The flows of the frames, one per segment.
pub(crate) fn flows(
    scenario: &Resolved,
    routes: &[(u16, u16)],
    flows: &mut Vec<Flow>,
    records: &mut Vec<Record>,
) {
    for (segment, &(forward, reverse)) in (0..).zip(routes.iter().take(scenario.repair.len())) {
        let mut flow = Flow::new(forward, reverse, false, (0, 0));
        flow.agent = Agent::Segment(segment);
        flows.push(flow);
        let mut record = Record::new(0, 0, Instant::MAX, Instant::MAX);
        // The frames have no start of their own.
        record.started = Some(Instant::ZERO);
        records.push(record);
    }
}

/// The parcel of a frame.
pub(super) fn pack(frame: &Frame<Parcel, u32>, (size, low_priority): (u32, bool), sent: &mut Sent) -> Packet {
    // A run sends fewer than 2^32 frames in one direction.
    let number = frame.number as u32;
    let (kind, words, ecn) = match &frame.kind {
        Kind::Source { seq, floor, datagram } => {
            // A frame has the ECN field of its datagram (RFC 6040 §4.1).
            let below = floor.and_then(|floor| u32::try_from(seq - floor).ok()).unwrap_or(u32::MAX);
            (SOURCE, [*seq as u32, below], datagram.ecn())
        }
        Kind::Repair { first, k, parity, index, symbol } => {
            debug_assert!(*symbol < size);
            let shape = u32::from(*k) << 16 | u32::from(*parity) << 8 | u32::from(*index);
            (SYMBOL, [*first as u32, shape], Codepoint::NotCapable)
        }
        Kind::Report(report) => {
            sent.reports.push_back((number, *report));
            (REPORT, [0, 0], Codepoint::NotCapable)
        }
    };
    Packet::Frame { kind, number, words, size, low_priority, ecn }
}

/// The frame in a parcel.
pub(super) fn unpack(
    kind: u8,
    number: u32,
    words: [u32; 2],
    size: u32,
    sent: &mut Sent,
) -> Option<Frame<(), u32>> {
    let [first, second] = words;
    let kind = match kind {
        SOURCE => {
            let floor = (second != u32::MAX).then(|| u64::from(first.wrapping_sub(second)));
            Kind::Source { seq: first.into(), floor, datagram: () }
        }
        SYMBOL => {
            let (k, parity, index) = ((second >> 16) as u16, (second >> 8) as u8, second as u8);
            // All symbols of a block have one size, which is all that their comparison needs.
            Kind::Repair { first: first.into(), k, parity, index, symbol: size }
        }
        _ => Kind::Report(sent.take_report(number)?),
    };
    Some(Frame { number: number.into(), kind })
}
