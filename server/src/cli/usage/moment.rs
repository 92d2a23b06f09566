//! Parses points in time.

use std::time::SystemTime;

use toolgate_client::well_known::Timestamp;

use toolgate_config::units::parse_duration;

pub(super) const SECONDS_OF_A_DAY: i64 = 86_400;

/// Parses a date, a time, or an age such as 12h.
pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    parse_at(text, SystemTime::now().into())
}

fn parse_at(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(seconds) = age(text) {
        let earlier = now.seconds.checked_sub(seconds).filter(|seconds| *seconds >= 0);
        let seconds = earlier.ok_or("before 1970, where the ledger begins")?;
        return Ok(Timestamp { seconds, ..now });
    }
    text.parse().map_err(|_| {
        "write a date such as 2026-11-20, a time such as 2026-11-20T18:00:00Z, or how long ago, such \
         as 12h or 7d"
            .to_owned()
    })
}

/// Parses a duration to seconds. Returns `None` if the text is not a duration.
fn age(text: &str) -> Option<i64> {
    if let Some(days) = text.strip_suffix('d') {
        let days: u32 = days.parse().ok()?;
        return Some(i64::from(days) * SECONDS_OF_A_DAY);
    }
    i64::try_from(parse_duration(text).ok()?.as_secs()).ok()
}

/// Returns the last midnight (UTC) at or before a moment, in seconds since 1970.
pub(super) fn midnight(moment: &Timestamp) -> i64 {
    moment.seconds - moment.seconds.rem_euclid(SECONDS_OF_A_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_times_or_ages() {
        let now: Timestamp = "2026-11-20T18:55:00Z".parse().expect("a time");
        for (text, want) in [
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-20T10:30:00Z", "2026-11-20T10:30:00Z"),
            ("2026-11-20T10:30:00+02:00", "2026-11-20T08:30:00Z"),
            ("12h", "2026-11-20T06:55:00Z"),
            ("90m", "2026-11-20T17:25:00Z"),
            ("7d", "2026-11-13T18:55:00Z"),
        ] {
            let moment = parse_at(text, now).expect(text);
            assert_eq!(moment.to_string(), want);
        }
        for text in ["", "yesterday", "7", "-3d", "2026-13-01", "d", "7 d x"] {
            let problem = parse_at(text, now).expect_err(text);
            assert!(problem.contains("2026-11-20T18:00:00Z"), "{problem}");
        }
        assert!(parse_at("99999d", now).expect_err("too long ago").contains("before 1970"));
    }
}
