//! Providers that have no time for a request just now: how long to wait before it is sent once more.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// Pause where the provider names none.
const PAUSE: Duration = Duration::from_millis(500);

/// Header of a pause in seconds.
const SECONDS: &str = "retry-after";

/// Header of a pause in milliseconds, as OpenAI names it.
const MILLISECONDS: &str = "retry-after-ms";

/// Returns true if a provider may take the same request a little later.
pub(crate) fn is_busy(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// Returns the pause before a request is sent once more, if there is time for it.
pub(crate) fn pause(headers: &HeaderMap, left: Duration) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let named = number(MILLISECONDS).map(Duration::from_millis);
    let named = named.or_else(|| number(SECONDS).map(Duration::from_secs));
    // A pause in another form, such as a date, is none that is short.
    let is_silent = !headers.contains_key(MILLISECONDS) && !headers.contains_key(SECONDS);
    let pause = named.or_else(|| is_silent.then_some(PAUSE))?;
    (pause < left).then_some(pause)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_request_is_sent_again_where_there_is_time() {
        let left = Duration::from_secs(8);
        let pause = |named: &[(&'static str, &'static str)]| {
            let named = named.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            super::pause(&named.collect(), left)
        };
        assert_eq!(pause(&[]), Some(PAUSE));
        assert_eq!(pause(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        let both = [("retry-after", "1"), ("retry-after-ms", "20")];
        assert_eq!(pause(&both), Some(Duration::from_millis(20)));
        for late in ["8", "3600", "Fri, 31 Dec 2027 23:59:59 GMT", "-1"] {
            assert_eq!(pause(&[("retry-after", late)]), None, "{late}");
        }
        assert_eq!(super::pause(&HeaderMap::new(), Duration::ZERO), None);
    }

    #[test]
    fn only_statuses_that_pass_are_tried_again() {
        let busy = [400, 401, 408, 429, 500, 502, 503, 504, 529]
            .map(|status| is_busy(StatusCode::from_u16(status).expect("a status")));
        assert_eq!(busy, [false, false, false, true, false, false, true, false, true]);
    }
}
