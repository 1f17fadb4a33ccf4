//! Dates and times as people read them: the format of RFC 3339, in UTC.

use alloc::format;
use alloc::string::String;

/// A time in seconds since 1970 as in RFC 3339, in UTC.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    format!("{}Z", date_and_time(seconds))
}

/// A time in nanoseconds since 1970 as in RFC 3339, in UTC, with milliseconds.
#[must_use]
pub fn rfc3339_millis(nanos: u64) -> String {
    format!("{}.{:03}Z", date_and_time(nanos / 1_000_000_000), nanos / 1_000_000 % 1000)
}

fn date_and_time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that leap days come last. 1970 begins 719 468 days after 0000-03-01, and an era of 400
    // years has 146 097 days. This is Howard Hinnant's `civil_from_days`: 1460, 36 524 and 146 096 are the days of 4, 100
    // and 400 years without a leap day at their end, and five months from March or from August on have 153 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (h, m, s) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(rfc3339_millis(951_782_400_007_999_999), "2000-02-29T00:00:00.007Z");
    }
}
