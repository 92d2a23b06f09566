//! Single message in gRPC's length-prefixed form, which the services receive and return.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes of the prefix: a flag (compressed or not) and the length.
const PREFIX: usize = 5;

/// Returns the message with its prefix, or `None` if it is too long for one.
pub(super) fn seal(message: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(message.len()).ok()?;
    let mut sealed = BytesMut::with_capacity(PREFIX + message.len());
    sealed.put_u8(0);
    sealed.put_u32(length);
    sealed.put_slice(message);
    Some(sealed.freeze())
}

/// Returns the message without its prefix, or `None` unless there is exactly one uncompressed message.
pub(super) fn open(mut sealed: Bytes) -> Option<Bytes> {
    if sealed.len() < PREFIX {
        return None;
    }
    let prefix = sealed.split_to(PREFIX);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    (prefix[0] == 0 && usize::try_from(length) == Ok(sealed.len())).then_some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened() {
        for message in [&b""[..], b"x", &[7; 300]] {
            let sealed = seal(message).expect("short");
            assert_eq!(open(sealed.clone()).as_deref(), Some(message));
            assert_eq!(open(sealed.slice(..sealed.len() - 1)), None);
        }
        assert_eq!(open(Bytes::from_static(&[1, 0, 0, 0, 0])), None, "compressed");
    }
}
