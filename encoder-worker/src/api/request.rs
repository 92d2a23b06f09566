//! Limits on Embed requests.

use toolgate_proto::v1::EmbedRequest;

use super::call_error::CallError;

/// Most texts in one request.
pub(super) const TEXTS_MAX: usize = 256;

/// Most bytes of one text.
pub(super) const TEXT_BYTES_MAX: usize = 32 << 10;

/// Most bytes of one message: all texts at their limit, and room for protobuf's overhead.
pub(super) const MESSAGE_MAX: usize = TEXTS_MAX * TEXT_BYTES_MAX + (64 << 10);

/// Most violations that are reported. A status travels in headers, which clients limit.
const VIOLATIONS_MAX: usize = 16;

/// Checks a request against the limits and the worker's own `fingerprint`.
pub(super) fn check(message: &EmbedRequest, fingerprint: &str) -> Result<(), CallError> {
    let texts = &message.texts;
    if !(1..=TEXTS_MAX).contains(&texts.len()) {
        let problem = format!("must be 1 to {TEXTS_MAX} texts, found {}", texts.len());
        return Err(CallError::InvalidFields(vec![("texts".into(), problem)]));
    }
    let long = texts.iter().enumerate().filter(|(_, text)| text.len() > TEXT_BYTES_MAX);
    let violations: Vec<_> = long
        .map(|(index, text)| {
            let problem = format!("must be at most {TEXT_BYTES_MAX} bytes, found {}", text.len());
            (format!("texts[{index}]"), problem)
        })
        .take(VIOLATIONS_MAX)
        .collect();
    if !violations.is_empty() {
        return Err(CallError::InvalidFields(violations));
    }
    let expected = &message.fingerprint;
    if expected.is_empty() || expected == fingerprint {
        return Ok(());
    }
    let expected = expected.clone();
    let actual = fingerprint.to_owned();
    Err(CallError::FingerprintMismatch { expected, actual })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: Vec<String>) -> Vec<String> {
        let message = EmbedRequest { texts, ..EmbedRequest::default() };
        match check(&message, "f") {
            Ok(()) => Vec::new(),
            Err(CallError::InvalidFields(list)) => {
                list.into_iter().map(|(field, _)| field).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn limits_hold_to_the_text_and_the_byte() {
        let longest = || "x".repeat(TEXT_BYTES_MAX);
        assert!(fields(vec![longest(); TEXTS_MAX]).is_empty());
        assert!(fields(vec![String::new()]).is_empty());
        assert_eq!(fields(Vec::new()), ["texts"]);
        assert_eq!(fields(vec![String::new(); TEXTS_MAX + 1]), ["texts"]);
        let over = longest() + "x";
        let mixed = vec!["a".into(), over.clone(), "b".into(), over.clone()];
        assert_eq!(fields(mixed), ["texts[1]", "texts[3]"]);
        assert_eq!(fields(vec![over; TEXTS_MAX]).len(), VIOLATIONS_MAX);
    }

    #[test]
    fn another_fingerprint_is_refused() {
        let asks = |fingerprint: &str| {
            let message = EmbedRequest {
                texts: vec!["a".into()],
                fingerprint: fingerprint.into(),
                ..EmbedRequest::default()
            };
            check(&message, "f")
        };
        assert_eq!((asks(""), asks("f")), (Ok(()), Ok(())));
        let expected = "g".into();
        let actual = "f".into();
        assert_eq!(asks("g"), Err(CallError::FingerprintMismatch { expected, actual }));
    }
}
