//! Time systems in which epochs of orbital elements are given (CCSDS 502.0-B §3.2.3.2), as UTC.

use core::str::FromStr;
use sgp4::chrono::{NaiveDateTime, TimeDelta};

/// Time in seconds since 1970 (UTC, without leap seconds), and TAI − UTC in seconds from then on (IERS Bulletin C).
const LEAP_SECONDS: [(i64, i64); 28] = [
    (63_072_000, 10),    // 1972-01-01
    (78_796_800, 11),    // 1972-07-01
    (94_694_400, 12),    // 1973-01-01
    (126_230_400, 13),   // 1974-01-01
    (157_766_400, 14),   // 1975-01-01
    (189_302_400, 15),   // 1976-01-01
    (220_924_800, 16),   // 1977-01-01
    (252_460_800, 17),   // 1978-01-01
    (283_996_800, 18),   // 1979-01-01
    (315_532_800, 19),   // 1980-01-01
    (362_793_600, 20),   // 1981-07-01
    (394_329_600, 21),   // 1982-07-01
    (425_865_600, 22),   // 1983-07-01
    (489_024_000, 23),   // 1985-07-01
    (567_993_600, 24),   // 1988-01-01
    (631_152_000, 25),   // 1990-01-01
    (662_688_000, 26),   // 1991-01-01
    (709_948_800, 27),   // 1992-07-01
    (741_484_800, 28),   // 1993-07-01
    (773_020_800, 29),   // 1994-07-01
    (820_454_400, 30),   // 1996-01-01
    (867_715_200, 31),   // 1997-07-01
    (915_148_800, 32),   // 1999-01-01
    (1_136_073_600, 33), // 2006-01-01
    (1_230_768_000, 34), // 2009-01-01
    (1_341_100_800, 35), // 2012-07-01
    (1_435_708_800, 36), // 2015-07-01
    (1_483_228_800, 37), // 2017-01-01
];

/// The time systems that differ from UTC by a known number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSystem {
    /// Coordinated universal time.
    Utc,
    /// International atomic time.
    Tai,
    /// Time of GPS: TAI − 19 s.
    Gps,
    /// Terrestrial time: TAI + 32.184 s.
    Tt,
}

/// The accepted names, for messages.
pub(crate) const NAMES: &str = "UTC, TAI, GPS or TT";

impl FromStr for TimeSystem {
    type Err = ();
    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "UTC" => Ok(Self::Utc),
            "TAI" => Ok(Self::Tai),
            "GPS" => Ok(Self::Gps),
            "TT" => Ok(Self::Tt),
            _ => Err(()),
        }
    }
}

impl TimeSystem {
    /// A time of this system in UTC; `None` before 1972, when UTC did not differ from TAI by whole seconds. After the last entry of
    /// the table, its difference is used.
    pub(crate) fn utc(self, time: NaiveDateTime) -> Option<NaiveDateTime> {
        let tai = match self {
            Self::Utc => return Some(time),
            Self::Tai => time,
            Self::Gps => time.checked_add_signed(TimeDelta::seconds(19))?,
            Self::Tt => time.checked_sub_signed(TimeDelta::milliseconds(32_184))?,
        };
        let second = tai.and_utc().timestamp();
        let (_, difference) =
            LEAP_SECONDS.into_iter().rev().find(|(start, difference)| second >= start + difference)?;
        tai.checked_sub_signed(TimeDelta::seconds(difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sgp4::chrono::Datelike;

    fn time(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn every_system_becomes_utc() {
        use TimeSystem::{Gps, Tai, Tt, Utc};
        for (system, given, utc) in [
            (Utc, "2026-11-21T12:00:00", "2026-11-21T12:00:00"),
            (Tai, "2026-11-21T12:00:37.5", "2026-11-21T12:00:00.5"),
            (Gps, "2026-11-21T12:00:18", "2026-11-21T12:00:00"),
            (Tt, "2026-11-21T12:01:09.184", "2026-11-21T12:00:00"),
            // On both sides of a leap second, and where the time of GPS began.
            (Tai, "2017-01-01T00:00:35", "2016-12-31T23:59:59"),
            (Tai, "2017-01-01T00:00:37", "2017-01-01T00:00:00"),
            (Gps, "1980-01-06T00:00:00", "1980-01-06T00:00:00"),
            (Tai, "1972-01-01T00:00:10", "1972-01-01T00:00:00"),
        ] {
            assert_eq!(system.utc(time(given)), Some(time(utc)), "{system:?} {given}");
        }
        assert_eq!(Tai.utc(time("1971-12-31T23:59:59")), None);
    }

    #[test]
    fn leap_seconds_follow_the_ends_of_half_years_one_by_one() {
        for ((start, difference), n) in LEAP_SECONDS.into_iter().zip(10..) {
            let day = sgp4::chrono::DateTime::from_timestamp(start, 0).unwrap();
            let first = (day.day() == 1 && (day.month() == 1 || day.month() == 7)).then(|| day.time());
            assert_eq!(first, sgp4::chrono::NaiveTime::from_hms_opt(0, 0, 0), "{day}");
            assert_eq!(difference, n);
        }
    }
}
