//! Loss classification: congestion, or a channel error, which is not reported to the congestion control.
//!
//! The sender reports arrivals ([`Classifier::arrived`]) and asks about each loss that it detects
//! ([`Classifier::is_error`]). Each method has its own file: [`inter_arrival`], [`spike`], and [`oracle`].

mod inter_arrival;
mod oracle;
mod spike;

use crate::config::LossClassifier;
use alloc::vec::Vec;
use inter_arrival::InterArrival;
use oracle::Oracle;
use skyhaul_base::{Duration, Instant};
use spike::Spike;

/// Maximum number of verdicts kept.
const MOST_VERDICTS: usize = 4096;

/// The classification of a loss, to be compared with the true cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Stream offset of the segment.
    pub offset: u64,
    /// How often the segment had been sent; at least 1.
    pub transmissions: u32,
    /// The loss was taken for a channel error, and the congestion control was not informed.
    pub error: bool,
}

/// Data that an acknowledgement reports for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// Start of the newest contiguous part, a stream offset.
    pub(crate) from: u64,
    /// End of that part.
    pub(crate) to: u64,
    /// RTT of the newest segment, if that was sent once.
    pub(crate) rtt: Option<Duration>,
}

/// A classification method with its state and its verdicts.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    method: Method,
    /// End of the range in which losses have been classified, a stream offset.
    classified_until: u64,
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug)]
enum Method {
    Oracle(Oracle),
    InterArrival(InterArrival),
    Spike(Spike),
}

impl Classifier {
    /// The configured classifier, if any.
    pub(crate) fn of(config: LossClassifier) -> Option<Self> {
        let method = match config {
            LossClassifier::None => return None,
            LossClassifier::Oracle { .. } => Method::Oracle(Oracle::default()),
            LossClassifier::InterArrival { low, high } => Method::InterArrival(InterArrival::new(low, high)),
            LossClassifier::Spike { start, end } => Method::Spike(Spike::new(start, end)),
        };
        Some(Self { method, classified_until: 0, verdicts: Vec::new() })
    }

    /// Whether the method needs every arrival.
    pub(crate) fn listens(&self) -> bool {
        !matches!(self.method, Method::Oracle(_))
    }
    /// Whether the method needs send times.
    pub(crate) fn needs_times(&self) -> bool {
        matches!(self.method, Method::Spike(_))
    }

    /// An acknowledgement reports data for the first time, in segments of `smss` bytes.
    pub(crate) fn arrived(&mut self, now: Instant, smss: u32, a: &Arrived) {
        match &mut self.method {
            Method::Oracle(_) => {}
            Method::InterArrival(i) => i.arrived(now, smss, a),
            Method::Spike(s) => s.measured(a.rtt),
        }
    }

    /// Reports the true cause of the loss of `[from, to)`, for one transmission.
    pub(crate) fn report(&mut self, from: u64, to: u64, error: bool) {
        if let Method::Oracle(o) = &mut self.method {
            o.report(from, to, error);
        }
    }

    /// Losses below this offset have been classified.
    pub(crate) fn classified_until(&self) -> u64 {
        self.classified_until
    }

    /// Whether the segment at `offset`, sent `transmissions` times, was lost by a channel error. `una` is `SND.UNA`.
    pub(crate) fn is_error(&mut self, una: u64, smss: u32, (offset, transmissions): (u64, u32)) -> bool {
        let error = match &mut self.method {
            Method::Oracle(o) => o.is_error(una, offset, transmissions),
            Method::InterArrival(i) => i.is_error(una, smss, offset),
            Method::Spike(s) => !s.is_high(),
        };
        self.classified_until = self.classified_until.max(offset + 1);
        // Verdicts that are never taken do not accumulate.
        if self.verdicts.len() >= MOST_VERDICTS {
            self.verdicts.clear();
        }
        self.verdicts.push(Verdict { offset, transmissions, error });
        error
    }

    /// Verdicts since the last call.
    pub(crate) fn take(&mut self) -> Vec<Verdict> {
        core::mem::take(&mut self.verdicts)
    }
    pub(crate) fn has_verdicts(&self) -> bool {
        !self.verdicts.is_empty()
    }
}
