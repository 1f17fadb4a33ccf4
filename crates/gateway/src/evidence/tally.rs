//! The results of all connections of a prefix, per arm of the comparison.

use super::arm::Arm;
use super::connection::{Measured, Outcome};
use super::moments::{self, Interval, Samples};
use super::settings::{Mode, Settings};
use crate::absent;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Bounds of the size classes, bytes from the link to hosts: transfers that differ by orders of magnitude are not averaged.
const BOUNDS: [u64; 2] = [100_000, 1_000_000];
const CLASSES: [&str; 3] = ["below 100 kB", "100 kB to 1 MB", "1 MB and more"];
/// Smallest response whose goodput is measured, bytes: a smaller one arrives almost entirely with its first bytes.
const SMALLEST: u64 = 65_536;
/// Samples that each arm must have before a verdict: the intervals are asymptotic.
const ENOUGH: u64 = 20;

/// A quantity that is compared, from the fields of [`Measured`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Active,
    Requested,
    FirstByte,
    Answer,
    /// Bytes to hosts divided by the time in which responses flowed.
    Goodput,
}

/// Number of measures.
const MEASURES: usize = 5;

impl Measure {
    const ALL: [Self; MEASURES] =
        [Self::Active, Self::Requested, Self::FirstByte, Self::Answer, Self::Goodput];
    fn name(self) -> &'static str {
        match self {
            Self::Active => "transfer time",
            Self::Requested => "transfer time from request",
            Self::FirstByte => "time to first byte",
            Self::Answer => "request to first byte",
            Self::Goodput => "goodput",
        }
    }
    /// The logarithm of a connection's value; larger is better.
    fn of(self, m: &Measured) -> Option<f64> {
        let value = match self {
            Self::Active => 1.0 / m.active,
            Self::Requested => 1.0 / m.requested?,
            Self::FirstByte => 1.0 / m.first_byte?,
            Self::Answer => 1.0 / m.answer?,
            Self::Goodput if m.to_hosts >= SMALLEST => m.to_hosts as f64 * 8.0 / m.flowing,
            Self::Goodput => return None,
        };
        let log = value.ln();
        log.is_finite().then_some(log)
    }
    /// The value, in seconds or bit/s, for a logarithm from [`Self::of`].
    fn value(self, log: f64) -> f64 {
        if self == Self::Goodput { log.exp() } else { (-log).exp() }
    }
}

/// Counts of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OutcomeCounts {
    /// Connections that ended in order.
    pub finished: u64,
    /// Connections that were reset, or whose SYN was refused with a reset.
    pub reset: u64,
    /// Connections of which nothing was seen for five minutes, or whose ports were used again before their end was seen.
    pub silent: u64,
    /// Connections whose SYN was not answered.
    pub unanswered: u64,
    /// Connections that were not treated as their arm says: forwarded instead of split, or split instead of forwarded.
    pub crossed: u64,
    /// Finished connections that are not timed, because hosts sent at least as many bytes as they received.
    pub from_hosts: u64,
    /// Payload from the link to hosts, bytes.
    pub bytes_to_hosts: u64,
    /// Payload from hosts to the link, bytes.
    pub bytes_to_link: u64,
    /// Payload seen again or out of order, bytes.
    pub bytes_again: u64,
}

impl OutcomeCounts {
    /// Connections that have ended and whose SYN was answered, if only by a reset.
    fn answered(&self) -> u64 {
        self.finished + self.reset + self.silent
    }
}

/// The results of one arm.
#[derive(Clone, Debug)]
struct ArmTally {
    ended: OutcomeCounts,
    /// Times of handshakes.
    setup: Samples,
    /// By measure and size class.
    samples: [[Samples; CLASSES.len()]; MEASURES],
}

/// The results of both arms.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Box<[ArmTally; 2]>);

#[expect(clippy::indexing_slicing, reason = "two arms, and the classes that BOUNDS makes")]
impl Tally {
    pub(crate) fn new(grouped: bool) -> Self {
        let samples = || Samples::new(grouped);
        let arm = || ArmTally {
            ended: OutcomeCounts::default(),
            setup: samples(),
            samples: core::array::from_fn(|_| core::array::from_fn(|_| samples())),
        };
        Self(Box::new([arm(), arm()]))
    }
    /// Adds a connection that has ended. `crossed`: it was not treated as its arm says. `group`: that of its client, for
    /// [`Samples::add`].
    pub(crate) fn add(&mut self, arm: Arm, crossed: bool, group: usize, m: &Measured) {
        let of_arm = &mut self.0[arm as usize];
        let e = &mut of_arm.ended;
        e.crossed += u64::from(crossed);
        e.bytes_to_hosts += m.to_hosts;
        e.bytes_to_link += m.to_link;
        e.bytes_again += m.again;
        match m.ending {
            Outcome::Finished => e.finished += 1,
            Outcome::Reset => e.reset += 1,
            Outcome::Silent => e.silent += 1,
            Outcome::Unanswered => e.unanswered += 1,
        }
        if m.ending != Outcome::Finished {
            return;
        }
        if !m.is_timed() {
            e.from_hosts += 1;
            return;
        }
        if let Some(setup) = m.setup.filter(|s| *s > 0.0) {
            of_arm.setup.add(group, -setup.ln());
        }
        let class = BOUNDS.iter().filter(|b| m.to_hosts >= **b).count();
        for (measure, samples) in Measure::ALL.into_iter().zip(&mut of_arm.samples) {
            if let Some(log) = measure.of(m) {
                samples[class].add(group, log);
            }
        }
    }
    /// Number of connections of both arms that have ended.
    pub(crate) fn connections(&self) -> u64 {
        self.0.iter().map(|arm| arm.ended.answered() + arm.ended.unanswered).sum()
    }

    pub(crate) fn report(&self, of: String, settings: &Settings) -> Group {
        let arms = if settings.mode == Mode::Ab { 2 } else { 1 };
        let arm = |n: usize| {
            let of_arm = &self.0[n];
            let means = Measure::ALL.into_iter().zip(&of_arm.samples).flat_map(|(measure, samples)| {
                CLASSES
                    .into_iter()
                    .zip(samples)
                    .filter_map(move |(class, s)| typical(measure.name(), class, measure, s))
            });
            ArmReport {
                arm: names(settings)[n].into(),
                ended: of_arm.ended,
                typical: typical("handshake", "all", Measure::Active, &of_arm.setup)
                    .into_iter()
                    .chain(means)
                    .collect(),
            }
        };
        let comparisons = if arms == 2 { self.comparisons() } else { Vec::new() };
        let counts = |n: usize| (self.0[n].ended.finished, self.0[n].ended.answered());
        let finished = (arms == 2 && counts(0).1 + counts(1).1 > 0).then(|| {
            let (difference, half) = moments::shares(counts(0), counts(1));
            Finished { difference, low: difference - half, high: difference + half }
        });
        Group { of, arms: (0..arms).map(arm).collect(), comparisons, finished }
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let mut all = Vec::new();
        for (k, measure) in Measure::ALL.into_iter().enumerate() {
            let over = |classes: core::ops::Range<usize>| {
                let [first, second] = [0, 1].map(|arm: usize| &self.0[arm].samples[k]);
                // `difference` subtracts the left mean from the right one, and the first arm is compared with the second.
                moments::difference(classes.map(|c| (second[c].mean(), first[c].mean())))
            };
            let mut put = |class: &'static str, found: Option<Interval>| {
                all.extend(found.map(|i| Comparison::new(measure.name(), class, &i)));
            };
            put("all", over(0..CLASSES.len()));
            for (c, class) in CLASSES.into_iter().enumerate() {
                put(class, over(c..c + 1));
            }
        }
        all
    }
}

/// The geometric mean of samples, with its interval; `None` if there are too few for an interval.
fn typical(
    name: &'static str,
    class: &'static str,
    measure: Measure,
    samples: &Samples,
) -> Option<GeometricMean> {
    let mean = samples.mean()?;
    let (log, half) = moments::alone(mean);
    // For times, the larger logarithm is the smaller value.
    let ends = [measure.value(log - half), measure.value(log + half)];
    let (of, class, value) = (name.into(), class.into(), measure.value(log));
    Some(GeometricMean { of, class, n: mean.n, value, low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) })
}

/// Names of the arms.
pub(crate) fn names(settings: &Settings) -> [&'static str; 2] {
    match (settings.mode, settings.other.is_some()) {
        (Mode::Ab, true) => ["satellite", "other"],
        (Mode::Ab, false) => ["split", "unsplit"],
        _ => ["unsplit", "unsplit"],
    }
}

/// What the connections of a prefix yield.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Group {
    /// The prefix, or "all".
    pub of: String,
    /// The arms: one in shadow mode.
    pub arms: Vec<ArmReport>,
    /// How the first arm compares with the second.
    pub comparisons: Vec<Comparison>,
    /// Shares of finished connections among those whose SYN was answered, compared.
    pub finished: Option<Finished>,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ArmReport {
    /// Its name.
    pub arm: Cow<'static, str>,
    /// Counts.
    #[serde(flatten)]
    pub ended: OutcomeCounts,
    /// Geometric means.
    pub typical: Vec<GeometricMean>,
}

/// A geometric mean with its pointwise 95 % interval: seconds, or bit/s of a goodput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GeometricMean {
    /// Quantity.
    pub of: Cow<'static, str>,
    /// Size class.
    pub class: Cow<'static, str>,
    /// Number of connections.
    pub n: u64,
    /// The mean.
    #[serde(deserialize_with = "absent::number")]
    pub value: f64,
    /// Lower end.
    #[serde(deserialize_with = "absent::number")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "absent::number")]
    pub high: f64,
}

/// The first arm compared with the second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// Quantity.
    pub of: Cow<'static, str>,
    /// Size class; "all": every class by itself, then averaged.
    pub class: Cow<'static, str>,
    /// Connections of each arm.
    pub n: [u64; 2],
    /// How many times as good the first arm is: goodput as a multiple of the second arm's, or the inverse of a time as a multiple.
    #[serde(deserialize_with = "absent::number")]
    pub ratio: f64,
    /// Pointwise 95 % interval: valid at one moment that was fixed in advance.
    #[serde(deserialize_with = "absent::interval")]
    pub pointwise: [f64; 2],
    /// Lasting 95 % interval: valid whenever one looks.
    #[serde(deserialize_with = "absent::interval")]
    pub lasting: [f64; 2],
    /// What the lasting interval says of the first arm.
    pub verdict: Verdict,
}

/// What an interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The first arm is better.
    Better,
    /// The first arm is worse.
    Worse,
    /// The interval includes a ratio of 1, or an arm has fewer than 20 connections.
    Undecided,
}

impl Verdict {
    /// The name in files and on a terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Undecided => "undecided",
        }
    }
}

impl Comparison {
    fn new(of: &'static str, class: &'static str, i: &Interval) -> Self {
        let around = |half: f64| [(i.value - half).exp(), (i.value + half).exp()];
        let enough = i.n.iter().all(|n| *n >= ENOUGH);
        let verdict = match i.value {
            _ if !enough => Verdict::Undecided,
            d if d > i.lasting => Verdict::Better,
            d if d < -i.lasting => Verdict::Worse,
            _ => Verdict::Undecided,
        };
        // The interval has the second arm first: see `Tally::comparisons`.
        let n = [i.n[1], i.n[0]];
        Self {
            of: of.into(),
            class: class.into(),
            n,
            ratio: i.value.exp(),
            pointwise: around(i.pointwise),
            lasting: around(i.lasting),
            verdict,
        }
    }
}

/// Difference of the shares of finished connections among those whose SYN was answered, first arm minus second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finished {
    /// The difference.
    #[serde(deserialize_with = "absent::number")]
    pub difference: f64,
    /// Lower end of its pointwise 95 % interval.
    #[serde(deserialize_with = "absent::number")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "absent::number")]
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    /// Transfers of many sizes; those of the first arm take `times` as long.
    fn tally(times: f64, connections: u32, seed: u64) -> Tally {
        let mut rng = Rng::stream(seed, "tally");
        let mut tally = Tally::new(false);
        for n in 0..connections {
            let arm = if rng.below(2) == 0 { Arm::First } else { Arm::Second };
            // Sizes from 1 kB to 10 MB, with a rate that varies by an order of magnitude.
            let bytes = (1000.0 * 10_f64.powf(4.0 * rng.unit())) as u64;
            let rate = 1e5 * 10_f64.powf(rng.unit());
            let slow = if arm == Arm::First { times } else { 1.0 };
            let flowing = slow * bytes as f64 / rate;
            let m = Measured {
                ending: Outcome::Finished,
                to_hosts: bytes,
                to_link: 100,
                again: 0,
                setup: Some(0.6),
                first_byte: Some(1.2 * slow),
                answer: Some(0.6 * slow),
                active: 1.2 * slow + flowing,
                requested: Some(0.6 * slow + flowing),
                flowing,
            };
            tally.add(arm, false, n as usize, &m);
        }
        tally
    }
    fn all(t: &Tally, measure: &str) -> Comparison {
        let s = Settings { mode: Mode::Ab, ..Settings::default() };
        t.report("all".into(), &s)
            .comparisons
            .into_iter()
            .find(|c| c.of == measure && c.class == "all")
            .unwrap()
    }

    #[test]
    fn a_real_difference_is_found_with_its_size() {
        let t = tally(0.5, 2000, 1);
        for measure in ["transfer time", "transfer time from request", "goodput"] {
            let c = all(&t, measure);
            assert_eq!(c.verdict, Verdict::Better, "{c:?}");
            assert!(c.lasting[0] < 2.0 && 2.0 < c.lasting[1], "{c:?}");
            assert!(c.pointwise[0] > c.lasting[0] && c.pointwise[1] < c.lasting[1], "{c:?}");
        }
        assert_eq!(all(&tally(2.0, 2000, 2), "transfer time").verdict, Verdict::Worse);
        assert_eq!(all(&tally(0.5, 30, 3), "transfer time").verdict, Verdict::Undecided, "too few");
    }

    #[test]
    fn equal_arms_are_undecided() {
        for seed in 0..20 {
            let c = all(&tally(1.0, 400, seed), "transfer time");
            assert_eq!(c.verdict, Verdict::Undecided, "{c:?}");
        }
    }

    /// An arm that happens to have larger files is not slower for it.
    #[test]
    fn classes_are_compared_with_themselves() {
        let mut tally = Tally::new(false);
        let mut rng = Rng::stream(9, "classes");
        for (arm, large) in [(Arm::First, 9), (Arm::Second, 1)] {
            for n in 0..1000 {
                let bytes = if n % 10 < large { 5_000_000 } else { 10_000 };
                let flowing = bytes as f64 / 1e5 * (0.5 + rng.unit());
                let m = Measured {
                    ending: Outcome::Finished,
                    to_hosts: bytes,
                    to_link: 0,
                    again: 0,
                    setup: None,
                    first_byte: Some(1.0),
                    answer: None,
                    active: flowing,
                    requested: None,
                    flowing,
                };
                tally.add(arm, false, n, &m);
            }
        }
        let c = all(&tally, "transfer time");
        assert_eq!(c.verdict, Verdict::Undecided, "{c:?}");
        assert_eq!(c.n, [1000, 1000]);
    }

    #[test]
    fn what_was_reset_or_sent_by_hosts_is_counted_and_not_timed() {
        let mut t = Tally::new(false);
        let m = Measured {
            ending: Outcome::Reset,
            to_hosts: 10,
            to_link: 0,
            again: 3,
            setup: None,
            first_byte: None,
            answer: None,
            active: 1.0,
            requested: None,
            flowing: 1.0,
        };
        t.add(Arm::First, true, 0, &m);
        t.add(Arm::Second, false, 0, &Measured { ending: Outcome::Finished, to_link: 99, ..m });
        let s = Settings { mode: Mode::Ab, ..Settings::default() };
        let r = t.report("all".into(), &s);
        assert_eq!((r.arms[0].ended.reset, r.arms[0].ended.crossed, r.arms[1].ended.from_hosts), (1, 1, 1));
        assert!(r.comparisons.is_empty() && r.arms.iter().all(|a| a.typical.is_empty()));
        let f = r.finished.unwrap();
        assert!(f.difference < 0.0 && f.low <= -0.3 && f.high > 0.0, "{f:?}");
    }
}
