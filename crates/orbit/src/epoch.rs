//! Civil time, and the rotation angle of the Earth.

use crate::earth::radians;
use core::fmt;
use core::str::FromStr;

const DAY: i64 = 86_400;

/// A second of UTC: `2026-11-22T12:00:00Z`, or a date, which means its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Seconds since 1970, without leap seconds.
    pub unix: i64,
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last one (Hatcher's method).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 719_469
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    // The inverse of `days`, in eras of 400 years.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let january = month >= 10;
    (year + era * 400 + i64::from(january), if january { month - 9 } else { month + 3 }, day)
}

impl Epoch {
    /// The Earth's rotation angle in radians: Greenwich mean sidereal time (IAU 1982), with UTC for UT1, from which
    /// it differs by less than a second.
    #[must_use]
    pub fn sidereal(self) -> f64 {
        // 2000-01-01 12:00 is day 10957.5.
        let centuries = (self.unix as f64 / DAY as f64 - 10_957.5) / 36_525.0;
        let seconds = 67_310.548_41
            + (876_600.0 * 3_600.0 + 8_640_184.812_866) * centuries
            + 0.093_104 * centuries * centuries
            - 6.2e-6 * centuries * centuries * centuries;
        // A degree is 240 seconds of time.
        radians((seconds % DAY as f64) / 240.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.unix.div_euclid(DAY));
        let second = self.unix.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The text is not a valid time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a UTC time: write, say, \"2026-11-22T12:00:00Z\"")]
pub struct NotATime(alloc::string::String);

impl FromStr for Epoch {
    type Err = NotATime;
    fn from_str(text: &str) -> Result<Self, NotATime> {
        read(text.trim()).ok_or_else(|| NotATime(text.into()))
    }
}

fn read(text: &str) -> Option<Epoch> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let (hour, rest) = time.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let number = |text: &str, len: usize| {
        (text.len() == len && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i64>().ok())?
    };
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    let whole = days(year, month, day);
    // The day exists if the conversion returns it.
    (civil(whole) == (year, month, day) && hour < 24 && minute < 60 && second < 60)
        .then_some(Epoch { unix: whole * DAY + hour * 3_600 + minute * 60 + second })
}

#[cfg(feature = "serde")]
mod file {
    use super::*;
    use alloc::string::String;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl<'de> Deserialize<'de> for Epoch {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            String::deserialize(d)?.parse().map_err(D::Error::custom)
        }
    }
    impl Serialize for Epoch {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.collect_str(self)
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Epoch {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Epoch".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A second of UTC.",
            "pattern": r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}Z)?\s*$",
            "examples": ["2026-11-22T12:00:00Z"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::earth::degrees;
    use alloc::string::ToString;

    #[test]
    fn it_reads_back_and_knows_the_calendar() {
        for (text, unix) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-22T12:00:00Z", 1_795_348_800),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(text.parse(), Ok(Epoch { unix }), "{text}");
            assert_eq!(Epoch { unix }.to_string(), text);
        }
        assert_eq!("2000-01-01".parse::<Epoch>(), "2000-01-01T00:00:00Z".parse());
        for text in
            ["2100-02-29", "2026-13-01", "2026-1-1", "now", "2026-11-22T12:00:00", "2026-11-22T24:00:00Z"]
        {
            assert!(text.parse::<Epoch>().is_err(), "{text}");
        }
    }

    #[test]
    fn sidereal_time_is_that_of_the_textbook() {
        // Vallado, Fundamentals of Astrodynamics and Applications, example 3-5: 1992-08-20 12:14 UT1, 152.578788 degrees.
        let theta = degrees("1992-08-20T12:14:00Z".parse::<Epoch>().unwrap().sidereal());
        assert!((theta.rem_euclid(360.0) - 152.578_788).abs() < 1e-5, "{theta}");
    }

    proptest::proptest! {
        #[test]
        fn every_second_reads_back(unix in -62_000_000_000i64..200_000_000_000) {
            let epoch = Epoch { unix };
            proptest::prop_assert_eq!(epoch.to_string().parse(), Ok(epoch));
        }
    }
}
