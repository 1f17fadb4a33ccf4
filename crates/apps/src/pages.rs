//! Web pages in sequence.

use crate::short;
use crate::workload::{Demand, Kind, Outcome, Refusal, Start, Stop, Streams, Transport, Workload};
use skyhaul_base::Instant;
use skyhaul_base::amount::{Count, plain};
use skyhaul_base::dist::{InvalidDistribution, Times};

/// Pages in sequence, each over a new connection.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Full segments per page.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub segments: u64,
    /// Number of pages; unlimited by default.
    #[serde(default, with = "short::count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub count: Option<u64>,
    /// Pause between the end of a page and the start of the next; none by default.
    #[serde(default, deserialize_with = "short::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<short::OrText<Times>>")]
    pub idle: Option<Times>,
}

/// Why the configuration of pages is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A page without data.
    #[error("a page needs at least 1 segment")]
    NoSegments,
    /// The number of pages is 0.
    #[error("0 pages do nothing: write at least 1")]
    NoPages,
    /// The pause between two pages is invalid.
    #[error(transparent)]
    Idle(InvalidDistribution),
}

impl Refusal for Invalid {
    fn key(&self) -> String {
        match self {
            Self::NoSegments => "segments".into(),
            Self::NoPages => "count".into(),
            Self::Idle(e) => short::within("idle", e),
        }
    }
}

/// Pages in sequence.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Size of a page, bytes.
    bytes: u64,
    count: Option<u64>,
    /// The pause between two pages, and its random streams.
    idle: Option<(Times, Streams)>,
    next: Instant,
    /// Number of completed pages.
    done: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next page is due at `next`.
    Pausing,
    /// A page is being transferred.
    Loading,
    /// Stopped while a page was being transferred.
    Aborted,
    /// Stopped during a pause.
    Stopped,
}

impl Kind for Config {
    type Workload = Box<Pages>;
    type Invalid = Invalid;

    const PAGES: bool = true;

    fn page(&self) -> Option<(u64, f64)> {
        Some((self.segments, self.idle.map_or(0.0, |idle| idle.mean())))
    }
    fn resolve(&self, _: Transport) -> Result<Self, Invalid> {
        if self.segments == 0 {
            return Err(Invalid::NoSegments);
        }
        if self.count == Some(0) {
            return Err(Invalid::NoPages);
        }
        self.idle.map_or(Ok(()), |t| t.validate()).map_err(Invalid::Idle)?;
        Ok(*self)
    }
    fn build(&self, start: &Start<'_>) -> Box<Pages> {
        let segment = match start.over {
            Transport::Stream { segment } => segment,
            Transport::Datagrams { .. } => panic!("pages need a byte stream"),
        };
        Box::new(Pages {
            bytes: self.segments.saturating_mul(segment.into()),
            count: self.count,
            idle: self.idle.map(|times| (times, start.streams.clone())),
            next: start.now,
            done: 0,
            state: State::Pausing,
        })
    }
    fn offered(&self) -> Option<f64> {
        None
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let pause = match self.idle {
            None => String::new(),
            Some(times) => format!(", {} s apart on average", number(times.mean())),
        };
        format!("pages of {} segments, one after the other{pause}", self.segments)
    }
}

impl Workload for Pages {
    fn next(&self) -> Instant {
        self.next
    }
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.next > now {
            return None;
        }
        self.next = Instant::MAX;
        self.state = State::Loading;
        Some(Demand::Open { transfer: self.done, bytes: self.bytes })
    }
    fn is_loading(&self) -> bool {
        matches!(self.state, State::Loading | State::Aborted)
    }
    fn acknowledged(&mut self, now: Instant) -> Outcome {
        if matches!(self.state, State::Aborted | State::Stopped) {
            return Outcome::Over;
        }
        self.state = State::Pausing;
        self.done += 1;
        if self.count.is_some_and(|n| self.done >= n) {
            return Outcome::Last;
        }
        self.next = now;
        if let Some((times, streams)) = &self.idle {
            // Each pause has its own random stream, so that its length does not depend on earlier events.
            self.next = now + times.draw(&mut streams.named(&format!("idle.{}", self.done)));
        }
        Outcome::Next
    }
    fn stop(&mut self) -> Stop {
        self.next = Instant::MAX;
        match self.state {
            State::Loading | State::Aborted => {
                self.state = State::Aborted;
                Stop::TakeBack
            }
            State::Pausing | State::Stopped => {
                self.state = State::Stopped;
                Stop::Over
            }
        }
    }
    fn is_finite(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }
    fn pages(count: Option<u64>, idle: Option<Times>) -> Box<Pages> {
        let config = Config { segments: 3, count, idle };
        let over = Transport::Stream { segment: 100 };
        config.resolve(over).unwrap().build(&Start {
            now: at(1),
            over,
            streams: &Streams::of(1, "flows.web[0]"),
        })
    }

    #[test]
    fn the_next_page_follows_at_once_or_after_a_pause() {
        let mut p = pages(Some(2), None);
        assert_eq!(p.poll(at(0)), None);
        assert_eq!(p.poll(at(1)), Some(Demand::Open { transfer: 0, bytes: 300 }));
        assert_eq!((p.poll(at(1)), p.next()), (None, Instant::MAX));
        assert_eq!(p.acknowledged(at(4)), Outcome::Next);
        assert_eq!(p.poll(at(4)), Some(Demand::Open { transfer: 1, bytes: 300 }));
        assert_eq!(p.acknowledged(at(5)), Outcome::Last);

        let mut p = pages(None, Some(Times::Constant(Duration::from_secs(2))));
        p.poll(at(1));
        assert_eq!(p.acknowledged(at(4)), Outcome::Next);
        assert_eq!((p.poll(at(5)), p.next()), (None, at(6)));
        assert_eq!(p.poll(at(6)), Some(Demand::Open { transfer: 1, bytes: 300 }));
    }

    #[test]
    fn a_page_that_is_cut_short_does_not_count_and_a_pause_is_no_page() {
        let mut p = pages(None, Some(Times::Constant(Duration::from_secs(2))));
        p.poll(at(1));
        assert_eq!(p.stop(), Stop::TakeBack);
        assert_eq!(p.acknowledged(at(2)), Outcome::Over);
        let mut p = pages(None, Some(Times::Constant(Duration::from_secs(2))));
        p.poll(at(1));
        p.acknowledged(at(2));
        assert_eq!(p.stop(), Stop::Over);
        assert_eq!(p.next(), Instant::MAX);
    }
}
