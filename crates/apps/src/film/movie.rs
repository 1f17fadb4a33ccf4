//! A movie model: frame types in a pattern, the sizes of each type, and their correlation.

use super::correlation::{POINTS, Spectrum, TERMS};
use super::marginal::{InvalidSizes, Inverse, LARGEST, Marginal};
use super::pattern::Pattern;
use super::tes::{Innovation, Sign, Step, stitch};
use crate::frame::FrameType as Type;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use skyhaul_base::amount::{Frequency, Size, plain, text_or_table};

/// Minimum and maximum frame rate, per second.
pub const RATES: std::ops::RangeInclusive<f64> = 0.1..=1000.0;
/// In the coupled mode the position of a frame is within this distance of its scene's.
pub const WITHIN_SCENE: f64 = 0.15;

/// Correlation between frame types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Three independent processes (Papadimitriou, Tsaoussidis 2007 §4.1).
    #[default]
    Independent,
    /// One process for scenes, that of the I frames; all frames of a group of pictures follow it. With equal `xi`,
    /// large frames of all types occur together, as in films.
    Coupled,
}

/// Frames of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Distribution of the frame sizes.
    pub sizes: Marginal,
    /// Minimum size, to which smaller frames are raised; 1 B by default.
    #[serde(default = "one", with = "plain::size")]
    #[schemars(with = "Size")]
    pub least: u64,
    /// Maximum size, to which larger frames are reduced; 16 MiB by default.
    #[serde(default = "largest", with = "plain::size")]
    #[schemars(with = "Size")]
    pub most: u64,
    /// Largest step on the unit circle, in either direction, from a frame to the next one of the type: a number from 0
    /// to 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Instead of `step`: a density of steps, each with its bounds and weight: [from, to, weight].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<[f64; 3]>>,
    /// Position of the largest frames on the unit circle, from 0 to 1; 0.5 by default.
    #[serde(default = "half")]
    pub xi: f64,
    /// Sign of the TES process: "+" (default) or "-".
    #[serde(default)]
    pub sign: Sign,
}

fn one() -> u64 {
    1
}
fn largest() -> u64 {
    LARGEST
}
fn half() -> f64 {
    0.5
}

/// A movie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Movie {
    /// Frames per second: "25 /s" by default.
    #[serde(default = "usual_frames", with = "plain::frequency")]
    #[schemars(with = "Frequency")]
    pub frames: f64,
    /// Sequence of frame types: "IBBPBBPBBPBB" by default.
    #[serde(default = "usual_gop")]
    pub gop: String,
    /// Correlation of the sizes between types: "independent" by default, or "coupled".
    #[serde(default)]
    pub mode: Mode,
    /// I frames.
    #[serde(rename = "I")]
    pub i: Frames,
    /// P frames; required if the pattern has any.
    #[serde(rename = "P", default, skip_serializing_if = "Option::is_none")]
    pub p: Option<Frames>,
    /// B frames; required if the pattern has any.
    #[serde(rename = "B", default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Frames>,
}

fn usual_frames() -> f64 {
    25.0
}
fn usual_gop() -> String {
    "IBBPBBPBBPBB".into()
}

/// The names of movies.
pub const NAMES: &[&str] = &["jp-medium"];

/// Why a movie is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidMovie {
    /// A frame rate out of bounds.
    #[error("{0} frames per second: write from \"0.1 /s\" to \"1000 /s\", such as \"25 /s\"")]
    Frames(f64),
    /// An invalid pattern.
    #[error(
        "\"{0}\": write I, then P and B in the order of the frames, such as \"IBBPBBPBBPBB\"; 1000 letters at most"
    )]
    Pattern(String),
    /// A type that is used only in the pattern.
    #[error("missing: the pattern has frames of this type, so they need sizes and step")]
    Missing(char),
    /// Invalid sizes of a type.
    #[error("{1}")]
    Sizes(char, InvalidSizes),
    /// An invalid position of the largest frames.
    #[error("{1}: write a number from 0 to 1")]
    Xi(char, f64),
    /// Neither a step nor a density, or both.
    #[error("write either step = 0.08 or steps = [[-0.1, 0.1, 1.0]]")]
    Step(char),
    /// A step out of bounds.
    #[error("{1}: write a number above 0, 0.5 at most")]
    Half(char, f64),
    /// An invalid density.
    #[error(
        "write lists of from, to and weight: from below to, both within -1 and 1, weights ≥ 0 and at least one above 0"
    )]
    Steps(char),
    /// An asymmetric density with every second value mirrored.
    #[error(
        "with sign = \"-\" a step and its mirror image need the same weight, or the sizes would not follow the requested distribution"
    )]
    Asymmetric(char),
}

impl InvalidMovie {
    /// The key within the movie.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Frames(_) => "frames".into(),
            Self::Pattern(_) => "gop".into(),
            Self::Missing(t) => format!("{t}"),
            Self::Sizes(t, e) => format!("{t}.{}", e.key()),
            Self::Xi(t, _) => format!("{t}.xi"),
            Self::Step(t) | Self::Half(t, _) => format!("{t}.step"),
            Self::Steps(t) | Self::Asymmetric(t) => format!("{t}.steps"),
        }
    }
}

impl Movie {
    /// The movie of a name, one of [`NAMES`].
    ///
    /// `jp-medium`: published for the trace "Jurassic Park I, medium quality" of TU Berlin (F. Fitzek, M.
    /// Reisslein, "MPEG-4 and H.263 video traces for network performance evaluation", IEEE Network 15(6), 2001) are
    /// mean, variation, minimum and maximum size over all frames; the division by type is ours and agrees with
    /// them. Steps are chosen so that all three types lose their memory in the same time, about 11 s.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let frames = |shape, scale, step| Frames {
            sizes: Marginal::Gamma { shape, scale },
            least: 26,
            most: 8511,
            step: Some(step),
            steps: None,
            xi: 0.5,
            sign: Sign::Plus,
        };
        (name == NAMES[0]).then(|| Self {
            frames: usual_frames(),
            gop: usual_gop(),
            mode: Mode::Independent,
            i: frames(6.25, 480, 0.08),
            p: Some(frames(1.687, 919, 0.0462)),
            b: Some(frames(1.452, 723, 0.0283)),
        })
    }

    /// The description of a type's frames, if there is one.
    #[must_use]
    pub fn of(&self, kind: Type) -> Option<&Frames> {
        match kind {
            Type::I => Some(&self.i),
            Type::P => self.p.as_ref(),
            Type::B => self.b.as_ref(),
        }
    }

    /// The movie with everything precomputed.
    ///
    /// # Errors
    /// The invalid key, and a sentence.
    pub fn compile(&self) -> Result<Compiled, InvalidMovie> {
        if !RATES.contains(&self.frames) {
            return Err(InvalidMovie::Frames(self.frames));
        }
        let pattern = Pattern::parse(&self.gop).ok_or_else(|| InvalidMovie::Pattern(self.gop.clone()))?;
        let mut kinds = [None, None, None];
        for kind in Type::ALL {
            let letter = kind.letter();
            match self.of(kind) {
                Some(frames) => kinds[kind as usize] = Some(frames.compile(letter)?),
                None if pattern.count(kind) > 0 => return Err(InvalidMovie::Missing(letter)),
                None => {}
            }
        }
        let n = pattern.types().len() as f64;
        let share = |of: fn(&Kind) -> f64| -> f64 {
            let types = pattern.types().iter().filter_map(|t| kinds[*t as usize].as_ref());
            types.map(of).sum::<f64>() / n
        };
        let mean = share(|k| k.inverse.mean());
        let square = share(|k| k.inverse.variance() + k.inverse.mean() * k.inverse.mean());
        let present = kinds.iter().zip(Type::ALL).filter(|(_, t)| pattern.count(*t) > 0);
        let largest = present.filter_map(|(k, _)| Some(k.as_ref()?.inverse.largest())).fold(0.0, f64::max);
        Ok(Compiled {
            frames: self.frames,
            pattern,
            mode: self.mode,
            kinds,
            mean,
            variance: square - mean * mean,
            largest,
        })
    }
}

impl Frames {
    fn compile(&self, letter: char) -> Result<Kind, InvalidMovie> {
        let inverse =
            Inverse::new(&self.sizes, self.least, self.most).map_err(|e| InvalidMovie::Sizes(letter, e))?;
        if !(0.0..=1.0).contains(&self.xi) {
            return Err(InvalidMovie::Xi(letter, self.xi));
        }
        let innovation = match (self.step, &self.steps) {
            (Some(half), None) if half > 0.0 && half <= 0.5 => Innovation::uniform(half),
            (Some(half), None) => return Err(InvalidMovie::Half(letter, half)),
            (None, Some(steps)) => {
                let steps: Vec<Step> =
                    steps.iter().map(|&[from, to, weight]| Step { from, to, weight }).collect();
                Innovation::steps(&steps).ok_or(InvalidMovie::Steps(letter))?
            }
            _ => return Err(InvalidMovie::Step(letter)),
        };
        if self.sign == Sign::Minus && !innovation.is_symmetric() {
            return Err(InvalidMovie::Asymmetric(letter));
        }
        Ok(Kind { inverse, innovation, xi: self.xi, sign: self.sign })
    }
}

/// Frames of one type, ready to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    inverse: Inverse,
    pub(super) innovation: Innovation,
    xi: f64,
    pub(super) sign: Sign,
}

impl Kind {
    /// The size in bytes at a position on the circle.
    #[must_use]
    pub fn size(&self, u: f64) -> f64 {
        self.inverse.at(stitch(self.xi, u))
    }
    /// Autocorrelations of its process at lags 1 to `lags`.
    #[must_use]
    pub fn autocorrelation(&self, lags: usize) -> Vec<f64> {
        Spectrum::new(|u| self.size(u), TERMS, POINTS).autocorrelation(self.sign, &self.innovation, lags)
    }
}

/// A movie, ready to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    pub(super) frames: f64,
    pub(super) pattern: Pattern,
    pub(super) mode: Mode,
    kinds: [Option<Kind>; Type::COUNT],
    mean: f64,
    variance: f64,
    largest: f64,
}

impl Compiled {
    /// Frames per second.
    #[must_use]
    pub fn frames(&self) -> f64 {
        self.frames
    }
    /// Mean size of a frame in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }
    /// Coefficient of variation of the sizes of frames.
    #[must_use]
    pub fn variation(&self) -> f64 {
        skyhaul_base::math::sqrt(self.variance) / self.mean
    }
    /// Size of the largest frame in bytes.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.largest
    }
    /// Frames of a type; `None` if there are none.
    #[must_use]
    pub fn kind(&self, kind: Type) -> Option<&Kind> {
        self.kinds[kind as usize].as_ref()
    }
}

const EXPECTING: &str =
    "the name of a movie, \"jp-medium\", or a table with frames, gop, I, P and B (see `skyhaul video fit`)";

/// Reads an optional movie: a name or a table.
pub(crate) fn optional<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<Movie>>, D::Error> {
    let named = |name: &str| {
        Movie::named(name).ok_or_else(|| format!("there is no movie \"{name}\": write {EXPECTING}"))
    };
    text_or_table(d, EXPECTING, named, |n| format!("{n} is not a movie: write {EXPECTING}"))
        .map(|movie| Some(Box::new(movie)))
}

/// In the schema: a name or a table.
pub(crate) struct NameOrTable;

impl JsonSchema for NameOrTable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MovieSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Movie>();
        json_schema!({ "anyOf": [{ "enum": NAMES }, table] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Movie)) -> String {
        let mut movie = Movie::named("jp-medium").unwrap();
        change(&mut movie);
        let e = movie.compile().unwrap_err();
        format!("{}: {e}", e.key())
    }

    #[test]
    fn the_usual_movie_has_the_published_aggregates() {
        let movie = Movie::named("jp-medium").unwrap().compile().unwrap();
        // 38016 bytes of a frame of QCIF over a compression of 28.40; coefficient of variation 0.84; peak over mean 6.36.
        assert!((movie.mean() / 1339.0 - 1.0).abs() < 0.02, "{}", movie.mean());
        assert!((movie.variation() - 0.84).abs() < 0.02, "{}", movie.variation());
        assert!((movie.largest() / movie.mean() - 6.36).abs() < 0.1, "{}", movie.largest());
    }

    #[test]
    fn movies_without_sense_are_refused_and_say_where() {
        let starts = |text: String, start: &str| assert!(text.starts_with(start), "{text}");
        starts(refused(|m| m.frames = 0.0), "frames: 0 frames per second");
        starts(refused(|m| m.gop = "BBI".into()), "gop: \"BBI\"");
        starts(refused(|m| m.b = None), "B: missing");
        starts(refused(|m| m.i.xi = 1.5), "I.xi: 1.5");
        starts(refused(|m| m.i.step = None), "I.step: write either");
        starts(refused(|m| m.i.step = Some(0.0)), "I.step: 0");
        starts(refused(|m| m.i.most = 20), "I.most: write a size above least");
        starts(
            refused(|m| (m.i.step, m.i.steps) = (None, Some(vec![[0.2, 0.1, 1.0]]))),
            "I.steps: write lists of from",
        );
        starts(
            refused(|m| {
                (m.i.step, m.i.steps) = (None, Some(vec![[0.0, 0.1, 1.0]]));
                m.i.sign = Sign::Minus;
            }),
            "I.steps: with sign",
        );
        // What the pattern lacks need not be there.
        let mut movie = Movie::named("jp-medium").unwrap();
        (movie.gop, movie.p, movie.b) = ("I".into(), None, None);
        assert!(movie.compile().is_ok());
    }

    #[test]
    fn a_movie_is_written_and_read_back() {
        let movie = Movie::named("jp-medium").unwrap();
        let text = serde_json::to_string(&movie).unwrap();
        assert_eq!(serde_json::from_str::<Movie>(&text).unwrap(), movie);
        let e = optional(&mut serde_json::Deserializer::from_str("\"jaws\"")).unwrap_err().to_string();
        assert!(e.contains("there is no movie \"jaws\""), "{e}");
        let e = optional(&mut serde_json::Deserializer::from_str("-25")).unwrap_err().to_string();
        assert!(e.contains("-25 is not a movie"), "{e}");
    }
}
