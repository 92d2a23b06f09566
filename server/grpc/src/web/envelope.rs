//! One message in gRPC's length-prefixed form, which is what the services take and give.

use bytes::{BufMut as _, Bytes, BytesMut};

/// A flag (compressed or not) and a length.
const PREFIX: usize = 5;

/// The message with its prefix.
pub(super) fn seal(message: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(message.len()).ok()?;
    let mut sealed = BytesMut::with_capacity(PREFIX + message.len());
    sealed.put_u8(0);
    sealed.put_u32(length);
    sealed.put_slice(message);
    Some(sealed.freeze())
}

/// The one uncompressed message that is there.
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
