//! Time of an audit record: RFC 3339, in UTC, to the millisecond.

use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;

const FORMAT: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// Returns the current time, such as `2026-11-22T15:33:13.007Z`.
pub(super) fn now() -> String {
    text(OffsetDateTime::now_utc())
}

fn text(moment: OffsetDateTime) -> String {
    moment.format(FORMAT).expect("a moment in UTC has every part of the format")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_361_593_007, "2026-11-22T15:33:13.007Z"),
        ] {
            let moment = OffsetDateTime::from_unix_timestamp_nanos(ms * 1_000_000);
            assert_eq!(text(moment.expect("a moment")), want);
        }
    }
}
