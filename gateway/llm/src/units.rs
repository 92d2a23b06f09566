//! Durations and sizes of the configuration.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, de};

/// Parses a duration, such as `30ms`, `10s` or `5m`.
fn parse_duration(text: &str) -> Option<Duration> {
    let (count, unit) = split(text)?;
    match unit {
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_secs(count.checked_mul(60)?)),
        _ => None,
    }
}

/// Parses a size in bytes, such as `32KiB` or `8MiB`.
fn parse_size(text: &str) -> Option<usize> {
    let (count, unit) = split(text)?;
    let factor = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    usize::try_from(count).ok()?.checked_mul(factor)
}

/// Splits a number from its unit.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no duration, such as \"30ms\"")))
}

pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_size(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no size, such as \"32KiB\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_have_units() {
        assert_eq!(parse_duration("30ms"), Some(Duration::from_millis(30)));
        assert_eq!(parse_duration("2m"), Some(Duration::from_secs(120)));
        for wrong in ["", "s", "5", "5h", "-1s", "99999999999999999999s", "400000000000000000m"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!(parse_size("32KiB"), Some(32 << 10));
        assert_eq!(parse_size("7"), Some(7));
        for wrong in ["", "KiB", "1GiB", "99999999999999999999"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
