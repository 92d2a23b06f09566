//! Headers of requests and answers on their way through.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderValue, StatusCode};

/// Headers of one connection, which no proxy hands on (RFC 9110, 7.6.1), and `Expect`, which the proxy answers.
const OF_CONNECTIONS: [HeaderName; 10] = [
    CONNECTION,
    http::header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Names of betas that a request to Anthropic uses.
const BETA: &str = "anthropic-beta";

/// Takes out the headers that belong to one connection, and those that `Connection` names. The length is none of them: it was
/// read by, and without it a body may be sent as none.
fn take_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != CONTENT_LENGTH)
        .collect();
    if headers.contains_key(TRANSFER_ENCODING) {
        // It overrides the length (RFC 9112, 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    for name in named.iter().chain(&OF_CONNECTIONS) {
        headers.remove(name);
    }
}

/// Returns the headers of a request for the provider. The length goes with them: the body has it too.
pub(crate) fn of_request(mut headers: HeaderMap) -> HeaderMap {
    take_connection_headers(&mut headers);
    headers.remove(HOST);
    // For this proxy and nobody else.
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-toolgate")).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    headers
}

/// Adds betas of Anthropic's to those of the host.
pub(crate) fn add_betas(headers: &mut HeaderMap, betas: &[&'static str]) {
    let known: Vec<String> = headers
        .get_all(BETA)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_owned())
        .collect();
    let added = betas.iter().filter(|beta| !known.iter().any(|name| name == *beta));
    let all: Vec<&str> = known.iter().map(String::as_str).chain(added.copied()).collect();
    if all.len() > known.len()
        && let Ok(all) = HeaderValue::from_str(&all.join(","))
    {
        headers.insert(BETA, all);
    }
}

/// Returns true if the host names such a beta.
pub(crate) fn has_beta(headers: &HeaderMap, is_such: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(BETA).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|name| is_such(name.trim()))
}

/// Takes such betas out of those of the host. The others stay as they are, and a header without any goes.
pub(crate) fn remove_betas(headers: &mut HeaderMap, is_such: impl Fn(&str) -> bool) {
    if !has_beta(headers, &is_such) {
        return;
    }
    let before: Vec<HeaderValue> = headers.get_all(BETA).iter().cloned().collect();
    headers.remove(BETA);
    for value in before {
        let Ok(text) = value.to_str() else {
            headers.append(BETA, value);
            continue;
        };
        let left: Vec<&str> = text.split(',').filter(|name| !is_such(name.trim())).collect();
        let left = left.join(",");
        if left.trim().is_empty() {
            continue;
        }
        if let Ok(left) = HeaderValue::from_str(left.trim_start()) {
            headers.append(BETA, left);
        }
    }
}

/// Returns the headers of an answer with this status for the host.
pub(crate) fn of_answer(status: StatusCode, mut headers: HeaderMap) -> HeaderMap {
    take_connection_headers(&mut headers);
    if status == StatusCode::NO_CONTENT {
        // There is no body, whatever it says (RFC 9110, 8.6).
        headers.remove(CONTENT_LENGTH);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_stay_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop, content-length"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("keep-alive", "timeout=5"),
            ("host", "127.0.0.1:7090"),
            ("x-toolgate-key", "k"),
            ("authorization", "Bearer k"),
            ("content-length", "5"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let sent = of_request(headers);
        let names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["authorization", "content-length"]);
    }

    #[test]
    fn a_body_in_chunks_has_no_length() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("5"));
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert!(of_answer(StatusCode::OK, headers).is_empty());
    }

    #[test]
    fn an_answer_without_content_has_no_length() {
        let of = |status| {
            let headers = [(CONTENT_LENGTH, HeaderValue::from_static("5"))].into_iter().collect();
            of_answer(status, headers).len()
        };
        assert_eq!((of(StatusCode::OK), of(StatusCode::NO_CONTENT)), (1, 0));
        assert_eq!(of(StatusCode::NOT_MODIFIED), 1, "it is that of another answer");
    }

    #[test]
    fn betas_are_added_once() {
        let mut headers = HeaderMap::new();
        headers.insert(BETA, HeaderValue::from_static("own, second"));
        add_betas(&mut headers, &["second", "third"]);
        let sent: Vec<_> = headers.get_all(BETA).iter().collect();
        assert_eq!(sent, ["own,second,third"]);
        add_betas(&mut headers, &["own"]);
        assert_eq!(headers[BETA], "own,second,third");
    }

    #[test]
    fn betas_that_are_taken_out_leave_the_others() {
        let mut headers = HeaderMap::new();
        for value in ["gone, own ,  second", "gone", "third"] {
            headers.append(BETA, HeaderValue::from_static(value));
        }
        remove_betas(&mut headers, |beta| beta == "gone");
        let sent: Vec<_> = headers.get_all(BETA).iter().collect();
        assert_eq!(sent, ["own ,  second", "third"]);
        remove_betas(&mut headers, |_| true);
        assert!(headers.is_empty());
    }
}
