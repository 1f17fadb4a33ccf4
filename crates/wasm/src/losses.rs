//! Events that a page draws over time and that no series samples: losses by true cause, recoveries and timeouts.

use serde_json::{Value, json};
use skyhaul_base::{Duration, Instant};
use skyhaul_sim::Tap;
use skyhaul_trace::{Class, Event, LossCause, Recorder};
use std::collections::BTreeMap;

/// Maximum number of moments; later ones are left out, since a picture could not show them.
const MOMENTS: usize = 4000;

/// Losses counted in intervals of equal length, and the times at which recoveries began and timers expired.
#[derive(Debug)]
pub(crate) struct Losses {
    interval: Duration,
    intervals: usize,
    /// Losses per interval, by the indices of their cause and class.
    counts: BTreeMap<(usize, usize), Vec<u32>>,
    /// Time, flow and kind of the recoveries and timeouts.
    moments: Vec<(Instant, u32, &'static str)>,
}

impl Losses {
    /// Counts in `intervals` parts of a run of this duration.
    pub(crate) fn new(duration: Duration, intervals: u32) -> Self {
        let intervals = intervals.max(1);
        let interval = Duration::from_nanos((duration.as_nanos() / u64::from(intervals)).max(1));
        Self { interval, intervals: intervals as usize, counts: BTreeMap::new(), moments: Vec::new() }
    }

    /// As JSON: lists with one entry per interval.
    pub(crate) fn to_json(&self) -> Value {
        let of = |(&(cause, class), counts): (&(usize, usize), &Vec<u32>)| json!({ "cause": LossCause::ALL[cause].name(), "class": Class::ALL[class].name(), "counts": counts });
        let moment = |(at, flow, what): &(Instant, u32, &str)| json!({ "time_s": at.as_secs_f64(), "flow": flow, "what": what });
        json!({
            "interval_s": self.interval.as_secs_f64(),
            "losses": self.counts.iter().map(of).collect::<Vec<_>>(),
            "moments": self.moments.iter().map(moment).collect::<Vec<_>>(),
        })
    }

    fn moment(&mut self, now: Instant, flow: u32, what: &'static str) {
        if self.moments.len() < MOMENTS {
            self.moments.push((now, flow, what));
        }
    }
}

impl Recorder for Losses {
    fn record(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Dropped { cause, packet, .. } => {
                let i = (now.as_nanos() / self.interval.as_nanos()) as usize;
                let counts = self.counts.entry((cause as usize, packet.class as usize));
                let counts = counts.or_insert_with(|| vec![0; self.intervals]);
                // The end of the run belongs to the last interval.
                counts[i.min(self.intervals - 1)] += 1;
            }
            Event::RecoveryEntered { flow } => self.moment(now, flow, "recovery"),
            Event::Timeout { flow } => self.moment(now, flow, "timeout"),
            _ => {}
        }
    }
}

impl Tap for Losses {}
