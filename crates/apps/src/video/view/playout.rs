//! Playout at the viewer: when the video starts, and when it stalls.
//!
//! Over a byte stream the viewer waits for missing data, and resumes when enough is buffered (rebuffering).
//! With datagrams, data missing at its deadline is lost: the picture freezes for that frame, and the video goes on.

use crate::viewed::Played;
use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// State of the playout.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Not started.
    Waiting,
    /// Frame `number` is due at `at`, later ones at frame intervals.
    Playing { number: u64, at: Instant },
    /// Stalled since `since`, because frame `number` is missing.
    Stalled { number: u64, since: Instant },
}

/// The playout of a video. Frames are identified by their number in it.
#[derive(Clone, Debug)]
pub(super) struct Playout {
    /// Frame interval, s.
    interval: f64,
    /// Buffer required to start and to resume, s of video.
    start: f64,
    resume: f64,
    /// The viewer does not wait: data missing at its deadline is lost.
    conceals: bool,
    state: State,
    /// When the first frame was produced, and its number.
    began: Option<Instant>,
    first: Option<u64>,
    /// The last complete frame; with datagrams the highest.
    last: Option<u64>,
    /// The last frame of the video, once known.
    end: Option<u64>,
    /// With datagrams: which frames have arrived, from the next one due.
    arrived: VecDeque<bool>,
    /// Number of frames for which the picture has been frozen without interruption.
    frozen: u64,
    result: Played,
}

impl Playout {
    /// `interval`: frame interval; `start` and `resume`: required buffer, all in seconds.
    pub(super) fn new(interval: f64, start: Duration, resume: Duration, conceals: bool) -> Self {
        Self {
            interval,
            start: start.as_secs_f64(),
            resume: resume.as_secs_f64(),
            conceals,
            state: State::Waiting,
            began: None,
            first: None,
            last: None,
            end: None,
            arrived: VecDeque::new(),
            frozen: 0,
            result: Played::default(),
        }
    }

    /// A frame was produced.
    pub(super) fn produced(&mut self, at: Instant, number: u64) {
        if self.first.is_none() {
            (self.first, self.began) = (Some(number), Some(at));
        }
        self.end = None;
    }
    /// When the first frame was produced.
    pub(super) fn began(&self) -> Option<Instant> {
        self.began
    }
    /// The video has ended with frame `number`.
    pub(super) fn over(&mut self, now: Instant, number: u64) {
        self.end = Some(number);
        self.start_if_buffered(now);
    }

    /// Time between frames `from` and `to`.
    fn span(&self, from: u64, to: u64) -> Duration {
        Duration::from_secs_f64(to.saturating_sub(from) as f64 * self.interval)
    }

    /// All data of a frame has arrived. Over a byte stream frames are complete in order.
    pub(super) fn complete(&mut self, now: Instant, number: u64) {
        if self.conceals {
            self.advance(now);
            let next = match self.state {
                State::Playing { number, .. } => number,
                _ => self.first.unwrap_or(number),
            };
            if let Some(place) = number.checked_sub(next) {
                let place = place as usize;
                if self.arrived.len() <= place {
                    self.arrived.resize(place + 1, false);
                }
                self.arrived[place] = true;
            }
            self.last = self.last.max(Some(number));
        } else {
            if let Some(last) = self.last.filter(|last| last + 1 < number) {
                let unsent = (number - last - 1) as f64 * self.interval;
                self.result.freeze = self.result.freeze.max(unsent);
            }
            if let State::Playing { number: from, at } = self.state {
                let due = at + self.span(from, number);
                if now > due {
                    self.result.stalls += 1;
                    self.result.played += (due - at).as_secs_f64();
                    self.state = State::Stalled { number, since: due };
                }
            }
            self.last = Some(number);
        }
        self.start_if_buffered(now);
    }

    /// Starts or resumes if enough is buffered.
    fn start_if_buffered(&mut self, now: Instant) {
        let (Some(last), Some(first), Some(began)) = (self.last, self.first, self.began) else { return };
        let (from, needed) = match self.state {
            State::Waiting => (first, self.start),
            State::Stalled { number, .. } => (number, self.resume),
            State::Playing { .. } => return,
        };
        let buffered = (last + 1).saturating_sub(from) as f64 * self.interval;
        // The tolerance is for frame intervals that are not binary fractions.
        let enough = buffered + 1e-9 >= needed || self.end.is_some_and(|end| last >= end);
        if !enough {
            return;
        }
        match self.state {
            State::Waiting => self.result.startup = Some((now - began).as_secs_f64()),
            State::Stalled { since, .. } => self.add_stall(now - since),
            State::Playing { .. } => {}
        }
        self.state = State::Playing { number: from, at: now };
    }

    /// Adds the time of a stall that is over.
    fn add_stall(&mut self, span: Duration) {
        let span = span.as_secs_f64();
        self.result.stalled += span;
        self.result.freeze = self.result.freeze.max(span);
    }

    /// With datagrams: displays the frames that were due before `now`.
    fn advance(&mut self, now: Instant) {
        while let State::Playing { number, at } = self.state {
            if at >= now || self.end.is_some_and(|end| number > end) {
                return;
            }
            if self.arrived.pop_front().unwrap_or(false) {
                self.thaw();
                self.result.played += self.interval;
            } else {
                self.result.stalls += u64::from(self.frozen == 0);
                self.frozen += 1;
                self.result.stalled += self.interval;
            }
            self.state = State::Playing { number: number + 1, at: at + self.span(0, 1) };
        }
    }
    /// Ends a freeze, if there is one.
    fn thaw(&mut self) {
        let frozen = core::mem::take(&mut self.frozen) as f64 * self.interval;
        self.result.freeze = self.result.freeze.max(frozen);
    }

    /// Video received and not yet displayed, s; `None` before the first frame.
    pub(super) fn buffered(&self, now: Instant) -> Option<f64> {
        let first = self.first?;
        let Some(last) = self.last else { return Some(0.0) };
        Some(
            match self.state {
                State::Waiting => self.span(first, last + 1).as_secs_f64(),
                State::Stalled { number, .. } => self.span(number, last + 1).as_secs_f64(),
                State::Playing { number, at } => {
                    (at + self.span(number, last + 1)).as_secs_f64() - now.as_secs_f64()
                }
            }
            .max(0.0),
        )
    }

    /// Total stall time until `now`, s; `None` before the first frame.
    pub(super) fn stalled_until(&self, now: Instant) -> Option<f64> {
        self.began?;
        Some(self.clone().result(now).stalled)
    }

    /// The results at the end.
    pub(super) fn result(mut self, end: Instant) -> Played {
        if self.conceals {
            self.advance(end);
            self.thaw();
            return self.result;
        }
        let Some(last) = self.last else { return self.result };
        match self.state {
            State::Waiting => {}
            State::Stalled { since, .. } => self.add_stall(end - since),
            State::Playing { number, at } => {
                let due = at + self.span(number, last + 1);
                self.result.played += (due.min(end) - at).as_secs_f64();
                if due < end && self.end != Some(last) {
                    self.result.stalls += 1;
                    self.add_stall(end - due);
                }
            }
        }
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    /// Frames of 40 ms; play-out starts with 5 buffered frames, and resumes with 3.
    fn playout(conceals: bool) -> Playout {
        let ms = Duration::from_millis;
        let mut p = Playout::new(0.04, ms(200), ms(120), conceals);
        p.produced(at(0), 0);
        p
    }
    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} and {b}");
    }

    #[test]
    fn a_stream_stalls_until_some_film_is_there() {
        let mut p = playout(false);
        for n in 0..4 {
            p.complete(at(300 + 40 * n), n);
        }
        near(p.buffered(at(420)).unwrap(), 0.16);
        near(p.stalled_until(at(420)).unwrap(), 0.0);
        p.complete(at(460), 4);
        // Frame 0 is displayed at 460, frame 5 is due at 660.
        near(p.buffered(at(500)).unwrap(), 0.16);
        p.complete(at(700), 5);
        p.complete(at(720), 6);
        near(p.buffered(at(730)).unwrap(), 0.08);
        near(p.stalled_until(at(730)).unwrap(), 0.07);
        p.complete(at(750), 7);
        // It went on at 750 with frame 5; frame 8 is due at 870 and does not come.
        let r = p.clone().result(at(1000));
        assert_eq!((r.startup, r.stalls), (Some(0.46), 2));
        near(r.stalled, 0.09 + 0.13);
        near(r.played, 0.2 + 0.12);
        near(r.freeze, 0.13);
        // If the film had ended with frame 7, the time after it is no stall.
        p.over(at(760), 7);
        let r = p.result(at(1000));
        assert_eq!(r.stalls, 1);
        near(r.stalled, 0.09);
    }

    #[test]
    fn a_film_that_never_starts_and_one_shorter_than_the_buffer() {
        let mut p = playout(false);
        p.complete(at(100), 0);
        assert_eq!(p.clone().result(at(10_000)), Played::default());
        p.over(at(150), 0);
        let r = p.result(at(10_000));
        assert_eq!((r.startup, r.stalls), (Some(0.15), 0));
        near(r.played, 0.04);
    }

    #[test]
    fn frames_that_were_not_sent_freeze_the_picture_without_a_stall() {
        let mut p = playout(false);
        for n in 0..5 {
            p.complete(at(100), n);
        }
        p.complete(at(200), 8);
        let r = p.result(at(300));
        assert_eq!(r.stalls, 0);
        near(r.freeze, 0.12);
    }

    #[test]
    fn datagrams_freeze_and_go_on() {
        let mut p = playout(true);
        for n in [0, 1, 3, 4] {
            p.complete(at(100 + n), n);
        }
        near(p.stalled_until(at(225)).unwrap(), 0.04);
        // Started at 104: frame 2 is due at 184, 5 at 304, 6 at 344, 7 at 384.
        p.complete(at(190), 2);
        p.complete(at(384), 7);
        let r = p.result(at(385));
        assert_eq!((r.startup, r.stalls), (Some(0.104), 2), "frame 2 came too late");
        near(r.stalled, 0.12);
        near(r.played, 0.2);
        near(r.freeze, 0.08);
    }
}
