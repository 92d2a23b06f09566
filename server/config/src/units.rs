//! Text forms of durations ("250ms") and sizes ("4MiB"): parsing and printing.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a whole number with a unit: `ms`, `s`, `m` or `h`.
///
/// # Errors
/// Returns a description of the problem.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let known = DURATION_UNITS.iter().find(|(name, _)| *name == unit);
    let Some((_, millis)) = known else {
        return Err(unit_problem(unit, "ms, s, m or h"));
    };
    number.checked_mul(*millis).map(Duration::from_millis).ok_or_else(|| "too large".into())
}

/// Parses a whole number of bytes with a binary unit: `B`, `KiB`, `MiB`, `GiB` or `TiB`.
///
/// # Errors
/// Returns a description of the problem.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let Some((_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(unit_problem(unit, "B, KiB, MiB, GiB or TiB (powers of 1024)"));
    };
    number.checked_mul(*bytes).ok_or_else(|| "too large".into())
}

/// Returns the shortest exact text of a duration, to the millisecond.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    format_in(millis, &DURATION_UNITS, "s")
}

/// Returns the shortest exact text of a size in bytes.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    format_in(bytes, &SIZE_UNITS, "B")
}

fn format_in(amount: u64, units: &[(&str, u64)], unit_of_zero: &str) -> String {
    if amount == 0 {
        return format!("0{unit_of_zero}");
    }
    let fits = units.iter().find(|(_, size)| amount.is_multiple_of(*size));
    // Both tables end with a unit of 1, which divides everything.
    let (name, size) = fits.copied().unwrap_or((unit_of_zero, 1));
    format!("{}{name}", amount / size)
}

fn split(text: &str) -> Result<(u64, &str), String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err("it does not begin with a whole number".into());
    }
    let number = number.parse().map_err(|_| "too large".to_owned())?;
    Ok((number, unit.trim()))
}

fn unit_problem(unit: &str, units: &str) -> String {
    if unit.is_empty() {
        format!("the unit is missing: {units}")
    } else {
        format!("unknown unit \"{unit}\": use {units}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_trip() {
        for (text, millis) in [("250ms", 250), ("10s", 10_000), ("90s", 90_000), ("1h", 3_600_000)]
        {
            let parsed = parse_duration(text).expect(text);
            assert_eq!(parsed, Duration::from_millis(millis));
            assert_eq!(parse_duration(&format_duration(parsed)), Ok(parsed));
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "90s");
        assert_eq!(format_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn sizes_round_trip() {
        for (text, bytes) in [("0B", 0), ("512B", 512), ("4MiB", 4 << 20), ("3 GiB", 3 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes));
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        assert_eq!(format_size(1536), "1536B");
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        assert!(parse_duration("10").is_err_and(|text| text.contains("ms, s, m or h")));
        assert!(parse_duration("10 sec").is_err_and(|text| text.contains("\"sec\"")));
        assert!(parse_duration("soon").is_err_and(|text| text.contains("whole number")));
        assert!(parse_size("4MB").is_err_and(|text| text.contains("MiB")));
        assert!(parse_size("99999999TiB").is_err_and(|text| text.contains("too large")));
        assert!(parse_size("99999999999999999999B").is_err_and(|text| text.contains("too large")));
        assert!(parse_size("-1B").is_err());
        assert!(parse_size("").is_err());
    }
}
