//! Satellites by two-line elements, as published by NORAD.

use super::catalogue::{CANONICAL, Catalogue, Entry, File, not_sgp4};
use super::model::Model;
use crate::epoch::Epoch;
use crate::invalid::Invalid;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use sgp4::chrono::NaiveDate;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Angle;

/// Characters of a line.
const LENGTH: usize = 69;

/// Satellites from a file of two-line elements (TLE), with or without name lines.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// The file: a path relative to the file that names it.
    pub file: String,
    /// The content itself, instead of a file.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub text: Option<String>,
    /// Minimum elevation at which a station uses a satellite.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub elevation: f64,
}

impl Model for Config {
    type Motion = Catalogue;

    fn build(&self, start: Option<Epoch>, offset: Duration) -> Result<Catalogue, Invalid> {
        let file = File { name: &self.file, text: self.text.as_deref() };
        Catalogue::new(&file, read(&file)?, start, offset, self.elevation)
    }
    fn least_elevation(&self) -> f64 {
        self.elevation
    }
    fn canonical(self) -> Self {
        Self { file: CANONICAL.into(), ..self }
    }
}

fn read(file: &File<'_>) -> Result<Vec<Entry>, Invalid> {
    let mut entries = Vec::new();
    let mut name: Option<String> = None;
    let mut first: Option<(usize, &str)> = None;
    for (n, line) in file.content()?.lines().enumerate() {
        let (n, line) = (n + 1, line.trim_end());
        match (first, line) {
            (_, "") => {}
            (None, line) if line.starts_with("1 ") => {
                first = Some((n, first_line(file, n, check(file, n, line)?)?));
            }
            (None, line) if line.starts_with("2 ") => {
                return Err(file.wrong(n, "line 2 of two-line elements without line 1 before it".into()));
            }
            (None, line) => name = Some(line.strip_prefix("0 ").unwrap_or(line).trim().into()),
            (Some((begin, one)), line) if line.starts_with("2 ") => {
                let two = check(file, n, line)?;
                let elements = sgp4::Elements::from_tle(name.take(), one.as_bytes(), two.as_bytes())
                    .map_err(|e| file.wrong(begin, format!("these elements cannot be read: {e}")))?;
                entries.push(Entry { line: begin, elements });
                first = None;
            }
            (Some((begin, _)), _) => {
                return Err(file.wrong(
                    n,
                    format!("line {begin} is line 1 of two-line elements: line 2 must follow here"),
                ));
            }
        }
    }
    match first {
        Some((begin, _)) => Err(file.wrong(begin, "line 2 of these two-line elements is missing".into())),
        None => Ok(entries),
    }
}

/// Checks of line 1 that the `sgp4` crate does not make, or whose errors there name another column: ephemeris type and day of the year.
fn first_line<'a>(file: &File<'_>, n: usize, line: &'a str) -> Result<&'a str, Invalid> {
    if let Some(why) = line[62..63].parse().ok().and_then(not_sgp4) {
        return Err(file.wrong(n, format!("the ephemeris type, column 63, is {why}")));
    }
    if let (Ok(year), Ok(day)) = (line[18..20].parse::<u8>(), line[20..32].trim_start().parse::<f64>()) {
        // Two digits: 57 is 1957, the year of the first satellite.
        let year = i32::from(year) + if year < 57 { 2_000 } else { 1_900 };
        let days = if NaiveDate::from_yo_opt(year, 366).is_some() { 366 } else { 365 };
        if !(1.0..f64::from(days + 1)).contains(&day) {
            let message =
                format!("the day of the year, columns 21 to 32, is {day}: accepted is 1 to {days} in {year}");
            return Err(file.wrong(n, message));
        }
    }
    Ok(line)
}

/// Length and check digit of a line: the sum of its digits, a minus sign counting 1, modulo 10.
fn check<'a>(file: &File<'_>, n: usize, line: &'a str) -> Result<&'a str, Invalid> {
    if !line.is_ascii() || line.len() != LENGTH {
        let message = format!(
            "{} characters instead of the {LENGTH} of two-line elements: use the lines as published",
            line.chars().count()
        );
        return Err(file.wrong(n, message));
    }
    let (body, digit) = line.as_bytes().split_at(LENGTH - 1);
    let value = |b: &u8| match b {
        b'0'..=b'9' => u32::from(b - b'0'),
        b'-' => 1,
        _ => 0,
    };
    let sum = body.iter().map(value).sum::<u32>() % 10;
    if !digit[0].is_ascii_digit() || u32::from(digit[0] - b'0') != sum {
        let message = format!(
            "the check digit is {}, but the line's digits give {sum}: the line was altered, use it as published",
            char::from(digit[0])
        );
        return Err(file.wrong(n, message));
    }
    Ok(line)
}

/// The epochs of all elements in a text, to the second.
#[cfg(test)]
pub(super) fn epochs(text: &str) -> Vec<Epoch> {
    let file = File { name: "test", text: Some(text) };
    let unix = |e: &Entry| Epoch { unix: e.elements.datetime.and_utc().timestamp() };
    read(&file).unwrap().iter().map(unix).collect()
}

#[cfg(test)]
mod tests {
    use super::super::model::Motion;
    use super::*;

    /// The space station, as in the documentation of many programs.
    const ISS: &str = "ISS (ZARYA)\n\
        1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
        2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";

    fn build(text: &str, start: &str) -> Result<Catalogue, Invalid> {
        let config = Config { file: "iss.tle".into(), text: Some(text.into()), elevation: 10.0 };
        config.build(Some(start.parse().unwrap()), Duration::ZERO)
    }
    /// Line and sentence of the refusal.
    fn refused(text: &str, start: &str) -> (usize, String) {
        let e = build(text, start).unwrap_err();
        let (file, line) = e.file.unwrap();
        assert_eq!(file, "iss.tle");
        (line, e.message)
    }

    #[test]
    fn names_and_other_layouts_are_read() {
        let station = build(ISS, "2008-09-20").unwrap();
        assert_eq!((station.count(), station.name(0)), (1, "ISS (ZARYA)".into()));
        let (bare, three) = (ISS.split_once('\n').unwrap().1, format!("0 {ISS}\r\n\n{ISS}"));
        assert_eq!(build(bare, "2008-09-20").unwrap().name(0), "25544");
        assert_eq!(build(&three, "2008-09-20").unwrap().count(), 2);
    }

    #[test]
    fn broken_lines_are_refused_where_they_stand() {
        let day = "2008-09-20";
        let (line, why) = refused(&ISS.replace("98067A   08264", "98067A   08265"), day);
        assert_eq!((line, why.contains("check digit is 7") && why.contains("give 8")), (2, true), "{why}");
        let (line, why) = refused(&ISS.replace("563537", "56353"), day);
        assert_eq!((line, why.contains("68 characters")), (3, true), "{why}");
        assert_eq!(refused(&ISS[..82], day).0, 2);
        assert_eq!(refused(&ISS[82..], day).0, 1);
        assert_eq!(refused("", day).0, 0);
        let (line, why) = refused(&ISS.replace("1 25544U", "1 25543U"), day);
        assert_eq!((line, why.contains("check digit")), (2, true), "{why}");
        assert!(refused(&ISS.replace("2927", "292é"), day).1.contains("69"));
    }

    /// The station's first line with another field at a column, and the check digit that fits.
    fn with(at: usize, field: &str) -> String {
        let mut lines: Vec<String> = ISS.lines().map(Into::into).collect();
        lines[1].replace_range(at - 1..at - 1 + field.len(), field);
        let value = |c: char| c.to_digit(10).unwrap_or(u32::from(c == '-'));
        let sum = lines[1][..68].chars().map(value).sum::<u32>() % 10;
        lines[1].replace_range(68.., &format!("{sum}"));
        lines.join("\n")
    }

    #[test]
    fn elements_of_another_theory_are_refused() {
        for (digit, theory) in
            [("4", "SGP4-XP"), ("2", "Brouwer"), ("3", "PPT3"), ("6", "special"), ("9", "another")]
        {
            let (line, why) = refused(&with(63, digit), "2008-09-20");
            assert_eq!((line, why.contains("column 63") && why.contains(theory)), (2, true), "{why}");
        }
        assert!(build(&with(63, "0"), "2008-09-20").is_ok());
    }

    #[test]
    fn a_day_that_its_year_does_not_have_is_refused_at_its_column() {
        for (field, days) in [
            ("08000.5", 366),
            ("08367.5", 366),
            ("07366.0", 365),
            ("07-01.5", 365),
            ("00367.0", 366),
            ("99366.0", 365),
        ] {
            let (line, why) = refused(&with(19, field), "2008-09-20");
            let right = why.contains("columns 21 to 32") && why.contains(&format!("1 to {days} in"));
            assert_eq!((line, right), (2, true), "{field}: {why}");
        }
        assert!(build(&with(19, "08366.9"), "2008-12-31").is_ok());
        assert!(build(&with(19, "07365.9"), "2007-12-31").is_ok());
        assert!(build(&with(19, "08001.0"), "2008-01-01").is_ok());
    }

    #[test]
    fn old_elements_are_refused_with_the_remedy() {
        assert!(build(ISS, "2008-10-20").is_ok());
        let (line, why) = refused(ISS, "2026-11-22");
        assert_eq!(line, 2);
        assert!(why.contains("2008-09-20T12:25:40Z") && why.contains("within 30 days"), "{why}");
        let config = Config { file: "iss.tle".into(), text: Some(ISS.into()), elevation: 10.0 };
        // The run starts `offset` after the epoch.
        let after = |start: &str, days: u64| {
            let built = config.build(Some(start.parse().unwrap()), Duration::from_secs(days * 86_400));
            built.map(drop).map_err(|e| e.message)
        };
        assert_eq!(after("2008-10-20", 0), Ok(()));
        let why = after("2008-10-20", 5).unwrap_err();
        assert!(why.contains(", 34 days from the start of the run, which is `offset` after epoch"), "{why}");
        assert_eq!(after("2008-08-01", 30), Ok(()));
        assert!(after("2008-08-01", 10).is_err() && after("2008-08-01", 100).is_err());
        let e = config.build(None, Duration::ZERO).unwrap_err();
        assert_eq!((e.key.as_str(), e.message.contains("2008-09-20T00:00:00Z")), ("epoch", true), "{e}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(at in 0..150usize, with in ".{0,3}") {
            let mut text = String::from(ISS);
            text.insert_str(at.min(text.len()), &with);
            let _ = build(&text, "2008-09-20");
        }

        /// With check digits that fit, so that everything behind them is reached.
        #[test]
        fn no_digit_makes_it_panic(line in 1..3usize, at in 2..68usize, with in "[ -~]") {
            let mut lines: Vec<String> = ISS.lines().map(Into::into).collect();
            lines[line].replace_range(at..=at, &with);
            let value = |c: char| c.to_digit(10).unwrap_or(u32::from(c == '-'));
            let sum = lines[line][..68].chars().map(value).sum::<u32>() % 10;
            lines[line].replace_range(68.., &format!("{sum}"));
            if let Ok(catalogue) = build(&lines.join("\n"), "2008-09-20") {
                let _ = catalogue.place(0, &crate::moment::Moment::new(1e4, 0.0));
            }
        }
    }
}
