//! Configuration of a video flow.

use super::coder::{Coder, InvalidCoder};
use super::packet::Cut;
use super::sender::{FRAME_HEADER, OverflowPolicy, Plan, RTP_HEADER, Spread, Video};
use super::view::{InvalidViewer, Settings};
use crate::film::movie::{self, InvalidMovie, Movie, NameOrTable};
use crate::film::{Broken, Film, Pattern, Trace};
use crate::short;
use crate::stream::USUAL_PACKET;
use crate::workload::{Kind, Refusal, Start, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::Rate;
use skyhaul_base::amount::{RateSpec, Size};
use std::sync::Arc;

/// Largest packet, bytes.
const LARGEST_PACKET: u64 = 65_535;
/// Largest frame after scaling, bytes.
const LARGEST_FRAME: f64 = (1u64 << 30) as f64;
/// The default movie.
const USUAL_MOVIE: &str = "jp-medium";
/// Pattern and frames per second of traces that have only sizes.
const USUAL_PATTERN: &str = "IBBPBBPBBPBB";
const USUAL_FRAME_RATE: f64 = 25.0;

/// Video: frames of an MPEG-4 film, passed to the transport as they are produced, and a viewer at the other end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Mean rate of the frames without headers; frame sizes are scaled to it. By default that of the movie or trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// The movie: "jp-medium" (the default) or a table.
    #[serde(default, deserialize_with = "movie::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameOrTable>")]
    pub movie: Option<Box<Movie>>,
    /// Instead of a movie: a file with measured frame sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The content itself, instead of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Repeat the trace at its end: true by default.
    #[serde(default = "yes")]
    pub repeat: bool,
    /// Size of a full packet with its headers: "1000 B" by default over UDP; over TCP a full segment.
    #[serde(default, with = "short::size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub packet: Option<u64>,
    /// Send the last, partly filled packet of a frame without waiting for the next frame: true by default.
    #[serde(default = "yes")]
    pub flush: bool,
    /// Pad frames to whole packets, as senders that count in packets do: false by default.
    #[serde(default)]
    pub pad: bool,
    /// When the packets of a frame are sent: "burst" by default, or "even".
    #[serde(default)]
    pub spread: Spread,
    /// Start the film at a random time within the first group of pictures: true by default.
    #[serde(default = "yes")]
    pub phase: bool,
    /// What happens while more than `buffer` is written but unacknowledged: "queue" (default), "block" or "skip-b".
    #[serde(default)]
    pub full: OverflowPolicy,
    /// With "block" and "skip-b": maximum amount of written but unacknowledged data; "64 kB" by default.
    #[serde(default, with = "short::size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub buffer: Option<u64>,
    /// A coder that adapts to the transport; by default the rate is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coder: Option<Coder>,
    /// The viewer: deadlines and playout buffer.
    #[serde(default)]
    pub viewer: Settings,
    /// The film that [`Kind::resolve`] makes of the movie or the trace; `resolve` ignores and replaces what is here.
    #[serde(skip)]
    #[schemars(skip)]
    pub film: Option<Film>,
}

fn yes() -> bool {
    true
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rate: None,
            movie: None,
            trace: None,
            text: None,
            repeat: true,
            packet: None,
            flush: true,
            pad: false,
            spread: Spread::Burst,
            phase: true,
            full: OverflowPolicy::Queue,
            buffer: None,
            coder: None,
            viewer: Settings::default(),
            film: None,
        }
    }
}

/// Why a video flow is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A movie and a trace.
    #[error("a movie is given too: write only one of them")]
    Both,
    /// The movie.
    #[error(transparent)]
    Movie(InvalidMovie),
    /// The trace.
    #[error("{1}")]
    Trace(String, Broken),
    /// A trace without its content.
    #[error("\"{0}\" cannot be read from here: write its content as text = \"\"\"…\"\"\"")]
    NoText(String),
    /// A text without a trace.
    #[error("also write trace = \"NAME\", a name used in messages")]
    NoTrace,
    /// The rate is unlimited, or in packets.
    #[error("write a rate in bit/s, such as \"320 kbit/s\"")]
    NoRate,
    /// The rate gives frames without bytes.
    #[error(
        "{rate} bit/s is less than 1 byte per frame: at {frames} frames per second write at least \"{least} bit/s\""
    )]
    TooSlow {
        /// The given value, bit/s.
        rate: u64,
        /// Frames per second.
        frames: f64,
        /// The minimum, bit/s.
        least: u64,
    },
    /// The rate gives excessive frames.
    #[error("frames would be up to {largest:.0} bytes long: write at most \"{most} bit/s\"")]
    TooFast {
        /// Bytes of the largest frame.
        largest: f64,
        /// The maximum, bit/s.
        most: u64,
    },
    /// The packet size is invalid.
    #[error("\"{size} B\": write a size from {least} B to {LARGEST_PACKET} B")]
    Packet {
        /// The given value, bytes.
        size: u64,
        /// The minimum.
        least: u64,
    },
    /// A packet size over a byte stream.
    #[error("TCP sends full segments: leave this out, or write mss and header in endpoint")]
    Segment,
    /// The buffer size is zero.
    #[error("write a size of at least 1 B")]
    NoBuffer,
    /// A buffer that is not used.
    #[error("only full = \"block\" and \"skip-b\" use this: leave it out")]
    Unused,
    /// A limit of written but unacknowledged data, over datagrams.
    #[error("only TCP data waits until it is acknowledged: leave this out, or write transport = \"tcp\"")]
    NotTcp,
    /// A coder without feedback.
    #[error(
        "UDP gives the coder no feedback to follow: leave this out, or write transport = \"tcp\", \"tfrc\" or \"ssvp\""
    )]
    NoFeedback,
    /// The coder.
    #[error(transparent)]
    Coder(InvalidCoder),
    /// The viewer.
    #[error(transparent)]
    Viewer(InvalidViewer),
}

impl Refusal for Invalid {
    fn key(&self) -> String {
        match self {
            Self::Both | Self::Trace(..) | Self::NoText(_) => "trace".into(),
            Self::Movie(e) => format!("movie.{}", e.key()),
            Self::NoTrace => "text".into(),
            Self::NoRate | Self::TooSlow { .. } | Self::TooFast { .. } => "rate".into(),
            Self::Packet { .. } | Self::Segment => "packet".into(),
            Self::NoBuffer | Self::Unused => "buffer".into(),
            Self::NotTcp => "full".into(),
            Self::NoFeedback => "coder".into(),
            Self::Coder(e) => format!("coder.{}", e.key()),
            Self::Viewer(e) => format!("viewer.{}", e.key()),
        }
    }
    fn file(&self) -> Option<(&str, usize)> {
        match self {
            Self::Trace(name, e) => Some((name, e.line)),
            _ => None,
        }
    }
}

impl Config {
    /// The film, and the movie that it is made of, the default one if none is given; `None` for a trace.
    fn film(&self) -> Result<(Option<Box<Movie>>, Film), Invalid> {
        match (&self.movie, &self.trace, &self.text) {
            (Some(_), Some(_), _) => Err(Invalid::Both),
            (_, None, Some(_)) => Err(Invalid::NoTrace),
            (None, Some(name), None) => Err(Invalid::NoText(name.clone())),
            (None, Some(name), Some(text)) => {
                let pattern = Pattern::parse(USUAL_PATTERN).expect("a pattern");
                let trace = Trace::read(text, &pattern, USUAL_FRAME_RATE)
                    .map_err(|e| Invalid::Trace(name.clone(), e))?;
                Ok((None, Film::Trace(Arc::new(trace))))
            }
            (movie, None, None) => {
                let movie = movie
                    .clone()
                    .or_else(|| Movie::named(USUAL_MOVIE).map(Box::new))
                    .expect("the usual movie");
                let compiled = movie.compile().map_err(Invalid::Movie)?;
                Ok((Some(movie), Film::Movie(Arc::new(compiled))))
            }
        }
    }

    /// The mean rate in bit/s to which the frames of `film` are scaled.
    fn rate_of(&self, film: &Film) -> Result<u64, Invalid> {
        let rate = match self.rate {
            None => (film.bit_rate() + 0.5) as u64,
            Some(RateSpec::Bits(rate)) => rate.bits_per_sec(),
            Some(RateSpec::Packets(_) | RateSpec::Unlimited) => return Err(Invalid::NoRate),
        };
        let frames = film.frame_rate();
        let least = skyhaul_base::math::ceil(8.0 * frames) as u64;
        if rate < least {
            return Err(Invalid::TooSlow { rate, frames, least });
        }
        let largest = film.largest() * rate as f64 / film.bit_rate();
        if largest > LARGEST_FRAME {
            return Err(Invalid::TooFast { largest, most: (rate as f64 * LARGEST_FRAME / largest) as u64 });
        }
        Ok(rate)
    }

    /// How frames are divided into packets over this transport.
    fn cut(&self, over: Transport) -> Cut {
        let payload = match over {
            Transport::Stream { segment } => u64::from(segment),
            Transport::Datagrams { header, .. } => {
                self.packet.unwrap_or(USUAL_PACKET).saturating_sub(u64::from(header + RTP_HEADER))
            }
        };
        Cut { payload: payload.max(1), flush: self.flush, pad: self.pad }
    }
}

impl Kind for Config {
    type Workload = Box<Video>;
    type Invalid = Invalid;
    const DATAGRAMS: bool = true;
    const WATCHES: bool = true;

    fn packet(&self) -> Option<u64> {
        self.packet
    }
    fn ends_short(&self) -> bool {
        self.flush && !self.pad
    }
    fn resolve(&self, over: Transport) -> Result<Self, Invalid> {
        let (movie, film) = self.film()?;
        let rate = self.rate_of(&film)?;
        self.viewer.validate().map_err(Invalid::Viewer)?;
        if let Some(coder) = &self.coder {
            coder.validate().and_then(|()| coder.suits(rate as f64)).map_err(Invalid::Coder)?;
        }
        let mut resolved = Self {
            rate: Some(RateSpec::Bits(Rate::from_bits_per_sec(rate))),
            movie,
            film: Some(film),
            ..self.clone()
        };
        match over {
            Transport::Stream { .. } if self.packet.is_some() => return Err(Invalid::Segment),
            Transport::Stream { .. } => {}
            Transport::Datagrams { header, yields } => {
                let (size, least) = (self.packet.unwrap_or(USUAL_PACKET), u64::from(header + RTP_HEADER) + 1);
                if !(least..=LARGEST_PACKET).contains(&size) {
                    return Err(Invalid::Packet { size, least });
                }
                if self.full != OverflowPolicy::Queue {
                    return Err(Invalid::NotTcp);
                }
                if self.coder.is_some() && !yields {
                    return Err(Invalid::NoFeedback);
                }
                resolved.packet = Some(size);
            }
        }
        match (self.full, self.buffer) {
            (_, Some(0)) => return Err(Invalid::NoBuffer),
            (OverflowPolicy::Queue, Some(_)) => return Err(Invalid::Unused),
            (OverflowPolicy::Queue, None) | (_, Some(_)) => {}
            (_, None) => resolved.buffer = Some(64_000),
        }
        Ok(resolved)
    }
    fn build(&self, start: &Start<'_>) -> Box<Video> {
        let (Some(film), Some(RateSpec::Bits(rate))) = (&self.film, self.rate) else {
            panic!("a video flow that is not resolved")
        };
        let scale = rate.bits_per_sec() as f64 / film.bit_rate();
        let plan = Plan {
            film,
            nominal: rate.bits_per_sec() as f64,
            scale,
            cut: self.cut(start.over),
            spread: self.spread,
            phase: self.phase,
            repeats: self.repeat,
            full: self.full,
            buffer: self.buffer.unwrap_or(u64::MAX),
            coder: self.coder.clone(),
            viewer: self.viewer,
        };
        Box::new(Video::new(start, plan))
    }
    fn offered(&self) -> Option<f64> {
        let Some(RateSpec::Bits(rate)) = self.rate else { return None };
        let frames = self.film.as_ref().map_or(0.0, Film::frame_rate);
        // The header of each frame is video data; headers and padding of the transport are not.
        Some(rate.bits_per_sec() as f64 + 8.0 * FRAME_HEADER as f64 * frames)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let Some(RateSpec::Bits(rate)) = self.rate else { return "video".into() };
        let of = if self.trace.is_some() { "replayed from a trace" } else { "of a modelled film" };
        let coder = if self.coder.is_some() { ", with a coder that adapts to the transport" } else { "" };
        format!("video {of} at {} kbit/s on average{coder}", number(rate.bits_per_sec() as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Transport = Transport::Stream { segment: 960 };
    const UDP: Transport = Transport::Datagrams { header: 28, yields: false };
    const TFRC: Transport = Transport::Datagrams { header: 28, yields: true };

    fn parse(text: &str) -> Config {
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }
    /// Key, line and message of the refusal.
    fn refused(text: &str, over: Transport) -> String {
        let e = parse(text).resolve(over).unwrap_err();
        format!("{} {}: {e}", e.key(), e.file().map_or(0, |f| f.1))
    }

    #[test]
    fn a_flow_that_says_nothing_is_the_usual_film() {
        let c = parse("{}").resolve(STREAM).unwrap();
        assert_eq!(c.movie.as_deref(), Movie::named("jp-medium").as_ref());
        let Some(RateSpec::Bits(rate)) = c.rate else { panic!("{c:?}") };
        assert!((rate.bits_per_sec() as f64 / 268e3 - 1.0).abs() < 0.02, "{rate:?}");
        // The resolved configuration can be written and read back.
        let again: Config = serde_json::from_str(&serde_json::to_string(&c).unwrap()).unwrap();
        assert_eq!(again.resolve(STREAM).unwrap(), c);
    }

    #[test]
    fn bad_input_is_refused_with_key_and_line() {
        let starts = |text: &str, over, start: &str| {
            let message = refused(text, over);
            assert!(message.starts_with(start), "{message}");
        };
        starts(r#"{"rate": "100 bit/s"}"#, STREAM, "rate 0: 100 bit/s is less than 1 byte per frame");
        starts(r#"{"rate": "1000000 Gbit/s"}"#, STREAM, "rate 0: frames would be up to");
        starts(r#"{"rate": "unlimited"}"#, STREAM, "rate 0: write a rate in bit/s");
        starts(r#"{"viewer": {"threshold": "0 s"}}"#, STREAM, "viewer.threshold 0: zero");
        starts(r#"{"viewer": {"start": "100000 s"}}"#, STREAM, "viewer.start 0: longer than a day");
        starts(r#"{"packet": "1500 B"}"#, STREAM, "packet 0: TCP sends full segments");
        starts(r#"{"packet": "40 B"}"#, UDP, "packet 0: \"40 B\": write a size from 41 B");
        starts(r#"{"full": "skip-b"}"#, UDP, "full 0: only TCP data waits");
        starts(r#"{"full": "block"}"#, TFRC, "full 0: only TCP data waits");
        starts(r#"{"coder": {}}"#, UDP, "coder 0: UDP gives the coder no feedback");
        starts(
            r#"{"coder": {"layers": ["80 kbit/s", "2 Mbit/s"]}}"#,
            STREAM,
            "coder.layers 0: 2000000 bit/s exceeds",
        );
        starts(r#"{"coder": {"least": 2}}"#, STREAM, "coder.least 0: 2: write a number above 0");
        starts(r#"{"buffer": "9 kB"}"#, STREAM, "buffer 0: only full");
        starts(r#"{"full": "block", "buffer": "0 B"}"#, STREAM, "buffer 0: write a size");
        starts(r#"{"trace": "a.txt"}"#, STREAM, "trace 0: \"a.txt\" cannot be read from here");
        starts(r#"{"text": "5"}"#, STREAM, "text 0: also write trace");
        starts(
            r#"{"trace": "a", "text": "5", "movie": "jp-medium"}"#,
            STREAM,
            "trace 0: a movie is given too",
        );
        starts(r#"{"trace": "a", "text": "5\n-3"}"#, STREAM, "trace 2: \"-3\" is not a frame size");
        let movie = r#"{"movie": {"I": {"sizes": {"gamma": {"shape": 2, "scale": "9 B"}}}}}"#;
        starts(movie, STREAM, "movie.I.step 0: write either");
    }

    #[test]
    fn a_trace_has_its_own_rate() {
        let c =
            parse(r#"{"trace": "a", "text": "1 I 0 100\n2 P 100 50\n3 P 200 50"}"#).resolve(STREAM).unwrap();
        let Some(RateSpec::Bits(rate)) = c.rate else { panic!("{c:?}") };
        assert_eq!(rate.bits_per_sec(), 5333);
    }
}
