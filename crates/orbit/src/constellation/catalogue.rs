//! Satellites from published orbital elements, propagated by SGP4 (Hoots, Roehrich, "Spacetrack report no. 3",
//! 1980, as revised by Vallado, Crawford, Hujsak, Kelso, "Revisiting Spacetrack report #3", AIAA 2006-6753).

use super::model::{MAX_SATELLITES, Motion, step};
use crate::epoch::Epoch;
use crate::invalid::Invalid;
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use skyhaul_base::{Duration, math};

const DAY: f64 = 86_400.0;
/// Maximum time between the epoch of elements and the start of a run, in days (*our choice*): the error of SGP4 grows with it.
const STALE_DAYS: f64 = 30.0;

/// File name in the canonical form: the same elements are equal, whatever their file is called.
pub(super) const CANONICAL: &str = "elements";

/// Elements of a satellite, with the line of the file at which they start.
pub(super) struct Entry {
    pub line: usize,
    pub elements: sgp4::Elements,
}

/// Why elements of this ephemeris type are refused; `None` for type 0, that of all published elements for SGP4. The numbers are those
/// of CCSDS 502.0-B-3 §4.2.4.7. The mean motion of type 2 is Brouwer's, that of type 0 Kozai's.
pub(super) fn not_sgp4(ephemeris_type: u8) -> Option<String> {
    let theory = match ephemeris_type {
        0 => return None,
        2 => "SGP4 with Brouwer's mean motion",
        3 => "PPT3",
        4 => "SGP4-XP",
        6 => "special perturbations",
        _ => "another theory",
    };
    Some(format!("{ephemeris_type} ({theory}): accepted is 0 only, elements published for SGP4"))
}

/// A file with elements, as given in a configuration.
pub(super) struct File<'a> {
    pub name: &'a str,
    pub text: Option<&'a str>,
}

impl File<'_> {
    /// An error in a line of the file; 0 means the whole file.
    pub(super) fn wrong(&self, line: usize, message: String) -> Invalid {
        Invalid { key: "file".into(), message, file: Some((self.name.into(), line)) }
    }
    /// The content.
    pub(super) fn content(&self) -> Result<&str, Invalid> {
        self.text.ok_or_else(|| {
            let name = self.name;
            let message =
                format!("\"{name}\" cannot be read from here: write its content as text = \"\"\"…\"\"\"");
            Invalid::new("file", message)
        })
    }
}

/// Satellites propagated by SGP4.
#[derive(Clone, Debug)]
pub struct Catalogue {
    members: Vec<Member>,
    step: Duration,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    constants: sgp4::Constants,
    /// Minutes from the epoch of the elements to the start of the run.
    age: f64,
}

impl Catalogue {
    pub(super) fn new(
        file: &File<'_>,
        entries: Vec<Entry>,
        start: Option<Epoch>,
        offset: Duration,
        elevation: f64,
    ) -> Result<Self, Invalid> {
        crate::invalid::within("elevation", elevation, 0.0, 89.0, "deg")?;
        let Some(first) = entries.first() else {
            return Err(file.wrong(0, "it contains no orbital elements".into()));
        };
        if entries.len() as u64 > MAX_SATELLITES {
            return Err(file.wrong(0, format!("more than {MAX_SATELLITES} satellites")));
        }
        let Some(start) = start else {
            let at = first.elements.datetime.and_utc().timestamp();
            let near = Epoch { unix: at.div_euclid(DAY as i64) * DAY as i64 };
            // The orbit's own key, not one of the constellation's.
            let message = format!(
                "missing: orbital elements are valid only near their epoch, so write, say, epoch = \"{near}\""
            );
            return Err(Invalid::new("epoch", message));
        };
        let mut members = Vec::with_capacity(entries.len());
        // Revolutions per day.
        let mut fastest = 0.0f64;
        for Entry { line, elements } in entries {
            let name = match &elements.object_name {
                Some(name) => name.clone(),
                None => format!("{}", elements.norad_id),
            };
            let own = elements.datetime.and_utc();
            let seconds =
                (start.unix - own.timestamp()) as f64 - f64::from(own.timestamp_subsec_nanos()) * 1e-9;
            let away = math::abs(seconds + offset.as_secs_f64());
            if away > STALE_DAYS * DAY {
                let (of, days) = (Epoch { unix: own.timestamp() }, math::floor(away / DAY));
                let (begin, write) = if offset == Duration::ZERO {
                    (format!("epoch = \"{start}\""), "an epoch")
                } else {
                    (format!("the start of the run, which is `offset` after epoch = \"{start}\""), "both")
                };
                let message = format!(
                    "the elements of {name} are of {of}, {days} days from {begin}: write {write} within \
                     {STALE_DAYS} days of theirs, or use newer elements"
                );
                return Err(file.wrong(line, message));
            }
            fastest = fastest.max(elements.mean_motion);
            let constants =
                sgp4::Constants::from_elements_afspc_compatibility_mode(&elements).map_err(|e| {
                    file.wrong(line, format!("the elements of {name} do not describe an orbit: {e}"))
                })?;
            members.push(Member { name, constants, age: seconds / 60.0 });
        }
        Ok(Self { members, step: step(DAY / fastest) })
    }
}

impl Member {
    /// Inertial position in km, `time` seconds after the start of the run, in the frame of true equator and mean equinox.
    fn inertial(&self, time: f64) -> Option<Vector> {
        let minutes = sgp4::MinutesSinceEpoch(self.age + time / 60.0);
        let [x, y, z] = self.constants.propagate_afspc_compatibility_mode(minutes).ok()?.position;
        (x.is_finite() && y.is_finite() && z.is_finite()).then_some(Vector::new(x, y, z))
    }
}

impl Motion for Catalogue {
    fn count(&self) -> u32 {
        // At most MAX_SATELLITES.
        self.members.len() as u32
    }
    fn place(&self, satellite: u32, moment: &Moment) -> Option<Vector> {
        let inertial = self.members.get(satellite as usize)?.inertial(moment.time)?;
        Some(moment.turn.to_fixed(inertial))
    }
    fn name(&self, satellite: u32) -> String {
        self.members.get(satellite as usize).map_or_else(String::new, |m| m.name.clone())
    }
    fn step(&self) -> Duration {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::{Model, tle};

    /// What Vallado's program prints for elements of his test set: minutes since their epoch, and places in km.
    type Case = (&'static str, &'static [(f64, [f64; 3])]);

    /// Near the Earth, on an ellipse of 2 hours, of 12 hours with resonance, and geostationary with resonance.
    const CASES: &[Case] = &[
        (
            "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753\n\
             2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667",
            &[
                (0.0, [7_022.465_292_66, -1_400.082_967_55, 0.039_951_55]),
                (360.0, [-7_154.031_202_02, -3_783.176_825_04, -3_536.194_122_94]),
                (4_320.0, [-9_060.473_735_69, 4_658.709_525_02, 813.686_731_53]),
            ],
        ),
        (
            "1 06251U 62025E   06176.82412014  .00008885  00000-0  12808-3 0  3985\n\
             2 06251  58.0579  54.0425 0030035 139.1568 221.1854 15.56387291  6774",
            &[
                (0.0, [3_988.310_226_99, 5_498.966_572_35, 0.900_558_79]),
                (120.0, [-3_935.698_000_83, 409.109_808_37, 5_471.335_773_27]),
                (2_640.0, [-3_791.875_206_38, -5_378.828_513_82, -1_575.827_379_30]),
            ],
        ),
        (
            "1 08195U 75081A   06176.33215444  .00000099  00000-0  11873-3 0   813\n\
             2 08195  64.1586 279.0717 6877146 264.7651  20.2257  2.00491383225656",
            &[
                (0.0, [2_349.894_833_50, -14_785.938_115_62, 0.021_193_78]),
                (120.0, [15_223.917_136_58, -17_852.958_817_13, 25_280.395_582_24]),
            ],
        ),
        (
            "1 14128U 83058A   06176.02844893 -.00000158  00000-0  10000-3 0  9627\n\
             2 14128  11.4384  35.2134 0011562  26.4582 333.5652  0.98870114 46093",
            &[
                (0.0, [34_747.579_326_96, 24_502.371_140_79, -1.328_329_86]),
                (720.0, [-35_597.579_195_49, -23_407.911_453_93, 282.095_543_83]),
            ],
        ),
    ];

    #[test]
    fn places_are_those_of_the_published_verification() {
        for (lines, states) in CASES {
            let start = tle::epochs(lines)[0];
            let config = tle::Config { file: "set.tle".into(), text: Some((*lines).into()), elevation: 10.0 };
            let catalogue = config.build(Some(start), Duration::ZERO).unwrap();
            for (minutes, want) in *states {
                let [x, y, z] = *want;
                let seconds = (minutes - catalogue.members[0].age) * 60.0;
                let got = catalogue.members[0].inertial(seconds).unwrap();
                // A centimetre: the tolerance of the crate's and of Vallado's own comparison is of this order.
                assert!(got.distance(Vector::new(x, y, z)) < 1e-5, "{lines} {minutes}: {got:?}");
            }
        }
    }

    #[test]
    fn the_default_step_follows_the_period() {
        let steps: Vec<u64> = CASES
            .iter()
            .map(|(lines, _)| {
                let config = tle::Config { file: "x".into(), text: Some((*lines).into()), elevation: 10.0 };
                config.build(Some(tle::epochs(lines)[0]), Duration::ZERO).unwrap().step().as_nanos()
                    / 1_000_000
            })
            .collect();
        assert_eq!(steps, [1_000, 100, 1_000, 60_000]);
    }

    #[test]
    fn a_satellite_that_falls_is_gone() {
        // Vallado's set: sub-orbital, lost 25 minutes after its epoch.
        let lines = "1 33333U 05037B   05333.02012661  .25992681  00000-0  24476-3 0  1532\n\
                     2 33333  96.4736 157.9986 9950000 244.0492 110.6523  4.00004038 10700";
        let config = tle::Config { file: "x".into(), text: Some(lines.into()), elevation: 10.0 };
        let catalogue = config.build(Some(tle::epochs(lines)[0]), Duration::ZERO).unwrap();
        let flies = |minute: u32| catalogue.members[0].inertial(f64::from(minute) * 60.0).is_some();
        assert!(flies(0) && flies(15) && !flies(26));
    }
}
