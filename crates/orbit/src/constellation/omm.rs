//! Satellites by orbit mean-elements messages (CCSDS 502.0-B), as CelesTrak publishes them: JSON, CSV, or lines of
//! `KEY = VALUE`.

use super::catalogue::{CANONICAL, Catalogue, Entry, File, not_sgp4};
use super::model::Model;
use crate::epoch::Epoch;
use crate::invalid::Invalid;
use crate::time_system::{self, TimeSystem};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;
use serde_json::Value;
use sgp4::chrono::NaiveDateTime;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Angle;

/// Satellites from a file of orbit mean-elements messages (OMM): JSON, CSV, or lines of `KEY = VALUE`.
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
        let records = records(&file)?;
        let entries = records.into_iter().map(|r| r.entry(&file)).collect::<Result<_, _>>()?;
        Catalogue::new(&file, entries, start, offset, self.elevation)
    }
    fn least_elevation(&self) -> f64 {
        self.elevation
    }
    fn canonical(self) -> Self {
        Self { file: CANONICAL.into(), ..self }
    }
}

/// The values of a message, as texts, with the line at which it starts; 0 if unknown.
struct Record {
    line: usize,
    values: BTreeMap<String, String>,
}

impl Record {
    fn entry(&self, file: &File<'_>) -> Result<Entry, Invalid> {
        let get = |key: &str| self.values.get(key).map(|v| v.trim()).filter(|v| !v.is_empty());
        let name = get("OBJECT_NAME").map(ToString::to_string);
        let satellite = name.as_deref().or_else(|| get("NORAD_CAT_ID")).unwrap_or("a satellite");
        let missing = |key: &str| file.wrong(self.line, format!("the elements of {satellite} have no {key}"));
        let no_number = |key: &str, text: &str| {
            file.wrong(self.line, format!("{key} of {satellite} is \"{text}\", which is not a number"))
        };
        let number = |key: &str| {
            let text = get(key).ok_or_else(|| missing(key))?;
            let amount = self.amount(file, satellite, key, text)?;
            amount.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| no_number(key, text))
        };
        // SGP4 uses neither, but a foreign unit is refused in every value.
        for key in ["MEAN_MOTION_DOT", "MEAN_MOTION_DDOT"] {
            get(key).map_or(Ok(""), |text| self.amount(file, satellite, key, text))?;
        }
        let unaccepted = |key: &str, value: &str, accepted: &str| {
            file.wrong(self.line, format!("{key} of {satellite} is \"{value}\": accepted is {accepted}"))
        };
        // Elements of another theory describe another orbit; the value "indicates the proper method to employ to propagate the
        // state" (§4.2.3). CelesTrak's JSON and CSV are elements of SGP4 and leave these keys out.
        for (key, values) in [
            ("MEAN_ELEMENT_THEORY", &["SGP4", "SGP/SGP4"] as &[&str]),
            ("CENTER_NAME", &["EARTH"]),
            ("REF_FRAME", &["TEME", "TEMEOFDATE", "TEME OF DATE"]),
        ] {
            if let Some(value) = get(key).filter(|v| !values.iter().any(|a| a.eq_ignore_ascii_case(v))) {
                let why = "only, since elements are propagated by SGP4";
                return Err(unaccepted(key, value, &format!("{} {why}", values[0])));
            }
        }
        if let Some(text) = get("EPHEMERIS_TYPE") {
            let number: u8 = text.parse().map_err(|_| no_number("EPHEMERIS_TYPE", text))?;
            if let Some(why) = not_sgp4(number) {
                return Err(file.wrong(self.line, format!("EPHEMERIS_TYPE of {satellite} is {why}")));
            }
        }
        let epoch = get("EPOCH").ok_or_else(|| missing("EPOCH"))?;
        let given = instant(epoch).ok_or_else(|| {
            let message = format!(
                "EPOCH of {satellite} is \"{epoch}\", which is not a time such as 2026-11-22T12:00:00 or 2026-326T12:00:00"
            );
            file.wrong(self.line, message)
        })?;
        let system = get("TIME_SYSTEM").unwrap_or("UTC");
        let datetime = TimeSystem::from_str(system)
            .map_err(|()| unaccepted("TIME_SYSTEM", system, time_system::NAMES))?
            .utc(given)
            .ok_or_else(|| {
                file.wrong(
                    self.line,
                    format!("EPOCH of {satellite} is before 1972: {system} is read from then on"),
                )
            })?;
        let norad_id = match get("NORAD_CAT_ID") {
            Some(text) => text.parse().map_err(|_| no_number("NORAD_CAT_ID", text))?,
            None => 0,
        };
        let elements = sgp4::Elements {
            object_name: name.clone(),
            international_designator: None,
            norad_id,
            classification: sgp4::Classification::Unclassified,
            datetime,
            // SGP4 uses none of these.
            mean_motion_dot: 0.0,
            mean_motion_ddot: 0.0,
            element_set_number: 0,
            revolution_number: 0,
            ephemeris_type: 0,
            drag_term: number("BSTAR")?,
            inclination: number("INCLINATION")?,
            right_ascension: number("RA_OF_ASC_NODE")?,
            eccentricity: number("ECCENTRICITY")?,
            argument_of_perigee: number("ARG_OF_PERICENTER")?,
            mean_anomaly: number("MEAN_ANOMALY")?,
            mean_motion: number("MEAN_MOTION")?,
        };
        Ok(Entry { line: self.line, elements })
    }

    /// A value without its unit, which may follow in brackets and must be that of the standard (CCSDS 502.0-B-2 §7.7.1.1, table 4-3).
    fn amount<'a>(
        &self,
        file: &File<'_>,
        satellite: &str,
        key: &str,
        text: &'a str,
    ) -> Result<&'a str, Invalid> {
        let Some((amount, unit)) = text.strip_suffix(']').and_then(|t| t.split_once('[')) else {
            return Ok(text);
        };
        let standard = match key {
            "MEAN_MOTION" => "rev/day",
            "MEAN_MOTION_DOT" => "rev/day**2",
            "MEAN_MOTION_DDOT" => "rev/day**3",
            "INCLINATION" | "RA_OF_ASC_NODE" | "ARG_OF_PERICENTER" | "MEAN_ANOMALY" => "deg",
            "BSTAR" => "1/ER",
            _ => "",
        };
        // The schema of the standard's XML has the units in capitals as well.
        if !standard.is_empty() && unit.trim().eq_ignore_ascii_case(standard) {
            return Ok(amount.trim_end());
        }
        let accepted = match standard {
            "" => "a number without unit".into(),
            unit => format!("[{unit}] or no unit"),
        };
        Err(file
            .wrong(self.line, format!("{key} of {satellite} has the unit [{unit}]: accepted is {accepted}")))
    }
}

/// A time with a calendar date or the day of the year (CCSDS 502.0-B §7.5.10).
fn instant(text: &str) -> Option<NaiveDateTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let format = match text.find('T')? {
        8 => "%Y-%jT%H:%M:%S%.f",
        _ => "%Y-%m-%dT%H:%M:%S%.f",
    };
    NaiveDateTime::parse_from_str(text, format).ok()
}

fn records(file: &File<'_>) -> Result<Vec<Record>, Invalid> {
    let text = file.content()?.trim_start_matches('\u{feff}');
    let body = text.trim_start();
    match body.chars().next() {
        Some('[' | '{') => json(file, text),
        Some('<') => Err(file.wrong(1, "this is XML: use the same elements as JSON or CSV".into())),
        _ if body.lines().next().is_some_and(|l| l.contains(',')) => csv(file, text),
        _ => key_value(file, text),
    }
}

fn json(file: &File<'_>, text: &str) -> Result<Vec<Record>, Invalid> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| file.wrong(e.line(), format!("not JSON at column {}", e.column())))?;
    let list = match value {
        Value::Array(list) => list,
        one => Vec::from([one]),
    };
    let record = |value: Value| {
        let Value::Object(map) = value else {
            return Err(file.wrong(0, "orbital elements in JSON must be a list of objects".into()));
        };
        let text = |v: Value| match v {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        Ok(Record { line: 0, values: map.into_iter().map(|(k, v)| (k, text(v))).collect() })
    };
    list.into_iter().map(record).collect()
}

fn csv(file: &File<'_>, text: &str) -> Result<Vec<Record>, Invalid> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let header: Vec<&str> = lines.next().map_or("", |l| l.1).split(',').map(str::trim).collect();
    let record = |(n, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').map(|c| c.trim().trim_matches('"')).collect();
        if cells.len() != header.len() {
            let message = format!("{} values below a header of {}", cells.len(), header.len());
            return Err(file.wrong(n + 1, message));
        }
        let values = header.iter().zip(cells).map(|(k, v)| ((*k).into(), v.into())).collect();
        Ok(Record { line: n + 1, values })
    };
    lines.map(record).collect()
}

fn key_value(file: &File<'_>, text: &str) -> Result<Vec<Record>, Invalid> {
    let mut records: Vec<Record> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let (n, line) = (n + 1, line.trim());
        if line.is_empty() || line.starts_with("COMMENT") {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(file.wrong(n, format!("\"{line}\" is neither JSON nor CSV nor KEY = VALUE")));
        };
        let (key, value) = (key.trim(), value.trim());
        // A repeated key starts the next message.
        match records.last_mut() {
            Some(last) if !last.values.contains_key(key) => {
                last.values.insert(key.into(), value.into());
            }
            _ => records.push(Record { line: n, values: [(key.into(), value.into())].into() }),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::super::model::Motion;
    use super::*;
    use crate::constellation::tle;
    use crate::moment::Moment;

    /// The same elements in four forms: two lines, and the three of a message.
    const LINES: &str = "1 25544U 98067A   20194.88612269 -.00002218  00000-0 -31515-4 0  9992\n\
                         2 25544  51.6461 221.2784 0001413  89.1723 280.4612 15.49507896236008";
    const FIELDS: &[(&str, &str)] = &[
        ("OBJECT_NAME", "ISS (ZARYA)"),
        ("NORAD_CAT_ID", "25544"),
        ("EPOCH", "2020-07-12T21:16:01.000416"),
        ("MEAN_MOTION", "15.49507896"),
        ("ECCENTRICITY", ".0001413"),
        ("INCLINATION", "51.6461"),
        ("RA_OF_ASC_NODE", "221.2784"),
        ("ARG_OF_PERICENTER", "89.1723"),
        ("MEAN_ANOMALY", "280.4612"),
        ("BSTAR", "-.31515E-4"),
    ];

    fn build(text: &str) -> Result<Catalogue, Invalid> {
        let config = Config { file: "gp.json".into(), text: Some(text.into()), elevation: 10.0 };
        config.build(Some("2020-07-13".parse().unwrap()), Duration::ZERO)
    }
    fn csv_text() -> String {
        let row = |f: fn(&(&'static str, &'static str)) -> &'static str| {
            FIELDS.iter().map(f).collect::<Vec<_>>().join(",")
        };
        format!("{}\n{}\n", row(|f| f.0), row(|f| f.1))
    }
    fn json_text() -> String {
        let field = |f: &(&str, &str)| format!("\"{}\": \"{}\"", f.0, f.1);
        format!("[{{{}}}]", FIELDS.iter().map(field).collect::<Vec<_>>().join(", "))
    }
    fn kvn_text() -> String {
        FIELDS.iter().map(|f| format!("{} = {}\n", f.0, f.1)).collect()
    }

    #[test]
    fn every_form_flies_where_the_two_lines_do() {
        let lines = tle::Config { file: "x".into(), text: Some(LINES.into()), elevation: 10.0 };
        let lines = lines.build(Some("2020-07-13".parse().unwrap()), Duration::ZERO).unwrap();
        let numbers = json_text().replace("\"15.49507896\"", "15.49507896");
        let list = format!("{}{}", kvn_text(), kvn_text());
        let below_a_blank_line = format!("\n{}", csv_text());
        for text in [csv_text(), below_a_blank_line, json_text(), numbers, kvn_text(), list] {
            let own = build(&text).unwrap();
            assert_eq!(own.name(0), "ISS (ZARYA)");
            for time in [0.0, 5_000.0, 86_400.0] {
                let now = Moment::new(time, 1.0);
                let apart = own.place(0, &now).unwrap().distance(lines.place(0, &now).unwrap());
                // The day of the two lines has eight digits: 0.4 ms, 3 m of flight.
                assert!(apart < 0.01, "{text}: {apart} km");
            }
        }
    }

    #[test]
    fn what_is_missing_or_no_number_is_named() {
        let refused = |text: String| build(&text).unwrap_err();
        let e = refused(csv_text().replace("INCLINATION", "INCL"));
        assert_eq!((e.file.clone().unwrap().1, e.message.contains("no INCLINATION")), (2, true), "{e}");
        let e = refused(kvn_text().replace("51.6461", "steep"));
        assert!(e.message.contains("INCLINATION of ISS (ZARYA) is \"steep\""), "{e}");
        let e = refused(json_text().replace("2020-07-12T", "2020-7-12 "));
        assert!(e.message.contains("EPOCH"), "{e}");
        assert_eq!(refused("[{]".into()).file.unwrap().1, 1);
        assert_eq!(refused("[3]".into()).file.unwrap().1, 0);
        assert!(refused("<xml/>".into()).message.contains("JSON or CSV"));
        assert!(refused("A = 1\nnothing".into()).message.contains("nothing"));
        assert!(refused(format!("{},1", csv_text().trim_end())).message.contains("11 values"));
        assert!(refused(json_text().replace(".0001413", "1.5")).message.contains("not describe an orbit"));
    }

    /// Every form of the message with these values as well.
    fn forms(more: &[(&'static str, &'static str)]) -> [String; 3] {
        let fields: BTreeMap<_, _> = FIELDS.iter().chain(more).copied().collect();
        let row = |f: fn((&'static str, &'static str)) -> &'static str| {
            fields.clone().into_iter().map(f).collect::<Vec<_>>().join(",")
        };
        let json: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\": \"{v}\"")).collect();
        [
            format!("{}\n{}\n", row(|f| f.0), row(|f| f.1)),
            format!("[{{{}}}]", json.join(", ")),
            fields.iter().map(|(k, v)| format!("{k} = {v}\n")).collect(),
        ]
    }
    fn same_place(text: &str, own: &str) -> bool {
        let now = Moment::new(3_000.0, 1.0);
        let place = |text| build(text).unwrap_or_else(|e| panic!("{text}: {e}")).place(0, &now).unwrap();
        place(text).distance(place(own)) < 0.01
    }

    #[test]
    fn elements_of_another_theory_frame_or_centre_are_refused() {
        for (key, value) in [
            ("MEAN_ELEMENT_THEORY", "SGP4-XP"),
            ("MEAN_ELEMENT_THEORY", "DSST"),
            ("MEAN_ELEMENT_THEORY", "USM"),
            ("MEAN_ELEMENT_THEORY", "SGP"),
            ("EPHEMERIS_TYPE", "4"),
            ("EPHEMERIS_TYPE", "2"),
            ("EPHEMERIS_TYPE", "x"),
            ("CENTER_NAME", "MARS"),
            ("REF_FRAME", "EME2000"),
            ("TIME_SYSTEM", "UT1"),
            ("TIME_SYSTEM", "TDB"),
        ] {
            for text in forms(&[(key, value)]) {
                let e = build(&text).unwrap_err();
                assert!(e.message.contains(key) && e.message.contains(value), "{text}: {e}");
            }
        }
        for (key, value) in [
            ("MEAN_ELEMENT_THEORY", "SGP4"),
            ("MEAN_ELEMENT_THEORY", "SGP/SGP4"),
            ("EPHEMERIS_TYPE", "0"),
            ("CENTER_NAME", "EARTH"),
            ("REF_FRAME", "TEME"),
            ("TIME_SYSTEM", "UTC"),
        ] {
            for text in forms(&[(key, value)]) {
                assert!(same_place(&text, &kvn_text()), "{text}");
            }
        }
        let null = json_text().replace("[{", "[{\"TIME_SYSTEM\": null, \"EPHEMERIS_TYPE\": null, ");
        assert!(same_place(&null, &kvn_text()));
    }

    #[test]
    fn epochs_of_other_time_systems_become_utc() {
        for (system, epoch) in [
            ("TAI", "2020-07-12T21:16:38.000416"),
            ("GPS", "2020-07-12T21:16:19.000416"),
            ("TT", "2020-07-12T21:17:10.184416"),
            ("UTC", "2020-194T21:16:01.000416"),
            ("UTC", "2020-194T21:16:01.000416Z"),
            ("TAI", "2020-194T21:16:38.000416"),
        ] {
            for text in forms(&[("TIME_SYSTEM", system), ("EPOCH", epoch)]) {
                assert!(same_place(&text, &kvn_text()), "{text}");
            }
        }
        for epoch in [
            "2021-366T00:00:00",
            "2020-367T00:00:00",
            "2020-000T00:00:00",
            "2020-7-12",
            "2020-02-30T00:00:00",
        ] {
            for text in forms(&[("EPOCH", epoch)]) {
                assert!(build(&text).unwrap_err().message.contains("2026-326T12:00:00"), "{text}");
            }
        }
        let [text, ..] = forms(&[("TIME_SYSTEM", "TAI"), ("EPOCH", "1970-01-01T00:00:00")]);
        assert!(build(&text).unwrap_err().message.contains("before 1972"));
    }

    #[test]
    fn units_in_brackets_are_those_of_the_standard() {
        let right = [
            ("MEAN_MOTION", "15.49507896 [rev/day]"),
            ("INCLINATION", "51.6461[deg]"),
            ("RA_OF_ASC_NODE", "221.2784 [deg]"),
            ("ARG_OF_PERICENTER", "89.1723 [ deg ]"),
            ("MEAN_ANOMALY", "280.4612 [DEG]"),
            ("BSTAR", "-.31515E-4 [1/ER]"),
            ("MEAN_MOTION_DOT", "0.0 [rev/day**2]"),
            ("MEAN_MOTION_DDOT", "0.0 [rev/day**3]"),
        ];
        for text in forms(&right) {
            assert!(same_place(&text, &kvn_text()), "{text}");
        }
        for (key, value) in [
            ("MEAN_MOTION", "15.49507896 [rad/s]"),
            ("INCLINATION", "0.9 [rad]"),
            ("ECCENTRICITY", ".0001413 [deg]"),
            ("BSTAR", "1e-4 [m**2/kg]"),
            ("MEAN_MOTION_DOT", "0.0 [rev/s**2]"),
        ] {
            for text in forms(&[(key, value)]) {
                let e = build(&text).unwrap_err();
                assert!(e.message.starts_with(key) && e.message.contains("has the unit"), "{text}: {e}");
            }
        }
        let [text, ..] = forms(&[("INCLINATION", "51.6461 [deg")]);
        assert!(build(&text).unwrap_err().message.contains("not a number"));
    }
}
