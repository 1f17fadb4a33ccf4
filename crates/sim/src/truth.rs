//! What truly became of the segments that senders judge lost.
//!
//! A sender sees duplicate acknowledgements or a timer that expires; the simulator knows which packets were lost
//! and why. Each cut of a window is put down to the cause that it answered.

use crate::parcel::Parcel;
use skyhaul_path::PacketView;
use skyhaul_tcp::{Judgement, Sign};
use skyhaul_trace::{Class, LossCause};

/// Cuts of the window by what they truly answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// The segment was corrupted on the channel.
    pub error: u64,
    /// It was refused by a full queue or evicted from one, or congestion was marked (ECN).
    pub congestion: u64,
    /// It was in flight when a link went down.
    pub outage: u64,
    /// It was not lost: delay, reordering, or lost acknowledgements.
    pub spurious: u64,
}

impl Cuts {
    /// For whatever cause.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.error + self.congestion + self.outage + self.spurious
    }

    /// Adds those of another flow.
    pub fn add(&mut self, other: &Self) {
        self.error += other.error;
        self.congestion += other.congestion;
        self.outage += other.outage;
        self.spurious += other.spurious;
    }
}

/// The cuts of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) all: Cuts,
    /// Of these, by expiry of the retransmission timer.
    pub(crate) timeouts: Cuts,
}

impl Account {
    /// Adds those of another connection.
    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        self.timeouts.add(&other.timeouts);
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
    /// Whether `offset` is in its payload, where a packet has `header` bytes besides.
    fn covers(&self, offset: u32, header: u32) -> bool {
        offset.wrapping_sub(self.seq) < self.size.saturating_sub(header).max(1)
    }
    /// Whether all of it is before `offset`.
    fn before(&self, offset: u32, header: u32) -> bool {
        // Differences of sequence numbers are less than half their range (RFC 9293 §3.4).
        let end = self.seq.wrapping_add(self.size.saturating_sub(header).max(1));
        end == offset || offset.wrapping_sub(end) < 1 << 31
    }
}

/// What is known of the lost data packets of each flow.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    flows: Vec<Option<Box<Known>>>,
}

/// Lost data packets of a flow.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Those that the sender may still have to judge.
    losses: Vec<Loss>,
    /// All, by cause.
    counts: [u64; LossCause::COUNT],
}

impl Truth {
    /// For this many flows; none are watched with 0.
    pub(crate) fn new(flows: usize) -> Self {
        Self { flows: vec![None; flows] }
    }

    /// One more flow, if any are watched.
    pub(crate) fn grow(&mut self) {
        if !self.flows.is_empty() {
            self.flows.push(None);
        }
    }

    fn known(&mut self, flow: u32) -> Option<&mut Known> {
        self.flows.get_mut(flow as usize)?.as_deref_mut()
    }

    /// Data packets of a flow that were lost, by cause.
    pub(crate) fn lost_of(&self, flow: u32) -> [u64; LossCause::COUNT] {
        let known = self.flows.get(flow as usize).and_then(|k| k.as_deref());
        known.map_or([0; LossCause::COUNT], |k| k.counts)
    }

    /// Puts the losses of one flow down to another.
    pub(crate) fn move_counts(&mut self, from: u32, to: u32) {
        let Some(moved) = self.known(from).map(|k| core::mem::take(&mut k.counts)) else { return };
        if let Some(to) = self.flows.get_mut(to as usize) {
            let counts = &mut to.get_or_insert_default().counts;
            counts.iter_mut().zip(moved).for_each(|(count, more)| *count += more);
        }
    }

    /// A packet was lost.
    pub(crate) fn lost(&mut self, parcel: Parcel, cause: LossCause) {
        if parcel.backward() || parcel.class() != Class::Data {
            return;
        }
        if let Some(flow) = self.flows.get_mut(parcel.flow() as usize) {
            let known = flow.get_or_insert_default();
            let (packet, generation) = (parcel.packet(), parcel.generation());
            known.counts[cause as usize] += 1;
            known.losses.push(Loss { seq: packet.seq, size: parcel.size(), generation, cause });
        }
    }

    /// What a judgement truly answered, `None` if it cut nothing. `header` is what a packet has besides its payload.
    ///
    /// A segment is lost if every copy of it that was sent is: the retransmission timer that expires while a copy
    /// is still on its way, or has arrived, is spurious.
    pub(crate) fn judge(
        &mut self,
        flow: u32,
        generation: u16,
        header: u32,
        judged: &Judgement,
        account: &mut Account,
    ) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        let losses = &mut flow.get_or_insert_default().losses;
        // Stream offsets and sequence numbers begin at 0 alike.
        let offset = judged.offset as u32;
        losses.retain(|l| l.generation == generation && !l.before(offset, header));
        if !judged.cut {
            return;
        }
        let mut copies = 0;
        let mut last = None;
        for loss in losses.iter().filter(|l| l.covers(offset, header)) {
            copies += 1;
            last = Some(loss.cause);
        }
        let mut one = Cuts::default();
        match last {
            _ if judged.sign == Sign::Ecn => one.congestion = 1,
            Some(cause) if copies >= judged.transmissions => match cause {
                LossCause::Error => one.error = 1,
                LossCause::Full | LossCause::PushedOut => one.congestion = 1,
                LossCause::LinkDown => one.outage = 1,
            },
            _ => one.spurious = 1,
        }
        account.all.add(&one);
        if judged.sign == Sign::Timeout {
            account.timeouts.add(&one);
        }
    }

    /// A connection is over.
    pub(crate) fn forget(&mut self, flow: u32) {
        if let Some(known) = self.known(flow) {
            known.losses.clear();
        }
    }
}
