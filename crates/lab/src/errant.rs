//! Profiles of ERRANT: measurements of real access networks, as scenarios.
//!
//! M. Trevisan, A. Safari Khatouni, D. Giordano, "ERRANT: Realistic emulation of radio access networks", Computer
//! Networks 176, 2020. Their table has one line per profile: operator, country, technology, signal quality, mean
//! download and upload rates in kbit/s, mean and standard deviation of the latency in milliseconds, which is a
//! round-trip time. The deviation is between measurements at different times and places, so a link of a scenario has
//! the mean latency; on request, the deviation becomes per-packet jitter.

use crate::error::LabError;
use serde::Deserialize;
use skyhaul_study::files::read_text;
use std::fmt::Write as _;
use std::path::Path;

/// Mean of the absolute value of a normal variable with mean 0 and deviation 1: √(2/π).
const MEAN: f64 = 0.797_884_560_802_865_4;
/// Standard deviation of this absolute value: √(1 − 2/π).
const DEVIATION: f64 = 0.602_810_274_989_086_9;

/// The slowest and the fastest rate that a profile may name, kbit/s.
const RATES: (f64, f64) = (1.0, 1e9);
/// The longest latency that a profile may name, ms: an hour each way.
const LONGEST: f64 = 7.2e6;

/// A line of the table.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Profile {
    operator: String,
    country: String,
    rat: String,
    signal_quality: String,
    download_kbps: f64,
    upload_kbps: f64,
    latency_ms_avg: f64,
    latency_ms_stdev: f64,
}

/// Reads the table.
///
/// # Errors
/// If the file cannot be read, with its line.
pub fn read(path: &Path) -> Result<Vec<Profile>, LabError> {
    let text = read_text(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
    parse(&text).map_err(|(line, message)| LabError::Trace { path: path.to_owned(), line, message })
}

fn parse(text: &str) -> Result<Vec<Profile>, (usize, String)> {
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut profiles = Vec::new();
    let mut rows = table.deserialize::<Profile>();
    loop {
        // The reader skips the empty lines before a record.
        let at = rows.reader().position();
        let skipped = text.bytes().skip(at.byte() as usize).take_while(|b| matches!(b, b'\r' | b'\n'));
        let line = at.line() as usize + skipped.filter(|b| *b == b'\n').count();
        let Some(row) = rows.next() else { break };
        let profile = row.map_err(|_| {
            let header = "operator,country,rat,signal_quality,download_kbps,upload_kbps,latency_ms_avg,latency_ms_stdev";
            (line, format!("not a profile: the columns are {header}, the last four of them numbers"))
        })?;
        profile.check().map_err(|message| (line, message))?;
        profiles.push(profile);
    }
    if profiles.is_empty() {
        return Err((0, "no profiles: write a header and one line per profile".to_owned()));
    }
    Ok(profiles)
}

/// The profile of a name.
///
/// # Errors
/// If none has it.
pub fn find<'a>(path: &Path, profiles: &'a [Profile], name: &str) -> Result<&'a Profile, LabError> {
    profiles.iter().find(|p| p.name() == name).ok_or_else(|| LabError::Trace {
        path: path.to_owned(),
        line: 0,
        message: format!(
            "no profile \"{name}\": write operator/country/technology/quality, such as \"{}\"",
            profiles.first().map(Profile::name).unwrap_or_default()
        ),
    })
}

impl Profile {
    /// Operator, country, technology and signal quality, separated by slashes.
    #[must_use]
    pub fn name(&self) -> String {
        [&*self.operator, &self.country, &self.rat, &self.signal_quality].join("/")
    }

    fn check(&self) -> Result<(), String> {
        for (key, value) in [("download_kbps", self.download_kbps), ("upload_kbps", self.upload_kbps)] {
            if !(RATES.0..=RATES.1).contains(&value) {
                return Err(format!("{key} is {value}: write a rate from {} to {} kbit/s", RATES.0, RATES.1));
            }
        }
        for (key, value) in
            [("latency_ms_avg", self.latency_ms_avg), ("latency_ms_stdev", self.latency_ms_stdev)]
        {
            if !(0.0..=LONGEST).contains(&value) {
                return Err(format!("{key} is {value}: write a time from 0 to {LONGEST} ms"));
            }
        }
        Ok(())
    }

    /// `base` and `sigma` of the delay kind `normal`, one way, ms. The mean is half that of the round trip; the deviation of
    /// the round trip is the measured one where this needs no negative delay.
    fn jitter(&self) -> (f64, f64) {
        let mean = self.latency_ms_avg / 2.0;
        let sigma = self.latency_ms_stdev / 2f64.sqrt() / DEVIATION;
        let base = mean - sigma * MEAN;
        if base >= 0.0 { (base, sigma) } else { (0.0, mean / MEAN) }
    }

    /// A scenario: a download over a link with the rates and the latency of the profile. With `jitter`, the deviation
    /// of the latency becomes per-packet jitter, which may reorder packets as in netem.
    #[must_use]
    pub fn scenario(&self, jitter: bool) -> String {
        let (delay, reorder) = if jitter {
            let (base, sigma) = self.jitter();
            let delay =
                format!("{{ kind = \"normal\", base = \"{base:.3} ms\", sigma = \"{sigma:.3} ms\" }}");
            (delay, "\nallow-reorder = true")
        } else {
            (format!("\"{:.3} ms\"", self.latency_ms_avg / 2.0), "")
        };
        let mut text = String::new();
        let _ = write!(
            text,
            "# Profile {name} of ERRANT: {down:.0} kbit/s downlink, {up:.0} kbit/s uplink, mean round-trip latency {mean:.1} ms\n\
             # with a deviation of {deviation:.1} ms, round trip. The buffers, of one BDP, are not measured.\n\
             schema   = 1\ntitle    = {title}\nduration = \"60 s\"\nseed     = 1\n\n\
             [links.access]\nrate    = \"{down:.3} kbit/s\"\ndelay   = {delay}{reorder}\nqueue   = \"1 BDP\"\n\
             reverse = {{ rate = \"{up:.3} kbit/s\" }}\n\n\
             [flows.download]\npath = [\"access\"]\ncc   = \"cubic\"\napp  = \"bulk\"\n",
            name = self.name().escape_default(),
            title = toml::Value::String(format!("ERRANT: {}", self.name())),
            down = self.download_kbps,
            up = self.upload_kbps,
            mean = self.latency_ms_avg,
            deviation = self.latency_ms_stdev,
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "operator,country,rat,signal_quality,download_kbps,upload_kbps,latency_ms_avg,latency_ms_stdev\n";

    fn one(row: &str) -> Result<Profile, (usize, String)> {
        parse(&format!("{HEADER}{row}\n")).map(|mut p| p.remove(0))
    }

    #[test]
    fn a_profile_becomes_a_scenario_that_runs() {
        let profile = one("universal,universal,geosat,universal,40000.5,5000,620,30").unwrap();
        assert_eq!(profile.name(), "universal/universal/geosat/universal");
        for jitter in [false, true] {
            let text = profile.scenario(jitter);
            let resolved =
                skyhaul_scenario::resolve_text("errant.toml", &text, &[], &skyhaul_scenario::no_files)
                    .unwrap_or_else(|e| panic!("{e}\n{text}"));
            let link = &resolved.links[0];
            let rate = |d: &skyhaul_scenario::resolved::Direction| d.rate.mean().unwrap().bits_per_sec();
            assert_eq!((rate(&link.forward), rate(&link.reverse)), (40_000_500, 5_000_000));
            assert_eq!(link.forward.allow_reorder, jitter);
            if !jitter {
                assert_eq!(link.forward.delay.base().as_nanos(), 310_000_000);
            }
        }
    }

    #[test]
    fn jitter_keeps_the_mean_and_the_deviation_of_the_round_trip() {
        let (base, sigma) = one("a,b,c,d,1000,1000,600,60").unwrap().jitter();
        assert!((base + sigma * (2.0 / std::f64::consts::PI).sqrt() - 300.0).abs() < 1e-9);
        let variance = sigma * sigma * (1.0 - 2.0 / std::f64::consts::PI);
        assert!(((2.0 * variance).sqrt() - 60.0).abs() < 1e-9);
        // A deviation too large for delays above zero: the mean stays.
        let (base, sigma) = one("a,b,c,d,1000,1000,100,90").unwrap().jitter();
        assert_eq!(base, 0.0);
        assert!((sigma * (2.0 / std::f64::consts::PI).sqrt() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_profile_is_refused_with_its_line() {
        let cases = [
            ("a,b,c,d,1000,1000,600", 2, "columns"),
            ("a,b,c,d,fast,1000,600,60", 2, "numbers"),
            ("a,b,c,d,0,1000,600,60", 2, "download_kbps is 0"),
            ("a,b,c,d,1000,NaN,600,60", 2, "upload_kbps is NaN"),
            ("a,b,c,d,1000,1000,-1,60", 2, "latency_ms_avg is -1"),
            ("a,b,c,d,1000,1000,600,inf", 2, "latency_ms_stdev is inf"),
        ];
        for (row, line, words) in cases {
            let (at, message) = one(row).unwrap_err();
            assert!(at == line && message.contains(words), "{row}: {at}: {message}");
            // Empty lines count.
            let (at, message) = one(&format!("\na,b,c,d,1000,1000,600,60\r\n\r\n\n{row}")).unwrap_err();
            assert!(at == line + 4 && message.contains(words), "{row}: {at}: {message}");
        }
        assert_eq!(parse("").unwrap_err().0, 0);
        assert_eq!(parse(HEADER).unwrap_err().0, 0);
    }
}
