//! Deadlines of callers, read from the metadata of their calls.

use std::time::Duration;

use tonic::codegen::http::HeaderMap;

/// Returns the caller's deadline (`grpc-timeout`) less a fiftieth, so that the answer arrives before it. Returns `None`
/// when the header is missing or can't be parsed.
#[must_use]
pub fn time_asked(headers: &HeaderMap) -> Option<Duration> {
    let asked = timeout(headers.get("grpc-timeout")?.to_str().ok()?)?;
    Some(asked - asked / 50)
}

/// Parses `grpc-timeout` (gRPC over HTTP/2, "Requests": at most 8 digits and a unit).
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        assert_eq!(timeout("5S"), Some(Duration::from_secs(5)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(timeout("250m"), Some(Duration::from_millis(250)));
        for text in ["", "S", "5", "5x", "+5S", "123456789S", "5é"] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }
}
