//! The sender of a video: a frame at every tick, divided into packets and passed to the transport. It contains the
//! viewer: both ends of an application are one object.

use super::coder::{Coder, Coding};
use super::layers::LayerConditions;
use super::packet::{Cut, Cutter, Pieces};
use super::view::{Settings, Viewer};
use crate::film::{Film, Source};
use crate::frame::{Frame, FrameStatus};
use crate::viewed::Viewed;
use crate::watch::{Arrival, Feedback, Watch};
use crate::workload::{Demand, Start, Stop, Transport, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};

/// Header of a frame on a byte stream: length, type, number and time (4, 4 with flags, 4 and 4 bytes).
pub const FRAME_HEADER: u64 = 16;
/// Header of RTP (RFC 3550 §5.1), which datagrams have after those of IPv4 and UDP, bytes.
pub const RTP_HEADER: u32 = 12;

/// When the packets of a frame are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All at once.
    #[default]
    Burst,
    /// Evenly spaced until the next frame.
    Even,
}

/// What happens when the send buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverflowPolicy {
    /// New frames wait.
    #[default]
    Queue,
    /// The coder stops, for whole frame intervals.
    Block,
    /// B frames are skipped.
    SkipB,
}

/// Parameters of a sender.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) film: &'a Film,
    /// Rate in bit/s, and bytes sent per byte of the video at that rate.
    pub(super) nominal: f64,
    pub(super) scale: f64,
    pub(super) cut: Cut,
    pub(super) spread: Spread,
    /// Begins at a random time within the first group of pictures.
    pub(super) phase: bool,
    pub(super) repeats: bool,
    pub(super) full: OverflowPolicy,
    /// Waiting bytes at which the buffer counts as full.
    pub(super) buffer: u64,
    pub(super) coder: Option<Coder>,
    pub(super) viewer: Settings,
}

/// A running video, from the sender to the viewer.
#[derive(Clone, Debug)]
pub struct Video {
    source: Source,
    /// Bytes sent per byte of the film at the coder's nominal rate, and that rate, bit/s.
    scale: f64,
    nominal: f64,
    coding: Option<Coding>,
    full: OverflowPolicy,
    buffer: u64,
    spread: Spread,
    /// Header bytes of a datagram; `None` over a byte stream.
    header: Option<u32>,
    cutter: Cutter,
    overhead: Overhead,
    /// When the first frame is due, and the time between frames, s.
    begin: Instant,
    interval: f64,
    /// Number of frame intervals so far, and when the next one begins.
    tick: u64,
    tick_at: Instant,
    /// Number of the next frame.
    number: u64,
    rest: UnsentPackets,
    /// Its connection must be opened first.
    opens: bool,
    over: bool,
    feedback: Feedback,
    viewer: Viewer,
}

/// Unsent packets of the last frame.
#[derive(Clone, Copy, Debug, Default)]
struct UnsentPackets {
    /// How many are left.
    left: u64,
    /// Payload of the last one, bytes.
    last: u64,
    /// When the next one is due, and the time between two.
    due: Instant,
    apart: Duration,
}

/// Mean bytes of frames, and of their packets with headers, over about the last group of pictures. Smaller frames have
/// fewer full packets, so headers take more of the rate.
#[derive(Clone, Copy, Debug)]
struct Overhead {
    film: f64,
    sent: f64,
}

impl Overhead {
    /// Weight of a frame in the average.
    const SHARE: f64 = 1.0 / 16.0;

    fn frame(&mut self, film: f64, sent: f64) {
        self.film += (film - self.film) * Self::SHARE;
        self.sent += (sent - self.sent) * Self::SHARE;
    }
}

/// Bytes of a frame of this size in the film, of which this part is sent, at least 1, without any header; rounded, halves up.
fn scaled(size: f64, part: f64) -> u64 {
    // The smallest factor above 1 lifts products that are halves but for rounding.
    (size * (part * (1.0 + f64::EPSILON))).round().max(1.0) as u64
}

impl Video {
    pub(super) fn new(start: &Start<'_>, plan: Plan<'_>) -> Self {
        let Plan { film, nominal, scale, cut, spread, phase, repeats, full, buffer, coder, viewer } = plan;
        let frames = film.frame_rate();
        let (header, stream) = match start.over {
            Transport::Stream { .. } => (None, true),
            Transport::Datagrams { header, .. } => (Some(header + RTP_HEADER), false),
        };
        let group = film.group() as f64 / frames;
        let phase = if phase { start.streams.named("phase").unit() * group } else { 0.0 };
        let begin = start.now + Duration::from_secs_f64(phase);
        let payload = cut.payload as f64;
        Self {
            source: film.play(start.streams, repeats),
            scale,
            nominal,
            coding: coder.map(|rule| Coding::new(rule, nominal, begin)),
            full,
            buffer,
            spread,
            header,
            cutter: Cutter::new(cut),
            // Before the first frame: that of full packets.
            overhead: Overhead { film: payload, sent: payload + f64::from(header.unwrap_or(0)) },
            begin,
            interval: 1.0 / frames,
            tick: 0,
            tick_at: begin,
            number: 0,
            rest: UnsentPackets::default(),
            opens: stream,
            over: false,
            feedback: Feedback::default(),
            viewer: Viewer::new(viewer, frames, cut, stream),
        }
    }

    /// When a frame interval begins. Each is rounded separately, so that errors do not accumulate.
    fn time(&self, tick: u64) -> Instant {
        self.begin + Duration::from_secs_f64(tick as f64 * self.interval)
    }

    /// The frame of a tick, if there is one.
    fn produce(&mut self) -> Option<Frame> {
        let at = self.tick_at;
        self.tick += 1;
        self.tick_at = self.time(self.tick);
        let full = self.feedback.unacknowledged > self.buffer;
        if full && self.full == OverflowPolicy::Block {
            return None;
        }
        let Some((kind, size)) = self.source.next() else {
            if let Some(last) = self.cutter.finish() {
                self.rest = UnsentPackets { left: 1, last, due: at, apart: Duration::ZERO };
                self.viewer.flushed();
            }
            self.end(at);
            return None;
        };
        if let (Some(coding), Some(allowed)) = (&mut self.coding, self.feedback.allowed) {
            // The rate of datagrams includes their headers, that of a video does not.
            let part = if self.header.is_some() { self.overhead.film / self.overhead.sent } else { 1.0 };
            let buffered_s =
                if coding.asks_the_viewer() { self.viewer.buffered(at).unwrap_or(0.0) } else { 0.0 };
            let round_trip = self.feedback.round_trip.unwrap_or(Duration::ZERO);
            let conditions = LayerConditions { buffered_s, round_trip };
            coding.allowed(at, part * allowed, conditions);
        }
        let target = self.coding.as_ref().map_or(self.nominal, Coding::target);
        let status = if self.coding.as_ref().is_some_and(|c| c.is_pausing(at)) {
            FrameStatus::Gap
        } else if full && self.full == OverflowPolicy::SkipB && !kind.is_anchor() {
            FrameStatus::Skipped
        } else {
            FrameStatus::Sent
        };
        let mut frame = Frame { number: self.number, kind, at, bytes: 0, packets: 0, status, target };
        self.number += 1;
        if status == FrameStatus::Sent {
            self.divide(&mut frame, scaled(size, self.scale * (target / self.nominal)));
        }
        self.viewer.produced(&frame);
        Some(frame)
    }

    /// Divides a frame of this many bytes into packets, which are to be sent.
    fn divide(&mut self, frame: &mut Frame, bytes: u64) {
        let header = if self.header.is_none() { FRAME_HEADER } else { 0 };
        let Pieces { bytes: all, ready, last, .. } = self.cutter.frame(bytes + header);
        (frame.bytes, frame.packets) = (all, u32::try_from(ready).unwrap_or(u32::MAX));
        if let Some(each) = self.header {
            let sent = all as f64 + f64::from(frame.packets) * f64::from(each);
            self.overhead.frame(bytes as f64, sent);
        }
        let apart = match self.spread {
            Spread::Even if ready > 0 => Duration::from_secs_f64(self.interval / ready as f64),
            _ => Duration::ZERO,
        };
        self.rest = UnsentPackets { left: ready, last, due: frame.at, apart };
    }

    /// The due packet of the last frame; on a byte stream without spreading, all of them in one write.
    fn packet(&mut self) -> Demand {
        let payload = self.cutter.cut().payload;
        let UnsentPackets { left, last, .. } = self.rest;
        if self.header.is_none() && self.spread == Spread::Burst {
            self.rest.left = 0;
            return Demand::Write((left - 1) * payload + last);
        }
        self.rest.left -= 1;
        self.rest.due += self.rest.apart;
        let bytes = if left == 1 { last } else { payload };
        match self.header {
            None => Demand::Write(bytes),
            Some(header) => Demand::Datagram(bytes as u32 + header),
        }
    }

    fn end(&mut self, now: Instant) {
        self.over = true;
        self.tick_at = Instant::MAX;
        self.viewer.over(now);
    }
}

impl Workload for Video {
    fn next(&self) -> Instant {
        if self.rest.left > 0 { self.rest.due.min(self.tick_at) } else { self.tick_at }
    }
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.opens {
            self.opens = false;
            return Some(Demand::Open { transfer: 0, bytes: 0 });
        }
        loop {
            if self.rest.left > 0 {
                // The rest of a frame is sent before the next one, however late the call.
                if self.rest.due <= now || self.tick_at <= now {
                    return Some(self.packet());
                }
                return None;
            }
            if self.tick_at > now {
                return None;
            }
            if let Some(frame) = self.produce() {
                return Some(Demand::Frame(frame));
            }
        }
    }
    fn stop(&mut self) -> Stop {
        self.opens = false;
        self.rest.left = 0;
        if !self.over {
            // The time is not known here: that of the last frame interval is the nearest.
            self.end(self.time(self.tick.saturating_sub(1)));
        }
        if self.header.is_some() { Stop::Over } else { Stop::Drain }
    }
    fn is_finite(&self) -> bool {
        self.over
    }
    fn watch(&self) -> Option<&dyn Watch> {
        Some(self)
    }
    fn watch_mut(&mut self) -> Option<&mut dyn Watch> {
        Some(self)
    }
}

impl Watch for Video {
    fn listens(&self) -> bool {
        self.coding.is_some() || self.full != OverflowPolicy::Queue
    }
    fn feedback(&mut self, feedback: &Feedback) {
        self.feedback = *feedback;
    }
    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        self.viewer.arrived(now, arrival);
    }
    fn died(&mut self, now: Instant) {
        self.viewer.died(now);
    }
    fn viewed(&self, end: Instant) -> Viewed {
        self.viewer.result(end)
    }
    fn buffered(&self, now: Instant) -> Option<f64> {
        self.viewer.buffered(now)
    }
    fn stalled(&self, now: Instant) -> Option<f64> {
        self.viewer.stalled(now)
    }
    fn held(&self) -> u64 {
        self.viewer.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameType as Type;
    use crate::video::Config;
    use crate::workload::{Kind, Streams};

    const STREAM: Transport = Transport::Stream { segment: 960 };
    const UDP: Transport = Transport::Datagrams { header: 28, yields: false };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn video(text: &str, over: Transport) -> Box<Video> {
        let config: Config = serde_json::from_str(text).unwrap();
        let streams = Streams::of(1, "flows.video[0]");
        config.resolve(over).unwrap().build(&Start { now: at(0), over, streams: &streams })
    }
    /// All demands until then, with their times.
    fn run(v: &mut Video, until: u64) -> Vec<(Instant, Demand)> {
        let mut all = Vec::new();
        while v.next() < at(until) {
            let now = v.next();
            while let Some(d) = v.poll(now) {
                all.push((now, d));
            }
        }
        all
    }
    const TRACE: &str =
        r#""trace": "a", "text": "1 I 0 2000\n2 P 120 1000\n3 B 40 500\n4 B 80 400", "phase": false"#;

    #[test]
    fn frames_are_written_when_they_are_produced() {
        let mut v = video(&format!("{{{TRACE}}}"), STREAM);
        let all = run(&mut v, 200);
        let writes: Vec<(Instant, u64)> = all
            .iter()
            .filter_map(|(t, d)| if let Demand::Write(n) = d { Some((*t, *n)) } else { None })
            .collect();
        assert_eq!(all[0].1, Demand::Open { transfer: 0, bytes: 0 });
        let sizes = [(0, 2016), (40, 1016), (80, 516), (120, 416), (160, 2016)];
        assert_eq!(writes, sizes.map(|(ms, n)| (at(ms), n)));
        let Demand::Frame(f) = all[3].1 else { panic!("{:?}", all[3]) };
        assert_eq!((f.number, f.kind, f.bytes, f.packets, f.at), (1, Type::P, 1016, 2, at(40)));
    }

    #[test]
    fn sizes_are_rounded_to_whole_bytes() {
        for size in 0..100_000 {
            for (part, of) in [(1, 1), (1, 2), (1, 3), (3, 4), (2, 7), (7, 5), (999, 1000)] {
                let nearest = (2 * size * part + of) / (2 * of);
                assert_eq!(
                    scaled(size as f64, part as f64 / of as f64),
                    nearest.max(1),
                    "{size} {part}/{of}"
                );
            }
        }
    }

    #[test]
    fn packets_are_padded_spread_or_shared() {
        let writes = |options: &str, over| -> Vec<(u64, u64)> {
            let mut v = video(&format!("{{{TRACE}, {options}}}"), over);
            let one = |(t, d): (Instant, Demand)| match d {
                Demand::Write(n) => Some((t.as_nanos() / 1_000_000, n)),
                Demand::Datagram(n) => Some((t.as_nanos() / 1_000_000, n.into())),
                _ => None,
            };
            run(&mut v, 100).into_iter().filter_map(one).collect()
        };
        assert_eq!(writes("\"pad\": true", STREAM), [(0, 2880), (40, 1920), (80, 960)]);
        assert_eq!(
            writes("\"spread\": \"even\"", STREAM),
            [(0, 960), (13, 960), (26, 96), (40, 960), (60, 56), (80, 516)]
        );
        // 2016, 1016 and 516 bytes: three packets, and the rest waits.
        assert_eq!(writes("\"flush\": false", STREAM), [(0, 1920), (40, 960)]);
        assert_eq!(
            writes("\"pad\": false", UDP),
            [(0, 1000), (0, 1000), (0, 120), (40, 1000), (40, 80), (80, 540)]
        );
        assert_eq!(writes("\"packet\": \"540 B\"", UDP)[..2], [(0, 540), (0, 540)]);
    }

    #[test]
    fn what_waits_for_the_next_frame_is_sent_at_the_end_of_the_film() {
        for (over, sent) in [(STREAM, 2016 + 1016 + 516 + 416), (UDP, 2000 + 1000 + 500 + 400 + 5 * 40)] {
            let mut v = video(&format!("{{{TRACE}, \"flush\": false, \"repeat\": false}}"), over);
            let bytes = |(_, demand): (Instant, Demand)| match demand {
                Demand::Write(n) => n,
                Demand::Datagram(n) => n.into(),
                _ => 0,
            };
            assert_eq!(run(&mut v, 1000).into_iter().map(bytes).sum::<u64>(), sent);
            assert_eq!(v.viewed(at(1000)).packets, 5);
        }
        let mut v = video(&format!("{{{TRACE}, \"flush\": false, \"repeat\": false}}"), STREAM);
        run(&mut v, 1000);
        v.arrived(at(1000), &Arrival::InOrder { bytes: 2016 + 1016 + 516 + 416 });
        let seen = v.viewed(at(1000));
        assert_eq!((seen.decodable.part, seen.measured.delivered), (4, 5));
    }

    #[test]
    fn a_full_buffer_queues_blocks_or_takes_b_frames() {
        let full = Feedback { unacknowledged: 5001, ..Feedback::default() };
        let sent = |options: &str| -> String {
            let mut v = video(&format!("{{{TRACE}, {options}}}"), STREAM);
            v.feedback(&full);
            let frames = run(&mut v, 200).into_iter().filter_map(|(_, d)| match d {
                Demand::Frame(f) => Some(if f.status == FrameStatus::Sent { f.kind.letter() } else { '-' }),
                _ => None,
            });
            frames.collect()
        };
        assert_eq!(sent("\"full\": \"queue\""), "IPBBI");
        assert_eq!(sent("\"full\": \"skip-b\", \"buffer\": \"5 kB\""), "IP--I");
        assert_eq!(sent("\"full\": \"skip-b\", \"buffer\": \"5001 B\""), "IPBBI");
        assert_eq!(sent("\"full\": \"block\", \"buffer\": \"5 kB\""), "");
        // The film stands still and goes on with the same frame.
        let mut v = video(&format!("{{{TRACE}, \"full\": \"block\", \"buffer\": \"5 kB\"}}"), STREAM);
        run(&mut v, 41);
        v.feedback(&full);
        run(&mut v, 121);
        v.feedback(&Feedback::default());
        let Some((t, Demand::Frame(f))) = run(&mut v, 161).into_iter().next() else { panic!() };
        assert_eq!((t, f.number, f.kind), (at(160), 2, Type::B));
    }

    #[test]
    fn a_coder_pauses_when_the_rate_falls_and_goes_on_with_smaller_frames() {
        let mut v = video(&format!("{{{TRACE}, \"coder\": {{\"delay\": \"80 ms\"}}}}"), STREAM);
        let nominal = v.nominal;
        v.feedback(&Feedback { allowed: Some(nominal * 0.5 / 0.95), ..Feedback::default() });
        let frames: Vec<Frame> = run(&mut v, 200)
            .into_iter()
            .filter_map(|(_, d)| if let Demand::Frame(f) = d { Some(f) } else { None })
            .collect();
        let statuses: Vec<FrameStatus> = frames.iter().map(|f| f.status).collect();
        assert_eq!(
            statuses,
            [FrameStatus::Gap, FrameStatus::Gap, FrameStatus::Sent, FrameStatus::Sent, FrameStatus::Sent]
        );
        assert_eq!((frames[2].bytes, frames[4].bytes), (250 + 16, 1000 + 16));
        let seen = v.viewed(at(200));
        assert_eq!((seen.gaps, seen.switches), (2, 0), "the rate fell before the first frame");
    }

    #[test]
    fn headers_of_datagrams_take_their_part_of_the_allowed_rate() {
        let over = Transport::Datagrams { header: 28, yields: true };
        // Frames of 1000 bytes, 200 kbit/s, in packets of 960 and 40 bytes of payload with 40 bytes of headers each.
        let text = r#"{"trace": "a", "text": "1000\n1000\n1000", "phase": false, "rate": "200 kbit/s",
                       "coder": {"delay": "0 s", "share": 1, "layers": ["100 kbit/s", "200 kbit/s"]}}"#;
        for (allowed, target) in [(215e3, 100e3), (217e3, 200e3)] {
            let mut v = video(text, over);
            // 25 frames a second of 1000 bytes and two headers of 40 bytes: 216 kbit/s once frames have been sent.
            run(&mut v, 10_000);
            v.feedback(&Feedback { allowed: Some(allowed), ..Feedback::default() });
            let mut last = run(&mut v, 10_100).into_iter().filter_map(|(_, d)| match d {
                Demand::Frame(f) => Some(f.target),
                _ => None,
            });
            assert_eq!(last.next_back(), Some(target), "{allowed}");
        }
    }

    #[test]
    fn the_mean_rate_is_the_one_asked_for_and_flows_are_out_of_step() {
        let mut v = video(r#"{"rate": "320 kbit/s"}"#, UDP);
        let begin = v.next();
        assert!(begin < at(480) && begin > at(0), "{begin:?}");
        let bytes: u64 = run(&mut v, 400_000)
            .iter()
            .filter_map(|(_, d)| if let Demand::Datagram(n) = d { Some(u64::from(*n) - 40) } else { None })
            .sum();
        // Sizes are correlated over about 11 s (`Movie::named`), and a run of 400 s contains few independent samples.
        assert!((bytes as f64 * 8.0 / 400.0 / 320e3 - 1.0).abs() < 0.25, "{bytes}");
    }

    #[test]
    fn a_trace_ends_and_a_stop_ends_everything() {
        let mut v = video(&format!("{{{TRACE}, \"repeat\": false}}"), STREAM);
        run(&mut v, 10_000);
        assert!(v.is_finite() && v.next() == Instant::MAX);
        let mut v = video("{}", STREAM);
        run(&mut v, 1000);
        assert!(!v.is_finite());
        assert_eq!((v.stop(), v.poll(at(2000)), v.is_finite()), (Stop::Drain, None, true));
        assert_eq!(video("{}", UDP).stop(), Stop::Over);
    }
}
