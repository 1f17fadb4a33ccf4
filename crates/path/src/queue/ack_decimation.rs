//! ACK decimation (RFC 3449 §5.2.2): every m-th pure acknowledgement of a connection is kept, whatever its content.
//!
//! One that is not kept is removed when the next one of its connection arrives while it is still waiting. The
//! newest thus always survives, including the last one of a transfer, without which the sender would wait for its
//! RTO. Nothing is removed while nothing waits.

use super::acks::{Flows, Lines, Waiting};
use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use crate::packet::{Acknowledgement, DropReason, PacketView};
use crate::param::Refusal;
use alloc::boxed::Box;

skyhaul_base::options! {
    /// Keeps every `keep-every`-th pure acknowledgement of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Decimation keeps one of this many pure acknowledgements of a connection; 2 by default.
        keep_every: u64 as Count = 2,
        /// Decimation keeps all duplicate acknowledgements, for fast retransmit; false by default.
        keep_duplicates: bool = false,
        /// Also serve pure acknowledgements before data; false by default.
        acks_first: bool = false,
    }
}

/// `keep-every` is below 2, so that every acknowledgement would be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} keeps every acknowledgement: write at least 2, or another kind of queue")]
pub struct ThinsNothing(pub u64);

impl Refusal for ThinsNothing {
    fn key(&self) -> &'static str {
        "keep-every"
    }
}

const ELSEWHERE: &str = "only the kind \"ack-decimation\" has this key";

impl Model for Config {
    const KEYS: &'static [Key] = &[
        Key { name: "keep-every", elsewhere: ELSEWHERE, missing: None },
        Key { name: "keep-duplicates", elsewhere: ELSEWHERE, missing: None },
        super::ack_filter::ACKS_FIRST,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<AckDecimation<P>>;
    type Invalid = ThinsNothing;

    fn validate(&self, _: Limit) -> Result<(), ThinsNothing> {
        if self.keep_every < 2 { Err(ThinsNothing(self.keep_every)) } else { Ok(()) }
    }
    fn build<P>(&self) -> Box<AckDecimation<P>> {
        Box::new(AckDecimation { lines: Lines::new(self.acks_first), flows: Flows::default(), config: *self })
    }
    fn words(&self) -> &'static str {
        "every m-th acknowledgement kept"
    }
    fn share_of_acks(&self) -> f64 {
        1.0 / self.keep_every as f64
    }
}

/// The waiting packets, and the number of acknowledgements of each flow.
#[derive(Clone, Debug)]
pub struct AckDecimation<P> {
    lines: Lines<P>,
    flows: Flows,
    config: Config,
}

impl<P: PacketView> AckDecimation<P> {
    /// Counts an acknowledgement; returns its position in the flow, and whether it must not be replaced later.
    fn note(&mut self, flow: u32, ack: &Acknowledgement) -> (u64, bool) {
        let position = self.flows.note(flow, ack);
        let duplicate = position.duplicate && self.config.keep_duplicates;
        if duplicate {
            self.lines.keep_base(flow, ack.connection, position.order);
        }
        (position.order, duplicate || (position.before + 1) % self.config.keep_every.max(1) == 0)
    }

    /// Index of the last waiting acknowledgement of the connection of `ack`, if it may be replaced.
    fn replaceable(&self, flow: u32, ack: &Acknowledgement) -> Option<usize> {
        let last = self.lines.last_of(flow, ack.connection)?;
        (!self.lines.acks.get(last)?.stays).then_some(last)
    }
}

impl<P: PacketView> Order<P> for AckDecimation<P> {
    fn enqueue(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let mut p = Waiting::new(p);
        if let Some(ack) = p.ack {
            let flow = p.packet.flow();
            (p.order, p.stays) = self.note(flow, &ack);
            if let Some(at) = self.replaceable(flow, &ack) {
                let old = self.lines.acks.get(at).map_or(0, |w| w.packet.size());
                // The old one is removed only if the new one is admitted.
                let mut rest = *held;
                rest.remove(old);
                if rest.admits(p.packet.size(), limit) {
                    *held = rest;
                    if let Some(w) = self.lines.acks.remove(at) {
                        lost(w.packet, DropReason::Filtered);
                    }
                }
            }
        }
        self.lines.push(p, held, limit, lost)
    }
    fn pass(&mut self, _: &mut Moment<'_>, p: P, _: Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        if let Some(ack) = p.ack() {
            self.note(p.flow(), &ack);
        }
        Some(p)
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.lines.pop()
    }
}
