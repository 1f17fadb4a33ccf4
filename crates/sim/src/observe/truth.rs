//! The true fate of segments that senders judge lost.
//!
//! A sender sees duplicate acknowledgements or an expired timer; the simulator knows which packets were lost and
//! why. Each window reduction is attributed to its true cause.

use crate::observe::oracle::is_error;
use crate::packet::parcel::Parcel;
use skyhaul_path::PacketView;
use skyhaul_tcp::{CongestionReport, CongestionSignal, Verdict};
use skyhaul_trace::{Class, LossCause};

/// Window reductions by their true cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionCounts {
    /// The segment was corrupted on the channel, or given up by the link's ARQ.
    pub error: u64,
    /// It was refused by a full queue, evicted from one, or dropped by active queue management.
    pub congestion: u64,
    /// Nothing was lost: a queue had marked a packet (ECN).
    pub marked: u64,
    /// It was in flight when a link went down.
    pub outage: u64,
    /// It was not lost: delay, reordering, or lost acknowledgements.
    pub spurious: u64,
}

impl ReductionCounts {
    /// Total over all causes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.error + self.congestion + self.marked + self.outage + self.spurious
    }

    /// Adds those of another flow.
    pub fn add(&mut self, other: &Self) {
        self.error += other.error;
        self.congestion += other.congestion;
        self.marked += other.marked;
        self.outage += other.outage;
        self.spurious += other.spurious;
    }
}

/// The window reductions of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReductionAccount {
    pub(crate) all: ReductionCounts,
    /// Reductions by the retransmission timer among these.
    pub(crate) timeouts: ReductionCounts,
}

impl ReductionAccount {
    /// Adds those of another connection.
    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        self.timeouts.add(&other.timeouts);
    }
}

/// A sender's loss verdicts, by the true causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Channel errors, given up by ARQ or not, and packets lost when a link went down, classified as errors.
    pub error_right: u64,
    /// The same, classified as congestion.
    pub error_wrong: u64,
    /// Losses in queues, classified as congestion.
    pub congestion_right: u64,
    /// The same, classified as errors.
    pub congestion_wrong: u64,
    /// Segments that were not lost, classified as either.
    pub spurious: u64,
}

impl Verdicts {
    /// Total number of verdicts.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.error_right + self.error_wrong + self.congestion_right + self.congestion_wrong + self.spurious
    }

    /// Adds those of another connection.
    pub fn add(&mut self, other: &Self) {
        self.error_right += other.error_right;
        self.error_wrong += other.error_wrong;
        self.congestion_right += other.congestion_right;
        self.congestion_wrong += other.congestion_wrong;
        self.spurious += other.spurious;
    }
}

/// A data packet that was lost.
#[derive(Clone, Copy, Debug)]
struct Loss {
    seq: u32,
    /// Length on the link, headers included.
    size: u32,
    generation: u16,
    cause: LossCause,
}

impl Loss {
    /// Whether `offset` is in its payload, for a packet with `header` bytes of headers.
    fn covers(&self, offset: u32, header: u32) -> bool {
        offset.wrapping_sub(self.seq) < self.size.saturating_sub(header).max(1)
    }
    /// Whether it ends before `offset`.
    fn before(&self, offset: u32, header: u32) -> bool {
        // Differences of sequence numbers are less than half their range (RFC 9293 §3.4).
        let end = self.seq.wrapping_add(self.size.saturating_sub(header).max(1));
        end == offset || offset.wrapping_sub(end) < 1 << 31
    }
}

/// Lost data packets of each flow.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    flows: Vec<Option<Box<FlowLosses>>>,
}

/// Lost data packets of a flow.
#[derive(Clone, Debug, Default)]
struct FlowLosses {
    /// Losses that the sender may still judge.
    losses: Vec<Loss>,
    /// All losses, by cause.
    counts: [u64; LossCause::COUNT],
    /// Losses that its end has not been informed of, if an end is informed.
    news: Option<Vec<Loss>>,
    /// If the connection was used again: its present generation, and the flow of the transfer before.
    before: Option<(u16, u32)>,
}

/// The older of two sequence numbers.
fn older(a: u32, b: u32) -> u32 {
    if b.wrapping_sub(a) < 1 << 31 { a } else { b }
}

impl FlowLosses {
    /// Forgets what is no longer needed: losses before `offset` and before `una`, the oldest byte that the sender
    /// still asks about, and those of earlier connections.
    fn forget_before(&mut self, generation: u16, header: u32, (offset, una): (u32, u32)) {
        let oldest = older(offset, una);
        self.losses.retain(|l| l.generation == generation && !l.before(oldest, header));
    }

    /// Why the segment at `offset`, which had been sent this many times, was lost; `None` if it was not.
    ///
    /// A segment is lost if all its copies are: a retransmission timer that expires while a copy is in flight, or
    /// has arrived, is spurious.
    fn cause(losses: &[Loss], offset: u32, transmissions: u32, header: u32) -> Option<LossCause> {
        let copies = losses.iter().filter(|l| l.covers(offset, header));
        let (n, last) = copies.fold((0, None), |(n, _), l| (n + 1, Some(l.cause)));
        last.filter(|_| n >= transmissions)
    }
}

impl Truth {
    /// State for this many flows; 0 disables it.
    pub(crate) fn new(flows: usize) -> Self {
        Self { flows: vec![None; flows] }
    }

    /// Adds a flow, unless disabled.
    pub(crate) fn grow(&mut self) {
        if !self.flows.is_empty() {
            self.flows.push(None);
        }
    }

    fn losses(&mut self, flow: u32) -> Option<&mut FlowLosses> {
        self.flows.get_mut(flow as usize)?.as_deref_mut()
    }

    /// Lost data packets of a flow, by cause.
    pub(crate) fn lost_of(&self, flow: u32) -> [u64; LossCause::COUNT] {
        let known = self.flows.get(flow as usize).and_then(|k| k.as_deref());
        known.map_or([0; LossCause::COUNT], |k| k.counts)
    }

    /// Moves the losses of one flow to another.
    pub(crate) fn move_counts(&mut self, from: u32, to: u32) {
        let Some(moved) = self.losses(from).map(|k| core::mem::take(&mut k.counts)) else { return };
        if let Some(to) = self.flows.get_mut(to as usize) {
            let counts = &mut to.get_or_insert_default().counts;
            counts.iter_mut().zip(moved).for_each(|(count, more)| *count += more);
        }
    }

    /// A connection is used again, with this generation: what is lost of earlier ones counts for the flow `before`.
    pub(crate) fn reuse(&mut self, connection: u32, generation: u16, before: u32) {
        if let Some(known) = self.flows.get_mut(connection as usize) {
            known.get_or_insert_default().before = Some((generation, before));
        }
    }

    /// A packet was lost.
    pub(crate) fn lost(&mut self, parcel: Parcel, cause: LossCause) {
        if parcel.backward() || parcel.class() != Class::Data {
            return;
        }
        let (packet, generation) = (parcel.packet(), parcel.generation());
        let before = self.losses(parcel.flow()).and_then(|known| known.before);
        let counted = before.filter(|(now, _)| *now != generation).map_or(parcel.flow(), |(_, flow)| flow);
        if let Some(flow) = self.flows.get_mut(counted as usize) {
            flow.get_or_insert_default().counts[cause as usize] += 1;
        }
        if let Some(flow) = self.flows.get_mut(parcel.flow() as usize) {
            let known = flow.get_or_insert_default();
            let loss = Loss { seq: packet.seq, size: parcel.size(), generation, cause };
            // The senders of other packets ask for no cause.
            if parcel.is_segment() {
                known.losses.push(loss);
            }
            if let Some(news) = &mut known.news {
                news.push(loss);
            }
        }
    }

    /// Sets whether an end of a flow is informed of losses from now on: a sender that classifies them, or a
    /// rate-controlled receiver with an oracle.
    pub(crate) fn follow(&mut self, flow: u32, informed: bool) {
        let Some(known) = self.flows.get_mut(flow as usize) else { return };
        if informed || known.is_some() {
            known.get_or_insert_default().news = informed.then(Vec::new);
        }
    }

    /// Takes the losses that an end of a flow has not been informed of: sequence number, payload, cause.
    pub(crate) fn news(
        &mut self,
        flow: u32,
        generation: u16,
        header: u32,
    ) -> impl Iterator<Item = (u32, u32, LossCause)> + use<> {
        let news = self.losses(flow).and_then(|k| k.news.as_mut()).map_or_else(Vec::new, core::mem::take);
        let current = news.into_iter().filter(move |l| l.generation == generation);
        current.map(move |l| (l.seq, l.size.saturating_sub(header), l.cause))
    }

    /// Attributes a sender's judgement to the true cause, if it reduced the window. `header`: header bytes of a packet;
    /// `una`: the oldest byte that the sender still asks about.
    pub(crate) fn judge(
        &mut self,
        flow: u32,
        generation: u16,
        (header, una): (u32, u64),
        judged: &CongestionReport,
        account: &mut ReductionAccount,
    ) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        let known = flow.get_or_insert_default();
        // The initial sequence number is 0, so an offset is a sequence number that does not wrap.
        let offset = judged.offset as u32;
        known.forget_before(generation, header, (offset, una as u32));
        if !judged.cut {
            return;
        }
        let mut one = ReductionCounts::default();
        match FlowLosses::cause(&known.losses, offset, judged.transmissions, header) {
            _ if judged.signal == CongestionSignal::Ecn => one.marked = 1,
            Some(LossCause::Error | LossCause::ArqGaveUp) => one.error = 1,
            Some(LossCause::Full | LossCause::PushedOut | LossCause::Aqm | LossCause::Filtered) => {
                one.congestion = 1;
            }
            Some(LossCause::LinkDown) => one.outage = 1,
            None => one.spurious = 1,
        }
        account.all.add(&one);
        if judged.signal == CongestionSignal::Timeout {
            account.timeouts.add(&one);
        }
    }

    /// Compares a sender's verdict on a loss with its true cause.
    pub(crate) fn check(
        &mut self,
        flow: u32,
        generation: u16,
        (header, una): (u32, u64),
        verdict: &Verdict,
        account: &mut Verdicts,
    ) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        let known = flow.get_or_insert_default();
        let offset = verdict.offset as u32;
        known.forget_before(generation, header, (offset, una as u32));
        // Losses of later transmissions, the last ones, do not count: the sender has not been informed of them.
        let informed = known.losses.len().saturating_sub(known.news.as_ref().map_or(0, Vec::len));
        let cause = FlowLosses::cause(&known.losses[..informed], offset, verdict.transmissions, header);
        let count = match (cause.map(is_error), verdict.error) {
            (None, _) => &mut account.spurious,
            (Some(true), true) => &mut account.error_right,
            (Some(true), false) => &mut account.error_wrong,
            (Some(false), false) => &mut account.congestion_right,
            (Some(false), true) => &mut account.congestion_wrong,
        };
        *count += 1;
    }

    /// A connection has ended.
    pub(crate) fn forget(&mut self, flow: u32) {
        if let Some(known) = self.losses(flow) {
            known.losses.clear();
            if let Some(news) = &mut known.news {
                news.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::parcel::{Bodies, Content, Label, Packet};
    use skyhaul_apps::Datagram;
    use skyhaul_base::Instant;
    use skyhaul_tcp::{Flags, Head, Seq};

    #[test]
    fn only_losses_that_a_sender_may_judge_are_kept() {
        let (mut truth, mut bodies) = (Truth::new(1), Bodies::default());
        let label = Label { flow: 0, generation: 0, hop: 0, backward: false, header: 40, dscp: 0 };
        let datagram = Packet::Datagram(Datagram { number: 1, sent_at: Instant::ZERO, len: 500 });
        let segment = Head::new(Seq(1), Seq(1), 500, 0, Flags::ACK);
        truth.lost(datagram.pack(label, &mut bodies, false), LossCause::Full);
        truth.lost((&segment, None).pack(label, &mut bodies, false), LossCause::Full);
        assert_eq!(truth.losses(0).map(|k| (k.losses.len(), k.counts.iter().sum())), Some((1, 2_u64)));
    }
}
