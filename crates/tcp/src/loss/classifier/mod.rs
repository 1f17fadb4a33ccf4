//! What a loss was: congestion, or an error of the channel, of which the congestion control need not hear.
//!
//! The sender shows what arrives ([`Classifier::arrived`]) and asks of each loss that it finds ([`Classifier::is_error`]). The
//! ways of telling are a file each: [`inter_arrival`], [`spike`], and [`told`], which is no way at all: somebody knows.

mod inter_arrival;
mod spike;
mod told;

use crate::config::LossClassifier;
use alloc::vec::Vec;
use inter_arrival::InterArrival;
use skyhaul_base::{Duration, Instant};
use spike::Spike;
use told::Told;

/// Verdicts kept for whoever asks.
const MOST_VERDICTS: usize = 4096;

/// What was made of a loss: for whoever knows the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Stream offset of the segment.
    pub offset: u64,
    /// How often it had been sent, at least 1.
    pub transmissions: u32,
    /// It was taken for an error of the channel, so that the congestion control did not hear of it.
    pub error: bool,
}

/// Data that an acknowledgement reports for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The newest of it, in stream offsets.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Round trip of the newest segment, if it was sent once.
    pub(crate) rtt: Option<Duration>,
}

/// A way of telling, with what it has seen, and what it has said.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    way: Way,
    /// Segments below this have been asked about.
    asked: u64,
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug)]
enum Way {
    Told(Told),
    InterArrival(InterArrival),
    Spike(Spike),
}

impl Classifier {
    /// The one that is configured, if one is.
    pub(crate) fn of(config: LossClassifier) -> Option<Self> {
        let way = match config {
            LossClassifier::None => return None,
            LossClassifier::Oracle { .. } => Way::Told(Told::default()),
            LossClassifier::InterArrival { low, high } => Way::InterArrival(InterArrival::new(low, high)),
            LossClassifier::Spike { start, end } => Way::Spike(Spike::new(start, end)),
        };
        Some(Self { way, asked: 0, verdicts: Vec::new() })
    }

    /// It wants to see every arrival.
    pub(crate) fn listens(&self) -> bool {
        !matches!(self.way, Way::Told(_))
    }
    /// It needs to know when segments left.
    pub(crate) fn needs_times(&self) -> bool {
        matches!(self.way, Way::Spike(_))
    }

    /// An acknowledgement reports data for the first time, in segments of `smss` bytes.
    pub(crate) fn arrived(&mut self, now: Instant, smss: u32, a: &Arrived) {
        match &mut self.way {
            Way::Told(_) => {}
            Way::InterArrival(i) => i.arrived(now, smss, a),
            Way::Spike(s) => s.measured(a.rtt),
        }
    }

    /// Somebody knows that `[from, to)`, as it was sent once, is lost, and says why.
    pub(crate) fn told(&mut self, from: u64, to: u64, error: bool) {
        if let Way::Told(t) = &mut self.way {
            t.told(from, to, error);
        }
    }

    /// Segments below this have been asked about.
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// The segment at `offset`, which was sent so many times, is lost: by an error of the channel?
    pub(crate) fn is_error(&mut self, una: u64, smss: u32, (offset, transmissions): (u64, u32)) -> bool {
        let error = match &mut self.way {
            Way::Told(t) => t.is_error(una, offset, transmissions),
            Way::InterArrival(i) => i.is_error(una, smss, offset),
            Way::Spike(s) => !s.is_high(),
        };
        self.asked = self.asked.max(offset + 1);
        // Where nobody looks they are not kept.
        if self.verdicts.len() >= MOST_VERDICTS {
            self.verdicts.clear();
        }
        self.verdicts.push(Verdict { offset, transmissions, error });
        error
    }

    /// What was said since the last time.
    pub(crate) fn take(&mut self) -> Vec<Verdict> {
        core::mem::take(&mut self.verdicts)
    }
    pub(crate) fn has_verdicts(&self) -> bool {
        !self.verdicts.is_empty()
    }
}
