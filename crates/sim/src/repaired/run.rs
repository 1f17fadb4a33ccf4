//! Packets enter and leave segments.

use crate::observe::tap::Tap;
use crate::packet::network::Network;
use crate::packet::parcel::{Content, Label, Packet, Parcel};
use crate::repaired::segment::{pack, unpack};
use crate::sim::Sim;
use skyhaul_base::Instant;
use skyhaul_path::{DropReason, Observer, PacketView};
use skyhaul_repair::{Kind, Output, Treatment};

impl<R: Tap> Sim<R> {
    /// A parcel is at the end of its route. True if it enters a gateway there.
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

    /// Sends and delivers what the gateways of a segment have ready, and sets their timer.
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
                    Some(Output::Frame { frame, size, low_priority, .. }) => {
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
            while let Some(delivery) = receiver.poll_delivery(now) {
                let Some(mut parcel) = sent.take(delivery.seq) else { continue };
                if delivery.marked && parcel.is_ect() {
                    parcel.mark_ce();
                }
                net.forward(now, parcel);
            }
            while let Some(lost) = receiver.poll_lost() {
                for parcel in lost.filter_map(|seq| sent.take(seq)) {
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
        let parcel = frame.pack(label, &mut self.witness.bodies, false);
        self.forward(now, parcel);
    }
}
