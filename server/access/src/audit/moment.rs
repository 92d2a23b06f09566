//! Current time in the format of RFC 3339, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const MS_OF_A_DAY: u64 = 86_400_000;

pub(super) fn now() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    text(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

fn text(ms: u64) -> String {
    let (year, month, day) = date(ms / MS_OF_A_DAY);
    let of_day = ms % MS_OF_A_DAY;
    let hour = of_day / 3_600_000;
    let minute = of_day / 60_000 % 60;
    let second = of_day / 1_000 % 60;
    let milli = of_day % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Returns year, month and day of a day counted from 1970. Years begin in March here, so that the leap day is the
/// last of a year.
fn date(day: u64) -> (u64, u64, u64) {
    let since = day + 719_468;
    let era = since / 146_097;
    let of_era = since % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_361_593_007, "2026-11-22T15:33:13.007Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(text(ms), want);
        }
    }
}
