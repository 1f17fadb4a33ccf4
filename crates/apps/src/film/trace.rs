//! Measured frame sizes, in the public text format of video traces.
//!
//! Lines have four columns, `number type time_ms bytes`, or only one, the bytes. The order is that of coding: a
//! frame follows those that it is coded from. The time is the display time, so times do not ascend if there are B
//! frames. Empty lines and lines starting with `#` are comments.

use super::marginal::LARGEST;
use super::movie::RATES;
use super::pattern::Pattern;
use crate::frame::FrameType as Type;
use std::fmt::Write as _;

/// Maximum frames of a trace: more than 40 hours.
const MOST_FRAMES: usize = 4_000_000;
/// Longest line that is read, bytes.
const LONGEST_LINE: usize = 400;
/// Latest time, in milliseconds: a year.
const LATEST: f64 = 366.0 * 86_400e3;

/// Why a trace cannot be read, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Broken {
    /// The line, from 1; 0 means the whole file.
    pub line: usize,
    /// A sentence that says what is accepted.
    pub message: String,
}

/// Measured frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    frames: Vec<(Type, u32)>,
    rate: f64,
    mean: f64,
    largest: u32,
}

impl Trace {
    /// Frames with their sizes in bytes, in coding order, and the frame rate. `None` if there are none.
    #[must_use]
    pub fn new(frames: Vec<(Type, u32)>, rate: f64) -> Option<Self> {
        let sum: f64 = frames.iter().map(|f| f64::from(f.1)).sum();
        let largest = frames.iter().map(|f| f.1).max()?;
        Some(Self { mean: sum / frames.len() as f64, largest, frames, rate })
    }

    /// Reads a file. If it has only sizes, types follow `pattern` and the frame rate is `rate` per second.
    ///
    /// # Errors
    /// The first invalid line, and what is accepted there.
    pub fn read(text: &str, pattern: &Pattern, rate: f64) -> Result<Self, Broken> {
        let mut reading = Reading::default();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            reading.line(content, pattern).map_err(|message| Broken { line, message })?;
        }
        let whole = |message: String| Broken { line: 0, message };
        let rate = if reading.four_columns { reading.rate(rate).map_err(whole)? } else { rate };
        Self::new(reading.frames, rate).ok_or_else(|| {
            whole("no frames: write lines of frame number, type, milliseconds and bytes, or of bytes".into())
        })
    }

    /// The file with four columns, which reads back to the same frames.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::new();
        for (n, (kind, bytes)) in self.frames.iter().enumerate() {
            // The display order is no longer known: the coding order replaces it.
            let ms = 1000.0 * n as f64 / self.rate;
            let _ = writeln!(text, "{n} {} {ms} {bytes}", kind.letter());
        }
        text
    }

    /// Types and sizes in bytes.
    #[must_use]
    pub fn frames(&self) -> &[(Type, u32)] {
        &self.frames
    }
    /// Frames per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }
    /// Mean size of a frame in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }
    /// Size of the largest frame in bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.largest
    }
    /// The sizes of one type, in order.
    #[must_use]
    pub fn sizes(&self, kind: Type) -> Vec<f64> {
        self.frames.iter().filter(|f| f.0 == kind).map(|f| f.1.into()).collect()
    }
    /// The types of a group of pictures: from an I frame to the next, or to the end.
    #[must_use]
    pub fn group(&self) -> String {
        let begins = |f: &(Type, u32)| f.0 == Type::I;
        let groups: Vec<usize> =
            (0..self.frames.len()).filter(|i| begins(&self.frames[*i])).take(3).collect();
        // The first group lacks the B frames coded from an earlier frame.
        let (from, to) = match groups[..] {
            [_, second, third] => (second, third),
            [first, second] => (first, second),
            [first] => (first, self.frames.len()),
            _ => (0, 0),
        };
        self.frames[from..to].iter().map(|f| f.0.letter()).collect()
    }
}

/// What was read of a file so far.
#[derive(Default)]
struct Reading {
    frames: Vec<(Type, u32)>,
    /// The lines have four columns, not one.
    four_columns: bool,
    /// Number of the last frame.
    last_number: Option<u64>,
    /// Earliest and latest time, in milliseconds.
    span: Option<(f64, f64)>,
    /// The display times of the last I or P frame and of the last B frame, in milliseconds.
    last_times: [f64; 2],
}

impl Reading {
    fn line(&mut self, line: &str, pattern: &Pattern) -> Result<(), String> {
        if self.frames.len() >= MOST_FRAMES {
            return Err(format!("more than {MOST_FRAMES} frames"));
        }
        if line.len() > LONGEST_LINE {
            return Err(format!("longer than {LONGEST_LINE} characters: write one frame in each line"));
        }
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields[..] {
            [bytes] if self.frames.is_empty() || !self.four_columns => {
                let types = pattern.types();
                let kind = types[self.frames.len() % types.len()];
                self.frames.push((kind, size(bytes)?));
            }
            [number, kind, time, bytes] if self.frames.is_empty() || self.four_columns => {
                self.four_columns = true;
                self.number(number)?;
                let mut letters = kind.chars();
                let kind = match (letters.next().and_then(Type::of), letters.next()) {
                    (Some(kind), None) => kind,
                    _ => return Err(format!("\"{}\" is not a frame type: write I, P or B", excerpt(kind))),
                };
                if self.frames.is_empty() && kind != Type::I {
                    return Err("the first frame must be I: other types depend on an earlier frame".into());
                }
                self.time(time, kind)?;
                self.frames.push((kind, size(bytes)?));
            }
            [_] | [_, _, _, _] => return Err("all lines need the same columns: four, or one".into()),
            _ => {
                return Err(format!(
                    "{} columns: write number, type, milliseconds and bytes, or bytes alone",
                    fields.len()
                ));
            }
        }
        Ok(())
    }

    fn number(&mut self, text: &str) -> Result<(), String> {
        let number = digits(text)
            .ok_or_else(|| format!("\"{}\" is not a frame number: write a whole number", excerpt(text)))?;
        if let Some(last) = self.last_number.filter(|last| number <= *last) {
            return Err(format!(
                "frame {number} follows frame {last}: numbers must ascend, in the order of coding"
            ));
        }
        self.last_number = Some(number);
        Ok(())
    }

    fn time(&mut self, text: &str, kind: Type) -> Result<(), String> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let time = text.parse::<f64>().ok().filter(|t| plain && (0.0..=LATEST).contains(t));
        let time = time.ok_or_else(|| {
            format!(
                "\"{}\" is not a time: write milliseconds, from 0 to a year, such as 40 or 33.3",
                excerpt(text)
            )
        })?;
        // A B frame is displayed before an I or P frame that precedes it in the file, so times as a whole do not ascend.
        // Those of I and P frames do, and so do those of B frames.
        let before = &mut self.last_times[usize::from(!kind.is_anchor())];
        if time < *before {
            let (those, like) = if kind.is_anchor() { ("I and P", "such") } else { ("B", "B") };
            return Err(format!(
                "{time} ms follows {before} ms of the last {like} frame: the times of {those} frames must ascend, in the order of \
                 coding"
            ));
        }
        *before = time;
        let (from, to) = self.span.unwrap_or((time, time));
        self.span = Some((from.min(time), to.max(time)));
        Ok(())
    }

    /// Frames per second, from the times.
    fn rate(&self, usual: f64) -> Result<f64, String> {
        let (from, to) = self.span.unwrap_or_default();
        if self.frames.len() < 2 {
            return Ok(usual);
        }
        let rate = (self.frames.len() - 1) as f64 / (to - from) * 1000.0;
        // Times are printed with few digits.
        let rate = if (rate - rate.round()).abs() < 1e-4 * rate { rate.round() } else { rate };
        if RATES.contains(&rate) {
            return Ok(rate);
        }
        Err(format!(
            "{rate} frames per second by its times: the third column is milliseconds, for 0.1 to 1000 frames per second"
        ))
    }
}

fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn size(text: &str) -> Result<u32, String> {
    let size = digits(text).filter(|n| (1..=LARGEST).contains(n)).map(|n| n as u32);
    size.ok_or_else(|| {
        format!("\"{}\" is not a frame size: write whole bytes, from 1 to {LARGEST}", excerpt(text))
    })
}

/// The beginning of an arbitrary text, for messages.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(30).map(|c| if c.is_control() { '?' } else { c }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, Broken> {
        Trace::read(text, &Pattern::parse("IBBP").unwrap(), 30.0)
    }
    const SEEN: &str =
        "# a film\n1 I 0 3000\n2 P 120 1500\n3 B 40 900\n\n4 B 80 800\n5 I 240 2900\n6 B 160 1\n7 B 200 2\n";

    #[test]
    fn four_columns_have_types_and_a_rate() {
        let t = read(SEEN).unwrap();
        assert_eq!((t.frames().len(), t.rate(), t.largest()), (7, 25.0, 3000));
        assert_eq!(t.frames()[2], (Type::B, 900));
        assert_eq!((t.sizes(Type::I), t.group()), (vec![3000.0, 2900.0], "IPBB".into()));
        assert_eq!(read(&t.write()).unwrap(), t);
        let ntsc = read("0 I 0 9\n1 P 33.3667 9\n2 P 66.7333 9").unwrap();
        assert!((ntsc.rate() - 29.97).abs() < 1e-3, "{}", ntsc.rate());
    }

    #[test]
    fn one_column_follows_the_pattern() {
        let t = read("5\n6\n7\n8\n9").unwrap();
        let kinds: String = t.frames().iter().map(|f| f.0.letter()).collect();
        assert_eq!((kinds.as_str(), t.rate(), t.mean()), ("IBBPI", 30.0, 7.0));
    }

    #[test]
    fn hostile_lines_are_refused_with_their_number() {
        let long = "9".repeat(500);
        for (text, line, word) in [
            ("", 0, "no frames"),
            ("# only this", 0, "no frames"),
            ("1 I 0 5\n1 P 40 5", 2, "frame 1 follows frame 1"),
            ("5 I 0 5\n4 P 40 5", 2, "must ascend"),
            ("1 I 0 -5", 1, "\"-5\" is not a frame size"),
            ("1 I 0 5\n2 P 120 5\n3 P 80 5", 3, "80 ms follows 120 ms of the last such frame"),
            (
                "1 I 0 5\n2 P 120 5\n3 B 80 5\n4 B 40 5",
                4,
                "of the last B frame: the times of B frames must ascend",
            ),
            ("1 I -40 5", 1, "\"-40\" is not a time"),
            ("1 I nan 5", 1, "is not a time"),
            ("1 I 1e300 5", 1, "is not a time"),
            ("1 I 99999999999999 5", 1, "is not a time"),
            ("1 I 0 0", 1, "from 1 to"),
            ("1 I 0 99999999999", 1, "from 1 to"),
            ("1 I 0 99999999999999999999999999", 1, "from 1 to"),
            ("1 X 0 5", 1, "\"X\" is not a frame type"),
            ("1 IP 0 5", 1, "\"IP\" is not a frame type"),
            ("1 P 0 5", 1, "the first frame must be I"),
            ("+1 I 0 5", 1, "is not a frame number"),
            ("1 I 0", 1, "3 columns"),
            ("1 I 0 5 6", 1, "5 columns"),
            ("1 I 0 5\n7", 2, "the same columns"),
            ("7\n1 I 0 5", 2, "the same columns"),
            ("1 I 0 5\n2 P 0 5", 0, "inf frames per second"),
            ("1 I 0 5\n2 P 999999999 5", 0, "frames per second by its times"),
            ("\u{1}\u{2}", 1, "\"??\" is not a frame size"),
            (&long, 1, "longer than 400"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.line == line && e.message.contains(word), "{text:?}: line {}, {}", e.line, e.message);
        }
    }

    #[test]
    fn bytes_of_any_kind_end_in_an_answer() {
        let mut rng = skyhaul_base::Rng::stream(5, "noise");
        let letters: Vec<char> = "0123456789 IPB.-+e\n\t#\u{e4}".chars().collect();
        let mut accepted = 0;
        for _ in 0..20_000 {
            let n = rng.below(40);
            let text: String = (0..n).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect();
            if let Ok(t) = read(&text) {
                accepted += 1;
                assert!(t.mean() >= 1.0 && RATES.contains(&t.rate()) && !t.frames().is_empty());
            }
        }
        assert!(accepted > 20, "{accepted}");
    }
}
