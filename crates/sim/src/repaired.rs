//! Segments that two gateways repair: the ends of [`skyhaul_repair`] between the links.
//!
//! The routes of all packets that cross a segment end at its gate, the gateway before it. A packet that is repaired stays
//! with the gateways, while frames travel over the links of the segment, and then goes on; others go through the queue of
//! the gateway and travel themselves. Packets have no payload, so that the code counts its symbols.

use crate::flow::agent::Agent;
use crate::flow::{Flow, Record};
use crate::observe::tap::Tap;
use crate::packet::network::Network;
use crate::packet::parcel::{Label, Packet, Parcel};
use crate::sim::Sim;
use skyhaul_base::{Instant, Rng};
use skyhaul_path::{DropReason, Observer, PacketView};
use skyhaul_repair::code::Counted;
use skyhaul_repair::{Counters, End, Frame, Kind, Output, Report, Treatment};
use skyhaul_scenario::resolved::{Repair, Resolved};
use skyhaul_tcp::Codepoint;
use std::collections::VecDeque;

/// The kinds of frames in a parcel.
const SOURCE: u8 = 0;
const SYMBOL: u8 = 1;
const REPORT: u8 = 2;

/// A segment with its two gateways.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The flow of its frames.
    flow: u32,
    /// The links that its gateways send to.
    first: [u32; 2],
    links: Vec<usize>,
    /// At its beginning and at its end, seen from the forward direction.
    ends: [End<Counted<Parcel>>; 2],
    /// What the gateways send.
    sent: [Sent; 2],
}

/// What a gateway has sent and the other one has not handed on.
#[derive(Debug, Default)]
struct Sent {
    /// The packets, from the datagram with number `first` on.
    packets: VecDeque<Option<Parcel>>,
    first: u64,
    /// Reports under way, by the number of their frame.
    reports: VecDeque<(u32, Report)>,
}

impl Sent {
    fn take(&mut self, seq: u64) -> Option<Parcel> {
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

impl Segment {
    /// The gateways of a segment, whose frames are those of flow `flow`.
    pub(crate) fn new(repair: &Repair, flow: u32, seed: u64) -> Self {
        let end = |way: &str, config| {
            let rng = Rng::stream(seed, &format!("repair.{}.{way}.queue", repair.name));
            End::new(config, Counted::default(), rng)
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

    /// Memory that it holds, bytes.
    pub(crate) fn held(&self) -> usize {
        let queued: usize = self.ends.iter().map(|e| e.queued().0 as usize).sum();
        let sent: usize = self.sent.iter().map(|s| s.packets.len()).sum();
        // A packet is with the queue, or with the sender and the receiver.
        (queued + 3 * sent) * size_of::<Parcel>()
    }
}

/// The flows of the frames, one per segment.
pub(crate) fn flows(scenario: &Resolved, routes: &[(u16, u16)], flows: &mut Vec<Flow>, records: &mut Vec<Record>) {
    for (segment, &(forward, reverse)) in (0..).zip(routes.iter().take(scenario.repair.len())) {
        let mut flow = Flow::new(forward, reverse, false, 0);
        flow.agent = Agent::Segment(segment);
        flows.push(flow);
        let mut record = Record::new(0, 0, Instant::MAX, Instant::MAX);
        // It has no start of its own.
        record.started = Some(Instant::ZERO);
        records.push(record);
    }
}

/// The parcel of a frame.
fn pack(frame: &Frame<Parcel, u32>, (size, low_priority): (u32, bool), sent: &mut Sent) -> Packet {
    // A run sends fewer than 2^32 frames in one direction.
    let number = frame.number as u32;
    let (kind, words, ecn) = match &frame.kind {
        Kind::Source { seq, floor, datagram } => {
            let capable = if datagram.is_ect() { Codepoint::Capable } else { Codepoint::NotCapable };
            let below = floor.and_then(|floor| u32::try_from(seq - floor).ok()).unwrap_or(u32::MAX);
            (SOURCE, [*seq as u32, below], capable)
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
fn unpack(kind: u8, number: u32, words: [u32; 2], size: u32, sent: &mut Sent) -> Option<Frame<(), u32>> {
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

impl<R: Tap> Sim<R> {
    /// A parcel at the end of its route: true if that is a gate, which it enters.
    #[inline(never)]
    pub(crate) fn enters(&mut self, mut parcel: Parcel) -> bool {
        let Some(&gate) = self.net.gates.get(&parcel.hop()) else { return false };
        let repaired = gate.repaired && !parcel.low_priority();
        let how = if repaired { Treatment::Repaired } else { Treatment::Passed };
        parcel.set_hop(if repaired { gate.onward } else { gate.through });
        let Self { segments, net, now, .. } = self;
        let segment = &mut segments[gate.segment as usize];
        let way = usize::from(!gate.forward);
        let link = segment.first[way];
        let lost = &mut |p, why| net.witness.lost(*now, link, p, why);
        let offered = segment.ends[way].offer(*now, parcel, how, lost);
        if offered.is_err() {
            // Sizes were checked when the scenario was resolved.
            lost(parcel, DropReason::Full);
        }
        self.pump(gate.segment);
        true
    }

    /// A frame has crossed its segment.
    pub(crate) fn frame_arrives(&mut self, segment: u32, parcel: Parcel) {
        let Some(Packet::Frame { kind, number, words, size, .. }) = parcel.unpack(0) else { return };
        let way = usize::from(parcel.backward());
        let own = &mut self.segments[segment as usize];
        if let Some(frame) = unpack(kind, number, words, size, &mut own.sent[way]) {
            own.ends[1 - way].receive(self.now, frame, parcel.is_marked());
        }
        self.pump(segment);
    }

    /// The timer of a segment is due.
    pub(crate) fn segment_wakes(&mut self, segment: u32) {
        let now = self.now;
        self.segments[segment as usize].ends.iter_mut().for_each(|end| end.handle_timeout(now));
        self.pump(segment);
    }

    /// Takes everything out of the gateways of a segment, and sets their timer.
    fn pump(&mut self, index: u32) {
        let Self { segments, net, flows, now, .. } = self;
        let now = *now;
        let segment = &mut segments[index as usize];
        let flow = &flows[segment.flow as usize];
        for way in 0..2 {
            let backward = way == 1;
            loop {
                let link = segment.first[way];
                let lost = &mut |p, why| net.witness.lost(now, link, p, why);
                let sent = &mut segment.sent[way];
                match segment.ends[way].poll_frame(now, lost) {
                    None => break,
                    Some(Output::Plain(parcel)) => net.forward(now, parcel),
                    Some(Output::Frame { frame, size, low_priority }) => {
                        if let Kind::Source { seq, datagram, .. } = &frame.kind {
                            if *seq == sent.first + sent.packets.len() as u64 {
                                sent.packets.push_back(Some(*datagram));
                            }
                        }
                        let packet = pack(&frame, (size, low_priority), sent);
                        let label = Label { header: 0, ..flow.label(segment.flow, backward) };
                        net.send_frame(now, label, &packet);
                    }
                }
            }
            let (receiver, sent) = (&mut segment.ends[1 - way], &mut segment.sent[way]);
            while let Some(delivery) = receiver.poll_delivery() {
                let Some(mut parcel) = sent.take(delivery.seq) else { continue };
                if delivery.marked && parcel.is_ect() {
                    parcel.mark_ce();
                }
                net.forward(now, parcel);
            }
            while let Some(seq) = receiver.poll_lost() {
                if let Some(parcel) = sent.take(seq) {
                    net.witness.lost(now, segment.first[way], parcel, DropReason::ArqGaveUp);
                }
            }
        }
        let next = segment.ends.iter_mut().map(|end| end.next_timeout(now)).min().unwrap_or(Instant::MAX);
        let slot = segment.flow;
        self.set_timer(slot, next.max(now));
    }

    /// The rates of links may have changed: their modems tell the gateways.
    pub(crate) fn tell_gateways(&mut self) {
        let Self { segments, net, now, .. } = self;
        for segment in segments.iter_mut() {
            for way in 0..2 {
                let hops = segment.links.iter().map(|l| &net.chain.hops()[2 * l + way]);
                let rate = hops.filter_map(|h| h.link().rate()).min_by_key(|rate| rate.bits_per_sec());
                if let Some(rate) = rate {
                    segment.ends[way].set_rate(*now, rate);
                }
            }
        }
        (0..self.segments.len() as u32).for_each(|segment| self.pump(segment));
    }
}

impl<R: Tap> Network<R> {
    /// Sends a frame. Recorders and captures see the packets of flows, not the frames that carry them.
    fn send_frame(&mut self, now: Instant, label: Label, frame: &Packet) {
        use crate::packet::parcel::Content;
        let parcel = frame.pack(label, &mut self.witness.bodies, false);
        self.forward(now, parcel);
    }
}
