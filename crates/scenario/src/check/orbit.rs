//! The effect of satellites on a link during a run: which satellite serves it, with which delay, and the outages.

use super::display::short;
use crate::orbit::Orbit;
use core::fmt;
use serde::Serialize;
use skyhaul_base::{Duration, Instant};
use skyhaul_orbit::{Diversity, Relay, Tracker};

/// The part of a run that is examined: a pass of a low satellite lasts minutes, and a longer look would add little.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Number of passes shown on a terminal.
const SHOWN: usize = 24;

/// A satellite link. Delays are one-way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrbitCheck {
    /// Both stations.
    pub stations: [String; 2],
    /// Number of satellites in the constellation.
    pub satellites: u32,
    /// Whether packets are relayed from satellite to satellite.
    pub inter_satellite: bool,
    /// Satellite diversity: "none", "best" or "both".
    pub diversity: &'static str,
    /// The part of the run that was examined, at most an hour.
    pub looked_at_s: f64,
    /// The shortest delay; `None` if no satellite was visible.
    pub delay_min_s: Option<f64>,
    /// The mean delay while there is a path.
    pub delay_mean_s: Option<f64>,
    /// The longest delay.
    pub delay_max_s: Option<f64>,
    /// Number of handovers between satellites.
    pub handovers: u64,
    /// Time without a path during handovers.
    pub interrupted_s: f64,
    /// Outages without a visible satellite: start and end.
    pub outages_s: Vec<[f64; 2]>,
    /// The serving satellites in order.
    pub passes: Vec<PassCheck>,
}

/// A pass of a satellite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassCheck {
    /// Name of the satellite; both names if the stations use different ones.
    pub satellite: String,
    /// Start.
    pub from_s: f64,
    /// End.
    pub until_s: f64,
    /// The lowest elevation, at the station where it is lower.
    pub elevation_min_deg: f64,
    /// The highest elevation, at the station where it is lower.
    pub elevation_max_deg: f64,
    /// The shortest delay.
    pub delay_min_s: f64,
    /// The longest delay.
    pub delay_max_s: f64,
}

/// A row of the series of a link, valid until the next row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Time.
    pub time_s: f64,
    /// The satellite that serves the senders' station; empty if none does.
    pub satellite: String,
    /// Its elevation there.
    pub elevation_deg: Option<f64>,
    /// One-way delay.
    pub delay_s: Option<f64>,
}

/// Calls `row` for each time in the first `duration` of a run at which the delay is computed.
pub fn series(orbit: &Orbit, duration: Duration, row: &mut dyn FnMut(&Sample)) {
    let end = Instant::ZERO + duration;
    let sky = orbit.sky();
    let mut tracker = Tracker::new(orbit.config(), sky.clone());
    while tracker.at() < end {
        let step = tracker.step();
        let now = sky.moment(step.from);
        row(&Sample {
            time_s: step.from.as_secs_f64(),
            satellite: step.path.map_or_else(String::new, |p| sky.name(p.first)),
            elevation_deg: step.path.and_then(|p| Some(sky.look_angles(0, p.first, &now)?.elevation())),
            delay_s: step.path.map(|p| p.begin.as_secs_f64()),
        });
    }
}

/// Examines the run of a link.
pub(super) fn check(orbit: &Orbit, duration: Duration) -> OrbitCheck {
    let (config, sky) = (orbit.config(), orbit.sky());
    let length = duration.min(LONGEST);
    let end = Instant::ZERO + length;
    let mut check = OrbitCheck {
        stations: [config.from.to_string(), config.to.to_string()],
        satellites: sky.count(),
        inter_satellite: config.relay == Relay::InterSatellite,
        diversity: match config.diversity {
            Diversity::None => "none",
            Diversity::Best => "best",
            Diversity::Both => "both",
        },
        looked_at_s: length.as_secs_f64(),
        delay_min_s: None,
        delay_mean_s: None,
        delay_max_s: None,
        handovers: 0,
        interrupted_s: 0.0,
        outages_s: Vec::new(),
        passes: Vec::new(),
    };
    let mut tracker = Tracker::new(config, sky.clone());
    let (mut sum, mut up) = (0.0, 0.0);
    let mut serving = None;
    // True while the interruption is due to a handover, not to a lack of satellites.
    let mut changing = false;
    while tracker.at() < end {
        let step = tracker.step();
        let until = step.until.min(end);
        let (from_s, until_s) = (step.from.as_secs_f64(), until.as_secs_f64());
        check.handovers +=
            step.handovers.iter().filter(|h| h.from.is_some() && h.to.is_some()).count() as u64;
        if !step.handovers.is_empty() {
            changing = step.handovers.iter().any(|h| h.to.is_some());
        }
        let Some(path) = step.path else {
            if changing {
                check.interrupted_s += until_s - from_s;
            } else {
                match check.outages_s.last_mut() {
                    Some(last) if last[1] == from_s => last[1] = until_s,
                    _ => check.outages_s.push([from_s, until_s]),
                }
            }
            serving = None;
            continue;
        };
        let delays = [path.begin.as_secs_f64(), path.end.as_secs_f64()];
        sum += f64::midpoint(delays[0], delays[1]) * (until_s - from_s);
        up += until_s - from_s;
        let now = sky.moment(step.from);
        let elevation = |end, satellite| sky.look_angles(end, satellite, &now).map(|l| l.elevation());
        let elevation = [elevation(0, path.first), elevation(1, path.last)].into_iter().flatten();
        let elevation = elevation.fold(90.0, f64::min);
        let who = Some((path.first, path.last));
        if serving != who {
            serving = who;
            let (first, last) = (sky.name(path.first), sky.name(path.last));
            let satellite = if first == last { first } else { format!("{first} - {last}") };
            check.passes.push(PassCheck {
                satellite,
                from_s,
                until_s,
                elevation_min_deg: elevation,
                elevation_max_deg: elevation,
                delay_min_s: delays[0],
                delay_max_s: delays[0],
            });
        }
        if let Some(pass) = check.passes.last_mut() {
            pass.until_s = until_s;
            pass.elevation_min_deg = pass.elevation_min_deg.min(elevation);
            pass.elevation_max_deg = pass.elevation_max_deg.max(elevation);
            for delay in delays {
                pass.delay_min_s = pass.delay_min_s.min(delay);
                pass.delay_max_s = pass.delay_max_s.max(delay);
            }
        }
    }
    check.delay_min_s = check.passes.iter().map(|p| p.delay_min_s).reduce(f64::min);
    check.delay_max_s = check.passes.iter().map(|p| p.delay_max_s).reduce(f64::max);
    check.delay_mean_s = (up > 0.0).then(|| sum / up);
    check
}

/// A range of two numbers, or a single number if they are equal.
fn range(low: f64, high: f64, decimals: usize) -> String {
    let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
    if low == high { low } else { format!("{low} to {high}") }
}

impl fmt::Display for OrbitCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = &self.stations;
        let what = if self.satellites == 1 { "satellite" } else { "satellites" };
        let how = match (self.inter_satellite, self.diversity) {
            (true, _) => "from satellite to satellite",
            (false, "best") => "by the nearer of two satellites",
            (false, "both") => "by two satellites, each packet over both",
            (false, _) => "by one satellite at a time",
        };
        let how = if self.satellites == 1 { "" } else { how };
        let comma = if how.is_empty() { "" } else { ", " };
        writeln!(f, "  orbit        {from} - {to} over {} {what}{comma}{how}", self.satellites)?;
        let (Some(min), Some(max), Some(mean)) = (self.delay_min_s, self.delay_max_s, self.delay_mean_s)
        else {
            return writeln!(
                f,
                "    delay      none: no satellite in sight within {} s",
                short(self.looked_at_s)
            );
        };
        let share = |s: f64| super::display::percent(s / self.looked_at_s);
        write!(f, "    delay      {} ms, mean {:.3} ms", range(min * 1e3, max * 1e3, 3), mean * 1e3)?;
        writeln!(f, ", in the first {} s", short(self.looked_at_s))?;
        writeln!(f, "    handovers  {}, interrupted {}", self.handovers, share(self.interrupted_s))?;
        let out: f64 = self.outages_s.iter().map(|[a, b]| b - a).sum();
        write!(f, "    outages    {}", self.outages_s.len())?;
        if let Some([a, b]) = self.outages_s.first() {
            write!(f, ", {} of the time; the first from {a:.1} s to {b:.1} s", share(out))?;
        }
        writeln!(f)?;
        if self.passes.len() == 1 && self.outages_s.is_empty() {
            let p = &self.passes[0];
            let elevation = range(p.elevation_min_deg, p.elevation_max_deg, 2);
            return writeln!(f, "    satellite  {}, elevation {elevation} deg", p.satellite);
        }
        let width =
            self.passes.iter().take(SHOWN).map(|p| p.satellite.chars().count()).max().unwrap_or(0).max(9);
        writeln!(
            f,
            "    {:width$}  {:>9}  {:>9}  {:>16}  {:>18}",
            "satellite", "from s", "until s", "elevation deg", "delay ms"
        )?;
        for p in self.passes.iter().take(SHOWN) {
            let elevation = range(p.elevation_min_deg, p.elevation_max_deg, 1);
            let delay = range(p.delay_min_s * 1e3, p.delay_max_s * 1e3, 2);
            let PassCheck { satellite, from_s, until_s, .. } = p;
            writeln!(
                f,
                "    {satellite:width$}  {from_s:>9.1}  {until_s:>9.1}  {elevation:>16}  {delay:>18}"
            )?;
        }
        if self.passes.len() > SHOWN {
            writeln!(f, "    and {} more", self.passes.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Document;

    fn checked(orbit: &str) -> crate::Check {
        let text = format!(
            "duration = \"600 s\"\nlinks.sat = {{ rate = \"10 Mbit/s\", orbit = {orbit} }}\n[flows.bulk]\n"
        );
        let document = Document::parse("a.toml", &text, &crate::no_files).unwrap();
        crate::check(&document.resolve().unwrap())
    }

    #[test]
    fn passes_and_what_lies_between_make_up_the_run() {
        let check = checked("{ from = 'London', to = 'Madrid', constellation = 'leo550' }");
        let o = check.links[0].orbit.as_ref().unwrap();
        assert!(o.handovers >= 3 && o.outages_s.is_empty());
        assert_eq!(o.passes.len() as u64, o.handovers + 1);
        assert!((o.interrupted_s - 0.1 * o.handovers as f64).abs() < 1e-9);
        let served: f64 = o.passes.iter().map(|p| p.until_s - p.from_s).sum();
        assert!((served + o.interrupted_s - 600.0).abs() < 1e-6, "{served}");
        // Two slants of 550 km at least, and of 1123.4 km, at 25 degrees, at most.
        assert!(o.delay_min_s.unwrap() > 2.0 * 550.0 / 299_792.458);
        assert!(o.delay_max_s.unwrap() < 2.0 * 1_123.5 / 299_792.458);
        assert!(o.passes.iter().all(|p| p.elevation_min_deg > 24.0 && p.elevation_max_deg <= 90.0));
        let text = check.to_string();
        assert!(
            text.contains("London - Madrid over 1584 satellites") && text.contains("elevation deg"),
            "{text}"
        );
    }

    #[test]
    fn two_satellites_at_a_time_are_described() {
        for (diversity, words) in [("best", "by the nearer of two"), ("both", "each packet over both")] {
            let orbit = format!(
                "{{ from = 'London', to = 'Madrid', constellation = 'leo550', diversity = '{diversity}' }}"
            );
            let text = checked(&orbit).to_string();
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_lonely_satellite_leaves_outages() {
        let ring = "{ kind = 'walker', altitude = '550 km', inclination = '0 deg', satellites = 2, planes = 1, phasing = 0, \
                    elevation = '25 deg' }";
        let point = "{ latitude = '0 deg', longitude = '0 deg' }";
        let orbit = format!("{{ from = {point}, to = {point}, constellation = {ring} }}");
        let check = checked(&orbit);
        let o = check.links[0].orbit.as_ref().unwrap();
        // Half a pass, then nothing until the end: the other one comes half a revolution later.
        let half = half_of_an_overhead_pass();
        let [gone, end] = o.outages_s[0];
        assert_eq!((o.passes.len(), o.outages_s.len(), end, o.handovers), (1, 1, 600.0, 0));
        assert!((gone - half).abs() <= 1.0, "{gone} {half}");
        assert!(check.to_string().contains("the first from "), "{check}");
    }

    #[test]
    fn a_satellite_that_stands_still_takes_one_line() {
        let check = checked(
            "{ from = 'Palermo', to = 'Houston', constellation = { kind = 'stationary', longitude = '-34.5 deg' } }",
        );
        let text = check.to_string();
        assert!(text.contains("satellite  34.5 W, elevation 16.67 deg"), "{text}");
        assert!(text.contains("delay      263.728 ms"), "{text}");
    }

    fn half_of_an_overhead_pass() -> f64 {
        skyhaul_orbit::geometry::overhead_pass(skyhaul_orbit::geometry::radius(550.0), 0.0, 25.0) / 2.0
    }
}
