//! Timestamps and durations of conditions, in UTC, to the millisecond.

use super::node::CalendarField;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Years in which timestamps may lie.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// Returns a calendar field of the moment `ms` milliseconds after 1970 (UTC).
pub(super) fn field(field: CalendarField, ms: i64) -> i64 {
    let days = ms.div_euclid(DAY);
    let in_day = ms.rem_euclid(DAY);
    let (year, month, day) = date(days);
    match field {
        CalendarField::FullYear => year,
        CalendarField::Month => month - 1,
        CalendarField::DayOfMonth => day - 1,
        CalendarField::Date => day,
        // 1970-01-01 was a Thursday.
        CalendarField::DayOfWeek => (days + 4).rem_euclid(7),
        CalendarField::DayOfYear => days - days_before(year, 1, 1),
        CalendarField::Hours => in_day / HOUR,
        CalendarField::Minutes => in_day % HOUR / MINUTE,
        CalendarField::Seconds => in_day % MINUTE / SECOND,
    }
}

/// Parses a timestamp of RFC 3339, such as `2026-11-20T17:00:00Z`, into milliseconds since 1970.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let (day, rest) = text.split_once(['T', 't'])?;
    let [year, month, date] = numbers(day, '-', [4, 2, 2])?;
    let (clock, offset) = split_offset(rest)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hours, minutes, seconds] = numbers(clock, ':', [2, 2, 2])?;
    let right = YEARS.contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&date)
        && hours < 24
        && minutes < 60
        && seconds < 60;
    let midnight = days_before(year, month, date) * DAY;
    let time = hours * HOUR + minutes * MINUTE + seconds * SECOND + millis(fraction)?;
    right.then_some(midnight + time - offset)
}

/// Parses a duration such as `24h`, `1h30m` or `-2.5s` into milliseconds.
pub(super) fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut sum = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_end);
        let scale = match unit {
            "h" => HOUR,
            "m" => MINUTE,
            "s" => SECOND,
            "ms" => 1,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * scale as f64;
        rest = next;
    }
    // At most ten thousand years, so that adding it to a timestamp never overflows.
    (sum <= 3.2e14).then_some(sign * sum as i64)
}

fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let (clock, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let hours = digits(hours, 2)?;
    let minutes = digits(minutes, 2)?;
    (hours < 24 && minutes < 60).then_some((clock, sign * (hours * HOUR + minutes * MINUTE)))
}

fn numbers<const N: usize>(text: &str, by: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(by);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        *number = digits(parts.next()?, width)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str, width: usize) -> Option<i64> {
    let right = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    right.then(|| text.parse().ok())?
}

fn millis(fraction: &str) -> Option<i64> {
    let right = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    right.then(|| format!("{fraction:0<3}")[..3].parse().ok())?
}

/// Returns the days from 1970-01-01 to a date (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the year, month and day that lie `days` after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_before(next.0, next.1, 1) - days_before(year, month, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_and_taken_apart() {
        let moment = timestamp("2026-11-20T17:05:09.250Z").expect("a timestamp");
        assert_eq!(moment, 1_795_194_309_250);
        let fields = [
            (CalendarField::FullYear, 2026),
            (CalendarField::Month, 10),
            (CalendarField::Date, 20),
            (CalendarField::DayOfMonth, 19),
            (CalendarField::DayOfWeek, 5),
            (CalendarField::DayOfYear, 323),
            (CalendarField::Hours, 17),
            (CalendarField::Minutes, 5),
            (CalendarField::Seconds, 9),
        ];
        for (of, expected) in fields {
            assert_eq!(field(of, moment), expected, "{of:?}");
        }
        assert_eq!(timestamp("2026-11-20T18:05:09.250+01:00"), Some(moment));
        assert_eq!(field(CalendarField::Date, -1), 31);
        let leap = timestamp("2024-02-29T00:00:00Z").expect("a leap day");
        assert_eq!((field(CalendarField::Month, leap), field(CalendarField::Date, leap)), (1, 29));
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11-20",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T17:00Z",
            "2026-11-20T17:00:00",
            "0000-01-01T00:00:00Z",
            "2026-11-20T17:00:00+1:00",
            "2026-11-20T17:00:00.Z",
            "2026-11-20T17:00:00é1:00",
        ] {
            assert_eq!(timestamp(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(duration("24h"), Some(DAY));
        assert_eq!(duration("1h30m"), Some(90 * MINUTE));
        assert_eq!(duration("-2.5s"), Some(-2_500));
        assert_eq!(duration("3ms"), Some(3));
        for text in ["", "-", "h", "5", "5d", "1.2.3s", "99999999999999h"] {
            assert_eq!(duration(text), None, "{text:?}");
        }
    }
}
