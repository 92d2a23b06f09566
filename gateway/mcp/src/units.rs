//! Durations and sizes of the configuration.

use std::time::Duration;

/// Parses a duration, such as `500ms`, `60s` or `10m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text.get(..digits)?.parse().ok()?;
    match text.get(digits..)? {
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_secs(count.checked_mul(60)?)),
        _ => None,
    }
}

/// Parses a size in bytes, such as `32KiB` or `4MiB`; `none` is no limit.
pub(crate) fn size(text: &str) -> Option<usize> {
    let text = text.trim();
    if text == "none" {
        return Some(usize::MAX);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count: usize = text.get(..digits)?.parse().ok()?;
    let unit = match text.get(digits..)? {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    count.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_have_units() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        for wrong in ["", "s", "5", "5h", "-1s", "99999999999999999999s", "400000000000000000m"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert_eq!(size("32KiB"), Some(32 << 10));
        assert_eq!(size("7"), Some(7));
        assert_eq!(size("none"), Some(usize::MAX));
        for wrong in ["", "KiB", "1KB", "1.5MiB", "99999999999999999999MiB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
